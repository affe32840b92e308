/* op_harness.c: types from the signature, memory with guards, one call. */
#include "support/op_harness.h"

#include <stdarg.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/hash.h"
#include "support/op_line.h"

enum { GUARD = 64, GUARD_BYTE = 0xA5 };

const cpl_harness_batch *cpl_harness_batch_at(size_t i)
{
    static const int64_t s1[] = {3, 0, 5, 1, 2, 5}, t1[] = {2, 4, 0, 1, 6, 3};
    static const int64_t s2[] = {4}, t2[] = {3}, none[] = {0, 0, 0};
    static const cpl_harness_batch batches[] = {{"mixed", 6, 7, s1, t1, 0},
                                                {"gaps", 6, 11, t1, s1, 1},
                                                {"one sentence", 1, 4, s2, t2, 0},
                                                {"empty sentences", 3, 2, none, none, 0},
                                                {"no sentence", 0, 2, none, none, 0}};
    return i < sizeof batches / sizeof batches[0] ? &batches[i] : NULL;
}

const char *cpl_harness_name(const cpl_harness *h)
{
    static char text[200];
    snprintf(text, sizeof text, "%s '%s' (size %lld) on batch '%s', %s kernels", h->op->name, h->line,
             (long long)h->tail, h->batch->name, h->kernels ? h->kernels->name : "no");
    return text;
}

static void must(cpl_status status, const cpl_error *err, const cpl_harness *h)
{
    if (status != CPL_OK)
        fail_msg("%s: %s", cpl_harness_name(h), err->lines > 0 ? err->line[0] : "failed");
}

/* ---- guarded memory ---- */

static void *guarded(size_t bytes)
{
    unsigned char *p = cpl_alloc_aligned(bytes + GUARD, 64);
    assert_non_null(p);
    memset(p + bytes, GUARD_BYTE, GUARD);
    return p;
}

static int intact(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; p && i < GUARD; i++)
        if (p[bytes + i] != GUARD_BYTE)
            return 0;
    return 1;
}

static size_t bytes_of(const cpl_harness *h, const cpl_tensor *x)
{
    return x->type ? cpl_type_bytes(x->type, &h->binding) : 0;
}

static cpl_tensor tensor_of(const cpl_harness *h, const cpl_type *type)
{
    cpl_tensor x = {.type = type, .rows = cpl_type_rows(type, &h->binding), .width = cpl_type_width(type)};
    x.data = guarded(cpl_type_bytes(type, &h->binding));
    return x;
}

/* 0xFF in every byte is a NaN as a real and −1 as an id. */
static void spoil(const cpl_harness *h, const cpl_tensor *x)
{
    if (x->data)
        memset(x->data, 0xFF, bytes_of(h, x));
}

/* ---- opening ---- */

static void set_geometry(cpl_harness *h, int symbol, const int64_t *lengths)
{
    cpl_error err = CPL_ERROR_INIT;
    const cpl_harness_batch *b = h->batch;
    cpl_geometry *g = &h->geometry[symbol];
    if (!b->gaps) {
        must(cpl_geometry_set_lengths(g, lengths, b->batch, b->width, &err), &err, h);
    } else { /* every second step from the end, then the others */
        uint8_t *mask = cpl_alloc((size_t)(b->batch * b->width + 1), 1);
        assert_non_null(mask);
        for (int64_t i = 0; i < b->batch; i++)
            for (int64_t k = 0; k < lengths[i]; k++)
                mask[i * b->width + (b->width - 2 - 2 * k + b->width) % b->width] = 1;
        must(cpl_geometry_set_mask(g, mask, b->batch, b->width, &err), &err, h);
        cpl_release(mask);
    }
    h->binding.batch = b->batch;
    h->binding.rows[symbol] = g->rows;
    h->binding.longest[symbol] = g->longest;
}

static void set_geometries(cpl_harness *h)
{
    set_geometry(h, CPL_HARNESS_S, h->batch->s);
    set_geometry(h, CPL_HARNESS_T, h->batch->t);
    h->binding.rows[CPL_HARNESS_PADDED] = h->batch->width;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_geometry_set_single(&h->geometry[CPL_HARNESS_NOW], h->batch->batch, &err), &err, h);
    h->binding.rows[CPL_HARNESS_NOW] = h->batch->batch;
    h->binding.longest[CPL_HARNESS_NOW] = h->batch->batch > 0;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            h->binding.pairs[a][b] = cpl_geometry_pairs(&h->geometry[a], &h->geometry[b]);
}

/* Types of the outputs as the graph infers them: match, signature, the op's own shape. */
static void infer(cpl_harness *h, const cpl_type *const *types)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_bindings b;
    const char *paths[CPL_MAX_INPUTS];
    cpl_shape_context c = {.attributes = h->attributes, .path = "test"};
    for (int i = 0; i < CPL_MAX_INPUTS; i++) {
        paths[i] = i < h->signature.inputs ? h->signature.in[i].name : "";
        c.in[i] = types[i], c.in_path[i] = paths[i];
    }
    if (h->op->check)
        must(h->op->check(&c, &err), &err, h);
    must(cpl_signature_match(h->op, &h->signature, types, paths, &b, &err), &err, h);
    for (int i = 0; i < h->signature.outputs; i++) {
        cpl_error ignored = CPL_ERROR_INIT;
        if (cpl_signature_type(&h->signature.out[i], &b, h->arena, &c.out[i], &ignored) != CPL_OK && !h->op->shape)
            must(ignored.status, &ignored, h);
    }
    if (h->op->shape)
        must(h->op->shape(&c, &err), &err, h);
    memcpy(h->out_type, c.out, sizeof h->out_type);
}

static void make_tensors(cpl_harness *h, const cpl_type *const *types)
{
    for (int i = 0; i < h->signature.inputs; i++) {
        if (!types[i])
            continue;
        h->in[i] = tensor_of(h, types[i]);
        if (types[i]->element == CPL_ELEMENT_REAL && !(h->op->flags & CPL_OP_NO_GRADIENT))
            h->din[i] = tensor_of(h, types[i]);
    }
    for (int i = 0; i < h->signature.outputs; i++) {
        h->out[i] = tensor_of(h, &h->out_type[i]);
        if (i < h->signature.visible && h->out_type[i].element == CPL_ELEMENT_REAL && !(h->op->reports >> i & 1))
            h->dout[i] = tensor_of(h, &h->out_type[i]);
    }
}

void cpl_harness_open(cpl_harness *h, const cpl_op *op, const char *line, const cpl_harness_batch *batch, int64_t tail)
{
    cpl_error err = CPL_ERROR_INIT;
    const cpl_type *types[CPL_MAX_INPUTS] = {NULL};
    memset(h, 0, sizeof *h);
    h->op = op, h->line = line, h->batch = batch, h->tail = tail;
    h->training = 1;
    h->random_key = 0x5EED;
    h->arena = cpl_arena_new(4096);
    assert_non_null(h->arena);
    must(cpl_signature_parse(&h->signature, op->signature, &err), &err, h);
    set_geometries(h);
    cpl_line_types(h, types);
    infer(h, types);
    make_tensors(h, types);
    cpl_harness_use(h, cpl_kernels_named("reference"), 1);
    cpl_harness_draw(h, 1);
}

void cpl_harness_close(cpl_harness *h)
{
    for (int i = 0; i < CPL_MAX_INPUTS; i++) {
        cpl_release(h->in[i].data);
        cpl_release(h->din[i].data);
    }
    for (int i = 0; i < CPL_MAX_OUTPUTS; i++) {
        cpl_release(h->out[i].data);
        cpl_release(h->dout[i].data);
    }
    for (int i = 0; i < CPL_HARNESS_THREADS; i++)
        cpl_release(h->scratch[i]);
    for (int i = 0; i < CPL_MAX_SYMBOLS; i++)
        cpl_geometry_free(&h->geometry[i]);
    if (h->pool)
        cpl_pool_free(h->pool);
    cpl_arena_free(h->arena);
    memset(h, 0, sizeof *h);
}

/* Matrices of weights are as large as an initialiser makes them, so that long recurrences stay tame. */
static double size_of_draw(const cpl_type *type)
{
    int weights = type->rank == 2 && type->dim[0].kind == CPL_DIM_FEATURE;
    return weights ? 2 / sqrt((double)type->dim[0].size) : 1;
}

/* Numbers of an input named `weights` are shares: 0 … 1 instead of −1 … 1. */
static real drawn(const cpl_harness *h, int i, const cpl_type *type, double unit)
{
    int shares = i < h->signature.inputs && strcmp(h->signature.in[i].name, "weights") == 0;
    return (real)(size_of_draw(type) * (shares ? unit : 2 * unit - 1));
}

/* Reals in −1 … 1, ids below the entries of their vocabulary. */
void cpl_harness_draw(cpl_harness *h, uint64_t seed)
{
    for (int i = 0; i < CPL_MAX_INPUTS + CPL_MAX_OUTPUTS; i++) {
        const cpl_tensor *x = i < CPL_MAX_INPUTS ? &h->in[i] : &h->dout[i - CPL_MAX_INPUTS];
        uint64_t key = cpl_random_key(seed, (uint64_t)i, 0);
        for (int64_t k = 0; k < cpl_harness_elements(x); k++) {
            if (x->type->element == CPL_ELEMENT_ID)
                x->ids[k] = (int32_t)cpl_random_below(key, (uint64_t)k, (uint64_t)x->type->entries);
            else
                x->data[k] = drawn(h, i, x->type, cpl_random_unit(key, (uint64_t)k));
        }
    }
}

void cpl_harness_use(cpl_harness *h, const cpl_kernels *kernels, int threads)
{
    cpl_error err = CPL_ERROR_INIT;
    assert_non_null(kernels);
    assert_true(threads <= CPL_HARNESS_THREADS);
    h->kernels = kernels;
    if (h->pool && cpl_pool_threads(h->pool) != threads) {
        cpl_pool_free(h->pool);
        h->pool = NULL;
    }
    if (!h->pool)
        must(cpl_pool_new(&h->pool, threads, &err), &err, h);
    for (int i = 0; i < CPL_HARNESS_THREADS; i++) {
        cpl_release(h->scratch[i]);
        h->scratch[i] = i < threads && kernels->gemm_scratch ? cpl_alloc_aligned(kernels->gemm_scratch, 64) : NULL;
    }
}

/* ---- running ---- */

static void context_of(cpl_harness *h, cpl_run_context *r)
{
    memset(r, 0, sizeof *r);
    r->kernels = h->kernels;
    r->pool = h->pool;
    r->scratch = h->scratch;
    r->geometry = h->geometry;
    r->binding = &h->binding;
    r->attributes = h->attributes;
    r->block_rows = h->block_rows;
    r->training = h->training;
    r->random_key = h->random_key;
    memcpy(r->in, h->in, sizeof r->in);
    memcpy(r->out, h->out, sizeof r->out);
}

/* Runs a pass with a spoiled workspace of exactly the size that the op asks for. */
static void run(cpl_harness *h, cpl_run_context *r, int backward, int differentiated)
{
    cpl_size_context s = {.binding = &h->binding, .attributes = h->attributes, .backward = backward,
                          .block_rows = h->block_rows,
                          .threads = cpl_pool_threads(h->pool), .differentiated = differentiated};
    for (int i = 0; i < CPL_MAX_INPUTS; i++)
        s.in[i] = h->in[i].type;
    for (int i = 0; i < CPL_MAX_OUTPUTS; i++)
        s.out[i] = h->out[i].type;
    size_t bytes = h->op->workspace ? h->op->workspace(&s) : 0;
    r->workspace = bytes ? guarded(bytes) : NULL;
    if (bytes)
        memset(r->workspace, 0xFF, bytes);
    (backward ? h->op->backward : h->op->forward)(r);
    if (!intact(r->workspace, bytes))
        fail_msg("%s: writes past its workspace of %zu bytes", cpl_harness_name(h), bytes);
    cpl_release(r->workspace);
    for (int i = 0; i < CPL_MAX_INPUTS; i++)
        if (!intact(h->in[i].data, bytes_of(h, &h->in[i])) || !intact(h->din[i].data, bytes_of(h, &h->din[i])))
            fail_msg("%s: writes past input or its gradient %d", cpl_harness_name(h), i);
    for (int i = 0; i < CPL_MAX_OUTPUTS; i++)
        if (!intact(h->out[i].data, bytes_of(h, &h->out[i])) || !intact(h->dout[i].data, bytes_of(h, &h->dout[i])))
            fail_msg("%s: writes past output or its gradient %d", cpl_harness_name(h), i);
}

void cpl_harness_forward(cpl_harness *h, int differentiated)
{
    cpl_run_context r;
    context_of(h, &r);
    for (int i = 0; i < h->signature.outputs; i++) {
        spoil(h, &h->out[i]);
        if (i >= h->signature.visible && !differentiated)
            r.out[i].data = NULL;
    }
    run(h, &r, 0, differentiated);
}

void cpl_harness_forward_in_place(cpl_harness *h)
{
    cpl_run_context r;
    context_of(h, &r);
    memcpy(h->out[0].data, h->in[0].data, bytes_of(h, &h->in[0]));
    r.in[0].data = h->out[0].data;
    run(h, &r, 0, 1);
}

/* What the op does not keep has a type but no data, as in a program. */
void cpl_harness_backward(cpl_harness *h, unsigned no_dout, unsigned no_din)
{
    cpl_run_context r;
    context_of(h, &r);
    for (int i = 0; i < CPL_MAX_INPUTS; i++) {
        if (!(cpl_op_keeps(h->op, h->attributes) & (unsigned)CPL_KEEP_IN0 << i))
            r.in[i].data = NULL;
        spoil(h, &h->din[i]);
        r.din[i] = h->din[i];
        if (no_din >> i & 1)
            r.din[i].data = NULL;
    }
    for (int i = 0; i < CPL_MAX_OUTPUTS; i++) {
        if (i < h->signature.visible && !(cpl_op_keeps(h->op, h->attributes) & (unsigned)CPL_KEEP_OUT0 << i))
            r.out[i].data = NULL;
        r.dout[i] = h->dout[i];
        if (no_dout >> i & 1)
            r.dout[i].data = NULL;
    }
    run(h, &r, 1, 1);
}

/* ---- results ---- */

void cpl_harness_filled(const cpl_harness *h, const cpl_tensor *x, const char *what, int i)
{
    for (int64_t k = 0; k < cpl_harness_elements(x); k++)
        if (x->type->element == CPL_ELEMENT_REAL ? isnan(x->data[k]) : x->ids[k] < 0)
            fail_msg("%s: element %lld of %s %d is not filled", cpl_harness_name(h), (long long)k, what, i);
}

void cpl_harness_collect(const cpl_harness *h, cpl_harness_results *results)
{
    int64_t total = 0, at = 0;
    results->segments = 0;
    for (int i = 0; i < CPL_MAX_OUTPUTS + CPL_MAX_INPUTS; i++)
        total += cpl_harness_elements(i < CPL_MAX_OUTPUTS ? &h->out[i] : &h->din[i - CPL_MAX_OUTPUTS]);
    results->data = cpl_alloc((size_t)total, sizeof(real));
    assert_non_null(results->data);
    for (int i = 0; i < CPL_MAX_OUTPUTS + CPL_MAX_INPUTS; i++) {
        const cpl_tensor *x = i < CPL_MAX_OUTPUTS ? &h->out[i] : &h->din[i - CPL_MAX_OUTPUTS];
        for (int64_t k = 0; k < cpl_harness_elements(x); k++)
            results->data[at++] = x->type->element == CPL_ELEMENT_ID ? (real)x->ids[k] : x->data[k];
        results->end[results->segments++] = at;
    }
}
