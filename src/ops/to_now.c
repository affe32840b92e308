/* to_now.c: [batch u] → [batch now u]: one row of each sentence as a sequence of one step, so that what asks a
 * sequence (attention) can be asked by a state. The same memory; x stands in the caller's order, as `now` does.
 *
 *   dx = dy
 */
#include "graph/attributes.h"
#include "ops/rows.h"

static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    const cpl_now_attributes *a = s->attributes;
    cpl_type *y = &s->out[0];
    (void)err;
    y->rank = 3;
    y->dim[2] = y->dim[1];
    y->dim[1] = (cpl_dim){.name = "now", .symbol = a->symbol, .kind = CPL_DIM_TIME};
    return CPL_OK;
}

static const char *const tests[] = {"u=3 attr.0=3", "u=1 attr.0=3", NULL};

const cpl_op cpl_op_to_now = {
    .name = "to_now",
    .doc = "a row of each sentence as a sequence of one step",
    .signature = "x[batch u] -> y[batch u]",
    .flags = CPL_OP_IN_PLACE | CPL_OP_CHEAP,
    .attributes = sizeof(cpl_now_attributes),
    .shape = shape,
    .forward = cpl_pass_on,
    .backward = cpl_pass_back,
    .tests = tests,
};
