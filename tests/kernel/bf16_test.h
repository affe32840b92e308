/* bf16_test.h: rounding to bfloat16 by arithmetic, and tables whose product does it. */
#ifndef CPL_TESTS_BF16_TEST_H
#define CPL_TESTS_BF16_TEST_H

#include "product_test.h"

/* 8 significant bits, fewer below 2^-126; rint takes the even one of two. */
static inline double bf16_of(double x)
{
    int exponent;

    if (x == 0 || isnan(x) || isinf(x))
        return x;
    frexp(x, &exponent);
    int unit = exponent - 8 < -133 ? -133 : exponent - 8;
    double y = ldexp(rint(ldexp(x, -unit)), unit);
    return fabs(y) >= 0x1p128 ? copysign((double)INFINITY, x) : y;
}

static inline uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* What a table makes of x: x · 1. */
static inline void round_by(const cpl_kernels *table, const float *x, int64_t count, float *y)
{
    const float one = 1.0f;
    scratch s = scratch_new(table);
    cpl_gemm g = {.m = count, .n = 1, .k = 1, .a = x, .lda = 1, .b = &one, .ldb = 1, .c = y, .ldc = 1};

    table->gemm_bf16(&g, s.bytes);
    scratch_check(s);
}

/* Every upper half with lower halves around a tie and at both ends. A table that multiplies in bfloat16 takes numbers
 * below 2^-126 for 0. */
static inline void check_rounding(const cpl_kernels *table)
{
    static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { LOWER = 6, COUNT = 65536 * LOWER };
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);

    assert_true(x != NULL && y != NULL);
    for (uint32_t i = 0; i < COUNT; i++)
        x[i] = float_of((i / LOWER) << 16 | lower[i % LOWER]);
    round_by(table, x, COUNT, y);
    for (int i = 0; i < COUNT; i++) {
        float expected = (float)bf16_of((double)x[i]);

        if (isnan(expected) ? isnan(y[i]) : y[i] == expected)
            continue;
        if (table->multiplies_bf16 && fabsf(x[i]) < 0x1p-126f && y[i] == 0.0f)
            continue;
        fail_msg("table %s rounds %a (%08x) to %a, expected %a", table->name, (double)x[i], (unsigned)bits_of(x[i]),
                 (double)y[i], (double)expected);
    }
    free(x);
    free(y);
}

#endif
