/* test_weight_drop.c: dropout of attention weights: what it leaves alone, its mean, and that a single step drops what
 * the same call over all steps drops. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "support/op_harness.h"
#include "support/run.h"

static const int64_t SOURCE[] = {5, 3, 4}, TWO[] = {2, 2, 2}, ONE[] = {1, 1, 1};
static const cpl_harness_batch WHOLE = {"whole", 3, 6, SOURCE, TWO, 0}, STEP = {"step", 3, 6, SOURCE, ONE, 0};

static const char *const OPS[][3] = { /* the op, its line without and with dropout */
    {"attention", "hd=6 attr.0=2 attr.1=0.5", "hd=6 attr.0=2 attr.1=0.5 attr.3=0.5"},
    {"additive_attention", "n=7 u=5 e=absent", "n=7 u=5 e=absent attr.0=0.5"}};
enum { OPS_COUNT = sizeof OPS / sizeof OPS[0], DRAWS = 20000 };

static void same_bits(const cpl_tensor *a, const cpl_tensor *b)
{
    assert_int_equal(cpl_harness_elements(a), cpl_harness_elements(b));
    assert_memory_equal(a->data, b->data, (size_t)cpl_harness_elements(a) * sizeof(real));
}

static int bits_differ(const cpl_tensor *a, const cpl_tensor *b)
{
    return memcmp(a->data, b->data, (size_t)cpl_harness_elements(a) * sizeof(real)) != 0;
}

/* Reported weights are the undropped ones; outside of training nothing is dropped. */
static void only_training_drops_and_reports_weights_whole(void **state)
{
    (void)state;
    for (int i = 0; i < OPS_COUNT; i++) {
        cpl_harness plain, drops;
        cpl_harness_open(&plain, cpl_op_named(OPS[i][0]), OPS[i][1], &WHOLE, 0);
        cpl_harness_open(&drops, cpl_op_named(OPS[i][0]), OPS[i][2], &WHOLE, 0);
        cpl_harness_forward(&plain, 1);
        cpl_harness_forward(&drops, 1);
        assert_true(bits_differ(&plain.out[0], &drops.out[0]));
        same_bits(&plain.out[1], &drops.out[1]);
        drops.training = 0;
        cpl_harness_forward(&drops, 1);
        same_bits(&plain.out[0], &drops.out[0]);
        same_bits(&plain.out[1], &drops.out[1]);
        cpl_harness_close(&plain);
        cpl_harness_close(&drops);
    }
}

/* The mean over masks is the result without them. A draw's standard deviation is at most 1 here, that of the mean of
 * 20 000 at most 0.007: 0.04 is far out. */
static void mean_is_the_undropped_result(void **state)
{
    (void)state;
    for (int i = 0; i < OPS_COUNT; i++) {
        cpl_harness plain, drops;
        double sum[64] = {0};
        cpl_harness_open(&plain, cpl_op_named(OPS[i][0]), OPS[i][1], &WHOLE, 0);
        cpl_harness_open(&drops, cpl_op_named(OPS[i][0]), OPS[i][2], &WHOLE, 0);
        cpl_harness_forward(&plain, 1);
        int64_t n = cpl_harness_elements(&plain.out[0]);
        assert_true(n <= 64);
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            drops.random_key = draw;
            cpl_harness_forward(&drops, 1);
            for (int64_t k = 0; k < n; k++)
                sum[k] += (double)drops.out[0].data[k] / DRAWS;
        }
        for (int64_t k = 0; k < n; k++)
            if (!(fabs(sum[k] - (double)plain.out[0].data[k]) <= 0.04))
                fail_msg("%s: mean %g, undropped %g", OPS[i][0], sum[k], (double)plain.out[0].data[k]);
        cpl_harness_close(&plain);
        cpl_harness_close(&drops);
    }
}

/* Threads and masks: the same bits with 1 to 3. */
static void threads_change_no_bit(void **state)
{
    (void)state;
    for (int i = 0; i < OPS_COUNT; i++)
        for (int threads = 2; threads <= 3; threads++) {
            cpl_harness one, more;
            cpl_harness_open(&one, cpl_op_named(OPS[i][0]), OPS[i][2], &WHOLE, 0);
            cpl_harness_open(&more, cpl_op_named(OPS[i][0]), OPS[i][2], &WHOLE, 0);
            cpl_harness_use(&more, more.kernels, threads);
            cpl_harness_forward(&one, 1);
            cpl_harness_forward(&more, 1);
            cpl_harness_backward(&one, 0, 0);
            cpl_harness_backward(&more, 0, 0);
            same_bits(&one.out[0], &more.out[0]);
            for (int k = 0; k < one.signature.inputs; k++)
                if (one.din[k].data)
                    same_bits(&one.din[k], &more.din[k]);
            cpl_harness_close(&one);
            cpl_harness_close(&more);
        }
}

static void assert_near(const char *what, const char *kernels, const real *a, const real *b, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (!(fabs((double)(a[k] - b[k])) <= 1e-5))
            fail_msg("%s of %s differs at %d: %g and %g", what, kernels, (int)k, (double)a[k], (double)b[k]);
}

/* Rows of the first step stand first in packed rows, so the step alone has the first rows of the whole. */
static void check_step(const cpl_kernels *kernels, const char *line)
{
    cpl_harness whole, step;
    cpl_harness_open(&whole, cpl_op_named("additive_attention"), line, &WHOLE, 0);
    cpl_harness_open(&step, cpl_op_named("additive_attention"), line, &STEP, 0);
    cpl_harness_use(&whole, kernels, 1);
    cpl_harness_use(&step, kernels, 1);
    for (int k = 0; k < 5; k++)
        memcpy(step.in[k].data, whole.in[k].data, (size_t)cpl_harness_elements(&step.in[k]) * sizeof(real));
    for (int k = 0; k < 2; k++)
        memcpy(step.dout[k].data, whole.dout[k].data, (size_t)cpl_harness_elements(&step.dout[k]) * sizeof(real));
    cpl_harness_forward(&whole, 1);
    cpl_harness_forward(&step, 1);
    cpl_harness_backward(&whole, 0, 0);
    cpl_harness_backward(&step, 0, ~1u); /* the query's gradient alone, as in a loop */
    assert_near("y", kernels->name, step.out[0].data, whole.out[0].data, cpl_harness_elements(&step.out[0]));
    assert_near("dq", kernels->name, step.din[0].data, whole.din[0].data, cpl_harness_elements(&step.din[0]));
    cpl_harness_close(&whole);
    cpl_harness_close(&step);
}

static void a_step_drops_what_the_whole_drops(void **state)
{
    const cpl_kernels *tables[8];
    int n = cpl_kernels_all(tables, 8);
    (void)state;
    for (int i = 0; i < n; i++) {
        check_step(tables[i], "n=7 u=5 e=absent attr.0=0.5");
        check_step(tables[i], "n=17 u=33 e=absent attr.0=0.3");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_training_drops_and_reports_weights_whole), cmocka_unit_test(mean_is_the_undropped_result),
    cmocka_unit_test(threads_change_no_bit), cmocka_unit_test(a_step_drops_what_the_whole_drops),
};

CPL_TEST_MAIN(tests)
