/* multiply.c: y = x1 · x2 element by element, two tensors of one shape.
 *
 *   dx1 = dy · x2     dx2 = dy · x1
 */
#include "ops/rows.h"

/* One product: z = x · y over n elements. */
typedef struct work {
    const cpl_run_context *r;
    int64_t n;
    const real *x, *y;
    real *z;
} work;

static void multiply(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    cpl_span s = cpl_span_of(task, CPL_CHUNK, w->n);
    (void)thread;
    w->r->kernels->multiply(s.to - s.from, w->x + s.from, w->y + s.from, w->z + s.from);
}

static void forward(const cpl_run_context *r)
{
    work w = {r, cpl_tensor_elements(&r->out[0]), r->in[0].data, r->in[1].data, r->out[0].data};
    cpl_run_tasks(r, cpl_chunks(w.n), multiply, &w);
}

static void backward(const cpl_run_context *r)
{
    for (int i = 0; i < 2; i++) {
        work w = {r, cpl_tensor_elements(&r->din[i]), r->dout[0].data, r->in[1 - i].data, r->din[i].data};
        if (w.z && w.x)
            cpl_run_tasks(r, cpl_chunks(w.n), multiply, &w);
        else if (w.z)
            cpl_run_zero(r, w.z, w.n);
    }
}

static const char *const tests[] = {"...=batch,t,3", "...=batch,5", "...=1", NULL};

const cpl_op cpl_op_multiply = {
    .name = "multiply",
    .doc = "product of two tensors of one shape, element by element",
    .signature = "x1[...] x2[...] -> y[...]",
    .flags = CPL_OP_LOCAL | CPL_OP_CHEAP,
    .keeps = CPL_KEEP_IN0 | CPL_KEEP_IN1,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
