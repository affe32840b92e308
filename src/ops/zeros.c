/* zeros.c: y = 0 for each sentence of x's batch: the first state of a loop in the host language. */
#include "base/error.h"
#include "graph/attributes.h"
#include "ops/rows.h"

static void forward(const cpl_run_context *r)
{
    cpl_run_zero(r, r->out[0].data, cpl_tensor_elements(&r->out[0]));
}

static cpl_status check(const cpl_shape_context *s, cpl_error *err)
{
    char text[160];
    if (s->in[0] && cpl_type_find(s->in[0], CPL_DIM_BATCH) < 0)
        CPL_FAIL(err, CPL_USAGE, "zeros: expected x over batch, got '%s' %s", s->in_path[0],
                 cpl_type_text(s->in[0], text, sizeof text));
    return CPL_OK;
}

static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    const cpl_zeros_attributes *a = s->attributes;
    cpl_type *y = &s->out[0];
    (void)err;
    *y = (cpl_type){.element = CPL_ELEMENT_REAL, .rank = 2, .order = s->in[0]->order};
    y->dim[0] = s->in[0]->dim[cpl_type_find(s->in[0], CPL_DIM_BATCH)];
    y->dim[1] = (cpl_dim){.name = "units", .size = a->units, .symbol = CPL_NO_SYMBOL, .kind = CPL_DIM_FEATURE};
    return CPL_OK;
}

static const char *const tests[] = {"attr.0=3 ...=batch,t,5", "attr.0=17 ...=batch", NULL};

const cpl_op cpl_op_zeros = {
    .name = "zeros",
    .doc = "zeros for each sentence",
    .signature = "x[...] -> y[...]",
    .flags = CPL_OP_NO_GRADIENT | CPL_OP_CHEAP,
    .attributes = sizeof(cpl_zeros_attributes),
    .check = check,
    .shape = shape,
    .forward = forward,
    .tests = tests,
};
