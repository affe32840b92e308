/* test_optimizer.c: updates against numbers worked out by hand from the formulas. */
#include "train/train_test.h"

#include <math.h>

#include "train/optimizer.h"

/* An engine with the parameters a [2] and b [1], and one that no gradient reaches: c [2]. */
typedef struct bench {
    cpl_config *config;
    cpl_engine *engine;
    cpl_optimizer *optimizer;
    float *gradients;
    float *a, *b, *c;
    float *ga, *gb, *gc;
} bench;

static void add(cpl_parameters *p, const char *path, int64_t size)
{
    cpl_parameter_info info = {.path = path, .rank = 1, .size = {size}, .dim = {"units"}, .where = "test:1"};
    assert_true(cpl_parameters_add(p, &info, NULL) >= 0);
}

static bench start(const char *const *set)
{
    bench x = {0};
    assert_int_equal(cpl_config_default(&x.config, NULL), CPL_OK);
    for (; *set; set++)
        assert_int_equal(cpl_config_set_pair(x.config, *set, NULL), CPL_OK);
    assert_int_equal(cpl_engine_new(&x.engine, 2, 1, NULL), CPL_OK);
    cpl_parameters *p = x.engine->parameters;
    add(p, "a", 2), add(p, "b", 1), add(p, "c", 2);
    cpl_parameters_at(p, 0)->reached = cpl_parameters_at(p, 1)->reached = 1;
    assert_int_equal(cpl_parameters_allocate(p, 1, NULL), CPL_OK);
    x.gradients = cpl_alloc(cpl_parameters_bytes(p), 1);
    x.a = cpl_parameters_value(p, 0), x.b = cpl_parameters_value(p, 1), x.c = cpl_parameters_value(p, 2);
    x.ga = x.gradients + cpl_parameters_at(p, 0)->offset;
    x.gb = x.gradients + cpl_parameters_at(p, 1)->offset;
    x.gc = x.gradients + cpl_parameters_at(p, 2)->offset;
    assert_int_equal(cpl_optimizer_new(&x.optimizer, &x.config->training, x.engine, x.gradients, NULL), CPL_OK);
    return x;
}

static void finish(bench *x)
{
    cpl_optimizer_free(x->optimizer);
    cpl_engine_release(x->engine);
    cpl_release(x->gradients);
    cpl_config_free(x->config);
}

#define NEAR(x, y) assert_true(fabs((double)(x) - (y)) < 1e-6)

/* w = 1, g = 0.5 then 0.1; every number below follows from the formula in reference-systems: epsilon outside. */
static void adam_as_keras(void **state)
{
    (void)state;
    const char *const set[] = {NULL};
    bench x = start(set);
    x.a[0] = 1, x.ga[0] = 0.5f;
    double m = 0, v = 0, w = 1;
    for (int t = 1; t <= 3; t++) {
        double g = t == 1 ? 0.5 : 0.1;
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        w -= 0.001 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t)) * m / (sqrt(v) + 1e-7);
        x.ga[0] = (float)g;
        cpl_optimizer_update(x.optimizer, t, 0.001, 0);
        assert_true(fabs((double)x.a[0] - w) < 2e-7);
    }
    NEAR(x.a[0], 0.9974648); /* 0.999, 0.998197, 0.997465 */
    assert_true(x.a[1] == 0);
    finish(&x);
}

/* One update by SGD at rate 1 from zero with a kind of clipping: the weights are the clipped gradients. */
static void check_clipping(const char *option, const char *name)
{
    const char *const set[] = {"training.optimizer.name=sgd", option, NULL};
    bench x = start(set);
    cpl_json *root = read_case("G06_clip.json");
    const cpl_json *grads = cpl_json_get(root, "grads"), *a = cpl_json_get(grads, "a");
    const cpl_json *expect = cpl_json_get(cpl_json_get(root, "expect"), name);
    assert_non_null(expect);
    x.ga[0] = (float)cpl_json_real(cpl_json_at(a, 0), 0), x.ga[1] = (float)cpl_json_real(cpl_json_at(a, 1), 0);
    x.gb[0] = (float)cpl_json_real(cpl_json_at(cpl_json_get(grads, "b"), 0), 0);
    x.gc[0] = 1000; /* is not reached: must not count */
    double norm = cpl_optimizer_norm(x.optimizer);
    NEAR(norm, number(root, "global_norm")); /* before clipping */
    cpl_optimizer_update(x.optimizer, 1, 1, norm);
    NEAR(x.a[0], cpl_json_real(cpl_json_at(cpl_json_get(expect, "a"), 0), 0));
    NEAR(x.a[1], cpl_json_real(cpl_json_at(cpl_json_get(expect, "a"), 1), 0));
    NEAR(x.b[0], cpl_json_real(cpl_json_at(cpl_json_get(expect, "b"), 0), 0));
    cpl_json_free(root);
    finish(&x);
}

/* The file's updates have the gradient's sign turned, as a step goes against it. */
static void case_G06_three_kinds_of_clipping(void **state)
{
    (void)state;
    check_clipping("training.clip_norm=1", "global_norm_1");
    check_clipping("training.clip_tensor_norm=1", "per_tensor_norm_1");
    check_clipping("training.clip_value=1", "value_1");
}

/* What lies within the limit keeps its bits, and one tensor's norm does not touch another's. */
static void case_G06_within_the_limit(void **state)
{
    (void)state;
    const char *const options[] = {"training.clip_norm=13", "training.clip_tensor_norm=12", "training.clip_value=12"};
    for (int i = 0; i < 3; i++) {
        const char *const set[] = {"training.optimizer.name=sgd", options[i], NULL};
        bench x = start(set);
        x.ga[0] = 3, x.ga[1] = -4, x.gb[0] = 12;
        cpl_optimizer_update(x.optimizer, 1, 1, cpl_optimizer_norm(x.optimizer));
        assert_true(x.a[0] == -3 && x.a[1] == 4 && x.b[0] == -12);
        finish(&x);
    }
}

/* Adam takes the clipped gradient too: its first step divides by its own size, so the moments tell. */
static void clipping_reaches_adam(void **state)
{
    (void)state;
    const char *const set[] = {"training.clip_value=1", NULL};
    bench x = start(set);
    const char *name;
    x.ga[0] = 3, x.gb[0] = -0.5f;
    cpl_optimizer_update(x.optimizer, 1, 0.001, 0);
    const real *m = cpl_optimizer_state(x.optimizer, 0, &name);
    NEAR(m[0], 0.1);
    NEAR(m[cpl_parameters_at(x.engine->parameters, 1)->slot], -0.05);
    finish(&x);
}

/* Keras's SGD with momentum: m = µ m − lr g; w += m. */
static void momentum(void **state)
{
    (void)state;
    const char *const set[] = {"training.optimizer.name=sgd", "training.optimizer.momentum=0.9", NULL};
    bench x = start(set);
    x.ga[0] = 1;
    cpl_optimizer_update(x.optimizer, 1, 0.1, 0);
    NEAR(x.a[0], -0.1);
    cpl_optimizer_update(x.optimizer, 2, 0.1, 0);
    NEAR(x.a[0], -0.1 - 0.19);
    finish(&x);
}

/* Decay takes lr · weight_decay · w; what no gradient reaches keeps its bits. */
static void case_A09_no_decay_without_gradient(void **state)
{
    (void)state;
    const char *const set[] = {"training.optimizer.name=adamw", "training.optimizer.weight_decay=0.5", NULL};
    bench x = start(set);
    x.a[0] = 2, x.c[0] = 2, x.gc[0] = 3;
    cpl_optimizer_update(x.optimizer, 1, 0.1, 0);
    NEAR(x.a[0], 2 - 0.1 * 0.5 * 2); /* its gradient is 0 */
    assert_true(x.c[0] == 2);
    finish(&x);
}

static void state_bytes_are_known(void **state)
{
    (void)state;
    const char *const adam[] = {NULL}, *const sgd[] = {"training.optimizer.name=sgd", NULL};
    bench x = start(adam);
    size_t block = cpl_parameters_bytes(x.engine->parameters);
    assert_int_equal(cpl_optimizer_state_bytes(&x.config->training, x.engine->parameters), 2 * block);
    finish(&x);
    x = start(sgd);
    assert_int_equal(cpl_optimizer_state_bytes(&x.config->training, x.engine->parameters), 0);
    finish(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam_as_keras), cmocka_unit_test(momentum),
        cmocka_unit_test(case_G06_three_kinds_of_clipping), cmocka_unit_test(case_G06_within_the_limit),
        cmocka_unit_test(clipping_reaches_adam),
        cmocka_unit_test(case_A09_no_decay_without_gradient), cmocka_unit_test(state_bytes_are_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
