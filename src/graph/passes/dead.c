/* dead.c: drops calls that nothing reads. Roots are the outputs, the loss, and gradients of parameters. */
#include "graph/graph.h"

/* 1 when the value was not marked before. */
static int need(char *needed, int value)
{
    if (value < 0 || needed[value])
        return 0;
    needed[value] = 1;
    return 1;
}

static int is_root(const cpl_graph *g, int value)
{
    return value >= 0 && g->values[value].storage == CPL_STORE_GRADIENT;
}

static int wanted(const cpl_graph *g, const cpl_call *c, const char *needed)
{
    if (c->op->flags & CPL_OP_EFFECT)
        return 1;
    for (int k = 0; k < c->outputs && !c->backward; k++)
        if (c->out[k] >= 0 && (needed[c->out[k]] || is_root(g, c->out[k])))
            return 1;
    for (int k = 0; k < c->inputs && c->backward; k++)
        if (c->din[k] >= 0 && (needed[c->din[k]] || is_root(g, c->din[k])))
            return 1;
    return 0;
}

/* Marks what the call reads; 1 when something new was marked. */
static int mark_reads(const cpl_call *c, char *needed)
{
    int found = 0;
    for (int k = 0; k < c->inputs; k++)
        if (cpl_call_reads_input(c, k))
            found |= need(needed, c->in[k]);
    for (int k = 0; k < c->outputs && c->backward; k++) {
        if (cpl_call_reads_output(c, k))
            found |= need(needed, c->out[k]);
        found |= need(needed, c->dout[k]);
    }
    return found;
}

/* A loop's carried states read what is made later in its body: walk until nothing new is found. */
void cpl_pass_dead(cpl_graph *g)
{
    char *needed = cpl_alloc(g->value_count ? g->value_count : 1, 1);
    if (!needed)
        return; /* without memory the graph stays as it is: correct, only larger */
    need(needed, g->loss);
    for (size_t i = 0; i < g->output_count; i++)
        need(needed, g->outputs[i].value);
    int found = 1;
    while (found) {
        found = 0;
        for (size_t i = g->call_count; i-- > 0;)
            if (!g->calls[i].dead && wanted(g, &g->calls[i], needed))
                found |= mark_reads(&g->calls[i], needed);
    }
    for (size_t i = 0; i < g->call_count; i++)
        g->calls[i].dead |= !wanted(g, &g->calls[i], needed);
    cpl_release(needed);
}
