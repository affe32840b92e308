/* test_gemm_quads.c: the product with bytes as processors with VNNI run it, four of the depth in a lane and rows of A
 * with 128 added, on any processor: the same source, with the instruction replaced by what it is defined to do. */
#define CPL_ISA quads
#define CPL_INT8_QUADS
#include "kernel/vector/gemm_int8.c"

#include "packed_test.h"

static const cpl_kernels quads = {
    .name = "quads",
    .gemm_scratch = SCRATCH_FLOATS * sizeof(float),
    .gemm_packed = cpl_quads_gemm_int8,
};

static void as_the_reference(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {1, 100, 64}, {2, 17, 5}, {7, 129, 130}, {65, 31, 96}, {2, 3, 5000}};

    (void)state;
    assert_int_equal(SHARES, 1);
    for (size_t k = 0; k < 2 * sizeof shapes / sizeof *shapes; k++)
        check_packed(&quads, CPL_WEIGHT_INT8, shapes[k / 2], k % 2);
}

/* With 128 added, the sums on the way pass 2^31 and come back. */
static void sums_may_wrap(void **state)
{
    enum { DEPTH = CPL_PACKED_DEPTH };
    real *a = malloc(DEPTH * sizeof *a), c;
    float *w = malloc(DEPTH * sizeof *w);

    (void)state;
    for (int64_t i = 0; i < DEPTH; i++)
        a[i] = 1, w[i] = 1;
    weights b = weights_new(CPL_WEIGHT_INT8, 1, DEPTH, w);
    scratch s = scratch_new(&quads);
    quads.gemm_packed(&(cpl_gemm_packed){.m = 1, .a = a, .lda = DEPTH, .b = &b.p, .n = 1, .c = &c, .ldc = 1}, s.bytes);
    assert_near((double)c, (double)DEPTH, 0.1);
    scratch_check(s);
    weights_free(&b);
    free(w);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_reference), cmocka_unit_test(sums_may_wrap)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
