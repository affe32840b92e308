/* recurrent.c: the shared parts of the recurrent ops (see recurrent.h). */
#include "ops/recurrent.h"

#include "graph/attributes.h"

cpl_recurrent_sizes cpl_recurrent_call_sizes(const cpl_size_context *s)
{
    return (cpl_recurrent_sizes){.rows = cpl_type_rows(s->in[0], s->binding),
                                 .batch = s->binding->batch,
                                 .u = s->in[2]->dim[0].size};
}

double cpl_recurrent_flops(const cpl_size_context *s)
{
    double in = (double)s->in[1]->dim[0].size, u = (double)s->in[2]->dim[0].size;
    return 2.0 * (double)cpl_type_rows(s->in[0], s->binding) * (double)s->in[2]->dim[1].size * (in + u);
}

/* ---- cutting the batch ---- */

/* A step costs its rows and about four rows more, for reading the recurrent kernel. */
enum { STEP_COST = 4 };

/* Cuts greedily into parts that cost at most `limit` each. Returns the number of parts, or `most` + 1 when they
 * do not do. Sentences stand longest first, so a part runs as many steps as its first sentence has. */
static int64_t cut_within(const cpl_geometry *g, int64_t limit, int64_t most, int64_t *cut)
{
    int64_t parts = 0, cost = 0;
    cut[0] = 0;
    for (int64_t i = 0; i < g->batch; i++) {
        if (i == 0 || cost + g->length[i] > limit) {
            if (parts == most)
                return most + 1;
            cut[parts++] = i;
            cost = (int64_t)STEP_COST * g->length[i];
        }
        cost += g->length[i];
    }
    cut[parts] = g->batch;
    return parts;
}

/* Bisects for the smallest limit. One part for each thread: larger products are the faster ones. */
static void cut_batch(cpl_recurrent *w, int threads)
{
    const cpl_geometry *g = w->g;
    int64_t most = threads < CPL_RECURRENT_PARTS ? threads : CPL_RECURRENT_PARTS;
    int64_t low = 0, high = g->rows + (int64_t)STEP_COST * g->longest;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (cut_within(g, middle, most, w->cut) <= most)
            high = middle;
        else
            low = middle + 1;
    }
    w->parts = cut_within(g, high, most, w->cut);
}

void cpl_recurrent_begin(cpl_recurrent *w, const cpl_run_context *r)
{
    const cpl_recurrent_attributes *attributes = r->attributes;
    w->r = r;
    w->g = cpl_tensor_geometry(r, &r->in[0]);
    w->reverse = attributes->reverse;
    w->in = r->in[1].type->dim[0].size;
    w->u = r->in[2].type->dim[0].size;
    w->gates = r->in[2].type->dim[1].size;
    cut_batch(w, cpl_pool_threads(r->pool));
}

/* ---- rows of states ---- */

static void copy_or_zero(real *to, const real *from, int64_t n)
{
    if (n <= 0)
        return;
    if (from)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        memset(to, 0, (size_t)n * sizeof *to);
}

/* Forward in time the row before step k is the sentence's row at k − 1. In reverse it is the row at k + 1 for the
 * sentences that have one; they come first, and the others begin at k. */
void cpl_recurrent_previous(const cpl_recurrent *w, int64_t part, int64_t k, const real *states, const real *first,
                            real *to)
{
    int64_t u = w->u, lo = w->cut[part], n = cpl_recurrent_alive(w, part, k);
    int64_t before = w->reverse ? k + 1 : k - 1, old = 0;
    if (before >= 0 && before < w->g->longest) {
        old = cpl_recurrent_alive(w, part, before);
        old = old < n ? old : n;
        if (old)
            copy_or_zero(to, states + (w->g->offset[before] + lo) * u, old * u);
    }
    copy_or_zero(to + old * u, first ? first + (lo + old) * u : NULL, (n - old) * u);
}

void cpl_recurrent_set(const cpl_recurrent *w, int64_t part, const real *from, real *to)
{
    int64_t lo = w->cut[part], n = w->cut[part + 1] - lo;
    copy_or_zero(to + lo * w->u, from ? from + lo * w->u : NULL, n * w->u);
}

/* ---- products outside the walk ---- */

void cpl_recurrent_product(const cpl_recurrent *w, const cpl_gemm *g)
{
    if (g->k > 0) {
        cpl_run_gemm(w->r, g);
        return;
    }
    for (int64_t i = 0; i < g->m; i++)
        memset(g->c + i * g->ldc, 0, (size_t)g->n * sizeof(real));
}

void cpl_recurrent_input(const cpl_recurrent *w, real *xg)
{
    cpl_recurrent_product(w, &(cpl_gemm){.m = w->g->rows, .n = w->gates, .k = w->in,
                                         .a = w->r->in[0].data, .lda = w->in,
                                         .b = w->r->in[1].data, .ldb = w->gates,
                                         .c = xg, .ldc = w->gates});
}

void cpl_recurrent_gradients(const cpl_recurrent *w, const real *dxg)
{
    const cpl_run_context *r = w->r;
    int64_t rows = w->g->rows, in = w->in, gates = w->gates;
    if (r->din[0].data)
        cpl_recurrent_product(w, &(cpl_gemm){.transpose_b = 1, .m = rows, .n = in, .k = gates, .a = dxg, .lda = gates,
                                             .b = r->in[1].data, .ldb = gates, .c = r->din[0].data, .ldc = in});
    if (r->din[1].data)
        cpl_recurrent_product(w, &(cpl_gemm){.transpose_a = 1, .m = in, .n = gates, .k = rows,
                                             .a = r->in[0].data, .lda = in, .b = dxg, .ldb = gates,
                                             .c = r->din[1].data, .ldc = gates});
    if (r->din[3].data)
        cpl_run_sum_rows(r, rows, gates, dxg, r->din[3].data);
}

typedef struct transposition {
    int64_t rows, columns;
    const real *from;
    real *to;
} transposition;

enum { BLOCK = 32 };

/* 32 rows of the result, in squares that stay in the cache. */
static void transpose_block(void *arguments, int64_t task, int thread)
{
    const transposition *t = arguments;
    int64_t lo = task * BLOCK, hi = lo + BLOCK < t->columns ? lo + BLOCK : t->columns;
    (void)thread;
    for (int64_t r0 = 0; r0 < t->rows; r0 += BLOCK) {
        int64_t r1 = r0 + BLOCK < t->rows ? r0 + BLOCK : t->rows;
        for (int64_t c = lo; c < hi; c++)
            for (int64_t r = r0; r < r1; r++)
                t->to[c * t->rows + r] = t->from[r * t->columns + c];
    }
}

void cpl_recurrent_transpose(const cpl_run_context *r, int64_t rows, int64_t columns, const real *from, real *to)
{
    transposition t = {rows, columns, from, to};
    cpl_run_tasks(r, (columns + BLOCK - 1) / BLOCK, transpose_block, &t);
}
