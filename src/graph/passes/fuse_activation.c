/* fuse_activation.c: a product that one activation alone reads becomes one call: the activation runs on rows that
 * are still in cache, and the value between them needs no memory. */
#include <string.h>
#include "graph/attributes.h"
#include "graph/graph.h"

void cpl_pass_fuse_activation(cpl_graph *g)
{
    const cpl_op *linear = cpl_op_named("linear"), *activation = cpl_op_named("activation");
    for (size_t i = 0; i < g->call_count; i++) {
        cpl_call *c = &g->calls[i];
        if (c->dead || c->op != linear || ((const cpl_activation_attributes *)c->attributes)->activation)
            continue;
        cpl_call *reader = cpl_graph_only_reader(g, c->out[0]);
        if (!reader || reader->op != activation || reader->backward)
            continue;
        c->attributes = reader->attributes;
        reader->dead = 1;
        cpl_graph_replace(g, reader->out[0], c->out[0]);
    }
}
