/* kernel_test.h: what the tests of the kernel tables share: data from a fixed sequence, and comparisons. */
#ifndef CPL_TESTS_KERNEL_TEST_H
#define CPL_TESTS_KERNEL_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/kernel.h"

enum { TABLES_MOST = 8 };

/* Numbers between −range and range. The same seed gives the same numbers. */
static inline void fill(real *x, int64_t n, uint32_t seed, double range)
{
    uint32_t state = seed * 2654435761u + 12345u;

    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (real)(((double)(state >> 8) / 8388608.0 - 1.0) * range);
    }
}

/* Exactly n numbers on the heap, so that a sanitizer sees one read too many. */
static inline real *numbers(int64_t n, uint32_t seed, double range)
{
    real *x = malloc(sizeof(real) * (size_t)(n > 0 ? n : 1));

    assert_non_null(x);
    fill(x, n, seed, range);
    return x;
}

static inline real *copy_of(const real *x, int64_t n)
{
    real *y = numbers(n, 1, 0.0);

    memcpy(y, x, sizeof(real) * (size_t)n);
    return y;
}

/* Fails when a number differs by more than tolerance · (1 + |expected|), or only one of two is a NaN. */
static inline void assert_close(const char *what, const char *table, const real *got, const real *expected, int64_t n,
                                double tolerance)
{
    for (int64_t i = 0; i < n; i++) {
        double g = (double)got[i];
        double e = (double)expected[i];

        if (isnan(g) && isnan(e))
            continue;
        if (g == e || fabs(g - e) <= tolerance * (1.0 + fabs(e)))
            continue;
        fail_msg("%s of table %s: [%lld of %lld] is %.9g, expected %.9g", what, table, (long long)i, (long long)n, g,
                 e);
    }
}

static inline void assert_same_bits(const char *what, const char *table, const real *x1, const real *x2, int64_t n)
{
    if (memcmp(x1, x2, sizeof(real) * (size_t)n) != 0)
        fail_msg("%s of table %s: the bits of a row depend on its neighbours (n %lld)", what, table, (long long)n);
}

#endif
