/* test_init.c: parts of a model in files of their own, and as the beginning of another (cases H01, H02, H04, H06). */
#include "train/train_test.h"

#include "model/model_file.h"

static const char first[] = "model: {type: autoencoder, units: 6}\n"
                            "text: {source: {standardize: nfkc_lower}}\n"
                            "data: {train: train.tsv, valid: valid.tsv}\n"
                            "training: {batch_size: 4, show_examples: 0, threads: 1, max_steps: 3}\n";
static const char second[] = "model: {units: 6}\n"
                             "data: {train: train.tsv, valid: valid.tsv}\n"
                             "training: {batch_size: 4, show_examples: 0, threads: 1, max_steps: 2}\n";

static char part[700], init[900];

/* An autoencoder and its encoder alone; then the configuration of a translator. */
static void prepare(void)
{
    char folder[700];
    cpl_error err = CPL_ERROR_INIT;
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8), put_file("config.yaml", first);
    run r = {.folder = "ae", .overwrite = 1, .set = {NULL}};
    assert_int_equal(train(&r), CPL_OK);
    snprintf(folder, sizeof folder, "%s/ae", top);
    snprintf(part, sizeof part, "%s/encoder.safetensors", top);
    snprintf(init, sizeof init, "training.init={encoder: %s}", part);
    cpl_status status = cpl_extract(folder, "encoder", part, &err);
    if (status != CPL_OK)
        cpl_error_print(&err, stderr);
    assert_int_equal(status, CPL_OK);
    put_file("config.yaml", second);
}

static cpl_model_file *open_model(const char *path)
{
    cpl_model_file *f;
    cpl_error err = CPL_ERROR_INIT;
    if (cpl_model_file_open(&f, path, &err) != CPL_OK)
        cpl_error_print(&err, stderr);
    return f;
}

static void case_H04_the_encoder_alone(void **state)
{
    (void)state;
    prepare();
    char whole[700];
    cpl_model *m;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(whole, sizeof whole, "%s/ae/model.safetensors", top);
    cpl_model_file *a = open_model(part), *b = open_model(whole);
    assert_string_equal(a->part, "encoder");
    assert_int_equal(cpl_tensor_file_count(a->tensors), 7);
    for (size_t i = 0; i < cpl_tensor_file_count(a->tensors); i++) {
        const cpl_tensor_entry *x = cpl_tensor_file_at(a->tensors, i), *y = cpl_tensor_file_find(b->tensors, x->name);
        assert_int_equal(strncmp(x->name, "encoder.", 8), 0);
        assert_memory_equal(x->data, y->data, cpl_tensor_elements(x) * sizeof(float));
    }
    assert_int_equal(cpl_vocabulary_checksum(a->source), cpl_vocabulary_checksum(b->source));
    assert_int_equal(a->config->text.source.standardize, CPL_STANDARDIZE_NFKC_LOWER);
    cpl_model_file_close(a);
    cpl_model_file_close(b);
    char *text;
    assert_int_equal(cpl_model_open(&m, part, 1, &err), CPL_OK); /* to encode with */
    assert_int_equal(cpl_generate(&text, m, "uno", NULL, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "holds only 'encoder'"));
    cpl_model_close(m);
    assert_int_equal(cpl_extract(whole, "encodr", part, &err), CPL_USAGE);
    assert_non_null(strstr(err.hint, "'encoder'"));
}

/* The part, its vocabulary and its rules are in the other model, and stay there when it is frozen. */
static void case_H06_rules_and_vocabulary_travel(void **state)
{
    (void)state;
    prepare();
    put_file("train.tsv", "Uno Dos\tone two\nGATO agua nuevo\tcat water new\nsol sol\tsun sun\ncasa uno\thouse one\n");
    run r = {.folder = "mt", .overwrite = 1, .set = {init, "training.freeze=encoder"}};
    assert_int_equal(train(&r), CPL_OK);
    assert_non_null(strstr(r.told, "loaded      encoder.embedding.kernel [entries="));
    char path[700];
    snprintf(path, sizeof path, "%s/mt/model.safetensors", top);
    cpl_model_file *a = open_model(part), *b = open_model(path);
    for (size_t i = 0; i < cpl_tensor_file_count(a->tensors); i++) {
        const cpl_tensor_entry *x = cpl_tensor_file_at(a->tensors, i), *y = cpl_tensor_file_find(b->tensors, x->name);
        assert_memory_equal(x->data, y->data, cpl_tensor_elements(x) * sizeof(float));
    }
    assert_int_equal(cpl_vocabulary_checksum(a->source), cpl_vocabulary_checksum(b->source));
    assert_int_equal(b->config->text.source.standardize, CPL_STANDARDIZE_NFKC_LOWER);
    cpl_model_file_close(a);
    cpl_model_file_close(b);
    r.resume = 1, r.overwrite = 0;
    r.set[2] = "training.max_steps=4";
    assert_int_equal(train(&r), CPL_OK);
    run other = {.folder = "no", .set = {init, "text.source.standardize=none"}};
    assert_int_equal(train(&other), CPL_USAGE);
    assert_non_null(strstr(other.error.line[0], "nfkc_lower"));
    assert_non_null(strstr(other.error.line[0], "none"));
}

static void case_H02_all_mismatches_are_named(void **state)
{
    (void)state;
    prepare();
    run r = {.folder = "wide", .set = {init, "model.units=8"}};
    assert_int_equal(train(&r), CPL_USAGE);
    assert_non_null(strstr(r.error.line[0], "7 of its tensors do not fit"));
    assert_non_null(strstr(r.error.line[0], "units=8"));
    assert_non_null(strstr(r.told, "mismatched  encoder.rnn.forward.bias [rows=2 gates=24], in the file "
                                   "[rows=2 gates=18]"));
    run deep = {.folder = "deep", .set = {init, "model.encoder.direction=forward"}};
    assert_int_equal(train(&deep), CPL_USAGE);
    assert_non_null(strstr(deep.told, "missing     encoder.rnn.kernel"));
    assert_non_null(strstr(deep.told, "unused      encoder.rnn.forward.kernel"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(case_H04_the_encoder_alone),
                                       cmocka_unit_test(case_H06_rules_and_vocabulary_travel),
                                       cmocka_unit_test(case_H02_all_mismatches_are_named)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
