/* model_set.c: what a model file or a checkpoint holds, collected for writing. The long texts (options,
 * vocabularies) are made once: a checkpoint every minute must not build them again. */
#include "model/model_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { FIXED = 8, ENTRIES = FIXED + 4 }; /* entries that never change; and with epoch, step, history, state */

struct cpl_model_set {
    const cpl_parameters *parameters;
    cpl_arena *names;
    cpl_tensor_entry *tensors;
    size_t weights, tensor_count, capacity; /* weights: the first ones, all that a model has */
    cpl_metadata_entry metadata[ENTRIES];
    cpl_str config, source, target;
    char longest[24], format[24], epoch[24], step[24];
};

static void entry(cpl_metadata_entry *e, const char *key, const char *value, size_t length)
{
    *e = (cpl_metadata_entry){.key = key, .value = value, .length = length};
}

/* Takes root over. */
static cpl_status write_json(cpl_json *root, cpl_str *to, const char *what, cpl_error *err)
{
    if (!root)
        CPL_FAIL(err, CPL_FAILED, "no memory for writing %s", what);
    cpl_status status = cpl_json_write(root, to, err);
    cpl_json_free(root);
    CPL_TRY(status, err, "cannot write %s", what);
    return CPL_OK;
}

static cpl_status add_tensor(cpl_model_set *s, const char *prefix, const cpl_parameter_info *info, const real *data,
                             cpl_error *err)
{
    char *name = cpl_arena_printf(s->names, "%s%s", prefix, info->path);
    if (!name || cpl_grow(&s->tensors, &s->capacity, s->tensor_count + 1, sizeof *s->tensors))
        CPL_FAIL(err, CPL_FAILED, "no memory for the list of tensors");
    cpl_tensor_entry *t = &s->tensors[s->tensor_count++];
    *t = (cpl_tensor_entry){.name = name, .dtype = CPL_DTYPE_F32, .rank = info->rank, .data = data};
    memcpy(t->shape, info->size, (size_t)info->rank * sizeof *info->size);
    return CPL_OK;
}

cpl_status cpl_model_set_add_block(cpl_model_set *s, const char *prefix, const real *block,
                                   int (*wanted)(const cpl_parameter_info *), cpl_error *err)
{
    for (size_t i = 0; i < cpl_parameters_count(s->parameters); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(s->parameters, i);
        if (wanted && !wanted(info))
            continue;
        cpl_status status = add_tensor(s, prefix, info, block + (wanted ? info->slot : info->offset), err);
        if (status != CPL_OK)
            return status;
    }
    return CPL_OK;
}

static cpl_status fill(cpl_model_set *s, const cpl_model_facts *f, cpl_error *err)
{
    cpl_status status = write_json(cpl_config_to_json(f->config), &s->config, "the options", err);
    if (status == CPL_OK)
        status = write_json(cpl_vocabulary_to_json(f->source), &s->source, "the source vocabulary", err);
    if (status == CPL_OK && f->target == f->source)
        cpl_str_add(&s->target, "\"source\"");
    else if (status == CPL_OK)
        status = write_json(cpl_vocabulary_to_json(f->target), &s->target, "the target vocabulary", err);
    if (status == CPL_OK && s->target.failed)
        status = cpl_error_set(err, CPL_FAILED, "no memory for writing the target vocabulary");
    if (status == CPL_OK)
        status = cpl_model_set_add_block(s, "", cpl_parameters_values(f->parameters), NULL, err);
    if (status != CPL_OK)
        return status;
    s->weights = s->tensor_count;
    snprintf(s->longest, sizeof s->longest, "%" PRId64, f->longest_target);
    snprintf(s->format, sizeof s->format, "%d", CPL_MODEL_FORMAT_VERSION);
    cpl_metadata_entry *m = s->metadata;
    const char *type = cpl_model_kind_of(f->config)->name;
    entry(m++, "format", "couplet", strlen("couplet"));
    entry(m++, "format_version", s->format, strlen(s->format));
    entry(m++, "version", CPL_VERSION_STRING, strlen(CPL_VERSION_STRING));
    entry(m++, "type", type, strlen(type));
    entry(m++, "longest_target", s->longest, strlen(s->longest));
    entry(m++, "config", s->config.data, s->config.length);
    entry(m++, "source_vocabulary", s->source.data, s->source.length);
    entry(m++, "target_vocabulary", s->target.data, s->target.length);
    return CPL_OK;
}

cpl_status cpl_model_set_new(cpl_model_set **out, const cpl_model_facts *facts, cpl_error *err)
{
    cpl_model_set *s = cpl_alloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        CPL_FAIL(err, CPL_FAILED, "no memory for the model's file");
    s->parameters = facts->parameters;
    s->names = cpl_arena_new(1 << 12);
    cpl_status status = s->names ? fill(s, facts, err)
                                 : cpl_error_set(err, CPL_FAILED, "no memory for the model's file");
    if (status != CPL_OK) {
        cpl_model_set_free(s);
        return status;
    }
    *out = s;
    return CPL_OK;
}

void cpl_model_set_free(cpl_model_set *s)
{
    if (!s)
        return;
    cpl_arena_free(s->names);
    cpl_release(s->tensors);
    cpl_str_free(&s->config);
    cpl_str_free(&s->source);
    cpl_str_free(&s->target);
    cpl_release(s);
}

cpl_tensor_set cpl_model_set_view(cpl_model_set *s, int64_t epoch, int64_t step, const char *history,
                                  const char *state)
{
    size_t count = FIXED;
    entry(&s->metadata[count++], "history", history, strlen(history));
    if (state) {
        entry(&s->metadata[count++], "state", state, strlen(state));
        return (cpl_tensor_set){s->tensors, s->tensor_count, s->metadata, count};
    }
    snprintf(s->epoch, sizeof s->epoch, "%" PRId64, epoch);
    snprintf(s->step, sizeof s->step, "%" PRId64, step);
    entry(&s->metadata[count++], "epoch", s->epoch, strlen(s->epoch));
    entry(&s->metadata[count++], "step", s->step, strlen(s->step));
    return (cpl_tensor_set){s->tensors, s->weights, s->metadata, count};
}

size_t cpl_model_set_bytes(const cpl_model_set *s)
{
    return cpl_arena_bytes(s->names) + s->capacity * sizeof *s->tensors + s->config.capacity + s->source.capacity +
           s->target.capacity + sizeof *s;
}

/* Each metadata value is copied into the header's tree, written as text with escaped quotes in a string that doubles
 * as it grows: at most four times the text and the old half of the string. */
size_t cpl_model_set_write_bytes(const cpl_model_set *s)
{
    size_t text = s->config.length + s->source.length + s->target.length;
    return 4 * text + s->tensor_count * 1024;
}
