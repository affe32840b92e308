/* quantize.c: cpl_quantize: a model whose matrices are of a lower type, for inference. What may be of it follows from
 * how the model's graphs read each parameter; biases, norms and what is read as plain numbers stay float32. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/model.h"
#include "base/error.h"
#include "base/memory.h"

typedef struct quantizing {
    cpl_model *model;
    cpl_weight_type type;
    cpl_tensor_entry *tensors;
    cpl_metadata_entry *metadata;
    size_t tensor_count, metadata_count, changed;
    cpl_arena *arena; /* what the tensors hold */
    uint64_t before, after;
    char version[24];
} quantizing;

/* ---- what is read how ---- */

/* Compiles what is asked of a whole model besides decoding, so that all readers of its weights are known. */
static cpl_status see_all_readers(const cpl_model *m, cpl_error *err)
{
    const cpl_model_kind *kind = m->file->kind;
    cpl_model_function functions[] = {kind->score, kind->loss, kind->predict, kind->features};
    for (size_t i = 0; m->decoder && i < sizeof functions / sizeof *functions; i++) {
        cpl_program shared = {.engine = m->engine}, *p;
        cpl_compile_options o = {.name = "the model", .share = &shared, .inference = 1};
        if (!functions[i])
            continue;
        cpl_status status = cpl_compile(&p, functions[i], &m->file->sizes, &o, err);
        if (status != CPL_OK)
            return status;
        cpl_program_free(p);
    }
    return CPL_OK;
}

/* ---- tensors ---- */

static cpl_status check_finite(const cpl_tensor_entry *t, cpl_error *err)
{
    const float *x = t->data;
    for (uint64_t i = 0; i < cpl_tensor_elements(t); i++)
        if (!isfinite(x[i]))
            CPL_FAIL(err, CPL_FAILED, "element %" PRIu64 " of '%s' is %g", i, t->name, (double)x[i]);
    return CPL_OK;
}

static void to_bfloat16(cpl_tensor_entry *t, const float *from, uint16_t *to)
{
    for (uint64_t i = 0; i < cpl_tensor_elements(t); i++)
        to[i] = cpl_to_bfloat16(from[i]);
    t->dtype = CPL_DTYPE_BF16;
    t->data = to;
}

/* Bytes, and their scales as a tensor of its own behind it. */
static void to_int8(cpl_tensor_entry *t, int rows, const char *scale_name, int8_t *bytes, float *scale)
{
    const float *from = t->data;
    int64_t columns = t->shape[!rows], depth = t->shape[rows];
    int64_t next = rows ? depth : 1, step = rows ? 1 : columns;
    for (int64_t k = 0; k < columns; k++)
        scale[k] = cpl_to_int8(depth, from + k * next, step, bytes + k * next, step);
    t->dtype = CPL_DTYPE_I8;
    t->data = bytes;
    t[1] = (cpl_tensor_entry){.name = scale_name, .dtype = CPL_DTYPE_F32, .rank = 2, .data = scale};
    t[1].shape[!rows] = columns;
    t[1].shape[rows] = 1;
}

/* t: the last of the list, which is to become of the lower type. */
static cpl_status lower(quantizing *q, cpl_tensor_entry *t, int rows, cpl_error *err)
{
    cpl_status status = check_finite(t, err);
    if (status != CPL_OK)
        return status;
    uint64_t elements = cpl_tensor_elements(t);
    void *numbers = cpl_arena_alloc(q->arena, (size_t)elements * 2 + 1);
    float *scale = cpl_arena_alloc(q->arena, (size_t)t->shape[!rows] * sizeof *scale + 1);
    char *name = cpl_arena_printf(q->arena, "%s" CPL_STORED_SCALE, t->name);
    if (!numbers || !scale || !name)
        CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", t->name);
    if (q->type == CPL_WEIGHT_BFLOAT16) {
        to_bfloat16(t, t->data, numbers);
    } else {
        to_int8(t, rows, name, numbers, scale);
        q->tensor_count++;
    }
    q->changed++;
    return CPL_OK;
}

static uint64_t bytes_of(const cpl_tensor_entry *t)
{
    return cpl_tensor_elements(t) * cpl_dtype_bytes(t->dtype);
}

/* The optimizer's state is no part of a model. */
static cpl_status convert(quantizing *q, cpl_error *err)
{
    const cpl_tensor_file *f = q->model->file->tensors;
    const cpl_parameters *p = q->model->engine->parameters;
    size_t count = cpl_tensor_file_count(f);
    q->arena = cpl_arena_new(1 << 16);
    q->tensors = cpl_alloc(2 * count + 1, sizeof *q->tensors);
    if (!q->arena || !q->tensors)
        CPL_FAIL(err, CPL_FAILED, "no memory for %zu tensors", count);
    for (size_t i = 0; i < count; i++) {
        const cpl_tensor_entry *t = cpl_tensor_file_at(f, i);
        if (strncmp(t->name, "optimizer.", 10) == 0)
            continue;
        size_t at = q->tensor_count++;
        int k = cpl_parameters_find(p, t->name);
        const cpl_parameter_info *info = k >= 0 ? cpl_parameters_at(p, (size_t)k) : NULL;
        q->tensors[at] = *t;
        q->before += bytes_of(t);
        if (info && cpl_parameters_packable(info, q->type)) {
            cpl_status status = lower(q, &q->tensors[at], info->read_as == CPL_READ_ROWS, err);
            if (status != CPL_OK)
                return status;
        }
        for (; at < q->tensor_count; at++)
            q->after += bytes_of(&q->tensors[at]);
    }
    return CPL_OK;
}

/* ---- metadata ---- */

static void add(quantizing *q, const char *key, const char *value)
{
    q->metadata[q->metadata_count++] = (cpl_metadata_entry){.key = key, .value = value, .length = strlen(value)};
}

static cpl_status collect_metadata(quantizing *q, cpl_error *err)
{
    static const char *const left_out[] = {"checksum", "state", "log_bytes", "format_version", "weights"};
    const cpl_tensor_file *f = q->model->file->tensors;
    size_t count = cpl_tensor_file_metadata_count(f);
    q->metadata = cpl_alloc(count + 2, sizeof *q->metadata);
    if (!q->metadata)
        CPL_FAIL(err, CPL_FAILED, "no memory for the model's options");
    for (size_t i = 0; i < count; i++) {
        cpl_metadata_entry e = cpl_tensor_file_metadata_at(f, i);
        int known = 0;
        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
            known |= strcmp(e.key, left_out[k]) == 0;
        if (!known)
            q->metadata[q->metadata_count++] = e;
    }
    snprintf(q->version, sizeof q->version, "%d", CPL_MODEL_FORMAT_LATEST);
    add(q, "format_version", q->version);
    add(q, "weights", cpl_weight_type_name(q->type));
    return CPL_OK;
}

/* ---- all of it ---- */

static cpl_status quantize(quantizing *q, const char *model, const char *output, cpl_error *err)
{
    cpl_status status = cpl_model_open(&q->model, model, 1, err);
    if (status == CPL_OK)
        status = cpl_model_file_need_float32(q->model->file, model, "quantization", err);
    if (status == CPL_OK)
        status = see_all_readers(q->model, err);
    if (status == CPL_OK)
        status = convert(q, err);
    if (status == CPL_OK)
        status = collect_metadata(q, err);
    cpl_tensor_set set = {q->tensors, q->tensor_count, q->metadata, q->metadata_count};
    return status == CPL_OK ? cpl_tensor_file_write(output, &set, err) : status;
}

cpl_status cpl_quantize(const char *model, const char *type, const char *output, char **text, cpl_error *err)
{
    quantizing q = {.type = CPL_WEIGHT_INT8};
    cpl_str out = {0};
    *text = NULL;
    if (type && (!cpl_weight_type_named(&q.type, type) || q.type == CPL_WEIGHT_FLOAT32))
        CPL_FAIL(err, CPL_USAGE, "cannot quantize to '%s', expected int8 or bfloat16", type);
    cpl_status status = quantize(&q, model, output, err);
    if (status == CPL_OK) {
        char before[32], after[32];
        cpl_str_printf(&out, "%zu matrices became %s: weights %s -> %s\n", q.changed, cpl_weight_type_name(q.type),
                       cpl_bytes_text(before, sizeof before, q.before), cpl_bytes_text(after, sizeof after, q.after));
        if (!(*text = cpl_str_take(&out)))
            status = cpl_error_set(err, CPL_FAILED, "out of memory for the result");
    }
    cpl_str_free(&out);
    cpl_release(q.tensors);
    cpl_release(q.metadata);
    cpl_arena_free(q.arena);
    cpl_model_close(q.model);
    if (status != CPL_OK)
        return cpl_error_context(err, status, "cannot quantize '%s'", model);
    return CPL_OK;
}
