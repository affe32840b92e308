/* unpack.c: [batch t ...] → [batch padded ...]: packed rows at their places in the caller's rectangle. Steps
 * that do not exist are zeros or repeat the step before (zeros before the first).
 *
 *   dx[row] = dy at its place, plus, when repeating, dy at the places that repeat it
 */
#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"
#include "ops/rows.h"

typedef struct work {
    const cpl_run_context *r;
    const cpl_geometry *g;
    int repeat;
    int64_t width, n; /* steps of the rectangle, elements of a step */
} work;

static work work_of(const cpl_run_context *r)
{
    const cpl_unpack_attributes *a = r->attributes;
    const cpl_type *x = r->in[0].type;
    return (work){.r = r, .g = &r->geometry[x->dim[1].symbol], .repeat = a->fill == CPL_FILL_REPEAT,
                  .width = r->binding->rows[a->padded_symbol], .n = cpl_type_width(x)};
}

static int64_t sentences(const work *w)
{
    return cpl_chunk_rows(w->width * w->n);
}

/* Place of step `step` of the sentence at position i; the rectangle's end past its last step. */
static int64_t place_of(const work *w, int64_t i, int64_t step)
{
    return step < w->g->length[i] ? w->g->place[w->g->offset[step] + i] : w->width;
}

static void scatter(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    const cpl_geometry *g = w->g;
    cpl_span s = cpl_span_of(task, sentences(w), g->batch);
    (void)thread;
    for (int64_t i = s.from; i < s.to; i++) {
        real *y = w->r->out[0].data + g->sentence[i] * w->width * w->n;
        memset(y, 0, (size_t)(w->width * w->n) * sizeof(real));
        for (int64_t step = 0; step < g->length[i]; step++) {
            const real *x = w->r->in[0].data + (g->offset[step] + i) * w->n;
            int64_t from = place_of(w, i, step), to = w->repeat ? place_of(w, i, step + 1) : from + 1;
            for (int64_t k = from; k < to; k++)
                memcpy(y + k * w->n, x, (size_t)w->n * sizeof(real));
        }
    }
}

static void forward(const cpl_run_context *r)
{
    work w = work_of(r);
    cpl_run_tasks(r, cpl_row_chunks(w.g->batch, w.width * w.n), scatter, &w);
}

static void gather(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    const cpl_geometry *g = w->g;
    cpl_span s = cpl_span_of(task, sentences(w), g->batch);
    (void)thread;
    for (int64_t i = s.from; i < s.to; i++) {
        const real *dy = w->r->dout[0].data + g->sentence[i] * w->width * w->n;
        for (int64_t step = 0; step < g->length[i]; step++) {
            real *dx = w->r->din[0].data + (g->offset[step] + i) * w->n;
            int64_t from = place_of(w, i, step), to = w->repeat ? place_of(w, i, step + 1) : from + 1;
            memcpy(dx, dy + from * w->n, (size_t)w->n * sizeof(real));
            w->r->kernels->add_rows(to - from - 1, w->n, dy + (from + 1) * w->n, w->n, dx);
        }
    }
}

static void backward(const cpl_run_context *r)
{
    work w = work_of(r);
    if (r->din[0].data && r->dout[0].data)
        cpl_run_tasks(r, cpl_row_chunks(w.g->batch, w.width * w.n), gather, &w);
    else if (r->din[0].data)
        cpl_run_zero(r, r->din[0].data, cpl_tensor_elements(&r->din[0]));
}

static cpl_status check(const cpl_shape_context *s, cpl_error *err)
{
    char text[160];
    const cpl_type *x = s->in[0];
    if (x && (x->rank < 2 || x->dim[0].kind != CPL_DIM_BATCH || x->dim[1].kind != CPL_DIM_TIME ||
              cpl_type_times(x) != 1 || cpl_type_find(x, CPL_DIM_PADDED) >= 0))
        CPL_FAIL(err, CPL_USAGE, "unpack: expected x [batch t ...], got '%s' %s", s->in_path[0],
                 cpl_type_text(x, text, sizeof text));
    return CPL_OK;
}

static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    const cpl_unpack_attributes *a = s->attributes;
    (void)err;
    s->out[0].dim[1] = (cpl_dim){.name = "padded", .symbol = a->padded_symbol, .kind = CPL_DIM_PADDED};
    s->out[0].order = CPL_ORDER_CALLER;
    return CPL_OK;
}

static const char *const tests[] = {"attr.0=2 attr.1=0 ...=batch,s,3", "attr.0=2 attr.1=1 ...=batch,t,3",
                                    "attr.0=2 attr.1=1 ...=batch,s", NULL};

const cpl_op cpl_op_unpack = {
    .name = "unpack",
    .doc = "packed rows at their places in a rectangle",
    .signature = "x[...] -> y[...]",
    .flags = CPL_OP_CHEAP,
    .attributes = sizeof(cpl_unpack_attributes),
    .check = check,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
