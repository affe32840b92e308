/* projection.h: the products of a projection to the vocabulary, x·w, whose weights stand as [in vocab] or, tied to an
 * embedding, as its table [vocab in]. */
#ifndef CPL_OPS_PROJECTION_H
#define CPL_OPS_PROJECTION_H

#include "graph/op.h"

typedef struct cpl_projection {
    const cpl_run_context *r;
    int tied;          /* 1: w is [vocab in] */
    int64_t in, vocab;
    const real *w;
} cpl_projection;

/* Of a call whose inputs 0 and 1 are x and w. */
cpl_projection cpl_projection_of(const cpl_run_context *r, int tied);
int64_t cpl_projection_vocab(const cpl_type *w, int tied);

/* n rows. y[n vocab] = x·w + bias, which may be NULL. */
void cpl_projection_forward(const cpl_projection *p, int64_t n, const real *x, const real *bias, real *y);
/* dx[n in] = dy·wᵀ */
void cpl_projection_input(const cpl_projection *p, int64_t n, const real *dy, real *dx);
/* dw = beta · dw + xᵀ·dy, standing as w does */
void cpl_projection_weights(const cpl_projection *p, int64_t n, const real *x, const real *dy, real beta, real *dw);

#endif
