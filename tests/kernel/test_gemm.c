/* test_gemm.c: the product of every table. */
#include "product_test.h"

static void product_of_two_matrices_by_hand(void **state)
{
    const real a[] = {1, 2, 3, 4, 5, 6};    /* [2 3] */
    const real b[] = {7, 8, 9, 10, 11, 12}; /* [3 2] */
    const real expected[] = {58, 64, 139, 154};

    (void)state;
    for (int t = 0; t < table_count; t++) {
        scratch s = scratch_new(tables[t]);
        real c[4] = {0};
        cpl_gemm g = {.m = 2, .n = 2, .k = 3, .a = a, .lda = 3, .b = b, .ldb = 2, .c = c, .ldc = 2};

        tables[t]->gemm(&g, s.bytes);
        assert_memory_equal(c, expected, sizeof c);
        scratch_check(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(product_of_two_matrices_by_hand), PRODUCT_TESTS};

    table_count = cpl_kernels_all(tables, TABLES_MOST);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
