/* scale.c: y = factor · x.
 *
 *   dx = factor · dy
 */
#include "graph/attributes.h"
#include "ops/rows.h"

typedef struct work {
    const cpl_run_context *r;
    int64_t n;
    const real *x;
    real *y;
} work;

static void scale(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    const cpl_scale_attributes *a = w->r->attributes;
    cpl_span s = cpl_span_of(task, CPL_CHUNK, w->n);
    (void)thread;
    w->r->kernels->scale(s.to - s.from, (real)a->factor, w->x + s.from, w->y + s.from);
}

static void forward(const cpl_run_context *r)
{
    work w = {r, cpl_tensor_elements(&r->out[0]), r->in[0].data, r->out[0].data};
    cpl_run_tasks(r, cpl_chunks(w.n), scale, &w);
}

static void backward(const cpl_run_context *r)
{
    work w = {r, cpl_tensor_elements(&r->din[0]), r->dout[0].data, r->din[0].data};
    if (w.y && w.x)
        cpl_run_tasks(r, cpl_chunks(w.n), scale, &w);
    else if (w.y)
        cpl_run_zero(r, w.y, w.n);
}

static const char *const tests[] = {"attr.0=0.25 ...=batch,t,3", "attr.0=-1.5 ...=batch,5", "attr.0=0.0 ...=", NULL};

const cpl_op cpl_op_scale = {
    .name = "scale",
    .doc = "a tensor times a fixed number",
    .signature = "x[...] -> y[...]",
    .flags = CPL_OP_IN_PLACE | CPL_OP_LOCAL | CPL_OP_CHEAP,
    .attributes = sizeof(cpl_scale_attributes),
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
