/* kernels.c: the products that training and decoding are made of, cut for the threads as the ops cut them. */
#include <string.h>

#include "api/bench/bench.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/op.h"

typedef struct shape {
    const char *name;
    int64_t m, k, n;
    int transpose_a, transpose_b;
    int64_t block; /* rows of one product, 0: all */
} shape;

/* Batch 64, 256 units, 5,000 words. */
static const shape shapes[] = {
    {"recurrent step", 64, 256, 768, 0, 0, 0},
    {"recurrent step", 32, 256, 768, 0, 0, 0},
    {"recurrent step", 16, 256, 768, 0, 0, 0},
    {"recurrent step", 1, 256, 768, 0, 0, 0},
    {"its dX, weights turned", 64, 768, 256, 0, 0, 0},
    {"its dX, B transposed", 64, 768, 256, 0, 1, 0},
    {"input projection", 1280, 256, 768, 0, 0, 0},
    {"logits, blocks of 240 rows", 1280, 256, 5000, 0, 0, 240},
    {"logits of one row", 1, 256, 5000, 0, 0, 0},
    {"logits dW, A transposed", 256, 1280, 5000, 1, 0, 0},
    {"logits dX, B transposed", 1280, 5000, 256, 0, 1, 0},
};

enum { LARGEST = 1280 * 5000 };

typedef struct multiplying {
    const shape *s;
    const real *a, *b;
    real *c;
    cpl_kernels kernels;
    cpl_run_context context;
    int64_t repeats; /* of a step, so that a clock can see it */
} multiplying;

static void multiply(const multiplying *x)
{
    const shape *s = x->s;
    int64_t block = s->block > 0 ? s->block : s->m;
    cpl_gemm g = {.transpose_a = s->transpose_a, .transpose_b = s->transpose_b, .n = s->n, .k = s->k,
                  .lda = s->transpose_a ? s->m : s->k, .b = x->b, .ldb = s->transpose_b ? s->k : s->n, .ldc = s->n};
    for (int64_t i = 0; i < s->m; i += block) {
        g.m = s->m - i < block ? s->m - i : block;
        g.a = x->a + (s->transpose_a ? i : i * g.lda);
        g.c = x->c + i * g.ldc;
        cpl_run_gemm(&x->context, &g);
    }
}

static cpl_status multiply_step(void *user, int64_t number, cpl_bench_done *done, cpl_error *err)
{
    multiplying *x = user;
    (void)number, (void)err;
    for (int64_t i = 0; i < x->repeats; i++)
        multiply(x);
    done->operations = 2.0 * (double)(x->s->m * x->s->k * x->s->n) * (double)x->repeats;
    return CPL_OK;
}

/* A figure for one product, from steps of several. */
static cpl_status measure(cpl_bench *b, multiplying *x, cpl_error *err)
{
    const shape *s = x->s;
    cpl_bench_row *row = cpl_bench_add(b, "kernel", err);
    if (!row)
        return CPL_FAILED;
    strcpy(row->name, s->name);
    strcpy(row->precision, b->options->bfloat16 ? "bfloat16" : "float32");
    row->m = s->m, row->k = s->k, row->n = s->n;
    x->repeats = (int64_t)(1e8 / (2.0 * (double)(s->m * s->k * s->n))) + 1;
    double seconds = b->seconds;
    b->seconds /= 10; /* a product says with less what it can do */
    cpl_status status = cpl_bench_time(b, multiply_step, x, row, err);
    b->seconds = seconds;
    double one = 1.0 / (double)x->repeats;
    row->ms *= one, row->ms_least *= one, row->ms_most *= one, row->cpu_ms *= one;
    row->operations *= one;
    row->setup_s = row->first_step_s = 0, row->peak_bytes = 0;
    if (s->m == 1) /* which reads each weight for two operations: the caches are its limit */
        row->step_bytes = (double)(s->k * s->n) * sizeof(real), row->step_us = 1e3 * row->ms;
    if (s->m == 1 && status == CPL_OK)
        row->read_rate = cpl_bench_read_rate(b, (int64_t)row->step_bytes, b->engine->threads);
    return status;
}

cpl_status cpl_bench_kernels(cpl_bench *b, cpl_error *err)
{
    cpl_engine *e = b->engine;
    real *x[3];
    cpl_status status = CPL_OK;
    for (int i = 0; i < 3; i++) {
        x[i] = cpl_alloc_aligned(LARGEST * sizeof(real), 64);
        for (int64_t k = 0; x[i] && k < LARGEST; k++)
            x[i][k] = (real)((k * 2654435761u >> 7) % 2048) / 1024 - 1;
    }
    multiplying m = {.a = x[0], .b = x[1], .c = x[2],
                     .kernels = b->options->bfloat16 ? cpl_kernels_in_bf16(e->kernels) : *e->kernels};
    m.context = (cpl_run_context){.kernels = &m.kernels, .pool = e->pool, .scratch = e->scratch};
    if (!x[0] || !x[1] || !x[2])
        status = cpl_error_set(err, CPL_FAILED, "out of memory for products of %d elements", LARGEST);
    cpl_bench_tell(b, "products …");
    for (size_t i = 0; status == CPL_OK && i < sizeof shapes / sizeof *shapes; i++) {
        m.s = &shapes[i];
        b->started = cpl_bench_now();
        status = measure(b, &m, err);
    }
    for (int i = 0; i < 3; i++)
        cpl_release(x[i]);
    return status;
}
