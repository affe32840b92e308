/* nest_previous.c: the state that a step of a nested loop begins with. As previous.c, in one step of the outer loop;
 * the first state h0 is that step's own.
 *
 *   p[0] = h0 of the sentence        p[k] = y[k−1]; without y: p[k] = h0
 *   dy[k−1] = dp[k]  (zero where a sentence ends)        dh0 = dp[0]; without y: dh0 = Σ dp[k]
 *
 * h0 stands in the order of the outer time, p in that of the inner one; loop_whole is the inner time of this outer step
 * (its sentences are those that have the step). It always runs in both loops. */
#include "ops/nest_rows.h"

static int64_t outer_row(const cpl_run_context *r, const cpl_geometry *g, int64_t i)
{
    const cpl_nest_attributes *a = r->attributes;
    return r->geometry[a->outer].position[g->sentence[i]];
}

static void forward(const cpl_run_context *r)
{
    const cpl_geometry *g = r->loop_whole;
    int64_t n = r->out[0].width, k = r->loop_step, active = cpl_geometry_active(g, k);
    real *p = r->out[0].data + g->offset[k] * n;
    if (k > 0 && r->in[0].type) {
        memcpy(p, r->in[0].data + g->offset[k - 1] * n, (size_t)(active * n) * sizeof(real));
        return;
    }
    for (int64_t i = 0; i < active; i++)
        if (r->in[1].data)
            memcpy(p + i * n, r->in[1].data + outer_row(r, g, i) * n, (size_t)n * sizeof(real));
        else
            memset(p + i * n, 0, (size_t)n * sizeof(real));
}

static void hand_back(const cpl_run_context *r, const cpl_geometry *g, int64_t k)
{
    int64_t n = r->out[0].width, active = cpl_geometry_active(g, k), before = cpl_geometry_active(g, k - 1);
    real *dy = r->din[0].data + g->offset[k - 1] * n;
    if (r->dout[0].data)
        memcpy(dy, r->dout[0].data + g->offset[k] * n, (size_t)(active * n) * sizeof(real));
    else
        active = 0;
    memset(dy + active * n, 0, (size_t)((before - active) * n) * sizeof(real));
}

static void backward(const cpl_run_context *r)
{
    const cpl_geometry *g = r->loop_whole;
    int64_t n = r->out[0].width, k = r->loop_step;
    if (k == g->longest) { /* begins: nothing comes from behind the last step */
        if (r->din[0].data && k > 0)
            memset(r->din[0].data + g->offset[k - 1] * n, 0,
                   (size_t)(cpl_geometry_active(g, k - 1) * n) * sizeof(real));
        if (r->din[1].data)
            memset(r->din[1].data, 0, (size_t)(r->din[1].rows * n) * sizeof(real));
        return;
    }
    if (r->din[0].data && k > 0)
        hand_back(r, g, k);
    if (r->din[1].data && r->dout[0].data && (k == 0 || !r->in[0].type))
        for (int64_t i = 0; i < cpl_geometry_active(g, k); i++)
            r->kernels->axpy(n, 1, r->dout[0].data + (g->offset[k] + i) * n,
                             r->din[1].data + outer_row(r, g, i) * n);
}

static const char *const tests[] = {NULL}; /* tests/nn/test_nests.c: lines know no nested time */

const cpl_op cpl_op_nest_previous = {
    .name = "nest_previous",
    .doc = "the state that a step of a nested loop begins with",
    .signature = "y[batch s u]? h0[batch t u]? -> p[batch s u]",
    .flags = CPL_OP_CARRY | CPL_OP_RANDOM,
    .attributes = sizeof(cpl_nest_attributes),
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
