/* now.h: layers over a time axis that are asked by one row of each sentence. */
#ifndef CPL_NN_NOW_H
#define CPL_NN_NOW_H

#include "graph/graph.h"

/* [batch units] as a sequence of one step [batch now units] (*lifted 1); anything else as it is (0). */
cpl_node *cpl_to_now(cpl_graph *g, cpl_node *x, int *lifted);
/* The way back for what came of it, when it was lifted. */
cpl_node *cpl_from_now(cpl_graph *g, cpl_node *y, int lifted);

#endif
