/* test_token_error.c: edits counted by hand. */
#include "metric/score_fixture.h"

static double rate(cpl_scorer *s)
{
    return cpl_scorer_value(s, CPL_FIGURE_TOKEN_ERROR_RATE);
}

static void edits_over_reference_tokens(void **state)
{
    (void)state;
    cpl_scorer *s = scorer_of("token_error_rate", (cpl_scorer_options){0});
    add(s, "the cat sat", "the cat sat", NULL, NULL);
    near_to(rate(s), 0, 0);
    add(s, "K AE T S", "K AA T", NULL, NULL); /* one other, one too many: 2 of 3 + 3 */
    near_to(rate(s), 2. / 6, 1e-15);
    add(s, "b c  d", "a b c d", NULL, NULL); /* one is missing; white space of any length */
    near_to(rate(s), 3. / 10, 1e-15);
    add(s, "b a", "a b", NULL, NULL); /* exchanged neighbours are two edits */
    near_to(rate(s), 5. / 12, 1e-15);
    cpl_scorer_clear(s);
    add(s, "x y z", "a", NULL, NULL); /* can exceed 1 */
    near_to(rate(s), 3, 0);
    char text[CPL_SIGNATURE_SIZE];
    assert_string_equal(cpl_scorer_signature(s, CPL_FIGURE_TOKEN_ERROR_RATE, 0, 0, text),
                        "nrefs:1|case:mixed|tok:space|ref:nearest|version:couplet-" CPL_VERSION_STRING);
    cpl_scorer_free(s);
}

static void empty_sides(void **state)
{
    (void)state;
    cpl_scorer *s = scorer_of("token_error_rate", (cpl_scorer_options){0});
    near_to(rate(s), 0, 0); /* no items */
    add(s, "", "", NULL, NULL);
    near_to(rate(s), 0, 0); /* nothing was wanted or written */
    add(s, "a", "", NULL, NULL);
    assert_true(isinf(rate(s))); /* an edit over no token */
    add(s, "", "b c", NULL, NULL);
    near_to(rate(s), 3. / 2, 0);
    cpl_scorer_free(s);
}

static void the_nearest_reference_counts(void **state)
{
    (void)state;
    cpl_scorer *s = scorer_of("token_error_rate,exact", (cpl_scorer_options){0});
    add(s, "a b c", "x y z", "a b", "a b d"); /* 3, 1 and 1 edits: of the latter two the longer, 1 of 3 */
    near_to(rate(s), 1. / 3, 1e-15);
    add(s, "a b", "q", "a b", NULL);
    near_to(rate(s), 1. / 5, 1e-15);
    near_to(cpl_scorer_value(s, CPL_FIGURE_EXACT), 0.5, 0); /* any reference will do */
    char text[CPL_SIGNATURE_SIZE];
    assert_non_null(strstr(cpl_scorer_signature(s, CPL_FIGURE_TOKEN_ERROR_RATE, 0, 0, text), "nrefs:var|"));
    cpl_scorer_free(s);
}

static void tokens_are_those_of_the_rule(void **state)
{
    (void)state;
    static const struct {
        cpl_scorer_options o;
        double rate;
        const char *name;
    } rules[] = {{{.tokens = CPL_TOKENS_SPACE}, 1. / 2, "tok:space|"},                    /* cat. is not cat */
                 {{.tokens = CPL_TOKENS_WORD}, 1. / 3, "tok:word|"},                      /* the cat . */
                 {{.tokens = CPL_TOKENS_CHAR}, 1. / 8, "tok:char|"},                      /* spaces are characters */
                 {{.split_all = 1, .split = CPL_BLEU_13A}, 1. / 3, "tok:13a|"},
                 {{.split_all = 1, .split = CPL_BLEU_CHAR}, 1. / 7, "tok:char|"}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        cpl_scorer *s = scorer_of("token_error_rate", rules[i].o);
        char text[CPL_SIGNATURE_SIZE];
        add(s, "the cat", "the cat.", NULL, NULL);
        near_to(rate(s), rules[i].rate, 1e-15);
        assert_non_null(strstr(cpl_scorer_signature(s, CPL_FIGURE_TOKEN_ERROR_RATE, 0, 0, text), rules[i].name));
        cpl_scorer_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_over_reference_tokens),
        cmocka_unit_test(empty_sides),
        cmocka_unit_test(the_nearest_reference_counts),
        cmocka_unit_test(tokens_are_those_of_the_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
