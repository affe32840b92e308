/* reorder.c: moves the sentences of a tensor without ragged time from one length order to another.
 *
 *   y[position in `to`] = x[position in `from`] of the same sentence; dx is the way back
 */
#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"
#include "ops/rows.h"

/* Sentence of the caller at a position of an order, and back. */
static int64_t sentence_at(const cpl_run_context *r, int32_t order, int64_t position)
{
    return order == CPL_ORDER_CALLER ? position : r->geometry[order].sentence[position];
}

static int64_t position_of(const cpl_run_context *r, int32_t order, int64_t sentence)
{
    return order == CPL_ORDER_CALLER ? sentence : r->geometry[order].position[sentence];
}

typedef struct work {
    const cpl_run_context *r;
    int32_t from_order, to_order;
    int64_t batch, n; /* n elements belong to each sentence */
    const real *from;
    real *to;
} work;

static void move(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    cpl_span s = cpl_span_of(task, cpl_chunk_rows(w->n), w->batch);
    (void)thread;
    for (int64_t i = s.from; i < s.to; i++) {
        int64_t source = position_of(w->r, w->from_order, sentence_at(w->r, w->to_order, i));
        memcpy(w->to + i * w->n, w->from + source * w->n, (size_t)w->n * sizeof(real));
    }
}

static void run(work *w, int64_t elements)
{
    w->batch = w->r->binding->batch;
    w->n = cpl_rows_of(elements, w->batch);
    cpl_run_tasks(w->r, cpl_row_chunks(w->batch, w->n), move, w);
}

static void forward(const cpl_run_context *r)
{
    const cpl_reorder_attributes *a = r->attributes;
    work w = {.r = r, .from_order = a->from, .to_order = a->to, .from = r->in[0].data, .to = r->out[0].data};
    run(&w, cpl_tensor_elements(&r->out[0]));
}

static void backward(const cpl_run_context *r)
{
    const cpl_reorder_attributes *a = r->attributes;
    work w = {.r = r, .from_order = a->to, .to_order = a->from, .from = r->dout[0].data, .to = r->din[0].data};
    if (w.to && w.from)
        run(&w, cpl_tensor_elements(&r->din[0]));
    else if (w.to)
        cpl_run_zero(r, w.to, cpl_tensor_elements(&r->din[0]));
}

static cpl_status check(const cpl_shape_context *s, cpl_error *err)
{
    char text[160];
    const cpl_type *x = s->in[0];
    if (x && (x->rank == 0 || x->dim[0].kind != CPL_DIM_BATCH || cpl_type_times(x) > 0))
        CPL_FAIL(err, CPL_USAGE, "reorder: expected x [batch ...] without ragged time, got '%s' %s", s->in_path[0],
                 cpl_type_text(x, text, sizeof text));
    return CPL_OK;
}

static cpl_status shape(cpl_shape_context *s, cpl_error *err)
{
    const cpl_reorder_attributes *a = s->attributes;
    (void)err;
    s->out[0].order = a->to;
    return CPL_OK;
}

static const char *const tests[] = {"attr.0=0 attr.1=1 ...=batch,3", "attr.0=1 attr.1=0 ...=batch,1",
                                    "attr.0=-1 attr.1=1 ...=batch,padded,2", "attr.0=0 attr.1=-1 ...=batch", NULL};

const cpl_op cpl_op_reorder = {
    .name = "reorder",
    .doc = "moves sentences from one length order to another",
    .signature = "x[...] -> y[...]",
    .flags = CPL_OP_CHEAP,
    .attributes = sizeof(cpl_reorder_attributes),
    .check = check,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
