/* cpl_fit over a user's own model: what it counts, when it stops, which weights it leaves; saving and loading them. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "graph/graph_test.h"

/* y = w·x with the loss (w·x − t)²: with x = 1 the best w is the mean of the targets. */
static void line_model(cpl_graph *g, const void *user)
{
    const char *name = user ? user : "w";
    cpl_node *x = cpl_input(g, "x", CPL_REALS(1), "batch in"), *t = cpl_input(g, "t", CPL_REALS(1), "batch out");
    cpl_node *y = cpl_dense(g, name, x, &(cpl_dense_options){.units = 1, .dim = "out", .no_bias = 1});
    cpl_node *d = cpl_add(g, y, cpl_scale(g, t, -1));
    cpl_node *loss = cpl_sum(g, cpl_multiply(g, d, d));
    cpl_output(g, "loss", loss);
    cpl_minimize(g, loss);
}

typedef struct target {
    float value[64]; /* by epoch; the last one given stays */
    int count, calls, fail_at;
} target;

static cpl_status feed_target(cpl_program *p, int64_t epoch, int64_t number, void *user, cpl_error *err)
{
    target *t = user;
    static const float one = 1;
    float value = t->value[epoch <= t->count ? epoch - 1 : t->count - 1];
    (void)number;
    if (++t->calls == t->fail_at)
        return CPL_FAILED;
    cpl_array x = reals(&one, 2, 1, 1, 0), y = reals(&value, 2, 1, 1, 0);
    cpl_status status = cpl_feed(p, "x", &x, err);
    return status == CPL_OK ? cpl_feed(p, "t", &y, err) : status;
}

typedef struct counts {
    int64_t steps, epochs;
    double first_loss, last_val;
} counts;

static void count(void *user, const cpl_progress_event *e)
{
    counts *c = user;
    if (strcmp(e->kind, "step") == 0 && c->steps++ == 0)
        c->first_loss = e->loss;
    if (strcmp(e->kind, "epoch") == 0)
        c->epochs++, c->last_val = e->val_loss;
}

static void learns_and_counts(void **state)
{
    (void)state;
    target train = {{2}, 1, 0, 0};
    counts c = {0};
    cpl_fit_result r;
    cpl_program *p = compiled(line_model, NULL, &(cpl_compile_options){.seed = 1});
    *cpl_parameter_value(p, 0) = 0;
    cpl_fit_rules rules = {.epochs = 30, .learning_rate = 0.1, .on_step = count, .on_validation = count, .user = &c};
    MUST(cpl_fit(p, &(cpl_batches){10, feed_target, &train}, NULL, &rules, &r, err));
    assert_int_equal(train.calls, 300);
    assert_int_equal(c.steps, 300);
    assert_int_equal(c.epochs, 30);
    assert_int_equal(r.epochs, 30);
    assert_int_equal(r.steps, 300);
    assert_false(r.stopped_early);
    assert_true(fabs(c.first_loss - 4) < 1e-6);
    assert_true(isnan(c.last_val));
    assert_true(fabs((double)*cpl_parameter_value(p, 0) - 2) < 1e-2);
    cpl_program_free(p);
}

/* The validation's target moves away from epoch 3 on: patience 2 ends after epoch 5 with the weights of epoch 3. */
static void stops_early_with_the_best_weights(void **state)
{
    (void)state;
    char folder[] = "/tmp/own_fit_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w.safetensors", folder);
    target train = {{1}, 1, 0, 0}, valid = {{1, 1, 1, -50, -50, -50}, 6, 0, 0};
    cpl_fit_result r;
    cpl_program *p = compiled(line_model, NULL, &(cpl_compile_options){.seed = 1});
    *cpl_parameter_value(p, 0) = 0;
    cpl_fit_rules rules = {.epochs = 20, .learning_rate = 0.05, .patience = 2, .weights_path = path};
    MUST(cpl_fit(p, &(cpl_batches){3, feed_target, &train}, &(cpl_batches){1, feed_target, &valid}, &rules, &r, err));
    assert_true(r.stopped_early);
    assert_int_equal(r.epochs, 5);
    assert_int_equal(r.best_epoch, 3);
    assert_int_equal(r.steps, 15);
    float best = *cpl_parameter_value(p, 0); /* after 9 steps of at most 0.05 */
    assert_true(best > 0.3f && best <= 0.4501f);
    assert_true(fabs(r.best_loss - (1 - (double)best) * (1 - (double)best)) < 1e-5);
    cpl_program *other = compiled(line_model, NULL, &(cpl_compile_options){.seed = 9});
    MUST(cpl_load_weights(other, path, err));
    assert_true(*cpl_parameter_value(other, 0) == best);
    cpl_program_free(other);
    other = compiled(line_model, "v", &(cpl_compile_options){.seed = 9});
    float before = *cpl_parameter_value(other, 0);
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_load_weights(other, path, &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], "missing 'v.kernel'; not in the model 'w.kernel'"));
    assert_true(*cpl_parameter_value(other, 0) == before);
    cpl_program_free(other);
    cpl_program_free(p);
    unlink(path);
    rmdir(folder);
}

static void no_loss(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(1), "batch in");
    cpl_minimize(g, cpl_sum(g, cpl_dense(g, "w", x, &(cpl_dense_options){.units = 1})));
}

static void refusals_and_failures(void **state)
{
    (void)state;
    target train = {{1}, 1, 0, 4};
    cpl_program *p = compiled(line_model, NULL, NULL), *q = compiled(no_loss, NULL, NULL);
    cpl_error error = CPL_ERROR_INIT;
    cpl_fit_rules rules = {.epochs = 2};
    cpl_batches data = {3, feed_target, &train};
    cpl_fit_result r;
    assert_int_equal(cpl_fit(p, &data, NULL, &rules, &r, &error), CPL_FAILED);
    assert_int_equal(r.steps, 3);
    REFUSED(cpl_fit(q, &data, NULL, &rules, NULL, err), "has no output 'loss'", "cpl_output");
    REFUSED(cpl_fit(p, &data, NULL, &(cpl_fit_rules){.epochs = 0}, NULL, err), "nothing to train on");
    volatile int stop = 1;
    rules.stop = &stop;
    assert_int_equal(cpl_fit(p, &data, NULL, &rules, NULL, &error), CPL_STOPPED);
    cpl_program_free(p);
    cpl_program_free(q);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(learns_and_counts),
    cmocka_unit_test(stops_early_with_the_best_weights),
    cmocka_unit_test(refusals_and_failures),
};

CPL_TEST_MAIN(tests)
