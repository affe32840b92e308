/* nest.c: loops in the steps of loops, while a model is traced: the time "s in t", and what may be done with it. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"
#include "graph/graph.h"

int cpl_graph_nest_symbol(cpl_graph *g, int outer, int inner, const char *from)
{
    char name[64];
    int length = snprintf(name, sizeof name, "%s in %s", g->symbols[inner].name, g->symbols[outer].name);
    int symbol = cpl_graph_symbol(g, name, (size_t)length, CPL_DIM_TIME, from);
    if (symbol >= 0) {
        g->symbols[symbol].nested = 1;
        g->symbols[symbol].outer = outer, g->symbols[symbol].inner = inner;
    }
    return symbol;
}

int cpl_type_nested(const cpl_graph *g, const cpl_type *type)
{
    int at = cpl_type_find(type, CPL_DIM_TIME);
    return at >= 0 && g->symbols[type->dim[at].symbol].nested ? type->dim[at].symbol : -1;
}

cpl_node *cpl_nest_input(cpl_graph *g, cpl_node *x, int symbol)
{
    const cpl_symbol *s = &g->symbols[symbol];
    const cpl_type *type = cpl_node_type(x);
    if (!type || cpl_type_nested(g, type) == symbol)
        return x;
    cpl_nest_attributes a = {.symbol = symbol, .outer = s->outer, .inner = s->inner,
                             .over_outer = type->dim[1].symbol == s->outer};
    cpl_node *y = cpl_apply(g, "nest", &a, &x, 1);
    if (y->value >= 0)
        g->values[y->value].type.dim[1].name = s->name;
    return y;
}

/* Ops that work on each row by itself do, and a sum of everything. Dropout draws by a sentence's place in the batch,
 * which a row of a nest does not know. */
static int works_on_rows(const cpl_op *op)
{
    int by_rows = (op->flags & CPL_OP_LOCAL) && strstr(op->signature, "...") && strcmp(op->name, "dropout") != 0;
    return by_rows || strcmp(op->name, "sum") == 0 || strcmp(op->name, "nest_last") == 0;
}

int cpl_nest_allows(cpl_graph *g, const cpl_op *op, const char *path, const cpl_type *const *in)
{
    int nested = -1, other = -1;
    for (int k = 0; k < CPL_MAX_INPUTS; k++) {
        int at = in[k] ? cpl_type_find(in[k], CPL_DIM_TIME) : -1;
        if (at < 0)
            continue;
        if (cpl_type_nested(g, in[k]) >= 0)
            nested = in[k]->dim[at].symbol;
        else
            other = in[k]->dim[at].symbol;
    }
    if (nested < 0)
        return 1;
    if (!works_on_rows(op))
        cpl_graph_fail(g, path, "'%s' (%s) cannot work on steps of '%s', a loop in the steps of another" CPL_HINT
                       "take the inner loop's final state, or work on what the outer loop emits", path, op->name,
                       g->symbols[nested].name);
    else if (other >= 0 && strcmp(op->name, "nest_last") != 0)
        cpl_graph_fail(g, path, "'%s' (%s) gets a step of '%s' together with a step of '%s'" CPL_HINT
                       "hand it to the inner loop as an input: each of its steps then sees it", path, op->name,
                       g->symbols[nested].name, g->symbols[other].name);
    return !cpl_graph_failed(g);
}
