/* print_ids.c: print.c for ids. */
#include <string.h>
#include "ops/rows.h"
#include "ops/summary.h"

static void forward(const cpl_run_context *r)
{
    cpl_summary_tell(r);
    size_t bytes = (size_t)cpl_tensor_elements(&r->out[0]) * sizeof(int32_t);
    if (r->out[0].ids && bytes)
        memmove(r->out[0].ids, r->in[0].ids, bytes);
}

static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    (void)err;
    s->out[0].vocabulary = s->in[0]->vocabulary;
    s->out[0].entries = s->in[0]->entries;
    return CPL_OK;
}

static const char *const tests[] = {"...=batch,t", "...=batch,padded", NULL};

const cpl_op cpl_op_print_ids = {
    .name = "print_ids",
    .doc = "tells name, shape and a summary of ids when the graph runs",
    .signature = "id x[...] -> id y[...]",
    .flags = CPL_OP_EFFECT | CPL_OP_RANDOM | CPL_OP_NO_GRADIENT | CPL_OP_LOCAL,
    .shape = shape,
    .forward = forward,
    .tests = tests,
};
