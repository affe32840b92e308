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
        cmocka_unit_test(wrong_groups_are_told),
        cmocka_unit_test(a_model_is_grouped_like_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
