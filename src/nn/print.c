/* print.c: a look at a tensor while the graph runs. */
#include "graph/graph.h"

cpl_node *cpl_print(cpl_graph *g, cpl_node *x, const char *text)
{
    const cpl_type *type = cpl_node_type(x);
    cpl_node *y = cpl_apply(g, type && type->element == CPL_ELEMENT_ID ? "print_ids" : "print", NULL, (cpl_node *[]){x},
                            1);
    if (y->value < 0)
        return y;
    /* The call is named by the text and what it shows; its output is still known by who made it. */
    cpl_value *from = &g->values[x->value], *to = &g->values[y->value];
    const char *path = cpl_arena_printf(g->arena, "%s%s'%s'", text, text[0] ? " " : "", from->path);
    g->calls[to->producer].path = path ? path : text;
    to->path = from->path;
    return y;
}
