/* bidirectional.c: two recurrent layers, one from each end, merged in time order. */
#include "nn/directions.h"

cpl_node *cpl_merge_directions(cpl_graph *g, cpl_merge how, cpl_node *a, cpl_node *b)
{
    if (!a)
        return NULL;
    switch (how) {
    case CPL_CONCAT:
        return cpl_concat(g, a, b);
    case CPL_AVERAGE:
        return cpl_scale(g, cpl_add(g, a, b), 0.5);
    case CPL_MULTIPLY:
        return cpl_multiply(g, a, b);
    default:
        return cpl_add(g, a, b);
    }
}

cpl_bidirectional_result cpl_bidirectional(cpl_graph *g, const char *name, cpl_node *x,
                                           const cpl_bidirectional_options *o)
{
    cpl_enter(g, name);
    static const char *const merges[] = {"sum", "concat", "average", "multiply"};
    cpl_graph_layer(g, "bidirectional merge=%s", merges[o->merge]);
    cpl_rnn_options direction = {.cell = o->cell, .units = o->units, .h = o->forward_h, .c = o->forward_c,
                                 .recurrent_initializer = o->recurrent_initializer, .dropout = o->dropout};
    cpl_bidirectional_result r = {.forward = cpl_rnn(g, "forward", x, &direction)};
    direction.h = o->backward_h, direction.c = o->backward_c, direction.reverse = 1;
    r.backward = cpl_rnn(g, "backward", x, &direction);
    r.y = cpl_merge_directions(g, o->merge, r.forward.y, r.backward.y);
    cpl_leave(g);
    return r;
}
