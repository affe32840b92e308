/* The peak: loops that do the multiply-adds they claim, and a figure that no product of the library exceeds. */
#include "graph/graph_test.h"

#include "base/clock.h"
#include "graph/peak.h"

enum { TABLES = 8 };

/* A sum x becomes 0.5·x + 1 in each round: 1, 1.5, 1.75, 1.875; in bfloat16 x + 0.5. Chains do the same, so the sink is
 * their number times that. */
static void every_table_does_what_it_counts(void **state)
{
    (void)state;
    const cpl_kernels *tables[TABLES];
    int n = cpl_kernels_all(tables, TABLES);
    for (int i = 0; i < n; i++) {
        real none, three, bf16;
        assert_true(tables[i]->multiply_adds(0, 0, &none) == 0);
        assert_true(none >= 1 && none == floorf(none)); /* how many chains there are in a lane */
        double operations = tables[i]->multiply_adds(3, 0, &three);
        assert_true(three == 1.875f * none);
        assert_true(operations >= 2 * 3 * (double)none && fmod(operations, 2 * 3 * (double)none) == 0);
        assert_true(tables[i]->multiply_adds(300, 0, &three) == 100 * operations);
        operations = tables[i]->multiply_adds(4, 1, &bf16);
        assert_true(operations >= 2 * 4 * (double)none);
        if (strcmp(tables[i]->name, "reference") != 0)
            assert_true(bf16 == 3 * none);
    }
}

/* The table's own product, in cache, in the processor time of this thread. */
static double product_speed(const cpl_kernels *k)
{
    enum { M = 48, N = 128, DEPTH = 128 };
    static _Alignas(64) real a[M * DEPTH], b[DEPTH * N], c[M * N];
    void *scratch = k->gemm_scratch ? cpl_alloc_aligned(k->gemm_scratch, 64) : NULL;
    double best = 0;
    for (int i = 0; i < 200; i++) {
        struct timespec begun, ended;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
        k->gemm(&(cpl_gemm){.m = M, .n = N, .k = DEPTH, .a = a, .lda = DEPTH, .b = b, .ldb = N, .c = c, .ldc = N},
                scratch);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
        double took = (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec);
        double speed = 2.0 * M * N * DEPTH / (took + 1e-7);
        best = speed > best ? speed : best;
    }
    cpl_release(scratch);
    return best;
}

/* No more than a bound of the order of magnitude: clocks of processors change while they are watched. */
static void a_product_is_no_faster(void **state)
{
    (void)state;
    const cpl_kernels *k;
    cpl_pool *pool;
    MUST(cpl_kernels_pick(&k, err));
    MUST(cpl_pool_new(&pool, 1, err));
    double peak = cpl_peak(k, pool, 0), product = product_speed(k);
    assert_true(isfinite(peak) && peak > 0);
    assert_true(product < 1.5 * peak);
    cpl_pool_free(pool);
    MUST(cpl_pool_new(&pool, 2, err));
    for (int bf16 = 0; bf16 < 2; bf16++)
        assert_true(cpl_peak(k, pool, bf16) > 0);
    cpl_memory_fail_at(1);
    assert_true(cpl_peak(k, pool, 0) == 0);
    cpl_memory_fail_at(0);
    cpl_pool_free(pool);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_table_does_what_it_counts),
    cmocka_unit_test(a_product_is_no_faster),
};

CPL_TEST_MAIN(tests)
