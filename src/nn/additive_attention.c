/* additive_attention.c: additive attention with projections: the softmax over s of
 * score·tanh(query·Wq + bq + memory·Wk + bk) + b weighs the memory itself (Bahdanau et al. 2015). */
#include "graph/attributes.h"
#include "graph/graph.h"
#include "nn/dropout.h"
#include "nn/now.h"

cpl_attention_memory cpl_additive_attention_project(cpl_graph *g, const char *name, cpl_node *memory,
                                                    const cpl_additive_attention_options *o, int64_t query_units)
{
    int64_t units = o && o->units ? o->units : query_units;
    cpl_enter(g, name);
    cpl_attention_memory m = {.keys = cpl_dense(g, "key", memory, &(cpl_dense_options){.units = units, .dim = "keys"}),
                              .values = memory, .dropout = o ? o->dropout : 0};
    cpl_leave(g);
    return m;
}

cpl_node *cpl_additive_attention_prepare(cpl_graph *g, cpl_node *keys)
{
    return cpl_apply(g, "additive_exponentials", NULL, (cpl_node *[]){keys}, 1);
}

/* Is the body of a loop being built? */
static int inside_a_loop(const cpl_graph *g)
{
    for (int i = 0; i < g->loop_count; i++)
        if (g->loops[i].last_uid == 0)
            return 1;
    return 0;
}

/* A step of a loop, or of one in C, gets prepared keys (made once: they depend on no state, so the loop leaves them
 * outside, and equal calls are one). */
cpl_attention_result cpl_additive_attention_query(cpl_graph *g, const char *name, cpl_node *query,
                                                  cpl_attention_memory memory)
{
    int64_t units = cpl_node_last_size(memory.keys);
    int lifted;
    cpl_enter(g, name);
    query = cpl_to_now(g, query, &lifted);
    cpl_node *q = cpl_dense(g, "query", query, &(cpl_dense_options){.units = units, .dim = "keys"});
    cpl_enter(g, "score");
    cpl_node *v = cpl_parameter(g, "kernel", CPL_GLOROT_UNIFORM, "keys=%lld score=1", (long long)units);
    cpl_node *b = cpl_parameter(g, "bias", CPL_ZEROS, "score=1");
    cpl_leave(g);
    cpl_node *e = memory.prepared;
    if (!e && (lifted || inside_a_loop(g)))
        e = cpl_additive_attention_prepare(g, memory.keys);
    cpl_node *in[] = {q, memory.keys, v, b, memory.values, e};
    cpl_additive_attributes attributes = {0};
    attributes.dropout = cpl_weight_dropout(g, memory.dropout, &attributes.call);
    cpl_node *y = cpl_apply(g, "additive_attention", &attributes, in, 6);
    cpl_attention_result r = {.weights = cpl_node_output(y, 1)};
    r.y = cpl_from_now(g, y, lifted);
    cpl_leave(g);
    return r;
}

cpl_attention_result cpl_additive_attention(cpl_graph *g, const char *name, cpl_node *query, cpl_node *memory,
                                            const cpl_additive_attention_options *o)
{
    cpl_attention_memory m = cpl_additive_attention_project(g, name, memory, o, cpl_node_last_size(query));
    return cpl_additive_attention_query(g, name, query, m);
}
