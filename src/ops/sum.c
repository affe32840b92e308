/* sum.c: Σ of all elements.
 *
 *   y = Σ x        dx = dy for every element
 *
 * Summed in chunks of a fixed size, then chunk by chunk in double: the same bits with any number of threads. */
#include "graph/op.h"

typedef struct work {
    const cpl_run_context *r;
    int64_t n;
    double *chunk; /* sums of chunks */
} work;

static int64_t elements(const cpl_tensor *t)
{
    return t->rows * t->width;
}

static void sum_chunk(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    int64_t from = task * CPL_CHUNK, to = from + CPL_CHUNK < w->n ? from + CPL_CHUNK : w->n;
    double sum = 0;
    (void)thread;
    for (int64_t i = from; i < to; i++)
        sum += (double)w->r->in[0].data[i];
    w->chunk[task] = sum;
}

static void forward(const cpl_run_context *r)
{
    work w = {.r = r, .n = elements(&r->in[0]), .chunk = r->workspace};
    cpl_run_tasks(r, cpl_chunks(w.n), sum_chunk, &w);
    double sum = 0;
    for (int64_t i = 0; i < cpl_chunks(w.n); i++)
        sum += w.chunk[i];
    r->out[0].data[0] = (real)sum;
}

static void spread_chunk(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    int64_t from = task * CPL_CHUNK, to = from + CPL_CHUNK < w->n ? from + CPL_CHUNK : w->n;
    real dy = w->r->dout[0].data ? w->r->dout[0].data[0] : 0;
    (void)thread;
    for (int64_t i = from; i < to; i++)
        w->r->din[0].data[i] = dy;
}

static void backward(const cpl_run_context *r)
{
    work w = {.r = r, .n = elements(&r->din[0])};
    if (r->din[0].data)
        cpl_run_tasks(r, cpl_chunks(w.n), spread_chunk, &w);
}

static size_t workspace(const cpl_size_context *s)
{
    return s->backward ? 0 : sizeof(double) * (size_t)(cpl_chunks(cpl_type_elements(s->in[0], s->binding)) + 1);
}

static const char *const tests[] = {"...=batch,t,3", "...=batch,5", "...=7", "...=batch,padded,1", NULL};

const cpl_op cpl_op_sum = {
    .name = "sum",
    .doc = "sum of all elements",
    .signature = "x[...] -> y[]",
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
