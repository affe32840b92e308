/* attention.c: from the step graph's weights [heads batch t s], or [batch t s] of one head, to one matrix for each row
 * of the batch.
 *
 * Rows end at different steps and have sources of different lengths, so each row's matrix grows by itself: nothing
 * has to be put together at the end, and a long row costs its own size only. */
#include "decode/attention.h"

#include <string.h>
#include "base/error.h"
#include "base/memory.h"

cpl_status cpl_attention_begin(cpl_attention_record *a, int64_t count, cpl_error *err)
{
    size_t n = (size_t)count;
    if (n <= a->count)
        return CPL_OK;
    if (cpl_grow(&a->rows, &a->capacity, n, sizeof *a->rows))
        CPL_FAIL(err, CPL_FAILED, "out of memory for the attention of %zu sentences", n);
    memset(a->rows + a->count, 0, (n - a->count) * sizeof *a->rows);
    a->count = n;
    return CPL_OK;
}

/* Row `number` of the sentence's matrix. */
static int keep_row(cpl_attention_row *row, const float *weights, int64_t number, int64_t length)
{
    if (cpl_grow(&row->weights, &row->capacity, (size_t)((number + 1) * length), sizeof *row->weights))
        return -1;
    memcpy(row->weights + number * length, weights, (size_t)length * sizeof *weights);
    return 0;
}

/* In place: the first head's numbers are read before they are overwritten. */
static void mean_over_heads(float *x, int64_t heads, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int64_t h = 0; h < heads; h++)
            sum += x[h * n + i];
        x[i] = sum / (float)heads;
    }
}

cpl_status cpl_attention_read(cpl_attention_record *a, cpl_program *program, cpl_attention_shape *of, cpl_error *err)
{
    int64_t shape[6];
    int rank;
    cpl_tensor t;
    if (!cpl_program_output(program, "weights", &t))
        CPL_FAIL(err, CPL_USAGE, "this model has no attention");
    CPL_TRY(cpl_read(program, "weights", NULL, 0, shape, &rank, err), err, "cannot read the attention");
    if (rank != 3 && rank != 4)
        CPL_FAIL(err, CPL_FAILED, "the attention weights have %d dimensions, expected [batch t s] or [heads batch t s]",
                 rank);
    const int64_t *last = shape + rank - 3, heads = rank == 4 ? shape[0] : 1; /* batch, t, s */
    *of = (cpl_attention_shape){.batch = last[0], .width = last[1] * last[2]};
    size_t n = (size_t)(heads * of->batch * of->width);
    if (cpl_grow(&a->step, &a->step_capacity, n, sizeof *a->step))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %zu attention weights", n);
    CPL_TRY(cpl_read(program, "weights", a->step, n, shape, &rank, err), err, "cannot read the attention");
    mean_over_heads(a->step, heads, of->batch * of->width);
    return CPL_OK;
}

cpl_status cpl_attention_keep(cpl_attention_record *a, const cpl_attention_shape *of, int64_t number,
                              const int64_t *alive, const int64_t *length, cpl_error *err)
{
    for (int64_t i = 0; i < of->batch; i++)
        if (alive[i] && keep_row(&a->rows[i], a->step + i * of->width, number, length[i]))
            CPL_FAIL(err, CPL_FAILED, "out of memory for the attention of %lld tokens", (long long)number + 1);
    return CPL_OK;
}

void cpl_attention_free(cpl_attention_record *a)
{
    for (size_t i = 0; i < a->count; i++)
        cpl_release(a->rows[i].weights);
    cpl_release(a->rows);
    cpl_release(a->step);
    *a = (cpl_attention_record){0};
}
