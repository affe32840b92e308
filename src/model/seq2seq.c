/* seq2seq.c: the graphs of a kind that is an encoder with a decoder, and what travels between them. What is computed
 * is in encoder.c and decoder.c; the kinds differ in the defaults of their configuration. */
#include <string.h>
#include "model/parts.h"

/* Dot and general compare with the encoder's outputs and mix them: keys and values are one. */
static int has_keys(const cpl_config *c)
{
    int score = c->model.decoder.attention.score;
    return score == CPL_ATTEND_MULTIHEAD || score == CPL_ATTEND_ADDITIVE;
}

/* Each step of decoding would make the same of the keys again: they are handed over prepared as well. */
static int is_additive(const cpl_config *c)
{
    return c->model.decoder.attention.score == CPL_ATTEND_ADDITIVE;
}

static int has_values(const cpl_config *c)
{
    return c->model.decoder.attention.score != CPL_ATTEND_NONE;
}

static cpl_node *input_source(cpl_graph *g, const cpl_model_sizes *n)
{
    return cpl_input(g, "source", CPL_ID("source", n->source_vocabulary), "batch s");
}

/* Decoder and loss over whole targets. loss: what is reported; *minimized: the same with smoothed labels, and with the
 * loss of the coverage added where it has a weight. */
static cpl_model_decoded whole(cpl_graph *g, const cpl_model_sizes *n, cpl_loss_result *loss, cpl_node **minimized)
{
    int copies = n->config->model.copy;
    cpl_input_type labels = copies ? CPL_EXTENDED_ID : CPL_ID("target", n->target_vocabulary);
    cpl_node *in = cpl_input(g, "target_in", CPL_ID("target", n->target_vocabulary), "batch t");
    cpl_node *target_out = cpl_input(g, "target_out", labels, "batch t");
    cpl_model_encoded e = cpl_model_encode(g, n, input_source(g, n), NULL, NULL);
    cpl_attention_memory memory = cpl_model_memory(g, n, e.y);
    cpl_model_states before = cpl_model_begin(g, n, &e);
    cpl_model_decoded d = cpl_model_decode(g, n, in, memory, &before);
    cpl_node *plain = NULL;
    if (copies)
        *loss = cpl_copying_cross_entropy(g, d.logits, &(cpl_copying){
            .gate = d.gate, .weights = d.weights, .ids = cpl_input(g, "copy", CPL_EXTENDED_ID, "batch s")}, target_out);
    else
        *loss = cpl_smoothed_cross_entropy(g, d.logits, target_out, n->config->training.label_smoothing, &plain);
    *minimized = loss->loss;
    if (plain)
        loss->loss = plain;
    if (n->config->model.coverage > 0)
        *minimized = cpl_add(g, *minimized, cpl_scale(g, cpl_coverage(g, d.weights, target_out),
                                                      n->config->model.coverage));
    return d;
}

void cpl_seq2seq_loss(cpl_graph *g, const void *user)
{
    cpl_loss_result r;
    cpl_node *minimized;
    whole(g, user, &r, &minimized);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "accuracy", r.accuracy);
    cpl_output(g, "count", r.count);
    cpl_minimize(g, minimized);
}

void cpl_seq2seq_score(cpl_graph *g, const void *user)
{
    cpl_loss_result r;
    cpl_node *minimized;
    cpl_model_decoded d = whole(g, user, &r, &minimized);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "logits", d.logits);
    if (d.gate)
        cpl_output(g, "gate", d.gate);
    if (d.weights)
        cpl_output(g, "weights", d.weights);
}

void cpl_seq2seq_predict(cpl_graph *g, const void *user)
{
    const cpl_model_sizes *n = user;
    cpl_node *in = cpl_input(g, "target_in", CPL_ID("target", n->target_vocabulary), "batch t");
    cpl_model_encoded e = cpl_model_encode(g, n, input_source(g, n), NULL, NULL);
    cpl_attention_memory memory = cpl_model_memory(g, n, e.y);
    cpl_model_states before = cpl_model_begin(g, n, &e);
    cpl_output(g, "next", cpl_argmax(g, cpl_model_decode(g, n, in, memory, &before).logits));
}

void cpl_seq2seq_encode(cpl_graph *g, const void *user)
{
    const cpl_model_sizes *n = user;
    cpl_model_encoded e = cpl_model_encode(g, n, input_source(g, n), NULL, NULL);
    cpl_attention_memory memory = cpl_model_memory(g, n, e.y);
    cpl_model_states before = cpl_model_begin(g, n, &e);
    if (has_keys(n->config))
        cpl_output(g, "keys", memory.keys);
    if (has_values(n->config))
        cpl_output(g, "values", memory.values);
    if (is_additive(n->config))
        cpl_output(g, "prepared", cpl_additive_attention_prepare(g, memory.keys));
    for (int64_t k = 0; k < n->config->model.decoder.layers; k++) {
        if (before.h[k])
            cpl_output(g, cpl_model_h[k], before.h[k]);
        if (before.c[k])
            cpl_output(g, cpl_model_c[k], before.c[k]);
    }
}

/* project 0: up to the projection, which nothing then reads, so that it is left out. */
static void step(cpl_graph *g, const cpl_model_sizes *n, int project)
{
    const cpl_config *c = n->config;
    int64_t units = c->model.units, layers = c->model.decoder.layers;
    int lstm = c->model.decoder.cell == CPL_CELL_LSTM;
    cpl_attention_memory memory = {.keys = NULL};
    cpl_model_states before = {.feed = NULL};
    if (has_values(c))
        memory.values = cpl_input(g, "values", CPL_REALS(cpl_model_context_width(c)), "batch s keys");
    memory.keys = has_keys(c) ? cpl_input(g, "keys", CPL_REALS(units), "batch s keys") : memory.values;
    if (is_additive(c))
        memory.prepared = cpl_input(g, "prepared", CPL_REALS(units), "batch s keys");
    for (int64_t k = 0; k < layers; k++) {
        before.h[k] = cpl_input(g, cpl_model_h[k], CPL_REALS(units), "batch units");
        before.c[k] = lstm ? cpl_input(g, cpl_model_c[k], CPL_REALS(units), "batch units") : NULL;
    }
    if (c->model.decoder.input_feed)
        before.feed = cpl_input(g, "feed", CPL_REALS(cpl_model_feed_width(c)), "batch units");
    cpl_node *token = cpl_input(g, "token", CPL_ID("target", n->target_vocabulary), "batch t");
    cpl_model_decoded d = cpl_model_decode(g, n, token, memory, &before);
    cpl_output(g, project ? "logits" : "features", project ? d.logits : d.features);
    if (d.gate)
        cpl_output(g, "gate", d.gate);
    if (d.weights)
        cpl_output(g, "weights", d.weights);
    for (int64_t k = 0; k < layers; k++) {
        cpl_output(g, cpl_model_h[k], d.states.h[k]);
        if (lstm)
            cpl_output(g, cpl_model_c[k], d.states.c[k]);
    }
    if (d.states.feed)
        cpl_output(g, "feed", d.states.feed);
}

void cpl_seq2seq_step(cpl_graph *g, const void *user)
{
    step(g, user, 1);
}

void cpl_seq2seq_features(cpl_graph *g, const void *user)
{
    step(g, user, 0);
}

void cpl_seq2seq_describe(const cpl_model_sizes *n, cpl_model_description *d)
{
    const cpl_config *c = n->config;
    memset(d, 0, sizeof *d);
    if (has_keys(c))
        d->memory[d->memories++] = (cpl_model_part){"keys", c->model.units};
    if (has_values(c))
        d->memory[d->memories++] = (cpl_model_part){"values", cpl_model_context_width(c)};
    if (is_additive(c))
        d->memory[d->memories++] = (cpl_model_part){"prepared", c->model.units};
    d->projection = "decoder.output";
    d->table = cpl_model_table(n);
    d->copies = c->model.copy;
    d->starts = c->model.decoder.initial_state != CPL_STATE_ZERO;
    for (int64_t k = 0; k < c->model.decoder.layers; k++) {
        d->state[d->states++] = (cpl_model_part){cpl_model_h[k], c->model.units};
        if (c->model.decoder.cell == CPL_CELL_LSTM)
            d->state[d->states++] = (cpl_model_part){cpl_model_c[k], c->model.units};
    }
    if (c->model.decoder.input_feed)
        d->state[d->states++] = (cpl_model_part){"feed", cpl_model_feed_width(c)};
}
