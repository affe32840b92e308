/* take_ids.c: take.c for ids; sentences that have no such step get 0, the padding. */
#include "graph/attributes.h"
#include "ops/take.h"

static void forward(const cpl_run_context *r)
{
    cpl_take_forward(r, sizeof(int32_t));
}

static const char *const tests[] = {"attr.0=0 ...=batch,t", "attr.0=2 ...=batch,padded", NULL};

const cpl_op cpl_op_take_ids = {
    .name = "take_ids",
    .doc = "ids of one step of a time axis",
    .signature = "id x[...] -> id y[...]",
    .flags = CPL_OP_NO_GRADIENT | CPL_OP_CHEAP,
    .attributes = sizeof(cpl_take_attributes),
    .check = cpl_take_check,
    .shape = cpl_take_shape,
    .forward = forward,
    .tests = tests,
};
