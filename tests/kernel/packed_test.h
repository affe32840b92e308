/* packed_test.h: packed weights made of floats, and a product with them compared with the reference. */
#ifndef CPL_TESTS_PACKED_TEST_H
#define CPL_TESTS_PACKED_TEST_H

#include "kernel/packed.h"
#include "product_test.h"

typedef struct weights {
    cpl_packed p;
    void *memory;
} weights;

static inline void assert_near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%.9g, expected %.9g", got, expected);
}

/* w[depth columns], row by row. */
static inline weights weights_new(cpl_weight_type type, int64_t columns, int64_t depth, const float *w)
{
    weights b = {.memory = aligned_alloc(64, (cpl_packed_bytes(type, columns, depth) + 63) / 64 * 64)};
    int8_t *bytes = malloc((size_t)depth + 1);
    uint16_t *halves = malloc(sizeof *halves * (size_t)depth + 1);

    assert_true(b.memory && bytes && halves);
    cpl_packed_place(&b.p, type, columns, depth, b.memory);
    if (type == CPL_WEIGHT_FLOAT32)
        cpl_packed_set_whole(&b.p, w);
    for (int64_t j = 0; j < columns && type != CPL_WEIGHT_FLOAT32; j++) {
        float scale = 0;

        if (type == CPL_WEIGHT_INT8)
            scale = cpl_to_int8(depth, w + j, columns, bytes, 1);
        for (int64_t p = 0; p < depth; p++)
            halves[p] = cpl_to_bfloat16(w[p * columns + j]);
        cpl_packed_set(&b.p, j, type == CPL_WEIGHT_INT8 ? (const void *)bytes : halves, 1, scale);
    }
    free(bytes);
    free(halves);
    return b;
}

static inline void weights_free(weights *b)
{
    free(b->memory);
}

/* shape: m, columns, depth. Rows of A and C stand apart, and what stands between is left alone. */
static inline void check_packed(const cpl_kernels *table, cpl_weight_type type, const int64_t shape[3], int beta)
{
    int64_t m = shape[0], n = shape[1], k = shape[2], lda = k + 3, ldc = n + 2;
    const cpl_kernels *reference = cpl_kernels_named("reference");
    real *a = numbers(m * lda, 1, 2), *w = numbers(k * n, 2, 1), *c = numbers(m * ldc, 3, 1);
    real *expected = copy_of(c, m * ldc);
    weights b = weights_new(type, n, k, w);
    scratch s = scratch_new(table);
    cpl_gemm_packed g = {.m = m, .a = a, .lda = lda, .b = &b.p, .n = n, .beta = (real)beta, .c = expected, .ldc = ldc};

    reference->gemm_packed(&g, NULL);
    for (int64_t i = 0; !beta && i < m * n; i++) /* beta 0: C must not be read */
        c[i / n * ldc + i % n] = (real)NAN;
    g.c = c;
    table->gemm_packed(&g, s.bytes);
    if (type == CPL_WEIGHT_INT8)
        assert_same_bits("gemm_packed", table->name, c, expected, m * ldc);
    else
        assert_close("gemm_packed", table->name, c, expected, m * ldc, 1e-6 * sqrt((double)k + 1.0));
    scratch_check(s);
    weights_free(&b);
    free(expected);
    free(c);
    free(w);
    free(a);
}

#endif
