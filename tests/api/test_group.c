/* Pairs grouped by source, and the figures of text beyond BLEU: files of outputs with values that follow by hand, and
 * a model against the file of its own outputs. */
#include "api/api_test.h"

#include <math.h>

static const cpl_json *figure_in(const cpl_json *root, const char *metric)
{
    const cpl_json *one = cpl_json_get(root, metric);
    assert_non_null(one);
    return one;
}

/* Evaluates as JSON. */
static cpl_json *scores(cpl_model *m, cpl_evaluate_options *o)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_json *root;
    char *text;
    o->json = 1;
    must(cpl_evaluate(m, o, &text, &err), &err);
    must(cpl_json_parse(&root, text, strlen(text), &err), &err);
    cpl_free(text);
    return root;
}

static void is_near(const cpl_json *root, const char *metric, double expected)
{
    double value = cpl_json_real(cpl_json_get(figure_in(root, metric), "score"), NAN);
    if (!(fabs(value - expected) < 1e-9))
        fail_msg("%s: got %.15g, expected %.15g", metric, value, expected);
}

static void signature_has(const cpl_json *root, const char *metric, const char *part)
{
    const char *signature = cpl_json_text(cpl_json_get(figure_in(root, metric), "signature"), NULL);
    assert_non_null(signature);
    if (!strstr(signature, part))
        fail_msg("%s: signature '%s' lacks '%s'", metric, signature, part);
}

static void rouge_repetition_and_copying_of_a_file(void **state)
{
    (void)state;
    place p;
    char path[300], outputs[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    place_write(&p, "pairs.tsv", "the cat\tthe cat lay on the mat\nb a\ta b\n");
    place_write(&p, "out.txt", "The cat sat on the mat\na a a a\n");
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .outputs = place_file(&p, "out.txt", outputs),
                              .metrics = "rouge,repeated_trigrams,copy_rate"};
    cpl_json *root = scores(NULL, &o);
    is_near(root, "rouge1", (500. / 6 + 100. / 3) / 2);
    is_near(root, "rouge2", (60 + 0) / 2.);
    is_near(root, "rougeL", (500. / 6 + 100. / 3) / 2);
    is_near(root, "rougeLsum", (500. / 6 + 100. / 3) / 2);
    is_near(root, "repeated_trigrams", 1. / 6);
    is_near(root, "copy_rate", 6. / 10); /* cat, the, and a four times; "The" is another word */
    assert_null(cpl_json_get(root, "bleu"));
    signature_has(root, "rougeL", "nrefs:1|case:lower|");
    signature_has(root, "copy_rate", "tok:13a|");
    cpl_json_free(root);
    o.tokenize = "none"; /* "mat" and "mat." are two words now if a stop is written */
    place_write(&p, "out.txt", "The cat sat on the MAT.\na a a a\n");
    root = scores(NULL, &o);
    is_near(root, "rouge1", (400. / 6 + 100. / 3) / 2);
    signature_has(root, "rouge1", "|tok:none|");
    cpl_json_free(root);
    o.tokenize = NULL;
    place_write(&p, "out.txt", "The cat sat on the mat\na a a a\n");
    o.metrics = "rouge2,copy_rate";
    o.json = 0;
    must(cpl_evaluate(NULL, &o, &text, &err), &err);
    assert_non_null(strstr(text, "rouge2     30.00  nrefs:1|"));
    assert_non_null(strstr(text, "copy_rate  0.6000  case:mixed|"));
    assert_null(strstr(text, "rouge1"));
    cpl_free(text);
    o.metrics = "rogue";
    assert_int_equal(cpl_evaluate(NULL, &o, &text, &err), CPL_USAGE);
    assert_non_null(strstr(err.hint, "'rouge'"));
    place_remove(&p);
}

/* x stands on lines 1 and 3 with two references, y on line 2 with one. */
static const char grouped_pairs[] = "x\tthe cat sat on the mat\ny\ta dog barked at me\nx\ta cat lay on the mat there\n";

static void same_sources_are_one_item(void **state)
{
    (void)state;
    place p;
    char path[300], outputs[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    place_write(&p, "pairs.tsv", grouped_pairs);
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .outputs = place_file(&p, "out.txt", outputs),
                              .metrics = "bleu,exact,rouge"};
    /* one line for each pair, or one for each source: the same item */
    static const char *const files[] = {"a cat lay on the mat there\na dog\na cat lay on the mat there\n",
                                        "a cat lay on the mat there\na dog\n"};
    for (int i = 0; i < 2; i++) {
        place_write(&p, "out.txt", files[i]);
        o.group = "source";
        cpl_json *root = scores(NULL, &o);
        is_near(root, "exact", 0.5);
        is_near(root, "rouge1", (100 + 400. / 7) / 2);
        is_near(root, "rouge2", (100 + 200. / 5) / 2);
        /* 9 pieces against 7 + 5; all n-grams are right */
        is_near(root, "bleu", 100 * exp(1 - 12. / 9));
        signature_has(root, "bleu", "nrefs:var|");
        signature_has(root, "rouge1", "nrefs:var|");
        cpl_json_free(root);
        o.json = 0;
        must(cpl_evaluate(NULL, &o, &text, &err), &err);
        assert_non_null(strstr(text, "pairs      3\nsources    2\n"));
        cpl_free(text);
    }
    place_write(&p, "out.txt", files[0]);
    o.group = NULL;
    cpl_json *root = scores(NULL, &o);
    is_near(root, "exact", 1. / 3);
    signature_has(root, "bleu", "nrefs:1|");
    cpl_json_free(root);
    place_remove(&p);
}

/* A model's tokens are its target's; a file's stand between white space. */
static void token_errors_of_groups(void **state)
{
    (void)state;
    static const char *const set[] = {"text.target.tokens=char"};
    place p;
    char path[300], outputs[300];
    place_make(&p);
    place_write(&p, "pairs.tsv", "read\tR EH D\nread\tR IY D\ncats\tK AE T S\n");
    place_write(&p, "out.txt", "R IY D Z\nK AE T\n");
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .outputs = place_file(&p, "out.txt", outputs),
                              .metrics = "token_error_rate,exact,chrf", .group = "source"};
    cpl_json *root = scores(NULL, &o);
    is_near(root, "token_error_rate", 2. / 7); /* one too many against R IY D, one missing */
    is_near(root, "exact", 0);
    signature_has(root, "token_error_rate", "nrefs:var|case:mixed|tok:space|ref:nearest|");
    signature_has(root, "chrf", "nrefs:var|case:mixed|eff:yes|nc:6|nw:0|space:no|");
    cpl_json_free(root);
    model_write(&p, endless, set, 1);
    place_write(&p, "pairs.tsv", "x\taab\ny\tbb\n");
    cpl_model *m = model_open(&p);
    o.group = o.outputs = NULL;
    o.metrics = "token_error_rate";
    o.generate.max_length = 3; /* aaa: 1 edit of 3, 3 edits of 2 */
    root = scores(m, &o);
    is_near(root, "token_error_rate", 4. / 5);
    signature_has(root, "token_error_rate", "|tok:char|");
    cpl_json_free(root);
    cpl_model_close(m);
    place_remove(&p);
}

static double number_in(const cpl_json *root, const char *metric, const char *key)
{
    return cpl_json_real(cpl_json_get(figure_in(root, metric), key), NAN);
}

/* a is right 3 times of 4, b never: 4 resampled items are all wrong with probability 1/256. */
static void two_files_are_compared(void **state)
{
    (void)state;
    place p;
    char path[300], a[300], b[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    place_write(&p, "pairs.tsv", "1\ta b c d\n2\ta b c d\n3\ta b c d\n4\ta b c d\n");
    place_write(&p, "a.txt", "a b c d\na b c d\na b c d\nx\n");
    place_write(&p, "b.txt", "x\nx\nx\nx\n");
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .outputs = place_file(&p, "a.txt", a),
                              .baseline = place_file(&p, "b.txt", b), .metrics = "exact,token_error_rate",
                              .generate = {.seed = 3}};
    cpl_json *root = scores(NULL, &o);
    is_near(root, "exact", 0.75);
    assert_true(number_in(root, "exact", "difference") == 0.75);
    is_near(figure_in(root, "exact"), "baseline", 0);
    assert_int_equal(cpl_json_int(cpl_json_get(figure_in(root, "exact"), "resamples"), 0), 1000);
    assert_true(number_in(root, "exact", "p_value") < 0.01); /* the difference cannot exceed its mean by 0.75 */
    assert_true(cpl_json_real(cpl_json_at(cpl_json_get(figure_in(root, "exact"), "confidence"), 0), 9) <= 0.25);
    assert_true(cpl_json_real(cpl_json_at(cpl_json_get(figure_in(root, "exact"), "confidence"), 1), 9) >= 0.99);
    assert_true(number_in(root, "token_error_rate", "difference") == -0.75);
    signature_has(root, "token_error_rate", "nrefs:1|bs:1000|seed:3|");
    cpl_json_free(root);
    o.json = 0;
    o.bootstrap = 10;
    place_write(&p, "b.txt", "a b c d\na b c d\na b c d\nx\n");
    must(cpl_evaluate(NULL, &o, &text, &err), &err);
    assert_non_null(strstr(text, "exact            0.7500\n                 95 % of 10 resamples: "));
    assert_non_null(strstr(text, "), difference +0.0000, p = 1.0000\n"));
    cpl_free(text);
    o.baseline = NULL;
    must(cpl_evaluate(NULL, &o, &text, &err), &err);
    assert_non_null(strstr(text, "95 % of 10 resamples: "));
    assert_null(strstr(text, "difference"));
    cpl_free(text);
    place_write(&p, "b.txt", "x\n");
    o.baseline = b;
    assert_int_equal(cpl_evaluate(NULL, &o, &text, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "b.txt' has 1 lines but"));
    place_remove(&p);
}

/* Accuracy and loss have no resamples: they are not counted by output. */
static void a_model_has_intervals(void **state)
{
    (void)state;
    place p;
    char path[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, endless, NULL, 0);
    place_write(&p, "pairs.tsv", "x\ta a\ny\tb\n");
    cpl_model *m = model_open(&p);
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .bootstrap = 50,
                              .metrics = "exact,loss", .generate = {.max_length = 2}};
    cpl_json *root = scores(m, &o);
    is_near(root, "exact", 0.5);
    assert_int_equal(cpl_json_size(cpl_json_get(figure_in(root, "exact"), "confidence")), 2);
    assert_null(cpl_json_get(figure_in(root, "loss"), "confidence"));
    cpl_json_free(root);
    o.metrics = "loss,accuracy";
    assert_int_equal(cpl_evaluate(m, &o, &text, &err), CPL_USAGE);
    o.metrics = NULL;
    o.baseline = path;
    assert_int_equal(cpl_evaluate(m, &o, &text, &err), CPL_USAGE);
    assert_non_null(strstr(err.hint, "couplet generate"));
    o.baseline = NULL;
    o.bootstrap = -1;
    assert_int_equal(cpl_evaluate(m, &o, &text, &err), CPL_USAGE);
    cpl_model_close(m);
    place_remove(&p);
}

static void wrong_groups_are_told(void **state)
{
    (void)state;
    place p;
    char path[300], outputs[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    place_write(&p, "pairs.tsv", grouped_pairs);
    place_write(&p, "out.txt", "one\ntwo\nthree\n");
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .outputs = place_file(&p, "out.txt", outputs),
                              .group = "source"};
    assert_int_equal(cpl_evaluate(NULL, &o, &text, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "lines 1 and 3 of"));
    place_write(&p, "out.txt", "one\n");
    assert_int_equal(cpl_evaluate(NULL, &o, &text, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "has 1 lines but"));
    assert_non_null(strstr(err.line[0], "3 pairs and 2 sources"));
    o.group = "target";
    assert_int_equal(cpl_evaluate(NULL, &o, &text, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "'target'"));
    place_remove(&p);
}

/* A model whose outputs go into a file gets the same figures; accuracy and loss do not know groups. */
static void a_model_is_grouped_like_a_file(void **state)
{
    (void)state;
    static const char *const sources[] = {"h", "z y", "h", "q", "z y", "h"};
    static const char *const text_figures[] = {"bleu", "exact", "rouge1", "rouge2", "rougeL", "rougeLsum",
                                               "repeated_trigrams", "copy_rate"};
    place p;
    char path[300], outputs[300], pairs[4000] = "", lines[4000] = "", *one;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *m = model_open(&p);
    for (int i = 0; i < 6; i++) {
        must(cpl_generate(&one, m, sources[i], NULL, &err), &err);
        snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s\n", one);
        snprintf(pairs + strlen(pairs), sizeof pairs - strlen(pairs), "%s\t%s\n", sources[i],
                 i == 2 || i == 3 ? one : i % 2 ? "z q a" : "q h b");
        cpl_free(one);
    }
    place_write(&p, "pairs.tsv", pairs);
    place_write(&p, "out.txt", lines);
    cpl_evaluate_options file = {.pairs = place_file(&p, "pairs.tsv", path), .group = "source",
                                 .metrics = "bleu,exact,rouge,repeated_trigrams,copy_rate",
                                 .outputs = place_file(&p, "out.txt", outputs)};
    cpl_evaluate_options model = file;
    model.outputs = NULL;
    cpl_json *of_file = scores(NULL, &file), *of_model = scores(m, &model);
    for (int i = 0; i < 8; i++) {
        const cpl_json *expected = figure_in(of_file, text_figures[i]);
        is_near(of_model, text_figures[i], cpl_json_real(cpl_json_get(expected, "score"), NAN));
    }
    is_near(of_model, "exact", 2. / 3); /* h by its second reference, q; not z y */
    cpl_json_free(of_file);
    cpl_json_free(of_model);
    model.metrics = "accuracy,loss";
    cpl_json *grouped = scores(m, &model);
    model.group = NULL;
    cpl_json *alone = scores(m, &model);
    is_near(grouped, "loss", cpl_json_real(cpl_json_get(figure_in(alone, "loss"), "score"), NAN));
    is_near(grouped, "accuracy", cpl_json_real(cpl_json_get(figure_in(alone, "accuracy"), "score"), NAN));
    cpl_json_free(grouped);
    cpl_json_free(alone);
    cpl_model_close(m);
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rouge_repetition_and_copying_of_a_file),
        cmocka_unit_test(same_sources_are_one_item),
        cmocka_unit_test(token_errors_of_groups),
        cmocka_unit_test(two_files_are_compared),
        cmocka_unit_test(a_model_has_intervals),
        cmocka_unit_test(wrong_groups_are_told),
        cmocka_unit_test(a_model_is_grouped_like_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
