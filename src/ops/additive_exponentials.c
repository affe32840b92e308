/* additive_exponentials.c: what additive attention's keys have in common for all queries: e = e^2k (kernel.h). Made
 * once before a loop and handed to each step beside k. A copy of k in other words, not a path of its own: the gradient
 * of additive_attention for k holds all of it, so this op has none. */
#include "ops/rows.h"

static void run_chunk(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    cpl_span s = cpl_span_of(task, CPL_CHUNK, cpl_tensor_elements(&r->in[0]));
    (void)thread;
    r->kernels->additive_exponentials(s.to - s.from, r->in[0].data + s.from, r->out[0].data + s.from);
}

static void forward(const cpl_run_context *r)
{
    cpl_run_tasks(r, cpl_chunks(cpl_tensor_elements(&r->in[0])), run_chunk, &r);
}

static const char *const tests[] = {"n=3", "n=17 ...=batch,s", NULL};

const cpl_op cpl_op_additive_exponentials = {
    .name = "additive_exponentials",
    .doc = "exponentials of the keys of additive attention, for its steps in a loop",
    .signature = "k[... n] -> e[... n]",
    .flags = CPL_OP_NO_GRADIENT | CPL_OP_LOCAL | CPL_OP_CHEAP,
    .forward = forward,
    .tests = tests,
};
