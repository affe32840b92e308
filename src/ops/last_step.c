/* last_step.c: the state after each sentence's last step.
 *
 *   h[i] = y at the last step of sentence i; h0[i] (or 0) for an empty sentence
 *   dy = dh at those rows, zero elsewhere        dh0 = dh of the empty sentences, zero elsewhere
 */
#include <string.h>
#include "graph/op.h"

static void forward(const cpl_run_context *r)
{
    const cpl_geometry *g = cpl_tensor_geometry(r, &r->in[0]);
    int64_t n = r->out[0].width;
    for (int64_t i = 0; i < g->batch; i++) {
        const real *from = r->in[1].data ? r->in[1].data + i * n : NULL;
        if (g->length[i] > 0)
            from = r->in[0].data + (g->offset[g->length[i] - 1] + i) * n;
        if (from)
            memcpy(r->out[0].data + i * n, from, (size_t)n * sizeof(real));
        else
            memset(r->out[0].data + i * n, 0, (size_t)n * sizeof(real));
    }
}

static void backward(const cpl_run_context *r)
{
    const cpl_geometry *g = cpl_tensor_geometry(r, &r->in[0]);
    int64_t n = r->out[0].width;
    if (r->din[0].data)
        cpl_run_zero(r, r->din[0].data, g->rows * n);
    if (r->din[1].data)
        cpl_run_zero(r, r->din[1].data, g->batch * n);
    for (int64_t i = 0; r->dout[0].data && i < g->batch; i++) {
        real *to = g->length[i] > 0 ? r->din[0].data : r->din[1].data;
        int64_t row = g->length[i] > 0 ? g->offset[g->length[i] - 1] + i : i;
        if (to)
            memcpy(to + row * n, r->dout[0].data + i * n, (size_t)n * sizeof(real));
    }
}

static const char *const tests[] = {"u=3", "u=5 h0=absent", NULL};

const cpl_op cpl_op_last_step = {
    .name = "last_step",
    .doc = "the state after each sentence's last step",
    .signature = "y[batch t u] h0[batch u]? -> h[batch u]",
    .flags = CPL_OP_CHEAP,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
