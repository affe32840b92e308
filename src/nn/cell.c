/* cell.c: one step of a recurrent cell, for bodies of loops: two products and the gates. An LSTM's parameters are those
 * of cpl_rnn, so a whole-sequence layer and a loop can share them; a GRU's two rows of bias are two parameters here. */
#include "base/error.h"
#include "graph/attributes.h"
#include "graph/graph.h"
#include "nn/dropout.h"

static cpl_node *product(cpl_graph *g, cpl_node *x, cpl_node *w, cpl_node *b)
{
    cpl_activation_attributes linear = {.activation = CPL_LINEAR};
    return cpl_apply(g, "linear", &linear, (cpl_node *[]){x, w, b}, 3);
}

/* The state as the recurrent product reads it: with dropout the same elements are missing in all steps. */
static cpl_node *seen(cpl_graph *g, cpl_node *h, const cpl_rnn_options *o)
{
    return cpl_dropout_of(g, h, o->dropout, CPL_DROP_STEADY);
}

static void lstm_step(cpl_graph *g, cpl_node *x, cpl_node **h, cpl_node **c, const cpl_rnn_options *o,
                      cpl_initializer recurrent)
{
    int64_t units = o->units;
    cpl_graph_layer(g, "lstm units=%lld%s", (long long)units, recurrent == CPL_ORTHOGONAL ? " orthogonal" : "");
    long long in = cpl_node_last_size(x), wide = 4 * units;
    cpl_node *w = cpl_parameter(g, "kernel", CPL_GLOROT_UNIFORM, "in=%lld gates=%lld", in, wide);
    cpl_node *r = cpl_parameter(g, "recurrent_kernel", recurrent, "units=%lld gates=%lld", (long long)units, wide);
    cpl_node *b = cpl_parameter(g, "bias", CPL_LSTM_BIAS, "gates=%lld", wide);
    cpl_node *xg = product(g, x, w, b), *hg = product(g, seen(g, *h, o), r, NULL);
    *h = cpl_apply(g, "lstm_cell", NULL, (cpl_node *[]){xg, hg, *c}, 3);
    *c = cpl_node_output(*h, 1);
}

static void gru_step(cpl_graph *g, cpl_node *x, cpl_node **h, const cpl_rnn_options *o, cpl_initializer recurrent)
{
    int64_t units = o->units;
    cpl_graph_layer(g, "gru units=%lld%s", (long long)units, recurrent == CPL_ORTHOGONAL ? " orthogonal" : "");
    long long in = cpl_node_last_size(x), wide = 3 * units;
    cpl_node *w = cpl_parameter(g, "kernel", CPL_GLOROT_UNIFORM, "in=%lld gates=%lld", in, wide);
    cpl_node *r = cpl_parameter(g, "recurrent_kernel", recurrent, "units=%lld gates=%lld", (long long)units, wide);
    cpl_node *xg = product(g, x, w, cpl_parameter(g, "bias", CPL_ZEROS, "gates=%lld", wide));
    cpl_node *b = cpl_parameter(g, "recurrent_bias", CPL_ZEROS, "gates=%lld", wide);
    cpl_node *hg = product(g, seen(g, *h, o), r, b);
    *h = cpl_apply(g, "gru_cell", NULL, (cpl_node *[]){xg, hg, *h}, 3);
}

void cpl_cell_step(cpl_graph *g, const char *name, cpl_node *x, cpl_node **h, cpl_node **c, const cpl_rnn_options *o)
{
    cpl_initializer recurrent = o->recurrent_initializer == CPL_ZEROS ? CPL_GLOROT_UNIFORM : o->recurrent_initializer;
    cpl_enter(g, name);
    if (o->cell == CPL_GRU_RESET_BEFORE)
        cpl_graph_fail(g, cpl_graph_path(g, ""), "a gru_reset_before has no single steps for the body of a loop"
                       CPL_HINT "use a gru, which resets after the product, or an lstm");
    else if (o->cell == CPL_LSTM)
        lstm_step(g, x, h, c, o, recurrent);
    else
        gru_step(g, x, h, o, recurrent);
    cpl_leave(g);
}

void cpl_lstm_step(cpl_graph *g, const char *name, cpl_node *x, cpl_node **h, cpl_node **c, int64_t units)
{
    cpl_cell_step(g, name, x, h, c, &(cpl_rnn_options){.cell = CPL_LSTM, .units = units});
}

void cpl_gru_step(cpl_graph *g, const char *name, cpl_node *x, cpl_node **h, int64_t units)
{
    cpl_cell_step(g, name, x, h, NULL, &(cpl_rnn_options){.cell = CPL_GRU, .units = units});
}
