/* test_chrf.c: chrF and chrF++ against what sacreBLEU 2.6.0 gave (bleu_fixture.json), and values computed by hand. */
#include "metric/score_fixture.h"

static void add_case(cpl_scorer *s, const cpl_json *c)
{
    const cpl_json *outputs = cpl_json_get(c, "outputs"), *references = cpl_json_get(c, "references");
    for (size_t i = 0; i < cpl_json_size(outputs); i++) {
        const cpl_json *of_line = cpl_json_at(references, i);
        cpl_metric_text refs[8];
        size_t n = cpl_json_size(of_line);
        assert_in_range(n, 1, 8);
        for (size_t r = 0; r < n; r++)
            refs[r] = text_at(of_line, r);
        assert_int_equal(cpl_scorer_add(s, &(cpl_scored){text_at(outputs, i), {0}, refs, n}, NULL), CPL_OK);
    }
}

static void equals_sacrebleu(void **state)
{
    (void)state;
    static const char *const names[] = {"chrf", "chrf++"};
    cpl_json *root = fixture_open(CPL_TEST_DATA "/metric/bleu_fixture.json");
    if (!root)
        skip();
    const cpl_json *cases = cpl_json_get(root, "cases");
    assert_true(cpl_json_size(cases) >= 13);
    for (size_t i = 0; i < cpl_json_size(cases); i++) {
        const cpl_json *c = cpl_json_at(cases, i);
        cpl_scorer *s = scorer_of("chrf,chrf++", (cpl_scorer_options){0});
        add_case(s, c);
        for (int k = 0; k < 2; k++) {
            const cpl_json *expected = cpl_json_get(cpl_json_get(c, "expected"), names[k]);
            char signature[CPL_SIGNATURE_SIZE], wanted[CPL_SIGNATURE_SIZE];
            print_message("%s, %s\n", cpl_json_text(cpl_json_get(c, "name"), NULL), names[k]);
            double score = cpl_json_real(cpl_json_get(expected, "score"), NAN);
            near_to(cpl_scorer_value(s, CPL_FIGURE_CHRF + k), score, 1e-9);
            snprintf(wanted, sizeof wanted, "%s|version:couplet-" CPL_VERSION_STRING,
                     cpl_json_text(cpl_json_get(expected, "signature"), NULL));
            assert_string_equal(cpl_scorer_signature(s, CPL_FIGURE_CHRF + k, 0, 0, signature), wanted);
        }
        cpl_scorer_free(s);
    }
    cpl_json_free(root);
}

/* ab against abc: 2 of 2 and 2 of 3 characters, 1 of 1 and 1 of 2 pairs; longer n-grams are lacking on one side.
 * Precision 1, recall (2/3 + 1/2)/2 = 7/12; F2 = 5 P R / (4 P + R) = 35/12 / (55/12). Spaces do not count. */
static void two_orders_by_hand(void **state)
{
    (void)state;
    cpl_scorer *s = scorer_of("chrf", (cpl_scorer_options){0});
    add(s, "a\xC2\xA0 b", " abc ", NULL, NULL);
    near_to(cpl_scorer_value(s, CPL_FIGURE_CHRF), 100 * 35. / 55, 1e-12);
    cpl_scorer_clear(s);
    add(s, "a b", "xyz", "abc", "c"); /* the best reference of three */
    near_to(cpl_scorer_value(s, CPL_FIGURE_CHRF), 100 * 35. / 55, 1e-12);
    cpl_scorer_clear(s);
    add(s, "", "abc", NULL, NULL);
    near_to(cpl_scorer_value(s, CPL_FIGURE_CHRF), 0, 0);
    cpl_scorer_free(s);
}

/* A mark at the end goes first, one at the start only without it. */
static void one_mark_of_a_word_is_parted(void **state)
{
    (void)state;
    cpl_scorer *s = scorer_of("chrf,chrf++", (cpl_scorer_options){0});
    add(s, "b", "(b", NULL, NULL);
    /* characters: 1 of 1, 1 of 2. Words: 1 of 1, 1 of 2. P = 1, R = 1/2: F2 = 2.5 / 4.5 */
    near_to(cpl_scorer_value(s, CPL_FIGURE_CHRF_WORDS), 250 / 4.5, 1e-12);
    cpl_scorer_clear(s);
    add(s, "(b", "(b,", NULL, NULL);
    /* characters: 2/2, 2/3; pairs 1/1, 1/2. Words: ( and b against (b and , : 0 of 2, 0 of 2; pairs 0 of 1, 0 of 1 */
    double p = 2. / 4, r = (2. / 3 + 1. / 2) / 4;
    near_to(cpl_scorer_value(s, CPL_FIGURE_CHRF_WORDS), 500 * p * r / (4 * p + r), 1e-12);
    near_to(cpl_scorer_value(s, CPL_FIGURE_CHRF), 100 * 35. / 55, 1e-12);
    cpl_scorer_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_sacrebleu),
        cmocka_unit_test(two_orders_by_hand),
        cmocka_unit_test(one_mark_of_a_word_is_parted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
