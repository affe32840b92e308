/* test_keras_vocabulary.c: import keras with the vocabularies that the configuration names. */
#include "api/api_test.h"

enum { SOURCE_WORDS = 23, TARGET_WORDS = 29 }; /* of the golden weights */

/* PREFIX4, PREFIX5 … after the four special entries. */
static void write_words(const place *p, const char *name, char prefix, int size)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "\n[UNK]\n[START]\n[END]\n");
    for (int i = 4; i < size; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%c%d\n", prefix, i);
    place_write(p, name, text);
}

/* Imports the golden model `name` by this configuration; source: the option --source-vocabulary, or NULL. */
static cpl_status import(const place *p, const char *name, const char *text, const char *source, cpl_error *err)
{
    char weights[400], config[300], path[300];
    snprintf(weights, sizeof weights, "%s/golden/%s.weights.h5", CPL_TEST_DATA, name);
    write_words(p, "source.txt", 's', SOURCE_WORDS);
    write_words(p, "target.txt", 't', TARGET_WORDS);
    place_write(p, "c.yaml", text);
    cpl_keras_import_options o = {.weights = weights, .config = place_file(p, "c.yaml", config),
                                  .source_vocabulary = source ? place_file(p, source, path) : NULL,
                                  .output = p->model};
    return cpl_import_keras(&o, err);
}

static void assert_words(const place *p, int64_t source, int64_t target, const char *last)
{
    cpl_model_file *f;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_model_file_open(&f, p->model, &err), &err);
    assert_int_equal(cpl_vocabulary_size(f->source), source);
    assert_int_equal(cpl_vocabulary_size(f->target), target);
    assert_string_equal(cpl_vocabulary_token(f->target, target - 1, NULL), last);
    cpl_model_file_close(f);
}

static void the_configuration_names_them(void **state)
{
    (void)state;
    place p;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    must(import(&p, "translator", "model: {units: 8}\ntext: {source: {tokens: space, vocabulary: source.txt}, "
                "target: {tokens: space, vocabulary: target.txt}}\n", NULL, &err), &err);
    assert_words(&p, SOURCE_WORDS, TARGET_WORDS, "t28");
    must(import(&p, "autoencoder", "model: {type: autoencoder, units: 8}\n"
                "text: {source: {tokens: space, vocabulary: source.txt}}\n", NULL, &err), &err);
    assert_words(&p, SOURCE_WORDS, SOURCE_WORDS, "s22");
    place_remove(&p);
}

static void the_option_wins(void **state)
{
    (void)state;
    static const char text[] = "model: {units: 8}\ntext: {source: {tokens: space, vocabulary: none.txt}, "
                               "target: {tokens: space, vocabulary: target.txt}}\n";
    place p;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    assert_int_equal(import(&p, "translator", text, NULL, &err), CPL_USAGE);
    err = (cpl_error)CPL_ERROR_INIT;
    must(import(&p, "translator", text, "source.txt", &err), &err);
    assert_words(&p, SOURCE_WORDS, TARGET_WORDS, "t28");
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_configuration_names_them),
        cmocka_unit_test(the_option_wins),
    };
    char *version = cpl_version_text();
    int is_missing = !version || strstr(version, "hdf5      missing") != NULL;
    cpl_free(version);
    if (is_missing)
        return 77; /* skipped */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
