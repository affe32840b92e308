/* linear_tied_cross_entropy.c: projection to the vocabulary by an embedding's table and masked cross-entropy in one,
 * in blocks of rows (linear_loss.c). */
#include "graph/attributes.h"
#include "ops/loss.h"

enum { IN_W = 1, IN_B = 2, IN_TARGET = 3, OUT_PLAIN = 3, OUT_DX = 4 };

static cpl_status check(const cpl_shape_context *s, cpl_error *err)
{
    return cpl_table_check(s, IN_W, IN_TARGET, err);
}

static size_t workspace(const cpl_size_context *s)
{
    return cpl_linear_loss_workspace(s, 1);
}

static void forward(const cpl_run_context *r)
{
    cpl_linear_loss_forward(r, 1);
}

static void backward(const cpl_run_context *r)
{
    cpl_loss_backward(r, IN_B + 1, OUT_DX);
}

static double flops(const cpl_size_context *s)
{
    return cpl_loss_flops(s, OUT_DX, 1);
}

static const char *const tests[] = {"in=3 vocab=5", "attr.0=0.1 in=3 vocab=5", "attr.0=0.3 in=17 vocab=300 b=absent",
                                     "in=17 vocab=7 b=absent", "in=1 vocab=1", NULL};

const cpl_op cpl_op_linear_tied_cross_entropy = {
    .name = "linear_tied_cross_entropy",
    .doc = "projection by an embedding's table and masked cross-entropy in blocks, without whole logits",
    .signature = "x[batch t in] w[=vocab in] b[vocab]? id target[batch t] "
                 "-> loss[] correct[] count[] plain[] ; dx[batch t in] dw[vocab in] db[vocab]",
    .flags = CPL_OP_READY | CPL_OP_BLOCKS,
    .tables = 1 << 1,
    .attributes = sizeof(cpl_loss_attributes),
    .reports = 1u << OUT_PLAIN,
    .adds = 1u << (OUT_DX + 1) | 1u << (OUT_DX + 2),
    .check = check,
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .tests = tests,
};
