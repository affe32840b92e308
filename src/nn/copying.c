/* copying.c: the loss of a model that writes words of its vocabulary or copies words of the source. The logits are seen
 * through: what counts is the projection that makes them, which then runs in blocks of rows inside the loss. */
#include "graph/attributes.h"
#include "graph/graph.h"

/* The call that makes x, where it is a projection alone: linear without activation, or linear_tied; else NULL. */
static const cpl_call *projection_of(const cpl_graph *g, const cpl_node *x)
{
    int producer = x->value >= 0 ? g->values[x->value].producer : -1;
    const cpl_call *c = producer >= 0 ? &g->calls[producer] : NULL;
    if (!c || c->op == cpl_op_named("linear_tied"))
        return c;
    if (c->op != cpl_op_named("linear"))
        return NULL;
    return ((const cpl_activation_attributes *)c->attributes)->activation == CPL_LINEAR ? c : NULL;
}

cpl_loss_result cpl_copying_cross_entropy(cpl_graph *g, cpl_node *logits, const cpl_copying *copying,
                                          cpl_node *targets)
{
    const cpl_call *projection = projection_of(g, logits);
    cpl_loss_result r = {&g->poison, &g->poison, &g->poison};
    if (!projection && !cpl_graph_failed(g))
        cpl_graph_fail(g, cpl_graph_path(g, ""), "loss 'copying_cross_entropy' needs logits that a dense layer without "
                       "activation gives");
    if (!projection || cpl_graph_failed(g))
        return r;
    cpl_node part[3], *inputs[7] = {NULL, NULL, NULL, copying->gate, copying->weights, copying->ids, targets};
    for (int i = 0; i < projection->inputs; i++) {
        part[i] = (cpl_node){.graph = g, .value = projection->in[i]};
        inputs[i] = projection->in[i] >= 0 ? &part[i] : NULL;
    }
    const char *op = projection->op == cpl_op_named("linear") ? "pointer_cross_entropy" : "pointer_tied_cross_entropy";
    r.loss = cpl_apply(g, op, NULL, inputs, 7);
    r.accuracy = cpl_node_output(r.loss, 1);
    r.count = cpl_node_output(r.loss, 2);
    return r;
}

cpl_node *cpl_coverage(cpl_graph *g, cpl_node *weights, cpl_node *targets)
{
    return cpl_apply(g, "coverage", NULL, (cpl_node *[]){weights, targets}, 2);
}
