/* cross_entropy.c: masked cross-entropy of logits that exist as a tensor.
 *
 *     loss = 1/count · Σ over rows with target ≠ 0 of (log Σ exp(logits) − logits[target])
 *     d loss/d logits = 1/count · (softmax(logits) − onehot(target)), 0 in rows with target 0
 *
 * Label 0 is padding: it has no loss and no gradient, but stays a class of the softmax. correct is the share of
 * counted rows whose first largest logit is the target, plain the loss without smoothing (loss.c: for training alone).
 * Without a counted row all outputs are 0. The gradient falls out of the forward pass, so it is computed there (hidden
 * output d). */
#include "graph/attributes.h"
#include "ops/carve.h"
#include "ops/loss.h"

enum { OUT_PLAIN = 3, OUT_D };

typedef struct entropy_space {
    real *loss, *correct, *smoothed; /* [rows] */
} entropy_space;

/* Of a loss that does not smooth, smoothed is loss. */
static entropy_space space(cpl_carve *c, int64_t rows, const void *attributes)
{
    entropy_space s;
    s.loss = cpl_carve_reals(c, rows);
    s.correct = cpl_carve_reals(c, rows);
    s.smoothed = ((const cpl_loss_attributes *)attributes)->smoothing > 0 ? cpl_carve_reals(c, rows) : s.loss;
    return s;
}

static size_t workspace(const cpl_size_context *s)
{
    cpl_carve c = {0};
    if (!s->backward)
        space(&c, cpl_type_rows(s->in[1], s->binding), s->attributes);
    return c.used;
}

static cpl_status check(const cpl_shape_context *s, cpl_error *err)
{
    return cpl_loss_check(s, 0, 1, err);
}

static void forward(const cpl_run_context *r)
{
    cpl_carve c = {.base = r->workspace};
    entropy_space s = space(&c, r->in[1].rows, r->attributes);
    int64_t rows = r->in[0].rows, width = r->in[0].width, count = cpl_loss_count(&r->in[1]);
    real *d = r->out[OUT_D].data, smoothing = cpl_loss_smoothing(r);

    if (d)
        cpl_run_copy(r, r->in[0].data, d, rows * width);
    /* Without gradient and bias the kernel only reads the logits. */
    cpl_loss_run(r, &(cpl_loss_rows){.rows = rows, .width = width, .logits = d ? d : r->in[0].data,
                                     .target = r->in[1].ids, .scale = count ? (real)1 / (real)count : 0,
                                     .gradient = d != NULL, .loss = s.loss, .correct = s.correct,
                                     .smoothing = smoothing, .smoothed = s.smoothed});
    cpl_loss_finish(r, count, smoothing > 0 ? s.smoothed : s.loss, s.correct, rows);
    cpl_loss_mean(&r->out[OUT_PLAIN], count, s.loss, rows);
}

static void backward(const cpl_run_context *r)
{
    cpl_loss_backward(r, 1, OUT_D);
}

static double flops(const cpl_size_context *s)
{
    return 8.0 * (double)cpl_type_elements(s->in[0], s->binding);
}

static const char *const tests[] = {"vocab=5", "vocab=1", "vocab=17", "attr.0=0.1 vocab=5", "attr.0=0.3 vocab=300",
                                    NULL};

const cpl_op cpl_op_cross_entropy = {
    .name = "cross_entropy",
    .doc = "masked cross-entropy of logits: mean loss, share of correct tokens and number of tokens counted",
    .signature = "logits[batch t =vocab] id target[batch t] -> loss[] correct[] count[] plain[] ; d[batch t vocab]",
    .flags = CPL_OP_READY,
    .attributes = sizeof(cpl_loss_attributes),
    .reports = 1u << OUT_PLAIN,
    .check = check,
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .tests = tests,
};
