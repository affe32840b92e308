/* equal.c: calls with the same op, attributes and inputs are one call (an encoder called twice runs once).
 * Parameters asked for twice are one value first. */
#include <string.h>
#include "graph/graph.h"

static void merge_parameters(cpl_graph *g)
{
    for (size_t v = 0; v < g->value_count; v++) {
        if (g->values[v].parameter < 0 || g->values[v].storage != CPL_STORE_PARAMETER)
            continue;
        for (size_t w = 0; w < v; w++)
            if (g->values[w].parameter == g->values[v].parameter && g->values[w].storage == CPL_STORE_PARAMETER) {
                cpl_graph_replace(g, (int)v, (int)w);
                break;
            }
    }
}

static int equal(const cpl_call *a, const cpl_call *b)
{
    if (a->op != b->op || a->backward || b->backward || a->dead || b->dead || (a->op->flags & CPL_OP_RANDOM))
        return 0;
    if (a->op->attributes && memcmp(a->attributes, b->attributes, a->op->attributes) != 0)
        return 0;
    return memcmp(a->in, b->in, sizeof a->in) == 0;
}

void cpl_pass_equal(cpl_graph *g)
{
    merge_parameters(g);
    for (size_t i = 0; i < g->call_count; i++)
        for (size_t j = 0; j < i; j++)
            if (equal(&g->calls[j], &g->calls[i])) {
                for (int k = 0; k < g->calls[i].visible; k++)
                    cpl_graph_replace(g, g->calls[i].out[k], g->calls[j].out[k]);
                g->calls[i].dead = 1;
                break;
            }
}
