/* rows.h: a tensor seen as a matrix of its last dimension, cut into chunks of rows for the pool. */
#ifndef CPL_OPS_ROWS_H
#define CPL_OPS_ROWS_H

#include "graph/op.h"

/* Size of the last dimension; 1 for a scalar. It must be a feature (the signature's match sees to that). */
static inline int64_t cpl_last_size(const cpl_type *type)
{
    return type->rank ? type->dim[type->rank - 1].size : 1;
}

static inline int64_t cpl_tensor_elements(const cpl_tensor *x)
{
    return x->rows * x->width;
}

/* Rows of n elements that make up a tensor of `elements`. */
static inline int64_t cpl_rows_of(int64_t elements, int64_t n)
{
    return n > 0 ? elements / n : 0;
}

/* Rows of n elements that one task takes: about CPL_CHUNK elements, a function of n alone. */
static inline int64_t cpl_chunk_rows(int64_t n)
{
    int64_t rows = n > 0 ? CPL_CHUNK / n : CPL_CHUNK;
    return rows > 0 ? rows : 1;
}

static inline int64_t cpl_row_chunks(int64_t rows, int64_t n)
{
    int64_t chunk = cpl_chunk_rows(n);
    return (rows + chunk - 1) / chunk;
}

/* A range [from, to) of elements or rows. */
typedef struct cpl_span {
    int64_t from, to;
} cpl_span;

static inline cpl_span cpl_span_of(int64_t task, int64_t chunk, int64_t total)
{
    int64_t from = task * chunk, to = from + chunk;
    return (cpl_span){from, to < total ? to : total};
}

/* For ops whose output is their input in another shape, often in the same memory: y = x, and dx = dy. */
static inline void cpl_pass_on(const cpl_run_context *r)
{
    if (r->out[0].data && r->out[0].data != r->in[0].data)
        cpl_run_copy(r, r->in[0].data, r->out[0].data, cpl_tensor_elements(&r->out[0]));
}

static inline void cpl_pass_back(const cpl_run_context *r)
{
    if (r->din[0].data && r->dout[0].data)
        cpl_run_copy(r, r->dout[0].data, r->din[0].data, cpl_tensor_elements(&r->din[0]));
    else if (r->din[0].data)
        cpl_run_zero(r, r->din[0].data, cpl_tensor_elements(&r->din[0]));
}

#endif
