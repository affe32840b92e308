/* packed.c: the reference products with weights in a lower type. */
#include <math.h>
#include "kernel/packed.h"
#include "kernel/ref/reference.h"

/* bfloat16 to float and int8 alike: what is said is done, a number of B at a time. */
static float number_of(const cpl_packed *b, int64_t column, int64_t p)
{
    int64_t block = column / CPL_PACK, in_block = column % CPL_PACK;
    int64_t words = b->type == CPL_WEIGHT_INT8 ? (b->depth + 3) / 4 : (b->depth + 1) / 2;
    int64_t at = (block * words + (b->type == CPL_WEIGHT_INT8 ? p / 4 : p / 2)) * CPL_PACK + in_block;
    union { uint32_t bits; float number; } half = {.bits = p % 2 ? b->words[at] << 16 : b->words[at] & 0xffff0000u};

    if (b->type == CPL_WEIGHT_INT8)
        return (float)((const int8_t *)(b->words + at))[p % 4];
    return half.number;
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

static double sum_bf16(const cpl_gemm_packed *g, const real *a, int64_t column)
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
            double sum = is_int8 ? sum_int8(g, a, row, g->from + j) : sum_bf16(g, a, g->from + j);
            real *c = g->c + i * g->ldc + j;

            *c = (real)(g->beta == 0 ? sum : sum + (double)*c);
        }
    }
}
