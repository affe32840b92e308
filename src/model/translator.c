/* translator.c: reference B. Encoder: embedding, recurrent layer in one or both directions. Decoder: embedding,
 * recurrent layer from a zero state, multi-head attention over the encoder's outputs queried by the recurrent
 * outputs, residual and layer normalisation, projection to the vocabulary. */
#include <string.h>
#include "model/model.h"

static cpl_cell cell_of(int choice)
{
    static const cpl_cell cells[] = {
        [CPL_CELL_GRU] = CPL_GRU, [CPL_CELL_GRU_RESET_BEFORE] = CPL_GRU_RESET_BEFORE, [CPL_CELL_LSTM] = CPL_LSTM};
    return cells[choice];
}

static cpl_merge merge_of(int choice)
{
    static const cpl_merge merges[] = {[CPL_MERGE_SUM] = CPL_SUM,
                                       [CPL_MERGE_CONCAT] = CPL_CONCAT,
                                       [CPL_MERGE_AVERAGE] = CPL_AVERAGE,
                                       [CPL_MERGE_MULTIPLY] = CPL_MULTIPLY};
    return merges[choice];
}

static cpl_initializer recurrent_of(const cpl_config *c)
{
    return c->model.recurrent_initializer == CPL_INITIALIZER_ORTHOGONAL ? CPL_ORTHOGONAL : CPL_GLOROT_UNIFORM;
}

static cpl_attention_options attention_of(const cpl_config *c)
{
    return (cpl_attention_options){.heads = c->model.decoder.attention.heads};
}

/* source ids [batch s] → keys and values [batch s keys]. */
static cpl_attention_memory encoder(cpl_graph *g, const cpl_model_sizes *n)
{
    const cpl_config *c = n->config;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", n->source_vocabulary), "batch s");
    cpl_enter(g, "encoder");
    cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){
        .size = n->source_vocabulary, .units = cpl_config_embedding(c)});
    x = cpl_dropout(g, x, c->model.dropout);
    cpl_cell cell = cell_of(c->model.encoder.cell);
    if (c->model.encoder.direction == CPL_DIRECTION_BOTH)
        x = cpl_bidirectional(g, "rnn", x, &(cpl_bidirectional_options){
            .cell = cell, .units = c->model.units, .merge = merge_of(c->model.encoder.merge),
            .recurrent_initializer = recurrent_of(c)}).y;
    else
        x = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){
            .cell = cell, .units = c->model.units, .recurrent_initializer = recurrent_of(c),
            .reverse = c->model.encoder.direction == CPL_DIRECTION_BACKWARD}).y;
    x = cpl_dropout(g, x, c->model.dropout);
    cpl_leave(g);
    cpl_enter(g, "decoder");
    cpl_attention_options o = attention_of(c);
    cpl_attention_memory memory = cpl_attention_project(g, "attention", x, &o, c->model.units);
    cpl_leave(g);
    return memory;
}

typedef struct decoded {
    cpl_node *logits, *weights;
    cpl_rnn_result rnn;
} decoded;

/* tokens [batch t] and the state before them → logits [batch t vocab] and the state after them. The same for a whole
 * target (training) and for one token (a step). */
static decoded decoder(cpl_graph *g, const cpl_model_sizes *n, cpl_node *tokens, cpl_attention_memory memory,
                       cpl_node *h, cpl_node *c_state)
{
    const cpl_config *c = n->config;
    cpl_enter(g, "decoder");
    cpl_node *x = cpl_embedding(g, "embedding", tokens, &(cpl_embedding_options){
        .size = n->target_vocabulary, .units = cpl_config_embedding(c)});
    x = cpl_dropout(g, x, c->model.dropout);
    decoded d;
    d.rnn = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){
        .cell = cell_of(c->model.decoder.cell), .units = c->model.units, .h = h, .c = c_state,
        .recurrent_initializer = recurrent_of(c)});
    cpl_attention_options o = attention_of(c);
    cpl_attention_result a = cpl_attention_query(g, "attention", d.rnn.y, memory, &o);
    d.weights = a.weights;
    x = cpl_layer_norm(g, "norm", cpl_add(g, d.rnn.y, a.y), 0);
    x = cpl_dropout(g, x, c->model.dropout);
    d.logits = cpl_dense(g, "output", x, &(cpl_dense_options){.units = n->target_vocabulary, .dim = "vocab"});
    cpl_leave(g);
    return d;
}

static decoded whole(cpl_graph *g, const cpl_model_sizes *n, cpl_node **target_out)
{
    cpl_node *in = cpl_input(g, "target_in", CPL_ID("target", n->target_vocabulary), "batch t");
    *target_out = cpl_input(g, "target_out", CPL_ID("target", n->target_vocabulary), "batch t");
    cpl_attention_memory memory = encoder(g, n);
    return decoder(g, n, in, memory, NULL, NULL);
}

static void loss(cpl_graph *g, const void *user)
{
    cpl_node *target_out;
    decoded d = whole(g, user, &target_out);
    cpl_loss_result r = cpl_masked_cross_entropy(g, d.logits, target_out);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "accuracy", r.accuracy);
    cpl_output(g, "count", r.count);
    cpl_minimize(g, r.loss);
}

static void score(cpl_graph *g, const void *user)
{
    cpl_node *target_out;
    decoded d = whole(g, user, &target_out);
    cpl_loss_result r = cpl_masked_cross_entropy(g, d.logits, target_out);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "logits", d.logits);
    cpl_output(g, "weights", d.weights);
}

static void encode(cpl_graph *g, const void *user)
{
    cpl_attention_memory memory = encoder(g, user);
    cpl_output(g, "keys", memory.keys);
    cpl_output(g, "values", memory.values);
}

static void step(cpl_graph *g, const void *user)
{
    const cpl_model_sizes *n = user;
    int64_t units = n->config->model.units;
    int lstm = n->config->model.decoder.cell == CPL_CELL_LSTM;
    cpl_attention_memory memory = {.keys = cpl_input(g, "keys", CPL_REALS(units), "batch s keys"),
                                   .values = cpl_input(g, "values", CPL_REALS(units), "batch s keys")};
    cpl_node *h = cpl_input(g, "h", CPL_REALS(units), "batch units");
    cpl_node *c = lstm ? cpl_input(g, "c", CPL_REALS(units), "batch units") : NULL;
    cpl_node *token = cpl_input(g, "token", CPL_ID("target", n->target_vocabulary), "batch t");
    decoded d = decoder(g, n, token, memory, h, c);
    cpl_output(g, "logits", d.logits);
    cpl_output(g, "next", cpl_argmax(g, d.logits));
    cpl_output(g, "weights", d.weights);
    cpl_output(g, "h", d.rnn.h);
    if (lstm)
        cpl_output(g, "c", d.rnn.c);
}

static void describe(const cpl_model_sizes *n, cpl_model_description *d)
{
    int64_t units = n->config->model.units;
    memset(d, 0, sizeof *d);
    d->memory[d->memories++] = (cpl_model_part){"keys", units};
    d->memory[d->memories++] = (cpl_model_part){"values", units};
    d->state[d->states++] = (cpl_model_part){"h", units};
    if (n->config->model.decoder.cell == CPL_CELL_LSTM)
        d->state[d->states++] = (cpl_model_part){"c", units};
}

const cpl_model_kind cpl_translator = {
    .name = "translator", .describe = describe, .loss = loss, .score = score, .encode = encode, .step = step};

const cpl_model_kind *cpl_model_kind_of(const cpl_config *config)
{
    (void)config; /* one kind so far; the table of kinds grows with model.type */
    return &cpl_translator;
}
