/* weight_drop.h: dropout of attention weights: which weights of a sentence's step a training run drops. Nothing is
 * stored: a mask is drawn again wherever it is needed, forward, backward, in a loop or after it. */
#ifndef CPL_OPS_WEIGHT_DROP_H
#define CPL_OPS_WEIGHT_DROP_H

#include "graph/op.h"

typedef struct cpl_weight_drop {
    const cpl_geometry *t; /* of the queries */
    uint64_t key;          /* of seed, step and node */
    uint64_t limit;        /* a draw of 32 bits below it is dropped; 0: nothing is */
    int64_t first;         /* sentence of the batch that stands first */
    real factor;           /* of what is kept */
} cpl_weight_drop;

/* rate: share dropped; outside of training nothing is. */
cpl_weight_drop cpl_weight_drop_of(const cpl_run_context *r, const cpl_geometry *t, float rate);

/* Where weights stand: the sentence at position i of t's order, its step, its head. */
typedef struct cpl_weight_place {
    int64_t i, step, head;
} cpl_weight_place;

/* weights[s] *= 0 or 1/(1 − rate). To get the mask itself, fill them with ones. */
void cpl_weight_drop_row(const cpl_weight_drop *d, cpl_weight_place at, int64_t s, real *weights);

#endif
