/* elementwise.c: builders of ops that have no parameters. */
#include "graph/attributes.h"
#include "graph/graph.h"

cpl_node *cpl_add(cpl_graph *g, cpl_node *a, cpl_node *b)
{
    return cpl_apply(g, "add", NULL, (cpl_node *[]){a, b}, 2);
}

cpl_node *cpl_multiply(cpl_graph *g, cpl_node *a, cpl_node *b)
{
    return cpl_apply(g, "multiply", NULL, (cpl_node *[]){a, b}, 2);
}

cpl_node *cpl_scale(cpl_graph *g, cpl_node *x, double factor)
{
    cpl_scale_attributes attributes = {.factor = (float)factor};
    return cpl_apply(g, "scale", &attributes, (cpl_node *[]){x}, 1);
}

cpl_node *cpl_sum(cpl_graph *g, cpl_node *x)
{
    return cpl_apply(g, "sum", NULL, (cpl_node *[]){x}, 1);
}

cpl_node *cpl_concat(cpl_graph *g, cpl_node *a, cpl_node *b)
{
    return cpl_apply(g, "concat", NULL, (cpl_node *[]){a, b}, 2);
}

cpl_node *cpl_tanh(cpl_graph *g, cpl_node *x)
{
    cpl_activation_attributes attributes = {.activation = CPL_TANH};
    return cpl_apply(g, "activation", &attributes, (cpl_node *[]){x}, 1);
}

cpl_node *cpl_mean_time(cpl_graph *g, cpl_node *x)
{
    return cpl_apply(g, "mean_time", NULL, (cpl_node *[]){x}, 1);
}

cpl_node *cpl_argmax(cpl_graph *g, cpl_node *x)
{
    return cpl_apply(g, "argmax", NULL, (cpl_node *[]){x}, 1);
}

cpl_loss_result cpl_masked_cross_entropy(cpl_graph *g, cpl_node *logits, cpl_node *targets)
{
    cpl_node *plain;
    return cpl_smoothed_cross_entropy(g, logits, targets, 0, &plain);
}

cpl_loss_result cpl_smoothed_cross_entropy(cpl_graph *g, cpl_node *logits, cpl_node *targets, double smoothing,
                                           cpl_node **plain)
{
    cpl_loss_result r;
    cpl_loss_attributes attributes = {.smoothing = (float)smoothing};
    if (!(smoothing >= 0 && smoothing < 1))
        cpl_graph_fail(g, cpl_graph_path(g, ""), "the smoothing of a loss is %g, expected 0 … below 1", smoothing);
    r.loss = cpl_apply(g, "cross_entropy", &attributes, (cpl_node *[]){logits, targets}, 2);
    r.accuracy = cpl_node_output(r.loss, 1);
    r.count = cpl_node_output(r.loss, 2);
    *plain = cpl_node_output(r.loss, 3);
    return r;
}
