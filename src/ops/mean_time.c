/* mean_time.c: y[sentence] = mean of x over the steps that exist, zeros for an empty sentence.
 *
 *   dx[step] = dy / length
 */
#include "ops/rows.h"

/* Sentences of one task: a walk over time touches one run of rows at each step. */
enum { SENTENCES = 16 };

static int64_t sentence_tasks(const cpl_geometry *g)
{
    return (g->batch + SENTENCES - 1) / SENTENCES;
}

/* Sentences of the span that are alive at a step; they are the first ones. */
static int64_t alive(const cpl_geometry *g, cpl_span s, int64_t step)
{
    int64_t active = cpl_geometry_active(g, step);
    return (active < s.to ? active : s.to) - s.from;
}

static void average(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    const cpl_geometry *g = cpl_tensor_geometry(r, &r->in[0]);
    cpl_span s = cpl_span_of(task, SENTENCES, g->batch);
    int64_t n = r->out[0].width;
    real *y = r->out[0].data + s.from * n;
    (void)thread;
    for (int64_t i = 0; i < (s.to - s.from) * n; i++)
        y[i] = 0;
    for (int64_t step = 0; step < g->longest && alive(g, s, step) > 0; step++)
        r->kernels->axpy(alive(g, s, step) * n, 1, r->in[0].data + (g->offset[step] + s.from) * n, y);
    for (int64_t i = s.from; i < s.to && g->length[i] > 0; i++, y += n)
        r->kernels->scale(n, (real)(1.0 / g->length[i]), y, y);
}

static void forward(const cpl_run_context *r)
{
    cpl_run_tasks(r, sentence_tasks(cpl_tensor_geometry(r, &r->in[0])), average, &r);
}

static void spread(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    const cpl_geometry *g = cpl_tensor_geometry(r, &r->din[0]);
    cpl_span s = cpl_span_of(task, SENTENCES, g->batch);
    int64_t n = r->din[0].width;
    (void)thread;
    for (int64_t i = s.from; i < s.to; i++)
        for (int64_t step = 0; step < g->length[i]; step++)
            r->kernels->scale(n, (real)(1.0 / g->length[i]), r->dout[0].data + i * n,
                              r->din[0].data + (g->offset[step] + i) * n);
}

static void backward(const cpl_run_context *r)
{
    if (r->din[0].data && r->dout[0].data)
        cpl_run_tasks(r, sentence_tasks(cpl_tensor_geometry(r, &r->din[0])), spread, &r);
    else if (r->din[0].data)
        cpl_run_zero(r, r->din[0].data, cpl_tensor_elements(&r->din[0]));
}

/* The sentences stay where they are: in the order of their lengths. */
static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    (void)err;
    s->out[0].order = s->in[0]->dim[1].symbol;
    return CPL_OK;
}

static const char *const tests[] = {"n=3", "n=1", "n=17", NULL};

const cpl_op cpl_op_mean_time = {
    .name = "mean_time",
    .doc = "mean over the steps that exist",
    .signature = "x[batch t n] -> y[batch n]",
    .flags = CPL_OP_CHEAP,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
