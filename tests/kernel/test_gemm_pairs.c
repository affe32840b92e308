/* test_gemm_pairs.c: the product in bfloat16 with two numbers in a word, as processors with vdpbf16ps run it, on any
 * processor: the same source, with the instruction replaced by what it is defined to do. */
#define CPL_ISA pairs
#define CPL_BF16_PAIRS
#include "kernel/vector/gemm_bf16.c"

#include "bf16_test.h"

static const cpl_kernels pairs = {
    .name = "pairs",
    .gemm_scratch = SCRATCH_FLOATS * sizeof(float),
    .gemm = cpl_pairs_gemm_bf16,
    .gemm_bf16 = cpl_pairs_gemm_bf16,
};

static void numbers_are_rounded_to_the_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(TOGETHER, 2);
    check_rounding(&pairs);
}

/* The emulation promises the results of the instruction. */
static void same_bits_as_the_emulation(void **state)
{
    static const int64_t depths[] = {1, 2, 31, 256, 257, 601};
    const cpl_kernels *generic = cpl_kernels_named("generic");

    (void)state;
    for (int which = 0; which < 4 * 6; which++) {
        product p = product_new(37, 77, depths[which / 4], which % 4, 1, 3);
        scratch s = scratch_new(&pairs), other = scratch_new(generic);
        real *c = copy_of(p.c, p.m * p.ldc), *expected = copy_of(p.c, p.m * p.ldc);
        cpl_gemm g = call_of(&p, c);

        cpl_pairs_gemm_bf16(&g, s.bytes);
        g.c = expected;
        generic->gemm_bf16(&g, other.bytes);
        assert_same_bits("gemm_bf16", "pairs", c, expected, p.m * p.ldc);
        free(c);
        free(expected);
        scratch_check(s);
        scratch_check(other);
        product_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_rounded_to_the_nearest_even),
                                       cmocka_unit_test(same_bits_as_the_emulation), PRODUCT_TESTS};

    rounded = bf16_of;
    tables[0] = &pairs;
    table_count = 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
