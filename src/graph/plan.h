/* plan.h: where every value of a graph stands in one block of memory, for one capacity.
 *
 * Two values share memory when their lives do not overlap: from the call that makes a value to the last that
 * reads it; outputs until the end. Inputs have buffers of their own. The peak is exact and known before allocation. */
#ifndef CPL_GRAPH_PLAN_H
#define CPL_GRAPH_PLAN_H

#include "graph/graph.h"

typedef struct cpl_memory_plan {
    cpl_binding capacity;
    size_t *offset;    /* by value: into the block; meaningless for values that are not there */
    size_t *workspace; /* by call: into the block */
    size_t bytes;      /* of the block */
} cpl_memory_plan;

cpl_status cpl_plan_make(cpl_memory_plan *plan, const cpl_graph *g, const cpl_binding *capacity, int threads,
                         cpl_error *err);
void cpl_plan_free(cpl_memory_plan *plan);

#endif
