/* One set of text rules for both sides, and what kinds of tokens ask of other keys. */
#include "support/run.h"

#include <string.h>
#include "config/config.h"

/* A configuration of key and value pairs up to NULL. */
static cpl_config *made(const char *const *settings)
{
    cpl_config *c;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_config_default(&c, NULL), CPL_OK);
    assert_int_equal(cpl_config_set(c, "data.train", "x.tsv", NULL), CPL_OK);
    for (; *settings; settings += 2)
        if (cpl_config_set(c, settings[0], settings[1], &err) != CPL_OK)
            fail_msg("%s: %s", settings[0], err.line[0]);
    return c;
}

#define MADE(...) made((const char *const[]){__VA_ARGS__, NULL})

static void refused(cpl_config *c, const char *text)
{
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_config_check(c, 1, &err), CPL_USAGE);
    if (!strstr(err.line[0], text))
        fail_msg("'%s' is not in '%s'", text, err.line[0]);
    cpl_config_free(c);
}

/* Whichever comes first. */
static void the_target_takes_the_sources(void **state)
{
    (void)state;
    cpl_config *a = MADE("text.shared", "true", "text.source.tokens", "char", "text.source.max_length", "9");
    cpl_config *b = MADE("text.source.tokens", "char", "text.source.max_length", "9", "text.shared", "true");
    cpl_config *both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        const cpl_config_side *s = &both[i]->text.source, *t = &both[i]->text.target;
        assert_true(cpl_config_one_text(both[i]));
        assert_int_equal(s->tokens, t->tokens);
        assert_int_equal(s->standardize, t->standardize);
        assert_int_equal(t->max_length, 9);
        assert_int_equal(cpl_config_check(both[i], 1, NULL), CPL_OK);
    }
    assert_int_equal(cpl_config_set(a, "text.shared", "false", NULL), CPL_OK);
    assert_int_not_equal(a->text.source.standardize, a->text.target.standardize); /* nfkc and none again */
    assert_int_equal(a->text.target.max_length, 0);
    cpl_config_free(a);
    cpl_config_free(b);
}

/* Stored in a model file and read back, every key is set: the same rules then. */
static void stored(void **state)
{
    (void)state;
    cpl_config *a = MADE("text.shared", "true", "text.source.tokens", "byte"), *b;
    cpl_json *json = cpl_config_to_json(a);
    assert_int_equal(cpl_json_bool(cpl_json_get(cpl_json_get(json, "text"), "shared"), 0), 1);
    assert_string_equal(cpl_json_text(cpl_json_get(cpl_json_get(cpl_json_get(json, "text"), "target"), "tokens"), NULL),
                        "byte");
    assert_int_equal(cpl_config_from_json(&b, json, NULL), CPL_OK);
    assert_int_equal(cpl_config_check(b, 0, NULL), CPL_OK);
    assert_true(b->text.shared);
    cpl_json_free(json);
    cpl_config_free(a);
    cpl_config_free(b);
}

static void both_must_agree(void **state)
{
    (void)state;
    refused(MADE("text.shared", "true", "text.source.tokens", "char", "text.target.tokens", "word"),
            "'text.source.tokens' is char but 'text.target.tokens' is word: text.shared has one set");
    refused(MADE("text.shared", "true", "text.target.min_count", "2"), "text.target.min_count");
    refused(MADE("text.shared", "true", "text.target.vocabulary", "v.txt"), "is not set but 'text.target.vocabulary'");
    refused(MADE("model.type", "autoencoder", "text.target.max_length", "7"), "an autoencoder has one set");
    /* A summary is shorter than its text: limits are each side's own. */
    cpl_config *c = MADE("text.shared", "true", "text.source.max_length", "400", "text.target.max_length", "100");
    assert_int_equal(cpl_config_check(c, 1, NULL), CPL_OK);
    cpl_config_free(c);
}

static void bytes_have_no_list(void **state)
{
    (void)state;
    refused(MADE("text.source.tokens", "byte", "text.source.vocabulary", "v.txt"), "always has the same entries");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_target_takes_the_sources),
    cmocka_unit_test(stored),
    cmocka_unit_test(both_must_agree),
    cmocka_unit_test(bytes_have_no_list),
};

CPL_TEST_MAIN(tests)
