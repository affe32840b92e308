/* inspect.c: what a model file holds, or a file with a part of a model. The layers and the names of their dimensions
 * are not in the file: they follow from its options, by tracing the whole model once. */
#include <inttypes.h>
#include <string.h>
#include "api/model.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"

typedef struct inspected {
    cpl_model_file *file;
    cpl_program *program;               /* of the whole model */
    const cpl_parameter_info **present; /* those that the file has, in the model's order */
    size_t count;
    int64_t elements;
} inspected;

static uint64_t checksum(const cpl_tensor_entry *t)
{
    return cpl_hash64(0, t->data, (size_t)cpl_tensor_elements(t) * cpl_dtype_bytes(t->dtype));
}

/* Of the model's tensors; a checkpoint has an optimizer's besides. */
static uint64_t bytes_of(const cpl_tensor_file *f)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < cpl_tensor_file_count(f); i++) {
        const cpl_tensor_entry *t = cpl_tensor_file_at(f, i);
        if (strncmp(t->name, "optimizer.", 10) != 0)
            bytes += cpl_tensor_elements(t) * cpl_dtype_bytes(t->dtype);
    }
    return bytes;
}

/* "decoder.rnn" of "decoder.rnn.kernel". */
static size_t layer_length(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : strlen(path);
}

static int same_layer(const char *a, const char *b)
{
    size_t n = layer_length(a);
    return n == layer_length(b) && strncmp(a, b, n) == 0;
}

/* ---- text ---- */

static void text_of_file(const inspected *m, cpl_str *to)
{
    const cpl_model_file *f = m->file;
    char bytes[32];
    cpl_str_add(to, f->type);
    if (f->part)
        cpl_str_printf(to, ", its part '%s'", f->part);
    cpl_str_printf(to, ", written by Couplet %s%s\n", f->version, f->is_checkpoint ? ": a checkpoint" : "");
    cpl_str_printf(to, "epoch %" PRId64 ", step %" PRId64 "\n", f->epoch, f->step);
    cpl_str_printf(to, "parameters        %" PRId64 "\n", m->elements);
    cpl_str_printf(to, "weights           %s, %s\n", cpl_weight_type_name(f->weights),
                   cpl_bytes_text(bytes, sizeof bytes, bytes_of(f->tensors)));
    cpl_str_printf(to, "source vocabulary %" PRId64 " entries\n", f->sizes.source_vocabulary);
    cpl_str_printf(to, "target vocabulary %" PRId64 " entries\n", f->sizes.target_vocabulary);
    cpl_str_printf(to, "longest target    %" PRId64 " tokens\n", f->longest_target);
}

static void text_of_layers(const inspected *m, cpl_str *to)
{
    cpl_str_add(to, "\nlayers\n");
    for (size_t i = 0; i < m->count; i++) {
        const cpl_parameter_info *info = m->present[i];
        cpl_str_printf(to, "  %-40s [", info->path);
        for (int k = 0; k < info->rank; k++)
            cpl_str_printf(to, "%s%s=%" PRId64, k ? " " : "", info->dim[k], info->size[k]);
        cpl_str_printf(to, "]  %" PRId64 "\n", info->elements);
    }
}

static void text_of_tensors(const inspected *m, cpl_str *to)
{
    cpl_str_add(to, "\nchecksums\n");
    for (size_t i = 0; i < cpl_tensor_file_count(m->file->tensors); i++) {
        const cpl_tensor_entry *t = cpl_tensor_file_at(m->file->tensors, i);
        cpl_str_printf(to, "  %016" PRIx64 "  %s %s\n", checksum(t), cpl_dtype_name(t->dtype), t->name);
    }
}

static void text_of_options(const inspected *m, cpl_str *to)
{
    char key[CPL_CONFIG_KEY_SIZE];
    cpl_str_add(to, "\noptions\n");
    for (int i = 0; i < CPL_CONFIG_KEYS; i++) {
        cpl_str_printf(to, "  %s: ", cpl_config_key(i, key));
        cpl_config_text_of(m->file->config, i, to);
        cpl_str_add_char(to, '\n');
    }
}

static void text_of_history(const cpl_json *history, cpl_str *to)
{
    cpl_str_printf(to, "\nhistory%s\n", cpl_json_size(history) ? "" : ": none yet");
    for (size_t i = 0; i < cpl_json_size(history); i++) {
        const cpl_json *entry = cpl_json_at(history, i), *value;
        const char *key;
        cpl_str_add(to, " ");
        for (size_t k = 0; (key = cpl_json_key(entry, k, &value)); k++)
            if (cpl_json_what(value) == CPL_JSON_NULL)
                cpl_str_printf(to, " %s -", key);
            else if (cpl_json_what(value) == CPL_JSON_INT)
                cpl_str_printf(to, " %s %" PRId64, key, cpl_json_int(value, 0));
            else if (cpl_json_what(value) == CPL_JSON_REAL)
                cpl_str_printf(to, " %s %.5g", key, cpl_json_real(value, 0));
            else if (cpl_json_what(value) == CPL_JSON_TEXT)
                cpl_str_printf(to, " %s %s", key, cpl_json_text(value, NULL));
        cpl_str_add_char(to, '\n');
    }
}

/* ---- JSON ---- */

static cpl_json *json_of_parameter(const cpl_parameter_info *info)
{
    cpl_json *o = cpl_json_object(), *shape = cpl_json_array(), *names = cpl_json_array();
    for (int k = 0; k < info->rank; k++) {
        cpl_json_add_int(shape, info->size[k]);
        cpl_json_add_text(names, info->dim[k], strlen(info->dim[k]));
    }
    cpl_json_set_text(o, "name", info->path);
    cpl_json_set(o, "dimensions", names);
    cpl_json_set(o, "shape", shape);
    return o;
}

static cpl_json *json_of_layers(const inspected *m)
{
    cpl_json *layers = cpl_json_array();
    for (size_t i = 0, next; i < m->count; i = next) {
        const char *path = m->present[i]->path;
        cpl_json *layer = cpl_json_object(), *list = cpl_json_array();
        int64_t elements = 0;
        for (next = i; next < m->count && same_layer(path, m->present[next]->path); next++) {
            elements += m->present[next]->elements;
            cpl_json_add(list, json_of_parameter(m->present[next]));
        }
        cpl_json_set_bytes(layer, "name", path, layer_length(path));
        cpl_json_set_int(layer, "parameters", elements);
        cpl_json_set(layer, "tensors", list);
        cpl_json_add(layers, layer);
    }
    return layers;
}

static cpl_json *json_of_tensors(const cpl_tensor_file *f)
{
    cpl_json *tensors = cpl_json_array();
    for (size_t i = 0; i < cpl_tensor_file_count(f); i++) {
        const cpl_tensor_entry *t = cpl_tensor_file_at(f, i);
        cpl_json *o = cpl_json_object(), *shape = cpl_json_array();
        char text[24];
        for (int k = 0; k < t->rank; k++)
            cpl_json_add_int(shape, t->shape[k]);
        snprintf(text, sizeof text, "%016" PRIx64, checksum(t));
        cpl_json_set_text(o, "name", t->name);
        cpl_json_set_text(o, "type", cpl_dtype_name(t->dtype));
        cpl_json_set(o, "shape", shape);
        cpl_json_set_text(o, "checksum", text);
        cpl_json_add(tensors, o);
    }
    return tensors;
}

/* The history goes into the object, which frees it. */
static cpl_status json_of_model(const inspected *m, cpl_json *history, cpl_str *to, cpl_error *err)
{
    const cpl_model_file *f = m->file;
    cpl_json *root = cpl_json_object();
    cpl_json_set_text(root, "type", f->type);
    if (f->part)
        cpl_json_set_text(root, "part", f->part);
    cpl_json_set_text(root, "version", f->version);
    cpl_json_set_bool(root, "checkpoint", f->is_checkpoint);
    cpl_json_set_int(root, "epoch", f->epoch);
    cpl_json_set_int(root, "step", f->step);
    cpl_json_set_int(root, "parameters", m->elements);
    cpl_json_set_text(root, "weights", cpl_weight_type_name(f->weights));
    cpl_json_set_int(root, "bytes", (int64_t)bytes_of(f->tensors));
    cpl_json_set_int(root, "source_vocabulary", f->sizes.source_vocabulary);
    cpl_json_set_int(root, "target_vocabulary", f->sizes.target_vocabulary);
    cpl_json_set_int(root, "longest_target", f->longest_target);
    cpl_json_set(root, "options", cpl_config_to_json(f->config));
    cpl_json_set(root, "layers", json_of_layers(m));
    cpl_json_set(root, "history", history);
    cpl_json_set(root, "tensors", json_of_tensors(f->tensors));
    cpl_status status = root ? cpl_json_write(root, to, err) : cpl_error_set(err, CPL_FAILED, "out of memory");
    cpl_json_free(root);
    cpl_str_add_char(to, '\n');
    return status;
}

/* ---- both ---- */

static cpl_status inspect(const inspected *m, int json, cpl_str *to, cpl_error *err)
{
    cpl_json *history;
    CPL_TRY(cpl_json_parse(&history, m->file->history, m->file->history_length, err), err, "cannot read the history");
    if (json)
        return json_of_model(m, history, to, err);
    text_of_file(m, to);
    text_of_layers(m, to);
    text_of_history(history, to);
    text_of_options(m, to);
    text_of_tensors(m, to);
    cpl_json_free(history);
    return CPL_OK;
}

/* Traces the model and checks the file's weights against it. */
static cpl_status look_into(inspected *m, const char *path, cpl_error *err)
{
    cpl_model_file *f;
    cpl_str table = {0};
    cpl_compile_options o = {.name = "the model", .threads = 1, .inference = 1};
    CPL_TRY(cpl_model_file_open(&m->file, path, err), err, "cannot inspect '%s'", path);
    f = m->file;
    CPL_TRY(cpl_compile(&m->program, f->kind->score, &f->sizes, &o, err), err, "cannot inspect '%s'", path);
    cpl_parameters *p = m->program->engine->parameters;
    cpl_status status = f->part ? cpl_model_file_load_part(f, f->part, p, &table, err)
                                : cpl_model_file_load_parameters(f, p, err);
    cpl_str_free(&table);
    CPL_TRY(status, err, "cannot inspect '%s'", path);
    m->present = cpl_alloc(cpl_parameters_count(p) + 1, sizeof(const cpl_parameter_info *));
    if (!m->present)
        CPL_FAIL(err, CPL_FAILED, "out of memory for a list of %zu weights", cpl_parameters_count(p));
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(p, i);
        if (!cpl_tensor_file_find(f->tensors, info->path))
            continue;
        m->present[m->count++] = info;
        m->elements += info->elements;
    }
    return CPL_OK;
}

cpl_status cpl_inspect(const char *model, int json, char **text, cpl_error *err)
{
    inspected m = {0};
    cpl_str out = {0};
    char *path = cpl_model_path(model);
    *text = NULL;
    cpl_status status = path ? look_into(&m, path, err) : cpl_error_set(err, CPL_FAILED, "out of memory");
    if (status == CPL_OK)
        status = inspect(&m, json, &out, err);
    cpl_release(m.present);
    cpl_program_free(m.program);
    cpl_model_file_close(m.file);
    cpl_release(path);
    if (status == CPL_OK && !(*text = cpl_str_take(&out)))
        status = cpl_error_set(err, CPL_FAILED, "out of memory for the result");
    cpl_str_free(&out);
    return status;
}
