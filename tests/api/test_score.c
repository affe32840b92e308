/* score: against evaluate's loss on small trained models of each kind, against Keras's logits, whatever the batches,
 * and on odd files. */
#include "api/api_test.h"

#include <math.h>
#include "api/model.h"
#include "support/golden.h"

enum { LINES_MAX = 64, OUTPUT_BYTES = 65536 };

/* cpl_score_pairs on the file `name` of the place; out gets all that it writes. */
static cpl_status run(const place *p, cpl_model *m, const char *name, const cpl_score_options *o,
                      char out[OUTPUT_BYTES], cpl_error *err)
{
    char pairs[300], result[300];
    cpl_score_options all = *o;
    FILE *to = fopen(place_file(p, "scores.txt", result), "w+");
    assert_non_null(to);
    all.pairs = place_file(p, name, pairs);
    cpl_status status = cpl_score_pairs(m, &all, to, err);
    rewind(to);
    out[fread(out, 1, OUTPUT_BYTES - 1, to)] = '\0';
    fclose(to);
    return status;
}

typedef struct scores {
    cpl_json *line[LINES_MAX];
    int count;
} scores;

static scores run_json(const place *p, cpl_model *m, const char *name, int64_t batch_size)
{
    static char out[OUTPUT_BYTES];
    scores s = {.count = 0};
    MUST(run(p, m, name, &(cpl_score_options){.json = 1, .batch_size = batch_size}, out, err));
    for (char *at = out, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        assert_true(s.count < LINES_MAX);
        MUST(cpl_json_parse(&s.line[s.count++], at, (size_t)(end - at), err));
    }
    return s;
}

static void scores_free(scores *s)
{
    for (int i = 0; i < s->count; i++)
        cpl_json_free(s->line[i]);
}

static double total(const scores *s, int i)
{
    return cpl_json_real(cpl_json_get(s->line[i], "log_probability"), NAN);
}

static double value(const scores *s, int i, size_t k)
{
    return cpl_json_real(cpl_json_at(cpl_json_get(s->line[i], "token_log_probabilities"), k), NAN);
}

static void near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("got %.9g, expected %.9g", got, expected);
}

static void tokens_are(const scores *s, int i, const char *joined)
{
    char all[400] = "";
    const cpl_json *tokens = cpl_json_get(s->line[i], "tokens");
    for (size_t k = 0; k < cpl_json_size(tokens); k++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", k ? " " : "",
                 cpl_json_text(cpl_json_at(tokens, k), NULL));
    assert_string_equal(all, joined);
    assert_int_equal(cpl_json_size(cpl_json_get(s->line[i], "token_log_probabilities")), cpl_json_size(tokens));
}

/* ---- trained models ---- */

static double evaluated_loss(const place *p, cpl_model *m, const char *name)
{
    char pairs[300], *text;
    cpl_json *root;
    cpl_evaluate_options o = {.pairs = place_file(p, name, pairs), .json = 1, .metrics = "loss"};
    MUST(cpl_evaluate(m, &o, &text, err));
    MUST(cpl_json_parse(&root, text, strlen(text), err));
    double loss = cpl_json_real(cpl_json_get(cpl_json_get(root, "loss"), "score"), NAN);
    cpl_json_free(root);
    cpl_free(text);
    return loss;
}

/* Words that some lines share and some have alone, so that there are unknown ones, of any length from 1 to 7. */
static void write_pairs(const place *p, const char *file, int first, int lines)
{
    char path[300];
    FILE *f = fopen(place_file(p, file, path), "w");
    assert_non_null(f);
    for (int i = first; i < first + lines; i++) {
        for (int k = 0; k <= i * 5 % 7; k++)
            fprintf(f, "%s%c%d", k ? " " : "", k == 2 ? 'x' : 'w', k == 2 ? i : (i + k) % 6);
        fprintf(f, "\tthe");
        for (int k = i * 5 % 7; k >= 0; k--)
            fprintf(f, " %c%d", k == 2 ? 'x' : 'w', k == 2 ? i : (i + k) % 6);
        fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
}

static cpl_model *train(const place *p, const char *const *set, int sets)
{
    char config[300], folder[300];
    cpl_model *m;
    write_pairs(p, "train.tsv", 1, 40);
    write_pairs(p, "valid.tsv", 200, 8);
    write_pairs(p, "test.tsv", 100, 23);
    cpl_train_options o = {.config_path = place_file(p, "m.yaml", config), .folder = place_file(p, "m", folder),
                           .set = set, .set_count = sets, .overwrite = 1};
    MUST(cpl_train(&o, err));
    MUST(cpl_model_open(&m, folder, 1, err));
    return m;
}

static void check_against_loss(const place *p, cpl_model *m)
{
    static char plain[OUTPUT_BYTES];
    scores all = run_json(p, m, "test.tsv", 0), one = run_json(p, m, "test.tsv", 1);
    scores seven = run_json(p, m, "test.tsv", 7);
    double sum = 0;
    size_t tokens = 0;
    char *at = plain;
    assert_int_equal(all.count, 23);
    MUST(run(p, m, "test.tsv", &(cpl_score_options){.batch_size = 64}, plain, err));
    for (int i = 0; i < all.count; i++) {
        double line = 0;
        size_t n = cpl_json_size(cpl_json_get(all.line[i], "tokens"));
        for (size_t k = 0; k < n; k++) {
            line += value(&all, i, k);
            near(value(&one, i, k), value(&all, i, k), 1e-5);
            near(value(&seven, i, k), value(&all, i, k), 1e-5);
        }
        near(total(&all, i), line, 1e-7 * (1 + fabs(line)));
        near(strtod(at, &at), line, 1e-5);
        sum -= line;
        tokens += n;
    }
    assert_string_equal(at, "\n");
    near(sum / (double)tokens, evaluated_loss(p, m, "test.tsv"), 1e-6);
    scores_free(&all);
    scores_free(&one);
    scores_free(&seven);
}

static void the_sum_is_evaluate_s_loss(void **state)
{
    (void)state;
    static const char *const models[][2] = {
        {"model.type=translator", "model.decoder.attention.heads=2"},
        {"model.type=summarizer", "model.copy=false"},
        {"model.copy=true", "model.coverage=0.5"},
        {"model.type=summarizer", "model.copy=true"},
        {"model.copy=true", "model.decoder.attention.score=dot"},
        {"model.decoder.attention.score=none", "model.decoder.initial_state=encoder"},
        {"model.type=autoencoder", "model.bottleneck=0"},
        {"model.type=autoencoder", "model.bottleneck=6"},
        {"text.target.max_length=3", "text.target.too_long=cut"}, /* given targets are scored whole */
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        place p;
        place_make(&p);
        place_write(&p, "m.yaml", strstr(models[i][0], "autoencoder")
                    ? "model: {units: 12}\ntext: {source: {tokens: space, min_count: 2}}\n"
                      "data: {train: train.tsv, valid: valid.tsv}\n"
                      "training: {epochs: 2, batch_size: 8, threads: 1, optimizer: {learning_rate: 1e-2}}\n"
                    : "model: {units: 12}\ntext: {source: {tokens: space, min_count: 2}, target: {tokens: space, "
                      "min_count: 2}}\ndata: {train: train.tsv, valid: valid.tsv}\n"
                      "training: {epochs: 2, batch_size: 8, threads: 1, optimizer: {learning_rate: 1e-2}}\n");
        cpl_model *m = train(&p, models[i], 2);
        check_against_loss(&p, m);
        cpl_model_close(m);
        place_remove(&p);
    }
}

/* A word that the source alone has is shown as itself and may be likely; one that neither has is [UNK]. */
static void copied_words_are_themselves(void **state)
{
    (void)state;
    place p;
    static const char *const set[] = {"model.copy=true"};
    place_make(&p);
    place_write(&p, "m.yaml", "model: {units: 12}\ntext: {source: {tokens: space, min_count: 2}, target: {tokens: "
                "space, min_count: 2}}\ndata: {train: train.tsv, valid: valid.tsv}\n"
                "training: {epochs: 2, threads: 1}\n");
    cpl_model *m = train(&p, set, 1);
    place_write(&p, "odd.tsv", "w1 Zaphod\tthe Zaphod w1\nw1 Zaphod\tthe Trillian w1\n");
    scores s = run_json(&p, m, "odd.tsv", 0);
    tokens_are(&s, 0, "the Zaphod w1 [END]");
    tokens_are(&s, 1, "the [UNK] w1 [END]");
    near(value(&s, 0, 0), value(&s, 1, 0), 1e-6);
    assert_true(isfinite(total(&s, 0)) && value(&s, 0, 1) < 0);
    scores_free(&s);
    cpl_model_close(m);
    place_remove(&p);
}

/* One column is enough for an autoencoder, whose labels are what it reads. */
static void an_autoencoder_reads_one_column(void **state)
{
    (void)state;
    for (int bottleneck = 0; bottleneck < 2; bottleneck++) {
        place p;
        const char *set[] = {bottleneck ? "model.bottleneck=5" : "model.bottleneck=0"};
        place_make(&p);
        place_write(&p, "m.yaml", "model: {type: autoencoder, units: 8}\ntext: {source: {tokens: space}}\n"
                    "data: {train: train.tsv, valid: valid.tsv}\ntraining: {epochs: 1, threads: 1}\n");
        cpl_model *m = train(&p, set, 1);
        place_write(&p, "odd.tsv", "w1 w2\n\nnever w1\tw5\n");
        scores s = run_json(&p, m, "odd.tsv", 0);
        assert_int_equal(s.count, 3);
        tokens_are(&s, 0, bottleneck ? "w1 w2 [END]" : "[START] w1 w2 [END]");
        tokens_are(&s, 1, bottleneck ? "[END]" : "[START] [END]");
        tokens_are(&s, 2, bottleneck ? "[UNK] w1 [END]" : "[START] [UNK] w1 [END]");
        scores_free(&s);
        cpl_model_close(m);
        place_remove(&p);
    }
}

/* ---- Keras ---- */

/* log softmax of row r of out.logits [rows vocab] at a label. */
static double keras_value(const golden *g, int64_t row, int64_t label)
{
    const cpl_tensor_entry *logits = golden_find(g, "out.logits");
    int64_t vocab = logits->shape[2];
    double sum = 0;
    for (int64_t i = 0; i < vocab; i++)
        sum += exp(golden_at(logits, row * vocab + i));
    return golden_at(logits, row * vocab + label) - log(sum);
}

static void write_words(const place *p, const char *name, char prefix, int size)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "\n[UNK]\n[START]\n[END]\n");
    for (int i = 4; i < size; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%c%d\n", prefix, i);
    place_write(p, name, text);
}

/* The golden ids as words; two targets and a source are empty. */
static void the_translator_scores_as_in_keras(void **state)
{
    (void)state;
    place p;
    char weights[400], config[300], source[300], target[300];
    char *version = cpl_version_text();
    int missing = !version || strstr(version, "hdf5      missing") != NULL;
    cpl_free(version);
    if (missing)
        skip();
    golden g = golden_open("translator");
    const cpl_tensor_entry *y = golden_find(&g, "in.y");
    place_make(&p);
    place_write(&p, "c.yaml", "model: {units: 8}\ntext: {source: {tokens: space}, target: {tokens: space}}\n");
    write_words(&p, "s.txt", 's', 23);
    write_words(&p, "t.txt", 't', 29);
    snprintf(weights, sizeof weights, "%s/golden/translator.weights.h5", CPL_TEST_DATA);
    cpl_keras_import_options o = {.weights = weights, .config = place_file(&p, "c.yaml", config),
                                  .source_vocabulary = place_file(&p, "s.txt", source),
                                  .target_vocabulary = place_file(&p, "t.txt", target), .output = p.model};
    MUST(cpl_import_keras(&o, err));
    cpl_model *m = model_open(&p);
    place_write(&p, "g.tsv", "s22 s22 s8 s7 s22\tt4 t20 t23 t9\ns18 s18 s17\t\ns20 s14\tt18 t25 t11 t21\n\t\n");
    scores s = run_json(&p, m, "g.tsv", 0);
    assert_int_equal(s.count, y->shape[0]);
    tokens_are(&s, 0, "t4 t20 t23 t9 [END]");
    tokens_are(&s, 1, "[END]");
    int compared = 0;
    for (int64_t i = 0; i < y->shape[0]; i++)
        for (int64_t k = 0; k < y->shape[1]; k++) {
            int64_t label = (int64_t)golden_at(y, i * y->shape[1] + k);
            if (label) {
                near(value(&s, (int)i, (size_t)k), keras_value(&g, i * y->shape[1] + k, label), 4e-5);
                compared++;
            }
        }
    assert_int_equal(compared, 12);
    scores_free(&s);
    cpl_model_close(m);
    golden_close(&g);
    place_remove(&p);
}

/* ---- odd files and models ---- */

static void lines_keep_their_places(void **state)
{
    (void)state;
    place p;
    place_make(&p);
    model_write(&p, uniform, NULL, 0);
    cpl_model *m = model_open(&p);
    static char out[OUTPUT_BYTES];
    place_write(&p, "odd.tsv", "a b\tc d\n\na\t\n\tb\na\t[END] never c\n");
    scores s = run_json(&p, m, "odd.tsv", 2);
    assert_int_equal(s.count, 5);
    tokens_are(&s, 0, "c d [END]");
    tokens_are(&s, 1, "[END]");
    tokens_are(&s, 2, "[END]");
    tokens_are(&s, 3, "b [END]");
    for (int i = 0; i < 4; i++) /* each of 30 entries is as likely as the others */
        near(total(&s, i), -log(30) * (double)cpl_json_size(cpl_json_get(s.line[i], "tokens")), 1e-6);
    assert_non_null(strstr(cpl_json_text(cpl_json_at(cpl_json_get(s.line[4], "tokens"), 0), NULL), "[UNK]"));
    scores_free(&s);
    place_write(&p, "one.tsv", "a\tc"); /* no LF at the end */
    MUST(run(&p, m, "one.tsv", &(cpl_score_options){0}, out, err));
    assert_string_equal(out, "-6.80239476\n"); /* −2 · log 30 */
    cpl_model_close(m);
    place_remove(&p);
}

static void refused_says(const place *p, cpl_model *m, const char *text, const cpl_score_options *o, const char *said)
{
    static char out[OUTPUT_BYTES];
    char all[CPL_ERROR_LINES * CPL_ERROR_WIDTH + CPL_ERROR_LINES + 1] = "";
    cpl_error err = CPL_ERROR_INIT;
    place_write(p, "odd.tsv", text);
    assert_int_equal(run(p, m, "odd.tsv", o, out, &err), CPL_USAGE);
    assert_string_equal(out, "");
    for (int i = 0; i < err.lines; i++)
        strcat(strcat(all, err.line[i]), "\n");
    if (!strstr(all, said))
        fail_msg("'%s' is not in: %s", said, all);
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    place p;
    static char out[OUTPUT_BYTES];
    cpl_error err = CPL_ERROR_INIT;
    const cpl_score_options plain = {0};
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *m = model_open(&p);
    refused_says(&p, m, "", &plain, "no usable pairs are left");
    refused_says(&p, m, "a\tb\na b\na\tb\tc\n", &plain, "line 2 has 1, line 3 has 3");
    refused_says(&p, m, "a\t\xFF\n", &plain, "not UTF-8");
    refused_says(&p, m, "a\tb\n", &(cpl_score_options){.batch_size = -1}, "batch_size is -1");
    assert_int_not_equal(run(&p, m, "nowhere.tsv", &plain, out, &err), CPL_OK);
    cpl_model_close(m);
    place_remove(&p);
}

static void spoiled(cpl_parameters *p)
{
    int64_t n;
    values_of(p, "decoder.output.bias", &n)[CPL_ID_WORDS] = NAN;
}

/* Only b cannot be: its logit is −infinity. */
static void without_b(cpl_parameters *p)
{
    int64_t n;
    uniform(p);
    values_of(p, "decoder.output.bias", &n)[CPL_ID_WORDS + 1] = -INFINITY;
}

static void no_number_is_null_with_a_reason(void **state)
{
    (void)state;
    static char out[OUTPUT_BYTES];
    for (int i = 0; i < 2; i++) {
        place p;
        place_make(&p);
        model_write(&p, i ? without_b : spoiled, NULL, 0);
        cpl_model *m = model_open(&p);
        place_write(&p, "odd.tsv", "a\tb\n");
        scores s = run_json(&p, m, "odd.tsv", 0);
        assert_int_equal(cpl_json_what(cpl_json_get(s.line[0], "log_probability")), CPL_JSON_NULL);
        assert_int_equal(cpl_json_what(cpl_json_at(cpl_json_get(s.line[0], "token_log_probabilities"), 0)),
                         CPL_JSON_NULL);
        assert_string_equal(cpl_json_text(cpl_json_get(s.line[0], "reason"), NULL),
                            i ? "a token has probability 0" : "not a number");
        if (i)
            near(value(&s, 0, 1), -log(29), 1e-6);
        scores_free(&s);
        MUST(run(&p, m, "odd.tsv", &(cpl_score_options){0}, out, err));
        assert_non_null(strstr(out, i ? "-inf\n" : "nan\n"));
        cpl_model_close(m);
        place_remove(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_is_evaluate_s_loss),
        cmocka_unit_test(copied_words_are_themselves),
        cmocka_unit_test(an_autoencoder_reads_one_column),
        cmocka_unit_test(the_translator_scores_as_in_keras),
        cmocka_unit_test(lines_keep_their_places),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(no_number_is_null_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
