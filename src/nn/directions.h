/* directions.h: joining what two directions of a recurrent layer gave. */
#ifndef CPL_NN_DIRECTIONS_H
#define CPL_NN_DIRECTIONS_H

#include "graph/graph.h"

/* Both of one shape [... units]; CPL_CONCAT gives [... 2 units], the others [... units]. NULL for NULL: a cell without
 * a second state has none to join. */
cpl_node *cpl_merge_directions(cpl_graph *g, cpl_merge how, cpl_node *forward, cpl_node *backward);

#endif
