/* previous.c: the state that a step of a loop begins with.
 *
 *   p[0] = h0        p[k] = y[k−1]           for the sentences that have step k; without y: p[k] = h0
 *   dy[k−1] = dp[k]  (zero where a sentence ends)        dh0 = dp[0]        without y: dh0 = Σ dp[k]
 *
 * Its input y is made later in the body: a loop is a cycle through this op. It sees whole tensors and the step, and
 * writes one step's rows. Backward, the loop runs from its last step to its first: a call for step `longest` begins
 * (zeros for the last step's dy and for dh0), then each step k hands dp[k] to step k − 1. */
#include <string.h>
#include "graph/attributes.h"
#include "graph/op.h"

static void copy_rows(real *to, const real *from, int64_t rows, int64_t n)
{
    if (rows > 0 && from)
        memcpy(to, from, (size_t)(rows * n) * sizeof(real));
    else if (rows > 0)
        memset(to, 0, (size_t)(rows * n) * sizeof(real));
}

static void forward_step(const cpl_run_context *r, const cpl_geometry *g, int64_t k)
{
    int64_t n = r->out[0].width, active = cpl_geometry_active(g, k);
    real *p = r->out[0].data + g->offset[k] * n;
    if (k == 0 || !r->in[0].type)
        copy_rows(p, r->in[1].data, active, n);
    else
        copy_rows(p, r->in[0].data + g->offset[k - 1] * n, active, n);
}

/* Outside a loop nothing hands y over: only sentences of one step make sense, and they begin with h0. */
static void forward(const cpl_run_context *r)
{
    const cpl_geometry *g = r->loop_whole ? r->loop_whole : cpl_tensor_geometry(r, &r->out[0]);
    if (r->loop_whole) {
        forward_step(r, g, r->loop_step);
        return;
    }
    for (int64_t k = 0; k < g->longest; k++)
        forward_step(r, g, k);
}

static void begin_backward(const cpl_run_context *r, const cpl_geometry *g)
{
    int64_t n = r->out[0].width;
    if (r->din[0].data && g->longest > 0)
        copy_rows(r->din[0].data + g->offset[g->longest - 1] * n, NULL, cpl_geometry_active(g, g->longest - 1), n);
    if (r->din[1].data)
        copy_rows(r->din[1].data, NULL, g->batch, n);
}

static void backward_step(const cpl_run_context *r, const cpl_geometry *g, int64_t k)
{
    int64_t n = r->out[0].width, active = cpl_geometry_active(g, k);
    const real *dp = r->dout[0].data ? r->dout[0].data + g->offset[k] * n : NULL;
    if (r->din[0].data && k > 0) {
        real *dy = r->din[0].data + g->offset[k - 1] * n;
        copy_rows(dy, dp, active, n);
        copy_rows(dy + active * n, NULL, cpl_geometry_active(g, k - 1) - active, n);
    }
    if (r->din[1].data && dp && (k == 0 || !r->in[0].type))
        r->kernels->axpy(active * n, 1, dp, r->din[1].data);
}

static void backward(const cpl_run_context *r)
{
    const cpl_geometry *g = r->loop_whole ? r->loop_whole : cpl_tensor_geometry(r, &r->out[0]);
    int64_t from = r->loop_whole ? r->loop_step : g->longest, to = r->loop_whole ? r->loop_step : 0;
    for (int64_t k = from; k >= to; k--) {
        if (k == g->longest)
            begin_backward(r, g);
        else
            backward_step(r, g, k);
    }
}

/* p is over y's time; without y only the builder (cpl_scan) knows it. */
static const char *const tests[] = {"u=3 attr.0=0", "u=5 attr.0=0 h0=absent", NULL};

const cpl_op cpl_op_previous = {
    .name = "previous",
    .doc = "the state that a step of a loop begins with",
    .signature = "y[batch t u]? h0[batch u]? -> p[batch t u]",
    .flags = CPL_OP_CARRY | CPL_OP_RANDOM,
    .attributes = sizeof(cpl_previous_attributes),
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
