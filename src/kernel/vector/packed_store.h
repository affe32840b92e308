/* packed_store.h: how products with packed weights write what they computed. */
#ifndef CPL_KERNEL_VECTOR_PACKED_STORE_H
#define CPL_KERNEL_VECTOR_PACKED_STORE_H

#include "kernel/kernel.h"
#include "kernel/vector/vec.h"

/* v: columns `column` … column + LANES − 1 of B, of a row. c: where the row of C begins, with column g->from. Writes
 * those that were asked for, added to what is there or not; tiles end where blocks do, so there are others on both
 * sides. */
INLINE void store_columns(const cpl_gemm_packed *g, float *c, int64_t column, vec v, int added)
{
    int64_t at = column - g->from;
    int lo = at < 0 ? (int)-at : 0, hi = width(g->n - at);
    float y[LANES];

    if (lo >= LANES || hi <= lo)
        return;
    if (lo > 0) {
        store(y, v);
        for (int i = lo; i < hi; i++)
            c[at + i] = added ? y[i] + c[at + i] : y[i];
        return;
    }
    if (added)
        v = v + load_part(c + at, hi);
    store_part(c + at, hi, v);
}

#endif
