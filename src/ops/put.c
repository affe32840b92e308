/* put.c: adds x to step k of packed rows: y = y0 (or zeros) + x at step k, for the sentences that have it. A chain of
 * puts in one memory makes a sequence of the steps of a loop in the host language.
 *
 *   dy0 = dy itself (no copy: CPL_OP_PASS_FIRST)        dx = dy at step k, zeros for sentences without it
 */
#include <string.h>
#include "graph/attributes.h"
#include "ops/rows.h"

/* Sentences that have the step. */
static int64_t active(const cpl_run_context *r, const cpl_geometry *g)
{
    const cpl_put_attributes *a = r->attributes;
    return a->step < g->longest ? cpl_geometry_active(g, a->step) : 0;
}

static void forward(const cpl_run_context *r)
{
    const cpl_put_attributes *a = r->attributes;
    const cpl_geometry *g = &r->geometry[a->symbol];
    int64_t n = r->out[0].width, count = active(r, g);
    if (!r->in[0].data)
        cpl_run_zero(r, r->out[0].data, g->rows * n);
    else if (r->in[0].data != r->out[0].data)
        cpl_run_copy(r, r->in[0].data, r->out[0].data, g->rows * n);
    if (count)
        r->kernels->axpy(count * n, 1, r->in[1].data, r->out[0].data + g->offset[a->step] * n);
}

static void backward(const cpl_run_context *r)
{
    const cpl_put_attributes *a = r->attributes;
    const cpl_geometry *g = &r->geometry[a->symbol];
    int64_t n = r->dout[0].width, count = r->dout[0].data ? active(r, g) : 0;
    if (r->din[0].data && r->dout[0].data)
        cpl_run_copy(r, r->dout[0].data, r->din[0].data, g->rows * n);
    else if (r->din[0].data)
        cpl_run_zero(r, r->din[0].data, g->rows * n);
    if (!r->din[1].data)
        return;
    if (count)
        memcpy(r->din[1].data, r->dout[0].data + g->offset[a->step] * n, (size_t)(count * n) * sizeof(real));
    cpl_run_zero(r, r->din[1].data + count * n, (g->batch - count) * n);
}

static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    const cpl_put_attributes *a = s->attributes;
    const cpl_type *x = s->in[1];
    cpl_type *y = &s->out[0];
    (void)err;
    *y = *x;
    y->rank = 3;
    y->dim[1] = (cpl_dim){.name = a->word == 's' ? "s" : "t", .symbol = a->symbol, .kind = CPL_DIM_TIME};
    y->dim[2] = x->dim[1];
    return CPL_OK;
}

static const char *const tests[] = {"u=3 attr.0=1 attr.1=116 attr.2=0", "u=5 attr.0=1 attr.1=116 attr.2=2 y0=absent",
                                    "u=2 attr.0=1 attr.1=116 attr.2=50", NULL};

const cpl_op cpl_op_put = {
    .name = "put",
    .doc = "adds a row of each sentence to one step of packed rows",
    .signature = "y0[batch t u]? x[batch u] -> y[batch t u]",
    .flags = CPL_OP_IN_PLACE | CPL_OP_PASS_FIRST,
    .attributes = sizeof(cpl_put_attributes),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
