/* take.c: y = step k of x. Of packed rows a step is one piece of memory; of a rectangle, a row of each sentence.
 * Sentences that have no such step get zeros.
 *
 *   dx = dy at those rows, zeros elsewhere
 */
#include "ops/take.h"

#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"
#include "ops/rows.h"

cpl_take_rows cpl_take_rows_of(const cpl_run_context *r)
{
    const cpl_take_attributes *a = r->attributes;
    const cpl_dim *d = &r->in[0].type->dim[1];
    if (d->kind == CPL_DIM_PADDED) {
        int64_t width = r->binding->rows[d->symbol];
        return (cpl_take_rows){.first = a->step, .stride = width, .active = a->step < width ? r->binding->batch : 0};
    }
    const cpl_geometry *g = &r->geometry[d->symbol];
    if (a->step >= g->longest)
        return (cpl_take_rows){.stride = 1};
    return (cpl_take_rows){.first = g->offset[a->step], .stride = 1, .active = cpl_geometry_active(g, a->step)};
}

void cpl_take_forward(const cpl_run_context *r, size_t element)
{
    cpl_take_rows rows = cpl_take_rows_of(r);
    int64_t batch = r->binding->batch;
    size_t bytes = batch ? (size_t)(cpl_tensor_elements(&r->out[0]) / batch) * element : 0;
    const char *from = (const char *)r->in[0].data;
    char *to = (char *)r->out[0].data;
    for (int64_t i = 0; i < rows.active; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)(rows.first + i * rows.stride) * bytes, bytes);
    if (batch > rows.active)
        memset(to + (size_t)rows.active * bytes, 0, (size_t)(batch - rows.active) * bytes);
}

static void forward(const cpl_run_context *r)
{
    cpl_take_forward(r, sizeof(real));
}

static void backward(const cpl_run_context *r)
{
    cpl_take_rows rows = cpl_take_rows_of(r);
    int64_t batch = r->binding->batch, n = batch ? cpl_tensor_elements(&r->dout[0]) / batch : 0;
    if (!r->din[0].data)
        return;
    cpl_run_zero(r, r->din[0].data, cpl_tensor_elements(&r->din[0]));
    for (int64_t i = 0; r->dout[0].data && i < rows.active; i++)
        memcpy(r->din[0].data + (rows.first + i * rows.stride) * n, r->dout[0].data + i * n, (size_t)n * sizeof(real));
}

cpl_status cpl_take_check(const cpl_shape_context *s, cpl_error *err)
{
    const cpl_take_attributes *a = s->attributes;
    char text[160];
    const cpl_type *x = s->in[0];
    int sound = !x || (x->rank >= 2 && x->dim[0].kind == CPL_DIM_BATCH &&
                       (x->dim[1].kind == CPL_DIM_PADDED || x->dim[1].kind == CPL_DIM_TIME));
    for (int k = 2; x && sound && k < x->rank; k++)
        sound = x->dim[k].kind == CPL_DIM_FEATURE;
    if (!sound)
        CPL_FAIL(err, CPL_USAGE, "take: expected x [batch t ...] or [batch padded ...], got '%s' %s", s->in_path[0],
                 cpl_type_text(x, text, sizeof text));
    if (a->step < 0)
        CPL_FAIL(err, CPL_USAGE, "take: the step is %d, expected 0 or more", (int)a->step);
    return CPL_OK;
}

cpl_status cpl_take_shape(cpl_shape_context *s, cpl_error *err)
{
    cpl_type *y = &s->out[0];
    (void)err;
    *y = *s->in[0];
    y->rank--;
    for (int k = 1; k < y->rank; k++)
        y->dim[k] = y->dim[k + 1];
    return CPL_OK;
}

static const char *const tests[] = {"attr.0=0 ...=batch,t,3", "attr.0=2 ...=batch,s,2,5", "attr.0=1 ...=batch,padded,3",
                                    "attr.0=50 ...=batch,padded,3", NULL};

const cpl_op cpl_op_take = {
    .name = "take",
    .doc = "one step of a time axis",
    .signature = "x[...] -> y[...]",
    .flags = CPL_OP_CHEAP,
    .attributes = sizeof(cpl_take_attributes),
    .check = cpl_take_check,
    .shape = cpl_take_shape,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
