/* add.c: y = x1 + x2, two tensors of one shape.
 *
 *   dx1 = dy     dx2 = dy
 */
#include "ops/rows.h"

static void add(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    cpl_span s = cpl_span_of(task, CPL_CHUNK, cpl_tensor_elements(&r->out[0]));
    (void)thread;
    r->kernels->add(s.to - s.from, r->in[0].data + s.from, r->in[1].data + s.from, r->out[0].data + s.from);
}

static void forward(const cpl_run_context *r)
{
    cpl_run_tasks(r, cpl_chunks(cpl_tensor_elements(&r->out[0])), add, &r);
}

static void backward(const cpl_run_context *r)
{
    for (int i = 0; i < 2; i++) {
        if (r->din[i].data && r->dout[0].data)
            cpl_run_copy(r, r->dout[0].data, r->din[i].data, cpl_tensor_elements(&r->din[i]));
        else if (r->din[i].data)
            cpl_run_zero(r, r->din[i].data, cpl_tensor_elements(&r->din[i]));
    }
}

static const char *const tests[] = {"...=batch,t,3", "...=batch,5", "...=batch,padded,1", "...=7", NULL};

const cpl_op cpl_op_add = {
    .name = "add",
    .doc = "sum of two tensors of one shape",
    .signature = "x1[...] x2[...] -> y[...]",
    .flags = CPL_OP_IN_PLACE | CPL_OP_PASS | CPL_OP_LOCAL | CPL_OP_CHEAP,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
