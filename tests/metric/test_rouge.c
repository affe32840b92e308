/* test_rouge.c: ROUGE against what rouge-score 0.1.2 gave (rouge_fixture.json), and values computed by hand. */
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
#include "metric/rouge.h"
#include "text/unicode.h"

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

static cpl_rouge *new_rouge(void)
{
    cpl_rouge *r;
    assert_int_equal(cpl_rouge_new(&r, NULL), CPL_OK);
    return r;
}

static int open_fixture(void **state)
{
    char *data;
    size_t length;
    cpl_json *root;
    *state = NULL;
    if (!cpl_json_available())
        return 0;
    if (cpl_file_read(CPL_TEST_DATA "/metric/rouge_fixture.json", &data, &length, NULL) != CPL_OK ||
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

static void add_item(cpl_rouge *r, const cpl_json *item)
{
    const cpl_json *references = cpl_json_get(item, "references");
    cpl_metric_text refs[8];
    size_t n = cpl_json_size(references);
    assert_in_range(n, 1, 8);
    for (size_t k = 0; k < n; k++)
        refs[k] = text_of(cpl_json_at(references, k));
    assert_int_equal(cpl_rouge_add(r, text_of(cpl_json_get(item, "output")), refs, n, NULL), CPL_OK);
}

/* Returns how many kinds differ. */
static int compare(const cpl_rouge *r, const cpl_json *expected, size_t item)
{
    int wrong = 0;
    for (int k = 0; k < CPL_ROUGE_KINDS; k++) {
        double want = cpl_json_real(cpl_json_get(expected, cpl_rouge_name(k)), NAN), got = cpl_rouge_score(r, k);
        if (fabs(got - want) <= 1e-9)
            continue;
        print_error("item %zu, %s: got %.15g, expected %.15g\n", item, cpl_rouge_name(k), got, want);
        wrong++;
    }
    return wrong;
}

static void equals_rouge_score(void **state)
{
    if (!*state)
        skip();
    const cpl_json *items = cpl_json_get(*state, "items");
    size_t n = cpl_json_size(items);
    int wrong = 0;
    assert_true(n >= 100);
    cpl_rouge *one = new_rouge(), *all = new_rouge();
    for (size_t i = 0; i < n; i++) {
        cpl_rouge_clear(one);
        add_item(one, cpl_json_at(items, i));
        add_item(all, cpl_json_at(items, i));
        wrong += compare(one, cpl_json_get(cpl_json_at(items, i), "expected"), i);
    }
    wrong += compare(all, cpl_json_get(*state, "mean"), n);
    cpl_rouge_free(one);
    cpl_rouge_free(all);
    assert_int_equal(wrong, 0);
}

static void equals_rouge_score_by_pieces(void **state)
{
    if (!*state || !cpl_unicode_available())
        skip();
    const cpl_json *items = cpl_json_get(*state, "items");
    int wrong = 0;
    for (cpl_bleu_split split = CPL_BLEU_13A; split <= CPL_BLEU_NONE; split++) {
        cpl_rouge *one = new_rouge();
        assert_int_equal(cpl_rouge_split(one, split, NULL), CPL_OK);
        for (size_t i = 0; i < cpl_json_size(items); i++) {
            cpl_rouge_clear(one);
            add_item(one, cpl_json_at(items, i));
            wrong += compare(one, cpl_json_get(cpl_json_at(items, i), cpl_bleu_split_name(split)), i);
        }
        cpl_rouge_free(one);
    }
    assert_int_equal(wrong, 0);
}

/* By hand: я живу в of 4 and 4; with the default's words there are none. Full stops count. */
static void pieces_are_words_of_any_script(void **state)
{
    (void)state;
    if (!cpl_unicode_available())
        skip();
    cpl_rouge *r = new_rouge();
    char signature[CPL_SIGNATURE_SIZE];
    cpl_metric_text ref = line("Я живу в Риге."), tea = line("café au lait");
    assert_int_equal(cpl_rouge_split(r, CPL_BLEU_13A, NULL), CPL_OK);
    assert_int_equal(cpl_rouge_add(r, line("я ЖИВУ в Москве ."), &ref, 1, NULL), CPL_OK);
    assert_true(fabs(cpl_rouge_score(r, CPL_ROUGE_1) - 80) < 1e-9);
    assert_int_equal(cpl_rouge_add(r, line("CAFÉ"), &tea, 1, NULL), CPL_OK);
    assert_true(fabs(cpl_rouge_score(r, CPL_ROUGE_1) - 65) < 1e-9);
    assert_non_null(strstr(cpl_rouge_signature(r, CPL_ROUGE_1, signature, sizeof signature), "|tok:13a|"));
    cpl_rouge_free(r);
}

static void parts_can_be_merged(void **state)
{
    if (!*state)
        skip();
    const cpl_json *items = cpl_json_get(*state, "items");
    size_t n = cpl_json_size(items);
    cpl_rouge *a = new_rouge(), *b = new_rouge(), *none = new_rouge();
    for (size_t i = 0; i < n; i++)
        add_item(i < n / 3 ? a : b, cpl_json_at(items, i));
    cpl_rouge_merge(a, b);
    cpl_rouge_merge(a, none);
    assert_int_equal(compare(a, cpl_json_get(*state, "mean"), n), 0);
    cpl_rouge_free(a);
    cpl_rouge_free(b);
    cpl_rouge_free(none);
}

/* Scores of a single item with one reference, against hits, output and reference sizes counted by hand. */
static void check_item(const char *output, const char *reference, const double expected[CPL_ROUGE_KINDS])
{
    cpl_rouge *r = new_rouge();
    cpl_metric_text ref = line(reference);
    assert_int_equal(cpl_rouge_add(r, line(output), &ref, 1, NULL), CPL_OK);
    for (int k = 0; k < CPL_ROUGE_KINDS; k++)
        if (fabs(cpl_rouge_score(r, k) - expected[k]) > 1e-9)
            fail_msg("'%s', %s: got %.15g, expected %.15g", output, cpl_rouge_name(k), cpl_rouge_score(r, k),
                     expected[k]);
    cpl_rouge_free(r);
}

/* F = 2 × hits / (words of the output + words of the reference). */
static void scores_follow_by_hand(void **state)
{
    (void)state;
    /* the, cat, on, the, mat of 6 and 6; the-cat, on-the, the-mat of 5 and 5; in this order */
    check_item("The cat sat on the mat.", "the cat lay on the mat", (double[]){1000. / 12, 60, 1000. / 12, 1000. / 12});
    /* the words are kill(ed), the gunman: Lin's example of one subsequence each */
    check_item("police kill the gunman", "police killed the gunman", (double[]){75, 100. / 3, 75, 75});
    check_item("the gunman kill police", "police killed the gunman", (double[]){75, 100. / 3, 50, 50});
    /* clipped: 2 of 7 and 6 */
    check_item("the the the the the the the", "the cat is on the mat",
               (double[]){400. / 13, 0, 400. / 13, 400. / 13});
    /* sentences exchanged: all words are hit sentence by sentence, half of them in one sequence */
    check_item("c d\na b", "a b\nc d", (double[]){100, 400. / 6, 50, 100});
    /* Lin's union of subsequences: w1 w2 and w1 w3 w5 hit 4 of 5; in one sequence w1 w2 w3 w5 */
    check_item("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5",
               (double[]){800. / 15, 200. / 13, 800. / 15, 800. / 15});
    check_item("", "", (double[]){0, 0, 0, 0});
    check_item("héllo", "h llo", (double[]){100, 100, 100, 100});
}

/* Each kind takes the reference that is best for it: here the first for ROUGE-1, the second for ROUGE-2 and -L. */
static void the_best_reference_counts(void **state)
{
    (void)state;
    cpl_rouge *r = new_rouge();
    cpl_metric_text refs[2] = {line("d c b a"), line("a b c x y z")};
    char signature[CPL_SIGNATURE_SIZE];
    assert_int_equal(cpl_rouge_add(r, line("a b c d"), refs, 2, NULL), CPL_OK);
    assert_true(fabs(cpl_rouge_score(r, CPL_ROUGE_1) - 100) < 1e-9);
    assert_true(fabs(cpl_rouge_score(r, CPL_ROUGE_2) - 50) < 1e-9);
    assert_true(fabs(cpl_rouge_score(r, CPL_ROUGE_L) - 60) < 1e-9);
    assert_string_equal(cpl_rouge_signature(r, CPL_ROUGE_2, signature, sizeof signature),
                        "nrefs:2|case:lower|tok:a-z0-9|stem:no|measure:f1|average:mean|version:couplet-"
                        CPL_VERSION_STRING);
    assert_int_equal(cpl_rouge_add(r, line(""), refs, 1, NULL), CPL_OK);
    assert_true(fabs(cpl_rouge_score(r, CPL_ROUGE_L) - 30) < 1e-9); /* the mean over items */
    cpl_rouge_signature(r, CPL_ROUGE_LSUM, signature, sizeof signature);
    assert_non_null(strstr(signature, "nrefs:var|"));
    assert_non_null(strstr(signature, "|sent:newline|"));
    cpl_rouge_free(r);
}

static void wrong_use_is_told(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    cpl_rouge *r = new_rouge();
    assert_int_equal(cpl_rouge_add(r, line("a"), NULL, 0, &err), CPL_USAGE);
    assert_string_equal(err.line[0], "an output has 0 references, expected at least 1");
    assert_true(cpl_rouge_score(r, CPL_ROUGE_1) == 0);
    cpl_rouge_free(r);
}

/* Whichever allocation fails, the call says so, nothing is counted and nothing is lost. */
static void short_memory_is_told(void **state)
{
    (void)state;
    cpl_metric_text ref = line("a b\nc d e");
    int failures = 0;
    for (uint64_t at = 1;; at++) {
        cpl_rouge *r = new_rouge();
        cpl_memory_fail_at(at);
        cpl_status status = cpl_rouge_add(r, line("c d\na e b"), &ref, 1, NULL);
        cpl_memory_fail_at(0);
        failures += status == CPL_FAILED;
        if (status == CPL_FAILED)
            assert_true(cpl_rouge_score(r, CPL_ROUGE_1) == 0);
        cpl_rouge_free(r);
        if (status == CPL_OK)
            break;
    }
    assert_true(failures > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_rouge_score),
        cmocka_unit_test(equals_rouge_score_by_pieces),
        cmocka_unit_test(pieces_are_words_of_any_script),
        cmocka_unit_test(parts_can_be_merged),
        cmocka_unit_test(scores_follow_by_hand), cmocka_unit_test(the_best_reference_counts),
        cmocka_unit_test(wrong_use_is_told),     cmocka_unit_test(short_memory_is_told),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
