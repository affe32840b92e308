/* test_metrics.c: training.metrics: what validations that translate log, and what watching such a figure does. */
#include "train/train_test.h"

#include <math.h>

#include "train/trainer.h"

#define CONFIG(more)                                                                                                   \
    "model: {units: 16}\ndata: {train: train.tsv, valid: valid.tsv}\n"                                                 \
    "training: {batch_size: 4, epochs: 6, threads: 1, log_every: 1, show_examples: 1, checkpoint_every: 1,\n"          \
    "           metrics: [bleu, exact, token_error_rate, rouge], optimizer: {learning_rate: 0.02},\n"                  \
    "           early_stopping: {patience: 50, monitor: val_exact}" more "}\n"

static void put_all(const char *config)
{
    put_pairs("train.tsv", 40);
    put_pairs("valid.tsv", 70); /* more than are translated in one batch */
    put_file("config.yaml", config);
}

static cpl_json *evaluated(const char *folder)
{
    char model[700], pairs[700], *text;
    cpl_model *m;
    cpl_json *root;
    snprintf(model, sizeof model, "%s/%s/model.safetensors", top, folder);
    snprintf(pairs, sizeof pairs, "%s/valid.tsv", top);
    cpl_evaluate_options o = {.pairs = pairs, .json = 1, .metrics = "bleu,exact,token_error_rate,rouge"};
    assert_int_equal(cpl_model_open(&m, model, 1, NULL), CPL_OK);
    assert_int_equal(cpl_evaluate(m, &o, &text, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, text, strlen(text), NULL), CPL_OK);
    cpl_free(text);
    cpl_model_close(m);
    return root;
}

/* The best epoch is the first with the largest val_exact, and the saved model gives that epoch's figures again. */
static void the_best_epoch_has_the_figures_of_evaluate(void **state)
{
    static const char *const names[] = {"bleu", "exact", "token_error_rate", "rouge1", "rouge2", "rougeL", "rougeLsum"};
    cpl_json *epochs[8], *end;
    (void)state;
    put_all(CONFIG(""));
    run r = {.folder = "best"};
    assert_int_equal(train(&r), CPL_OK);
    size_t n = read_events("best", "epoch", epochs, 8), best = 0;
    assert_int_equal(n, 6);
    for (size_t i = 1; i < n; i++)
        if (number(epochs[i], "val_exact") > number(epochs[best], "val_exact"))
            best = i;
    assert_true(number(epochs[best], "val_exact") > number(epochs[0], "val_exact"));
    assert_int_equal(read_events("best", "end", &end, 1), 1);
    assert_int_equal(number(end, "best_epoch"), (int64_t)best + 1);
    cpl_json *root = evaluated("best");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char key[40];
        snprintf(key, sizeof key, "val_%s", names[i]);
        double logged = number(epochs[best], key), again = number(cpl_json_get(root, names[i]), "score");
        assert_true(again >= 0 && fabs(logged - again) <= 1e-5 * fabs(again));
    }
    cpl_json_free(root);
    cpl_json_free(end);
    for (size_t i = 0; i < n; i++)
        cpl_json_free(epochs[i]);
}

/* Stopped where a validation is due, then in mid-epoch: the same weights, the same state, the same figures. */
static void resumed_runs_watch_the_same(void **state)
{
    cpl_json *a[8], *b[8];
    (void)state;
    put_all(CONFIG(", schedule: {name: plateau, patience: 1}"));
    run whole = {.folder = "whole"}, r = {.folder = "parts", .stop_at = 20};
    assert_int_equal(train(&whole), CPL_OK);
    assert_int_equal(train(&r), CPL_STOPPED);
    r.resume = 1, r.stop_at = 33;
    assert_int_equal(train(&r), CPL_STOPPED);
    r.stop_at = 0;
    assert_int_equal(train(&r), CPL_OK);
    assert_same_file("whole", "parts", "model.safetensors");
    assert_same_tensors("whole", "parts", "checkpoint.safetensors");
    assert_int_equal(read_events("whole", "epoch", a, 8), 6);
    assert_int_equal(read_events("parts", "epoch", b, 8), 6);
    for (int i = 0; i < 6; i++) {
        assert_true(number(a[i], "val_bleu") == number(b[i], "val_bleu") && number(a[i], "val_bleu") >= 0);
        cpl_json_free(a[i]);
        cpl_json_free(b[i]);
    }
}

static void refused(const char *set, const char *said, const char *hint)
{
    run r = {.folder = "refused", .set = {set}, .overwrite = 1};
    cpl_str all = {0};
    assert_int_equal(train(&r), CPL_USAGE);
    for (int i = 0; i < r.error.lines; i++)
        cpl_str_printf(&all, "%s\n", r.error.line[i]);
    cpl_str_add(&all, r.error.hint);
    if (!strstr(all.data, said) || !strstr(all.data, hint))
        print_message("%s", all.data);
    assert_non_null(strstr(all.data, said));
    assert_non_null(strstr(all.data, hint));
    cpl_str_free(&all);
}

static void what_cannot_be_watched_is_refused(void **state)
{
    (void)state;
    put_all(CONFIG(""));
    refused("training.metrics=[bleu]",
            "'training.early_stopping.monitor' is 'val_exact', but 'training.metrics' has no 'exact'\n",
            "metrics: [exact]");
    refused("training.metrics=[exact, perplexity]", "'training.metrics' has 'perplexity'", "always shown");
    refused("training.metrics=[exact, blue]", "'blue'", "bleu");
    refused("training.memory=300KiB", "training.metrics takes", "budget");
}

/* The plan names what translating takes, and validations keep nothing. */
static void translating_is_planned(void **state)
{
    char path[700];
    cpl_config *c;
    cpl_dataset *data;
    cpl_trainer *t;
    int whole = 0;
    uint64_t bytes = 0;
    (void)state;
    put_all(CONFIG(""));
    snprintf(path, sizeof path, "%s/config.yaml", top);
    assert_int_equal(cpl_config_load(&c, path, NULL), CPL_OK);
    assert_int_equal(cpl_dataset_new(&data, &(cpl_dataset_options){.config = c, .texts = -1}, NULL), CPL_OK);
    assert_int_equal(cpl_trainer_new(&t, &(cpl_trainer_options){.config = c, .data = data}, NULL), CPL_OK);
    const cpl_memory_figures *m = cpl_trainer_memory(t);
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->part[i].name, "examples") == 0)
            bytes = m->part[i].bytes;
    assert_int_equal(t->example_count, 70);
    assert_true(bytes > 64 * 16 * sizeof(float));
    t->options = &(cpl_fit_options){.stop = NULL};
    assert_int_equal(cpl_trainer_score(t, &whole, NULL), CPL_OK);
    assert_true(whole && t->figure[CPL_FIGURE_EXACT] >= 0);
    uint64_t before = cpl_memory_live_bytes();
    assert_int_equal(cpl_trainer_score(t, &whole, NULL), CPL_OK);
    assert_int_equal(cpl_memory_live_bytes(), before);
    cpl_trainer_free(t);
    cpl_dataset_free(data);
    cpl_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_epoch_has_the_figures_of_evaluate),
                                       cmocka_unit_test(resumed_runs_watch_the_same),
                                       cmocka_unit_test(what_cannot_be_watched_is_refused),
                                       cmocka_unit_test(translating_is_planned)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
