/* pointer_cross_entropy.c: projection to the vocabulary, copying from the source, and masked
 * cross-entropy of the mixture, in blocks of rows (pointer_loss.c). */
#include "ops/loss.h"

enum { IN_WEIGHTS = 4, OUT_DX = 3 };

static size_t workspace(const cpl_size_context *s)
{
    return cpl_pointer_loss_workspace(s, 0);
}

static void forward(const cpl_run_context *r)
{
    cpl_pointer_loss_forward(r, 0);
}

static double flops(const cpl_size_context *s)
{
    return cpl_loss_flops(s, OUT_DX, 0);
}

static void backward(const cpl_run_context *r)
{
    cpl_loss_backward(r, IN_WEIGHTS + 1, OUT_DX);
}

static cpl_status check(const cpl_shape_context *s, cpl_error *err)
{
    return cpl_one_head_check(s, IN_WEIGHTS, "copying", err);
}

static const char *const tests[] = {
    "...= in=3 vocab=5 more=3",
    "...= in=17 vocab=7 more=1 b=absent",
    "...= in=1 vocab=1 more=17",
    "...= in=5 vocab=17 more=2",
    NULL
};

const cpl_op cpl_op_pointer_cross_entropy = {
    .name = "pointer_cross_entropy",
    .doc = "masked cross-entropy of a mixture of the vocabulary and copying from the source, without whole logits",
    .signature = "x[batch t in] w[in =vocab] b[vocab]? gate[batch t 1] weights[... batch t s] id copy[batch s] "
                 "id target[batch t] -> loss[] correct[] count[] "
                 "; dx[batch t in] dw[in vocab] db[vocab] dgate[batch t 1] dweights[... batch t s]",
    .flags = CPL_OP_READY | CPL_OP_BLOCKS,
    .weights = 1 << 1,
    .adds = 1u << (OUT_DX + 1) | 1u << (OUT_DX + 2),
    .check = check,
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .tests = tests,
};
