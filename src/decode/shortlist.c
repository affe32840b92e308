/* shortlist.c: the projection to the vocabulary, for a list of entries alone.
 *
 * The step graph of such a decoder ends at what the projection reads. The entries that the list begins with, 0, 1, 2 …
 * as far as they follow each other, are multiplied where they stand in the kernel; the others' columns are gathered
 * once a batch. So a long frequent part costs no copy, and a list of all entries is the whole projection. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "decode/internal.h"

/* data and packed are NULL where the model has no such parameter. */
static cpl_tensor parameter(const cpl_decoder *d, const char *layer, const char *part, int64_t *in)
{
    char path[120];
    const cpl_parameters *p = d->step->engine->parameters;
    snprintf(path, sizeof path, "%s.%s", layer, part);
    int i = cpl_parameters_find(p, path);
    if (i < 0)
        return (cpl_tensor){.data = NULL};
    if (in)
        *in = cpl_parameters_at(p, (size_t)i)->elements / d->vocabulary;
    return (cpl_tensor){.data = cpl_parameters_value(p, (size_t)i),
                        .packed = cpl_parameters_at(p, (size_t)i)->packed};
}

static void gather(cpl_decode_shortlist *s, const cpl_decode_batch *b, int64_t vocabulary)
{
    int64_t extra = b->list_count - s->first;
    int floats = !s->kernel.packed;
    if (!floats)
        cpl_packed_place(&s->packed, s->kernel.packed->type, extra, s->in, s->columns);
    for (int64_t i = 0; !floats && i < extra; i++)
        cpl_packed_copy(s->kernel.packed, b->list[s->first + i], &s->packed, i);
    for (int64_t i = 0; floats && s->tied && i < extra; i++)
        memcpy(s->columns + i * s->in, s->kernel.data + b->list[s->first + i] * s->in, (size_t)s->in * sizeof(real));
    for (int64_t k = 0; floats && !s->tied && k < s->in; k++) {
        const real *from = s->kernel.data + k * vocabulary;
        real *to = s->columns + k * extra;
        for (int64_t i = 0; i < extra; i++)
            to[i] = from[b->list[s->first + i]];
    }
    for (int64_t i = 0; i < b->list_count; i++)
        s->bias[i] = s->whole_bias ? s->whole_bias[b->list[i]] : 0;
}

cpl_status cpl_shortlist_begin(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    cpl_decode_shortlist *s = &d->shortlist;
    if (!s->on)
        return CPL_OK;
    if (!b->list || b->list_count < 1)
        CPL_FAIL(err, CPL_FAILED, "a decoder with a short list needs the list of each batch");
    const char *layer = d->description.projection;
    s->tied = d->description.table != NULL;
    s->kernel = parameter(d, s->tied ? d->description.table : layer, "kernel", &s->in);
    s->whole_bias = parameter(d, layer, "bias", NULL).data;
    if (!s->kernel.data && !s->kernel.packed)
        CPL_FAIL(err, CPL_FAILED, "the model has no projection '%s'", layer);
    for (s->first = 0; s->first < b->list_count && b->list[s->first] == s->first;)
        s->first++;
    int64_t extra = b->list_count - s->first;
    size_t room = s->kernel.packed ? cpl_packed_bytes(s->kernel.packed->type, extra, s->in) / sizeof(real)
                                   : (size_t)(extra * s->in);
    if (cpl_grow(&s->columns, &s->columns_capacity, room + 1, sizeof(real)) ||
        cpl_grow(&s->bias, &s->bias_capacity, (size_t)b->list_count, sizeof(real)))
        CPL_FAIL(err, CPL_FAILED, "out of memory for a short list of %lld entries", (long long)b->list_count);
    gather(s, b, d->vocabulary);
    return CPL_OK;
}

/* An entry that stands in the list for another row's sake. */
static void leave_out(const cpl_decoder *d, const cpl_decode_batch *b, int64_t width, const cpl_tensor *logits)
{
    const int32_t *sentence = d->step->geometry[cpl_program_symbol(d->step, "t")].sentence;
    for (int64_t r = 0; b->left_out && r < logits->rows; r++) {
        const cpl_decode_places *out = &b->left_out[sentence[r] / width];
        real *x = logits->data + r * logits->width;
        for (int64_t i = 0; i < out->count; i++)
            x[out->items[i]] = -INFINITY;
    }
}

static cpl_status project(cpl_decoder *d, const cpl_decode_batch *b, int64_t width, cpl_tensor *logits, cpl_error *err)
{
    cpl_decode_shortlist *s = &d->shortlist;
    const cpl_engine *e = d->step->engine;
    cpl_run_context r = {.kernels = e->kernels, .pool = e->pool, .scratch = e->scratch};
    cpl_tensor x;
    int64_t n = b->list_count, first = s->first, extra = n - first;
    if (!cpl_program_output(d->step, "features", &x))
        CPL_FAIL(err, CPL_FAILED, "the step graph has no output 'features'");
    if (cpl_grow(&s->logits, &s->logits_capacity, (size_t)(x.rows * n) + 1, sizeof(real)))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld rows of logits", (long long)x.rows);
    cpl_gemm g = {.transpose_b = s->tied, .m = x.rows, .n = first, .k = s->in, .a = x.data, .lda = s->in,
                  .ldb = s->tied ? s->in : d->vocabulary, .c = s->logits, .ldc = n};
    cpl_tensor others = {.data = s->columns, .packed = s->kernel.packed ? &s->packed : NULL};
    cpl_run_dense(&r, &g, &s->kernel, s->bias, CPL_LINEAR);
    g.n = extra, g.ldb = s->tied ? s->in : extra, g.c = s->logits + first;
    cpl_run_dense(&r, &g, &others, s->bias + first, CPL_LINEAR);
    *logits = (cpl_tensor){.data = s->logits, .rows = x.rows, .width = n};
    leave_out(d, b, width, logits);
    return CPL_OK;
}

cpl_status cpl_decoder_logits(cpl_decoder *d, const cpl_decode_batch *b, int64_t width, cpl_tensor *logits,
                              cpl_error *err)
{
    if (d->shortlist.on)
        return project(d, b, width, logits, err);
    if (!cpl_program_output(d->step, "logits", logits))
        CPL_FAIL(err, CPL_FAILED, "the step graph has no output 'logits'");
    return CPL_OK;
}

real *cpl_shortlist_expand(const cpl_decoder *d, const cpl_decode_batch *b, int thread, const real *logits)
{
    real *all = cpl_decoder_scratch(d, thread, 2);
    for (int64_t i = 0; i < d->vocabulary; i++)
        all[i] = -INFINITY;
    for (int64_t i = 0; i < b->list_count; i++)
        all[b->list[i]] = logits[i];
    return all;
}

void cpl_shortlist_free(cpl_decode_shortlist *s)
{
    cpl_release(s->columns);
    cpl_release(s->bias);
    cpl_release(s->logits);
    *s = (cpl_decode_shortlist){0};
}
