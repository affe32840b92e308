/* profile_nodes.c: a profile's figures for all of the calls. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/trainer.h"

static int slower_first(const void *a, const void *b)
{
    const cpl_profile_node *x = a, *y = b;
    if (x->mode != y->mode)
        return x->mode == CPL_TRAIN ? -1 : 1;
    return (x->row.meter.ns < y->row.meter.ns) - (x->row.meter.ns > y->row.meter.ns);
}

static cpl_profile_node *find(cpl_profile_node *nodes, size_t count, const cpl_profile_node *n)
{
    for (size_t i = 0; i < count; i++)
        if (nodes[i].mode == n->mode && strcmp(nodes[i].path, n->path) == 0 && strcmp(nodes[i].op, n->op) == 0 &&
            strcmp(nodes[i].pass, n->pass) == 0)
            return &nodes[i];
    return NULL;
}

static void add_calls(const cpl_trainer *t, cpl_mode mode, cpl_profile_node *nodes, size_t *count)
{
    const cpl_graph *g = t->program->schedule[mode].graph;
    for (size_t i = 0; g && i < g->call_count; i++) {
        const cpl_profile_row *row = cpl_profile_row_at(t->profile->calls, mode, i);
        const cpl_call *c = &g->calls[i];
        if (!row || row->meter.count == 0)
            continue;
        cpl_profile_node n = {.path = c->path ? c->path : c->op->name, .op = c->op->name, .mode = mode,
                              .pass = cpl_profile_pass(t->profile->calls, mode, i)};
        cpl_profile_node *to = find(nodes, *count, &n);
        if (!to)
            nodes[(*count)++] = n, to = &nodes[*count - 1];
        cpl_profile_row_add(&to->row, row);
    }
}

cpl_profile_node *cpl_train_profile_nodes(const cpl_trainer *t, size_t *count)
{
    size_t most = 1;
    for (int m = 0; m < CPL_MODES; m++)
        most += t->program->schedule[m].graph ? t->program->schedule[m].graph->call_count : 0;
    cpl_profile_node *nodes = cpl_alloc(most, sizeof *nodes);
    *count = 0;
    for (int m = 0; nodes && m < CPL_MODES; m++)
        add_calls(t, (cpl_mode)m, nodes, count);
    if (nodes)
        qsort(nodes, *count, sizeof *nodes, slower_first);
    return nodes;
}

double cpl_train_profile_flops(const cpl_trainer *t)
{
    const cpl_graph *g = t->program->schedule[CPL_TRAIN].graph;
    double flops = 0;
    for (size_t i = 0; i < g->call_count; i++)
        flops += cpl_profile_row_at(t->profile->calls, CPL_TRAIN, i)->flops;
    return flops;
}
