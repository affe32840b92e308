/* JSON: strict reading with places, writing with chosen digits, round trips. */
#include "support/run.h"

#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

static cpl_json *parse(const char *text)
{
    cpl_json *root;
    cpl_error err = CPL_ERROR_INIT;
    if (!cpl_json_available())
        skip();
    if (cpl_json_parse(&root, text, strlen(text), &err) != CPL_OK)
        fail_msg("%s: %s", text, err.line[0]);
    return root;
}

/* Writes the root, compares, frees it. */
static void writes(cpl_json *root, const char *expected)
{
    cpl_str s = {0};
    cpl_error err = CPL_ERROR_INIT;
    if (cpl_json_write(root, &s, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    assert_string_equal(s.data, expected);
    cpl_str_free(&s);
    cpl_json_free(root);
}

static void refuses(const char *text, size_t length, const char *beginning)
{
    cpl_json *root;
    cpl_error err = CPL_ERROR_INIT;
    if (!cpl_json_available())
        skip();
    assert_int_equal(cpl_json_parse(&root, text, length, &err), CPL_USAGE);
    assert_null(root);
    if (strncmp(err.line[0], beginning, strlen(beginning)) != 0)
        fail_msg("'%s' does not begin with '%s'", err.line[0], beginning);
}

static void round_trip_keeps_order_and_kinds(void **state)
{
    (void)state;
    const char *text = "{\"z\": 1, \"a\": [1.5, -2, true, false, null, \"\", {}, []], \"ñ\": \"猫 \\\"q\\\" "
                       "\\\\ \\n\\t\\u0001\\u0000x\", \"big\": 9223372036854775807, \"small\": -9223372036854775808}";
    writes(parse(text), text);
    writes(parse(" [ 0.1 , 1e300, 1.0, -0.0, 5e-324, 123456.789 ] \n"), "[0.1, 1e+300, 1.0, -0.0, 5e-324, 123456.789]");
    writes(parse("\"\\u00e9\\ud83d\\ude00/\""), "\"é😀/\"");
    writes(parse("7"), "7");
}

static void reals_have_the_digits_asked_for(void **state)
{
    (void)state;
    cpl_json *a = cpl_json_array();
    cpl_json_add_real(a, 1e-3, 9);
    cpl_json_add_real(a, 0.1, 9);
    cpl_json_add_real(a, 2.0 / 3.0, 9);
    cpl_json_add_real(a, 2.0 / 3.0, 4);
    cpl_json_add_real(a, 31.2, 9);
    cpl_json_add_real(a, 31, 9);
    cpl_json_add_real(a, 123456789.123, 9);
    cpl_json_add_real(a, 1234567891.5, 9);
    cpl_json_add_real(a, 1e-7, 9);
    cpl_json_add_real(a, 0.1, 17);
    cpl_json_add_real(a, 0.1, 0);
    cpl_json_add_real(a, 0, 3);
    writes(a, "[0.001, 0.1, 0.666666667, 0.6667, 31.2, 31.0, 123456789.0, 1.23456789e+09, 1e-07, "
              "0.10000000000000001, 0.1, 0.0]");
}

static void no_number_is_ever_nan(void **state)
{
    (void)state;
    cpl_json *o = cpl_json_object();
    cpl_json_set_real(o, "nan", NAN, 9);
    cpl_json_set_real(o, "inf", INFINITY, 9);
    cpl_json_set_real(o, "minus", -INFINITY, 0);
    assert_int_equal(cpl_json_what(cpl_json_get(o, "nan")), CPL_JSON_NULL);
    writes(o, "{\"nan\": null, \"inf\": null, \"minus\": null}");
}

static void a_locale_with_commas_changes_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8", "de_DE.utf8"};
    const char *set = NULL;
    for (int i = 0; i < 4 && !set; i++)
        set = setlocale(LC_NUMERIC, names[i]);
    cpl_json *a = cpl_json_array();
    cpl_json_add_real(a, 0.25, 9);
    cpl_json_add_real(a, 0.1, 0);
    writes(a, "[0.25, 0.1]");
    setlocale(LC_NUMERIC, "C");
}

static void strict_with_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"", "line 1, column 0: not valid JSON: "},
        {"{\"a\": 1,}", "line 1, column 9: not valid JSON: "},
        {"{\"a\": 1,\n \"b\": 2,\n \"a\": 3}", "line 3, column "},
        {"[1] x", "line 1, column 5: not valid JSON: end of file expected"},
        {"[1\n,\n01]", "line 3, column "},
        {"[NaN]", "line 1, column "},
        {"[Infinity]", "line 1, column "},
        {"{'a': 1}", "line 1, column "},
        {"[1 2]", "line 1, column "},
        {"// no\n1", "line 1, column "},
        {"[\"a\nb\"]", "line 1, column "},
        {"[\"\\ud800\"]", "line 1, column "},
        {"[\"\xff\"]", "line 1, column "},
        {"[\"\xc0\xaf\"]", "line 1, column "},
        {"\xef\xbb\xbf[]", "line 1, column "},
        {"[1e999]", "line 1, column "},
        {"[99999999999999999999]", "line 1, column "},
        {"[\"open", "line 1, column "},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(bad[i].text, strlen(bad[i].text), bad[i].error);
    refuses("[1]\0", 4, "line 1, column ");
}

static void depth_is_limited(void **state)
{
    (void)state;
    char text[200];
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    text[128] = '\0';
    cpl_json *root = parse(text);
    writes(root, text);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    refuses(text, 130, "line 1, column 65: JSON is nested deeper than 64");
    size_t many = 1000000;
    char *flood = cpl_alloc(many, 1);
    memset(flood, '[', many);
    refuses(flood, many, "line 1, column 65: JSON is nested deeper than 64");
    cpl_release(flood);
    cpl_json_free(parse("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[\"]"));
}

static void getters_forgive(void **state)
{
    (void)state;
    cpl_json *root = parse("{\"a\": {\"b\": [10, 2.5, \"x\\u0000y\", true]}}");
    const cpl_json *b = cpl_json_get(cpl_json_get(root, "a"), "b"), *value;
    size_t length;
    assert_int_equal(cpl_json_size(b), 4);
    assert_int_equal(cpl_json_int(cpl_json_at(b, 0), -1), 10);
    assert_true(cpl_json_real(cpl_json_at(b, 0), -1) == 10.0);
    assert_true(cpl_json_real(cpl_json_at(b, 1), -1) == 2.5);
    assert_int_equal(cpl_json_int(cpl_json_at(b, 1), -1), -1);
    assert_memory_equal(cpl_json_text(cpl_json_at(b, 2), &length), "x\0y", 4);
    assert_int_equal(length, 3);
    assert_int_equal(cpl_json_bool(cpl_json_at(b, 3), 0), 1);
    assert_null(cpl_json_at(b, 4));
    assert_null(cpl_json_get(cpl_json_get(cpl_json_get(root, "no"), "such"), "key"));
    assert_null(cpl_json_text(NULL, NULL));
    assert_int_equal(cpl_json_int(NULL, 7), 7);
    assert_int_equal(cpl_json_what(NULL), CPL_JSON_NONE);
    assert_int_equal(cpl_json_size(NULL), 0);
    assert_string_equal(cpl_json_key(root, 0, &value), "a");
    assert_int_equal(cpl_json_what(value), CPL_JSON_OBJECT);
    assert_null(cpl_json_key(root, 1, &value));
    cpl_json_free(root);
}

static void building(void **state)
{
    (void)state;
    cpl_json *root = cpl_json_object(), *list = cpl_json_array(), *part = cpl_json_object();
    cpl_json_set_text(root, "name", "first");
    cpl_json_set(root, "list", list);
    cpl_json_add(list, part); /* filled after it was given away */
    cpl_json_set_bool(part, "ok", 3);
    cpl_json_add_text(list, "a\0b", 3);
    cpl_json_add_int(list, -5);
    cpl_json_set_text(root, "name", "second"); /* replaced in place */
    cpl_json_set_text(root, "none", NULL);
    cpl_json_set_bytes(root, "bytes", "xyz", 2);
    cpl_json_set_int(root, "n", 3);
    writes(root, "{\"name\": \"second\", \"list\": [{\"ok\": true}, \"a\\u0000b\", -5], \"none\": null, "
                 "\"bytes\": \"xy\", \"n\": 3}");
}

static void large_objects_find_their_keys(void **state)
{
    (void)state;
    cpl_json *root = cpl_json_object();
    char key[16];
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        cpl_json_set_int(root, key, i);
    }
    cpl_json_set_int(root, "k7", 70);
    cpl_json_set_int(root, "k15", 150);
    assert_int_equal(cpl_json_size(root), 20000);
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(cpl_json_int(cpl_json_get(root, key), -1), i == 7 ? 70 : i == 15 ? 150 : i);
    }
    assert_null(cpl_json_get(root, "k20000"));
    cpl_json_free(root);
}

static void cannot_write(cpl_json *root, const char *expected)
{
    cpl_str s = {0};
    cpl_error err = CPL_ERROR_INIT;
    cpl_str_add(&s, "before");
    assert_int_equal(cpl_json_write(root, &s, &err), CPL_FAILED);
    assert_string_equal(err.line[0], expected);
    assert_string_equal(s.data, "before");
    cpl_str_free(&s);
    cpl_json_free(root);
}

static void failures_are_reported_when_written(void **state)
{
    (void)state;
    cpl_json *root = cpl_json_object(), *list = cpl_json_array();
    cpl_json_set(root, "list", list);
    cpl_json_set_int(list, "x", 1); /* an array has no keys */
    cannot_write(root, "cannot write JSON: a value was put into something that cannot hold it");
    root = cpl_json_array();
    cpl_json_add_text(root, "\xff", 1);
    cannot_write(root, "cannot write JSON: a text is not valid UTF-8");
    root = cpl_json_array();
    cpl_json_add(root, NULL);
    cannot_write(root, "cannot write JSON: no memory while it was built");
    cannot_write(NULL, "cannot write JSON: no memory while it was built");
    cpl_json_add_int(NULL, 1);
    cpl_json_set(NULL, "x", cpl_json_array());
}

/* Each allocation fails once, in turn: never a wrong line, never a leak. */
static void lack_of_memory_is_clean(void **state)
{
    (void)state;
    uint64_t live = cpl_memory_live_bytes();
    for (uint64_t fault = 1; fault < 80; fault++) {
        cpl_str s = {0};
        char key[16];
        cpl_memory_fail_at(fault);
        cpl_json *root = cpl_json_object();
        for (int i = 0; i < 18; i++) {
            snprintf(key, sizeof key, "key %d", i);
            cpl_json_set_text(root, key, "value");
        }
        cpl_status status = cpl_json_write(root, &s, NULL);
        cpl_memory_fail_at(0);
        if (status == CPL_OK)
            assert_int_equal(s.length, 16 * 18 + 8 + 2 * 17 + 2);
        cpl_json_free(root);
        cpl_str_free(&s);
        assert_int_equal(cpl_memory_live_bytes(), live);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(round_trip_keeps_order_and_kinds),
    cmocka_unit_test(reals_have_the_digits_asked_for),
    cmocka_unit_test(no_number_is_ever_nan),
    cmocka_unit_test(a_locale_with_commas_changes_nothing),
    cmocka_unit_test(strict_with_line_and_column),
    cmocka_unit_test(depth_is_limited),
    cmocka_unit_test(getters_forgive),
    cmocka_unit_test(building),
    cmocka_unit_test(large_objects_find_their_keys),
    cmocka_unit_test(failures_are_reported_when_written),
    cmocka_unit_test(lack_of_memory_is_clean),
};

CPL_TEST_MAIN(tests)
