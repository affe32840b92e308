/* product_test.h: what every matrix product must do, whatever its precision: sums in double computed here, and two
 * promises: nothing outside C and scratch is written, and a row's bits do not depend on the rows around it. */
#ifndef CPL_TESTS_PRODUCT_TEST_H
#define CPL_TESTS_PRODUCT_TEST_H

#include "kernel_test.h"

enum { GUARD = 64 };

static const cpl_kernels *tables[TABLES_MOST];
static int table_count;
static double (*rounded)(double x); /* what the product makes of a number of A or B; NULL: nothing */

/* Scratch of exactly the promised size, then guard bytes. */
typedef struct scratch {
    unsigned char *bytes;
    size_t size;
} scratch;

static inline scratch scratch_new(const cpl_kernels *table)
{
    scratch s = {.size = table->gemm_scratch};

    s.bytes = aligned_alloc(64, (s.size + GUARD + 63) / 64 * 64);
    assert_non_null(s.bytes);
    memset(s.bytes, 0xff, s.size); /* NaN, should it be read before it is written */
    memset(s.bytes + s.size, 0x5a, GUARD);
    return s;
}

static inline void scratch_check(scratch s)
{
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(s.bytes[s.size + (size_t)i], 0x5a);
    free(s.bytes);
}

typedef struct product {
    int transpose_a, transpose_b;
    int64_t m, n, k;
    int beta;
    int64_t lda, ldb, ldc;
    real *a, *b, *c;
} product;

static inline product product_new(int64_t m, int64_t n, int64_t k, int transposes, int beta, int64_t extra)
{
    product p = {.transpose_a = transposes & 1, .transpose_b = transposes >> 1, .m = m, .n = n, .k = k, .beta = beta};

    p.lda = (p.transpose_a ? m : k) + extra;
    p.ldb = (p.transpose_b ? k : n) + extra;
    p.ldc = n + extra;
    p.a = numbers((p.transpose_a ? k : m) * p.lda, 1, 1.0);
    p.b = numbers((p.transpose_b ? n : k) * p.ldb, 2, 1.0);
    p.c = numbers(m * p.ldc, 3, 1.0);
    return p;
}

static inline void product_free(product *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
}

static inline cpl_gemm call_of(const product *p, real *c)
{
    return (cpl_gemm){.transpose_a = p->transpose_a,
                      .transpose_b = p->transpose_b,
                      .m = p->m,
                      .n = p->n,
                      .k = p->k,
                      .a = p->a,
                      .lda = p->lda,
                      .b = p->b,
                      .ldb = p->ldb,
                      .beta = (real)p->beta,
                      .c = c,
                      .ldc = p->ldc};
}

static inline real *operand_of(const real *x, int64_t n)
{
    real *y = copy_of(x, n);

    for (int64_t i = 0; rounded && i < n; i++)
        y[i] = (real)rounded((double)x[i]);
    return y;
}

/* C by definition, in double; columns between n and ldc keep what they hold. */
static inline real *expected_of(const product *p)
{
    real *a = operand_of(p->a, (p->transpose_a ? p->k : p->m) * p->lda);
    real *b = operand_of(p->b, (p->transpose_b ? p->n : p->k) * p->ldb);
    real *c = copy_of(p->c, p->m * p->ldc);

    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = p->beta ? (double)p->c[i * p->ldc + j] : 0.0;

            for (int64_t q = 0; q < p->k; q++)
                sum += (double)a[p->transpose_a ? q * p->lda + i : i * p->lda + q] *
                       (double)b[p->transpose_b ? j * p->ldb + q : q * p->ldb + j];
            c[i * p->ldc + j] = (real)sum;
        }
    }
    free(a);
    free(b);
    return c;
}

static inline void check_product(int64_t m, int64_t n, int64_t k, int transposes, int beta, int64_t extra)
{
    product p = product_new(m, n, k, transposes, beta, extra);
    real *expected = expected_of(&p);

    for (int t = 0; t < table_count; t++) {
        scratch s = scratch_new(tables[t]);
        real *c = copy_of(p.c, m * p.ldc);
        cpl_gemm g = call_of(&p, c);

        for (int64_t i = 0; !beta && i < m * n; i++) /* beta 0: C must not be read */
            c[i / n * p.ldc + i % n] = (real)NAN;
        tables[t]->gemm(&g, tables[t]->gemm_scratch > 0 ? s.bytes : NULL);
        assert_close("gemm", tables[t]->name, c, expected, m * p.ldc, 1e-6 * sqrt((double)k + 1.0));
        free(c);
        scratch_check(s);
    }
    free(expected);
    product_free(&p);
}

static inline void every_tail_transpose_and_beta(void **state)
{
    static const int64_t rows[] = {1, 2, 3, 5, 6, 7, 13, 15, 16, 17, 33, 64, 100};
    static const int64_t columns[] = {1, 2, 15, 16, 17, 33, 100};
    static const int64_t depths[] = {0, 1, 2, 17, 33, 300};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t j = 0; j < sizeof columns / sizeof *columns; j++) {
            for (int which = 0; which < 6 * 8; which++)
                check_product(rows[i], columns[j], depths[which / 8], which & 3, which >> 2 & 1, (which / 8 * 3) % 7);
        }
    }
}

static inline void several_blocks_of_rows_and_slices_of_k(void **state)
{
    (void)state;
    for (int transposes = 0; transposes < 4; transposes++) {
        check_product(523, 70, 41, transposes, 1, 1);
        check_product(259, 37, 777, transposes, 0, 0);
        check_product(1, 300, 1030, transposes, 1, 5);
    }
}

/* Rows first … first+m of the product, computed in a call of their own, against the same rows of `whole`. */
static inline void check_rows(const cpl_kernels *table, const product *p, const real *whole, int64_t first, int64_t m)
{
    scratch s = scratch_new(table);
    real *c = numbers(m * p->n, 9, 1.0);
    cpl_gemm g = call_of(p, c);

    g.m = m;
    g.a += p->transpose_a ? first : first * p->lda;
    g.ldc = p->n;
    table->gemm(&g, s.bytes);
    for (int64_t i = 0; i < m; i++)
        assert_same_bits("gemm", table->name, c + i * p->n, whole + (first + i) * p->ldc, p->n);
    free(c);
    scratch_check(s);
}

/* A row alone, first and last of calls of every size up to 64, and in the middle of a large call. */
static inline void bits_of_a_row_do_not_depend_on_other_rows(void **state)
{
    static const int64_t shapes[][2] = {{768, 256}, {256, 768}, {250, 40}, {40, 1300}, {5, 300}, {17, 17}};

    (void)state;
    for (int which = 0; which < 6 * 4 * table_count; which++) {
        const cpl_kernels *table = tables[which / 24];
        int64_t n = shapes[which % 6][0];
        int64_t k = shapes[which % 6][1];
        int64_t m = table->gemm_scratch > 0 ? 300 : 20; /* the reference is slow, and plain */
        product p = product_new(m, n, k, which / 6 % 4, 0, 0);
        scratch s = scratch_new(table);
        real *whole = copy_of(p.c, m * n);
        cpl_gemm g = call_of(&p, whole);

        table->gemm(&g, s.bytes);
        for (int64_t size = 1; size <= 64 && size <= m; size++)
            check_rows(table, &p, whole, (size * 7) % (m - size + 1), size);
        for (int64_t row = 0; row < m; row += 41)
            check_rows(table, &p, whole, row, 1);
        check_rows(table, &p, whole, 1, m - 1);
        free(whole);
        scratch_check(s);
        product_free(&p);
    }
}

/* Columns cut as threads cut them: a column's bits depend on its own inputs alone. */
static inline void bits_of_a_column_do_not_depend_on_the_cut(void **state)
{
    enum { M = 21, N = 200, K = 300, CUT = 104 };

    (void)state;
    for (int which = 0; which < 4 * table_count; which++) {
        const cpl_kernels *table = tables[which / 4];
        product p = product_new(M, N, K, which % 4, 0, 0);
        scratch s = scratch_new(table);
        real *whole = copy_of(p.c, M * N);
        real *halves = copy_of(p.c, M * N);
        cpl_gemm g = call_of(&p, whole);

        table->gemm(&g, s.bytes);
        g.c = halves;
        g.n = CUT;
        table->gemm(&g, s.bytes);
        g.c = halves + CUT;
        g.n = N - CUT;
        g.b += p.transpose_b ? CUT * p.ldb : CUT;
        table->gemm(&g, s.bytes);
        assert_same_bits("gemm in two halves", table->name, whole, halves, M * N);
        free(whole);
        free(halves);
        scratch_check(s);
        product_free(&p);
    }
}

#define PRODUCT_TESTS                                                                                                  \
    cmocka_unit_test(every_tail_transpose_and_beta), cmocka_unit_test(several_blocks_of_rows_and_slices_of_k),         \
        cmocka_unit_test(bits_of_a_row_do_not_depend_on_other_rows),                                                   \
        cmocka_unit_test(bits_of_a_column_do_not_depend_on_the_cut)

#endif
