/* Standardisation against CPython's unicodedata (golden/unicode.json), the cases, and values worked out by hand. */
#include "text_test.h"

static void utf8_offsets(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length, good;
    } t[] = {{"", 0, 0},
             {"abc", 3, 3},
             {"a\0b", 3, 3},
             {"caf\xE9", 4, 3},           /* Latin-1 */
             {"abcdefgh\xC3", 9, 8},      /* cut short */
             {"x\xED\xA0\x80", 4, 1},     /* surrogate */
             {"x\xC0\xAF", 3, 1},         /* overlong */
             {"x\xE0\x9F\xBF", 4, 1},     /* overlong */
             {"x\xF0\x8F\xBF\xBF", 5, 1}, /* overlong */
             {"\xF4\x8F\xBF\xBF", 4, 4},  /* U+10FFFF */
             {"\xF4\x90\x80\x80", 4, 0},  /* one more */
             {"\xF5\x80\x80\x80", 4, 0},
             {"\xED\x9F\xBF\xEE\x80\x80", 6, 6}, /* around the surrogates */
             {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x80", 10, 9}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        assert_int_equal(cpl_utf8_valid(t[i].text, t[i].length), t[i].good);
}

static void bad_utf8_is_an_error(void **state)
{
    (void)state;
    for (int rule = CPL_STANDARDIZE_NONE; rule <= CPL_STANDARDIZE_TUTORIAL; rule++) {
        cpl_error err = CPL_ERROR_INIT;
        cpl_str out = {0};
        assert_int_equal(cpl_standardize_text((cpl_standardize)rule, "caf\xE9 x", 6, &out, NULL, NULL, &err),
                         CPL_USAGE);
        assert_string_equal(err.line[0], "text is not UTF-8: byte 0xE9 at offset 3 of 6");
        cpl_str_free(&out);
    }
}

static void agrees_with_python(void **state)
{
    (void)state;
    NEEDS_UNICODE();
    if (!cpl_json_available())
        skip();
    static const struct {
        cpl_standardize rule;
        const char *key;
    } rules[] = {{CPL_STANDARDIZE_NONE, "text"},
                 {CPL_STANDARDIZE_NFC, "nfc"},
                 {CPL_STANDARDIZE_NFKC, "nfkc"},
                 {CPL_STANDARDIZE_NFKC_LOWER, "nfkc_lower"}};
    cpl_json *root = golden("unicode.json");
    const cpl_json *cases = cpl_json_get(root, "cases");
    assert_true(cpl_json_size(cases) > 30);
    for (size_t i = 0; i < cpl_json_size(cases); i++) {
        const cpl_json *item = cpl_json_at(cases, i);
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
            size_t length, expected_length;
            const char *text = cpl_json_text(cpl_json_get(item, "text"), &length);
            const char *expected = cpl_json_text(cpl_json_get(item, rules[r].key), &expected_length);
            cpl_str out = {0};
            assert_int_equal(cpl_standardize_text(rules[r].rule, text, length, &out, NULL, NULL, NULL), CPL_OK);
            assert_int_equal(out.length, expected_length);
            assert_memory_equal(out.data, expected, expected_length);
            /* Done twice is done once. */
            cpl_str again = {0};
            assert_int_equal(cpl_standardize_text(rules[r].rule, out.data, out.length, &again, NULL, NULL, NULL),
                             CPL_OK);
            assert_int_equal(again.length, expected_length);
            assert_memory_equal(again.data, expected, expected_length);
            cpl_str_free(&out);
            cpl_str_free(&again);
        }
    }
    cpl_json_free(root);
}

static void tutorial_golden(void **state)
{
    (void)state;
    NEEDS_UNICODE();
    if (!cpl_json_available())
        skip();
    cpl_json *root = golden("text.json");
    const cpl_json *input = cpl_json_get(root, "input"), *expected = cpl_json_get(root, "standardised");
    assert_int_equal(cpl_json_size(input), cpl_json_size(expected));
    for (size_t i = 0; i < cpl_json_size(input); i++) {
        size_t length;
        const char *text = cpl_json_text(cpl_json_at(input, i), &length);
        char *got = standard(CPL_STANDARDIZE_TUTORIAL, text, length);
        cpl_str wrapped = {0};
        cpl_str_printf(&wrapped, *got ? "[START] %s [END]" : "[START]%s [END]", got);
        assert_string_equal(wrapped.data, cpl_json_text(cpl_json_at(expected, i), NULL));
        cpl_str_free(&wrapped);
        cpl_release(got);
    }
    cpl_json_free(root);
}

static void check_counts(const char *text, uint64_t deleted, uint64_t kept)
{
    uint64_t gone = 0, stayed = 0;
    cpl_str out = {0};
    assert_int_equal(cpl_standardize_text(CPL_STANDARDIZE_TUTORIAL, text, strlen(text), &out, &gone, &stayed, NULL),
                     CPL_OK);
    assert_int_equal(gone, deleted);
    assert_int_equal(stayed, kept);
    cpl_str_free(&out);
}

static void tutorial_counts(void **state)
{
    (void)state;
    check_counts("", 0, 0);
    check_counts("  Hi  there. ", 0, 13); /* spaces collapse, nothing is deleted */
    check_counts("I'm 25\t!", 4, 4);      /* ' 2 5 and the tab go; I m space ! stay */
    NEEDS_UNICODE();
    check_counts("caf\xC3\xA9", 0, 4);          /* é stays as e */
    check_counts("cafe\xCC\x81", 0, 4);         /* so does e with its mark: the mark is part of it */
    check_counts("\xD0\x98\xD0\x97", 2, 0);     /* Cyrillic */
    check_counts("9\xCC\x81", 2, 0);            /* a mark goes with its base */
    check_counts("\xEF\xAC\x81\xC2\xBD", 1, 1); /* fi stays, ½ goes */
}

static void counts_of_the_other_rules(void **state)
{
    (void)state;
    uint64_t gone = 0, stayed = 0;
    cpl_str out = {0};
    assert_int_equal(cpl_standardize_text(CPL_STANDARDIZE_NONE,
                                          "\xC3\xA9"
                                          "1 x",
                                          5, &out, &gone, &stayed, NULL),
                     CPL_OK);
    assert_int_equal(gone, 0);
    assert_int_equal(stayed, 4);
    cpl_str_free(&out);
}

static void without_tables(void **state)
{
    (void)state;
    if (cpl_unicode_available())
        skip();
    cpl_error err = CPL_ERROR_INIT;
    cpl_str out = {0};
    assert_standard(CPL_STANDARDIZE_NONE, "\xC3\xA9", "\xC3\xA9");
    assert_standard(CPL_STANDARDIZE_NFKC_LOWER, "Plain ASCII", "plain ascii");
    assert_int_equal(cpl_standardize_text(CPL_STANDARDIZE_NFC, "\xC3\xA9", 2, &out, NULL, NULL, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "utf8proc was missing"));
    cpl_str_free(&out);
}

/* Lines 1 and 2 are one text when lower-cased; the final sigma rule; the dotted capital I gives i and U+0307. */
static void case_E10_lower_case_beyond_ascii(void **state)
{
    (void)state;
    NEEDS_UNICODE();
    size_t n1, n2, n3;
    char *line1 = case_field("E10_case.tsv", 1, 0, &n1), *line2 = case_field("E10_case.tsv", 2, 0, &n2);
    char *line3 = case_field("E10_case.tsv", 3, 0, &n3);
    const char *expected = "\xC3\xA9t\xC3\xA9 stra\xC3\x9F"
                           "e i\xCC\x87stanbul \xCF\x83\xCE\xAF\xCF\x83\xCF\x85\xCF\x86\xCE\xBF\xCF\x82";
    assert_standard(CPL_STANDARDIZE_NFKC_LOWER, line1, expected);
    assert_standard(CPL_STANDARDIZE_NFKC_LOWER, line2, expected);
    assert_standard(CPL_STANDARDIZE_NFKC_LOWER, line3, "\xD1\x8F\xD1\x8F \xD0\xB6\xD0\xB6");
    /* Only nfkc_lower (and the tutorial's rule) lower anything. */
    assert_standard(CPL_STANDARDIZE_NFKC, line1, line1);
    cpl_release(line1);
    cpl_release(line2);
    cpl_release(line3);
}

static void case_E11_normal_forms(void **state)
{
    (void)state;
    NEEDS_UNICODE();
    static const cpl_standardize rules[] = {CPL_STANDARDIZE_NONE, CPL_STANDARDIZE_NFC, CPL_STANDARDIZE_NFKC};
    for (int r = 0; r < 3; r++) {
        char *form[6];
        for (int i = 0; i < 6; i++) {
            size_t length;
            char *text = case_field("E11_normalisation.tsv", i + 1, 0, &length);
            form[i] = standard(rules[r], text, length);
            cpl_release(text);
        }
        for (int i = 0; i < 6; i++)
            for (int k = i + 1; k < 6; k++) {
                int same = (i == 0 && k == 1 && r >= 1) || (i == 2 && k == 3 && r == 2);
                assert_int_equal(strcmp(form[i], form[k]) == 0, same);
            }
        assert_string_equal(form[4], r == 2 ? ".." : "\xEF\xB8\xB0");
        assert_string_equal(form[5], r == 2 ? "\xCA\xBCn" : "\xC5\x89");
        for (int i = 0; i < 6; i++)
            cpl_release(form[i]);
    }
}

static void names(void **state)
{
    (void)state;
    cpl_text_rules rules;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_text_rules_parse(&rules, "char", "nfkc_lower", &err), CPL_OK);
    assert_int_equal(rules.tokens, CPL_TOKENS_CHAR);
    assert_int_equal(rules.standardize, CPL_STANDARDIZE_NFKC_LOWER);
    assert_string_equal(cpl_tokens_name(rules.tokens), "char");
    assert_string_equal(cpl_standardize_name(CPL_STANDARDIZE_TUTORIAL), "tutorial");
    assert_int_equal(cpl_text_rules_parse(&rules, "words", "none", &err), CPL_USAGE);
    assert_string_equal(err.line[0], "unknown tokens 'words', expected one of 'space', 'word', 'char', 'byte', "
                                     "'bpe', 'unigram'");
    assert_string_equal(err.hint, "did you mean 'word'?");
    assert_int_equal(cpl_text_rules_parse(&rules, "word", "xyzzyxyzzy", &err), CPL_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_offsets),
        cmocka_unit_test(bad_utf8_is_an_error),
        cmocka_unit_test(agrees_with_python),
        cmocka_unit_test(tutorial_golden),
        cmocka_unit_test(tutorial_counts),
        cmocka_unit_test(counts_of_the_other_rules),
        cmocka_unit_test(without_tables),
        cmocka_unit_test(names),
        cmocka_unit_test(case_E10_lower_case_beyond_ascii),
        cmocka_unit_test(case_E11_normal_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
