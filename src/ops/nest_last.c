/* nest_last.c: the state of a nested loop after each sentence's last inner step, for each outer step.
 *
 *   h[outer row] = y at the last inner step of its sentence; h0 (or 0) for a sentence without inner steps
 *   dy = dh at those rows, zero elsewhere        dh0 = dh of the sentences without inner steps, zero elsewhere
 */
#include "base/error.h"
#include "ops/nest_rows.h"

/* Copies the rows of sentences without inner steps, or zeros without x. */
static void copy_empty(const cpl_run_context *r, const real *x, real *y, int64_t n)
{
    const cpl_nest_attributes *a = r->attributes;
    const cpl_geometry *t = &r->geometry[a->outer], *s = &r->geometry[a->inner];
    for (int64_t k = 0; k < t->longest; k++)
        for (int64_t i = 0; i < cpl_geometry_active(t, k); i++) {
            int64_t row = t->offset[k] + i;
            if (s->length[s->position[t->sentence[i]]] > 0)
                continue;
            if (x)
                memcpy(y + row * n, x + row * n, (size_t)n * sizeof(real));
            else
                memset(y + row * n, 0, (size_t)n * sizeof(real));
        }
}

static void forward(const cpl_run_context *r)
{
    int64_t n = r->out[0].width;
    for (cpl_nest_rows x = cpl_nest_begin(r); cpl_nest_next(&x);)
        if (x.last)
            memcpy(r->out[0].data + x.outer_row * n, r->in[0].data + x.row * n, (size_t)n * sizeof(real));
    copy_empty(r, r->in[1].data, r->out[0].data, n);
}

static void backward(const cpl_run_context *r)
{
    int64_t n = r->out[0].width;
    if (r->din[1].data) {
        cpl_run_zero(r, r->din[1].data, r->din[1].rows * n);
        if (r->dout[0].data)
            copy_empty(r, r->dout[0].data, r->din[1].data, n);
    }
    if (!r->din[0].data)
        return;
    cpl_run_zero(r, r->din[0].data, r->din[0].rows * n);
    for (cpl_nest_rows x = cpl_nest_begin(r); r->dout[0].data && cpl_nest_next(&x);)
        if (x.last)
            memcpy(r->din[0].data + x.row * n, r->dout[0].data + x.outer_row * n, (size_t)n * sizeof(real));
}

/* Without h0 only the attributes know the outer time; its name is set by the builder. */
static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    const cpl_nest_attributes *a = s->attributes;
    (void)err;
    s->out[0] = *s->in[0];
    s->out[0].dim[1] = (cpl_dim){.name = "outer", .symbol = a->outer, .kind = CPL_DIM_TIME};
    return CPL_OK;
}

static const char *const tests[] = {NULL}; /* tests/nn/test_nests.c: lines know no nested time */

const cpl_op cpl_op_nest_last = {
    .name = "nest_last",
    .doc = "the state of a nested loop after its last step",
    .signature = "y[batch s u] h0[batch t u]? -> h[batch t u]",
    .flags = CPL_OP_LOCAL,
    .attributes = sizeof(cpl_nest_attributes),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
