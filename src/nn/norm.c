/* norm.c: layer normalisation (Ba et al. 2016), gamma from 1 and beta from 0. */
#include "graph/attributes.h"
#include "graph/graph.h"

cpl_node *cpl_layer_norm(cpl_graph *g, const char *name, cpl_node *x, double epsilon)
{
    cpl_enter(g, name);
    cpl_graph_layer(g, "layer_norm epsilon=%g", epsilon > 0 ? epsilon : 1e-3);
    const cpl_type *type = cpl_node_type(x);
    const cpl_dim *last = type && type->rank ? &type->dim[type->rank - 1] : NULL;
    long long n = last ? last->size : 0;
    cpl_node *gamma = cpl_parameter(g, "gamma", CPL_ONES, "units=%lld", n);
    cpl_node *beta = cpl_parameter(g, "beta", CPL_ZEROS, "units=%lld", n);
    cpl_layer_norm_attributes attributes = {.epsilon = (float)(epsilon > 0 ? epsilon : 1e-3)};
    cpl_node *y = cpl_apply(g, "layer_norm", &attributes, (cpl_node *[]){x, gamma, beta}, 3);
    cpl_leave(g);
    return y;
}
