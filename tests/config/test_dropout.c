/* test_dropout.c: model.dropout, a number or a group, and what model files from before the group say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "config/config.h"

static cpl_config *good(const char *text)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    if (cpl_config_parse(&c, text, strlen(text), "m.yaml", &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    return c;
}

/* Model files from before the group have a number, and the attention's share in another place. */
static void json_with_keys_of_before_is_read(void **state)
{
    static const char text[] = "{\"model\": {\"dropout\": 0.2, \"decoder\": {\"cell\": \"lstm\", \"attention\": "
                               "{\"score\": \"dot\", \"dropout\": 0.3, \"heads\": 1}}}}";
    cpl_error err = CPL_ERROR_INIT;
    cpl_json *json = NULL;
    cpl_config *c = NULL;
    (void)state;
    assert_int_equal(cpl_json_parse(&json, text, sizeof text - 1, &err), CPL_OK);
    assert_int_equal(cpl_config_from_json(&c, json, &err), CPL_OK);
    assert_true(c->model.dropout.embedding == 0.2 && c->model.dropout.layer == 0.2);
    assert_true(c->model.dropout.attention == 0.3 && c->model.dropout.recurrent == 0);
    assert_int_equal(c->model.decoder.cell, CPL_CELL_LSTM);
    assert_int_equal(c->model.decoder.attention.score, CPL_ATTEND_DOT);
    cpl_json_free(json);
    cpl_config_free(c);
}

/* The group after the number, and the other way round: the later one counts. */
static void a_number_sets_two_of_a_group(void **state)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = good("model: {dropout: {word: 0.1, layer: 0.2}}\n");
    (void)state;
    assert_true(c->model.dropout.word == 0.1 && c->model.dropout.layer == 0.2 && c->model.dropout.embedding == 0);
    assert_int_equal(cpl_config_set_pair(c, "model.dropout=0.4", &err), CPL_OK);
    assert_true(c->model.dropout.word == 0.1 && c->model.dropout.layer == 0.4 && c->model.dropout.embedding == 0.4);
    assert_int_equal(cpl_config_set_pair(c, "model.dropout.layer=0", &err), CPL_OK);
    assert_true(c->model.dropout.layer == 0 && c->model.dropout.embedding == 0.4);
    cpl_config_free(c);
}

static void refused(const char *text, const char *cause, const char *hint)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    assert_int_equal(cpl_config_parse(&c, text, strlen(text), "m.yaml", &err), CPL_USAGE);
    assert_string_equal(err.line[0], cause);
    assert_string_equal(err.hint, hint);
}

static void mistakes_name_what_was_written(void **state)
{
    (void)state;
    refused("model: {dropout: 1}\n", "m.yaml:1: 'model.dropout' got '1', expected a number from 0 to 0.95", "");
    refused("model: {dropout: [0.1]}\n", "m.yaml:1: 'model.dropout' got a list, expected a number from 0 to 0.95", "");
    refused("model: {dropout: {embeddin: 0.1}}\n", "m.yaml:1: unknown key 'model.dropout.embeddin'",
            "did you mean 'model.dropout.embedding'?");
    refused("model: {decoder: {attention: {dropout: 0.1}}}\n",
            "m.yaml:1: unknown key 'model.decoder.attention.dropout'", "did you mean 'model.dropout.attention'?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(json_with_keys_of_before_is_read),
                                       cmocka_unit_test(a_number_sets_two_of_a_group),
                                       cmocka_unit_test(mistakes_name_what_was_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
