/* embedding.c: y[row] = w[id of row].
 *
 *   dw[id] = Σ dy over the rows with that id, in row order (a dense gradient)
 *
 * The backward pass deals ranges of w's rows: every task reads all ids and adds those of its range, so the
 * order of each sum is the order of the rows whatever the number of threads. */
#include <math.h>
#include "base/error.h"
#include "ops/rows.h"

/* Rows of w that one task owns: 32 tasks at most, each of at least 64 rows. */
enum { RANGE_TASKS = 32, RANGE_LEAST = 64 };

typedef struct work {
    const cpl_run_context *r;
    int64_t rows, units, size;
    int64_t range; /* backward: rows of w of one task */
} work;

static work work_of(const cpl_run_context *r)
{
    const cpl_type *w = r->in[1].type;
    int64_t size = w->dim[0].size, range = (size + RANGE_TASKS - 1) / RANGE_TASKS;
    return (work){.r = r, .rows = cpl_tensor_elements(&r->in[0]), .units = w->dim[1].size, .size = size,
                  .range = range > RANGE_LEAST ? range : RANGE_LEAST};
}

/* An id outside of the vocabulary shows as NaN: it never wraps to another row. */
static void look_up(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    cpl_span s = cpl_span_of(task, cpl_chunk_rows(w->units), w->rows);
    (void)thread;
    for (int64_t row = s.from; row < s.to; row++) {
        int32_t id = w->r->in[0].ids[row];
        real *y = w->r->out[0].data + row * w->units;
        if (id >= 0 && id < w->size)
            cpl_table_row(&w->r->in[1], id, w->units, y);
        else
            for (int64_t i = 0; i < w->units; i++)
                y[i] = (real)NAN;
    }
}

static void forward(const cpl_run_context *r)
{
    work w = work_of(r);
    cpl_run_tasks(r, cpl_row_chunks(w.rows, w.units), look_up, &w);
}

static void add_range(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    const cpl_run_context *r = w->r;
    cpl_span s = cpl_span_of(task, w->range, w->size);
    real *dw = r->din[1].data;
    (void)thread;
    for (int64_t i = s.from * w->units; i < s.to * w->units; i++)
        dw[i] = 0;
    for (int64_t row = 0; r->dout[0].data && row < w->rows; row++) {
        int32_t id = r->in[0].ids[row];
        if (id >= s.from && id < s.to)
            r->kernels->add_rows(1, w->units, r->dout[0].data + row * w->units, w->units, dw + id * w->units);
    }
}

static void backward(const cpl_run_context *r)
{
    work w = work_of(r);
    if (r->din[1].data)
        cpl_run_tasks(r, (w.size + w.range - 1) / w.range, add_range, &w);
}

/* The table must have a row for each entry of the ids' vocabulary, and none that no id reaches. */
static cpl_status check(const cpl_shape_context *s, cpl_error *err)
{
    const cpl_type *ids = s->in[0], *w = s->in[1];
    if (!ids || !w || ids->element != CPL_ELEMENT_ID || w->rank != 2 || !ids->entries)
        return CPL_OK; /* the match of the signature says it better, or the ids are of no vocabulary */
    if (w->dim[0].size != ids->entries)
        CPL_FAIL(err, CPL_USAGE, "embedding: '%s' has %lld rows but vocabulary '%s' of '%s' has %lld entries",
                 s->in_path[1], (long long)w->dim[0].size, ids->vocabulary ? ids->vocabulary : "", s->in_path[0],
                 (long long)ids->entries);
    return CPL_OK;
}

static const char *const tests[] = {"size=7 units=3", "size=1 units=1 ...=batch", "size=131 units=5 ...=batch,s",
                                    NULL};

const cpl_op cpl_op_embedding = {
    .name = "embedding",
    .doc = "row of a table for each id",
    .signature = "id ids[...] w[size units] -> y[... units]",
    .flags = CPL_OP_LOCAL | CPL_OP_CHEAP,
    .tables = 1 << 1,
    .keeps = CPL_KEEP_IN0,
    .check = check,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
