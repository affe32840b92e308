/* test_batch_tokens.c: whole runs with training.batch_tokens and with weights of data.train. */
#include "train/train_test.h"

#include <math.h>

#define CONFIG(training)                                                                                               \
    "model: {units: 12, dropout: 0.1}\ndata: {train: train.tsv, valid: valid.tsv}\n"                                   \
    "training: {threads: 2, log_every: 1, show_examples: 0, " training "}\n"

static void put_data(const char *config)
{
    put_pairs_of_lengths("train.tsv", 60, 30);
    put_pairs_of_lengths("valid.tsv", 12, 30);
    put_file("config.yaml", config);
}

static cpl_json *plan(const char *const *set)
{
    char config[700], *text;
    cpl_json *root;
    size_t n = 0;
    while (set[n])
        n++;
    snprintf(config, sizeof config, "%s/config.yaml", top);
    assert_int_equal(cpl_plan(&(cpl_train_options){.config_path = config, .set = set, .set_count = n}, 1, &text, NULL),
                     CPL_OK);
    assert_int_equal(cpl_json_parse(&root, text, strlen(text), NULL), CPL_OK);
    cpl_free(text);
    return root;
}

/* With a rate of 0 the losses are those of the data, training and validation, however batches are made; no batch was
 * larger than the plan. */
static void losses_and_plan(void **state)
{
    (void)state;
    double loss[2], val_loss[2];
    put_data(CONFIG("epochs: 2, optimizer: {learning_rate: 0}"));
    for (int i = 0; i < 2; i++) {
        run r = {.folder = i ? "tokens" : "pairs",
                 .set = {i ? "training.batch_tokens=100" : "training.batch_size=7", "model.dropout=0"}};
        cpl_json *epochs[4], *steps[200];
        assert_int_equal(train(&r), CPL_OK);
        assert_int_equal(read_events(r.folder, "epoch", epochs, 4), 2);
        loss[i] = number(epochs[0], "loss"), val_loss[i] = number(epochs[0], "val_loss");
        assert_int_equal(number(epochs[1], "plans"), 2);
        assert_true(number(epochs[1], "valid_token_share") == 1);
        size_t n = read_events(r.folder, "step", steps, 200);
        assert_int_equal(n, r.steps_seen);
        assert_true(n % 2 == 0 && n / 2 >= 9); /* 60 pairs of about 16 tokens */
        for (size_t k = 0; k < n; k++)
            cpl_json_free(steps[k]);
        cpl_json_free(epochs[0]);
        cpl_json_free(epochs[1]);
    }
    assert_true(fabs(loss[0] - loss[1]) < 1e-6 * loss[0] && fabs(val_loss[0] - val_loss[1]) < 1e-6 * val_loss[0]);
}

/* Under a budget batches of tokens are cut as others are: the same is learned. */
static void pieces_of_token_batches(void **state)
{
    (void)state;
    char memory[64];
    put_data(CONFIG("epochs: 2, batch_tokens: 200, clip_norm: 1"));
    cpl_json *p = plan((const char *const[]){NULL}), *start, *a[100], *b[100];
    const cpl_json *parts = cpl_json_get(p, "parts");
    double peak = number(p, "peak_bytes") - (cpl_json_get(parts, "reading") ? number(parts, "reading") : 0);
    peak -= 0.5 * number(parts, "activations");
    snprintf(memory, sizeof memory, "training.memory=%lld", (long long)(peak + (1 << 18) + peak / 256));
    cpl_json_free(p);
    run whole = {.folder = "whole"}, cut = {.folder = "cut", .set = {memory}};
    assert_int_equal(train(&whole), CPL_OK);
    assert_int_equal(train(&cut), CPL_OK);
    assert_int_equal(read_events("cut", "start", &start, 1), 1);
    cpl_json_free(start);
    size_t n = read_events("whole", "step", a, 100);
    assert_int_equal(read_events("cut", "step", b, 100), n);
    for (size_t i = 0; i < n; i++) {
        assert_true(fabs(number(a[i], "loss") - number(b[i], "loss")) < 1e-4 * number(a[i], "loss"));
        cpl_json_free(a[i]);
        cpl_json_free(b[i]);
    }
}

static void assert_resumes(const char *go, const char *stop, const char *const *set)
{
    static const int stops[] = {3, 8, 11};
    run whole = {.folder = go}, r = {.folder = stop};
    for (int i = 0; set[i]; i++)
        whole.set[i] = r.set[i] = set[i];
    assert_int_equal(train(&whole), CPL_OK);
    for (int i = 0; i < 3; i++) {
        r.stop_at = stops[i];
        assert_int_equal(train(&r), CPL_STOPPED);
        r.resume = 1;
    }
    r.stop_at = 0;
    assert_int_equal(train(&r), CPL_OK);
    assert_same_file(go, stop, "model.safetensors");
    assert_same_tensors(go, stop, "checkpoint.safetensors");
}

static void resume_of_token_batches(void **state)
{
    (void)state;
    put_data(CONFIG("epochs: 2, batch_tokens: 100, checkpoint_every: 1, accumulate: 2, validation_steps: 2"));
    assert_resumes("go", "stop", (const char *const[]){NULL});
}

static void large_pairs_and_both_keys(void **state)
{
    (void)state;
    put_data(CONFIG("epochs: 1, batch_tokens: 20"));
    run r = {.folder = "large"};
    assert_int_equal(train(&r), CPL_OK);
    assert_non_null(strstr(r.warned, "training pairs have more target tokens than training.batch_tokens, 20: each is a "
                                     "batch of its own; the longest, 'train.tsv' line"));
    run both = {.folder = "both", .set = {"training.batch_size=4"}};
    assert_int_equal(train(&both), CPL_USAGE);
    assert_non_null(strstr(both.error.line[0], "'training.batch_size' and 'training.batch_tokens' are both set"));
    both.set[1] = "training.batch_tokens=0";
    assert_int_equal(train(&both), CPL_OK);
}

/* ---- weights ---- */

static const char *const WEIGHTED = "data.train=[{pairs: train.tsv, weight: 2}, {pairs: more.tsv, weight: 0.5}]";

/* 20 pairs twice and half of 9 (4.5: 5): 45 pairs are 12 batches of 4. */
static void weights_in_a_run(void **state)
{
    (void)state;
    put_pairs("train.tsv", 20);
    put_pairs("more.tsv", 9);
    put_pairs("valid.tsv", 4);
    put_file("config.yaml", CONFIG("epochs: 2, batch_size: 4, checkpoint_every: 1"));
    cpl_json *p = plan((const char *const[]){WEIGHTED, NULL}), *epochs[4];
    const cpl_json *data = cpl_json_get(p, "data"), *second = cpl_json_at(cpl_json_get(data, "weights"), 1);
    assert_int_equal(number(p, "steps_per_epoch"), 12);
    assert_int_equal(number(data, "train_pairs"), 29);
    assert_int_equal(number(data, "train_pairs_in_pass"), 45);
    assert_true(number(second, "weight") == 0.5 && number(second, "pairs") == 9);
    assert_int_equal(number(second, "pairs_in_pass"), 5);
    cpl_json_free(p);
    run r = {.folder = "weighted", .set = {WEIGHTED}};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 24);
    assert_int_equal(read_events("weighted", "epoch", epochs, 4), 2);
    assert_int_equal(number(epochs[1], "plans"), 2);
    cpl_json_free(epochs[0]);
    cpl_json_free(epochs[1]);
    assert_resumes("weighted_go", "weighted_stop", (const char *const[]){WEIGHTED, NULL});
    r = (run){.folder = "weighted", .resume = 1,
              .set = {"data.train=[{pairs: train.tsv, weight: 3}, {pairs: more.tsv, weight: 0.5}]"}};
    assert_int_equal(train(&r), CPL_USAGE); /* data.train may not change */
    assert_non_null(strstr(r.error.line[0], "weight: 3"));
}

/* At a rate of 0 an epoch's loss is the mean over all tokens that stand in it. With sums of losses t, m and numbers of
 * tokens T, M of the two files: A = (2t + m)/(2T + M), B = (t + m)/(T + M), C = (t + 2m)/(T + 2M). */
static void losses_by_weight(void **state)
{
    (void)state;
    double loss[3], train_tokens = 0, more_tokens = 0;
    const char *const sets[] = {"data.train=[{pairs: train.tsv, weight: 2}, more.tsv]",
                                "data.train=[train.tsv, {pairs: more.tsv, weight: 1}]",
                                "data.train=[train.tsv, {pairs: more.tsv, weight: 2}]"};
    static const char *const folders[] = {"twice_one", "once", "twice_other"};
    put_pairs("train.tsv", 20);
    put_pairs("more.tsv", 9);
    put_pairs("valid.tsv", 4);
    put_file("config.yaml", CONFIG("epochs: 1, batch_size: 4, optimizer: {learning_rate: 0}"));
    for (int i = 0; i < 20; i++) {
        train_tokens += i % 3 ? 4 : 3; /* words and END, see put_pairs */
        more_tokens += i >= 9 ? 0 : i % 3 ? 4 : 3;
    }
    for (int i = 0; i < 3; i++) {
        run r = {.folder = folders[i], .set = {sets[i], "model.dropout=0"}};
        cpl_json *epoch;
        assert_int_equal(train(&r), CPL_OK);
        assert_int_equal(read_events(r.folder, "epoch", &epoch, 1), 1);
        loss[i] = number(epoch, "loss");
        cpl_json_free(epoch);
    }
    double sum = loss[0] * (2 * train_tokens + more_tokens) + loss[2] * (train_tokens + 2 * more_tokens);
    assert_true(fabs(sum - 3 * loss[1] * (train_tokens + more_tokens)) < 1e-5 * sum);
    assert_true(loss[0] != loss[1] && loss[2] != loss[1]);
}

static void what_weights_refuse(void **state)
{
    (void)state;
    put_pairs("train.tsv", 20);
    put_pairs("more.tsv", 9);
    put_pairs("valid.tsv", 4);
    put_file("config.yaml", CONFIG("epochs: 1"));
    run tokens = {.folder = "no", .set = {WEIGHTED, "training.batch_tokens=50"}};
    assert_int_equal(train(&tokens), CPL_USAGE);
    assert_non_null(strstr(tokens.error.line[0], "'more.tsv' has the weight 0.5, but with training.batch_tokens"));
    run whole = {.folder = "yes", .set = {"data.train={pairs: train.tsv, weight: 3}", "training.batch_tokens=50"}};
    assert_int_equal(train(&whole), CPL_OK);
    run valid = {.folder = "no", .set = {"data.valid={pairs: valid.tsv, weight: 2}"}};
    assert_int_equal(train(&valid), CPL_USAGE);
    run nothing = {.folder = "no", .set = {"data.train={pairs: more.tsv, weight: 0.01}"}};
    assert_int_equal(train(&nothing), CPL_USAGE);
    assert_non_null(strstr(nothing.error.line[0], "leave no pair of 9 in a pass"));
    run negative = {.folder = "no", .set = {"data.train={pairs: more.tsv, weight: -1}"}};
    assert_int_equal(train(&negative), CPL_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_plan), cmocka_unit_test(pieces_of_token_batches),
        cmocka_unit_test(resume_of_token_batches), cmocka_unit_test(large_pairs_and_both_keys),
        cmocka_unit_test(weights_in_a_run), cmocka_unit_test(losses_by_weight),
        cmocka_unit_test(what_weights_refuse)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
