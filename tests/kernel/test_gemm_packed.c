/* test_gemm_packed.c: products with packed weights of each type: by hand, against each other, and rows that must not
 * depend on their neighbours. */
#include "packed_test.h"

#include "kernel/ref/reference.h"

enum { TYPES = 3 };
static const cpl_weight_type types[TYPES] = {CPL_WEIGHT_FLOAT32, CPL_WEIGHT_BFLOAT16, CPL_WEIGHT_INT8};

/* Columns (50, −127) with the scale 1 and (63.5, 10.1) with 0.5, whose bytes are (127, 20); the row (31.75, −10.1)
 * has the scale 0.25 and the bytes (127, −40).
 *     127·50 + 40·127 = 11430, times 0.25          127·127 − 40·20 = 15329, times 0.125 */
static void by_hand_in_bytes(void **state)
{
    const float w[] = {50, 63.5f, -127, 10.1f};
    const real a[] = {31.75f, -10.1f};

    (void)state;
    for (int t = 0; t < table_count; t++) {
        weights b = weights_new(CPL_WEIGHT_INT8, 2, 2, w);
        scratch s = scratch_new(tables[t]);
        real c[2] = {NAN, NAN};
        cpl_gemm_packed g = {.m = 1, .a = a, .lda = 2, .b = &b.p, .n = 2, .c = c, .ldc = 2};

        tables[t]->gemm_packed(&g, s.bytes);
        assert_true(c[0] == 2857.5f && c[1] == 1916.125f);
        g.beta = 1;
        tables[t]->gemm_packed(&g, s.bytes);
        assert_true(c[0] == 2 * 2857.5f && c[1] == 2 * 1916.125f);
        scratch_check(s);
        weights_free(&b);
    }
}

/* 1/3 in bfloat16 is 0x3eab = 0.333984375; 0.5 and −2 are exact. */
static void by_hand_in_bfloat16(void **state)
{
    const float w[] = {1.0f / 3, 0.5f, -2};
    const real a[] = {3, 7, 0.25};

    (void)state;
    for (int t = 0; t < table_count; t++) {
        weights b = weights_new(CPL_WEIGHT_BFLOAT16, 1, 3, w);
        scratch s = scratch_new(tables[t]);
        real c[1] = {10};

        tables[t]->gemm_packed(&(cpl_gemm_packed){.m = 1, .a = a, .lda = 3, .b = &b.p, .n = 1, .beta = 1, .c = c,
                                                  .ldc = 1}, s.bytes);
        assert_near((double)c[0], 10 + 3 * 0.333984375 + 3.5 - 0.5, 1e-6);
        scratch_check(s);
        weights_free(&b);
    }
}

static const int64_t shapes[][3] = { /* m, columns, depth */
    {1, 1, 1}, {1, 16, 4}, {1, 100, 64}, {2, 17, 5}, {3, 33, 127}, {5, 48, 256}, {6, 15, 3}, {7, 129, 130},
    {13, 64, 31}, {64, 80, 257}, {65, 31, 96}, {131, 18, 600}, {2, 3, 5000},
};

/* The same bits in bytes; sums of floats are rounded. */
static void as_the_reference(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int which = 0; which < 2 * TYPES; which++)
            for (int t = 0; t < table_count; t++)
                check_packed(tables[t], types[which / 2], shapes[k], which % 2);
}

/* A model gives the same whether its weights are packed or not. */
static void float32_has_the_bits_of_gemm(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int which = 0; which < 2 * table_count; which++) {
            const cpl_kernels *table = tables[which / 2];
            int64_t m = shapes[k][0], n = shapes[k][1], depth = shapes[k][2];
            real *a = numbers(m * depth, 31, 2), *w = numbers(depth * n, 32, 1), *c = numbers(m * n, 33, 1);
            real *expected = copy_of(c, m * n);
            weights b = weights_new(CPL_WEIGHT_FLOAT32, n, depth, w);
            scratch s = scratch_new(table);

            memset(b.memory, 0xff, cpl_packed_bytes(CPL_WEIGHT_FLOAT32, n, depth));
            cpl_packed_place_unset(&b.p, CPL_WEIGHT_FLOAT32, n, depth, b.memory);
            cpl_packed_set_whole(&b.p, w);
            table->gemm(&(cpl_gemm){.m = m, .n = n, .k = depth, .a = a, .lda = depth, .b = w, .ldb = n,
                                    .beta = (real)(which % 2), .c = expected, .ldc = n}, s.bytes);
            table->gemm_packed(&(cpl_gemm_packed){.m = m, .a = a, .lda = depth, .b = &b.p, .n = n,
                                                  .beta = (real)(which % 2), .c = c, .ldc = n}, s.bytes);
            assert_same_bits("gemm_packed", table->name, c, expected, m * n);
            scratch_check(s);
            weights_free(&b);
            free(expected);
            free(c);
            free(w);
            free(a);
        }
}

/* Columns from any to any: recurrent products take a part of the gates, and threads take pieces. */
static void any_columns(void **state)
{
    enum { M = 7, COLUMNS = 70, DEPTH = 45 };
    const int64_t ranges[][2] = {{0, 70}, {0, 16}, {16, 16}, {1, 69}, {15, 2}, {31, 33}, {69, 1}, {40, 7}, {8, 24}};

    (void)state;
    for (int which = 0; which < TYPES * table_count; which++) {
        const cpl_kernels *table = tables[which / TYPES];
        real *a = numbers(M * DEPTH, 3, 1), *whole = numbers(M * COLUMNS, 4, 1);
        real *w = numbers(COLUMNS * DEPTH, 5, 1);
        weights b = weights_new(types[which % TYPES], COLUMNS, DEPTH, w);
        scratch s = scratch_new(table);
        cpl_gemm_packed g = {.m = M, .a = a, .lda = DEPTH, .b = &b.p, .n = COLUMNS, .c = whole, .ldc = COLUMNS};

        table->gemm_packed(&g, s.bytes);
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
            int64_t from = ranges[i][0], n = ranges[i][1];
            real *c = numbers(M * n, 6, 1);

            g.from = from, g.n = n, g.c = c, g.ldc = n;
            table->gemm_packed(&g, s.bytes);
            for (int64_t r = 0; r < M; r++)
                assert_same_bits("gemm_packed", table->name, c + r * n, whole + r * COLUMNS + from, n);
            free(c);
        }
        scratch_check(s);
        weights_free(&b);
        free(w);
        free(whole);
        free(a);
    }
}

/* The rule of kernel.h: a row alone, and the same row among any number of others. */
static void rows_do_not_know_each_other(void **state)
{
    enum { M = 133, COLUMNS = 50, DEPTH = 77 };

    (void)state;
    for (int which = 0; which < TYPES * table_count; which++) {
        const cpl_kernels *table = tables[which / TYPES];
        real *a = numbers(M * DEPTH, 13, 2), *all = numbers(M * COLUMNS, 14, 0), *some = numbers(M * COLUMNS, 15, 0);
        real *w = numbers(COLUMNS * DEPTH, 16, 1);
        weights b = weights_new(types[which % TYPES], COLUMNS, DEPTH, w);
        scratch s = scratch_new(table);
        cpl_gemm_packed g = {.m = M, .a = a, .lda = DEPTH, .b = &b.p, .n = COLUMNS, .c = all, .ldc = COLUMNS};

        table->gemm_packed(&g, s.bytes);
        for (int64_t from = 0, m = 1; from < M; from += m, m = m % 14 + 1) {
            g.m = from + m < M ? m : M - from;
            g.a = a + from * DEPTH, g.c = some + from * COLUMNS;
            table->gemm_packed(&g, s.bytes);
        }
        assert_same_bits("gemm_packed", table->name, some, all, M * COLUMNS);
        scratch_check(s);
        weights_free(&b);
        free(w);
        free(some);
        free(all);
        free(a);
    }
}

/* What the schemes promise of A·B: a rounded by half of L/127, w by half of W/127, and their product; in bfloat16 w
 * alone by 2^-9 of itself; in float32 nothing. */
static void errors_within_the_scheme(void **state)
{
    enum { M = 9, COLUMNS = 40, DEPTH = 200 };
    real *a = numbers(M * DEPTH, 23, 3), *c = numbers(M * COLUMNS, 24, 0), *w = numbers(COLUMNS * DEPTH, 25, 1);

    (void)state;
    for (int which = 0; which < TYPES * table_count; which++) {
        const cpl_kernels *table = tables[which / TYPES];
        weights b = weights_new(types[which % TYPES], COLUMNS, DEPTH, w);
        scratch s = scratch_new(table);

        table->gemm_packed(&(cpl_gemm_packed){.m = M, .a = a, .lda = DEPTH, .b = &b.p, .n = COLUMNS, .c = c,
                                              .ldc = COLUMNS}, s.bytes);
        for (int i = 0; i < M * COLUMNS; i++) {
            double exact = 0, allowed[TYPES] = {1e-4, 1e-4, 0}, l = 0, m = 0;

            for (int p = 0; p < DEPTH; p++) {
                double x = (double)a[i / COLUMNS * DEPTH + p], y = (double)w[p * COLUMNS + i % COLUMNS];

                exact += x * y, allowed[1] += fabs(x * y) / 512, l = fmax(l, fabs(x)), m = fmax(m, fabs(y));
            }
            for (int p = 0; p < DEPTH; p++)
                allowed[2] += 1.0001 * (fabs((double)a[i / COLUMNS * DEPTH + p]) * m / 254 +
                                        fabs((double)w[p * COLUMNS + i % COLUMNS]) * l / 254 + l * m / 254 / 254);
            assert_true(fabs((double)c[i] - exact) <= allowed[which % TYPES]);
        }
        scratch_check(s);
        weights_free(&b);
    }
    free(w);
    free(c);
    free(a);
}

/* NaN and infinity do not vanish in bytes, rows beside them are as ever, and nothing divides by 0. */
static void odd_rows(void **state)
{
    enum { DEPTH = 5 };
    const real a[][DEPTH] = {{1, 2, 3, 4, 5}, {1, (real)NAN, 3, 4, 5}, {0, 0, 0, 0, 0}, {1, 2, (real)INFINITY, 4, 5},
                             {(real)1e-38, 0, 0, 0, 0}, {(real)1e38, (real)-1e38, 0, 0, 0}, {1, 2, 3, 4, 5}};
    const float w[DEPTH * 2] = {1, 0, 1, 0, 1, 0, 1, 0, 1, 0};

    (void)state;
    for (int t = 0; t < table_count; t++) {
        weights b = weights_new(CPL_WEIGHT_INT8, 2, DEPTH, w);
        scratch s = scratch_new(tables[t]);
        real c[7][2];

        tables[t]->gemm_packed(&(cpl_gemm_packed){.m = 7, .a = a[0], .lda = DEPTH, .b = &b.p, .n = 2, .c = c[0],
                                                  .ldc = 2}, s.bytes);
        assert_near((double)c[0][0], 15, 0.05);
        assert_near((double)c[0][1], 0, 0); /* a column of zeros has no scale */
        assert_true(isnan(c[1][0]) && isnan(c[3][0]));
        assert_true(c[2][0] == 0 && c[4][0] == 0 && c[5][0] == 0);
        assert_memory_equal(c[6], c[0], sizeof c[0]);
        scratch_check(s);
        weights_free(&b);
    }
}

/* The largest sums that may come: 2^17 times 127 · 127 stays below 2^31. */
static void the_deepest_product(void **state)
{
    enum { DEPTH = CPL_PACKED_DEPTH };
    real *a = malloc(DEPTH * sizeof *a);
    float *w = malloc(DEPTH * sizeof *w);

    (void)state;
    for (int64_t i = 0; i < DEPTH; i++)
        a[i] = 1, w[i] = -1;
    weights b = weights_new(CPL_WEIGHT_INT8, 1, DEPTH, w);
    for (int t = 0; t < table_count; t++) {
        scratch s = scratch_new(tables[t]);
        real c[2];

        tables[t]->gemm_packed(&(cpl_gemm_packed){.m = 1, .a = a, .lda = DEPTH, .b = &b.p, .n = 1, .c = c, .ldc = 1},
                               s.bytes);
        assert_near((double)c[0], -(double)DEPTH, 0.1);
        scratch_check(s);
    }
    weights_free(&b);
    free(w);
    free(a);
}

/* Bytes are within half a step of the number, and zeros stay zeros; a column comes back as it was put there. */
static void numbers_become_bytes(void **state)
{
    const float x[] = {0.5f, 9, -1.27f, 9, 0, 9, 1.27f, 9, 0.016f, 9};
    int8_t bytes[5];
    real back[5];
    uint16_t halves[3] = {0x3f80, 0xc000, 0x3eab};
    uint32_t memory[2 * 16 * 4];
    cpl_packed p;

    (void)state;
    assert_near((double)cpl_to_int8(5, x, 2, bytes, 1), 0.01, 1e-8);
    const int8_t expected[] = {50, -127, 0, 127, 2};
    assert_memory_equal(bytes, expected, 5);
    assert_true(cpl_to_int8(1, (const float[]){0}, 1, bytes, 1) == 0 && bytes[0] == 0);
    assert_int_equal(cpl_to_bfloat16(1.0f / 3), 0x3eab);
    assert_int_equal(cpl_to_bfloat16(-2.0f), 0xc000);
    assert_true((cpl_to_bfloat16(NAN) & 0x7fff) > 0x7f80);
    assert_true(cpl_packed_bytes(CPL_WEIGHT_BFLOAT16, 17, 3) <= sizeof memory);
    cpl_packed_place(&p, CPL_WEIGHT_BFLOAT16, 17, 3, memory);
    cpl_packed_set(&p, 16, halves, 1, 0);
    cpl_packed_get(&p, 16, back);
    assert_true(back[0] == 1 && back[1] == -2 && back[2] == (real)0.333984375);
    cpl_packed_copy(&p, 16, &p, 2);
    cpl_packed_get(&p, 2, back);
    assert_true(back[0] == 1 && back[1] == -2 && back[2] == (real)0.333984375);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand_in_bytes),
        cmocka_unit_test(by_hand_in_bfloat16),
        cmocka_unit_test(as_the_reference),
        cmocka_unit_test(float32_has_the_bits_of_gemm),
        cmocka_unit_test(any_columns),
        cmocka_unit_test(rows_do_not_know_each_other),
        cmocka_unit_test(errors_within_the_scheme),
        cmocka_unit_test(odd_rows),
        cmocka_unit_test(the_deepest_product),
        cmocka_unit_test(numbers_become_bytes),
    };

    table_count = cpl_kernels_all(tables, TABLES_MOST);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
