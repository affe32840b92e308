/* test_keep.c: training.keep, and cpl_average_models over what it kept. */
#include "train/train_test.h"

#include <math.h>

static const char config[] = "model: {units: 8}\ndata: {train: train.tsv, valid: valid.tsv}\n"
                             "training: {batch_size: 3, epochs: 4, keep: 2, threads: 1, show_examples: 0}\n";

static int prepare(void **state)
{
    if (make_top(state) != 0)
        return -1;
    put_pairs("train.tsv", 20);
    put_pairs("valid.tsv", 5);
    put_file("config.yaml", config);
    run r = {.folder = "kept"};
    return train(&r) == CPL_OK ? 0 : -1;
}

static int has(const char *folder, const char *name)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s/%s", top, folder, name);
    return cpl_file_exists(path);
}

static cpl_tensor_file *open_file(const char *name)
{
    char path[700];
    cpl_tensor_file *f;
    snprintf(path, sizeof path, "%s/%s", top, name);
    assert_int_equal(cpl_tensor_file_open(&f, path, NULL), CPL_OK);
    return f;
}

/* 7 steps an epoch: the models of steps 21 and 28 stay, the last one has the weights of the checkpoint. */
static void the_last_validations_stay(void **state)
{
    (void)state;
    assert_true(!has("kept", "model-7.safetensors") && !has("kept", "model-14.safetensors"));
    assert_true(has("kept", "model-21.safetensors") && has("kept", "model-28.safetensors"));
    cpl_tensor_file *kept = open_file("kept/model-28.safetensors");
    cpl_tensor_file *state_file = open_file("kept/checkpoint.safetensors");
    assert_true(cpl_tensor_file_count(kept) > 5);
    for (size_t i = 0; i < cpl_tensor_file_count(kept); i++) {
        const cpl_tensor_entry *a = cpl_tensor_file_at(kept, i), *b = cpl_tensor_file_find(state_file, a->name);
        assert_memory_equal(a->data, b->data, cpl_tensor_elements(a) * sizeof(float));
    }
    cpl_tensor_file_close(kept);
    cpl_tensor_file_close(state_file);
}

/* Interrupted and with another number: the same tensors; --overwrite leaves none of the old run; what is not ours is
 * not touched. */
static void resume_and_overwrite(void **state)
{
    (void)state;
    run r = {.folder = "again", .stop_at = 16};
    assert_int_equal(train(&r), CPL_STOPPED);
    r.resume = 1, r.stop_at = 0, r.set[0] = "training.keep=1";
    put_file("again/model-28.safetensors.mine", "mine");
    put_file("again/model-99.safetensors", "of a run that was set back");
    assert_int_equal(train(&r), CPL_OK);
    assert_same_tensors("kept", "again", "model-28.safetensors");
    assert_true(!has("again", "model-21.safetensors") && !has("again", "model-99.safetensors"));
    run none = {.folder = "again", .overwrite = 1, .set = {"training.keep=0", "training.epochs=1"}};
    assert_int_equal(train(&none), CPL_OK);
    assert_true(!has("again", "model-28.safetensors") && !has("again", "model-7.safetensors"));
    assert_true(has("again", "model-28.safetensors.mine"));
}

static cpl_status average(const char *one, const char *other, const char *to, cpl_error *err)
{
    char paths[2][700], output[700];
    const char *const models[] = {paths[0], paths[1]};
    snprintf(paths[0], sizeof paths[0], "%s/%s", top, one);
    snprintf(paths[1], sizeof paths[1], "%s/%s", top, other);
    snprintf(output, sizeof output, "%s/%s", top, to);
    return cpl_average_models(models, 2, output, err);
}

static void means_of_all_tensors(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(average("kept/model-21.safetensors", "kept/model-28.safetensors", "mean.safetensors", &err),
                     CPL_OK);
    cpl_tensor_file *a = open_file("kept/model-21.safetensors"), *b = open_file("kept/model-28.safetensors");
    cpl_tensor_file *mean = open_file("mean.safetensors");
    int different = 0;
    assert_int_equal(cpl_tensor_file_count(mean), cpl_tensor_file_count(a));
    for (size_t i = 0; i < cpl_tensor_file_count(mean); i++) {
        const cpl_tensor_entry *m = cpl_tensor_file_at(mean, i);
        const float *x = cpl_tensor_file_find(a, m->name)->data, *y = cpl_tensor_file_find(b, m->name)->data;
        const float *z = m->data;
        for (uint64_t k = 0; k < cpl_tensor_elements(m); k++) {
            assert_true(fabs((double)z[k] - ((double)x[k] + (double)y[k]) / 2) <= 1e-7 * (1 + fabs((double)z[k])));
            different += x[k] != y[k];
        }
    }
    assert_true(different > 100);
    cpl_json *history;
    size_t length;
    const char *text = cpl_tensor_file_metadata(mean, "history", &length);
    assert_int_equal(cpl_json_parse(&history, text, length, NULL), CPL_OK);
    assert_int_equal(cpl_json_size(history), 2);
    assert_int_equal(number(cpl_json_at(history, 1), "step"), 28);
    assert_non_null(strstr(cpl_json_text(cpl_json_get(cpl_json_at(history, 0), "averaged"), NULL), "model-21"));
    assert_true(number(cpl_json_at(history, 0), "val_loss") > 0);
    cpl_json_free(history);
    cpl_tensor_file_close(a);
    cpl_tensor_file_close(b);
    cpl_tensor_file_close(mean);
}

/* What was averaged is a model: it opens and translates. A folder stands for its model. */
static void the_average_is_a_model(void **state)
{
    (void)state;
    char path[700], *line;
    cpl_model *m;
    assert_int_equal(average("kept", "kept/model-28.safetensors", "opens.safetensors", NULL), CPL_OK);
    snprintf(path, sizeof path, "%s/opens.safetensors", top);
    assert_int_equal(cpl_model_open(&m, path, 1, NULL), CPL_OK);
    assert_int_equal(cpl_generate(&line, m, "uno dos", &(cpl_generate_options){.max_length = 5}, NULL), CPL_OK);
    assert_non_null(line);
    cpl_free(line);
    cpl_model_close(m);
}

/* What is dropped while training changes no weight's meaning. */
static void dropout_may_differ(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    run r = {.folder = "dropped", .set = {"model.dropout={embedding: 0.3, recurrent: 0.2, word: 0.1}",
                                          "training.epochs=1"}};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(average("kept", "dropped", "both.safetensors", &err), CPL_OK);
    assert_true(has(".", "both.safetensors"));
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    run wide = {.folder = "wide", .set = {"model.units=10", "training.epochs=1"}};
    assert_int_equal(train(&wide), CPL_OK);
    assert_int_equal(average("kept", "wide", "no.safetensors", &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "are different models: 'model.units' is 8 and 10"));
    put_file("train.tsv", "uno\tone\ndos\ttwo\ntres\tthree\ncasa\thouse\nperro\tdog\ngato\tcat\nagua\twater\n"
             "luna\tmoon\n");
    run other = {.folder = "other", .set = {"training.epochs=1"}};
    assert_int_equal(train(&other), CPL_OK);
    memset(&err, 0, sizeof err);
    assert_int_equal(average("kept", "other", "no.safetensors", &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "have different source vocabularies: entry"));
    memset(&err, 0, sizeof err);
    assert_int_equal(cpl_average_models((const char *const[]){"one"}, 1, "no", &err), CPL_USAGE);
    assert_false(has(".", "no.safetensors"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_validations_stay), cmocka_unit_test(resume_and_overwrite),
        cmocka_unit_test(means_of_all_tensors), cmocka_unit_test(the_average_is_a_model),
        cmocka_unit_test(dropout_may_differ), cmocka_unit_test(what_does_not_fit_is_named)};
    return cmocka_run_group_tests(tests, prepare, remove_top);
}
