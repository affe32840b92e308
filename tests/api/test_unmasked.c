/* Models that were trained without masking: padding is read as ordinary tokens, as Keras does (golden/unmasked*, made
 * by keras/make_unmasked_fixture.py). Sources of 7, 3 and 1 words, filled up to 9 with START and END. */
#include "api/api_test.h"

#include <math.h>
#include "api/model.h"
#include "base/files.h"
#include "support/golden.h"

enum { SOURCE_WORDS = 23, TARGET_WORDS = 29, ROWS = 3, PAD_TO = 9, UNITS = 8 };

/* What import is given, the model that it writes, and what it warned of. */
typedef struct importing {
    place place;
    char weights[300], config[300], source[300], target[300], warned[1000];
    int warnings;
    cpl_keras_import_options options;
    golden golden;
} importing;

static void on_message(void *user, int level, const char *text)
{
    importing *m = user;
    m->warnings += level > 0;
    if (level > 0)
        snprintf(m->warned, sizeof m->warned, "%s", text);
}

static void write_words(const place *p, const char *name, char prefix, int size)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "\n[UNK]\n[START]\n[END]\n");
    for (int i = 4; i < size; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%c%d\n", prefix, i);
    place_write(p, name, text);
}

/* The words of row i of a golden tensor of ids, joined by spaces. */
static void write_row(const golden *g, const char *name, char prefix, int i, char text[200])
{
    const cpl_tensor_entry *t = golden_find(g, name);
    int n = 0;
    text[0] = '\0';
    for (int64_t k = 0; k < t->shape[1]; k++) {
        int id = (int)golden_at(t, i * t->shape[1] + k);
        if (id >= CPL_ID_WORDS)
            n += snprintf(text + n, 200 - (size_t)n, "%s%c%d", n ? " " : "", prefix, id);
    }
}

/* pairs.tsv; of an autoencoder one column. */
static void begin(importing *m, const char *name, const char *model)
{
    char config[300], text[700] = "", source[200], target[200];
    int mirrored = strstr(name, "autoencoder") != NULL;
    memset(m, 0, sizeof *m);
    place_make(&m->place);
    m->golden = golden_open(name);
    snprintf(config, sizeof config, "model: {%s, units: 8}\ntext: {source: {tokens: space}%s}\n", model,
             mirrored ? "" : ", target: {tokens: space}");
    place_write(&m->place, "c.yaml", config);
    write_words(&m->place, "source.txt", 's', SOURCE_WORDS);
    write_words(&m->place, "target.txt", 't', TARGET_WORDS);
    for (int i = 0; i < ROWS; i++) {
        write_row(&m->golden, "in.source", 's', i, source);
        if (!mirrored)
            write_row(&m->golden, "in.y", 't', i, target);
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, mirrored ? "%s\n" : "%s\t%s\n", source, target);
    }
    place_write(&m->place, "pairs.tsv", text);
    snprintf(m->weights, sizeof m->weights, "%s/golden/%s.weights.h5", CPL_TEST_DATA, name);
    m->options = (cpl_keras_import_options){.weights = m->weights, .message = on_message, .user = m,
                                            .config = place_file(&m->place, "c.yaml", m->config),
                                            .source_vocabulary = place_file(&m->place, "source.txt", m->source),
                                            .output = m->place.model};
    if (!mirrored)
        m->options.target_vocabulary = place_file(&m->place, "target.txt", m->target);
}

static cpl_model *import(importing *m, int64_t pad_to)
{
    m->options.pad_to = pad_to;
    MUST(cpl_import_keras(&m->options, err));
    return model_open(&m->place);
}

static void end(importing *m)
{
    golden_close(&m->golden);
    place_remove(&m->place);
}

/* log softmax(logits[row, step])[label] */
static double expected(const golden *g, int64_t row, int64_t step, int64_t label)
{
    const cpl_tensor_entry *t = golden_find(g, "out.logits");
    int64_t width = t->shape[2], at = (row * t->shape[1] + step) * width;
    double sum = 0;
    for (int64_t k = 0; k < width; k++)
        sum += exp(golden_at(t, at + k));
    return golden_at(t, at + label) - log(sum);
}

/* The largest distance between the scores of a row's tokens and Keras's; how many tokens there are. */
static double distance(const importing *m, const cpl_json *row, int64_t i, const char *labels, size_t *tokens)
{
    const cpl_tensor_entry *t = golden_find(&m->golden, labels);
    const cpl_json *values = cpl_json_get(row, "token_log_probabilities");
    double worst = 0;
    *tokens = cpl_json_size(values);
    for (size_t k = 0; k < *tokens; k++) {
        int64_t label = (int64_t)golden_at(t, i * t->shape[1] + (int64_t)k);
        assert_true(label > 0);
        worst = fmax(worst, fabs(cpl_json_real(cpl_json_at(values, k), 1e9) -
                                 expected(&m->golden, i, (int64_t)k, label)));
    }
    return worst;
}

/* Of each row of pairs.tsv: the distance from Keras. */
static void score(const importing *m, cpl_model *model, const char *labels, double worst[ROWS], size_t tokens[ROWS])
{
    char pairs[300], *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    MUST(cpl_score_pairs(model, &(cpl_score_options){.pairs = place_file(&m->place, "pairs.tsv", pairs), .json = 1,
                                                     .batch_size = 2}, out, err));
    fclose(out);
    char *line = text;
    for (int i = 0; i < ROWS; i++, line = strchr(line, '\n') + 1) {
        cpl_json *row;
        MUST(cpl_json_parse(&row, line, strcspn(line, "\n"), err));
        worst[i] = distance(m, row, i, labels, &tokens[i]);
        cpl_json_free(row);
    }
    free(text);
}

/* ---- the translator ---- */

static void check_greedy(const importing *m, cpl_model *model, int64_t batch)
{
    char text[3 * 200], line[200], *got = NULL;
    size_t size, n = 0;
    for (int i = 0; i < ROWS; i++) {
        write_row(&m->golden, "in.source", 's', i, line);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", line);
    }
    FILE *in = tmpfile(), *out = open_memstream(&got, &size);
    assert_int_equal(fwrite(text, 1, n, in), n);
    fflush(in);
    rewind(in);
    cpl_generate_options o = {.max_length = 10, .tokens = 1, .batch_size = batch};
    MUST(cpl_generate_lines(model, in, out, &o, NULL, NULL, err));
    fclose(in);
    fclose(out);
    char *at = got;
    for (int i = 0; i < ROWS; i++) {
        write_row(&m->golden, "out.greedy", 't', i, line);
        assert_int_equal(strncmp(at, line, strlen(line)), 0);
        assert_int_equal(at[strlen(line)], '\n');
        at += strlen(line) + 1;
    }
    free(got);
}

/* The vectors of words are Keras's, those of padding are in no pool. */
static void check_encoder(const importing *m)
{
    char input[300], line[200], *text = NULL;
    size_t size;
    const cpl_tensor_entry *t = golden_find(&m->golden, "out.encoder");
    for (int i = 0; i < ROWS; i++) {
        write_row(&m->golden, "in.source", 's', i, line);
        place_write(&m->place, "line", line);
        int words = i == 0 ? 7 : i == 1 ? 3 : 1;
        for (int pool = CPL_POOL_MEAN; pool <= CPL_POOL_NONE; pool++) {
            cpl_json *root;
            FILE *out = open_memstream(&text, &size);
            cpl_encode_options o = {.input = place_file(&m->place, "line", input), .pool = (cpl_pool_kind)pool};
            MUST(cpl_encode_lines(m->place.model, &o, out, err));
            fclose(out);
            MUST(cpl_json_parse(&root, text, strcspn(text, "\n"), err));
            const cpl_json *rows = cpl_json_get(root, "vectors");
            if (pool == CPL_POOL_NONE)
                assert_int_equal(cpl_json_size(rows), words);
            for (int64_t k = 0; k < UNITS; k++) {
                double sum = 0;
                for (int64_t w = 1; w <= words; w++) {
                    double want = golden_at(t, (i * PAD_TO + w) * UNITS + k);
                    sum += want;
                    if (pool == CPL_POOL_NONE)
                        assert_true(fabs(cpl_json_real(cpl_json_at(cpl_json_at(rows, (size_t)w - 1), (size_t)k), 1e9) -
                                         want) < 2e-5);
                }
                const cpl_json *vector = cpl_json_get(root, "vector");
                if (pool == CPL_POOL_MEAN)
                    assert_true(fabs(cpl_json_real(cpl_json_at(vector, (size_t)k), 1e9) - sum / words) < 2e-5);
            }
            cpl_json_free(root);
            free(text);
        }
    }
}

/* The unmasked twin of the case: what a step over padding returns is computed like any other. */
static void case_D03_padding_read_as_tokens(void **state)
{
    (void)state;
    importing m;
    double worst[ROWS];
    size_t tokens[ROWS];
    begin(&m, "unmasked", "type: translator");
    cpl_model *model = import(&m, PAD_TO);
    assert_int_equal(m.warnings, 0);
    score(&m, model, "in.y", worst, tokens);
    assert_true(tokens[0] == 3 && tokens[1] == 5 && tokens[2] == 2);
    for (int i = 0; i < ROWS; i++)
        assert_true(worst[i] <= 2e-5);
    check_greedy(&m, model, 1);
    check_greedy(&m, model, 3);
    check_encoder(&m);
    cpl_model_close(model);
    end(&m);
}

/* Declared but not padded: told. Not declared: there is nothing to tell. Both are the masked model, whose first source
 * alone, which has no padding, is Keras's. */
static void without_pad_to_values_differ(void **state)
{
    (void)state;
    static const char *const models[] = {"type: translator", "type: translator, encoder: {mask: false}"};
    for (int declared = 0; declared < 2; declared++) {
        importing m;
        double worst[ROWS];
        size_t tokens[ROWS];
        begin(&m, "unmasked", models[declared]);
        cpl_model *model = import(&m, 0);
        assert_int_equal(m.warnings, declared);
        if (declared)
            assert_true(strstr(m.warned, "trained without masking") && strstr(m.warned, "--pad-to N"));
        score(&m, model, "in.y", worst, tokens);
        assert_true(worst[0] <= 2e-5 && worst[1] > 1e-2 && worst[2] > 1e-2);
        cpl_model_close(model);
        end(&m);
    }
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    importing m;
    cpl_error err = CPL_ERROR_INIT;
    begin(&m, "unmasked", "type: translator, encoder: {mask: true}");
    m.options.pad_to = PAD_TO;
    assert_int_equal(cpl_import_keras(&m.options, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "--pad-to is 9, but the configuration says that 'model.encoder.mask' is true"));
    assert_int_not_equal(access(m.place.model, F_OK), 0);
    end(&m);
}

/* All padding is one column; a line's weights sum to 1 with it. A source without padding has no such column. */
static void attention_shows_padding_as_one_column(void **state)
{
    (void)state;
    importing m;
    char folder[300], path[300], *text = NULL, *svg;
    size_t size;
    begin(&m, "unmasked", "type: translator");
    cpl_model *model = import(&m, PAD_TO);
    FILE *in = tmpfile(), *out = open_memstream(&text, &size);
    fputs("s8 s5 s9\ns21 s15 s16 s21 s14 s18 s19\n", in);
    fflush(in);
    rewind(in);
    cpl_generate_options o = {.max_length = 10, .json = 1, .batch_size = 2,
                              .attention_folder = place_file(&m.place, "pictures", folder)};
    MUST(cpl_generate_lines(model, in, out, &o, NULL, NULL, err));
    fclose(in);
    fclose(out);
    char *line = text;
    for (int i = 0; i < 2; i++, line = strchr(line, '\n') + 1) {
        cpl_json *root;
        MUST(cpl_json_parse(&root, line, strcspn(line, "\n"), err));
        const cpl_json *attention = cpl_json_get(root, "attention"), *rows = cpl_json_get(attention, "weights");
        size_t columns = i == 0 ? 6 : 9;
        assert_int_equal(cpl_json_size(cpl_json_get(attention, "source")), columns);
        assert_true(cpl_json_size(rows) > 0);
        for (size_t t = 0; t < cpl_json_size(rows); t++) {
            double sum = 0;
            assert_int_equal(cpl_json_size(cpl_json_at(rows, t)), columns);
            for (size_t s = 0; s < columns; s++)
                sum += cpl_json_real(cpl_json_at(cpl_json_at(rows, t), s), 1e9);
            assert_true(fabs(sum - 1) < 1e-3);
        }
        cpl_json_free(root);
        MUST(cpl_file_read(place_file(&m.place, i ? "pictures/000002.svg" : "pictures/000001.svg", path), &svg, &size,
                           err));
        assert_int_equal(strstr(svg, "(padding)") != NULL, i == 0);
        cpl_release(svg);
    }
    free(text);
    cpl_model_close(model);
    end(&m);
}

/* The coverage penalty of a beam is over words, START and END; by hand from the weights of the output. */
static void a_coverage_penalty_leaves_padding_out(void **state)
{
    (void)state;
    importing m;
    const cpl_answer *answer;
    const cpl_line line = {.text = "s9", .length = 2, .number = 1};
    begin(&m, "unmasked", "type: translator");
    cpl_model *model = import(&m, PAD_TO);
    cpl_generate_options o = {.max_length = 20, .beam = 3, .coverage_penalty = 0.5, .attention_folder = m.place.folder};
    MUST(cpl_model_answer(model, &line, 1, &o, &answer, err));
    const cpl_decoded *output = &answer->output;
    assert_int_equal(output->source_length, PAD_TO);
    double sums[2] = {0, 0};
    for (int64_t s = 0; s < PAD_TO; s++) {
        double seen = 0;
        for (int64_t t = 0; t < output->length + output->finished; t++)
            seen += (double)output->attention[t * PAD_TO + s];
        sums[s >= 3] += log(fmin(fmax(seen, 1e-6), 1));
    }
    assert_true(output->finished && fabs(output->ranked - (output->score + 0.5 * sums[0])) < 1e-5);
    assert_true(fabs(sums[1]) > 1e-3); /* with padding it would be another number */
    cpl_model_close(model);
    end(&m);
}

/* ---- the autoencoder without a bottleneck ---- */

static void an_autoencoder_labels_no_padding(void **state)
{
    (void)state;
    importing m;
    double worst[ROWS];
    size_t tokens[ROWS];
    char *line, pairs[300], *text;
    begin(&m, "unmasked_autoencoder", "type: autoencoder");
    cpl_model *model = import(&m, PAD_TO);
    score(&m, model, "in.source", worst, tokens);
    assert_true(tokens[0] == 9 && tokens[1] == 5 && tokens[2] == 3);
    for (int i = 0; i < ROWS; i++)
        assert_true(worst[i] <= 2e-5);
    cpl_generate_options o = {.tokens = 1};
    MUST(cpl_generate(&line, model, "s8 s5 s9", &o, err)); /* at most one for each word and END */
    int words = *line != '\0';
    for (const char *at = line; *at; at++)
        words += *at == ' ';
    assert_true(words <= 4);
    cpl_free(line);
    MUST(cpl_evaluate(model, &(cpl_evaluate_options){.pairs = place_file(&m.place, "pairs.tsv", pairs), .json = 1,
                                                     .metrics = "loss"}, &text, err));
    cpl_json *root;
    MUST(cpl_json_parse(&root, text, strcspn(text, "\n"), err));
    double loss = cpl_json_real(cpl_json_get(cpl_json_get(root, "loss"), "score"), 1e9);
    assert_true(fabs(loss - golden_at(golden_find(&m.golden, "train.loss"), 0)) < 2e-5);
    cpl_json_free(root);
    cpl_free(text);
    cpl_model_close(model);
    end(&m);
}

/* ---- further training ---- */

/* Three steps of Adam from the imported weights: Keras's losses. The configuration says nothing of padding: what the
 * model was trained with travels with its weights. */
static void train_on(const char *name, const char *model, const char *more)
{
    importing m;
    char config[900], folder[300], path[300], log[300], *text;
    size_t size, steps = 0;
    begin(&m, name, model);
    cpl_model_close(import(&m, PAD_TO));
    snprintf(config, sizeof config, "model: {%s, units: 8}\ndata: {train: pairs.tsv, valid: pairs.tsv}\ntraining: "
             "{batch_size: 3, max_steps: 3, log_every: 1, show_examples: 2, threads: 1, epochs: 3%s, init: %s}\n",
             model, more, m.place.model);
    place_write(&m.place, "train.yaml", config);
    cpl_train_options o = {.config_path = place_file(&m.place, "train.yaml", path),
                           .folder = place_file(&m.place, "run", folder)};
    MUST(cpl_train(&o, err));
    MUST(cpl_file_read(place_file(&m.place, "run/log.jsonl", log), &text, &size, err));
    for (char *line = text; line < text + size; line = strchr(line, '\n') + 1) {
        cpl_json *root;
        MUST(cpl_json_parse(&root, line, strcspn(line, "\n"), err));
        const char *event = cpl_json_text(cpl_json_get(root, "event"), NULL);
        if (strcmp(event, "step") == 0) {
            double want = golden_at(golden_find(&m.golden, "train.loss"), (int64_t)steps++);
            assert_true(fabs(cpl_json_real(cpl_json_get(root, "loss"), 1e9) - want) <= 2e-5 * want);
        }
        if (strcmp(event, "epoch") == 0) { /* 17 of 27 source positions are words, START or END */
            double targets = strcmp(name, "unmasked") == 0 ? 10 : 0;
            double share = cpl_json_real(cpl_json_get(root, "valid_token_share"), 1e9);
            if (targets > 0)
                assert_true(fabs(share - (17 + targets) / (27 + targets)) < 1e-6);
        }
        cpl_json_free(root);
    }
    assert_int_equal(steps, 3);
    cpl_release(text);
    end(&m);
}

/* Case H06: what contradicts the weights is refused, both values named. */
static void other_padding_than_the_weights_is_refused(void **state)
{
    (void)state;
    static const char *const sets[][3] = {
        {"text.source.pad_to=6", "model.encoder.mask=false", "text.source.pad_to 9, but the configuration says 6"},
        {"model.encoder.mask=true", NULL, "model.encoder.mask false, but the configuration says true"}};
    importing m;
    char config[600], path[300], folder[300];
    begin(&m, "unmasked", "type: translator");
    cpl_model_close(import(&m, PAD_TO));
    snprintf(config, sizeof config, "model: {units: 8}\ndata: {train: pairs.tsv, valid: pairs.tsv}\n"
             "training: {init: %s}\n", m.place.model);
    place_write(&m.place, "train.yaml", config);
    for (int i = 0; i < 2; i++) {
        cpl_error err = CPL_ERROR_INIT;
        cpl_train_options o = {.config_path = place_file(&m.place, "train.yaml", path), .set = sets[i],
                               .set_count = i ? 1 : 2, .folder = place_file(&m.place, "run", folder)};
        assert_int_equal(cpl_train(&o, &err), CPL_USAGE);
        assert_non_null(strstr(err.line[0], sets[i][2]));
    }
    end(&m);
}

static void training_goes_on_as_in_keras(void **state)
{
    (void)state;
    train_on("unmasked", "type: translator", "");
    train_on("unmasked_autoencoder", "type: autoencoder", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_D03_padding_read_as_tokens),
        cmocka_unit_test(without_pad_to_values_differ),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(attention_shows_padding_as_one_column),
        cmocka_unit_test(a_coverage_penalty_leaves_padding_out),
        cmocka_unit_test(an_autoencoder_labels_no_padding),
        cmocka_unit_test(training_goes_on_as_in_keras),
        cmocka_unit_test(other_padding_than_the_weights_is_refused),
    };
    char *version = cpl_version_text();
    int is_missing = !version || strstr(version, "hdf5      missing") != NULL;
    cpl_free(version);
    if (is_missing)
        return 77; /* skipped */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
