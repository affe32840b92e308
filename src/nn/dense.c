/* dense.c: y = f(x·kernel + bias), Glorot-uniform kernel [in units], or an embedding's table [units in] read along
 * its rows. */
#include "graph/attributes.h"
#include "graph/graph.h"

cpl_node *cpl_dense(cpl_graph *g, const char *name, cpl_node *x, const cpl_dense_options *o)
{
    cpl_enter(g, name);
    static const char *const activations[] = {"linear", "tanh", "sigmoid", "relu"};
    int known = o->activation >= 0 && o->activation < 4;
    if (!known)
        cpl_graph_fail(g, cpl_graph_path(g, ""), "activation is %d, expected 0 to 3", o->activation);
    cpl_graph_layer(g, "dense units=%lld activation=%s%s%s", (long long)o->units,
                    known ? activations[o->activation] : "", o->no_bias ? " no_bias" : "", o->tied ? " tied" : "");
    const char *dim = o->dim ? o->dim : "units";
    long long units = o->units, in = cpl_node_last_size(x);
    cpl_node *kernel = o->tied ? o->tied
                               : cpl_parameter(g, "kernel", CPL_GLOROT_UNIFORM, "in=%lld %s=%lld", in, dim, units);
    cpl_node *bias = o->no_bias ? NULL : cpl_parameter(g, "bias", CPL_ZEROS, "%s=%lld", dim, units);
    cpl_activation_attributes attributes = {.activation = CPL_LINEAR};
    cpl_node *y = o->tied ? cpl_apply(g, "linear_tied", NULL, (cpl_node *[]){x, kernel, bias}, 3)
                          : cpl_apply(g, "linear", &attributes, (cpl_node *[]){x, kernel, bias}, 3);
    if (o->activation) {
        attributes.activation = o->activation;
        y = cpl_apply(g, "activation", &attributes, (cpl_node *[]){y}, 1);
    }
    cpl_leave(g);
    return y;
}
