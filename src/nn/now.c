/* now.c: rows of sentences as sequences of one step and back. The time word `now` has one step in every sentence and
 * stands in the caller's order. */
#include "nn/now.h"

#include "graph/attributes.h"

static void set_order(cpl_graph *g, cpl_node *x, int order)
{
    if (x->value >= 0)
        g->values[x->value].type.order = order;
}

static cpl_node *in_order(cpl_graph *g, cpl_node *x, int order)
{
    const cpl_type *type = cpl_node_type(x);
    if (!type || type->order == order)
        return x;
    cpl_reorder_attributes attributes = {.from = type->order, .to = order};
    cpl_node *y = cpl_apply(g, "reorder", &attributes, (cpl_node *[]){x}, 1);
    set_order(g, y, order);
    return y;
}

cpl_node *cpl_to_now(cpl_graph *g, cpl_node *x, int *lifted)
{
    const cpl_type *type = cpl_node_type(x);
    *lifted = type && type->rank == 2 && type->dim[0].kind == CPL_DIM_BATCH && type->dim[1].kind == CPL_DIM_FEATURE;
    if (!*lifted || cpl_graph_failed(g))
        return x;
    cpl_now_attributes attributes = {.symbol = cpl_graph_symbol(g, "now", 3, CPL_DIM_TIME, "now")};
    return cpl_apply(g, "to_now", &attributes, (cpl_node *[]){in_order(g, x, CPL_ORDER_CALLER)}, 1);
}

cpl_node *cpl_from_now(cpl_graph *g, cpl_node *y, int lifted)
{
    if (!lifted)
        return y;
    cpl_node *x = cpl_apply(g, "from_now", NULL, (cpl_node *[]){y}, 1);
    set_order(g, x, CPL_ORDER_CALLER);
    return x;
}
