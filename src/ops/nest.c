/* nest.c: what each step of a nested loop sees of a tensor outside it.
 *
 *   over the inner time: y[row] = x[the row's inner step]: again for each outer step
 *   over the outer time: y[row] = x[the row's outer step]: again for each inner step
 *   dx = Σ dy over the rows that saw it
 */
#include "base/error.h"
#include "ops/nest_rows.h"

static int64_t row_of(const cpl_nest_rows *x, const cpl_nest_attributes *a)
{
    return a->over_outer ? x->outer_row : x->inner_row;
}

static void forward(const cpl_run_context *r)
{
    const cpl_nest_attributes *a = r->attributes;
    int64_t n = r->out[0].width;
    for (cpl_nest_rows x = cpl_nest_begin(r); cpl_nest_next(&x);)
        memcpy(r->out[0].data + x.row * n, r->in[0].data + row_of(&x, a) * n, (size_t)n * sizeof(real));
}

static void backward(const cpl_run_context *r)
{
    const cpl_nest_attributes *a = r->attributes;
    int64_t n = r->din[0].width;
    if (!r->din[0].data)
        return;
    cpl_run_zero(r, r->din[0].data, r->din[0].rows * n);
    if (!r->dout[0].data)
        return;
    for (cpl_nest_rows x = cpl_nest_begin(r); cpl_nest_next(&x);)
        r->kernels->axpy(n, 1, r->dout[0].data + x.row * n, r->din[0].data + row_of(&x, a) * n);
}

static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    const cpl_nest_attributes *a = s->attributes;
    (void)err;
    s->out[0] = *s->in[0];
    s->out[0].dim[1] = (cpl_dim){.name = "nested", .symbol = a->symbol, .kind = CPL_DIM_TIME};
    return CPL_OK;
}

static const char *const tests[] = {NULL}; /* tests/nn/test_nests.c: lines know no nested time */

const cpl_op cpl_op_nest = {
    .name = "nest",
    .doc = "what each step of a nested loop sees of a tensor outside it",
    .signature = "x[batch t u] -> y[batch s u]",
    .flags = CPL_OP_LOCAL,
    .attributes = sizeof(cpl_nest_attributes),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
