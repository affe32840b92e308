/* border.c: between rectangles and packed rows: the only place where masks exist. */
#include <string.h>
#include "graph/attributes.h"
#include "graph/graph.h"

cpl_node *cpl_pack(cpl_graph *g, cpl_node *x, const char *time)
{
    if (cpl_graph_failed(g))
        return &g->poison;
    if (cpl_dim_word(time, strlen(time)) != CPL_DIM_TIME) {
        cpl_graph_fail(g, cpl_graph_path(g, "pack"), "'%s' is no time word, expected 's' or 't'", time);
        return &g->poison;
    }
    int symbol = cpl_graph_symbol(g, time, strlen(time), CPL_DIM_TIME, "pack");
    cpl_pack_attributes attributes = {.symbol = symbol, .word = time[0]};
    return cpl_apply(g, "pack", &attributes, (cpl_node *[]){x}, 1);
}

cpl_node *cpl_unpack(cpl_graph *g, cpl_node *x, int repeat)
{
    if (cpl_graph_failed(g))
        return &g->poison;
    int symbol = cpl_graph_symbol(g, "padded", strlen("padded"), CPL_DIM_PADDED, "unpack");
    cpl_unpack_attributes attributes = {.padded_symbol = symbol, .fill = repeat ? CPL_FILL_REPEAT : CPL_FILL_ZERO};
    return cpl_apply(g, "unpack", &attributes, (cpl_node *[]){x}, 1);
}
