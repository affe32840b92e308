/* test_gemm_bf16.c: the product in bfloat16 of every table: exact rounding of A and B, sums as close as those in float,
 * and the promises of every product. */
#include "bf16_test.h"
#include "kernel/ref/reference.h"

static cpl_kernels in_bf16[TABLES_MOST];

/* x and what it must become: ties to the even neighbour, the last number before infinity, NaN whose payload would be
 * carried away, numbers below the smallest normal one. */
static void numbers_are_rounded_to_the_nearest_even(void **state)
{
    static const uint32_t cases[][2] = {
        {0x3f800000, 0x3f800000}, {0x3f808000, 0x3f800000}, {0x3f818000, 0x3f820000}, {0x3f808001, 0x3f810000},
        {0x3f80ffff, 0x3f810000}, {0xbf818000, 0xbf820000}, {0x7f7f0000, 0x7f7f0000}, {0x7f7f7fff, 0x7f7f0000},
        {0x7f7f8000, 0x7f800000}, {0x7f7fffff, 0x7f800000}, {0x7f800000, 0x7f800000}, {0xff800000, 0xff800000},
        {0x80000000, 0x00000000}, {0x3dcccccd, 0x3dcd0000}, {0x00808000, 0x00800000}, {0x00818000, 0x00820000},
    };

    (void)state;
    for (int t = 0; t < table_count; t++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            float x = float_of(cases[i][0]), y;

            round_by(tables[t], &x, 1, &y);
            if (bits_of(y) != cases[i][1])
                fail_msg("table %s rounds %08x to %08x, expected %08x", tables[t]->name, (unsigned)cases[i][0],
                         (unsigned)bits_of(y), (unsigned)cases[i][1]);
        }
        check_rounding(tables[t]);
    }
}

/* The reference rounds by the same rule as the arithmetic of this test. */
static void reference_rounds_as_arithmetic_does(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 0x1000000; i += 7) {
        double x = (double)float_of(i << 8 | i >> 16), y = cpl_ref_round_bf16(x), expected = bf16_of(x);

        if (!(isnan(x) ? isnan(y) : y == expected))
            fail_msg("%a became %a, expected %a", x, y, expected);
    }
}

/* Products of two bfloat16 are exact in float: the emulation makes the same sums in the same order as gemm over rounded
 * numbers, bit by bit. A processor that multiplies bfloat16 may round its sums otherwise. */
static void same_bits_as_gemm_of_rounded_numbers(void **state)
{
    enum { M = 37, N = 77, K = 601 };

    (void)state;
    for (int which = 0; which < 4 * table_count; which++) {
        const cpl_kernels *table = tables[which / 4], *plain = cpl_kernels_named(table->name);
        product p = product_new(M, N, K, which % 4, 1, 3);
        scratch s = scratch_new(table);
        real *c = copy_of(p.c, M * p.ldc), *expected = copy_of(p.c, M * p.ldc);
        cpl_gemm g = call_of(&p, c);

        table->gemm(&g, s.bytes);
        for (int64_t i = 0; i < (p.transpose_a ? K : M) * p.lda; i++)
            p.a[i] = (real)bf16_of((double)p.a[i]);
        for (int64_t i = 0; i < (p.transpose_b ? N : K) * p.ldb; i++)
            p.b[i] = (real)bf16_of((double)p.b[i]);
        g.c = expected;
        plain->gemm(&g, s.bytes);
        if (table->multiplies_bf16)
            assert_close("gemm_bf16", table->name, c, expected, M * p.ldc, 1e-6 * sqrt(K));
        else
            assert_same_bits("gemm_bf16", table->name, c, expected, M * p.ldc);
        free(c);
        free(expected);
        scratch_check(s);
        product_free(&p);
    }
}

/* NaN and infinity reach the result: 0 · infinity is a NaN, as in float. */
static void what_is_no_number_stays_so(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        const real a[] = {1, (real)NAN, 1, (real)INFINITY, 0, (real)INFINITY}, b[] = {1, 1};
        real c[3];
        scratch s = scratch_new(tables[t]);
        cpl_gemm g = {.m = 3, .n = 1, .k = 2, .a = a, .lda = 2, .b = b, .ldb = 1, .c = c, .ldc = 1};

        tables[t]->gemm(&g, s.bytes);
        assert_true(isnan(c[0]) && isinf(c[1]) && isinf(c[2]));
        scratch_check(s);
    }
}

/* The instruction is there on some processors alone; test_gemm_pairs runs the same code without it. */
static void the_processors_own_products(void **state)
{
    const cpl_kernels *table = cpl_kernels_named("avx512bf16");

    (void)state;
    if (table == NULL) {
        print_message("skipped: this processor or build has no avx512bf16\n");
        skip();
    }
    assert_true(table->multiplies_bf16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_rounded_to_the_nearest_even),
        cmocka_unit_test(reference_rounds_as_arithmetic_does),
        cmocka_unit_test(same_bits_as_gemm_of_rounded_numbers),
        cmocka_unit_test(what_is_no_number_stays_so),
        cmocka_unit_test(the_processors_own_products),
        PRODUCT_TESTS,
    };

    rounded = bf16_of;
    table_count = cpl_kernels_all(tables, TABLES_MOST);
    for (int t = 0; t < table_count; t++) {
        in_bf16[t] = cpl_kernels_in_bf16(tables[t]);
        tables[t] = &in_bf16[t];
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
