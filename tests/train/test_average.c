/* test_average.c: training.ema: the average of the weights by hand, and what a run does with it. */
#include "train/train_test.h"

#include <math.h>

#include "train/average.h"

#define NEAR(x, y) assert_true(fabs((double)(x) - (y)) < 1e-6)

/* Weights 1, 2, 4, 8 with a decay of at most 0.5: 2/11 and 3/12 of the old at first, then 4/13, …; from update 8 on
 * (9/18) it is 0.5. A parameter that is frozen or that no gradient reaches has no average. */
static void average_by_hand(void **state)
{
    (void)state;
    cpl_config *c;
    cpl_engine *e;
    cpl_average *a;
    assert_int_equal(cpl_config_default(&c, NULL), CPL_OK);
    assert_int_equal(cpl_config_set_pair(c, "training.ema=0.5", NULL), CPL_OK);
    assert_int_equal(cpl_engine_new(&e, 2, 1, NULL), CPL_OK);
    cpl_parameters *p = e->parameters;
    const char *const names[] = {"w", "unreached"};
    for (int i = 0; i < 2; i++)
        assert_true(cpl_parameters_add(p, &(cpl_parameter_info){.path = names[i], .rank = 1, .size = {3},
                                                                .dim = {"units"}, .where = "test:1"}, NULL) >= 0);
    cpl_parameters_at(p, 0)->reached = 1;
    assert_int_equal(cpl_parameters_allocate(p, 1, NULL), CPL_OK);
    real *w = cpl_parameters_value(p, 0), *other = cpl_parameters_value(p, 1);
    w[0] = 1, other[0] = 5;
    assert_int_equal(cpl_average_new(&a, &c->training, e, NULL), CPL_OK);
    const real *average = cpl_average_block(a) + cpl_parameters_at(p, 0)->slot;
    double want = 1;
    for (int t = 1; t <= 12; t++) {
        w[0] *= 2;
        cpl_average_update(a, t);
        double decay = t >= 8 ? 0.5 : (1.0 + t) / (10.0 + t);
        want = decay * want + (1 - decay) * pow(2, t);
        assert_true(fabs((double)average[0] - want) < 1e-6 * want);
        if (t == 1)
            NEAR(average[0], 20.0 / 11);
        if (t == 2)
            NEAR(average[0], 0.25 * 20 / 11 + 0.75 * 4);
    }
    real before = w[0], mean = average[0];
    cpl_average_swap(a);
    assert_true(w[0] == mean && average[0] == before && other[0] == 5);
    cpl_average_swap(a);
    assert_true(w[0] == before && average[0] == mean && w[1] == 0);
    cpl_average_free(a);
    cpl_engine_release(e);
    cpl_config_free(c);
}

#define CONFIG(training) "model: {units: 8, dropout: 0.1}\ndata: {train: train.tsv, valid: valid.tsv}\n"               \
    "training: {threads: 2, log_every: 1, batch_size: 3, " training "}\n"

static void put_data(const char *config)
{
    put_pairs("train.tsv", 20);
    put_pairs("valid.tsv", 5);
    put_file("config.yaml", config);
}

/* How many tensors of the checkpoint stand under prefix; *same: those that equal the model's of the same name. */
static int count_tensors(const char *folder, const char *prefix, int *same)
{
    char path[2][700];
    cpl_tensor_file *checkpoint, *model;
    int count = 0;
    snprintf(path[0], sizeof path[0], "%s/%s/checkpoint.safetensors", top, folder);
    snprintf(path[1], sizeof path[1], "%s/%s/model.safetensors", top, folder);
    assert_int_equal(cpl_tensor_file_open(&checkpoint, path[0], NULL), CPL_OK);
    assert_int_equal(cpl_tensor_file_open(&model, path[1], NULL), CPL_OK);
    *same = 0;
    for (size_t i = 0; i < cpl_tensor_file_count(checkpoint); i++) {
        const cpl_tensor_entry *a = cpl_tensor_file_at(checkpoint, i);
        if (strncmp(a->name, prefix, strlen(prefix)) != 0)
            continue;
        const cpl_tensor_entry *b = cpl_tensor_file_find(model, a->name + strlen(prefix));
        count += b != NULL;
        *same += b && memcmp(a->data, b->data, cpl_tensor_elements(a) * sizeof(float)) == 0;
    }
    cpl_tensor_file_close(checkpoint);
    cpl_tensor_file_close(model);
    return count;
}

/* After one validation, at the end: the model is the average bit by bit, and not the weights that train on. */
static void the_model_is_the_average(void **state)
{
    (void)state;
    int same, averages, all;
    put_data(CONFIG("epochs: 1, ema: 0.9"));
    run r = {.folder = "ema"}, plain = {.folder = "plain", .set = {"training.ema=0"}};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(train(&plain), CPL_OK);
    averages = count_tensors("ema", "optimizer.average.", &same);
    assert_int_equal(averages, same);
    all = count_tensors("ema", "", &same);
    assert_true(averages > 5 && averages == all && same == 0);
    assert_int_equal(count_tensors("plain", "optimizer.average.", &same), 0);
    cpl_json *a[2], *b[2];
    assert_int_equal(read_events("ema", "epoch", a, 2), 1);
    assert_int_equal(read_events("plain", "epoch", b, 2), 1);
    assert_true(number(a[0], "loss") == number(b[0], "loss")); /* it does not train */
    assert_true(number(a[0], "val_loss") != number(b[0], "val_loss"));
    cpl_json_free(a[0]);
    cpl_json_free(b[0]);
}

/* What the log says of the average is what its model gives. */
static void validation_uses_the_average(void **state)
{
    (void)state;
    char model[700], valid[700], *json;
    cpl_json *epoch, *root;
    put_data(CONFIG("epochs: 1, ema: 0.9"));
    run r = {.folder = "same"};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(read_events("same", "epoch", &epoch, 1), 1);
    snprintf(model, sizeof model, "%s/same/model.safetensors", top);
    snprintf(valid, sizeof valid, "%s/valid.tsv", top);
    cpl_evaluate_options o = {.pairs = valid, .metrics = "loss", .json = 1};
    cpl_model *loaded;
    assert_int_equal(cpl_model_open(&loaded, model, 1, NULL), CPL_OK);
    assert_int_equal(cpl_evaluate(loaded, &o, &json, NULL), CPL_OK);
    cpl_model_close(loaded);
    assert_int_equal(cpl_json_parse(&root, json, strlen(json), NULL), CPL_OK);
    NEAR(number(cpl_json_get(root, "loss"), "score"), number(epoch, "val_loss"));
    cpl_json_free(root);
    cpl_json_free(epoch);
    cpl_free(json);
}

static void resume_with_an_average(void **state)
{
    (void)state;
    static const int stops[] = {5, 7, 12};
    put_data(CONFIG("epochs: 3, ema: 0.95, checkpoint_every: 1"));
    run go = {.folder = "go"}, r = {.folder = "stop"};
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
}

/* Planned: four bytes for each weight that trains; frozen ones have no average. */
static void memory_and_frozen_parts(void **state)
{
    (void)state;
    char config[700], *text;
    const char *set[] = {"training.freeze=[encoder]", NULL};
    int same;
    put_data(CONFIG("epochs: 1, ema: 0.9"));
    snprintf(config, sizeof config, "%s/config.yaml", top);
    for (int frozen = 0; frozen < 2; frozen++) {
        cpl_json *root;
        cpl_train_options o = {.config_path = config, .set = set, .set_count = (size_t)frozen};
        assert_int_equal(cpl_plan(&o, 1, &text, NULL), CPL_OK);
        assert_int_equal(cpl_json_parse(&root, text, strlen(text), NULL), CPL_OK);
        cpl_free(text);
        double bytes = number(cpl_json_get(root, "parts"), "average"), n = number(root, "trainable_parameters");
        assert_true(bytes >= 4 * n && bytes <= 4 * n + 64 * 100); /* each begins at a multiple of 64 bytes */
        cpl_json_free(root);
    }
    run r = {.folder = "frozen", .set = {set[0]}};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(count_tensors("frozen", "optimizer.average.encoder.", &same), 0);
    assert_true(count_tensors("frozen", "optimizer.average.", &same) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(average_by_hand), cmocka_unit_test(the_model_is_the_average),
        cmocka_unit_test(validation_uses_the_average), cmocka_unit_test(resume_with_an_average),
        cmocka_unit_test(memory_and_frozen_parts)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
