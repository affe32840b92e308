/* cross_entropy.c: masked cross-entropy of logits that exist as a tensor.
 *
 *     loss = 1/count · Σ over rows with target ≠ 0 of (log Σ exp(logits) − logits[target])
 *     d loss/d logits = 1/count · (softmax(logits) − onehot(target)), 0 in rows with target 0
 *
 * Label 0 is padding: it has no loss and no gradient, but stays a class of the softmax. correct is the share of
 * counted rows whose first largest logit is the target. Without a counted row all outputs are 0. The gradient
 * falls out of the forward pass, so it is computed there (hidden output d). */
#include "ops/carve.h"
#include "ops/loss.h"

typedef struct entropy_space {
    real *loss, *correct; /* [rows] */
} entropy_space;

static entropy_space space(cpl_carve *c, int64_t rows)
{
    entropy_space s;
    s.loss = cpl_carve_reals(c, rows);
    s.correct = cpl_carve_reals(c, rows);
    return s;
}

static size_t workspace(const cpl_size_context *s)
{
    cpl_carve c = {0};
    if (!s->backward)
        space(&c, cpl_type_rows(s->in[1], s->binding));
    return c.used;
}

static cpl_status check(const cpl_shape_context *s, cpl_error *err)
{
    return cpl_loss_check(s, 0, 1, err);
}

static void forward(const cpl_run_context *r)
{
    cpl_carve c = {.base = r->workspace};
    entropy_space s = space(&c, r->in[1].rows);
    int64_t rows = r->in[0].rows, width = r->in[0].width, count = cpl_loss_count(&r->in[1]);
    real *d = r->out[3].data;

    if (d)
        cpl_run_copy(r, r->in[0].data, d, rows * width);
    /* Without gradient and bias the kernel only reads the logits. */
    cpl_loss_run(r, &(cpl_loss_rows){.rows = rows, .width = width, .logits = d ? d : r->in[0].data,
                                     .target = r->in[1].ids, .scale = count ? (real)1 / (real)count : 0,
                                     .gradient = d != NULL, .loss = s.loss, .correct = s.correct});
    cpl_loss_finish(r, count, s.loss, s.correct, rows);
}

static void backward(const cpl_run_context *r)
{
    cpl_loss_backward(r, 1, 3);
}

static double flops(const cpl_size_context *s)
{
    return 8.0 * (double)cpl_type_elements(s->in[0], s->binding);
}

static const char *const tests[] = {"vocab=5", "vocab=1", "vocab=17", NULL};

const cpl_op cpl_op_cross_entropy = {
    .name = "cross_entropy",
    .doc = "masked cross-entropy of logits: mean loss, share of correct tokens and number of tokens counted",
    .signature = "logits[batch t =vocab] id target[batch t] -> loss[] correct[] count[] ; d[batch t vocab]",
    .flags = CPL_OP_READY,
    .check = check,
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .tests = tests,
};
