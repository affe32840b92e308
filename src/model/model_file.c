/* model_file.c: opening a model and copying its weights. model_set.c writes. */
#include "model/model_file.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* ---- metadata ---- */

static cpl_status text_of(const cpl_model_file *f, const char *key, const char **text, size_t *length, cpl_error *err)
{
    *text = cpl_tensor_file_metadata(f->tensors, key, length);
    if (!*text)
        CPL_FAIL(err, CPL_FAILED, "the metadata has no '%s'", key);
    return CPL_OK;
}

/* Parses the JSON that stands under key. */
static cpl_status json_of(const cpl_model_file *f, const char *key, cpl_json **root, cpl_error *err)
{
    size_t length;
    const char *text;
    cpl_status status = text_of(f, key, &text, &length, err);
    if (status == CPL_OK)
        status = cpl_json_parse(root, text, length, err);
    if (status != CPL_OK)
        return cpl_error_context(err, status, "cannot read '%s' of the metadata", key);
    return CPL_OK;
}

static cpl_status read_vocabulary(const cpl_model_file *f, const char *key, cpl_vocabulary **v, cpl_error *err)
{
    cpl_json *root;
    cpl_status status = json_of(f, key, &root, err);
    if (status != CPL_OK)
        return status;
    status = cpl_vocabulary_from_json(v, root, err);
    cpl_json_free(root);
    if (status != CPL_OK)
        return cpl_error_context(err, status, "'%s' is not a vocabulary", key);
    return CPL_OK;
}

/* "source": both sides have one vocabulary. */
static cpl_status read_target(cpl_model_file *f, cpl_error *err)
{
    const char *text = cpl_tensor_file_metadata(f->tensors, "target_vocabulary", NULL);
    if (!text || strcmp(text, "\"source\"") != 0)
        return read_vocabulary(f, "target_vocabulary", &f->target, err);
    f->target = f->source;
    return CPL_OK;
}

static cpl_status read_config(cpl_model_file *f, cpl_error *err)
{
    cpl_json *root;
    cpl_status status = json_of(f, "config", &root, err);
    if (status != CPL_OK)
        return status;
    status = cpl_config_from_json(&f->config, root, err);
    cpl_json_free(root);
    if (status == CPL_OK)
        status = cpl_config_check(f->config, 0, err);
    if (status != CPL_OK)
        return cpl_error_context(err, status, "the options of the model cannot be used");
    return CPL_OK;
}

/* What must be known before anything else is looked at. A file of a later format is refused by its number: its
 * entries may mean something else. */
static cpl_status check_format(const cpl_model_file *f, cpl_error *err)
{
    const char *format = cpl_tensor_file_metadata(f->tensors, "format", NULL);
    int64_t version;
    if (!format || strcmp(format, "couplet") != 0)
        CPL_FAIL(err, CPL_FAILED, "it is a tensor file but not a Couplet model: 'format' is %s%s%s, expected 'couplet'",
                 format ? "'" : "", format ? format : "missing", format ? "'" : "");
    if (!cpl_tensor_file_verified(f->tensors))
        CPL_FAIL(err, CPL_FAILED, "the metadata has no 'checksum'");
    cpl_status status = cpl_tensor_file_metadata_int(f->tensors, "format_version", &version, err);
    if (status != CPL_OK)
        return status;
    if (version < 1 || version > CPL_MODEL_FORMAT_LATEST)
        CPL_FAIL(err, CPL_FAILED, "its format version is %" PRId64 ", this program reads 1 to %d" CPL_HINT
                 "a newer Couplet reads it", version, CPL_MODEL_FORMAT_LATEST);
    return CPL_OK;
}

static cpl_status read_weights(cpl_model_file *f, cpl_error *err)
{
    const char *name = cpl_tensor_file_metadata(f->tensors, "weights", NULL);
    if (name && !cpl_weight_type_named(&f->weights, name))
        CPL_FAIL(err, CPL_FAILED, "its weights are '%s', expected float32, bfloat16 or int8", name);
    return CPL_OK;
}

static cpl_status read_all(cpl_model_file *f, cpl_error *err)
{
    cpl_status status = check_format(f, err);
    if (status == CPL_OK)
        status = text_of(f, "version", &f->version, NULL, err);
    if (status == CPL_OK)
        status = text_of(f, "type", &f->type, NULL, err);
    if (status == CPL_OK)
        status = text_of(f, "history", &f->history, &f->history_length, err);
    if (status == CPL_OK)
        status = cpl_tensor_file_metadata_int(f->tensors, "longest_target", &f->longest_target, err);
    if (status == CPL_OK)
        status = cpl_tensor_file_metadata_int(f->tensors, "epoch", &f->epoch, err);
    if (status == CPL_OK)
        status = cpl_tensor_file_metadata_int(f->tensors, "step", &f->step, err);
    if (status == CPL_OK)
        status = read_weights(f, err);
    if (status == CPL_OK)
        status = read_config(f, err);
    if (status == CPL_OK)
        status = read_vocabulary(f, "source_vocabulary", &f->source, err);
    if (status == CPL_OK)
        status = read_target(f, err);
    if (status != CPL_OK)
        return status;
    f->part = cpl_tensor_file_metadata(f->tensors, "part", NULL);
    f->is_checkpoint = cpl_tensor_file_metadata(f->tensors, "state", NULL) != NULL;
    f->sizes = (cpl_model_sizes){.config = f->config,
                                 .source_vocabulary = cpl_vocabulary_size(f->source),
                                 .target_vocabulary = cpl_vocabulary_size(f->target)};
    f->kind = cpl_model_kind_of(f->config);
    return CPL_OK;
}

cpl_status cpl_model_file_take(cpl_model_file **out, cpl_tensor_file *tensors, const char *name, cpl_error *err)
{
    cpl_model_file *f = cpl_alloc(1, sizeof *f);
    *out = NULL;
    if (!f) {
        cpl_tensor_file_close(tensors);
        CPL_FAIL(err, CPL_FAILED, "no memory for reading '%s'", name);
    }
    f->tensors = tensors;
    cpl_status status = read_all(f, err);
    if (status != CPL_OK) {
        cpl_model_file_close(f);
        if (err)
            err->status = CPL_FAILED; /* a damaged option in a file is not the user's usage */
        return cpl_error_context(err, CPL_FAILED, "'%s' cannot be used as a model", name);
    }
    *out = f;
    return CPL_OK;
}

cpl_status cpl_model_file_open(cpl_model_file **f, const char *path, cpl_error *err)
{
    cpl_tensor_file *tensors;
    *f = NULL;
    cpl_status status = cpl_tensor_file_open(&tensors, path, err);
    return status == CPL_OK ? cpl_model_file_take(f, tensors, path, err) : status;
}

void cpl_model_file_close(cpl_model_file *f)
{
    if (!f)
        return;
    cpl_config_free(f->config);
    cpl_vocabulary_free(f->source);
    if (f->target != f->source)
        cpl_vocabulary_free(f->target);
    cpl_tensor_file_close(f->tensors);
    cpl_release(f);
}

/* ---- weights ---- */

/* Collects what does not match; lists stay readable when everything is wrong. */
typedef struct mismatch {
    int any_type; /* 1: weights may be of a lower type */
    cpl_str missing, left_over, shapes;
    int missing_count, left_over_count, shape_count;
} mismatch;

enum { SHOWN = 5 };

static void list(cpl_str *to, int *count, const char *name)
{
    if (++*count <= SHOWN)
        cpl_str_printf(to, "%s'%s'", *count > 1 ? ", " : "", name);
    else if (*count == SHOWN + 1)
        cpl_str_add(to, " …");
}

/* "[vocab=51920 units=16]": the file's sizes under the model's names. */
static void add_shape(cpl_str *to, const cpl_parameter_info *info, const int64_t *size, int rank)
{
    cpl_str_add_char(to, '[');
    for (int i = 0; i < rank; i++) {
        cpl_str_add(to, i ? " " : "");
        if (rank == info->rank)
            cpl_str_printf(to, "%s=", info->dim[i]);
        cpl_str_printf(to, "%" PRId64, size[i]);
    }
    cpl_str_add_char(to, ']');
}

static void compare_one(mismatch *m, const cpl_tensor_file *f, const char *name, const cpl_parameter_info *info)
{
    const cpl_tensor_entry *t = cpl_tensor_file_find(f, name);
    int fits = t && cpl_stored_fits(f, t, info) && (m->any_type || t->dtype == CPL_DTYPE_F32);
    if (!t) {
        list(&m->missing, &m->missing_count, name);
    } else if (!fits && ++m->shape_count <= SHOWN) {
        cpl_str_printf(&m->shapes, "%s'%s' is ", m->shape_count > 1 ? ", " : "", name);
        add_shape(&m->shapes, info, t->shape, t->rank);
        if (t->dtype != CPL_DTYPE_F32)
            cpl_str_printf(&m->shapes, " of %s", cpl_dtype_name(t->dtype));
        cpl_str_add(&m->shapes, " but the model needs ");
        add_shape(&m->shapes, info, info->size, info->rank);
    }
}

static cpl_status judge(mismatch *m, cpl_error *err)
{
    cpl_status status = CPL_OK;
    if (m->missing_count || m->left_over_count || m->shape_count) {
        const char *missing = m->missing.data ? m->missing.data : "", *shapes = m->shapes.data ? m->shapes.data : "";
        const char *left_over = m->left_over.data ? m->left_over.data : "";
        status = cpl_error_set(err, CPL_FAILED, "the weights do not fit the model: %s%s%s%s%s%s%s", shapes,
                               m->shape_count && (m->missing_count || m->left_over_count) ? "; " : "",
                               m->missing_count ? "missing " : "", missing,
                               m->missing_count && m->left_over_count ? "; " : "",
                               m->left_over_count ? "not in the model " : "", left_over);
    }
    cpl_str_free(&m->missing);
    cpl_str_free(&m->left_over);
    cpl_str_free(&m->shapes);
    return status;
}

static cpl_str name_of(const char *prefix, const char *path)
{
    cpl_str name = {0};
    cpl_str_add(&name, prefix);
    cpl_str_add(&name, path);
    return name;
}

/* The parameter that a tensor's name under prefix stands for, or −1. */
static int parameter_of(const cpl_parameters *p, const char *prefix, const char *name,
                        int (*wanted)(const cpl_parameter_info *))
{
    int i = cpl_parameters_find(p, name + strlen(prefix));
    return i >= 0 && (!wanted || wanted(cpl_parameters_at(p, (size_t)i))) ? i : -1;
}

static cpl_status check_block(const cpl_tensor_file *t, const char *prefix, const cpl_parameters *p,
                              int (*wanted)(const cpl_parameter_info *), int any_type, cpl_error *err)
{
    mismatch m = {.any_type = any_type};
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(p, i);
        cpl_str name = name_of(prefix, info->path);
        if (!name.failed && (!wanted || wanted(info)))
            compare_one(&m, t, name.data, info);
        cpl_str_free(&name);
    }
    int is_checkpoint = cpl_tensor_file_metadata(t, "state", NULL) != NULL;
    for (size_t i = 0; i < cpl_tensor_file_count(t); i++) {
        const char *name = cpl_tensor_file_at(t, i)->name;
        int ours = strncmp(name, prefix, strlen(prefix)) == 0;
        if (!prefix[0] && is_checkpoint && strncmp(name, "optimizer.", 10) == 0)
            ours = 0;
        if (any_type && cpl_stored_is_scale(t, name))
            ours = 0;
        if (ours && parameter_of(p, prefix, name, wanted) < 0)
            list(&m.left_over, &m.left_over_count, name);
    }
    return judge(&m, err);
}

cpl_status cpl_model_file_load_block(const cpl_tensor_file *t, const char *prefix, const cpl_parameters *p,
                                     int (*wanted)(const cpl_parameter_info *), real *block, cpl_error *err)
{
    cpl_status status = check_block(t, prefix, p, wanted, 0, err);
    if (status != CPL_OK)
        return status;
    for (size_t i = 0; i < cpl_tensor_file_count(t); i++) {
        const cpl_tensor_entry *entry = cpl_tensor_file_at(t, i);
        int ours = strncmp(entry->name, prefix, strlen(prefix)) == 0;
        int k = ours ? parameter_of(p, prefix, entry->name, wanted) : -1;
        if (k < 0)
            continue;
        const cpl_parameter_info *info = cpl_parameters_at(p, (size_t)k);
        if (info->elements > 0)
            memcpy(block + (wanted ? info->slot : info->offset), entry->data, (size_t)info->elements * sizeof(real));
    }
    return CPL_OK;
}

static int any(const void *user, const char *name)
{
    (void)user;
    (void)name;
    return 1;
}

cpl_status cpl_model_file_load_parameters(const cpl_model_file *f, cpl_parameters *p, cpl_error *err)
{
    cpl_status status = check_block(f->tensors, "", p, NULL, 1, err);
    return status == CPL_OK ? cpl_stored_load(f->tensors, any, NULL, p, err) : status;
}

cpl_status cpl_model_file_need_float32(const cpl_model_file *f, const char *name, const char *what, cpl_error *err)
{
    if (f->weights == CPL_WEIGHT_FLOAT32)
        return CPL_OK;
    CPL_FAIL(err, CPL_USAGE, "%s needs a model of float32 weights, but '%s' has %s" CPL_HINT
             "give the model that it was quantized from", what, name, cpl_weight_type_name(f->weights));
}
