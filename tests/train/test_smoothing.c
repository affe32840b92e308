/* test_smoothing.c: training.label_smoothing in whole runs: what is reported, what is learned, what is refused. */
#include "train/train_test.h"

#include <math.h>

#define CONFIG(training) "model: {units: 8}\ndata: {train: train.tsv, valid: valid.tsv}\n"                             \
    "training: {threads: 1, log_every: 1, show_examples: 0, " training "}\n"

static const char *const SMOOTH = "training.label_smoothing=0.1";

/* With a rate of 0 a run only measures: what it reports does not depend on the smoothing. */
static void reported_losses_are_unsmoothed(void **state)
{
    (void)state;
    put_pairs("train.tsv", 12);
    put_pairs("valid.tsv", 5);
    put_file("config.yaml", CONFIG("epochs: 1, batch_size: 4, optimizer: {learning_rate: 0}"));
    run a = {.folder = "plain"}, b = {.folder = "smooth", .set = {SMOOTH}};
    cpl_json *x[8], *y[8];
    assert_int_equal(train(&a), CPL_OK);
    assert_int_equal(train(&b), CPL_OK);
    assert_int_equal(read_events("plain", "step", x, 8), 3);
    assert_int_equal(read_events("smooth", "step", y, 8), 3);
    for (int i = 0; i < 3; i++) {
        assert_true(number(x[i], "loss") == number(y[i], "loss"));
        assert_true(number(x[i], "accuracy") == number(y[i], "accuracy"));
        assert_true(number(x[i], "gradient_norm") != number(y[i], "gradient_norm")); /* it is minimised, though */
        cpl_json_free(x[i]);
        cpl_json_free(y[i]);
    }
    assert_int_equal(read_events("plain", "epoch", x, 1), 1);
    assert_int_equal(read_events("smooth", "epoch", y, 1), 1);
    assert_true(number(x[0], "val_loss") == number(y[0], "val_loss"));
    assert_true(number(x[0], "val_accuracy") == number(y[0], "val_accuracy"));
    cpl_json_free(x[0]);
    cpl_json_free(y[0]);
}

/* A sharp model pays for its certainty: smoothed training keeps the training loss above that of plain training. */
static void smoothing_keeps_a_model_unsure(void **state)
{
    (void)state;
    double loss[2];
    put_pairs("train.tsv", 16);
    put_pairs("valid.tsv", 4);
    put_file("config.yaml", CONFIG("epochs: 60, batch_size: 8, optimizer: {learning_rate: 0.02}, "
                                   "early_stopping: false"));
    for (int i = 0; i < 2; i++) {
        run r = {.folder = i ? "unsure" : "sure", .set = {i ? SMOOTH : NULL}};
        cpl_json *epochs[60];
        assert_int_equal(train(&r), CPL_OK);
        assert_int_equal(read_events(r.folder, "epoch", epochs, 60), 60);
        loss[i] = number(epochs[59], "loss");
        for (int k = 0; k < 60; k++)
            cpl_json_free(epochs[k]);
    }
    assert_true(loss[0] < 0.05);
    assert_true(loss[1] > 0.08 && loss[1] < 0.6); /* the label's best share is about 0.9 */
}

static void copying_is_refused(void **state)
{
    (void)state;
    put_pairs("train.tsv", 8);
    put_pairs("valid.tsv", 2);
    put_file("config.yaml", CONFIG("epochs: 1"));
    run r = {.folder = "copy", .set = {SMOOTH, "model.copy=true"}};
    assert_int_equal(train(&r), CPL_USAGE);
    assert_non_null(strstr(r.error.line[0], "'training.label_smoothing' is 0.1, but 'model.copy' is true"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reported_losses_are_unsmoothed),
                                       cmocka_unit_test(smoothing_keeps_a_model_unsure),
                                       cmocka_unit_test(copying_is_refused)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
