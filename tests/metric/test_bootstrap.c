/* test_bootstrap.c: intervals and p against what sacreBLEU 2.6.0 gave (bootstrap_fixture.json; other random numbers, so
 * within the spread of a run), cases whose result is certain, and the table of figures. */
#include "metric/score_fixture.h"

#include <stdlib.h>
#include <time.h>

#include "metric/bootstrap.h"

static cpl_scorer *score_all(const cpl_json *root, const char *side, const char *names)
{
    const cpl_json *outputs = cpl_json_get(root, side), *references = cpl_json_get(root, "references");
    cpl_scorer *s = scorer_of(names, (cpl_scorer_options){.keep = 1});
    for (size_t i = 0; i < cpl_json_size(outputs); i++) {
        cpl_metric_text reference = text_at(references, i);
        assert_int_equal(cpl_scorer_add(s, &(cpl_scored){text_at(outputs, i), {0}, &reference, 1}, NULL), CPL_OK);
    }
    return s;
}

static void run(cpl_bootstrap *b, const cpl_scorer *s, const cpl_scorer *baseline)
{
    cpl_error err = CPL_ERROR_INIT;
    if (cpl_bootstrap_run(b, s, baseline, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
}

static void equals_sacrebleu(void **state)
{
    (void)state;
    cpl_json *root = fixture_open(CPL_TEST_DATA "/metric/bootstrap_fixture.json");
    if (!root)
        skip();
    assert_int_equal(cpl_json_size(cpl_json_get(root, "outputs")), 500);
    cpl_scorer *better = score_all(root, "outputs", "bleu,chrf"), *worse = score_all(root, "baseline", "bleu,chrf");
    cpl_bootstrap b = {.samples = 20000, .seed = 1}; /* more than the fixture's, so that our own spread is small */
    run(&b, better, worse);
    static const int figures[] = {CPL_FIGURE_BLEU, CPL_FIGURE_CHRF};
    for (int i = 0; i < 2; i++) {
        int f = figures[i];
        const cpl_json *expected = cpl_json_get(cpl_json_get(root, "figures"), cpl_figure_at(f)->name);
        print_message("%s: %.3f to %.3f, p %.4f\n", cpl_figure_at(f)->name, b.of[f].low, b.of[f].high, b.p[f]);
        near_to(cpl_scorer_value(better, f), cpl_json_real(cpl_json_get(expected, "score"), NAN), 1e-9);
        near_to(cpl_scorer_value(worse, f), cpl_json_real(cpl_json_get(expected, "baseline"), NAN), 1e-9);
        /* From seed to seed sacreBLEU's own bounds spread by 0.1 (BLEU) and 0.07 (chrF), its p by 0.004 and 0.002; the
         * fixture has means over eight seeds. */
        near_to(b.of[f].low, cpl_json_real(cpl_json_get(expected, "low"), NAN), 0.15);
        near_to(b.of[f].high, cpl_json_real(cpl_json_get(expected, "high"), NAN), 0.15);
        near_to(b.p[f], cpl_json_real(cpl_json_get(expected, "p"), NAN), 0.005);
        near_to(b.of[f].mean, cpl_scorer_value(better, f), 0.2);
    }
    cpl_scorer_free(better);
    cpl_scorer_free(worse);
    cpl_json_free(root);
}

static void a_seed_repeats_itself(void **state)
{
    (void)state;
    cpl_json *root = fixture_open(CPL_TEST_DATA "/metric/bootstrap_fixture.json");
    if (!root)
        skip();
    cpl_scorer *s = score_all(root, "outputs", "bleu");
    cpl_bootstrap a = {.samples = 100, .seed = 1}, b = a, other = {.samples = 100, .seed = 2};
    run(&a, s, NULL);
    run(&b, s, NULL);
    run(&other, s, NULL);
    assert_true(a.of[CPL_FIGURE_BLEU].low == b.of[CPL_FIGURE_BLEU].low); /* to the bit */
    assert_true(a.of[CPL_FIGURE_BLEU].mean == b.of[CPL_FIGURE_BLEU].mean);
    assert_true(a.of[CPL_FIGURE_BLEU].mean != other.of[CPL_FIGURE_BLEU].mean);
    cpl_scorer_free(s);
    cpl_json_free(root);
}

static void what_is_certain(void **state)
{
    (void)state;
    cpl_scorer *same = scorer_of("exact", (cpl_scorer_options){.keep = 1});
    cpl_scorer *right = scorer_of("exact", (cpl_scorer_options){.keep = 1});
    cpl_scorer *wrong = scorer_of("exact", (cpl_scorer_options){.keep = 1});
    for (int i = 0; i < 40; i++) {
        add(same, i % 2 ? "a" : "b", "a", NULL, NULL);
        add(right, "a", "a", NULL, NULL);
        add(wrong, "b", "a", NULL, NULL);
    }
    cpl_bootstrap b = {.samples = 999, .seed = 7};
    run(&b, same, same);
    near_to(b.p[CPL_FIGURE_EXACT], 1, 0); /* a system against itself */
    assert_true(b.of[CPL_FIGURE_EXACT].low < 0.5 && b.of[CPL_FIGURE_EXACT].high > 0.5);
    /* 40 tosses: standard deviation 0.079, so 95 % are 0.345 to 0.655 */
    near_to(b.of[CPL_FIGURE_EXACT].low, 0.345, 0.05);
    near_to(b.of[CPL_FIGURE_EXACT].high, 0.655, 0.05);
    run(&b, right, wrong);
    near_to(b.p[CPL_FIGURE_EXACT], 1. / 1000, 1e-15); /* every resample has the difference 1, none more */
    near_to(b.of[CPL_FIGURE_EXACT].low, 1, 0);
    near_to(b.of_baseline[CPL_FIGURE_EXACT].high, 0, 0);
    b.samples = 1;
    run(&b, right, NULL);
    near_to(b.of[CPL_FIGURE_EXACT].high, 1, 0);
    cpl_scorer_clear(wrong);
    assert_int_equal(cpl_bootstrap_run(&b, right, wrong, NULL), CPL_USAGE); /* other items */
    assert_int_equal(cpl_bootstrap_run(&b, wrong, NULL, NULL), CPL_USAGE);  /* none */
    cpl_scorer_free(same);
    cpl_scorer_free(right);
    cpl_scorer_free(wrong);
}

/* 1000 resamples of 1000 items with all figures' numbers in less than a second. */
static void resampling_sums_numbers(void **state)
{
    (void)state;
    cpl_scorer *s = scorer_of("bleu,chrf,chrf++,exact,token_error_rate,rouge,repeated_trigrams,copy_rate",
                              (cpl_scorer_options){.keep = 1});
    for (int i = 0; i < 1000; i++)
        add(s, i % 3 ? "the cat sat on the mat" : "a dog", "the cat lay on the mat", NULL, NULL);
    cpl_bootstrap b = {.samples = 1000, .seed = 1};
    clock_t start = clock();
    run(&b, s, s);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    print_message("%.3f s for two systems\n", seconds);
    if (getenv("COUPLET_SANITIZED") == NULL)
        assert_true(seconds < 2);
    cpl_scorer_free(s);
}

static void names_and_values(void **state)
{
    (void)state;
    uint32_t wanted;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_figures_parse("exact,rouge", &wanted, &err), CPL_OK);
    assert_int_equal(wanted, cpl_figure_bit(CPL_FIGURE_EXACT) | UINT32_C(15) << CPL_FIGURE_ROUGE);
    assert_string_equal(cpl_figure_at(CPL_FIGURE_ROUGE + 3)->name, "rougeLsum");
    assert_int_equal(cpl_figures_parse("chrf,", &wanted, &err), CPL_USAGE);
    assert_int_equal(cpl_figures_parse("chr", &wanted, &err), CPL_USAGE);
    assert_string_equal(err.line[0], "unknown metric 'chr'");
    assert_string_equal(err.hint, "did you mean 'chrf'?");
    assert_int_equal(cpl_figures_parse("quality_of_it", &wanted, &err), CPL_USAGE);
    assert_string_equal(err.hint, "there are bleu, chrf, chrf++, exact, token_error_rate, rouge1, rouge2, rougeL, "
                                  "rougeLsum, repeated_trigrams, copy_rate, accuracy, loss, perplexity");
    cpl_scorer *s = scorer_of("exact,loss", (cpl_scorer_options){0});
    assert_true(isnan(cpl_scorer_value(s, CPL_FIGURE_LOSS)));
    assert_true(isnan(cpl_scorer_value(s, CPL_FIGURE_BLEU)));
    assert_int_equal(cpl_scorer_add(s, &(cpl_scored){.n = 0}, &err), CPL_USAGE);
    cpl_scorer_free(s);
}

static void signatures_name_resamples(void **state)
{
    (void)state;
    char text[CPL_SIGNATURE_SIZE];
    cpl_scorer *s = scorer_of("bleu,copy_rate,exact", (cpl_scorer_options){.split = CPL_BLEU_CHAR});
    add(s, "a", "b", "c", NULL);
    assert_string_equal(cpl_scorer_signature(s, CPL_FIGURE_BLEU, 1000, 12345, text),
                        "nrefs:2|bs:1000|seed:12345|case:mixed|eff:no|tok:char|smooth:exp|version:couplet-"
                        CPL_VERSION_STRING);
    assert_string_equal(cpl_scorer_signature(s, CPL_FIGURE_COPY_RATE, 10, 1, text),
                        "bs:10|seed:1|case:mixed|tok:char|version:couplet-" CPL_VERSION_STRING);
    assert_null(cpl_scorer_signature(s, CPL_FIGURE_EXACT, 10, 1, text));
    cpl_scorer_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_sacrebleu),  cmocka_unit_test(a_seed_repeats_itself),
        cmocka_unit_test(what_is_certain),   cmocka_unit_test(resampling_sums_numbers),
        cmocka_unit_test(names_and_values),  cmocka_unit_test(signatures_name_resamples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
