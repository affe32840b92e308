/* embedding.c: a table of vectors, one for each id. The padding id's row is never looked up: padding does not
 * exist inside. */
#include "graph/graph.h"

cpl_node *cpl_embedding_table(cpl_graph *g, const char *name, const cpl_embedding_options *o)
{
    cpl_enter(g, name);
    cpl_graph_layer(g, "embedding size=%lld units=%lld", (long long)o->size, (long long)o->units);
    cpl_node *table = cpl_parameter(g, "kernel", CPL_UNIFORM_005, "entries=%lld %s=%lld", (long long)o->size,
                                    o->dim ? o->dim : "units", (long long)o->units);
    cpl_leave(g);
    return table;
}

cpl_node *cpl_embedding(cpl_graph *g, const char *name, cpl_node *ids, const cpl_embedding_options *o)
{
    cpl_node *table = cpl_embedding_table(g, name, o);
    const cpl_type *type = cpl_node_type(ids); /* good until a value is added: the table was */
    cpl_enter(g, name);
    if (type && type->element == CPL_ELEMENT_ID && type->entries != o->size)
        cpl_graph_fail(g, cpl_graph_path(g, ""), "embedding has size=%lld but vocabulary '%s' has %lld entries",
                       (long long)o->size, type->vocabulary, (long long)type->entries);
    cpl_node *y = cpl_apply(g, "embedding", NULL, (cpl_node *[]){ids, table}, 2);
    cpl_leave(g);
    return y;
}
