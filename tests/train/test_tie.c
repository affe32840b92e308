/* test_tie.c: a run with one embedding for source, target and projection (model.tie: all): refused without one
 * vocabulary, frozen, extracted, and read again. */
#include "train/train_test.h"

#include <math.h>

#include "model/model_file.h"

static const char config[] = "model: {units: 8, tie: all}\n"
                             "text: {source: {vocabulary: words.txt}, target: {vocabulary: words.txt}}\n"
                             "data: {train: train.tsv, valid: valid.tsv}\n"
                             "training: {batch_size: 8, show_examples: 1, threads: 1, max_steps: 12}\n";
static const char words[] = "\n[UNK]\n[START]\n[END]\nuno\ndos\ntres\ncasa\nperro\ngato\nagua\nsol\none\ntwo\nthree\n"
                            "house\ndog\ncat\nwater\nsun\n";

static void prepare(void)
{
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8);
    put_file("config.yaml", config), put_file("words.txt", words);
}

static cpl_model_file *open_model(const char *name)
{
    char path[700];
    cpl_model_file *f;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s", top, name);
    if (cpl_model_file_open(&f, path, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    return f;
}

static void a_shared_table_trains_and_is_the_encoders(void **state)
{
    (void)state;
    prepare();
    char folder[700], part[700], *output = NULL;
    cpl_model *m;
    cpl_error err = CPL_ERROR_INIT;
    run r = {.folder = "tied", .set = {NULL}};
    assert_int_equal(train(&r), CPL_OK);
    cpl_model_file *whole = open_model("tied/model.safetensors");
    const cpl_tensor_entry *table = cpl_tensor_file_find(whole->tensors, "encoder.embedding.kernel");
    assert_non_null(table);
    assert_null(cpl_tensor_file_find(whole->tensors, "decoder.embedding.kernel"));
    assert_null(cpl_tensor_file_find(whole->tensors, "decoder.output.kernel"));
    assert_non_null(cpl_tensor_file_find(whole->tensors, "decoder.output.bias"));

    snprintf(folder, sizeof folder, "%s/tied", top);
    snprintf(part, sizeof part, "%s/encoder.safetensors", top);
    assert_int_equal(cpl_extract(folder, "encoder", part, &err), CPL_OK);
    cpl_model_file *alone = open_model("encoder.safetensors");
    const cpl_tensor_entry *copy = cpl_tensor_file_find(alone->tensors, "encoder.embedding.kernel");
    assert_memory_equal(copy->data, table->data, cpl_tensor_elements(table) * sizeof(float));
    cpl_model_file_close(alone);
    cpl_model_file_close(whole);

    assert_int_equal(cpl_model_open(&m, folder, 1, &err), CPL_OK);
    assert_int_equal(cpl_generate(&output, m, "uno dos", NULL, &err), CPL_OK);
    assert_non_null(output);
    cpl_free(output);
    char weights[700];
    snprintf(weights, sizeof weights, "%s/tied.weights.h5", top);
    cpl_keras_export_options to = {.model = folder, .output = weights};
    assert_int_equal(cpl_export_keras(&to, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "'model.tie' is all"));
    cpl_model_close(m);
}

/* '*.embedding' names the table, wherever it is used: nothing of it moves, all else does. */
static void a_frozen_table_stays(void **state)
{
    (void)state;
    prepare();
    run first = {.folder = "start", .set = {"training.max_steps=1", "training.optimizer.learning_rate=0", NULL}};
    run frozen = {.folder = "frozen", .set = {"training.freeze=['*.embedding']", NULL}};
    assert_int_equal(train(&first), CPL_OK);
    assert_int_equal(train(&frozen), CPL_OK);
    cpl_model_file *a = open_model("start/model.safetensors"), *b = open_model("frozen/model.safetensors");
    for (size_t i = 0; i < cpl_tensor_file_count(a->tensors); i++) {
        const cpl_tensor_entry *x = cpl_tensor_file_at(a->tensors, i), *y = cpl_tensor_file_find(b->tensors, x->name);
        int same = memcmp(x->data, y->data, cpl_tensor_elements(x) * sizeof(float)) == 0;
        int is_table = strcmp(x->name, "encoder.embedding.kernel") == 0;
        if (same != is_table && !(same && strstr(x->name, "attention.key.bias"))) /* a constant of the softmax */
            fail_msg("'%s' %s", x->name, same ? "has not moved" : "has moved");
    }
    cpl_model_file_close(a);
    cpl_model_file_close(b);
}

static void case_A08_two_vocabularies_have_no_one_table(void **state)
{
    (void)state;
    prepare();
    put_file("seven.txt", "\n[UNK]\n[START]\n[END]\nuno\ndos\ntres\n");
    put_file("nine.txt", "\n[UNK]\n[START]\n[END]\none\ntwo\nthree\nhouse\ndog\n");
    put_file("other.txt", "\n[UNK]\n[START]\n[END]\none\ntwo\nthree\n");
    run r = {.folder = "a08", .set = {"text.source.vocabulary=seven.txt", "text.target.vocabulary=nine.txt", NULL}};
    assert_int_equal(train(&r), CPL_USAGE);
    char all[4 * CPL_ERROR_WIDTH] = "";
    for (int i = 0; i < r.error.lines; i++)
        strncat(all, r.error.line[i], CPL_ERROR_WIDTH);
    assert_non_null(strstr(all, "seven.txt) has 7 entries"));
    assert_non_null(strstr(all, "nine.txt) 9"));
    assert_non_null(strstr(r.error.hint, "sharing needs one joint vocabulary"));
    run same = {.folder = "a08", .set = {"text.source.vocabulary=seven.txt", "text.target.vocabulary=other.txt", NULL}};
    assert_int_equal(train(&same), CPL_USAGE);
    all[0] = '\0';
    for (int i = 0; i < same.error.lines; i++)
        strncat(all, same.error.line[i], CPL_ERROR_WIDTH);
    assert_non_null(strstr(all, "number 4 is 'uno' and 'one'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_shared_table_trains_and_is_the_encoders),
                                       cmocka_unit_test(a_frozen_table_stays),
                                       cmocka_unit_test(case_A08_two_vocabularies_have_no_one_table)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
