/* from_now.c: [batch now u] → [batch u]: the way back from to_now.c.
 *
 *   dx = dy
 */
#include "ops/rows.h"

static void forward(const cpl_run_context *r)
{
    if (r->in[0].data != r->out[0].data)
        cpl_run_copy(r, r->in[0].data, r->out[0].data, cpl_tensor_elements(&r->out[0]));
}

static void backward(const cpl_run_context *r)
{
    if (r->din[0].data && r->dout[0].data)
        cpl_run_copy(r, r->dout[0].data, r->din[0].data, cpl_tensor_elements(&r->din[0]));
    else if (r->din[0].data)
        cpl_run_zero(r, r->din[0].data, cpl_tensor_elements(&r->din[0]));
}

static const char *const tests[] = {"u=3", "u=17", NULL};

const cpl_op cpl_op_from_now = {
    .name = "from_now",
    .doc = "a sequence of one step as a row of each sentence",
    .signature = "x[batch now u] -> y[batch u]",
    .flags = CPL_OP_IN_PLACE | CPL_OP_CHEAP,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
