/* layer_norm.c: y = (x − mean) / √(var + epsilon) · gamma + beta over the last dimension, biased variance.
 * keep = mean, 1/√(var + epsilon) of each row.
 *
 *   s = (x − mean)/√(…)     g = dy · gamma
 *   dx = (g − mean(g) − s · mean(g·s)) / √(…)     dgamma = Σ rows of dy · s     dbeta = Σ rows of dy
 *
 * The sums over rows are made in chunks of a fixed number of rows, then over the chunks in order. */
#include <string.h>
#include "graph/attributes.h"
#include "ops/rows.h"

typedef struct work {
    const cpl_run_context *r;
    int64_t rows, n, chunk;
    real epsilon;
    real *keep;
    real *dgamma, *dbeta; /* backward: [chunks n] each */
    real *unused;         /* backward: [threads chunk n], dx that nobody wants */
} work;

static work work_of(const cpl_run_context *r)
{
    const cpl_layer_norm_attributes *a = r->attributes;
    int64_t n = cpl_last_size(r->in[1].type);
    return (work){.r = r, .rows = cpl_rows_of(cpl_tensor_elements(&r->in[0]), n), .n = n, .chunk = cpl_chunk_rows(n),
                  .epsilon = (real)a->epsilon, .keep = r->out[1].data};
}

static void normalise(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    const cpl_run_context *r = w->r;
    cpl_span s = cpl_span_of(task, w->chunk, w->rows);
    (void)thread;
    r->kernels->layer_norm(s.to - s.from, w->n, r->in[0].data + s.from * w->n, r->in[1].data, r->in[2].data,
                           w->epsilon, r->out[0].data + s.from * w->n, w->keep + s.from * 2);
}

static void forward(const cpl_run_context *r)
{
    work w = work_of(r);
    if (!w.keep)
        w.keep = r->workspace;
    cpl_run_tasks(r, cpl_row_chunks(w.rows, w.n), normalise, &w);
}

static void differentiate(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    const cpl_run_context *r = w->r;
    cpl_span s = cpl_span_of(task, w->chunk, w->rows);
    int64_t at = s.from * w->n;
    real *dgamma = w->dgamma + task * w->n, *dbeta = w->dbeta + task * w->n;
    real *dx = r->din[0].data ? r->din[0].data + at : w->unused + thread * w->chunk * w->n;
    memset(dgamma, 0, (size_t)w->n * sizeof *dgamma);
    memset(dbeta, 0, (size_t)w->n * sizeof *dbeta);
    r->kernels->layer_norm_backward(s.to - s.from, w->n, r->in[0].data + at, r->in[1].data, w->keep + s.from * 2,
                                    r->dout[0].data + at, dx, dgamma, dbeta);
}

static void backward(const cpl_run_context *r)
{
    work w = work_of(r);
    if (!r->dout[0].data) {
        for (int i = 0; i < 3; i++)
            if (r->din[i].data)
                cpl_run_zero(r, r->din[i].data, cpl_tensor_elements(&r->din[i]));
        return;
    }
    int64_t chunks = cpl_row_chunks(w.rows, w.n);
    w.dgamma = r->workspace;
    w.dbeta = w.dgamma + chunks * w.n;
    w.unused = w.dbeta + chunks * w.n;
    cpl_run_tasks(r, chunks, differentiate, &w);
    if (r->din[1].data)
        cpl_run_sum_rows(r, chunks, w.n, w.dgamma, r->din[1].data);
    if (r->din[2].data)
        cpl_run_sum_rows(r, chunks, w.n, w.dbeta, r->din[2].data);
}

static size_t workspace(const cpl_size_context *s)
{
    int64_t n = cpl_last_size(s->in[1]), rows = cpl_rows_of(cpl_type_elements(s->in[0], s->binding), n);
    if (!s->backward)
        return s->differentiated ? 0 : (size_t)rows * 2 * sizeof(real);
    return (size_t)(2 * cpl_row_chunks(rows, n) * n + s->threads * cpl_chunk_rows(n) * n) * sizeof(real);
}

static const char *const tests[] = {"n=5 attr.0=0.001", "n=2 attr.0=0.1 ...=batch", "n=17 attr.0=0.00001 ...=batch,s",
                                    "n=1 attr.0=0.5 ...=", NULL};

const cpl_op cpl_op_layer_norm = {
    .name = "layer_norm",
    .doc = "normalises each row to mean beta and deviation gamma",
    .signature = "x[... n] gamma[n] beta[n] -> y[... n] ; keep[... 2]",
    .flags = CPL_OP_LOCAL | CPL_OP_CHEAP,
    .keeps = CPL_KEEP_IN0 | CPL_KEEP_IN1,
    .attributes = sizeof(cpl_layer_norm_attributes),
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
