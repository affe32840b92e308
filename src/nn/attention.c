/* attention.c: multi-head cross-attention with projections: y = concat_h(softmax(q kᵀ / √d) v) · output + bias, where
 * q, k, v are projections with bias and d is the width of one head. Other scores on request:
 * dot and general are the same op over the memory itself, additive is additive_attention.c. */
#include <math.h>
#include "graph/attributes.h"
#include "graph/graph.h"
#include "nn/dropout.h"
#include "nn/now.h"

static cpl_node *project(cpl_graph *g, const char *name, cpl_node *x, int64_t units, const char *dim)
{
    return cpl_dense(g, name, x, &(cpl_dense_options){.units = units, .dim = dim});
}

cpl_attention_memory cpl_attention_project(cpl_graph *g, const char *name, cpl_node *memory,
                                           const cpl_attention_options *o, int64_t query_units)
{
    int64_t units = o && o->key_units ? o->key_units : query_units;
    if (o && o->score == CPL_SCORE_ADDITIVE)
        return cpl_additive_attention_project(g, name, memory, &(cpl_additive_attention_options){
            .units = units, .dropout = o->dropout}, query_units);
    if (o && o->score != CPL_SCORE_MULTIHEAD)
        return (cpl_attention_memory){.keys = memory, .values = memory};
    cpl_enter(g, name);
    cpl_attention_memory m = {.keys = project(g, "key", memory, units, "keys"),
                              .values = project(g, "value", memory, units, "keys")};
    cpl_leave(g);
    return m;
}

/* Scores q·m_s and q·W·m_s: one head, not scaled. */
static cpl_attention_result plain_query(cpl_graph *g, const char *name, cpl_node *query, cpl_attention_memory memory,
                                        const cpl_attention_options *o)
{
    cpl_attention_attributes attributes = {.heads = 1, .scale = 1.0f};
    cpl_enter(g, name);
    int lifted;
    query = cpl_to_now(g, query, &lifted);
    if (o->score == CPL_SCORE_GENERAL)
        query = cpl_dense(g, "query", query, &(cpl_dense_options){
            .units = cpl_node_last_size(memory.keys), .dim = "keys", .no_bias = 1});
    attributes.dropout = cpl_weight_dropout(g, o->dropout, &attributes.call);
    cpl_node *y = cpl_apply(g, "attention", &attributes, (cpl_node *[]){query, memory.keys, memory.values}, 3);
    cpl_attention_result r = {.weights = cpl_node_output(y, 1)};
    r.y = cpl_from_now(g, y, lifted);
    cpl_leave(g);
    return r;
}

cpl_attention_result cpl_attention_query(cpl_graph *g, const char *name, cpl_node *query, cpl_attention_memory memory,
                                         const cpl_attention_options *o)
{
    int64_t heads = o && o->heads ? o->heads : 1;
    int64_t units = cpl_node_last_size(query), wide = cpl_node_last_size(memory.keys);
    if (o && o->score == CPL_SCORE_ADDITIVE) {
        memory.dropout = o->dropout;
        return cpl_additive_attention_query(g, name, query, memory);
    }
    if (o && o->score != CPL_SCORE_MULTIHEAD)
        return plain_query(g, name, query, memory, o);
    cpl_enter(g, name);
    if (heads < 1 || wide % heads)
        cpl_graph_fail(g, cpl_graph_path(g, ""), "%lld heads do not divide keys=%lld", (long long)heads,
                       (long long)wide);
    int lifted;
    query = cpl_to_now(g, query, &lifted);
    cpl_node *q = project(g, "query", query, wide, "keys");
    cpl_attention_attributes attributes = {.heads = (int32_t)heads,
                                           .scale = (float)(1.0 / sqrt((double)wide / (double)heads))};
    attributes.dropout = cpl_weight_dropout(g, o ? o->dropout : 0, &attributes.call);
    cpl_node *mixed = cpl_apply(g, "attention", &attributes, (cpl_node *[]){q, memory.keys, memory.values}, 3);
    const cpl_type *type = cpl_node_type(query);
    cpl_attention_result r = {.weights = cpl_node_output(mixed, 1)};
    r.y = project(g, "output", mixed, units, type && type->rank ? type->dim[type->rank - 1].name : "units");
    r.y = cpl_from_now(g, r.y, lifted);
    cpl_leave(g);
    return r;
}

cpl_attention_result cpl_attention(cpl_graph *g, const char *name, cpl_node *query, cpl_node *memory,
                                   const cpl_attention_options *o)
{
    cpl_attention_memory m = cpl_attention_project(g, name, memory, o, cpl_node_last_size(query));
    return cpl_attention_query(g, name, query, m, o);
}
