/* nest_rows.h: the rows of a nested time, in the order in which they stand: for each step of the outer time, the packed
 * rows of the inner one of the sentences that have the step. In a step of the outer loop there is one such piece. */
#ifndef CPL_OPS_NEST_ROWS_H
#define CPL_OPS_NEST_ROWS_H

#include <string.h>
#include "graph/attributes.h"
#include "graph/op.h"

typedef struct cpl_nest_rows {
    const cpl_geometry *outer, *inner;
    int64_t step, inner_step, at;  /* of the coming row: its steps and its sentence's place in the inner order */
    int64_t row;                   /* the row */
    int64_t outer_row, inner_row;  /* the rows of the outer and the inner time that it belongs to */
    int last;                      /* its sentence has no further inner step */
} cpl_nest_rows;

/* `for (cpl_nest_rows x = cpl_nest_begin(r); cpl_nest_next(&x);)` visits each row in turn. */
static inline cpl_nest_rows cpl_nest_begin(const cpl_run_context *r)
{
    const cpl_nest_attributes *a = r->attributes;
    return (cpl_nest_rows){.outer = &r->geometry[a->outer], .inner = &r->geometry[a->inner], .row = -1};
}

static inline int cpl_nest_next(cpl_nest_rows *x)
{
    const cpl_geometry *t = x->outer, *s = x->inner;
    for (; x->step < t->longest; x->step++, x->inner_step = 0)
        for (; x->inner_step < s->longest; x->inner_step++, x->at = 0)
            while (x->at < cpl_geometry_active(s, x->inner_step)) {
                int64_t at = x->at++, i = t->position[s->sentence[at]];
                if (i >= cpl_geometry_active(t, x->step))
                    continue;
                x->row++;
                x->outer_row = t->offset[x->step] + i;
                x->inner_row = s->offset[x->inner_step] + at;
                x->last = s->length[at] == x->inner_step + 1;
                return 1;
            }
    return 0;
}

#endif
