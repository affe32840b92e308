/* cell.c: one step of a recurrent cell, for bodies of loops: two products and the gates. An LSTM's parameters are those
 * of cpl_rnn, so a whole-sequence layer and a loop can share them; a GRU's two rows of bias are two parameters here. */
#include "graph/attributes.h"
#include "graph/graph.h"

static cpl_node *product(cpl_graph *g, cpl_node *x, cpl_node *w, cpl_node *b)
{
    cpl_activation_attributes linear = {.activation = CPL_LINEAR};
    return cpl_apply(g, "linear", &linear, (cpl_node *[]){x, w, b}, 3);
}

static int64_t last_size(const cpl_node *x)
{
    const cpl_type *type = cpl_node_type(x);
    return type && type->rank ? type->dim[type->rank - 1].size : 0;
}

void cpl_lstm_step(cpl_graph *g, const char *name, cpl_node *x, cpl_node **h, cpl_node **c, int64_t units)
{
    cpl_enter(g, name);
    cpl_graph_layer(g, "lstm units=%lld", (long long)units);
    long long in = last_size(x), wide = 4 * units;
    cpl_node *w = cpl_parameter(g, "kernel", CPL_GLOROT_UNIFORM, "in=%lld gates=%lld", in, wide);
    cpl_node *r = cpl_parameter(g, "recurrent_kernel", CPL_GLOROT_UNIFORM, "units=%lld gates=%lld", (long long)units,
                                wide);
    cpl_node *b = cpl_parameter(g, "bias", CPL_LSTM_BIAS, "gates=%lld", wide);
    cpl_node *xg = product(g, x, w, b), *hg = product(g, *h, r, NULL);
    *h = cpl_apply(g, "lstm_cell", NULL, (cpl_node *[]){xg, hg, *c}, 3);
    *c = cpl_node_output(*h, 1);
    cpl_leave(g);
}

void cpl_gru_step(cpl_graph *g, const char *name, cpl_node *x, cpl_node **h, int64_t units)
{
    cpl_enter(g, name);
    cpl_graph_layer(g, "gru units=%lld", (long long)units);
    long long in = last_size(x), wide = 3 * units;
    cpl_node *w = cpl_parameter(g, "kernel", CPL_GLOROT_UNIFORM, "in=%lld gates=%lld", in, wide);
    cpl_node *r = cpl_parameter(g, "recurrent_kernel", CPL_GLOROT_UNIFORM, "units=%lld gates=%lld", (long long)units,
                                wide);
    cpl_node *xg = product(g, x, w, cpl_parameter(g, "bias", CPL_ZEROS, "gates=%lld", wide));
    cpl_node *hg = product(g, *h, r, cpl_parameter(g, "recurrent_bias", CPL_ZEROS, "gates=%lld", wide));
    *h = cpl_apply(g, "gru_cell", NULL, (cpl_node *[]){xg, hg, *h}, 3);
    cpl_leave(g);
}
