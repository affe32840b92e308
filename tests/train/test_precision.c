/* training.precision: what bfloat16 changes (products of training), and what it does not. */
#include "support/run.h"
#include "train_test.h"

#include <math.h>
#include "graph/program.h"

enum { STEPS = 20 };

#define MUST(call) assert_int_equal((call), CPL_OK)

/* ---- runs ---- */

static void put_run(void)
{
    put_pairs("train.tsv", 64);
    put_pairs("valid.tsv", 8);
    put_file("config.yaml", "model: {units: 24}\n"
                            "data: {train: train.tsv, valid: valid.tsv}\n"
                            "training: {batch_size: 16, epochs: 5, log_every: 1, show_examples: 0, threads: 1}\n");
}

/* The losses of the steps of top/folder, and the last val_loss. */
static double losses_of(const char *folder, double loss[STEPS])
{
    cpl_json *events[100];
    size_t count = read_events(folder, "step", events, 100);
    assert_int_equal(count, STEPS);
    for (size_t i = 0; i < count; i++) {
        loss[i] = number(events[i], "loss");
        cpl_json_free(events[i]);
    }
    count = read_events(folder, "epoch", events, 100);
    assert_true(count > 0);
    double valid = number(events[count - 1], "val_loss");
    for (size_t i = 0; i < count; i++)
        cpl_json_free(events[i]);
    return valid;
}

/* The rounding is there, and it is small against what a step learns. */
static void losses_are_those_of_float32_within_a_percent(void **state)
{
    (void)state;
    double single[STEPS], half[STEPS];
    put_run();
    run r = {.folder = "single"};
    assert_int_equal(train(&r), CPL_OK);
    run b = {.folder = "half", .set = {"training.precision=bfloat16"}};
    assert_int_equal(train(&b), CPL_OK);
    double valid = losses_of("single", single), valid_half = losses_of("half", half);
    for (int i = 0; i < STEPS; i++) {
        if (!(fabs(half[i] - single[i]) <= 0.01 * single[i]))
            fail_msg("loss of step %d is %.9g in bfloat16, %.9g in float32", i + 1, half[i], single[i]);
        assert_true(i < 1 || half[i] != single[i]);
    }
    assert_true(single[STEPS - 1] < 0.9 * single[0]); /* it learned something */
    assert_true(fabs(valid_half - valid) <= 0.01 * valid && valid_half != valid);
}

static void threads_do_not_change_a_bit(void **state)
{
    (void)state;
    put_run();
    run one = {.folder = "one", .set = {"training.precision=bfloat16"}};
    run three = {.folder = "three", .set = {"training.precision=bfloat16", "training.threads=3"}};
    assert_int_equal(train(&one), CPL_OK);
    assert_int_equal(train(&three), CPL_OK);
    assert_same_tensors("one", "three", "model.safetensors");
}

static void the_log_says_so(void **state)
{
    (void)state;
    const char *warning = "precision bfloat16: the kernels of this processor (reference) have no bfloat16 products; "
                          "they are emulated (same results, not faster)";
    cpl_json *event[4];
    put_run();
    setenv("COUPLET_ISA", "reference", 1);
    run r = {.folder = "told", .set = {"training.precision=bfloat16", "training.max_steps=1"}};
    cpl_status status = train(&r);
    unsetenv("COUPLET_ISA");
    assert_int_equal(status, CPL_OK);
    assert_int_equal(read_events("told", "start", event, 4), 1);
    assert_string_equal(cpl_json_text(cpl_json_get(event[0], "precision"), NULL), "bfloat16");
    cpl_json_free(event[0]);
    size_t count = read_events("told", "warning", event, 4), found = 0;
    for (size_t i = 0; i < count; i++) {
        found += strcmp(cpl_json_text(cpl_json_get(event[i], "message"), NULL), warning) == 0;
        cpl_json_free(event[i]);
    }
    assert_int_equal(found, 1);
    assert_non_null(strstr(r.warned, warning));
}

static void a_run_keeps_its_precision(void **state)
{
    (void)state;
    put_run();
    run r = {.folder = "kept", .set = {"training.epochs=1"}};
    assert_int_equal(train(&r), CPL_OK);
    run other = {.folder = "kept", .resume = 1, .set = {"training.epochs=2", "training.precision=bfloat16"}};
    assert_int_equal(train(&other), CPL_USAGE);
    assert_non_null(strstr(other.error.line[0], "training.precision"));
}

/* ---- what is rounded ---- */

/* y = w·x with the loss (y − t)²; x = 1 makes y what the product sees of w. */
static void line(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(1), "batch in"), *t = cpl_input(g, "t", CPL_REALS(1), "batch out");
    cpl_node *y = cpl_dense(g, "w", x, &(cpl_dense_options){.units = 1, .dim = "out", .no_bias = 1});
    cpl_node *d = cpl_add(g, y, cpl_scale(g, t, -1));
    cpl_node *loss = cpl_sum(g, cpl_multiply(g, d, d));
    cpl_output(g, "y", y);
    cpl_output(g, "loss", loss);
    cpl_minimize(g, loss);
}

static float line_at(cpl_program *p, float x, float t, cpl_mode mode)
{
    cpl_array in = {.type = CPL_FLOAT32, .rank = 2, .shape = {1, 1}, .data = &x};
    cpl_array to = {.type = CPL_FLOAT32, .rank = 2, .shape = {1, 1}, .data = &t};
    float y;
    int64_t shape[6];
    int rank;
    MUST(cpl_feed(p, "x", &in, NULL));
    MUST(cpl_feed(p, "t", &to, NULL));
    MUST(cpl_run(p, mode, NULL));
    MUST(cpl_read(p, "y", &y, 1, shape, &rank, NULL));
    return y;
}

/* 1.00390625 = 1 + 2^-8 lies between the bfloat16 1 and 1 + 2^-7; a target and a difference are no operands. */
static void training_alone_rounds_and_operands_alone(void **state)
{
    (void)state;
    const float between = 1.00390625f, above = 1.0039064f;
    cpl_program *p;
    MUST(cpl_compile(&p, line, NULL, &(cpl_compile_options){.name = "line", .bfloat16 = 1}, NULL));
    float *w = cpl_parameter_value(p, 0);
    *w = between;
    assert_true(line_at(p, 1, between, CPL_EVALUATE) == between);
    assert_true(line_at(p, 1, between, CPL_TRAIN) == 1.0f);
    assert_true(cpl_scalar(p, "loss") == 0x1p-16); /* (1 − between)², not 0 */
    assert_true(cpl_parameter_gradient(p, 0)[0] == -0x1p-7f);
    assert_true(line_at(p, above, 0, CPL_TRAIN) == 1.0078125f);
    assert_true(*w == between);
    cpl_program_free(p);
}

/* 100 updates of 1e-5: none would move a weight of bfloat16, whose next one above 1 is 1.0078125. */
static void small_updates_add_up_in_the_master_weights(void **state)
{
    (void)state;
    cpl_program *p;
    MUST(cpl_compile(&p, line, NULL, &(cpl_compile_options){.name = "line", .bfloat16 = 1}, NULL));
    float *w = cpl_parameter_value(p, 0);
    *w = 1;
    for (int i = 0; i < 100; i++) {
        assert_true(line_at(p, 1, 2, CPL_TRAIN) == 1.0f);
        MUST(cpl_adam(p, 1e-5, NULL));
    }
    assert_true(fabsf(*w - 1.001f) < 1e-5f);
    assert_true(line_at(p, 1, 2, CPL_EVALUATE) == *w);
    cpl_program_free(p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_float32_within_a_percent),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(the_log_says_so),
        cmocka_unit_test(a_run_keeps_its_precision),
        cmocka_unit_test(training_alone_rounds_and_operands_alone),
        cmocka_unit_test(small_updates_add_up_in_the_master_weights),
    };
    if (argc > 1 && !cpl_test_choose(tests, sizeof tests / sizeof tests[0], argv[1]))
        return 1;
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
