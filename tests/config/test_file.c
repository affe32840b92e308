/* test_file.c: keys that are one file: text.source.vocabulary and vectors, and the target's. */
#include "config/config_test.h"

static void files_are_relative_to_the_configuration(void **state)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *stored = NULL, *c = good("model: {type: autoencoder}\n"
                                         "text: {source: {vocabulary: words.txt, vectors: /data/v.vec.gz}}\n");
    (void)state;
    assert_string_equal(c->text.source.vocabulary.path, "conf/words.txt");
    assert_string_equal(c->text.source.vocabulary.written, "words.txt");
    assert_string_equal(c->text.source.vectors.path, "/data/v.vec.gz");
    assert_string_equal(c->text.target.vocabulary.path, "conf/words.txt"); /* an autoencoder's target follows */
    assert_string_equal(c->text.target.vectors.written, "/data/v.vec.gz");
    assert_int_equal(cpl_config_check(c, 0, &err), CPL_OK);
    cpl_json *json = cpl_config_to_json(c);
    assert_int_equal(cpl_config_from_json(&stored, json, &err), CPL_OK);
    assert_int_equal(cpl_config_check(stored, 0, &err), CPL_OK); /* it holds vocabulary_size, as it holds every key */
    assert_int_equal(cpl_config_check_resume(c, stored, &err), CPL_OK);
    assert_string_equal(stored->text.source.vocabulary.written, "words.txt");
    assert_int_equal(cpl_config_set(c, "text.source.vectors", "", &err), CPL_OK);
    assert_null(c->text.source.vectors.path);
    assert_int_equal(cpl_config_check_resume(stored, c, &err), CPL_USAGE);
    cpl_json_free(json);
    cpl_config_free(stored);
    cpl_config_free(c);
}

static void wrong_files_and_contradictions(void **state)
{
    (void)state;
    expect_error("text: {source: {vocabulary: [a, b]}}\n",
                 L1 "'text.source.vocabulary' got a list, expected the name of a file", NULL);
    expect_error("text: {source: {vocabulary: }}\n",
                 L1 "'text.source.vocabulary' got nothing, expected the name of a file", NULL);
    expect_error("text: {target: {vectors: '-'}}\n",
                 L1 "'text.target.vectors' got '-', expected the name of a file", NULL);
    expect_error("text: {source: {vocabulari: a}}\n", L1 "unknown key 'text.source.vocabulari'",
                 "did you mean 'text.source.vocabulary'?");
    expect_error("text: {source: {min_count: 1, vocabulary: a}}\n",
                 L1 "'text.source.min_count' is set, but 'text.source.vocabulary' names a list of all words",
                 "leave one of them out: a shorter list is made by cutting the file");
}

/* A build without libyaml has nothing to test here but the sentence that says so. */
static int built_without_yaml(void)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    cpl_status status = parse(&c, "", &err);
    cpl_config_free(c);
    return status == CPL_FAILED && strstr(err.line[0], "no YAML reader") != NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_relative_to_the_configuration),
        cmocka_unit_test(wrong_files_and_contradictions),
    };
    if (built_without_yaml() || !cpl_json_available()) {
        puts("skipped: this build has no YAML or no JSON library");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
