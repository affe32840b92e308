/* equal.c: calls with the same op, attributes and inputs are one call (an encoder called in every step of a loop in C
 * runs once). Parameters asked for twice are one value first.
 *
 * One walk: inputs are renamed to the values that stand for them, then the call is looked up by what it is. So the
 * time grows with the calls, not with their pairs: a model unrolled over many steps has thousands. */
#include <string.h>
#include "graph/graph.h"

enum { ATTRIBUTE_BYTES = 64 };

/* What makes two calls equal, without padding between. */
typedef struct likeness {
    const cpl_op *op;
    int in[CPL_MAX_INPUTS];
    char attributes[ATTRIBUTE_BYTES];
} likeness;

/* Parameters by number: the first value of each stands for all. */
static int merge_parameters(cpl_graph *g, int *by)
{
    size_t count = cpl_parameters_count(g->parameters);
    int *first = cpl_alloc(count + 1, sizeof *first);
    if (!first)
        return -1;
    for (size_t v = 0; v < g->value_count; v++) {
        int p = g->values[v].parameter;
        by[v] = (int)v;
        if (p < 0 || g->values[v].storage != CPL_STORE_PARAMETER)
            continue;
        if (first[p])
            by[v] = first[p] - 1;
        else
            first[p] = (int)v + 1;
    }
    cpl_release(first);
    return 0;
}

static void rename_all(int *values, int n, const int *by)
{
    for (int k = 0; k < n; k++)
        values[k] = values[k] >= 0 ? by[values[k]] : values[k];
}

/* An op whose attributes do not fit is never equal to another: none has that many. */
static int may_be_equal(const cpl_call *c)
{
    return !c->backward && !c->dead && !(c->op->flags & CPL_OP_RANDOM) && c->op->attributes <= ATTRIBUTE_BYTES;
}

static void merge(cpl_graph *g, cpl_map *seen, size_t i, int *by)
{
    cpl_call *c = &g->calls[i];
    likeness key;
    int is_new = 0;
    if (!may_be_equal(c))
        return;
    memset(&key, 0, sizeof key);
    key.op = c->op;
    memcpy(key.in, c->in, sizeof key.in);
    if (c->op->attributes)
        memcpy(key.attributes, c->attributes, c->op->attributes);
    int64_t *slot = cpl_map_insert(seen, (const char *)&key, sizeof key, &is_new);
    if (slot && is_new)
        *slot = (int64_t)i;
    if (!slot || is_new)
        return;
    cpl_call *first = &g->calls[*slot];
    for (int k = 0; k < c->visible; k++)
        if (c->out[k] >= 0)
            by[c->out[k]] = first->out[k];
    first->merged += 1 + c->merged;
    c->dead = 1;
}

/* A carried state of a loop reads what is made later: everything is renamed once more at the end. */
static void rename_rest(cpl_graph *g, const int *by)
{
    for (size_t i = 0; i < g->call_count; i++) {
        rename_all(g->calls[i].in, g->calls[i].inputs, by);
        if (!g->calls[i].backward)
            continue;
        rename_all(g->calls[i].out, g->calls[i].outputs, by);
        rename_all(g->calls[i].dout, g->calls[i].outputs, by);
    }
    for (size_t i = 0; i < g->output_count; i++)
        rename_all(&g->outputs[i].value, 1, by);
    rename_all(&g->loss, 1, by);
}

/* Without memory the graph stays as it is: correct, only larger. */
void cpl_pass_equal(cpl_graph *g)
{
    int *by = cpl_alloc(g->value_count + 1, sizeof *by);
    cpl_map *seen = by ? cpl_map_new() : NULL;
    if (seen && merge_parameters(g, by) == 0) {
        for (size_t i = 0; i < g->call_count; i++) {
            rename_all(g->calls[i].in, g->calls[i].inputs, by);
            merge(g, seen, i, by);
        }
        rename_rest(g, by);
    }
    cpl_map_free(seen);
    cpl_release(by);
}
