/* keras_import.c: couplet import keras. The configuration says what the model is, the vocabularies how large; compiling
 * it names every parameter, and each is looked up in the file by name. Only when all fit is a model written. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/keras.h"
#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "data/data.h"
#include "graph/program.h"
#include "model/model_file.h"

typedef struct import {
    const cpl_keras_import_options *o;
    cpl_log log;
    cpl_config *config;
    cpl_vocabulary *source, *target;
    cpl_hdf5 *weights;
    cpl_keras_map *map;
    cpl_map *names;      /* name as renamed → 1 + number in weights */
    unsigned char *used; /* of weights */
    cpl_program *program;
    cpl_str problems;    /* the first few; the log gets all */
    int count;
    char hint[200];
} import;

enum { PROBLEMS_SHOWN = 3 };

static void hand_on(void *user, cpl_log_level level, const char *text)
{
    const import *m = user;
    m->o->message(m->o->user, level == CPL_LOG_WARNING, text);
}

__attribute__((format(printf, 2, 3))) static void problem(import *m, const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cpl_log_info(&m->log, "%s", text);
    if (++m->count <= PROBLEMS_SHOWN)
        cpl_str_printf(&m->problems, "%s%s", m->count > 1 ? "; " : "", text);
    else if (m->count == PROBLEMS_SHOWN + 1)
        cpl_str_add(&m->problems, "; …");
}

static const char *shape_text(char text[96], const int64_t *size, int rank)
{
    size_t n = 0;
    text[n++] = '[';
    for (int i = 0; i < rank && n < 72; i++)
        n += (size_t)snprintf(text + n, 96 - n, "%s%" PRId64, i ? " " : "", size[i]);
    snprintf(text + n, 96 - n, "]");
    return text;
}

/* ---- vocabularies ---- */

/* As `train` would build them from the configuration's data: the same rule as Keras's adapt (frequency, ties in
 * reverse byte order), so with the same text the order is the same. Built ones are copied through JSON. */
static cpl_status copy_vocabulary(cpl_vocabulary **to, const cpl_vocabulary *from, cpl_error *err)
{
    cpl_json *json = cpl_vocabulary_to_json(from);
    if (!json)
        CPL_FAIL(err, CPL_FAILED, "no memory for a vocabulary");
    cpl_status status = cpl_vocabulary_from_json(to, json, err);
    cpl_json_free(json);
    return status;
}

static cpl_status build_vocabularies(import *m, cpl_error *err)
{
    cpl_dataset *data;
    cpl_dataset_options o = {.config = m->config, .source = m->source, .target = m->target, .log = &m->log};
    if (m->config->data.train.count == 0)
        CPL_FAIL(err, CPL_USAGE, "there is no %s vocabulary" CPL_HINT
                 "give the file with --%s-vocabulary, or the training data in the configuration (data.train)",
                 m->source ? "target" : "source", m->source ? "target" : "source");
    CPL_TRY(cpl_dataset_new(&data, &o, err), err, "cannot build the vocabularies from data.train");
    cpl_status status = m->source ? CPL_OK : copy_vocabulary(&m->source, data->source, err);
    if (status == CPL_OK && !m->target)
        status = copy_vocabulary(&m->target, data->target, err);
    cpl_dataset_free(data);
    cpl_log_info(&m->log, "a vocabulary is built from the training data: it is the model's own only if it was built "
                 "from the same text by the same rules");
    return status;
}

static cpl_status read_vocabularies(import *m, cpl_error *err)
{
    const char *source = m->o->source_vocabulary, *target = m->o->target_vocabulary;
    const cpl_config_text *text = &m->config->text;
    int mirrored = cpl_config_one_text(m->config); /* one vocabulary is both */
    if (mirrored && source && target)
        CPL_FAIL(err, CPL_USAGE, "%s has one vocabulary, two files are given",
                 m->config->text.shared ? "text.shared" : "an autoencoder");
    if (mirrored)
        source = target = source ? source : target;
    source = source ? source : text->source.vocabulary.path; /* of one set the target follows the source */
    target = target ? target : text->target.vocabulary.path;
    if (source)
        CPL_TRY(cpl_vocabulary_read(&m->source, source, (cpl_tokens)text->source.tokens, err), err,
                "cannot read the source vocabulary");
    if (target)
        CPL_TRY(cpl_vocabulary_read(&m->target, target, (cpl_tokens)(mirrored ? text->source : text->target).tokens,
                                    err), err, "cannot read the target vocabulary");
    return source && target ? CPL_OK : build_vocabularies(m, err);
}

/* ---- the file's names ---- */

static cpl_status index_names(import *m, cpl_error *err)
{
    size_t n = cpl_hdf5_count(m->weights);
    m->names = cpl_map_new();
    m->used = cpl_alloc(n, 1);
    if (!m->names || !m->used)
        CPL_FAIL(err, CPL_FAILED, "no memory for the names of %zu tensors", n);
    for (size_t i = 0; i < n; i++) {
        int is_new;
        const char *name = cpl_keras_map_name(m->map, cpl_hdf5_at(m->weights, i)->name);
        int64_t *place = cpl_map_insert(m->names, name, strlen(name), &is_new);
        if (!place)
            CPL_FAIL(err, CPL_FAILED, "no memory for the names of %zu tensors", n);
        if (!is_new)
            CPL_FAIL(err, CPL_USAGE, "'%s' and '%s' are both called '%s'",
                     cpl_hdf5_at(m->weights, (size_t)*place - 1)->name, cpl_hdf5_at(m->weights, i)->name, name);
        *place = (int64_t)i + 1;
    }
    return CPL_OK;
}

/* The tensor of parameter i, NULL when no name of the table is there; t is then the first place of the table. */
static const cpl_tensor_entry *find(import *m, size_t i, cpl_keras_tensor *t)
{
    const cpl_parameters *p = m->program->engine->parameters;
    for (int choice = 0; cpl_keras_place(m->config, p, i, choice, t); choice++) {
        const int64_t *place = cpl_map_find(m->names, t->name, strlen(t->name));
        if (place) {
            m->used[*place - 1] = 1;
            return cpl_hdf5_at(m->weights, (size_t)*place - 1);
        }
    }
    if (!cpl_keras_place(m->config, p, i, 0, t))
        snprintf(t->name, sizeof t->name, "(no place in Keras's files)");
    return NULL;
}

/* ---- checks ---- */

/* A GRU's bias tells which of the two kinds it is (case H08); a row of an embedding belongs to an entry. */
static void explain(import *m, const cpl_tensor_entry *found, const cpl_keras_tensor *want, char why[160])
{
    int64_t have = 1, need = 1, last = want->rank > 0 ? want->shape[want->rank - 1] : 1;
    for (int i = 0; i < found->rank; i++)
        have *= found->shape[i];
    for (int i = 0; i < want->rank; i++)
        need *= want->shape[i];
    int is_bias = want->gates == CPL_KERAS_ZRH && strcmp(want->name + strlen(want->name) - 7, "/vars/2") == 0;
    const char *side = strncmp(want->name, "encoder", 7) == 0 ? "encoder" : "decoder";
    why[0] = '\0';
    if (is_bias && found->rank == 2 && have == 2 * last && need == last) {
        snprintf(why, 160, ": the file's GRU resets after the product");
        snprintf(m->hint, sizeof m->hint, "set model.%s.cell: gru", side);
    } else if (is_bias && found->rank == 1 && have == last && need == 2 * last) {
        snprintf(why, 160, ": the file's GRU resets before the product");
        snprintf(m->hint, sizeof m->hint, "set model.%s.cell: gru_reset_before", side);
    } else if (is_bias && found->rank == 1 && have == 2 * last) {
        snprintf(why, 160, ": both rows in one, as CuDNNGRU of Keras 2 has them");
        snprintf(m->hint, sizeof m->hint, "load the weights into a GRU of Keras and save them again");
    } else if (strstr(want->name, "/embedding/") && found->rank == 2 && found->shape[0] != want->shape[0]) {
        snprintf(why, 160, ": %" PRId64 " rows for %" PRId64 " entries of the %s vocabulary", found->shape[0],
                 want->shape[0], side[0] == 'e' ? "source" : "target");
    }
}

static int check_one(import *m, size_t i, const cpl_tensor_entry *found, const cpl_keras_tensor *want)
{
    char a[96], b[96], why[160];
    const cpl_parameter_info *info = cpl_parameters_at(m->program->engine->parameters, i);
    if (!found) {
        if (want->may_lack)
            cpl_log_info(&m->log, "'%s' is not in the file: zero", want->name);
        else if (want->row <= 0)
            problem(m, "the file has no '%s' %s for '%s'", want->name, shape_text(a, want->shape, want->rank),
                    info->path);
        return 0;
    }
    int same = found->rank == want->rank && found->data;
    for (int k = 0; same && k < want->rank; k++)
        same = found->shape[k] == want->shape[k];
    if (!same && want->row <= 0) { /* two parameters that are one tensor there: told once */
        explain(m, found, want, why);
        problem(m, "'%s' is %s%s, the model needs %s%s", found->name, shape_text(a, found->shape, found->rank),
                found->data ? "" : " of whole numbers", shape_text(b, want->shape, want->rank), why);
    }
    return same;
}

/* The optimizer's memory, metrics' sums and the state of random numbers are no part of the model. */
static int is_weight(const char *name)
{
    return strncmp(name, "optimizer/", 10) != 0 && strncmp(name, "metrics/", 8) != 0 &&
           !strstr(name, "seed_generator/");
}

static void check_unread(import *m)
{
    char shape[96];
    size_t others = 0;
    for (size_t i = 0; i < cpl_hdf5_count(m->weights); i++) {
        const cpl_tensor_entry *t = cpl_hdf5_at(m->weights, i);
        if (m->used[i])
            continue;
        if (is_weight(t->name))
            problem(m, "the model has no place for '%s' %s", t->name, shape_text(shape, t->shape, t->rank));
        else if (++others == 1)
            cpl_log_info(&m->log, "'%s' and its like are state of Keras's training: not read", t->name);
    }
}

/* ---- values ---- */

/* Our gate k is the file's block order[k] of each row of `last` numbers. */
static void copy_gates(real *to, const float *from, int64_t elements, int64_t last, const int *order, int gates)
{
    int64_t width = last / gates;
    for (int64_t row = 0; row < elements; row += last)
        for (int k = 0; k < gates; k++)
            memcpy(to + row + k * width, from + row + order[k] * width, (size_t)width * sizeof *to);
}

static void load_one(import *m, size_t i, const cpl_tensor_entry *found, const cpl_keras_tensor *t)
{
    const cpl_parameters *p = m->program->engine->parameters;
    const cpl_parameter_info *info = cpl_parameters_at(p, i);
    real *to = cpl_parameters_value(p, i);
    int order[4];
    const float *from = found ? (const float *)found->data + (t->row > 0 ? info->elements : 0) : NULL;
    if (!from)
        memset(to, 0, (size_t)info->elements * sizeof *to);
    else if (cpl_keras_map_gates(m->map, t->name, t->gates, order))
        copy_gates(to, from, info->elements, info->size[info->rank - 1], order, t->gates == CPL_KERAS_ZRH ? 3 : 4);
    else
        memcpy(to, from, (size_t)info->elements * sizeof *to);
}

static cpl_status load(import *m, cpl_error *err)
{
    const cpl_parameters *p = m->program->engine->parameters;
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        cpl_keras_tensor t;
        const cpl_tensor_entry *found = find(m, i, &t);
        if (check_one(m, i, found, &t) || (!found && t.may_lack))
            load_one(m, i, found, &t);
    }
    check_unread(m);
    if (m->count > 0)
        CPL_FAIL(err, CPL_USAGE, "the weights of '%s' do not fit the configuration: %s%s%s", m->o->weights,
                 m->problems.data ? m->problems.data : "", m->hint[0] ? CPL_HINT : "", m->hint);
    return cpl_keras_map_check(m->map, err);
}

/* ---- all of it ---- */

static cpl_status compile(import *m, cpl_error *err)
{
    const cpl_model_kind *kind = cpl_model_kind_of(m->config);
    cpl_model_sizes sizes = {.config = m->config, .source_vocabulary = cpl_vocabulary_size(m->source),
                             .target_vocabulary = cpl_vocabulary_size(m->target)};
    cpl_compile_options o = {.name = kind->name, .threads = 1, .inference = 1};
    CPL_TRY(cpl_compile(&m->program, kind->score, &sizes, &o, err), err, "cannot build the model");
    return CPL_OK;
}

static cpl_status save(import *m, cpl_error *err)
{
    cpl_model_set *set;
    cpl_model_facts facts = {.config = m->config, .source = m->source, .target = m->target,
                             .parameters = m->program->engine->parameters};
    cpl_status status = cpl_model_set_new(&set, &facts, err);
    if (status == CPL_OK) {
        cpl_tensor_set view = cpl_model_set_view(set, 0, 0, "[]", NULL);
        status = cpl_tensor_file_write(m->o->output, &view, err);
        cpl_model_set_free(set);
    }
    CPL_TRY(status, err, "cannot write the model '%s'", m->o->output);
    return CPL_OK;
}

/* --pad-to: into the model's own options, so that whatever uses the model obeys. */
static cpl_status set_padding(import *m, cpl_error *err)
{
    char number[32];
    if (m->o->pad_to < 0 || m->o->pad_to > 1000000)
        CPL_FAIL(err, CPL_USAGE, "pad-to is %" PRId64 ", expected 1 to 1000000", m->o->pad_to);
    if (m->o->pad_to == 0)
        return CPL_OK;
    if (m->config->model.encoder.mask && cpl_config_is_set(m->config, cpl_config_find("model.encoder.mask")))
        CPL_FAIL(err, CPL_USAGE, "--pad-to is %" PRId64 ", but the configuration says that 'model.encoder.mask' is true"
                 CPL_HINT "a model that was trained with masking reads no padding: leave one of them out",
                 m->o->pad_to);
    snprintf(number, sizeof number, "%" PRId64, m->o->pad_to);
    cpl_status status = cpl_config_set(m->config, "model.encoder.mask", "false", err);
    return status == CPL_OK ? cpl_config_set(m->config, "text.source.pad_to", number, err) : status;
}

static cpl_status run(import *m, cpl_error *err)
{
    CPL_TRY(cpl_config_load(&m->config, m->o->config, err), err, "cannot read the configuration");
    CPL_TRY(set_padding(m, err), err, "cannot use --pad-to");
    CPL_TRY(cpl_config_check(m->config, 0, err), err, "the configuration cannot be used");
    CPL_TRY(cpl_keras_check(m->config, err), err, "the configuration cannot be used");
    cpl_config_warn(m->config, &m->log);
    if (m->o->map)
        CPL_TRY(cpl_keras_map_read(&m->map, m->o->map, err), err, "cannot read the map");
    CPL_TRY(cpl_hdf5_open(&m->weights, m->o->weights, err), err, "cannot read the weights");
    CPL_TRY(read_vocabularies(m, err), err, "cannot import '%s'", m->o->weights);
    cpl_status status = index_names(m, err);
    if (status == CPL_OK)
        status = compile(m, err);
    if (status == CPL_OK)
        status = load(m, err);
    return status == CPL_OK ? save(m, err) : status;
}

cpl_status cpl_import_keras(const cpl_keras_import_options *o, cpl_error *err)
{
    import m = {.o = o};
    if (!o->weights || !o->config || !o->output)
        CPL_FAIL(err, CPL_USAGE, "import needs the weights, a configuration and a name for the model");
    m.log = (cpl_log){.sink = o->message ? hand_on : NULL, .user = &m};
    cpl_status status = run(&m, err);
    cpl_program_free(m.program);
    cpl_hdf5_close(m.weights);
    cpl_keras_map_free(m.map);
    cpl_map_free(m.names);
    cpl_release(m.used);
    cpl_vocabulary_free(m.source);
    cpl_vocabulary_free(m.target);
    cpl_config_free(m.config);
    cpl_str_free(&m.problems);
    return status;
}
