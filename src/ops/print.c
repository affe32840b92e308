/* print.c: y = x; when the graph runs, a line about x goes to the program's message sink. Never while tracing.
 *
 *   dx = dy
 */
#include "ops/rows.h"
#include "ops/summary.h"

static void forward(const cpl_run_context *r)
{
    cpl_summary_tell(r);
    cpl_pass_on(r);
}

static const char *const tests[] = {"...=batch,t,3", "...=batch,padded,1", "...=7", NULL};

/* Two prints are never one: CPL_OP_RANDOM. */
const cpl_op cpl_op_print = {
    .name = "print",
    .doc = "tells name, shape and a summary of a tensor when the graph runs",
    .signature = "x[...] -> y[...]",
    .flags = CPL_OP_EFFECT | CPL_OP_RANDOM | CPL_OP_IN_PLACE | CPL_OP_PASS | CPL_OP_LOCAL,
    .forward = forward,
    .backward = cpl_pass_back,
    .tests = tests,
};
