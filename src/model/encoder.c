/* encoder.c: embedding and recurrent layers, each reading its source in one or both directions; the merged outputs of
 * one feed the next. */
#include "model/parts.h"
#include "nn/directions.h"

cpl_cell cpl_model_cell(int choice)
{
    static const cpl_cell cells[] = {
        [CPL_CELL_GRU] = CPL_GRU, [CPL_CELL_GRU_RESET_BEFORE] = CPL_GRU_RESET_BEFORE, [CPL_CELL_LSTM] = CPL_LSTM};
    return cells[choice];
}

cpl_initializer cpl_model_recurrent(const cpl_config *c)
{
    return c->model.recurrent_initializer == CPL_INITIALIZER_ORTHOGONAL ? CPL_ORTHOGONAL : CPL_GLOROT_UNIFORM;
}

const char *cpl_model_layer(int64_t layer)
{
    static const char *const names[CPL_LAYERS] = {"rnn", "rnn_2", "rnn_3", "rnn_4"};
    return names[layer];
}

static cpl_merge merge_of(int choice)
{
    static const cpl_merge merges[] = {[CPL_MERGE_SUM] = CPL_SUM,
                                       [CPL_MERGE_CONCAT] = CPL_CONCAT,
                                       [CPL_MERGE_AVERAGE] = CPL_AVERAGE,
                                       [CPL_MERGE_MULTIPLY] = CPL_MULTIPLY};
    return merges[choice];
}

int64_t cpl_model_encoder_width(const cpl_config *c)
{
    int wide = c->model.encoder.direction == CPL_DIRECTION_BOTH && c->model.encoder.merge == CPL_MERGE_CONCAT;
    return c->model.units * (wide ? 2 : 1);
}

static cpl_rnn_result layer(cpl_graph *g, const cpl_config *c, int64_t k, cpl_node *x, cpl_node *h, cpl_node *c_state)
{
    cpl_cell cell = cpl_model_cell(c->model.encoder.cell);
    cpl_initializer recurrent = cpl_model_recurrent(c);
    if (c->model.encoder.direction != CPL_DIRECTION_BOTH)
        return cpl_rnn(g, cpl_model_layer(k), x, &(cpl_rnn_options){
            .cell = cell, .units = c->model.units, .recurrent_initializer = recurrent, .h = h, .c = c_state,
            .dropout = c->model.dropout.recurrent,
            .reverse = c->model.encoder.direction == CPL_DIRECTION_BACKWARD});
    cpl_merge how = merge_of(c->model.encoder.merge);
    cpl_bidirectional_result b = cpl_bidirectional(g, cpl_model_layer(k), x, &(cpl_bidirectional_options){
        .cell = cell, .units = c->model.units, .merge = how, .recurrent_initializer = recurrent,
        .dropout = c->model.dropout.recurrent,
        .forward_h = h, .forward_c = c_state, .backward_h = h, .backward_c = c_state});
    /* the last states are joined as the outputs are */
    return (cpl_rnn_result){.y = b.y, .h = cpl_merge_directions(g, how, b.forward.h, b.backward.h),
                            .c = cpl_merge_directions(g, how, b.forward.c, b.backward.c)};
}

cpl_model_encoded cpl_model_encode(cpl_graph *g, const cpl_model_sizes *n, cpl_node *source, cpl_node *h, cpl_node *c)
{
    const cpl_config *config = n->config;
    cpl_model_encoded e = {.y = NULL};
    cpl_node *x = cpl_model_embed(g, n, source, 0);
    cpl_enter(g, "encoder");
    x = cpl_dropout(g, cpl_dropout_words(g, x, config->model.dropout.word), config->model.dropout.embedding);
    for (int64_t k = 0; k < config->model.encoder.layers; k++) {
        cpl_rnn_result r = layer(g, config, k, x, k == 0 ? h : NULL, k == 0 ? c : NULL);
        e.states.h[k] = r.h, e.states.c[k] = r.c;
        x = k > 0 && config->model.encoder.residual ? cpl_add(g, r.y, x) : r.y;
        x = cpl_dropout(g, x, config->model.dropout.layer);
    }
    if (config->model.bottleneck > 0) {
        int64_t last = config->model.encoder.layers - 1;
        e.states.h[last] = cpl_dense(g, "bottleneck", e.states.h[last], &(cpl_dense_options){
            .units = config->model.bottleneck, .activation = 1});
        e.states.c[last] = NULL;
    }
    cpl_leave(g);
    e.y = x;
    return e;
}
