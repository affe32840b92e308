/* test_run.c: whole tiny trainings through cpl_train: what is counted, validated, kept and logged. */
#include "train/train_test.h"

#include <math.h>

#include "train/trainer.h"

#define CONFIG(training) "model: {units: 8}\ndata: {train: train.tsv, valid: valid.tsv}\ntraining: {" training "}\n"

static void put_data(int train_pairs, int valid_pairs)
{
    put_pairs("train.tsv", train_pairs);
    put_pairs("valid.tsv", valid_pairs);
}

/* ---- steps and epochs ---- */

static void case_G11_odd_last_batch(void **state)
{
    (void)state;
    put_data(7, 3);
    put_file("config.yaml", CONFIG("batch_size: 3, epochs: 2, log_every: 1, threads: 1"));
    run r = {.folder = "g11"};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 6); /* 3, 3 and 1 pairs, twice */
    cpl_json *epochs[8];
    assert_int_equal(read_events("g11", "epoch", epochs, 8), 2);
    assert_int_equal(number(epochs[1], "step"), 6);
    assert_true(number(epochs[0], "valid_token_share") == 1.0);
    assert_true(number(epochs[0], "traces") == 1);
    assert_true(number(epochs[1], "plans") == 2); /* no batch was larger than what was planned */
    cpl_json_free(epochs[0]);
    cpl_json_free(epochs[1]);
}

/* The epoch's loss weighs each step by its tokens: with a learning rate of 0 it is the loss of the data. */
static void case_C02_loss_does_not_depend_on_the_batch(void **state)
{
    (void)state;
    put_data(7, 11);
    put_file("config.yaml", CONFIG("epochs: 1, optimizer: {learning_rate: 0}, threads: 1"));
    const char *const sizes[] = {"training.batch_size=1", "training.batch_size=2", "training.batch_size=11"};
    const char *const folders[] = {"c02a", "c02b", "c02c"};
    double loss[3], val_loss[3];
    for (int i = 0; i < 3; i++) {
        run r = {.folder = folders[i], .set = {sizes[i]}};
        cpl_json *epoch;
        assert_int_equal(train(&r), CPL_OK);
        assert_int_equal(read_events(folders[i], "epoch", &epoch, 1), 1);
        loss[i] = number(epoch, "loss"), val_loss[i] = number(epoch, "val_loss");
        cpl_json_free(epoch);
    }
    for (int i = 1; i < 3; i++) {
        assert_true(fabs(loss[i] - loss[0]) < 2e-7 * loss[0]);
        assert_true(fabs(val_loss[i] - val_loss[0]) < 2e-7 * val_loss[0]);
    }
}

/* 100 rows, batches of 64: the second has 36, with a zero state of its own. */
static void case_D09_short_last_batch(void **state)
{
    (void)state;
    put_data(100, 3);
    put_file("config.yaml", CONFIG("batch_size: 64, epochs: 1, log_every: 1"));
    run r = {.folder = "d09"};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 2);
}

/* steps_per_epoch above the batches of a pass: the data go round, no epoch is shorter, no validation is left out. */
static void case_G04_steps_per_epoch(void **state)
{
    (void)state;
    cpl_json *root = read_case("G04_steps.json");
    put_data((int)number(root, "pairs"), 3);
    put_file("config.yaml", CONFIG("batch_size: 2, steps_per_epoch: 4, epochs: 3, log_every: 1"));
    assert_true(number(root, "batch") == 2 && number(root, "steps_per_epoch") == 4);
    run r = {.folder = "g04"};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 12);
    cpl_json *epochs[8];
    size_t n = read_events("g04", "epoch", epochs, 8);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(number(epochs[i], "step"), 4 * ((int64_t)i + 1));
        assert_true(number(epochs[i], "val_loss") > 0);
        cpl_json_free(epochs[i]);
    }
    cpl_json_free(root);
}

/* Frozen by a rate of 0: every validation sees the same rows, so it gives the same loss. */
static void case_G05_validation_starts_over(void **state)
{
    (void)state;
    put_data(6, 10);
    put_file("config.yaml", CONFIG("batch_size: 2, epochs: 3, optimizer: {learning_rate: 0}, validation_steps: 2"));
    const char *const folders[] = {"g05a", "g05b"};
    double first[2];
    for (int k = 0; k < 2; k++) {
        run r = {.folder = folders[k], .set = {k ? "training.validation_steps=50" : "training.validation_steps=2"}};
        assert_int_equal(train(&r), CPL_OK);
        const char *said = strstr(r.told, "make 5 batches: all are used every time");
        assert_int_equal(said != NULL, k); /* 50 are more than there are: said, and once */
        assert_null(said ? strstr(said + 1, "make 5 batches") : NULL);
        cpl_json *epochs[4];
        assert_int_equal(read_events(folders[k], "epoch", epochs, 4), 3);
        first[k] = number(epochs[0], "val_loss");
        for (int i = 0; i < 3; i++) {
            assert_true(number(epochs[i], "val_loss") == first[k]);
            cpl_json_free(epochs[i]);
        }
    }
    assert_true(first[0] != first[1]); /* 4 rows and all 10 */
}

/* A run that diverges goes on to its end: its log stays readable and names the epoch (with case_G02 of test_rules). */
static void case_G02_nan_is_named_in_the_log(void **state)
{
    (void)state;
    put_data(12, 4);
    put_file("config.yaml", CONFIG("batch_size: 2, epochs: 3, optimizer: {name: sgd, learning_rate: 1e6}"));
    run r = {.folder = "g02"};
    assert_int_equal(train(&r), CPL_OK);
    assert_non_null(strstr(r.warned, "val_loss of epoch 3 is not a number"));
    cpl_json *epochs[4];
    assert_int_equal(read_events("g02", "epoch", epochs, 4), 3);
    assert_int_equal(cpl_json_what(cpl_json_get(epochs[2], "val_loss")), CPL_JSON_NULL);
    for (int i = 0; i < 3; i++)
        cpl_json_free(epochs[i]);
}

/* ---- what is kept ---- */

/* Validation pairs that contradict what is learned: later epochs are worse. The file holds the best epoch, also when
 * the limit ends the run. */
static void case_G01_best_model_is_kept(void **state)
{
    (void)state;
    put_data(12, 4);
    put_file("valid.tsv", "uno dos\tsun cat\ncasa perro\tone water\nagua sol tres\ttwo one three\n");
    put_file("config.yaml", CONFIG("batch_size: 4, epochs: 6, optimizer: {learning_rate: 0.05}, threads: 1, "
                                   "early_stopping: {patience: 50}"));
    run r = {.folder = "g01"};
    assert_int_equal(train(&r), CPL_OK);
    cpl_json *epochs[8], *end;
    size_t n = read_events("g01", "epoch", epochs, 8), best = 0;
    assert_int_equal(n, 6);
    for (size_t i = 1; i < n; i++)
        if (number(epochs[i], "val_loss") < number(epochs[best], "val_loss"))
            best = i;
    assert_true(best < 5);
    assert_int_equal(read_events("g01", "end", &end, 1), 1);
    assert_int_equal(number(end, "best_epoch"), (int64_t)best + 1);
    assert_string_equal(cpl_json_text(cpl_json_get(end, "reason"), NULL), "epochs");
    char path[700];
    cpl_model_file *f;
    snprintf(path, sizeof path, "%s/g01/model.safetensors", top);
    assert_int_equal(cpl_model_file_open(&f, path, NULL), CPL_OK);
    assert_int_equal(f->epoch, (int64_t)best + 1);
    assert_int_equal(f->step, 3 * ((int64_t)best + 1));
    assert_false(f->is_checkpoint);
    cpl_model_file_close(f);
    for (size_t i = 0; i < n; i++)
        cpl_json_free(epochs[i]);
    cpl_json_free(end);
}

/* A limit inside an epoch: what was learned since the last validation is validated too. */
static void a_limit_in_mid_epoch_is_validated(void **state)
{
    (void)state;
    put_data(12, 4);
    put_file("config.yaml", CONFIG("batch_size: 2, epochs: 9, max_steps: 8, log_every: 1"));
    run r = {.folder = "limit"};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 8);
    cpl_json *end, *validation;
    assert_int_equal(read_events("limit", "end", &end, 1), 1);
    assert_string_equal(cpl_json_text(cpl_json_get(end, "reason"), NULL), "max_steps");
    assert_int_equal(read_events("limit", "validation", &validation, 1), 1);
    assert_int_equal(number(validation, "step"), 8);
    cpl_json_free(end);
    cpl_json_free(validation);
}

static void validation_every_few_steps(void **state)
{
    (void)state;
    put_data(12, 4);
    put_file("config.yaml", CONFIG("batch_size: 2, epochs: 2, validate_every: 5, log_every: 1"));
    run r = {.folder = "every"};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(count_events("every", "validation"), 3); /* 5, 10, and 12: the end */
    assert_int_equal(count_events("every", "epoch"), 2);
}

/* ---- C04 ---- */

/* Rows whose target is empty form batches without a target token: weights, moments and step stay as they are. */
static void case_C04_batch_without_target(void **state)
{
    (void)state;
    put_data(6, 2);
    put_file("config.yaml", CONFIG("batch_size: 1, threads: 1"));
    char path[700];
    snprintf(path, sizeof path, "%s/config.yaml", top);
    cpl_config *config;
    cpl_dataset *data;
    cpl_trainer *t;
    run r = {0};
    assert_int_equal(cpl_config_load(&config, path, NULL), CPL_OK);
    assert_int_equal(cpl_dataset_new(&data, &(cpl_dataset_options){.config = config}, NULL), CPL_OK);
    data->train.items[2].target = data->train.items[4].target = 1; /* START alone: no label */
    assert_int_equal(cpl_trainer_new(&t, &(cpl_trainer_options){.config = config, .data = data}, NULL), CPL_OK);
    cpl_fit_options fit = {.message = on_message, .user = &r};
    t->options = &fit;
    t->log = (cpl_log){cpl_trainer_tell_message, t};
    const cpl_parameters *p = t->program->engine->parameters;
    assert_int_equal(cpl_optimizer_new(&t->optimizer, t->training, t->program->engine, t->program->gradients, NULL),
                     CPL_OK);
    size_t bytes = cpl_parameters_bytes(p);
    char *before = cpl_alloc(3 * bytes, 1);
    const char *name;
    int empty = 0;
    for (int i = 0; i < 12; i++) {
        cpl_step_result result;
        int64_t step = t->state.step;
        const real *blocks[] = {cpl_parameters_values(p), cpl_optimizer_state(t->optimizer, 0, &name),
                                cpl_optimizer_state(t->optimizer, 1, &name)};
        for (int k = 0; k < 3; k++)
            memcpy(before + (size_t)k * bytes, blocks[k], bytes);
        assert_int_equal(cpl_trainer_step(t, &result, NULL), CPL_OK);
        assert_true(isfinite(result.loss));
        assert_int_equal(t->state.step, step + result.updated);
        empty += !result.updated;
        for (int k = 0; k < 3 && !result.updated; k++)
            assert_memory_equal(before + (size_t)k * bytes, blocks[k], bytes);
    }
    assert_int_equal(empty, 4); /* two rows, two passes */
    assert_int_equal(r.warnings, 1);
    assert_non_null(strstr(r.warned, "train.tsv"));
    assert_true(isfinite(cpl_sums_loss(&t->state.sums)));
    cpl_release(before);
    cpl_trainer_free(t);
    cpl_dataset_free(data);
    cpl_config_free(config);
}

/* ---- the folder ---- */

static void a_run_is_not_overwritten_by_accident(void **state)
{
    (void)state;
    put_data(6, 2);
    put_file("config.yaml", CONFIG("batch_size: 2, epochs: 1"));
    run r = {.folder = "again"};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(train(&r), CPL_USAGE);
    assert_non_null(strstr(r.error.line[0], "already holds a run (epoch 1, step 3)"));
    r.overwrite = 1;
    assert_int_equal(train(&r), CPL_OK);
    r.overwrite = 0, r.resume = 1, r.set[0] = "model.units=9";
    assert_int_equal(train(&r), CPL_USAGE);
    assert_non_null(strstr(r.error.line[0], "'model.units' was 8 in the run and is now 9"));
    r.set[0] = NULL;
    put_pairs("train.tsv", 7);
    assert_int_equal(train(&r), CPL_USAGE);
    assert_non_null(strstr(r.error.line[0], "the data have changed"));
}

/* Without its checkpoints a model cannot go on, but it must not be lost either. */
static void resume_keeps_a_model_without_checkpoint(void **state)
{
    (void)state;
    put_data(6, 2);
    put_file("config.yaml", CONFIG("batch_size: 2, epochs: 1"));
    run r = {.folder = "bare"};
    assert_int_equal(train(&r), CPL_OK);
    char path[700];
    snprintf(path, sizeof path, "%s/bare/checkpoint.safetensors", top);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/bare/checkpoint.previous.safetensors", top);
    unlink(path);
    r.resume = 1;
    assert_int_equal(train(&r), CPL_USAGE);
    assert_non_null(strstr(r.error.line[0], "no checkpoint to go on from"));
    snprintf(path, sizeof path, "%s/bare/model.safetensors", top);
    assert_true(cpl_file_exists(path));
}

/* Data that cannot be used leave no folder behind. */
static void a_refusal_writes_nothing(void **state)
{
    (void)state;
    put_file("train.tsv", "one field\n");
    put_file("config.yaml", CONFIG("epochs: 1"));
    run r = {.folder = "refused"};
    assert_int_equal(train(&r), CPL_USAGE);
    char path[700];
    snprintf(path, sizeof path, "%s/refused", top);
    assert_false(cpl_file_exists(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_G11_odd_last_batch), cmocka_unit_test(case_C02_loss_does_not_depend_on_the_batch),
        cmocka_unit_test(case_D09_short_last_batch), cmocka_unit_test(case_G04_steps_per_epoch),
        cmocka_unit_test(case_G02_nan_is_named_in_the_log), cmocka_unit_test(case_G05_validation_starts_over),
        cmocka_unit_test(case_G01_best_model_is_kept),
        cmocka_unit_test(a_limit_in_mid_epoch_is_validated), cmocka_unit_test(validation_every_few_steps),
        cmocka_unit_test(case_C04_batch_without_target), cmocka_unit_test(a_run_is_not_overwritten_by_accident),
        cmocka_unit_test(resume_keeps_a_model_without_checkpoint), cmocka_unit_test(a_refusal_writes_nothing)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
