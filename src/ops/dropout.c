/* dropout.c: y = x · m / (1 − rate), m 0 with probability rate, else 1; only while training, else y = x.
 *
 *   dx = dy · m / (1 − rate)
 *
 * Nothing is stored: m is a pure function of (key of the node and step, sentence of the batch, step in the
 * caller's rectangle, column), so it is drawn again in the backward pass, and neither reordering nor packing nor
 * cutting the batch into parts changes it. A tensor [batch t s …] has the sentence's steps of s before its columns.
 * One without a leading batch counts its rows instead. By attribute the step is left out of it, so that m is one for
 * all steps of a sentence (recurrent dropout), or the column, so that a row is kept or dropped as a whole (words). */
#include "base/hash.h"
#include "graph/attributes.h"
#include "ops/rows.h"

typedef struct work {
    const cpl_run_context *r;
    const cpl_geometry *geometry; /* of the time axis, or of the length order; NULL: count rows */
    const cpl_geometry *inner;    /* of the second time axis; NULL: none */
    cpl_pair_index pairs;         /* with inner: where a row of t begins */
    int has_time;
    int64_t first;                /* sentence of the batch that stands first */
    int64_t rows, width;          /* rows of the batch or of t */
    const real *from;
    real *to;
    uint64_t limit; /* a draw of 32 bits below it is dropped */
    real factor;
    uint32_t what;  /* cpl_drop */
} work;

static work work_of(const cpl_run_context *r, const real *from, real *to, const cpl_tensor *shape)
{
    const cpl_dropout_attributes *a = r->attributes;
    const cpl_type *type = shape->type;
    work w = {.r = r, .rows = shape->rows, .width = shape->width, .from = from, .to = to};
    w.limit = (uint64_t)((double)a->rate * 4294967296.0);
    w.factor = (real)(1.0 / (1.0 - (double)a->rate));
    w.what = a->what;
    int by_sentence = type->rank > 0 && type->dim[0].kind == CPL_DIM_BATCH;
    w.first = by_sentence ? r->first_sentence : 0;
    if (by_sentence && cpl_type_times(type) == 2) {
        w.has_time = 1;
        w.geometry = &r->geometry[type->dim[1].symbol];
        w.inner = &r->geometry[type->dim[2].symbol];
        w.pairs = cpl_pair_index_make(r->workspace, w.geometry, w.inner);
        w.rows = w.geometry->rows;
    } else if (by_sentence) {
        w.has_time = type->rank > 1 && type->dim[1].kind == CPL_DIM_TIME;
        if (w.has_time)
            w.geometry = &r->geometry[type->dim[1].symbol];
        else if (type->order != CPL_ORDER_CALLER && shape->rows == r->geometry[type->order].batch)
            w.geometry = &r->geometry[type->order];
    }
    return w;
}

/* [batch t s …]: the index of where the rows of t begin. */
static size_t workspace(const cpl_size_context *s)
{
    const cpl_type *type = s->in[0];
    if (type->rank < 3 || type->dim[0].kind != CPL_DIM_BATCH || cpl_type_times(type) != 2)
        return 0;
    return cpl_pair_index_bytes(s->binding->batch, s->binding->longest[type->dim[1].symbol]);
}

/* Draws n elements: each 64-bit number serves two of them. */
static void drop_span(const work *w, int64_t from, int64_t n, int64_t sentence, int64_t place)
{
    uint64_t at = w->what == CPL_DROP_STEADY ? 0 : (uint64_t)place;
    uint64_t key = cpl_random_key(w->r->random_key, (uint64_t)(w->first + sentence), at);
    const real *x = w->from + from;
    real *y = w->to + from;
    if (w->what == CPL_DROP_ROWS) {
        int dropped = (cpl_random_bits(key, 0) & 0xFFFFFFFFu) < w->limit;
        for (int64_t i = 0; i < n; i++)
            y[i] = dropped ? 0 : x[i] * w->factor;
        return;
    }
    for (int64_t i = 0; i < n; i += 2) {
        uint64_t bits = cpl_random_bits(key, (uint64_t)i);
        y[i] = (bits & 0xFFFFFFFFu) < w->limit ? 0 : x[i] * w->factor;
        if (i + 1 < n)
            y[i + 1] = (bits >> 32) < w->limit ? 0 : x[i + 1] * w->factor;
    }
}

/* Step of a packed row: the last one that begins at or before it. */
static int64_t step_of(const cpl_geometry *g, int64_t row)
{
    int64_t low = 0, high = g->longest;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (g->offset[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Row of the step: its sentence's columns, or all its steps of the inner time with theirs. */
static void drop_step(const work *w, int64_t row, int64_t step)
{
    const cpl_geometry *g = w->geometry, *s = w->inner;
    int64_t at = row - g->offset[step], sentence = g->sentence[at];
    if (!s)
        drop_span(w, row * w->width, w->width, sentence, g->place[row]);
    else
        drop_span(w, cpl_pair_row(&w->pairs, step, at) * w->width, s->length[s->position[sentence]] * w->width,
                  sentence, g->place[row]);
}

static int64_t row_elements(const work *w)
{
    return w->inner ? w->width * w->inner->longest : w->width;
}

static void drop(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    const cpl_geometry *g = w->geometry;
    cpl_span s = cpl_span_of(task, cpl_chunk_rows(row_elements(w)), w->rows);
    int64_t step = w->has_time ? step_of(g, s.from) : 0;
    (void)thread;
    for (int64_t row = s.from; row < s.to; row++) {
        while (w->has_time && row >= g->offset[step + 1])
            step++;
        if (w->has_time)
            drop_step(w, row, step);
        else
            drop_span(w, row * w->width, w->width, g ? g->sentence[row] : row, 0);
    }
}

static void apply(const cpl_run_context *r, const real *from, real *to, const cpl_tensor *shape)
{
    const cpl_dropout_attributes *a = r->attributes;
    if (!r->training || (uint64_t)((double)a->rate * 4294967296.0) == 0) {
        if (from != to)
            cpl_run_copy(r, from, to, cpl_tensor_elements(shape));
        return;
    }
    work w = work_of(r, from, to, shape);
    cpl_run_tasks(r, cpl_row_chunks(w.rows, row_elements(&w)), drop, &w);
}

static void forward(const cpl_run_context *r)
{
    apply(r, r->in[0].data, r->out[0].data, &r->out[0]);
}

static void backward(const cpl_run_context *r)
{
    if (r->din[0].data && r->dout[0].data)
        apply(r, r->dout[0].data, r->din[0].data, &r->din[0]);
    else if (r->din[0].data)
        cpl_run_zero(r, r->din[0].data, cpl_tensor_elements(&r->din[0]));
}

static const char *const tests[] = {"attr.0=0.5 ...=batch,t,3", "attr.0=0.25 ...=batch,7", "attr.0=0.0 ...=batch,s,2",
                                    "attr.0=0.5 ...=batch,s,t", "attr.0=0.5 attr.1=1 ...=batch,t,5",
                                    "attr.0=0.5 attr.1=1 ...=batch,3",
                                    "attr.0=0.5 attr.1=2 ...=batch,s,3", NULL};

const cpl_op cpl_op_dropout = {
    .name = "dropout",
    .doc = "drops elements at random while training",
    .signature = "x[...] -> y[...]",
    .flags = CPL_OP_RANDOM | CPL_OP_IN_PLACE | CPL_OP_LOCAL | CPL_OP_CHEAP,
    .attributes = sizeof(cpl_dropout_attributes),
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
