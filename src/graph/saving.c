/* saving.c: the two means to run a batch of a size in less memory: recomputation, and smaller blocks of rows. */
#include "graph/plan.h"
#include "graph/program.h"

/* Walking over an element takes the time of so many operations of a product. */
static const double OPERATIONS_PER_ELEMENT = 32;

const char *cpl_recompute_name(cpl_recompute level)
{
    static const char *const names[CPL_RECOMPUTES] = {"none", "cheap", "all"};
    return names[level];
}

cpl_status cpl_program_recompute(cpl_program *p, cpl_recompute level, const cpl_binding *capacity, cpl_error *err)
{
    if (!p->schedule[CPL_TRAIN].graph || (p->recompute == CPL_RECOMPUTE_NONE && level == CPL_RECOMPUTE_NONE))
        return CPL_OK;
    p->recompute = level;
    p->recompute_for = *capacity;
    return cpl_program_remake(p, err);
}

void cpl_program_block_rows(cpl_program *p, cpl_mode mode, int rows)
{
    cpl_schedule *s = &p->schedule[mode];
    if (!s->graph || s->graph->block_rows == rows)
        return;
    s->graph->block_rows = rows;
    while (s->plan_count > 0) /* larger blocks would not fit into the workspaces of smaller ones */
        cpl_plan_free(&s->plans[--s->plan_count]);
}

static double call_flops(const cpl_program *p, const cpl_graph *g, const cpl_call *c, const cpl_binding *b)
{
    cpl_size_context s;
    cpl_call_sizes(g, c, b, p->engine->threads, &s);
    return c->op->flops ? c->op->flops(&s) : 0;
}

double cpl_program_walk_flops(const cpl_program *p, const cpl_binding *b)
{
    const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
    double sum = 0;
    for (size_t i = 0; g && i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        if (c->dead || !c->again || c->op->flops)
            continue;
        for (int k = 0; k < c->visible; k++)
            if (c->out[k] >= 0)
                sum += OPERATIONS_PER_ELEMENT * (double)cpl_type_elements(&g->values[c->out[k]].type, b);
    }
    return sum;
}

double cpl_program_block_flops(const cpl_program *p, const cpl_binding *b)
{
    const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
    double sum = 0;
    for (size_t i = 0; g && i < g->call_count; i++)
        if (!g->calls[i].dead && !g->calls[i].backward && (g->calls[i].op->flags & CPL_OP_BLOCKS))
            sum += call_flops(p, g, &g->calls[i], b);
    return sum;
}
