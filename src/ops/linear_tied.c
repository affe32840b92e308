/* linear_tied.c: y = x·wᵀ + b: the projection to the vocabulary whose weights are the table of an embedding, a row for
 * each word.
 *
 *   dx = dy·w     dw = dyᵀ·x     db = Σ rows of dy
 */
#include "ops/projection.h"
#include "ops/rows.h"

static void forward(const cpl_run_context *r)
{
    cpl_projection p = cpl_projection_of(r, 1);
    int64_t rows = cpl_rows_of(cpl_tensor_elements(&r->in[0]), p.in);
    cpl_projection_forward(&p, rows, r->in[0].data, r->in[2].data, r->out[0].data);
}

static void backward(const cpl_run_context *r)
{
    cpl_projection p = cpl_projection_of(r, 1);
    int64_t rows = cpl_rows_of(cpl_tensor_elements(&r->in[0]), p.in);
    const real *dy = r->dout[0].data;
    for (int i = 0; !dy && i < 3; i++)
        if (r->din[i].data)
            cpl_run_zero(r, r->din[i].data, cpl_tensor_elements(&r->din[i]));
    if (dy && r->din[0].data)
        cpl_projection_input(&p, rows, dy, r->din[0].data);
    if (dy && r->din[1].data)
        cpl_projection_weights(&p, rows, r->in[0].data, dy, 0, r->din[1].data);
    if (dy && r->din[2].data)
        cpl_run_sum_rows(r, rows, p.vocab, dy, r->din[2].data);
}

/* What comes out is named as the bias is: logits over "vocab", not over the table's "entries". */
static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    (void)err;
    if (s->in[2] && s->out[0].rank > 0)
        s->out[0].dim[s->out[0].rank - 1].name = s->in[2]->dim[0].name;
    return CPL_OK;
}

static double flops(const cpl_size_context *s)
{
    return 2.0 * (double)cpl_type_elements(s->out[0], s->binding) * (double)s->in[1]->dim[1].size;
}

static const char *const tests[] = {"in=3 out=5", "in=5 out=3 ...=batch", "in=1 out=7 b=absent",
                                    "in=7 out=1 ...=batch,s", "in=3 out=2 b=absent ...=4", NULL};

const cpl_op cpl_op_linear_tied = {
    .name = "linear_tied",
    .doc = "projection by the table of an embedding: x·wᵀ + b",
    .signature = "x[... in] w[out in] b[out]? -> y[... out]",
    .flags = CPL_OP_LOCAL,
    .tables = 1 << 1,
    .keeps = CPL_KEEP_IN0 | CPL_KEEP_IN1,
    .for_weights = CPL_KEEP_IN0,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .tests = tests,
};
