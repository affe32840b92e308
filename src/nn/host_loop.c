/* host_loop.c: what a model needs that is unrolled by a loop in C: one step of a sequence, the first state, and the
 * steps put together again. */
#include <string.h>
#include "graph/attributes.h"
#include "graph/graph.h"

cpl_node *cpl_take(cpl_graph *g, cpl_node *x, int step)
{
    const cpl_type *type = cpl_node_type(x);
    cpl_take_attributes attributes = {.step = step};
    return cpl_apply(g, type && type->element == CPL_ELEMENT_ID ? "take_ids" : "take", &attributes, (cpl_node *[]){x},
                     1);
}

cpl_node *cpl_zeros(cpl_graph *g, cpl_node *like, int64_t units)
{
    cpl_zeros_attributes attributes = {.units = (int32_t)units};
    if (units < 1 || units > INT32_MAX) {
        cpl_graph_fail(g, cpl_graph_path(g, "zeros"), "units is %lld, expected 1 or more", (long long)units);
        return &g->poison;
    }
    return cpl_apply(g, "zeros", &attributes, (cpl_node *[]){like}, 1);
}

/* A put would move x only where sequences came before it. */
static cpl_node *in_order(cpl_graph *g, cpl_node *x, int order)
{
    const cpl_type *type = cpl_node_type(x);
    if (!type || type->order == order || cpl_type_times(type) || cpl_type_find(type, CPL_DIM_BATCH) != 0)
        return x; /* what is wrong with it the signature says */
    cpl_reorder_attributes attributes = {.from = type->order, .to = order};
    cpl_node *y = cpl_apply(g, "reorder", &attributes, (cpl_node *[]){x}, 1);
    if (y->value >= 0)
        g->values[y->value].type.order = order;
    return y;
}

cpl_node *cpl_stack(cpl_graph *g, cpl_node *const *steps, int n, const char *time)
{
    if (cpl_graph_failed(g))
        return &g->poison;
    if (n < 1 || (strcmp(time, "s") != 0 && strcmp(time, "t") != 0)) {
        cpl_graph_fail(g, cpl_graph_path(g, "stack"), n < 1 ? "there are no steps to stack over '%s'" :
                       "'%s' is no time word, expected 's' or 't'", time);
        return &g->poison;
    }
    int symbol = cpl_graph_symbol(g, time, strlen(time), CPL_DIM_TIME, "stack");
    cpl_node *rows = NULL;
    for (int k = 0; k < n; k++) {
        cpl_put_attributes attributes = {.symbol = symbol, .word = time[0], .step = k, .steps = n};
        rows = cpl_apply(g, "put", &attributes, (cpl_node *[]){rows, in_order(g, steps[k], symbol)}, 2);
    }
    return rows;
}
