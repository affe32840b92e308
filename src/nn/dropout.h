/* dropout.h: dropout inside a layer. */
#ifndef CPL_NN_DROPOUT_H
#define CPL_NN_DROPOUT_H

#include "graph/graph.h"

/* The rate as an attribute of an attention or a recurrent layer; the graph fails unless 0 ≤ rate < 1. *call: with a
 * rate a number that no other call has, so that two equal calls stay two with masks of their own; else 0. */
float cpl_weight_dropout(cpl_graph *g, double rate, uint32_t *call);

/* Dropout that draws what a cpl_drop says (graph/attributes.h). */
cpl_node *cpl_dropout_of(cpl_graph *g, cpl_node *x, double rate, uint32_t what);

#endif
