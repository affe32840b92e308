/* dropout.c: a rate of 0 appends nothing. */
#include "graph/attributes.h"
#include "graph/graph.h"

cpl_node *cpl_dropout(cpl_graph *g, cpl_node *x, double rate)
{
    if (!(rate >= 0 && rate < 1)) {
        cpl_graph_fail(g, cpl_graph_path(g, "dropout"), "rate is %g, expected at least 0 and below 1", rate);
        return &g->poison;
    }
    if (rate == 0)
        return x;
    cpl_dropout_attributes attributes = {.rate = (float)rate};
    return cpl_apply(g, "dropout", &attributes, (cpl_node *[]){x}, 1);
}
