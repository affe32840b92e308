/* concat.c: y = [x1 x2], side by side in the last dimension.
 *
 *   dx1 = the first a columns of dy     dx2 = the other b
 */
#include <string.h>
#include "ops/rows.h"

/* One block of columns, from or to its place in the wide matrix. */
typedef struct work {
    int64_t rows, from_width, to_width, n; /* n columns of each row are copied */
    const real *from;
    real *to;
} work;

static void copy_columns(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    cpl_span s = cpl_span_of(task, cpl_chunk_rows(w->n), w->rows);
    (void)thread;
    for (int64_t row = s.from; row < s.to; row++)
        memcpy(w->to + row * w->to_width, w->from + row * w->from_width, (size_t)w->n * sizeof(real));
}

static void forward(const cpl_run_context *r)
{
    int64_t wide = cpl_last_size(r->out[0].type), at = 0;
    for (int i = 0; i < 2; i++) {
        int64_t n = cpl_last_size(r->in[i].type);
        work w = {cpl_rows_of(cpl_tensor_elements(&r->in[i]), n), n, wide, n, r->in[i].data, r->out[0].data + at};
        cpl_run_tasks(r, cpl_row_chunks(w.rows, n), copy_columns, &w);
        at += n;
    }
}

static void backward(const cpl_run_context *r)
{
    int64_t sizes[2] = {cpl_last_size(r->in[0].type), cpl_last_size(r->in[1].type)}, at = 0;
    for (int i = 0; i < 2; i++) {
        int64_t n = sizes[i], elements = cpl_tensor_elements(&r->din[i]);
        if (r->din[i].data && r->dout[0].data) {
            work w = {cpl_rows_of(elements, n), sizes[0] + sizes[1], n, n, r->dout[0].data + at, r->din[i].data};
            cpl_run_tasks(r, cpl_row_chunks(w.rows, n), copy_columns, &w);
        } else if (r->din[i].data) {
            cpl_run_zero(r, r->din[i].data, elements);
        }
        at += n;
    }
}

static const char *const tests[] = {"a=3 b=5", "a=1 b=7 ...=batch", "a=17 b=1 ...=", NULL};

const cpl_op cpl_op_concat = {
    .name = "concat",
    .doc = "two tensors side by side in the last dimension",
    .signature = "x1[... a] x2[... b] -> y[... a+b]",
    .flags = CPL_OP_LOCAL | CPL_OP_CHEAP,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
