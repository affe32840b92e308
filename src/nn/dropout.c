/* dropout.c: a rate of 0 appends nothing. */
#include "graph/attributes.h"
#include "graph/graph.h"
#include "nn/dropout.h"

static int valid(cpl_graph *g, double rate)
{
    if (rate >= 0 && rate < 1)
        return 1;
    cpl_graph_fail(g, cpl_graph_path(g, "dropout"), "rate is %g, expected at least 0 and below 1", rate);
    return 0;
}

float cpl_weight_dropout(cpl_graph *g, double rate, uint32_t *call)
{
    *call = 0;
    if (!valid(g, rate) || rate == 0)
        return 0;
    *call = (uint32_t)g->next_uid + 1;
    return (float)rate;
}

cpl_node *cpl_dropout(cpl_graph *g, cpl_node *x, double rate)
{
    return cpl_dropout_of(g, x, rate, CPL_DROP_ELEMENTS);
}

cpl_node *cpl_dropout_words(cpl_graph *g, cpl_node *x, double rate)
{
    return cpl_dropout_of(g, x, rate, CPL_DROP_ROWS);
}

cpl_node *cpl_dropout_of(cpl_graph *g, cpl_node *x, double rate, uint32_t what)
{
    if (!valid(g, rate))
        return &g->poison;
    if (rate == 0)
        return x;
    cpl_dropout_attributes attributes = {.rate = (float)rate, .what = what};
    return cpl_apply(g, "dropout", &attributes, (cpl_node *[]){x}, 1);
}
