/* exec.c: what ops call while they run: products, sums and copies dealt to the pool.
 *
 * Work is cut by shape alone, and the order of every sum is fixed, so results do not depend on the threads. */
#include <string.h>
#include "graph/op.h"

void cpl_run_tasks(const cpl_run_context *r, int64_t tasks, cpl_task task, void *arguments)
{
    if (tasks == 1)
        task(arguments, 0, 0);
    else if (tasks > 1)
        cpl_pool_run(r->pool, tasks, task, arguments);
}

/* ---- products ---- */

typedef struct tiles {
    const cpl_run_context *r;
    const cpl_gemm *g;
    const cpl_packed *packed;      /* B packed: columns from `from` on; NULL: g->b */
    int64_t from;
    int64_t rows, columns, across; /* of a tile; tiles in one row of tiles */
    const real *bias;              /* of the columns, or NULL */
    cpl_activation f;
} tiles;

/* The product g with columns from `from` on of packed weights. */
static void packed_product(const cpl_run_context *r, const cpl_gemm *g, const cpl_packed *packed, int64_t from,
                           int thread)
{
    cpl_gemm_packed p = {.m = g->m, .a = g->a, .lda = g->lda, .b = packed, .from = from, .n = g->n, .beta = g->beta,
                         .c = g->c, .ldc = g->ldc};
    r->kernels->gemm_packed(&p, r->scratch ? r->scratch[thread] : NULL);
}

/* The bias and the activation of a tile's numbers, which are still near; j: its first column. */
static void activate(const tiles *t, const cpl_gemm *g, int64_t j)
{
    const real *bias = t->bias ? t->bias + j : NULL;
    int64_t together = g->n == g->ldc ? g->m : 1; /* rows that stand side by side */
    for (int64_t i = 0; (bias || t->f != CPL_LINEAR) && i < g->m; i += together)
        t->r->kernels->bias_activation(together, g->n, g->c + i * g->ldc, bias, t->f, g->c + i * g->ldc);
}

static void run_tile(void *arguments, int64_t task, int thread)
{
    const tiles *t = arguments;
    int64_t i = task / t->across * t->rows, j = task % t->across * t->columns;
    cpl_gemm g = *t->g;
    g.m = g.m - i < t->rows ? g.m - i : t->rows;
    g.n = g.n - j < t->columns ? g.n - j : t->columns;
    g.a += g.transpose_a ? i : i * g.lda;
    g.c += i * g.ldc + j;
    if (t->packed) {
        packed_product(t->r, &g, t->packed, t->from + j, thread);
    } else {
        g.b += g.transpose_b ? j * g.ldb : j;
        t->r->kernels->gemm(&g, t->r->scratch ? t->r->scratch[thread] : NULL);
    }
    activate(t, &g, j);
}

static int64_t round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

/* Into how many rows and columns of tiles: about eight worth dealing, the longer side first, never below sizes where
 * packing and dispatch would cost more than they save. Each tile packs its part of a transposed operand: one of B
 * wants many rows to use it for, one of A many columns, and there four wide tiles beat eight narrow ones. */
static void cut(const cpl_run_context *r, const cpl_gemm *g, int64_t *down, int64_t *across)
{
    if (g->transpose_a) {
        int64_t cuts = cpl_pool_threads(r->pool) > 4 ? 8 : 4;
        *across = clamp(g->n / 512, 1, cuts);
        *down = (cuts + *across - 1) / *across;
    } else {
        *down = g->m >= g->n ? clamp(g->m / (g->transpose_b ? 128 : 48), 1, 8) : 1;
        *across = 8 / *down;
    }
}

/* Worth dealing: enough to compute, or, where rows are few, enough of B to read. */
static int is_large(const cpl_gemm *g)
{
    double b = (double)g->n * (double)g->k;
    return (double)g->m * b > 2e5 || b > 5e4;
}

/* t: what is multiplied with what; the rest is filled here. */
static void run_product(tiles *t)
{
    const cpl_gemm *g = t->g;
    t->rows = g->m, t->columns = g->n;
    if (g->m <= 0 || g->n <= 0)
        return;
    if (is_large(g)) {
        int64_t down, across;
        cut(t->r, g, &down, &across);
        t->rows = (g->m + down - 1) / down;
        t->columns = round_up((g->n + across - 1) / across, 64);
    }
    t->across = (g->n + t->columns - 1) / t->columns;
    cpl_run_tasks(t->r, (g->m + t->rows - 1) / t->rows * t->across, run_tile, t);
}

void cpl_run_gemm(const cpl_run_context *r, const cpl_gemm *g)
{
    run_product(&(tiles){.r = r, .g = g});
}

/* ---- weights, whatever their type ---- */

static cpl_gemm with_floats(const cpl_gemm *g, const cpl_tensor *w, int64_t from)
{
    cpl_gemm product = *g;
    product.b = w->data + (g->transpose_b ? from * g->ldb : from);
    return product;
}

void cpl_run_dense(const cpl_run_context *r, const cpl_gemm *g, const cpl_tensor *w, const real *bias, cpl_activation f)
{
    cpl_gemm product = w->packed ? *g : with_floats(g, w, 0);
    run_product(&(tiles){.r = r, .g = &product, .packed = w->packed, .bias = bias, .f = f});
}

void cpl_run_weights(const cpl_run_context *r, const cpl_gemm *g, const cpl_tensor *w, int64_t from)
{
    cpl_gemm product = w->packed ? *g : with_floats(g, w, from);
    run_product(&(tiles){.r = r, .g = &product, .packed = w->packed, .from = from});
}

void cpl_weights_product(const cpl_run_context *r, const cpl_gemm *g, const cpl_tensor *w, int64_t from, int thread)
{
    cpl_gemm product = w->packed ? *g : with_floats(g, w, from);
    if (w->packed)
        packed_product(r, &product, w->packed, from, thread);
    else
        r->kernels->gemm(&product, r->scratch[thread]);
}

void cpl_table_row(const cpl_tensor *w, int64_t i, int64_t n, real *to)
{
    if (w->packed)
        cpl_packed_get(w->packed, i, to);
    else
        memcpy(to, w->data + i * n, (size_t)n * sizeof *to);
}

/* ---- sums, zeros, copies ---- */

typedef struct sum_rows {
    const cpl_run_context *r;
    int64_t rows, n;
    const real *x;
    real *y;
} sum_rows;

enum { SUM_COLUMNS = 128 };

static void run_sum_rows(void *arguments, int64_t task, int thread)
{
    (void)thread;
    const sum_rows *s = arguments;
    int64_t from = task * SUM_COLUMNS, n = s->n - from < SUM_COLUMNS ? s->n - from : SUM_COLUMNS;
    memset(s->y + from, 0, (size_t)n * sizeof(real));
    s->r->kernels->add_rows(s->rows, n, s->x + from, s->n, s->y + from);
}

void cpl_run_sum_rows(const cpl_run_context *r, int64_t rows, int64_t n, const real *x, real *y)
{
    sum_rows s = {r, rows, n, x, y};
    cpl_run_tasks(r, (n + SUM_COLUMNS - 1) / SUM_COLUMNS, run_sum_rows, &s);
}

typedef struct copy_job {
    const real *x; /* NULL: zeros */
    real *y;
    int64_t n;
} copy_job;

enum { COPY_CHUNK = 1 << 18 };

static void run_copy(void *arguments, int64_t task, int thread)
{
    (void)thread;
    const copy_job *c = arguments;
    int64_t from = task * COPY_CHUNK, n = c->n - from < COPY_CHUNK ? c->n - from : COPY_CHUNK;
    if (c->x)
        memcpy(c->y + from, c->x + from, (size_t)n * sizeof(real));
    else
        memset(c->y + from, 0, (size_t)n * sizeof(real));
}

void cpl_run_zero(const cpl_run_context *r, real *x, int64_t n)
{
    copy_job c = {NULL, x, n};
    cpl_run_tasks(r, (n + COPY_CHUNK - 1) / COPY_CHUNK, run_copy, &c);
}

void cpl_run_copy(const cpl_run_context *r, const real *x, real *y, int64_t n)
{
    copy_job c = {x, y, n};
    cpl_run_tasks(r, (n + COPY_CHUNK - 1) / COPY_CHUNK, run_copy, &c);
}
