/* activation.c: y = f(x), f by attribute (tanh, sigmoid, relu).
 *
 *   dx = dy · f'(x), with f' written through y: tanh 1 − y², sigmoid y·(1 − y), relu 1 where y > 0
 */
#include "graph/attributes.h"
#include "ops/rows.h"

static cpl_activation function_of(const cpl_run_context *r)
{
    const cpl_activation_attributes *a = r->attributes;
    return (cpl_activation)a->activation;
}

static void activate(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    cpl_span s = cpl_span_of(task, CPL_CHUNK, cpl_tensor_elements(&r->out[0]));
    (void)thread;
    r->kernels->bias_activation(1, s.to - s.from, r->in[0].data + s.from, NULL, function_of(r),
                                r->out[0].data + s.from);
}

static void forward(const cpl_run_context *r)
{
    cpl_run_tasks(r, cpl_chunks(cpl_tensor_elements(&r->out[0])), activate, &r);
}

static void deactivate(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    cpl_span s = cpl_span_of(task, CPL_CHUNK, cpl_tensor_elements(&r->din[0]));
    (void)thread;
    r->kernels->activation_backward(s.to - s.from, function_of(r), r->out[0].data + s.from, r->dout[0].data + s.from,
                                    r->din[0].data + s.from);
}

static void backward(const cpl_run_context *r)
{
    int64_t n = cpl_tensor_elements(&r->din[0]);
    if (r->din[0].data && r->dout[0].data)
        cpl_run_tasks(r, cpl_chunks(n), deactivate, &r);
    else if (r->din[0].data)
        cpl_run_zero(r, r->din[0].data, n);
}

static const char *const tests[] = {"attr.0=0 ...=batch,3", "attr.0=1 ...=batch,t,3", "attr.0=2 ...=batch,5",
                                    "attr.0=3 ...=batch,s,7", NULL};

const cpl_op cpl_op_activation = {
    .name = "activation",
    .doc = "f(x) element by element",
    .signature = "x[...] -> y[...]",
    .keeps = CPL_KEEP_OUT0,
    .flags = CPL_OP_IN_PLACE | CPL_OP_LOCAL | CPL_OP_CHEAP,
    .attributes = sizeof(cpl_activation_attributes),
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
