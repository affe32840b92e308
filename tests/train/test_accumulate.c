/* test_accumulate.c: training.accumulate: several batches are one update, weighted by their tokens. */
#include "train/train_test.h"

#include <math.h>

#define CONFIG(training) "model: {units: 16}\ndata: {train: train.tsv, valid: valid.tsv}\n"                            \
    "training: {threads: 2, log_every: 1, show_examples: 0, " training "}\n"

static void assert_near_tensors(const char *folder, const char *other, double tolerance)
{
    cpl_tensor_file *f[2];
    for (int i = 0; i < 2; i++) {
        char path[700];
        snprintf(path, sizeof path, "%s/%s/checkpoint.safetensors", top, i ? other : folder);
        assert_int_equal(cpl_tensor_file_open(&f[i], path, NULL), CPL_OK);
    }
    for (size_t i = 0; i < cpl_tensor_file_count(f[0]); i++) {
        const cpl_tensor_entry *a = cpl_tensor_file_at(f[0], i), *b = cpl_tensor_file_find(f[1], a->name);
        const float *x = a->data, *y = b->data;
        for (uint64_t k = 0; k < cpl_tensor_elements(a); k++)
            if (!(fabs((double)x[k] - (double)y[k]) <= tolerance))
                fail_msg("'%s' element %d is %g and %g", a->name, (int)k, (double)x[k], (double)y[k]);
    }
    cpl_tensor_file_close(f[0]);
    cpl_tensor_file_close(f[1]);
}

static void assert_same_steps(const char *folder, const char *other, size_t count)
{
    cpl_json *a[64], *b[64];
    assert_int_equal(read_events(folder, "step", a, 64), count);
    assert_int_equal(read_events(other, "step", b, 64), count);
    for (size_t i = 0; i < count; i++) {
        assert_true(fabs(number(a[i], "loss") - number(b[i], "loss")) < 1e-5);
        assert_true(fabs(number(a[i], "accuracy") - number(b[i], "accuracy")) < 1e-6);
        assert_true(fabs(number(a[i], "gradient_norm") - number(b[i], "gradient_norm")) < 1e-4);
        cpl_json_free(a[i]);
        cpl_json_free(b[i]);
    }
}

/* The same pairs: a pass of 6 pairs is one batch of 6, or three of 2 pairs of different lengths. Sgd with a rate of 1
 * shows every difference of the gradient. */
static void a_group_is_one_large_batch(void **state)
{
    (void)state;
    put_pairs("train.tsv", 6);
    put_pairs("valid.tsv", 3);
    put_file("config.yaml", CONFIG("epochs: 5, optimizer: {name: sgd, learning_rate: 1}, clip_norm: 2"));
    run one = {.folder = "one", .set = {"training.batch_size=6"}};
    run three = {.folder = "three", .set = {"training.batch_size=2", "training.accumulate=3"}};
    assert_int_equal(train(&one), CPL_OK);
    assert_int_equal(train(&three), CPL_OK);
    assert_int_equal(three.steps_seen, 5); /* updates */
    assert_same_steps("one", "three", 5);
    assert_near_tensors("one", "three", 1e-5);
}

/* 7 batches of a pass by threes: 3, 3 and 1; the last is an update too. Nothing that was not planned is run. */
static void the_rest_of_a_pass_is_an_update(void **state)
{
    (void)state;
    cpl_json *epochs[4], *steps[16];
    put_pairs("train.tsv", 20);
    put_pairs("valid.tsv", 3);
    put_file("config.yaml", CONFIG("epochs: 2, batch_size: 3, accumulate: 3, validate_every: 2"));
    run r = {.folder = "rest"};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 6);
    assert_int_equal(read_events("rest", "epoch", epochs, 4), 2);
    assert_int_equal(number(epochs[0], "step"), 3);
    assert_int_equal(number(epochs[1], "plans"), 2);
    assert_true(number(epochs[1], "valid_token_share") == 1);
    assert_int_equal(count_events("rest", "validation"), 3); /* every second update */
    assert_int_equal(read_events("rest", "step", steps, 16), 6);
    for (int i = 0; i < 6; i++)
        cpl_json_free(steps[i]);
    for (int i = 0; i < 2; i++)
        cpl_json_free(epochs[i]);
}

/* The epoch's loss with a rate of 0 is the data's, however they are grouped; with steps_per_epoch the data repeats. */
static void losses_are_over_all_tokens(void **state)
{
    (void)state;
    double loss[3];
    const char *const sets[][3] = {{"training.batch_size=20"}, {"training.batch_size=3", "training.accumulate=2"},
                                   {"training.batch_size=1", "training.accumulate=50"}};
    put_pairs("train.tsv", 20);
    put_pairs("valid.tsv", 3);
    put_file("config.yaml", CONFIG("epochs: 1, optimizer: {learning_rate: 0}"));
    for (int i = 0; i < 3; i++) {
        run r = {.folder = i == 0 ? "sum_a" : i == 1 ? "sum_b" : "sum_c", .set = {sets[i][0], sets[i][1]}};
        cpl_json *epoch;
        assert_int_equal(train(&r), CPL_OK);
        assert_int_equal(read_events(r.folder, "epoch", &epoch, 1), 1);
        loss[i] = number(epoch, "loss");
        cpl_json_free(epoch);
        assert_true(fabs(loss[i] - loss[0]) < 1e-6 * loss[0]);
    }
    run r = {.folder = "repeat",
             .set = {"training.batch_size=3", "training.accumulate=2", "training.steps_per_epoch=9"}};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 9); /* 4 updates a pass */
}

/* Batches that are cut by a budget as well: each piece weighs as its tokens, and the plan has room for all of it. */
static void pieces_of_grouped_batches(void **state)
{
    (void)state;
    char config[700], *text, memory[64];
    cpl_json *root, *start;
    put_pairs_of_lengths("train.tsv", 60, 40);
    put_pairs_of_lengths("valid.tsv", 5, 30);
    put_file("config.yaml", CONFIG("epochs: 3, batch_size: 16, accumulate: 2, "
                                   "optimizer: {name: sgd, learning_rate: 0.5}"));
    snprintf(config, sizeof config, "%s/config.yaml", top);
    assert_int_equal(cpl_plan(&(cpl_train_options){.config_path = config}, 1, &text, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, text, strlen(text), NULL), CPL_OK);
    cpl_free(text);
    const cpl_json *parts = cpl_json_get(root, "parts");
    double peak = number(root, "peak_bytes") - (cpl_json_get(parts, "reading") ? number(parts, "reading") : 0);
    peak -= 0.5 * number(parts, "activations");
    snprintf(memory, sizeof memory, "training.memory=%lld", (long long)(peak + (1 << 18) + peak / 256));
    cpl_json_free(root);
    run whole = {.folder = "whole"}, cut = {.folder = "cut", .set = {memory}};
    assert_int_equal(train(&whole), CPL_OK);
    assert_int_equal(train(&cut), CPL_OK);
    assert_int_equal(read_events("cut", "start", &start, 1), 1);
    assert_true(number(start, "micro_batch") < 16 || number(start, "recomputed_calls") > 0);
    cpl_json_free(start);
    assert_same_steps("whole", "cut", 6);
    assert_near_tensors("whole", "cut", 1e-4);
}

/* Stopped at updates in the middle of a pass: the same bits as in one go, dropout and moments included. */
static void resume_between_updates(void **state)
{
    (void)state;
    static const int stops[] = {2, 3, 5};
    put_pairs("train.tsv", 20);
    put_pairs("valid.tsv", 3);
    put_file("config.yaml", CONFIG("epochs: 3, batch_size: 3, accumulate: 2, checkpoint_every: 1"));
    run go = {.folder = "go", .set = {"model.dropout=0.2"}}, r = {.folder = "stop", .set = {"model.dropout=0.2"}};
    assert_int_equal(train(&go), CPL_OK);
    for (int i = 0; i < 3; i++) {
        r.stop_at = stops[i];
        assert_int_equal(train(&r), CPL_STOPPED);
        r.resume = 1;
    }
    r.stop_at = 0;
    assert_int_equal(train(&r), CPL_OK);
    assert_same_file("go", "stop", "model.safetensors");
    assert_same_tensors("go", "stop", "checkpoint.safetensors");
    r.set[1] = "training.accumulate=4";
    assert_int_equal(train(&r), CPL_USAGE); /* it may not change */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_is_one_large_batch), cmocka_unit_test(the_rest_of_a_pass_is_an_update),
        cmocka_unit_test(losses_are_over_all_tokens), cmocka_unit_test(pieces_of_grouped_batches),
        cmocka_unit_test(resume_between_updates)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
