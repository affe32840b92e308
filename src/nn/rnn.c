/* rnn.c: a recurrent layer over whole sequences: parameters of the cell, one op. */
#include "graph/attributes.h"
#include "graph/graph.h"
#include "nn/dropout.h"

static const struct {
    const char *name, *op;
    int gates, states;
} cells[] = {
    [CPL_GRU] = {"gru", "gru", 3, 1},
    [CPL_GRU_RESET_BEFORE] = {"gru_reset_before", "gru_before", 3, 1},
    [CPL_LSTM] = {"lstm", "lstm", 4, 2},
};

/* Case A07: a sequence, or a state of another width, in the place of a state. */
static void check_state(cpl_graph *g, const char *which, cpl_node *state, const cpl_rnn_options *o)
{
    const cpl_type *type = state ? cpl_node_type(state) : NULL;
    if (!type || cpl_graph_failed(g))
        return;
    char text[160];
    const char *path = g->values[state->value].path, *here = cpl_graph_path(g, "");
    cpl_type_text(type, text, sizeof text);
    if (type->rank == 2 && cpl_type_find(type, CPL_DIM_BATCH) == 0 && type->dim[1].size == o->units)
        return;
    if (cpl_type_times(type))
        cpl_graph_fail(g, here, "%s needs %d initial state%s [batch units=%lld] (%s), but %s is the sequence '%s' %s"
                       CPL_HINT "take the states that a recurrent layer gives besides its outputs: result.h%s",
                       cells[o->cell].name, cells[o->cell].states, cells[o->cell].states > 1 ? "s" : "",
                       (long long)o->units, cells[o->cell].states > 1 ? "h and c" : "h", which, path, text,
                       cells[o->cell].states > 1 ? " and result.c" : "");
    else
        cpl_graph_fail(g, here, "initial state %s must be [batch units=%lld], but '%s' is %s" CPL_HINT
                       "a concatenation of two directions is twice as wide: sum or average them, use a dense layer "
                       "between, or give the layer units=%lld", which, (long long)o->units, path, text,
                       (long long)type->dim[type->rank - 1].size);
}

cpl_rnn_result cpl_rnn(cpl_graph *g, const char *name, cpl_node *x, const cpl_rnn_options *o)
{
    cpl_enter(g, name);
    int gates = cells[o->cell].gates, lstm = o->cell == CPL_LSTM;
    long long in = cpl_node_last_size(x), wide = gates * o->units;
    cpl_graph_layer(g, "%s units=%lld%s%s", cells[o->cell].name, (long long)o->units, o->reverse ? " reverse" : "",
                    o->recurrent_initializer == CPL_ORTHOGONAL ? " orthogonal" : "");
    if (o->units <= 0)
        cpl_graph_fail(g, cpl_graph_path(g, ""), "units is %lld, expected at least 1", (long long)o->units);
    check_state(g, "h", o->h, o);
    check_state(g, "c", lstm ? o->c : NULL, o);
    cpl_initializer recurrent = o->recurrent_initializer == CPL_ZEROS ? CPL_GLOROT_UNIFORM : o->recurrent_initializer;
    cpl_node *w = cpl_parameter(g, "kernel", CPL_GLOROT_UNIFORM, "in=%lld gates=%lld", in, wide);
    cpl_node *r = cpl_parameter(g, "recurrent_kernel", recurrent, "units=%lld gates=%lld", (long long)o->units, wide);
    cpl_node *b = o->cell == CPL_GRU ? cpl_parameter(g, "bias", CPL_ZEROS, "rows=2 gates=%lld", wide)
                                     : cpl_parameter(g, "bias", lstm ? CPL_LSTM_BIAS : CPL_ZEROS, "gates=%lld", wide);
    cpl_recurrent_attributes attributes = {.reverse = o->reverse};
    attributes.dropout = cpl_weight_dropout(g, o->dropout, &attributes.call);
    cpl_node *inputs[] = {x, w, r, b, o->h, o->c};
    cpl_rnn_result result = {.y = cpl_apply(g, cells[o->cell].op, &attributes, inputs, lstm ? 6 : 5)};
    result.h = cpl_node_output(result.y, 1);
    result.c = lstm ? cpl_node_output(result.y, 2) : NULL;
    cpl_leave(g);
    return result;
}
