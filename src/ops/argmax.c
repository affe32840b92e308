/* argmax.c: the number of the first largest entry of each row, −1 where the row holds a NaN. No gradient. */
#include "ops/rows.h"

static void find(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    int64_t n = cpl_last_size(r->in[0].type);
    cpl_span s = cpl_span_of(task, cpl_chunk_rows(n), cpl_tensor_elements(&r->out[0]));
    (void)thread;
    r->kernels->argmax(s.to - s.from, n, r->in[0].data + s.from * n, n, r->out[0].ids + s.from);
}

static void forward(const cpl_run_context *r)
{
    int64_t n = cpl_last_size(r->in[0].type);
    cpl_run_tasks(r, cpl_row_chunks(cpl_tensor_elements(&r->out[0]), n), find, &r);
}

/* The ids count in the last dimension. */
static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    (void)err;
    s->out[0].vocabulary = s->in[0]->dim[s->in[0]->rank - 1].name;
    s->out[0].entries = cpl_last_size(s->in[0]);
    return CPL_OK;
}

static const char *const tests[] = {"n=5", "n=1 ...=batch", "n=17 ...=batch,s", NULL};

const cpl_op cpl_op_argmax = {
    .name = "argmax",
    .doc = "number of the first largest entry",
    .signature = "x[... n] -> id y[...]",
    .flags = CPL_OP_NO_GRADIENT | CPL_OP_LOCAL,
    .shape = shape,
    .forward = forward,
    .tests = tests,
};
