/* from_now.c: [batch now u] → [batch u]: the way back from to_now.c.
 *
 *   dx = dy
 */
#include "ops/rows.h"

static const char *const tests[] = {"u=3", "u=17", NULL};

const cpl_op cpl_op_from_now = {
    .name = "from_now",
    .doc = "a sequence of one step as a row of each sentence",
    .signature = "x[batch now u] -> y[batch u]",
    .flags = CPL_OP_IN_PLACE | CPL_OP_CHEAP,
    .forward = cpl_pass_on,
    .backward = cpl_pass_back,
    .tests = tests,
};
