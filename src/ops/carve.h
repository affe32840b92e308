/* carve.h: an op's workspace cut into arrays. The same function that lays the arrays out is run twice: with a base
 * of NULL to learn the bytes (cpl_op.workspace), and with r->workspace to get the pointers. */
#ifndef CPL_OPS_CARVE_H
#define CPL_OPS_CARVE_H

#include <stddef.h>
#include <stdint.h>
#include "kernel/kernel.h"

typedef struct cpl_carve {
    char *base; /* NULL: only count */
    size_t used;
} cpl_carve;

/* The next bytes, 64-byte aligned; NULL while counting. */
static inline void *cpl_carve_bytes(cpl_carve *c, size_t bytes)
{
    void *p = c->base ? c->base + c->used : NULL;
    c->used += (bytes + 63) / 64 * 64;
    return p;
}

static inline real *cpl_carve_reals(cpl_carve *c, int64_t n)
{
    return cpl_carve_bytes(c, (size_t)n * sizeof(real));
}

#endif
