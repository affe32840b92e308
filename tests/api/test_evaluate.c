/* Figures whose values follow by hand, and what inspect and --version tell. */
#include "api/api_test.h"

#include <math.h>

static double score_in(const char *json, const char *metric)
{
    cpl_json *root;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_json_parse(&root, json, strlen(json), &err), &err);
    double value = cpl_json_real(cpl_json_get(cpl_json_get(root, metric), "score"), NAN);
    cpl_json_free(root);
    return value;
}

/* Uniform over 30 entries: loss ln 30, perplexity 30, accuracy 0 (the first largest is padding, never a target). */
static void a_uniform_model_has_known_figures(void **state)
{
    (void)state;
    place p;
    char path[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, uniform, NULL, 0);
    place_write(&p, "pairs.tsv", "a b\tc d e\nf\tg\n\nh i\tj k\n");
    cpl_model *m = model_open(&p);
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .json = 1,
                              .metrics = "loss,perplexity,accuracy"};
    must(cpl_evaluate(m, &o, &text, &err), &err);
    assert_true(fabs(score_in(text, "loss") - log(30)) < 1e-5);
    assert_true(fabs(score_in(text, "perplexity") - 30) < 1e-3);
    assert_true(score_in(text, "accuracy") == 0);
    assert_true(isnan(score_in(text, "bleu")));
    cpl_free(text);
    o.json = 0;
    must(cpl_evaluate(m, &o, &text, &err), &err);
    assert_non_null(strstr(text, "loss       3.4012\n"));
    assert_non_null(strstr(text, "pairs      3\n"));
    cpl_free(text);
    cpl_model_close(m);
    place_remove(&p);
}

/* One letter is 10 above the other 29 entries, always: a target of n letters a among N targets gives n / N. */
static void accuracy_counts_targets_with_end(void **state)
{
    (void)state;
    place p;
    char path[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, endless, NULL, 0);
    place_write(&p, "pairs.tsv", "b\ta a a\nb c\tb\n"); /* a a a END, b END: 3 of 6 */
    cpl_model *m = model_open(&p);
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .json = 1, .metrics = "accuracy,loss"};
    must(cpl_evaluate(m, &o, &text, &err), &err);
    assert_true(fabs(score_in(text, "accuracy") - 0.5) < 1e-6);
    double rest = log(exp(10) + 29);
    assert_true(fabs(score_in(text, "loss") - (rest - 10 * 0.5)) < 1e-5);
    cpl_free(text);
    cpl_model_close(m);
    place_remove(&p);
}

/* The letter a is 800 above all others, so that every other target loses 800. */
static void hopeless(cpl_parameters *p)
{
    int64_t n;
    uniform(p);
    values_of(p, "decoder.output.bias", &n)[CPL_ID_WORDS] = 800;
}

static void case_G10_evaluate_shows_inf(void **state)
{
    (void)state;
    place p;
    char path[300], *text;
    cpl_json *root;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, hopeless, NULL, 0);
    place_write(&p, "pairs.tsv", "x\tb c\ny\td\n");
    cpl_model *m = model_open(&p);
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .metrics = "loss,perplexity"};
    must(cpl_evaluate(m, &o, &text, &err), &err);
    assert_string_equal(text, "loss       800.0000\nperplexity inf\npairs      2\n");
    cpl_free(text);
    o.json = 1;
    must(cpl_evaluate(m, &o, &text, &err), &err);
    must(cpl_json_parse(&root, text, strlen(text), &err), &err);
    const cpl_json *perplexity = cpl_json_get(root, "perplexity");
    assert_int_equal(cpl_json_what(cpl_json_get(perplexity, "score")), CPL_JSON_NULL);
    assert_string_equal(cpl_json_text(cpl_json_get(perplexity, "reason"), NULL), "larger than any number");
    assert_true(fabs(score_in(text, "loss") - 800) < 1e-3);
    cpl_json_free(root);
    cpl_free(text);
    cpl_model_close(m);
    place_remove(&p);
}

/* Every line of the log is JSON, with the losses as they were. Returns the number of lines of the event. */
static int log_losses(const char *path, const char *event, double loss[4])
{
    char line[65536];
    int n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        cpl_json *root;
        cpl_error err = CPL_ERROR_INIT;
        must(cpl_json_parse(&root, line, strlen(line), &err), &err);
        const char *name = cpl_json_text(cpl_json_get(root, "event"), NULL);
        if (name && strcmp(name, event) == 0 && n < 4)
            loss[n++] = cpl_json_real(cpl_json_get(root, "loss"), NAN);
        cpl_json_free(root);
    }
    assert_int_equal(fclose(f), 0);
    return n;
}

/* Training that begins with a loss of 800 logs it as it is, and goes on to its end. */
static void case_G10_training_goes_on(void **state)
{
    (void)state;
    place p;
    char config[300], folder[300], log[400];
    double loss[4];
    static const char *const set[] = {"training.epochs=2", "training.log_every=1", "training.batch_size=2"};
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, hopeless, NULL, 0);
    place_write(&p, "pairs.tsv", "x\tb c\ny\td\n");
    place_write(&p, "config.yaml", "model: {units: 16}\ndata: {train: pairs.tsv, valid: pairs.tsv}\n");
    cpl_train_options o = {.config_path = place_file(&p, "config.yaml", config), .init = p.model, .set = set,
                           .set_count = 3, .folder = place_file(&p, "run", folder), .threads = 1};
    must(cpl_train(&o, &err), &err);
    snprintf(log, sizeof log, "%s/log.jsonl", folder);
    assert_int_equal(log_losses(log, "step", loss), 2);
    assert_true(fabs(loss[0] - 800) < 1e-3 && fabs(loss[1] - 800) < 1);
    assert_int_equal(log_losses(log, "epoch", loss), 2);
    assert_int_equal(log_losses(log, "end", loss), 1);
    place_remove(&p);
}

/* References made of the model's own outputs: all right, then half of them. Both sides pass the target's rules, so
 * the spaces of the file do not matter, unless --raw compares with the file as it is. */
static void outputs_are_compared_after_the_rules(void **state)
{
    (void)state;
    place p;
    char path[300], *text, *one, pairs[4000] = "";
    static const char *const sources[] = {"h", "z y", "q", "z"};
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *m = model_open(&p);
    for (int i = 0; i < 4; i++) {
        must(cpl_generate(&one, m, sources[i], NULL, &err), &err);
        assert_true(one[0] != '\0'); /* a pair without a target would be left out */
        snprintf(pairs + strlen(pairs), sizeof pairs - strlen(pairs), "%s\t  %s%s\n", sources[i], one,
                 i < 2 ? "" : " q");
        cpl_free(one);
    }
    place_write(&p, "pairs.tsv", pairs);
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .json = 1};
    must(cpl_evaluate(m, &o, &text, &err), &err);
    assert_true(fabs(score_in(text, "exact") - 0.5) < 1e-9);
    assert_true(score_in(text, "bleu") > 10);
    assert_non_null(strstr(text, "\"signature\": \"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:couplet-"));
    cpl_free(text);
    o.raw = 1;
    must(cpl_evaluate(m, &o, &text, &err), &err);
    assert_true(score_in(text, "exact") == 0); /* two spaces at the start of each reference */
    cpl_free(text);
    cpl_model_close(m);
    place_remove(&p);
}

static void swap_turns_the_pairs_around(void **state)
{
    (void)state;
    static const char *const set[] = {"data.swap=true"};
    place p;
    char path[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, endless, set, 1);
    place_write(&p, "pairs.tsv", "a a a\tb\nb\tb c\n"); /* the targets are a a a END and b END */
    cpl_model *m = model_open(&p);
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .json = 1, .metrics = "accuracy"};
    must(cpl_evaluate(m, &o, &text, &err), &err);
    assert_true(fabs(score_in(text, "accuracy") - 0.5) < 1e-6);
    cpl_free(text);
    cpl_model_close(m);
    place_remove(&p);
}

static void a_file_of_outputs_needs_no_model(void **state)
{
    (void)state;
    place p;
    char path[300], outputs[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    place_write(&p, "pairs.tsv", "x\tthe cat sat on the mat\ny\ta dog barked at me\nz\tgood morning\n");
    place_write(&p, "out.txt", "the cat sat on the mat\na dog barked at me\n\n");
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", path), .json = 1,
                              .outputs = place_file(&p, "out.txt", outputs)};
    must(cpl_evaluate(NULL, &o, &text, &err), &err);
    assert_true(fabs(score_in(text, "exact") - 2.0 / 3) < 1e-9);
    /* every n-gram of the outputs is right, but 11 pieces stand against 13 */
    assert_true(fabs(score_in(text, "bleu") - 100 * exp(1 - 13.0 / 11)) < 1e-9);
    cpl_free(text);
    place_write(&p, "out.txt", "the cat sat on the mat\n");
    assert_int_equal(cpl_evaluate(NULL, &o, &text, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "has 1 lines but"));
    o.metrics = "loss";
    assert_int_equal(cpl_evaluate(NULL, &o, &text, &err), CPL_USAGE);
    o.metrics = "bleau";
    assert_int_equal(cpl_evaluate(NULL, &o, &text, &err), CPL_USAGE);
    assert_non_null(strstr(err.hint, "'bleu'"));
    place_remove(&p);
}

static void inspect_tells_what_the_file_holds(void **state)
{
    (void)state;
    place p;
    char *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    must(cpl_inspect(p.model, 1, &text, &err), &err);
    cpl_json *root;
    must(cpl_json_parse(&root, text, strlen(text), &err), &err);
    int64_t parameters = 0;
    const cpl_json *layers = cpl_json_get(root, "layers"), *tensors = cpl_json_get(root, "tensors");
    for (size_t i = 0; i < cpl_json_size(layers); i++)
        parameters += cpl_json_int(cpl_json_get(cpl_json_at(layers, i), "parameters"), 0);
    assert_true(parameters > 0);
    assert_int_equal(parameters, cpl_json_int(cpl_json_get(root, "parameters"), -1));
    assert_int_equal(cpl_json_int(cpl_json_get(root, "source_vocabulary"), 0), WORDS + 4);
    assert_int_equal(cpl_json_int(cpl_json_get(root, "longest_target"), 0), 9);
    assert_string_equal(cpl_json_text(cpl_json_get(root, "type"), NULL), "translator");
    assert_int_equal(cpl_json_int(cpl_json_get(cpl_json_get(cpl_json_get(root, "options"), "model"), "units"), 0), 16);
    assert_true(cpl_json_size(tensors) > 10);
    assert_int_equal(strlen(cpl_json_text(cpl_json_get(cpl_json_at(tensors, 0), "checksum"), NULL)), 16);
    cpl_json_free(root);
    cpl_free(text);
    must(cpl_inspect(p.model, 0, &text, &err), &err);
    assert_non_null(strstr(text, "encoder.embedding.kernel"));
    assert_non_null(strstr(text, "model.units: 16"));
    cpl_free(text);
    assert_int_equal(cpl_inspect("/nonexistent/model", 0, &text, &err), CPL_USAGE);
    place_remove(&p);
}

static void version_names_libraries_and_kernels(void **state)
{
    (void)state;
    char *text = cpl_version_text();
    assert_non_null(text);
    assert_int_equal(strncmp(text, "couplet " CPL_VERSION_STRING "\n", 8 + strlen(CPL_VERSION_STRING) + 1), 0);
    static const char *const names[] = {"jansson", "utf8proc", "libyaml", "zlib", "kernels"};
    for (int i = 0; i < 5; i++)
        assert_non_null(strstr(text, names[i]));
    cpl_free(text);
    text = cpl_config_help_text();
    assert_non_null(strstr(text, "units"));
    cpl_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_uniform_model_has_known_figures),
        cmocka_unit_test(accuracy_counts_targets_with_end),
        cmocka_unit_test(case_G10_evaluate_shows_inf),
        cmocka_unit_test(case_G10_training_goes_on),
        cmocka_unit_test(outputs_are_compared_after_the_rules),
        cmocka_unit_test(swap_turns_the_pairs_around),
        cmocka_unit_test(a_file_of_outputs_needs_no_model),
        cmocka_unit_test(inspect_tells_what_the_file_holds),
        cmocka_unit_test(version_names_libraries_and_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
