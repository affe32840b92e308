/* packed.c: the reference products with packed weights. */
#include <math.h>
#include "kernel/packed.h"
#include "kernel/ref/reference.h"

/* All types alike: what is said is done, a number of B at a time. */
static float number_of(const cpl_packed *b, int64_t column, int64_t p)
{
    static const int64_t in_word[] = {[CPL_WEIGHT_FLOAT32] = 1, [CPL_WEIGHT_BFLOAT16] = 2, [CPL_WEIGHT_INT8] = 4};
    int64_t n = in_word[b->type], words = (b->depth + n - 1) / n;
    int64_t at = (column / CPL_PACK * words + p / n) * CPL_PACK + column % CPL_PACK;
    union { uint32_t bits; float number; } word = {.bits = b->words[at]};

    if (b->type == CPL_WEIGHT_INT8)
        return (float)((const int8_t *)(b->words + at))[p % 4];
    if (b->type == CPL_WEIGHT_BFLOAT16)
        word.bits = p % 2 ? word.bits << 16 : word.bits & 0xffff0000u;
    return word.number;
}

/* How the numbers of a row of A become bytes: q = a · times, and back: q · scale. */
typedef struct row_bytes {
    float times, scale;
} row_bytes;

static row_bytes bytes_of(const real *a, int64_t k)
{
    float largest = 0;

    for (int64_t p = 0; p < k; p++) {
        if (!isfinite((float)a[p]))
            return (row_bytes){0, NAN};
        largest = fmaxf(largest, fabsf((float)a[p]));
    }
    if (largest < 1e-30f)
        return (row_bytes){0, 0};
    return (row_bytes){127.0f / largest, largest / 127.0f};
}

static double sum_int8(const cpl_gemm_packed *g, const real *a, row_bytes row, int64_t column)
{
    int32_t sum = 0;

    for (int64_t p = 0; p < g->b->depth && row.times > 0; p++)
        sum += (int32_t)rintf((float)a[p] * row.times) * (int32_t)number_of(g->b, column, p);
    return (double)((float)sum * (row.scale * g->b->scale[column]));
}

static double sum_floats(const cpl_gemm_packed *g, const real *a, int64_t column)
{
    double sum = 0;

    for (int64_t p = 0; p < g->b->depth; p++)
        sum += (double)a[p] * (double)number_of(g->b, column, p);
    return sum;
}

void cpl_ref_gemm_packed(const cpl_gemm_packed *g, void *scratch)
{
    (void)scratch;
    for (int64_t i = 0; i < g->m; i++) {
        const real *a = g->a + i * g->lda;
        int is_int8 = g->b->type == CPL_WEIGHT_INT8;
        row_bytes row = is_int8 ? bytes_of(a, g->b->depth) : (row_bytes){0, 0};

        for (int64_t j = 0; j < g->n; j++) {
            double sum = is_int8 ? sum_int8(g, a, row, g->from + j) : sum_floats(g, a, g->from + j);
            real *c = g->c + i * g->ldc + j;

            *c = (real)(g->beta == 0 ? sum : sum + (double)*c);
        }
    }
}
