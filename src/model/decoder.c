/* decoder.c: embedding, recurrent layers, attention over the encoder's outputs, projection to the vocabulary.
 *
 *   after the cell    y = rnn(x)             a = attention(query y)        logits = output(combine(a, y))
 *   before the cell   a_t = attention(query h_{t−1})   h_t = cell(combine(a_t, x_t))   logits = output(h_t)
 *
 *   input_feed        y_t = rnn([x_t f_{t−1}])     f_t = combine(attention(query y_t), y_t)      logits = output(f_t)
 *
 * x are the embedded tokens, h the state of the last layer. combine is layer_norm(y + a), [a y], or tanh(W [a y]).
 * After the cell all steps are one call of each op; before it, or where what it found is fed back, a loop runs what a
 * state depends on step by step, and embedding and projection stay outside. */
#include "model/parts.h"

const char *const cpl_model_h[CPL_LAYERS] = {"h", "h_2", "h_3", "h_4"};
const char *const cpl_model_c[CPL_LAYERS] = {"c", "c_2", "c_3", "c_4"};

static cpl_attention_options attention_of(const cpl_config *c)
{
    static const cpl_score scores[] = {[CPL_ATTEND_DOT] = CPL_SCORE_DOT,
                                       [CPL_ATTEND_GENERAL] = CPL_SCORE_GENERAL,
                                       [CPL_ATTEND_ADDITIVE] = CPL_SCORE_ADDITIVE,
                                       [CPL_ATTEND_MULTIHEAD] = CPL_SCORE_MULTIHEAD};
    const cpl_config_attention *a = &c->model.decoder.attention;
    return (cpl_attention_options){.heads = a->heads, .key_units = c->model.units,
                                   .dropout = c->model.dropout.attention,
                                   .score = a->score == CPL_ATTEND_NONE ? CPL_SCORE_MULTIHEAD : scores[a->score]};
}

cpl_attention_memory cpl_model_memory(cpl_graph *g, const cpl_model_sizes *n, cpl_node *encoded)
{
    cpl_attention_memory memory = {.keys = NULL};
    cpl_attention_options o = attention_of(n->config);
    if (n->config->model.decoder.attention.score == CPL_ATTEND_NONE)
        return memory;
    cpl_enter(g, "decoder");
    memory = cpl_attention_project(g, "attention", encoded, &o, n->config->model.units);
    cpl_leave(g);
    return memory;
}

int64_t cpl_model_context_width(const cpl_config *c)
{
    return c->model.decoder.attention.score == CPL_ATTEND_MULTIHEAD ? c->model.units : cpl_model_encoder_width(c);
}

int64_t cpl_model_feed_width(const cpl_config *c)
{
    int wide = c->model.decoder.attention.combine == CPL_COMBINE_CONCAT;
    return c->model.units + (wide ? cpl_model_context_width(c) : 0);
}

/* ---- the first states ---- */

/* One dense layer for each state of each layer, over what the encoder's last layer ended with. An LSTM's h is a tanh
 * and so is the bridge to it; c has no bounds. A GRU encoder has no c: both then come from h. */
static cpl_model_states bridge(cpl_graph *g, const cpl_config *c, const cpl_model_states *encoder)
{
    cpl_model_states s = {.feed = NULL};
    int64_t last = c->model.encoder.layers - 1;
    cpl_node *h = encoder->h[last], *cell = encoder->c[last] ? encoder->c[last] : h;
    cpl_enter(g, "decoder");
    cpl_enter(g, "bridge");
    for (int64_t k = 0; k < c->model.decoder.layers; k++) {
        s.h[k] = cpl_dense(g, cpl_model_h[k], h, &(cpl_dense_options){.units = c->model.units, .activation = 1});
        if (c->model.decoder.cell == CPL_CELL_LSTM)
            s.c[k] = cpl_dense(g, cpl_model_c[k], cell, &(cpl_dense_options){.units = c->model.units});
    }
    cpl_leave(g);
    cpl_leave(g);
    return s;
}

cpl_model_states cpl_model_begin(cpl_graph *g, const cpl_model_sizes *n, const cpl_model_encoded *e)
{
    const cpl_config *c = n->config;
    if (c->model.decoder.initial_state == CPL_STATE_BRIDGE)
        return bridge(g, c, &e->states);
    cpl_model_states s = {.feed = NULL};
    for (int64_t k = 0; c->model.decoder.initial_state == CPL_STATE_ENCODER && k < c->model.decoder.layers; k++) {
        s.h[k] = e->states.h[k];
        s.c[k] = c->model.decoder.cell == CPL_CELL_LSTM ? e->states.c[k] : NULL;
    }
    return s;
}

/* ---- what is common to both positions ---- */

/* What the attention found joins x: the cell's output, or its input. */
static cpl_node *combine(cpl_graph *g, const cpl_config *c, cpl_node *found, cpl_node *x)
{
    switch (c->model.decoder.attention.combine) {
    case CPL_COMBINE_CONCAT:
        return cpl_concat(g, found, x);
    case CPL_COMBINE_TANH:
        return cpl_dense(g, "combine", cpl_concat(g, found, x),
                         &(cpl_dense_options){.units = c->model.units, .activation = 1, .no_bias = 1});
    default:
        return cpl_layer_norm(g, "norm", cpl_add(g, x, found), 0);
    }
}

/* The output of layer k over its input: residuals begin with the second. */
static cpl_node *through(cpl_graph *g, const cpl_config *c, int64_t k, cpl_node *y, cpl_node *x)
{
    return k > 0 && c->model.decoder.residual ? cpl_add(g, y, x) : y;
}

/* ---- after the cell ---- */

static cpl_node *after(cpl_graph *g, const cpl_config *c, cpl_node *x, cpl_attention_memory memory,
                       const cpl_model_states *before, cpl_model_decoded *d)
{
    for (int64_t k = 0; k < c->model.decoder.layers; k++) {
        x = k > 0 ? cpl_dropout(g, x, c->model.dropout.layer) : x;
        cpl_rnn_result r = cpl_rnn(g, cpl_model_layer(k), x, &(cpl_rnn_options){
            .cell = cpl_model_cell(c->model.decoder.cell), .units = c->model.units, .h = before->h[k],
            .c = before->c[k], .recurrent_initializer = cpl_model_recurrent(c), .dropout = c->model.dropout.recurrent});
        d->states.h[k] = r.h, d->states.c[k] = r.c;
        x = through(g, c, k, r.y, x);
    }
    if (c->model.decoder.attention.score == CPL_ATTEND_NONE)
        return x;
    cpl_attention_options o = attention_of(c);
    cpl_attention_result a = cpl_attention_query(g, "attention", x, memory, &o);
    d->weights = a.weights;
    d->context = a.y;
    d->y = x;
    return combine(g, c, a.y, x);
}

/* ---- before the cell, and after it with input feeding: step by step ---- */

typedef struct stepping {
    const cpl_config *config;
    cpl_attention_memory memory;
} stepping;

static cpl_node *step_layer(cpl_graph *g, cpl_loop *loop, const cpl_config *c, int64_t k, cpl_node *x)
{
    int lstm = c->model.decoder.cell == CPL_CELL_LSTM;
    cpl_node *h = cpl_loop_state(loop, cpl_model_h[k]), *cell = lstm ? cpl_loop_state(loop, cpl_model_c[k]) : NULL;
    cpl_cell_step(g, cpl_model_layer(k), x, &h, &cell, &(cpl_rnn_options){
        .cell = cpl_model_cell(c->model.decoder.cell), .units = c->model.units,
        .recurrent_initializer = cpl_model_recurrent(c), .dropout = c->model.dropout.recurrent});
    cpl_loop_next(loop, cpl_model_h[k], h);
    if (lstm)
        cpl_loop_next(loop, cpl_model_c[k], cell);
    return through(g, c, k, h, x);
}

static cpl_node *layers(cpl_graph *g, cpl_loop *loop, const cpl_config *c, cpl_node *x)
{
    for (int64_t k = 0; k < c->model.decoder.layers; k++)
        x = step_layer(g, loop, c, k, k > 0 ? cpl_dropout(g, x, c->model.dropout.layer) : x);
    return x;
}

static void feeding_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    const stepping *s = user;
    cpl_attention_options o = attention_of(s->config);
    cpl_node *x = cpl_concat(g, cpl_loop_slice(loop, "x"), cpl_loop_state(loop, "feed"));
    cpl_node *cell = layers(g, loop, s->config, x);
    cpl_attention_result a = cpl_attention_query(g, "attention", cell, s->memory, &o);
    cpl_node *y = combine(g, s->config, a.y, cell);
    cpl_loop_next(loop, "feed", y);
    cpl_loop_emit(loop, "y", y);
    cpl_loop_emit(loop, "weights", a.weights);
    if (!s->config->model.copy)
        return;
    cpl_loop_emit(loop, "context", a.y);
    cpl_loop_emit(loop, "cell", cell);
}

static void before_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    const stepping *s = user;
    const cpl_config *c = s->config;
    cpl_attention_options o = attention_of(c);
    cpl_node *query = cpl_loop_state(loop, cpl_model_h[c->model.decoder.layers - 1]);
    cpl_attention_result a = cpl_attention_query(g, "attention", query, s->memory, &o);
    cpl_node *x = combine(g, c, a.y, cpl_loop_slice(loop, "x"));
    cpl_loop_emit(loop, "y", layers(g, loop, c, x));
    cpl_loop_emit(loop, "weights", a.weights);
    if (c->model.copy)
        cpl_loop_emit(loop, "context", a.y);
}

static cpl_node *steps(cpl_graph *g, const cpl_config *c, cpl_node *x, cpl_attention_memory memory,
                       const cpl_model_states *before, cpl_model_decoded *d)
{
    int feeds = c->model.decoder.input_feed;
    stepping s = {.config = c, .memory = memory};
    cpl_scan_options o = {.name = "rnn", .time = "t", .inputs = {{"x", x, 0}}};
    int lstm = c->model.decoder.cell == CPL_CELL_LSTM, count = 0;
    for (int64_t k = 0; k < c->model.decoder.layers; k++) {
        o.states[count++] = (cpl_loop_value){cpl_model_h[k], before->h[k], c->model.units};
        if (lstm)
            o.states[count++] = (cpl_loop_value){cpl_model_c[k], before->c[k], c->model.units};
    }
    if (feeds)
        o.states[count++] = (cpl_loop_value){"feed", before->feed, cpl_model_feed_width(c)};
    cpl_loop *loop = cpl_scan(g, &o, feeds ? feeding_body : before_body, &s);
    for (int64_t k = 0; k < c->model.decoder.layers; k++) {
        d->states.h[k] = cpl_loop_final(loop, cpl_model_h[k]);
        d->states.c[k] = lstm ? cpl_loop_final(loop, cpl_model_c[k]) : NULL;
    }
    d->states.feed = feeds ? cpl_loop_final(loop, "feed") : NULL;
    d->weights = cpl_loop_output(loop, "weights");
    if (c->model.copy)
        d->context = cpl_loop_output(loop, "context");
    d->y = cpl_loop_output(loop, c->model.copy && feeds ? "cell" : "y");
    return cpl_loop_output(loop, "y");
}

/* ---- copying ---- */

/* What the attention found, the cell's output and the token before say whether the next word is one to copy. */
static cpl_node *gate(cpl_graph *g, const cpl_model_decoded *d, cpl_node *token)
{
    cpl_node *x = cpl_concat(g, cpl_concat(g, d->context, d->y), token);
    return cpl_dense(g, "copy", x, &(cpl_dense_options){.units = 1, .dim = "gate"});
}

cpl_model_decoded cpl_model_decode(cpl_graph *g, const cpl_model_sizes *n, cpl_node *tokens,
                                   cpl_attention_memory memory, const cpl_model_states *before)
{
    const cpl_config *c = n->config;
    const cpl_config_attention *a = &c->model.decoder.attention;
    cpl_model_decoded d = {.logits = NULL};
    cpl_node *x = cpl_model_embed(g, n, tokens, 1), *tied = cpl_model_tied(g, n);
    cpl_enter(g, "decoder");
    x = cpl_dropout(g, cpl_dropout_words(g, x, c->model.dropout.word), c->model.dropout.embedding);
    cpl_node *token = x;
    if (c->model.decoder.input_feed || (a->position == CPL_POSITION_BEFORE && a->score != CPL_ATTEND_NONE))
        x = steps(g, c, x, memory, before, &d);
    else
        x = after(g, c, x, memory, before, &d);
    x = cpl_dropout(g, x, c->model.dropout.layer);
    if (c->model.copy)
        d.gate = gate(g, &d, token);
    d.features = x;
    d.logits = cpl_dense(g, "output", x, &(cpl_dense_options){
        .units = n->target_vocabulary, .dim = "vocab", .tied = tied});
    cpl_leave(g);
    return d;
}
