/* pack.c: [batch padded ...] → [batch t ...]: the rows of a rectangle that exist, as packed rows. Which ones
 * the geometry of the time symbol says: any mask, empty rows too.
 *
 *   dx = dy at the places that exist, zeros elsewhere
 */
#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"
#include "ops/rows.h"

/* The rectangle and who of it exists. */
typedef struct work {
    const cpl_run_context *r;
    const cpl_geometry *g;
    int64_t width, n; /* steps of the rectangle, elements of a step */
} work;

static work work_of(const cpl_run_context *r)
{
    const cpl_pack_attributes *a = r->attributes;
    const cpl_type *x = r->in[0].type;
    return (work){.r = r, .g = &r->geometry[a->symbol], .width = r->binding->rows[x->dim[1].symbol],
                  .n = cpl_type_width(x)};
}

static int64_t sentences(const work *w)
{
    return cpl_chunk_rows(w->width * w->n);
}

static void gather(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    const cpl_geometry *g = w->g;
    cpl_span s = cpl_span_of(task, sentences(w), g->batch);
    (void)thread;
    for (int64_t i = s.from; i < s.to; i++) {
        const real *x = w->r->in[0].data + g->sentence[i] * w->width * w->n;
        for (int64_t step = 0; step < g->length[i]; step++) {
            int64_t row = g->offset[step] + i;
            memcpy(w->r->out[0].data + row * w->n, x + g->place[row] * w->n, (size_t)w->n * sizeof(real));
        }
    }
}

static void forward(const cpl_run_context *r)
{
    work w = work_of(r);
    cpl_run_tasks(r, cpl_row_chunks(w.g->batch, w.width * w.n), gather, &w);
}

static void scatter(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    const cpl_geometry *g = w->g;
    const real *dy = w->r->dout[0].data;
    cpl_span s = cpl_span_of(task, sentences(w), g->batch);
    (void)thread;
    for (int64_t i = s.from; i < s.to; i++) {
        real *dx = w->r->din[0].data + g->sentence[i] * w->width * w->n;
        memset(dx, 0, (size_t)(w->width * w->n) * sizeof(real));
        for (int64_t step = 0; dy && step < g->length[i]; step++) {
            int64_t row = g->offset[step] + i;
            memcpy(dx + g->place[row] * w->n, dy + row * w->n, (size_t)w->n * sizeof(real));
        }
    }
}

static void backward(const cpl_run_context *r)
{
    work w = work_of(r);
    if (r->din[0].data)
        cpl_run_tasks(r, cpl_row_chunks(w.g->batch, w.width * w.n), scatter, &w);
}

static cpl_status check(const cpl_shape_context *s, cpl_error *err)
{
    char text[160];
    const cpl_type *x = s->in[0];
    int last = x ? cpl_type_find(x, CPL_DIM_PADDED) : 1;
    for (int k = 2; x && last == 1 && k < x->rank; k++)
        last = x->dim[k].kind == CPL_DIM_FEATURE ? 1 : k;
    if (x && (last != 1 || x->dim[0].kind != CPL_DIM_BATCH))
        CPL_FAIL(err, CPL_USAGE, "pack: expected x [batch padded ...], got '%s' %s", s->in_path[0],
                 cpl_type_text(x, text, sizeof text));
    if (x && x->order != CPL_ORDER_CALLER)
        CPL_FAIL(err, CPL_USAGE, "pack: '%s' %s stands in a length order, expected the order of the caller",
                 s->in_path[0], cpl_type_text(x, text, sizeof text));
    return CPL_OK;
}

static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    const cpl_pack_attributes *a = s->attributes;
    (void)err;
    s->out[0].dim[1] = (cpl_dim){.name = a->word == 's' ? "s" : "t", .symbol = a->symbol, .kind = CPL_DIM_TIME};
    s->out[0].order = a->symbol;
    return CPL_OK;
}

static const char *const tests[] = {"attr.0=0 attr.1=115 ...=batch,padded,3", "attr.0=1 attr.1=116 ...=batch,padded",
                                    "attr.0=1 attr.1=116 ...=batch,padded,2,5", NULL};

const cpl_op cpl_op_pack = {
    .name = "pack",
    .doc = "the existing steps of a rectangle as packed rows",
    .signature = "x[...] -> y[...]",
    .flags = CPL_OP_CHEAP,
    .attributes = sizeof(cpl_pack_attributes),
    .check = check,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
