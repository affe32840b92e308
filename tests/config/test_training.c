/* test_training.c: keys of the group training that need or exclude each other: what is refused, and in which words. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "config/config.h"

/* The file m.yaml with this text is refused in these words; hint NULL: without one. */
static void refused(const char *text, const char *line, const char *hint)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    assert_int_equal(cpl_config_parse(&c, text, strlen(text), "m.yaml", &err), CPL_OK);
    assert_int_equal(cpl_config_check(c, 0, &err), CPL_USAGE);
    assert_string_equal(err.line[0], line);
    assert_string_equal(err.hint, hint ? hint : "");
    cpl_config_free(c);
}

static void accepted(const char *text)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    assert_int_equal(cpl_config_parse(&c, text, strlen(text), "m.yaml", &err), CPL_OK);
    assert_int_equal(cpl_config_check(c, 0, &err), CPL_OK);
    cpl_config_free(c);
}

static void plateau_alone_has_patience(void **state)
{
    (void)state;
    refused("training: {schedule: {patience: 3}}\n",
            "m.yaml:1: 'training.schedule.patience' is 3, but only schedule plateau reads it",
            "training.early_stopping.patience ends a run that no longer improves");
    accepted("training: {schedule: {name: plateau, patience: 3, factor: 0.3}}\n");
}

static void case_G06_one_kind_of_clipping(void **state)
{
    (void)state;
    refused("training: {clip_norm: 1, clip_value: 0.5}\n",
            "m.yaml:1: 'training.clip_norm' and 'training.clip_value' are both set, expected one kind of clipping",
            "set one of them to 0");
    refused("training:\n  clip_value: 1\n  clip_tensor_norm: 1\n",
            "m.yaml:2: 'training.clip_tensor_norm' and 'training.clip_value' are both set, expected one kind of "
            "clipping",
            "set one of them to 0");
    accepted("training: {clip_norm: 0, clip_tensor_norm: 1, clip_value: 0}\n");
}

static void one_table_for_all_is_never_sparse(void **state)
{
    (void)state;
    refused("model: {tie: all}\ntext: {shared: true}\ntraining: {optimizer: {sparse_embeddings: true}}\n",
            "m.yaml:3: 'training.optimizer.sparse_embeddings' is true, but 'model.tie' is all: the only embedding is "
            "the projection too, and every row of it has a gradient",
            "leave sparse_embeddings out, or set model.tie to none or target");
    accepted("model: {tie: target}\ntraining: {optimizer: {sparse_embeddings: true}}\n");
    accepted("training: {optimizer: {name: sgd, momentum: 0.9, sparse_embeddings: true}}\n");
}

static void copying_has_no_smoothing(void **state)
{
    (void)state;
    refused("model: {copy: true}\ntraining: {label_smoothing: 0.1}\n",
            "m.yaml:2: 'training.label_smoothing' is 0.1, but 'model.copy' is true: a share for every class is not "
            "defined for words that are copied", "leave one of the two out");
    accepted("model: {copy: true}\ntraining: {label_smoothing: 0}\n");
}

static void tokens_take_the_place_of_pairs(void **state)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    const char *text = "training: {batch_size: 32, batch_tokens: 4000}\ndata: {train: a.tsv}\n";
    (void)state;
    assert_int_equal(cpl_config_parse(&c, text, strlen(text), "m.yaml", &err), CPL_OK);
    assert_int_equal(cpl_config_check(c, 1, &err), CPL_USAGE);
    assert_string_equal(err.line[0],
                        "m.yaml:1: 'training.batch_size' and 'training.batch_tokens' are both set, expected one");
    cpl_config_free(c);
}

/* ---- weights of data.train ---- */

static void weights_are_read_and_written(void **state)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL, *again = NULL;
    cpl_str shown = {0};
    const char *text = "data:\n  train: [a.tsv, {pairs: b.tsv, weight: 2.5}, {source: c.de, target: c.en, "
                       "weight: 0.1}]\n";
    int key = cpl_config_find("data.train");
    (void)state;
    assert_int_equal(cpl_config_parse(&c, text, strlen(text), "m.yaml", &err), CPL_OK);
    assert_true(cpl_config_weight(&c->data.train.items[0]) == 1 && cpl_config_weight(&c->data.train.items[1]) == 2.5);
    cpl_config_text_of(c, key, &shown);
    assert_string_equal(shown.data, "[a.tsv, {pairs: b.tsv, weight: 2.5}, {source: c.de, target: c.en, weight: 0.1}]");
    if (cpl_json_available()) {
        cpl_json *json = cpl_config_to_json(c);
        assert_int_equal(cpl_config_from_json(&again, json, &err), CPL_OK);
        assert_true(cpl_config_weight(&again->data.train.items[2]) == 0.1);
        assert_int_equal(cpl_config_check_resume(c, again, &err), CPL_OK);
        assert_int_equal(cpl_config_set(again, "data.train", "[a.tsv, b.tsv]", &err), CPL_OK);
        assert_int_equal(cpl_config_check_resume(c, again, &err), CPL_USAGE);
        cpl_config_free(again);
        cpl_json_free(json);
    }
    cpl_str_free(&shown);
    cpl_config_free(c);
}

static void weights_that_are_refused(void **state)
{
    static const char *const texts[][2] = {
        {"data: {train: {pairs: a.tsv, weight: 0}}\n",
         "m.yaml:1: 'data.train.weight' got '0', expected a number above 0 and up to 1000"},
        {"data: {train: {pairs: a.tsv, weight: two}}\n",
         "m.yaml:1: 'data.train.weight' got 'two', expected a number above 0 and up to 1000"},
        {"data: {train: {pairs: a.tsv, weight: 2000}}\n",
         "m.yaml:1: 'data.train.weight' got '2000', expected a number above 0 and up to 1000"},
        {"data: {valid: {pairs: a.tsv, weight: 2}}\n",
         "m.yaml:1: 'data.valid.weight' is 2, but a validation reads each pair once"}};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cpl_error err = CPL_ERROR_INIT;
        cpl_config *c = NULL;
        assert_int_equal(cpl_config_parse(&c, texts[i][0], strlen(texts[i][0]), "m.yaml", &err), CPL_USAGE);
        assert_string_equal(err.line[0], texts[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plateau_alone_has_patience),
                                       cmocka_unit_test(case_G06_one_kind_of_clipping),
                                       cmocka_unit_test(one_table_for_all_is_never_sparse),
                                       cmocka_unit_test(copying_has_no_smoothing),
                                       cmocka_unit_test(tokens_take_the_place_of_pairs),
                                       cmocka_unit_test(weights_are_read_and_written),
                                       cmocka_unit_test(weights_that_are_refused)};
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    if (cpl_config_parse(&c, "", 0, "m.yaml", &err) != CPL_OK) {
        puts("skipped: this build has no YAML library");
        return 77;
    }
    cpl_config_free(c);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
