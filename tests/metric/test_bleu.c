/* test_bleu.c: BLEU against what sacreBLEU 2.6.0 gave (bleu_fixture.json), and values computed by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "metric/metric.h"
#include "text/unicode.h"

static const char *const kinds[] = {"13a", "none", "char", "intl"};

/* intl needs the Unicode tables. */
static size_t kind_count(void)
{
    return cpl_unicode_available() ? CPL_BLEU_SPLITS : CPL_BLEU_INTL;
}

static cpl_metric_text text_of(const cpl_json *value)
{
    cpl_metric_text t;
    t.text = cpl_json_text(value, &t.length);
    assert_non_null(t.text);
    return t;
}

static cpl_metric_text line(const char *text)
{
    return (cpl_metric_text){text, strlen(text)};
}

static cpl_metric *new_metric(const char *kind)
{
    cpl_bleu_split split;
    cpl_metric *m;
    assert_int_equal(cpl_bleu_split_named(&split, kind, NULL), CPL_OK);
    assert_int_equal(cpl_metric_new(&m, split, NULL), CPL_OK);
    return m;
}

static int open_fixture(void **state)
{
    char *data;
    size_t length;
    cpl_json *root;
    *state = NULL;
    if (!cpl_json_available())
        return 0;
    if (cpl_file_read(CPL_TEST_DATA "/metric/bleu_fixture.json", &data, &length, NULL) != CPL_OK ||
        cpl_json_parse(&root, data, length, NULL) != CPL_OK)
        return -1;
    cpl_release(data);
    *state = root;
    return 0;
}

static int close_fixture(void **state)
{
    cpl_json_free(*state);
    return 0;
}

static void near_to(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9))
        fail_msg("got %.15g, expected %.15g", got, expected);
}

/* Adds lines first … last-1 of a case. */
static void add_lines(cpl_metric *m, const cpl_json *c, size_t first, size_t last)
{
    const cpl_json *outputs = cpl_json_get(c, "outputs"), *references = cpl_json_get(c, "references");
    for (size_t i = first; i < last; i++) {
        const cpl_json *of_line = cpl_json_at(references, i);
        cpl_metric_text refs[8];
        size_t n = cpl_json_size(of_line);
        assert_in_range(n, 1, 8);
        for (size_t r = 0; r < n; r++)
            refs[r] = text_of(cpl_json_at(of_line, r));
        assert_int_equal(cpl_metric_add(m, text_of(cpl_json_at(outputs, i)), refs, n, NULL), CPL_OK);
    }
}

static void check_case(const cpl_metric *m, const cpl_json *expected)
{
    const cpl_metric_counts *c = cpl_metric_so_far(m);
    cpl_bleu_parts parts;
    near_to(cpl_metric_bleu(m, &parts), cpl_json_real(cpl_json_get(expected, "score"), NAN));
    near_to(parts.brevity_penalty, cpl_json_real(cpl_json_get(expected, "brevity_penalty"), NAN));
    for (size_t n = 0; n < CPL_BLEU_ORDER; n++) {
        assert_int_equal(c->matches[n], cpl_json_int(cpl_json_at(cpl_json_get(expected, "matches"), n), -1));
        assert_int_equal(c->totals[n], cpl_json_int(cpl_json_at(cpl_json_get(expected, "totals"), n), -1));
        near_to(parts.precision[n], cpl_json_real(cpl_json_at(cpl_json_get(expected, "precisions"), n), NAN));
    }
    assert_int_equal(c->output_length, cpl_json_int(cpl_json_get(expected, "output_length"), -1));
    assert_int_equal(c->reference_length, cpl_json_int(cpl_json_get(expected, "reference_length"), -1));
    char signature[CPL_SIGNATURE_SIZE], wanted[CPL_SIGNATURE_SIZE];
    snprintf(wanted, sizeof wanted, "%s|version:couplet-" CPL_VERSION_STRING,
             cpl_json_text(cpl_json_get(expected, "signature"), NULL));
    assert_string_equal(cpl_metric_signature(m, signature, sizeof signature), wanted);
}

static void equals_sacrebleu(void **state)
{
    if (!*state)
        skip();
    const cpl_json *cases = cpl_json_get(*state, "cases");
    assert_true(cpl_json_size(cases) >= 13);
    for (size_t i = 0; i < cpl_json_size(cases); i++) {
        const cpl_json *c = cpl_json_at(cases, i);
        for (size_t k = 0; k < kind_count(); k++) {
            cpl_metric *m = new_metric(kinds[k]);
            print_message("%s, %s\n", cpl_json_text(cpl_json_get(c, "name"), NULL), kinds[k]);
            add_lines(m, c, 0, cpl_json_size(cpl_json_get(c, "outputs")));
            check_case(m, cpl_json_get(cpl_json_get(c, "expected"), kinds[k]));
            cpl_metric_free(m);
        }
    }
}

/* Counted in two parts and joined: the same. */
static void parts_can_be_merged(void **state)
{
    if (!*state)
        skip();
    const cpl_json *cases = cpl_json_get(*state, "cases");
    for (size_t i = 0; i < cpl_json_size(cases); i++) {
        const cpl_json *c = cpl_json_at(cases, i);
        size_t lines = cpl_json_size(cpl_json_get(c, "outputs"));
        cpl_metric *a = new_metric("13a"), *b = new_metric("13a");
        add_lines(a, c, 0, lines / 3);
        add_lines(b, c, lines / 3, lines);
        cpl_metric_merge(a, b);
        check_case(a, cpl_json_get(cpl_json_get(c, "expected"), "13a"));
        cpl_metric_free(a);
        cpl_metric_free(b);
    }
}

static void splits_as_sacrebleu(void **state)
{
    if (!*state)
        skip();
    const cpl_json *lines = cpl_json_get(*state, "lines");
    for (size_t k = 0; k < kind_count(); k++) {
        const cpl_json *wanted = cpl_json_get(cpl_json_get(*state, "split"), kinds[k]);
        cpl_bleu_split split;
        assert_int_equal(cpl_bleu_split_named(&split, kinds[k], NULL), CPL_OK);
        for (size_t i = 0; i < cpl_json_size(lines); i++) {
            cpl_metric_text t = text_of(cpl_json_at(lines, i));
            cpl_str out = {0};
            cpl_bleu_split_line(split, t.text, t.length, &out);
            assert_int_equal(out.failed, 0);
            assert_string_equal(out.length ? out.data : "", cpl_json_text(cpl_json_at(wanted, i), NULL));
            cpl_str_free(&out);
        }
    }
}

/* Papineni's example: 'the' seven times against two that have it twice and once. */
static void counts_are_clipped(void **state)
{
    (void)state;
    cpl_metric *m = new_metric("none");
    cpl_metric_text refs[] = {line("the cat is on the mat"), line("there is a cat on the mat")};
    assert_int_equal(cpl_metric_add(m, line("the the the the the the the"), refs, 2, NULL), CPL_OK);
    const cpl_metric_counts *c = cpl_metric_so_far(m);
    assert_int_equal(c->matches[0], 2);
    assert_int_equal(c->totals[0], 7);
    assert_int_equal(c->matches[1], 0);
    assert_int_equal(c->reference_length, 7);
    /* 2/7, then smoothed 1/(2·6), 1/(4·5), 1/(8·4) */
    near_to(cpl_metric_bleu(m, NULL), 100 * pow(2.0 / 7 / 12 / 20 / 32, 0.25));
    cpl_metric_free(m);
}

static void exact_match_compares_bytes(void **state)
{
    (void)state;
    cpl_metric *m = new_metric("13a");
    near_to(cpl_metric_exact(m), 0);
    cpl_metric_text refs[] = {line("b"), line("a b")};
    assert_int_equal(cpl_metric_add(m, line("a b"), refs, 2, NULL), CPL_OK);
    assert_int_equal(cpl_metric_add(m, line("a  b"), refs, 2, NULL), CPL_OK);
    assert_int_equal(cpl_metric_add(m, line(""), refs, 1, NULL), CPL_OK);
    cpl_metric_text empty = line("");
    assert_int_equal(cpl_metric_add(m, line(""), &empty, 1, NULL), CPL_OK);
    near_to(cpl_metric_exact(m), 0.5);
    cpl_metric_clear(m);
    near_to(cpl_metric_exact(m), 0);
    cpl_metric_free(m);
}

static void wrong_use_is_told(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    cpl_bleu_split split;
    cpl_metric *m = new_metric("char");
    assert_int_equal(cpl_metric_add(m, line("a"), NULL, 0, &err), CPL_USAGE);
    assert_int_equal(cpl_bleu_split_named(&split, "14a", &err), CPL_USAGE);
    assert_string_equal(err.line[0], "unknown BLEU tokenizer '14a', expected 13a, none, char or intl");
    char text[CPL_SIGNATURE_SIZE];
    assert_string_equal(cpl_metric_signature(m, text, sizeof text),
                        "nrefs:1|case:mixed|eff:no|tok:char|smooth:exp|version:couplet-" CPL_VERSION_STRING);
    near_to(cpl_metric_bleu(m, NULL), 0);
    cpl_metric_free(m);
}

/* Bytes that are no UTF-8 are split somehow, without harm, and nothing is lost but white space. */
static void any_bytes_are_split(void **state)
{
    (void)state;
    static const char odd[] = "\xE2\x80\xC2 \xF0\x9F\xE3\x80\0x\xC2\xA0\xFF.\xE2";
    for (size_t length = 0; length < sizeof odd; length++) {
        for (int split = 0; split < CPL_BLEU_SPLITS; split++) {
            char *exact = cpl_strndup(odd, length); /* a sanitizer sees reads past its end */
            cpl_str out = {0};
            cpl_bleu_split_line((cpl_bleu_split)split, exact, length, &out);
            assert_int_equal(out.failed, 0);
            cpl_str_free(&out);
            cpl_release(exact);
        }
    }
}

static void case_G10_perplexity_of_a_large_loss(void **state)
{
    (void)state;
    near_to(cpl_perplexity(0), 1);
    near_to(cpl_perplexity(2.302585092994046), 10);
    assert_true(isinf(cpl_perplexity(800)));
    assert_true(isnan(cpl_perplexity(NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_sacrebleu),           cmocka_unit_test(parts_can_be_merged),
        cmocka_unit_test(splits_as_sacrebleu),        cmocka_unit_test(counts_are_clipped),
        cmocka_unit_test(exact_match_compares_bytes), cmocka_unit_test(wrong_use_is_told),
        cmocka_unit_test(any_bytes_are_split),        cmocka_unit_test(case_G10_perplexity_of_a_large_loss),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
