/* test_rules.c: schedules, early stopping and sums against numbers from elsewhere. */
#include "train/train_test.h"

#include <math.h>

#include "train/early_stopping.h"
#include "train/run_state.h"
#include "train/schedule.h"

static cpl_config *config_of(const char *const *set)
{
    cpl_config *c;
    assert_int_equal(cpl_config_default(&c, NULL), CPL_OK);
    for (; *set; set++)
        assert_int_equal(cpl_config_set_pair(c, *set, NULL), CPL_OK);
    return c;
}

/* ---- schedules ---- */

static void case_G08_inverse_sqrt(void **state)
{
    (void)state;
    const char *const set[] = {"training.schedule.name=inverse_sqrt", "training.schedule.warmup_steps=4",
                               "training.optimizer.learning_rate=1e-3", NULL};
    cpl_config *c = config_of(set);
    cpl_json *root = read_case("G08_schedule.json");
    const cpl_json *expected = cpl_json_get(cpl_json_get(root, "inverse_sqrt"), "lr_at_step_1..8");
    assert_int_equal(cpl_json_size(expected), 8);
    for (size_t i = 0; i < 8; i++)
        assert_true(fabs(cpl_schedule_rate(&c->training, (int64_t)i + 1) -
                         1e-3 * cpl_json_real(cpl_json_at(expected, i), 0)) < 1e-9);
    cpl_json_free(root);
    cpl_config_free(c);
}

static void other_schedules(void **state)
{
    (void)state;
    const char *const constant[] = {"training.schedule.warmup_steps=10", "training.optimizer.learning_rate=0.5", NULL};
    cpl_config *c = config_of(constant);
    assert_true(fabs(cpl_schedule_rate(&c->training, 1) - 0.05) < 1e-12);
    assert_true(fabs(cpl_schedule_rate(&c->training, 10) - 0.5) < 1e-12);
    assert_true(fabs(cpl_schedule_rate(&c->training, 1000) - 0.5) < 1e-12);
    cpl_config_free(c);
    const char *const cosine[] = {"training.schedule.name=cosine", "training.schedule.total_steps=100",
                                  "training.optimizer.learning_rate=2", NULL};
    c = config_of(cosine);
    assert_true(fabs(cpl_schedule_rate(&c->training, 50) - 1) < 1e-9);
    assert_true(fabs(cpl_schedule_rate(&c->training, 25) - (1 + sqrt(0.5))) < 1e-9);
    assert_true(cpl_schedule_rate(&c->training, 100) == 0 && cpl_schedule_rate(&c->training, 5000) == 0);
    cpl_config_free(c);
    const char *const step[] = {"training.schedule.name=step", "training.schedule.every=10",
                                "training.schedule.factor=0.1", "training.optimizer.learning_rate=1", NULL};
    c = config_of(step);
    assert_true(fabs(cpl_schedule_rate(&c->training, 10) - 1) < 1e-12);
    assert_true(fabs(cpl_schedule_rate(&c->training, 11) - 0.1) < 1e-12);
    assert_true(fabs(cpl_schedule_rate(&c->training, 31) - 1e-3) < 1e-12);
    cpl_config_free(c);
}

/* Patience 2: cut after two validations in a row that are no improvement; the count begins anew after each cut. */
static void plateau_cuts(void **state)
{
    (void)state;
    const char *const set[] = {"training.schedule.name=plateau", "training.schedule.factor=0.1",
                               "training.optimizer.learning_rate=2", "training.schedule.warmup_steps=4", NULL};
    static const int improved[] = {1, 0, 1, 0, 0, 0, 0, 1, 0}, cut[] = {0, 0, 0, 0, 1, 0, 1, 0, 0};
    cpl_config *c = config_of(set);
    cpl_plateau p = {0};
    for (int i = 0; i < 9; i++)
        assert_int_equal(cpl_plateau_observe(&p, &c->training, improved[i]), cut[i]);
    assert_true(fabs(cpl_schedule_rate(&c->training, 100) * cpl_plateau_share(&p, &c->training) - 0.02) < 1e-12);
    assert_true(fabs(cpl_schedule_rate(&c->training, 1) - 0.5) < 1e-12);
    assert_int_equal(cpl_config_set_pair(c, "training.schedule.patience=0", NULL), CPL_OK);
    assert_int_equal(cpl_plateau_observe(&p, &c->training, 0), 1);
    assert_int_equal(cpl_plateau_observe(&p, &c->training, 0), 1);
    assert_int_equal(cpl_config_set_pair(c, "training.schedule.name=constant", NULL), CPL_OK);
    assert_int_equal(cpl_plateau_observe(&p, &c->training, 0), 0);
    assert_true(cpl_plateau_share(&p, &c->training) == 1);
    cpl_config_free(c);
}

/* ---- early stopping ---- */

/* Feeds losses until the rule ends the run; returns the epochs that were run. */
static int64_t epochs_run(const cpl_json *losses, int64_t patience, double min_delta, cpl_stopping *s)
{
    char a[80], b[80];
    snprintf(a, sizeof a, "training.early_stopping.patience=%" PRId64, patience);
    snprintf(b, sizeof b, "training.early_stopping.min_delta=%g", min_delta);
    const char *const set[] = {a, b, NULL};
    cpl_config *c = config_of(set);
    int64_t epoch = 0;
    *s = (cpl_stopping){0};
    for (size_t i = 0; i < cpl_json_size(losses) && !cpl_stopping_is_over(s, &c->training); i++) {
        double loss = cpl_json_real(cpl_json_at(losses, i), (double)NAN); /* "nan" is a text in the file */
        epoch++;
        cpl_stopping_observe(s, &c->training, loss, epoch, epoch * 10);
    }
    cpl_config_free(c);
    return epoch;
}

static void case_G01_best_weights_at_the_limit(void **state)
{
    (void)state;
    cpl_json *root = read_case("G01_early_stop.json");
    cpl_stopping s;
    assert_int_equal(epochs_run(cpl_json_get(root, "val_loss"), 5, 0, &s), 5);
    assert_int_equal(s.best_epoch, cpl_json_int(cpl_json_get(cpl_json_get(root, "expect"), "best_epoch"), 0));
    assert_int_equal(s.best_step, 30);
    cpl_json_free(root);
}

static void case_G02_nan_is_no_improvement(void **state)
{
    (void)state;
    cpl_json *root = read_case("G02_nan_val.json");
    const cpl_json *expect = cpl_json_get(root, "expect");
    cpl_stopping s;
    assert_int_equal(epochs_run(cpl_json_get(root, "val_loss"), 2, 0, &s),
                     cpl_json_int(cpl_json_get(expect, "last_epoch_run"), 0));
    assert_int_equal(s.best_epoch, cpl_json_int(cpl_json_get(expect, "best_epoch"), 0));
    assert_true(s.best == 2.0);
    cpl_json_free(root);
}

static void case_G03_patience_and_min_delta(void **state)
{
    (void)state;
    cpl_json *root = read_case("G03_patience.json");
    const cpl_json *losses = cpl_json_get(root, "val_loss"), *runs = cpl_json_get(root, "epochs_run");
    const cpl_json *delta = cpl_json_get(root, "min_delta_0.5");
    cpl_stopping s;
    assert_int_equal(epochs_run(losses, 0, 0, &s), 3); /* as Keras: 0 and 1 are the same */
    assert_int_equal(epochs_run(losses, 1, 0, &s), cpl_json_int(cpl_json_get(runs, "patience_1"), 0));
    assert_int_equal(epochs_run(losses, 2, 0, &s), cpl_json_int(cpl_json_get(runs, "patience_2"), 0));
    assert_int_equal(epochs_run(cpl_json_get(delta, "val_loss"), 1, 0.5, &s),
                     cpl_json_int(cpl_json_get(delta, "epochs_run"), 0));
    assert_int_equal(s.best_epoch, 1);
    assert_true(s.best == 3.0);
    cpl_json_free(root);
}

static void accuracy_should_rise(void **state)
{
    (void)state;
    const char *const set[] = {"training.early_stopping.monitor=val_accuracy", NULL};
    cpl_config *c = config_of(set);
    cpl_stopping s = {0};
    assert_true(cpl_stopping_observe(&s, &c->training, 0.5, 1, 1));
    assert_false(cpl_stopping_observe(&s, &c->training, 0.4, 2, 2));
    assert_true(cpl_stopping_observe(&s, &c->training, 0.6, 3, 3));
    assert_int_equal(s.best_epoch, 3);
    cpl_config_free(c);
}

/* ---- sums and state ---- */

static void case_C02_sums_are_divided_once(void **state)
{
    (void)state;
    cpl_json *root = read_case("C02_batch_invariance.json");
    const cpl_json *rows = cpl_json_get(root, "rows");
    double expected = cpl_json_real(cpl_json_get(cpl_json_get(root, "expect_any_batch_size"), "loss"), 0);
    cpl_sums one = {0};
    for (size_t i = 0; i < cpl_json_size(rows); i++) { /* batches of one row: each tells its mean and its tokens */
        double tokens = number(cpl_json_at(rows, i), "tokens");
        one.loss += number(cpl_json_at(rows, i), "loss_each") * tokens;
        one.tokens += tokens;
    }
    assert_true(fabs(cpl_sums_loss(&one) - expected) < 1e-6);
    assert_true(isnan(cpl_sums_loss(&(cpl_sums){0})));
    cpl_json_free(root);
}

static void the_state_comes_back_bit_by_bit(void **state)
{
    (void)state;
    cpl_run_state s, back;
    cpl_run_state_start(&s, 0xFEDCBA9876543210u);
    s.step = 123456789012, s.epoch = 3, s.in_epoch = 4, s.pass = 5, s.index = 6, s.due = CPL_DUE_EPOCH;
    s.sums = (cpl_sums){.loss = 1.0 / 3, .correct = 2.0 / 7, .tokens = 1e15 + 1};
    s.stopping = (cpl_stopping){.seen = 3, .wait = 1, .has_best = 1, .best = 0.1 + 0.2, .best_epoch = 2};
    cpl_history_entry h = {.epoch = 1, .step = 7, .loss = 800.0 / 3, .accuracy = 0.1, .val_loss = (double)NAN,
                           .val_accuracy = 1};
    assert_int_equal(cpl_run_state_remember(&s, &h, NULL), CPL_OK);
    cpl_str text = {0}, history = {0};
    assert_int_equal(cpl_run_state_write(&s, &text, &history, NULL), CPL_OK);
    assert_int_equal(cpl_run_state_read(&back, text.data, text.length, history.data, history.length, NULL), CPL_OK);
    assert_int_equal(back.step, s.step);
    assert_true(back.data == s.data);
    assert_int_equal(back.due, s.due);
    assert_memory_equal(&back.sums, &s.sums, sizeof s.sums);
    assert_true(back.stopping.best == s.stopping.best && back.stopping.wait == 1);
    assert_int_equal(back.history_count, 1);
    assert_true(back.history[0].loss == h.loss && isnan(back.history[0].val_loss));
    cpl_str_free(&text);
    cpl_str_free(&history);
    cpl_run_state_free(&s);
    cpl_run_state_free(&back);
}

static void parted_losses_are_told(void **state)
{
    (void)state;
    cpl_run_state s;
    cpl_str text = {0};
    cpl_config *c;
    assert_int_equal(cpl_config_default(&c, NULL), CPL_OK);
    cpl_run_state_start(&s, 0);
    const double losses[][2] = {{2, 2}, {1, 1.5}, {0.5, 1.6}, {0.2, 1.7}};
    for (int i = 0; i < 4; i++) {
        cpl_history_entry h = {.epoch = i + 1, .loss = losses[i][0], .val_loss = losses[i][1]};
        assert_int_equal(cpl_run_state_remember(&s, &h, NULL), CPL_OK);
        cpl_run_state_parted(&s, c, &text);
        assert_int_equal(text.length > 0, i == 3); /* 1.6 is not yet a tenth above 1.5 */
    }
    assert_non_null(strstr(text.data, "since epoch 2"));
    assert_non_null(strstr(text.data, "model.dropout=0.3, training.label_smoothing=0.1, a smaller model.units"));
    assert_non_null(strstr(text.data, "training.early_stopping.monitor=val_accuracy"));
    cpl_str_clear(&text);
    assert_int_equal(cpl_config_set(c, "model.dropout", "0.1", NULL), CPL_OK);
    assert_int_equal(cpl_config_set(c, "training.label_smoothing", "0.1", NULL), CPL_OK);
    assert_int_equal(cpl_config_set(c, "training.early_stopping.monitor", "val_accuracy", NULL), CPL_OK);
    cpl_run_state_parted(&s, c, &text);
    assert_non_null(strstr(text.data, "what helps: more model.dropout, a smaller model.units, more data"));
    assert_null(strstr(text.data, "monitor"));
    cpl_config_free(c);
    cpl_str_free(&text);
    cpl_run_state_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_G08_inverse_sqrt), cmocka_unit_test(other_schedules), cmocka_unit_test(plateau_cuts),
        cmocka_unit_test(case_G01_best_weights_at_the_limit), cmocka_unit_test(case_G02_nan_is_no_improvement),
        cmocka_unit_test(case_G03_patience_and_min_delta), cmocka_unit_test(accuracy_should_rise),
        cmocka_unit_test(case_C02_sums_are_divided_once), cmocka_unit_test(the_state_comes_back_bit_by_bit),
        cmocka_unit_test(parted_losses_are_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
