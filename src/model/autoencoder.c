/* autoencoder.c: reference B's wish: an encoder that learns from text alone, label = input, START and END included.
 *
 *   model.bottleneck 0: source ─ encoder ─► outputs ─ output ─► logits of each position
 *   model.bottleneck N: source ─ encoder ─► one vector of N units ─ bridge ─► decoder ─► logits, step by step
 *
 * The first has no decoder, so nothing can be left behind when its encoder is taken out. In the second the decoder's
 * input is its labels one step late, as everywhere (case C13). */
#include <string.h>
#include "model/parts.h"

static cpl_node *logits_of(cpl_graph *g, const cpl_model_sizes *n)
{
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", n->source_vocabulary), "batch s");
    cpl_node *y = cpl_model_encode(g, n, source, NULL, NULL).y;
    return cpl_dense(g, "output", y, &(cpl_dense_options){
        .units = n->target_vocabulary, .dim = "vocab", .tied = cpl_model_tied(g, n)});
}

/* *plain: the loss that is reported; the result's own is minimised, with smoothed labels. */
static cpl_loss_result whole(cpl_graph *g, const cpl_model_sizes *n, cpl_node **logits, cpl_node **plain)
{
    *logits = logits_of(g, n);
    cpl_node *labels = cpl_input(g, "labels", CPL_ID("target", n->target_vocabulary), "batch s");
    return cpl_smoothed_cross_entropy(g, *logits, labels, n->config->training.label_smoothing, plain);
}

static void loss(cpl_graph *g, const void *user)
{
    cpl_node *logits, *plain;
    cpl_loss_result r = whole(g, user, &logits, &plain);
    cpl_output(g, "loss", plain);
    cpl_output(g, "accuracy", r.accuracy);
    cpl_output(g, "count", r.count);
    cpl_minimize(g, r.loss);
}

static void score(cpl_graph *g, const void *user)
{
    cpl_node *logits, *plain;
    whole(g, user, &logits, &plain);
    cpl_output(g, "loss", plain);
    cpl_output(g, "logits", logits);
}

static void encode(cpl_graph *g, const void *user)
{
    cpl_output(g, "logits", logits_of(g, user));
}

static void describe(const cpl_model_sizes *n, cpl_model_description *d)
{
    (void)n;
    memset(d, 0, sizeof *d);
    d->mirrors = 1;
}

const cpl_model_kind cpl_autoencoder = {
    .name = "autoencoder", .describe = describe, .loss = loss, .score = score, .encode = encode};

/* encoder.c makes the vector, decoder.c the bridge from it. */
const cpl_model_kind cpl_bottleneck = {.name = "autoencoder",
                                       .describe = cpl_seq2seq_describe,
                                       .loss = cpl_seq2seq_loss,
                                       .score = cpl_seq2seq_score,
                                       .predict = cpl_seq2seq_predict,
                                       .encode = cpl_seq2seq_encode,
                                       .step = cpl_seq2seq_step,
                                       .features = cpl_seq2seq_features};
