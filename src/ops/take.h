/* take.h: one step of a time axis, shared by the ops take and take_ids. */
#ifndef CPL_OPS_TAKE_H
#define CPL_OPS_TAKE_H

#include "graph/op.h"

/* Rows of step attributes->step of x [batch time …] as y [batch …], `element` bytes for each number; zeros for
 * sentences without that step. */
void cpl_take_forward(const cpl_run_context *r, size_t element);
/* x must be [batch padded …] or [batch t …]. */
cpl_status cpl_take_check(const cpl_shape_context *s, cpl_error *err);
/* The same without the time. */
cpl_status cpl_take_shape(cpl_shape_context *s, cpl_error *err);

/* Where the step stands in x: row of position i is first + i · stride, for the first `active` of them. */
typedef struct cpl_take_rows {
    int64_t first, stride, active;
} cpl_take_rows;
cpl_take_rows cpl_take_rows_of(const cpl_run_context *r);

#endif
