/* test_pointer.c: the mixture of vocabulary and source against numbers computed by hand: one sentence with the source
 * words 4 2 4 over a vocabulary of four (0 … 3), so that 4 is a word that only the source has. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>
#include "support/op_harness.h"
#include "support/run.h"

enum { X, W, B, GATE, WEIGHTS, COPY, TARGET };
enum { LOSS, CORRECT, COUNT, DX, DW, DB, DGATE, DWEIGHTS };

static const int64_t LENGTHS_S[] = {3}, LENGTHS_T[] = {2};
static const cpl_harness_batch ONE = {"one", 1, 3, LENGTHS_S, LENGTHS_T, 0};

static void expect(const cpl_tensor *x, const double *values, int64_t n)
{
    assert_int_equal(cpl_harness_elements(x), n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)x->data[i] - values[i]) < 2e-6))
            fail_msg("element %lld is %.9g, expected %.9g", (long long)i, (double)x->data[i], values[i]);
}
#define EXPECT(tensor, ...)                                                                                            \
    expect((tensor), (const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

/* softmax is 0.1 0.2 0.3 0.4 in both rows; the vocabulary has 3/4 of the first row and 1/2 of the second. */
static void open_mixture(cpl_harness *h, int32_t first, int32_t second)
{
    static const real weights[] = {(real)0.5, (real)0.25, (real)0.25, (real)0.1, (real)0.6, (real)0.3};
    static const int32_t copy[] = {4, 2, 4};
    cpl_harness_open(h, cpl_op_named("pointer_cross_entropy"), "...= in=1 vocab=4 more=3", &ONE, 0);
    for (int i = 0; i < 4; i++) {
        h->in[W].data[i] = 0;
        h->in[B].data[i] = (real)(log(0.1 * (i + 1)) + 2);
    }
    h->in[GATE].data[0] = (real)log(3);
    h->in[GATE].data[1] = 0;
    memcpy(h->in[WEIGHTS].data, weights, sizeof weights);
    memcpy(h->in[COPY].ids, copy, sizeof copy);
    h->in[TARGET].ids[0] = first;
    h->in[TARGET].ids[1] = second;
    cpl_harness_forward(h, 1);
}

/* P(4) = 1/4 · (0.5 + 0.25); P(2) = 1/2 · 0.3 + 1/2 · 0.6. The first row's largest is 3: 3/4 · 0.4. */
static void test_mixture(void **state)
{
    (void)state;
    cpl_harness h;
    open_mixture(&h, 4, 2);
    EXPECT(&h.out[LOSS], -(log(0.1875) + log(0.45)) / 2);
    EXPECT(&h.out[CORRECT], 0.5);
    EXPECT(&h.out[COUNT], 2);
    EXPECT(&h.out[DB], 0.1 / 6, 0.2 / 6, -0.7 / 6, 0.4 / 6); /* the vocabulary made a third of the second label */
    EXPECT(&h.out[DGATE], 0.375, (0.5 - 1.0 / 3) / 2);
    EXPECT(&h.out[DWEIGHTS], -0.25 / 0.1875 / 2, 0, -0.25 / 0.1875 / 2, 0, -0.5 / 0.45 / 2, 0);
    cpl_harness_close(&h);
}

/* A block for each row, as under a small memory budget: the same to the bit, but for the sums over rows. */
static void test_blocks_of_one_row(void **state)
{
    (void)state;
    cpl_harness whole, h;
    open_mixture(&whole, 4, 2);
    open_mixture(&h, 4, 2);
    h.block_rows = 1;
    cpl_harness_forward(&h, 1);
    for (int i = LOSS; i <= DWEIGHTS; i++) {
        const real *a = h.out[i].data, *b = whole.out[i].data;
        for (int64_t k = 0; k < cpl_harness_elements(&h.out[i]); k++)
            assert_true(i == DW || i == DB || i == LOSS ? fabs((double)(a[k] - b[k])) < 1e-6 : a[k] == b[k]);
    }
    cpl_harness_close(&h);
    cpl_harness_close(&whole);
}

/* Padding counts for nothing; what neither vocabulary nor source can give costs much and teaches nothing. */
static void test_padding_and_what_cannot_be(void **state)
{
    (void)state;
    cpl_harness h;
    open_mixture(&h, 0, 2);
    EXPECT(&h.out[LOSS], -log(0.45));
    EXPECT(&h.out[CORRECT], 1);
    EXPECT(&h.out[COUNT], 1);
    EXPECT(&h.out[DGATE], 0, 0.5 - 1.0 / 3);
    cpl_harness_close(&h);
    open_mixture(&h, 6, 0);
    assert_true(fabs((double)h.out[LOSS].data[0] + log(1e-30)) < 1e-4);
    EXPECT(&h.out[DB], 0, 0, 0, 0);
    EXPECT(&h.out[DGATE], 0, 0);
    EXPECT(&h.out[DWEIGHTS], 0, 0, 0, 0, 0, 0);
    cpl_harness_close(&h);
}

/* A label whose probability no float holds still has its loss and its gradient; what is no number stays none. */
static void test_extremes(void **state)
{
    (void)state;
    cpl_harness h;
    open_mixture(&h, 1, 0);
    h.in[B].data[1] -= 200;
    cpl_harness_forward(&h, 1);
    assert_true(fabs((double)h.out[LOSS].data[0] - (200 - log(0.75 * 0.2 / 0.8))) < 1e-3);
    assert_true(fabs((double)h.out[DB].data[1] + 1) < 1e-6);
    h.in[B].data[3] = NAN;
    cpl_harness_forward(&h, 1);
    assert_true(isnan(h.out[LOSS].data[0]));
    cpl_harness_close(&h);
}

/* Sums before each step: 0 0 0, 0.5 0.25 0.25; minima 0 and 0.1 0.25 0.25. */
static void test_coverage(void **state)
{
    (void)state;
    static const real weights[] = {(real)0.5, (real)0.25, (real)0.25, (real)0.1, (real)0.6, (real)0.3};
    cpl_harness h;
    cpl_harness_open(&h, cpl_op_named("coverage"), "...= size=5", &ONE, 0);
    memcpy(h.in[0].data, weights, sizeof weights);
    h.in[1].ids[0] = 4, h.in[1].ids[1] = 3;
    cpl_harness_forward(&h, 1);
    EXPECT(&h.out[0], 0.6 / 2);
    EXPECT(&h.out[1], 0, 0.5, 0.5, 0.5, 0, 0);
    h.in[1].ids[1] = 0; /* padding is not scored */
    cpl_harness_forward(&h, 1);
    EXPECT(&h.out[0], 0);
    EXPECT(&h.out[1], 0, 0, 0, 0, 0, 0);
    cpl_harness_close(&h);
}

static void test_one_head_points(void **state)
{
    (void)state;
    const cpl_op *op = cpl_op_named("pointer_cross_entropy");
    cpl_type weights = {.rank = 4, .dim = {{.name = "heads", .size = 2, .kind = CPL_DIM_FEATURE},
                                           {.name = "batch", .kind = CPL_DIM_BATCH},
                                           {.name = "t", .kind = CPL_DIM_TIME}, {.name = "s", .kind = CPL_DIM_TIME}}};
    cpl_shape_context c = {.in = {[WEIGHTS] = &weights}, .in_path = {[WEIGHTS] = "decoder.attention"}};
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(op->check(&c, &err), CPL_USAGE);
    assert_string_equal(err.line[0], "copying needs one set of attention weights but 'decoder.attention' has 2 heads");
    weights.dim[0].size = 1;
    assert_int_equal(op->check(&c, &err), CPL_OK);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_mixture),
                                          cmocka_unit_test(test_blocks_of_one_row),
                                          cmocka_unit_test(test_padding_and_what_cannot_be),
                                          cmocka_unit_test(test_extremes), cmocka_unit_test(test_coverage),
                                          cmocka_unit_test(test_one_head_points)};

CPL_TEST_MAIN(tests)
