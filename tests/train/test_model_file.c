/* test_model_file.c: a model comes back by name, and what does not fit is told at once. */
#include "train/train_test.h"

#include "model/model_file.h"
#include "train/optimizer.h"

/* A translator with these vocabulary sizes; the caller frees both. */
static cpl_program *build(cpl_config **config, int64_t source, int64_t target, uint64_t seed)
{
    cpl_program *p;
    assert_int_equal(cpl_config_default(config, NULL), CPL_OK);
    assert_int_equal(cpl_config_set_pair(*config, "model.units=8", NULL), CPL_OK);
    const cpl_model_sizes n = {*config, source, target};
    assert_int_equal(cpl_compile(&p, cpl_translator.loss, &n, &(cpl_compile_options){.seed = seed, .threads = 1}, NULL),
                     CPL_OK);
    return p;
}

static cpl_vocabulary *words(int n)
{
    cpl_vocabulary *v;
    cpl_json *array = cpl_json_array();
    static const char *const specials[] = {"", "[UNK]", "[START]", "[END]"};
    for (int i = 0; i < n; i++) {
        char word[20];
        snprintf(word, sizeof word, "word%d", i);
        const char *text = i < 4 ? specials[i] : word;
        cpl_json_add_text(array, text, strlen(text));
    }
    assert_int_equal(cpl_vocabulary_from_json(&v, array, NULL), CPL_OK);
    cpl_json_free(array);
    return v;
}

static void save(const char *path, const cpl_program *p, const cpl_config *config, int source, int target)
{
    cpl_vocabulary *a = words(source), *b = words(target);
    cpl_model_set *set;
    cpl_model_facts facts = {config, a, b, p->engine->parameters, 17};
    assert_int_equal(cpl_model_set_new(&set, &facts, NULL), CPL_OK);
    cpl_tensor_set view = cpl_model_set_view(set, 3, 200, "[{\"epoch\": 3}]", NULL);
    assert_int_equal(cpl_tensor_file_write(path, &view, NULL), CPL_OK);
    cpl_model_set_free(set);
    cpl_vocabulary_free(a);
    cpl_vocabulary_free(b);
}

static void a_model_comes_back(void **state)
{
    (void)state;
    char path[700];
    snprintf(path, sizeof path, "%s/model.safetensors", top);
    cpl_config *config, *other;
    cpl_program *p = build(&config, 10, 12, 1), *q = build(&other, 10, 12, 2);
    save(path, p, config, 10, 12);
    cpl_model_file *f;
    assert_int_equal(cpl_model_file_open(&f, path, NULL), CPL_OK);
    assert_int_equal(f->sizes.source_vocabulary, 10);
    assert_int_equal(f->sizes.target_vocabulary, 12);
    assert_int_equal(f->config->model.units, 8);
    assert_true(f->epoch == 3 && f->step == 200 && f->longest_target == 17 && !f->is_checkpoint);
    assert_string_equal(f->type, "translator");
    assert_string_equal(f->history, "[{\"epoch\": 3}]");
    size_t bytes = cpl_parameters_bytes(p->engine->parameters);
    assert_memory_not_equal(cpl_parameters_values(p->engine->parameters), cpl_parameters_values(q->engine->parameters),
                            bytes);
    assert_int_equal(cpl_model_file_load_parameters(f, q->engine->parameters, NULL), CPL_OK);
    assert_memory_equal(cpl_parameters_values(p->engine->parameters), cpl_parameters_values(q->engine->parameters),
                        bytes);
    cpl_model_file_close(f);
    cpl_program_free(p);
    cpl_program_free(q);
    cpl_config_free(config);
    cpl_config_free(other);
}

/* All shapes that differ are told together, with the model's names; nothing is copied. */
static void case_H02_vocabulary_of_another_size(void **state)
{
    (void)state;
    char path[700];
    snprintf(path, sizeof path, "%s/h02.safetensors", top);
    cpl_config *config, *other;
    cpl_program *p = build(&config, 10, 12, 1), *q = build(&other, 10, 11, 2);
    save(path, p, config, 10, 12);
    cpl_model_file *f;
    cpl_error err = CPL_ERROR_INIT;
    size_t bytes = cpl_parameters_bytes(q->engine->parameters);
    char *before = cpl_alloc(bytes, 1);
    memcpy(before, cpl_parameters_values(q->engine->parameters), bytes);
    assert_int_equal(cpl_model_file_open(&f, path, NULL), CPL_OK);
    assert_int_equal(cpl_model_file_load_parameters(f, q->engine->parameters, &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], "'decoder.embedding.kernel' is [entries=12 units=8] but the model needs "
                                        "[entries=11 units=8]"));
    assert_non_null(strstr(err.line[0], "'decoder.output.kernel' is [in=8 vocab=12]"));
    assert_non_null(strstr(err.line[0], "'decoder.output.bias'"));
    assert_memory_equal(before, cpl_parameters_values(q->engine->parameters), bytes);
    cpl_release(before);
    cpl_model_file_close(f);
    cpl_program_free(p);
    cpl_program_free(q);
    cpl_config_free(config);
    cpl_config_free(other);
}

/* Two layers of one shape, built in the other order: values go by name; a missing and a foreign name are both told. */
static void case_H01_by_name_never_by_order(void **state)
{
    (void)state;
    char path[700];
    snprintf(path, sizeof path, "%s/h01.safetensors", top);
    const float x[] = {1, 2}, y[] = {3, 4};
    const cpl_tensor_entry tensors[] = {{"p.kernel", CPL_DTYPE_F32, 1, {2}, x}, {"q.kernel", CPL_DTYPE_F32, 1, {2}, y}};
    const cpl_tensor_set set = {tensors, 2, NULL, 0};
    assert_int_equal(cpl_tensor_file_write(path, &set, NULL), CPL_OK);
    cpl_tensor_file *f;
    assert_int_equal(cpl_tensor_file_open(&f, path, NULL), CPL_OK);
    const char *const orders[][2] = {{"q.kernel", "p.kernel"}, {"q.kernel", "r.kernel"}};
    for (int k = 0; k < 2; k++) {
        cpl_parameters *p = cpl_parameters_new();
        for (int i = 0; i < 2; i++) {
            cpl_parameter_info info = {.path = orders[k][i], .rank = 1, .size = {2}, .dim = {"units"}, .where = "t:1"};
            assert_true(cpl_parameters_add(p, &info, NULL) >= 0);
        }
        assert_int_equal(cpl_parameters_allocate(p, 1, NULL), CPL_OK);
        cpl_error err = CPL_ERROR_INIT;
        cpl_status status = cpl_model_file_load_block(f, "", p, NULL, cpl_parameters_values(p), &err);
        assert_int_equal(status, k == 0 ? CPL_OK : CPL_FAILED);
        if (k == 0) {
            assert_memory_equal(cpl_parameters_value(p, 0), y, sizeof y);
            assert_memory_equal(cpl_parameters_value(p, 1), x, sizeof x);
        } else {
            assert_non_null(strstr(err.line[0], "missing 'r.kernel'; not in the model 'p.kernel'"));
        }
        cpl_parameters_free(p);
    }
    cpl_tensor_file_close(f);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    char path[700];
    snprintf(path, sizeof path, "%s/foreign.safetensors", top);
    const cpl_tensor_set set = {NULL, 0, NULL, 0};
    cpl_model_file *f;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_tensor_file_write(path, &set, NULL), CPL_OK);
    assert_int_equal(cpl_model_file_open(&f, path, &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], "not a Couplet model"));
    const cpl_metadata_entry later[] = {{"format", "couplet", 7}, {"format_version", "99", 2}};
    const cpl_tensor_set newer = {NULL, 0, later, 2};
    assert_int_equal(cpl_tensor_file_write(path, &newer, NULL), CPL_OK);
    assert_int_equal(cpl_model_file_open(&f, path, &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], "format version is 99"));
}

/* ---- A05 ---- */

static void one_step(cpl_program *p, cpl_optimizer *o, int64_t batch, int64_t longest)
{
    int32_t ids[16];
    const int32_t *rows[4] = {ids, ids, ids, ids};
    int64_t lengths[4];
    for (int i = 0; i < 16; i++)
        ids[i] = 2 + i % 6;
    for (int i = 0; i < 4; i++)
        lengths[i] = longest - i;
    static const char *const inputs[] = {"source", "target_in", "target_out"};
    for (int i = 0; i < 3; i++)
        assert_int_equal(cpl_feed_ids(p, inputs[i], rows, lengths, batch, NULL), CPL_OK);
    assert_int_equal(cpl_run(p, CPL_TRAIN, NULL), CPL_OK);
    cpl_optimizer_update(o, 1, 0.01, 0);
}

/* Steps of other sizes make no parameter anew, and a second build is a model of its own. */
static void case_A05_built_once_and_twice(void **state)
{
    (void)state;
    cpl_config *config, *other;
    cpl_optimizer *o;
    cpl_program *p = build(&config, 10, 12, 1);
    size_t count = cpl_parameter_count(p), bytes = cpl_parameters_bytes(p->engine->parameters);
    const float *values = cpl_parameters_values(p->engine->parameters);
    float *first = cpl_alloc(bytes, 1), *after = cpl_alloc(bytes, 1);
    memcpy(first, values, bytes);
    assert_int_equal(cpl_optimizer_new(&o, &config->training, p->engine, p->gradients, NULL), CPL_OK);
    one_step(p, o, 4, 7);
    memcpy(after, values, bytes);
    assert_memory_not_equal(first, after, bytes);
    cpl_program *q = build(&other, 10, 12, 1);
    assert_memory_equal(first, cpl_parameters_values(q->engine->parameters), bytes); /* its own first values */
    assert_memory_equal(after, values, bytes);
    one_step(p, o, 3, 9);
    assert_int_equal(cpl_parameter_count(p), count);
    assert_int_equal(cpl_traces(p), 1);
    assert_memory_equal(first, cpl_parameters_values(q->engine->parameters), bytes);
    for (size_t i = 0; i < bytes / sizeof *first; i++) /* it went on from step 1: an Adam step is about the rate long */
        assert_true(values[i] - after[i] < 0.05f && after[i] - values[i] < 0.05f);
    cpl_release(first);
    cpl_release(after);
    cpl_optimizer_free(o);
    cpl_program_free(p);
    cpl_program_free(q);
    cpl_config_free(config);
    cpl_config_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_comes_back), cmocka_unit_test(case_H02_vocabulary_of_another_size),
        cmocka_unit_test(case_H01_by_name_never_by_order), cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(case_A05_built_once_and_twice)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
