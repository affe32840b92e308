/* additive_attention.c: additive attention with projections: the softmax over s of
 * score·tanh(query·Wq + bq + memory·Wk + bk) + b weighs the memory itself (Bahdanau et al. 2015). */
#include "graph/attributes.h"
#include "graph/graph.h"

static int64_t last_size(const cpl_node *x)
{
    const cpl_type *type = cpl_node_type(x);
    return type && type->rank ? type->dim[type->rank - 1].size : 0;
}

cpl_attention_memory cpl_additive_attention_project(cpl_graph *g, const char *name, cpl_node *memory,
                                                    const cpl_additive_attention_options *o, int64_t query_units)
{
    int64_t units = o && o->units ? o->units : query_units;
    cpl_enter(g, name);
    cpl_attention_memory m = {.keys = cpl_dense(g, "key", memory, &(cpl_dense_options){.units = units, .dim = "keys"}),
                              .values = memory};
    cpl_leave(g);
    return m;
}

cpl_attention_result cpl_additive_attention_query(cpl_graph *g, const char *name, cpl_node *query,
                                                  cpl_attention_memory memory)
{
    int64_t units = last_size(memory.keys);
    cpl_enter(g, name);
    cpl_node *q = cpl_dense(g, "query", query, &(cpl_dense_options){.units = units, .dim = "keys"});
    cpl_enter(g, "score");
    cpl_node *v = cpl_parameter(g, "kernel", CPL_GLOROT_UNIFORM, "keys=%lld score=1", (long long)units);
    cpl_node *b = cpl_parameter(g, "bias", CPL_ZEROS, "score=1");
    cpl_leave(g);
    cpl_node *y = cpl_apply(g, "additive_attention", NULL, (cpl_node *[]){q, memory.keys, v, b, memory.values}, 5);
    cpl_leave(g);
    return (cpl_attention_result){.y = y, .weights = cpl_node_output(y, 1)};
}

cpl_attention_result cpl_additive_attention(cpl_graph *g, const char *name, cpl_node *query, cpl_node *memory,
                                            const cpl_additive_attention_options *o)
{
    cpl_attention_memory m = cpl_additive_attention_project(g, name, memory, o, last_size(query));
    return cpl_additive_attention_query(g, name, query, m);
}
