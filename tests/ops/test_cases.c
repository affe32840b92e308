/* test_cases.c: cases of masking and loss, on single ops. Padding does not exist inside: a mask becomes lengths. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/files.h"
#include "base/json.h"
#include "support/op_harness.h"
#include "support/run.h"

static const real NEAR = (real)1e-5;

/* The case's input file, or a skipped test in a build without JSON. */
static cpl_json *read_case(const char *name)
{
    char path[512], *text = NULL;
    size_t length = 0;
    cpl_json *root = NULL;
    cpl_error err = CPL_ERROR_INIT;
    if (!cpl_json_available())
        skip();
    snprintf(path, sizeof path, "%s/cases/%s", CPL_TEST_DATA, name);
    assert_int_equal(cpl_file_read(path, &text, &length, &err), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, text, length, &err), CPL_OK);
    cpl_release(text);
    return root;
}

static real number(const cpl_json *array, size_t i)
{
    return (real)cpl_json_real(cpl_json_at(array, i), NAN);
}

static void fill(real *x, const cpl_json *array, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        *x++ = number(array, i);
}

static void set(real *x, int64_t n, real value)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
}

/* ---- C06: the mask reaches the mean ---- */

static void case_C06_mean_over_existing_steps(void **state)
{
    (void)state;
    cpl_json *c = read_case("C06_mask_pooling.json");
    const int64_t lengths[] = {3};
    const cpl_harness_batch batch = {"C06", 1, 4, lengths, lengths, 0};
    const cpl_json *ids = cpl_json_at(cpl_json_get(c, "ids"), 0);
    cpl_harness embedding, mean;
    cpl_harness_open(&embedding, cpl_op_named("embedding"), "size=4 units=1 ...=batch,s", &batch, 0);
    for (size_t i = 0; i < 4; i++)
        embedding.in[1].data[i] = number(cpl_json_at(cpl_json_get(c, "embedding"), i), 0);
    for (size_t i = 0; i < 3; i++)
        embedding.in[0].ids[i] = (int32_t)cpl_json_int(cpl_json_at(ids, i), -1);
    cpl_harness_forward(&embedding, 0);
    cpl_harness_open(&mean, cpl_op_named("mean_time"), "t=s n=1", &batch, 0);
    memcpy(mean.in[0].data, embedding.out[0].data, 3 * sizeof(real));
    cpl_harness_forward(&mean, 0);
    assert_true(fabs((double)mean.out[0].data[0] - cpl_json_real(cpl_json_get(c, "expect"), NAN)) < NEAR);
    cpl_harness_close(&embedding);
    cpl_harness_close(&mean);
    cpl_json_free(c);
}

/* ---- C07, C10, C12: attention over what exists ---- */

/* One query of 1, keys that are the scores, one head of width 1. Two sentences of four steps, two exist. */
static void case_C07_attention_ignores_padding(void **state)
{
    (void)state;
    cpl_json *c = read_case("C07_attention_padding.json");
    const int64_t source[] = {2, 2}, target[] = {1, 1};
    const cpl_harness_batch batch = {"C07", 2, 4, source, target, 0};
    cpl_harness pack, attention;
    cpl_harness_open(&pack, cpl_op_named("pack"), "attr.0=0 attr.1=115 ...=batch,padded,1", &batch, 0);
    cpl_harness_open(&attention, cpl_op_named("attention"), "hd=1 attr.0=1 attr.1=1.0", &batch, 0);
    set(attention.in[0].data, 2, 1);
    for (int input = 1; input <= 2; input++) { /* the rectangles of keys and values, packed */
        for (size_t row = 0; row < 2; row++)
            fill(pack.in[0].data + 4 * row, input == 2 ? cpl_json_get(c, "values")
                                                       : cpl_json_at(cpl_json_get(c, "scores"), row), 0, 4);
        cpl_harness_forward(&pack, 0);
        memcpy(attention.in[input].data, pack.out[0].data, 4 * sizeof(real));
    }
    cpl_harness_forward(&attention, 1);
    for (size_t row = 0; row < 2; row++) {
        const cpl_json *weights = cpl_json_at(cpl_json_get(c, "expect_weights"), row);
        for (size_t i = 0; i < 2; i++)
            assert_true(fabs((double)(attention.out[1].data[2 * row + i] - number(weights, i))) < NEAR);
        real context = number(cpl_json_get(c, "expect_context"), row);
        assert_true(fabs((double)(attention.out[0].data[row] - context)) < NEAR);
    }
    cpl_harness_backward(&attention, 0, 0); /* gradient of the values, back in their rectangle */
    memcpy(pack.dout[0].data, attention.din[2].data, 4 * sizeof(real));
    cpl_harness_backward(&pack, 0, 0);
    for (size_t row = 0; row < 2; row++) {
        assert_true(pack.din[0].data[4 * row] != 0 && pack.din[0].data[4 * row + 1] != 0);
        assert_true(pack.din[0].data[4 * row + 2] == 0 && pack.din[0].data[4 * row + 3] == 0);
    }
    cpl_harness_close(&pack);
    cpl_harness_close(&attention);
    cpl_json_free(c);
}

/* Sentence 0 of `both` has the rows of `alone`; t is 2 steps of each sentence, so its rows interleave. */
static void assert_same_sentence(const real *both, const real *alone, int64_t steps, int64_t sentences)
{
    for (int64_t k = 0; k < steps; k++)
        assert_memory_equal(both + k * sentences * 6, alone + k * 6, 6 * sizeof(real));
}

static void case_C10_empty_source_sentence(void **state)
{
    (void)state;
    const int64_t source[] = {3, 0}, target[] = {2, 2};
    const cpl_harness_batch batch = {"C10", 2, 4, source, target, 0}, single = {"C10 alone", 1, 4, source, target, 0};
    for (unsigned no_weights = 0; no_weights < 2; no_weights++) {
        cpl_harness both, alone;
        cpl_harness_open(&both, cpl_op_named("attention"), "hd=6 attr.0=2 attr.1=0.5", &batch, 0);
        cpl_harness_open(&alone, both.op, both.line, &single, 0);
        for (int64_t k = 0; k < 2; k++) { /* row 2k of two sentences is step k of sentence 0 */
            memcpy(alone.in[0].data + 6 * k, both.in[0].data + 12 * k, 6 * sizeof(real));
            memcpy(alone.dout[0].data + 6 * k, both.dout[0].data + 12 * k, 6 * sizeof(real));
        }
        memcpy(alone.in[1].data, both.in[1].data, 18 * sizeof(real));
        memcpy(alone.in[2].data, both.in[2].data, 18 * sizeof(real));
        memcpy(alone.dout[1].data, both.dout[1].data, 12 * sizeof(real));
        assert_int_equal(cpl_harness_elements(&both.out[1]), 12); /* the empty sentence has no weights */
        cpl_harness_forward(&both, 1);
        cpl_harness_forward(&alone, 1);
        cpl_harness_backward(&both, no_weights << 1, 0);
        cpl_harness_backward(&alone, no_weights << 1, 0);
        assert_same_sentence(both.out[0].data, alone.out[0].data, 2, 2);
        assert_memory_equal(both.out[1].data, alone.out[1].data, 12 * sizeof(real));
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < 6; i++) { /* context and gradient of the empty sentence */
                assert_true(both.out[0].data[(2 * k + 1) * 6 + i] == 0);
                assert_true(both.din[0].data[(2 * k + 1) * 6 + i] == 0);
            }
        assert_same_sentence(both.din[0].data, alone.din[0].data, 2, 2);
        assert_memory_equal(both.din[1].data, alone.din[1].data, 18 * sizeof(real));
        assert_memory_equal(both.din[2].data, alone.din[2].data, 18 * sizeof(real));
        for (int i = 0; i < 3; i++)
            cpl_harness_filled(&both, &both.din[i], "gradient", i);
        cpl_harness_close(&both);
        cpl_harness_close(&alone);
    }
}

/* Causal and short at once: step 3 of sentence 1 is hidden by both reasons. All scores are −20. */
static void case_C12_two_masks(void **state)
{
    (void)state;
    const int64_t lengths[] = {4, 2};
    const cpl_harness_batch batch = {"C12", 2, 4, lengths, lengths, 0};
    cpl_harness h;
    cpl_harness_open(&h, cpl_op_named("attention"), "s=t hd=1 attr.0=1 attr.1=1.0 attr.2=1", &batch, 0);
    set(h.in[0].data, 6, -20);
    set(h.in[1].data, 6, 1);
    cpl_harness_forward(&h, 1);
    cpl_harness_backward(&h, 0, 0);
    const real *weights = h.out[1].data; /* step by step, in each the sentences that have it */
    for (int i = 0; i < 4; i++)
        for (int sentence = 0; sentence < 2 && i < lengths[sentence]; sentence++)
            for (int k = 0; k < lengths[sentence]; k++, weights++) {
                if (k > i)
                    assert_true(*weights == 0);
                else
                    assert_true(fabs((double)*weights - 1.0 / (i + 1)) < NEAR);
            }
    for (int i = 0; i < 3; i++)
        cpl_harness_filled(&h, &h.din[i], "gradient", i);
    cpl_harness_close(&h);
}

/* ---- C01, C05, C08: the loss ---- */

/* Logits and targets of C01 as packed rows over t of these lengths. */
static void fill_c01(cpl_harness *h, const cpl_json *c)
{
    const cpl_geometry *g = &h->geometry[CPL_HARNESS_T];
    for (int64_t i = 0; i < g->batch; i++)
        for (int64_t step = 0; step < g->length[i]; step++) {
            size_t sentence = (size_t)g->sentence[i], at = (size_t)step;
            int64_t row = g->offset[step] + i;
            fill(h->in[0].data + row * 4, cpl_json_at(cpl_json_at(cpl_json_get(c, "logits"), sentence), at), 0, 4);
            h->in[1].ids[row] =
                (int32_t)cpl_json_int(cpl_json_at(cpl_json_at(cpl_json_get(c, "targets"), sentence), at), -1);
        }
}

static void check_c01(const cpl_harness *h, const cpl_json *c)
{
    const cpl_json *expect = cpl_json_get(c, "expect"), *gradient = cpl_json_get(expect, "grad_logits[0][0]");
    double count = cpl_json_real(cpl_json_get(expect, "valid_tokens"), NAN);
    assert_true(fabs((double)h->out[0].data[0] - cpl_json_real(cpl_json_get(expect, "mean"), NAN)) < NEAR);
    assert_true(fabs((double)h->out[0].data[0] * count - cpl_json_real(cpl_json_get(expect, "sum"), NAN)) < NEAR);
    assert_true((double)h->out[2].data[0] == count);
    for (size_t i = 0; i < 4; i++)
        assert_true(fabs((double)(h->out[4].data[i] - number(gradient, i))) < NEAR);
}

static void case_C01_masked_mean(void **state)
{
    (void)state;
    cpl_json *c = read_case("C01_masked_loss.json");
    const int64_t exist[] = {3, 1}, padded[] = {4, 4};
    const cpl_harness_batch ragged = {"C01", 2, 4, exist, exist, 0};
    const cpl_harness_batch rectangle = {"C01 padded", 2, 4, padded, padded, 0};
    cpl_harness h;
    cpl_harness_open(&h, cpl_op_named("cross_entropy"), "vocab=4", &ragged, 0); /* padding does not exist */
    fill_c01(&h, c);
    cpl_harness_forward(&h, 1);
    check_c01(&h, c);
    cpl_harness_close(&h);

    cpl_harness_open(&h, cpl_op_named("cross_entropy"), "vocab=4", &rectangle, 0); /* padding is label 0 */
    fill_c01(&h, c);
    for (int again = 0; again < 2; again++) {
        cpl_harness_forward(&h, 1);
        check_c01(&h, c);
        for (int64_t row = 0; row < h.in[1].rows; row++)
            for (int i = 0; i < 4 && h.in[1].ids[row] == 0; i++) {
                assert_true(h.out[4].data[row * 4 + i] == 0);
                h.in[0].data[row * 4 + i] = (real)(7 * i - 3); /* other garbage changes nothing */
            }
    }
    cpl_harness_close(&h);
    cpl_json_free(c);
}

static void case_C05_padding_stays_in_the_softmax(void **state)
{
    (void)state;
    cpl_json *c = read_case("C05_ignored_class.json");
    const int64_t lengths[] = {1};
    const cpl_harness_batch batch = {"C05", 1, 1, lengths, lengths, 0};
    cpl_harness h;
    cpl_harness_open(&h, cpl_op_named("cross_entropy"), "vocab=3", &batch, 0);
    fill(h.in[0].data, cpl_json_get(c, "logits"), 0, 3);
    h.in[1].ids[0] = (int32_t)cpl_json_int(cpl_json_get(c, "target"), -1);
    cpl_harness_forward(&h, 1);
    assert_true(fabs((double)h.out[0].data[0] - cpl_json_real(cpl_json_get(c, "expect_default"), NAN)) < NEAR);
    cpl_harness_close(&h);
    cpl_json_free(c);
}

/* Target 5 6 END and seven paddings, predicted 5 9 9 and seven paddings: one of three. */
static void case_C08_accuracy_without_padding(void **state)
{
    static const int32_t target[10] = {5, 6, 3}, predicted[10] = {5, 9, 9};
    const int64_t lengths[] = {10};
    const cpl_harness_batch batch = {"C08", 1, 10, lengths, lengths, 0};
    cpl_harness h;
    (void)state;
    cpl_harness_open(&h, cpl_op_named("cross_entropy"), "vocab=10", &batch, 0);
    set(h.in[0].data, 100, 0);
    for (int row = 0; row < 10; row++) {
        h.in[0].data[row * 10 + predicted[row]] = 4;
        h.in[1].ids[row] = target[row];
    }
    cpl_harness_forward(&h, 1);
    assert_true(fabs((double)h.out[1].data[0] - 1.0 / 3) < NEAR);
    assert_true(h.out[2].data[0] == 3);
    cpl_harness_close(&h);
}

/* Uniform over all classes, as Keras and PyTorch: 0.775543; the loss without smoothing stays readable (ln 2). Padded
 * positions contribute nothing, whatever their logits are. */
static void case_C09_label_smoothing(void **state)
{
    (void)state;
    cpl_json *c = read_case("C09_label_smoothing.json");
    const int64_t lengths[] = {3};
    const cpl_harness_batch batch = {"C09", 1, 3, lengths, lengths, 0};
    const double gradient[] = {1.0 / 6 - 0.025, 0.5 - 0.925, 1.0 / 6 - 0.025, 1.0 / 6 - 0.025};
    cpl_harness h;
    cpl_harness_open(&h, cpl_op_named("cross_entropy"), "attr.0=0.1 vocab=4", &batch, 0);
    set(h.in[0].data, 12, 7);
    fill(h.in[0].data, cpl_json_get(c, "logits"), 0, 4);
    h.in[1].ids[0] = (int32_t)cpl_json_int(cpl_json_get(c, "target"), -1);
    h.in[1].ids[1] = h.in[1].ids[2] = (int32_t)cpl_json_int(cpl_json_get(c, "pad"), -1);
    cpl_harness_forward(&h, 1);
    double want = cpl_json_real(cpl_json_get(c, "uniform_over_all_classes"), NAN);
    assert_true(fabs((double)h.out[0].data[0] - want) < NEAR);
    assert_true(fabs((double)h.out[3].data[0] - 0.693147) < NEAR);
    assert_true(h.out[2].data[0] == 1);
    for (int i = 0; i < 12; i++)
        assert_true(fabs((double)h.out[4].data[i] - (i < 4 ? gradient[i] : 0)) < NEAR);
    h.training = 0; /* a validation does not smooth */
    cpl_harness_forward(&h, 1);
    assert_true(fabs((double)h.out[0].data[0] - 0.693147) < NEAR);
    cpl_harness_close(&h);
    cpl_json_free(c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(case_C06_mean_over_existing_steps),   cmocka_unit_test(case_C07_attention_ignores_padding),
    cmocka_unit_test(case_C10_empty_source_sentence),      cmocka_unit_test(case_C12_two_masks),
    cmocka_unit_test(case_C01_masked_mean),                cmocka_unit_test(case_C05_padding_stays_in_the_softmax),
    cmocka_unit_test(case_C08_accuracy_without_padding),   cmocka_unit_test(case_C09_label_smoothing),
};

CPL_TEST_MAIN(tests)
