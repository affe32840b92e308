/* A model that copies: names that stand in no vocabulary are learned from one set of lines and written from another,
 * in which no name of the first occurs. */
#include "api/api_test.h"

#include <math.h>
#include "api/attention.h"

enum { NAME = 9, TRAINED = 400, TRIED = 40 };

static void name_of(char name[NAME], uint32_t number)
{
    static const char letters[2][11] = {"bdfglmnrst", "aeiouaeiou"};
    number = number * 2654435761u;
    for (int i = 0; i < NAME - 1; i++, number = number / 7 + number * 31)
        name[i] = letters[i % 2][number % 10];
    name[NAME - 1] = '\0';
}

/* "name X" → "X"; every second line names two and turns them round. */
static void write_lines(const place *p, const char *file, uint32_t first, int lines)
{
    char path[300], a[NAME], b[NAME];
    FILE *f = fopen(place_file(p, file, path), "w");
    assert_non_null(f);
    for (int i = 0; i < lines; i++) {
        name_of(a, first + 2 * (uint32_t)i);
        name_of(b, first + 2 * (uint32_t)i + 1);
        if (i % 2)
            fprintf(f, "name %s\t%s\n", a, a);
        else
            fprintf(f, "this is %s and %s\t%s then %s\n", a, b, b, a);
    }
    assert_int_equal(fclose(f), 0);
}

static char shown[400];

static void keep_example(void *user, const cpl_progress_event *e)
{
    (void)user;
    if (strcmp(e->kind, "example") == 0)
        snprintf(shown, sizeof shown, "%s|%s", e->reference, e->output);
}

/* A run in the place's folder "m"; set: a choice of the model. */
static cpl_model *train(const place *p, const char *set)
{
    char config[300], folder[300];
    const char *sets[] = {"model.copy=true", set};
    cpl_error err = CPL_ERROR_INIT;
    cpl_model *m;
    write_lines(p, "train.tsv", 1, TRAINED);
    write_lines(p, "valid.tsv", 100001, TRIED);
    write_lines(p, "test.tsv", 200001, TRIED);
    place_write(p, "m.yaml",
                "model: {units: 24}\n"
                "text:\n"
                "  source: {tokens: space, min_count: 5}\n"
                "  target: {tokens: space, min_count: 5}\n"
                "data: {train: train.tsv, valid: valid.tsv}\n"
                "training: {batch_size: 8, epochs: 12, threads: 1, show_examples: 1, optimizer: {learning_rate: 1e-2}}"
                "\n");
    cpl_train_options o = {.config_path = place_file(p, "m.yaml", config), .folder = place_file(p, "m", folder),
                           .set = sets, .set_count = set ? 2 : 1, .overwrite = 1, .on_event = keep_example};
    must(cpl_train(&o, &err), &err);
    must(cpl_model_open(&m, folder, 1, &err), &err);
    return m;
}

static double figure(const char *json, const char *name)
{
    char key[40];
    snprintf(key, sizeof key, "\"%s\"", name);
    const char *at = strstr(json, key);
    at = at ? strstr(at, "\"score\":") : NULL;
    assert_non_null(at);
    return strtod(at + strlen("\"score\":"), NULL);
}

static void expect_all_right(const place *p, cpl_model *m)
{
    char pairs[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    cpl_evaluate_options o = {.pairs = place_file(p, "test.tsv", pairs), .json = 1, .metrics = "exact",
                              .generate = {.beam = 4, .length_penalty = 1}};
    must(cpl_evaluate(m, &o, &text, &err), &err);
    assert_true(figure(text, "exact") == 1); /* each path of a beam copies from its own line */
    cpl_free(text);
    o.generate = (cpl_generate_options){0}, o.metrics = NULL;
    must(cpl_evaluate(m, &o, &text, &err), &err);
    assert_true(figure(text, "exact") == 1);
    assert_true(figure(text, "accuracy") == 1);
    assert_true(figure(text, "loss") < 0.05);
    cpl_free(text);
}

/* Multi-head attention (of one head), the summarizer's step loop, additive attention, dot, and with coverage. */
static void unknown_names_are_written_exactly(void **state)
{
    (void)state;
    static const char *const models[] = {NULL, "model.type=summarizer", "model.decoder.attention.score=additive",
                                         "model.decoder.attention.score=dot", "model.coverage=0.5"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        place p;
        place_make(&p);
        cpl_model *m = train(&p, models[i]);
        size_t length;
        assert_int_equal(cpl_vocabulary_size(m->file->target), 5); /* no name, only "then" */
        assert_string_equal(cpl_vocabulary_token(m->file->target, 4, &length), "then");
        expect_all_right(&p, m);
        cpl_model_close(m);
        place_remove(&p);
    }
}

/* Several lines at once, blank ones between them, with the score that the references' loss says where
 * scores are shown. */
static void answers_keep_their_own_words(void **state)
{
    (void)state;
    place p;
    char pairs[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    const cpl_answer *answers;
    place_make(&p);
    cpl_model *m = train(&p, NULL);
    const char *const lines[] = {"name Zaphod", " ", "this is Trillian and Marvin", "name [END]", "name name"};
    const char *const outputs[] = {"Zaphod", "", "Marvin then Trillian", "[END]", "name"};
    cpl_line line[5];
    for (int i = 0; i < 5; i++)
        line[i] = (cpl_line){lines[i], strlen(lines[i]), i + 1};
    cpl_generate_options o = {0};
    for (int round = 0; round < 2; round++) { /* memory of the first serves the second */
        o.json = round;
        must(cpl_model_answer(m, line, 5, &o, &answers, &err), &err);
        assert_true(isnan(answers[2].output.score) == !o.json);
        for (int i = 0; i < 4; i++) {
            cpl_str out = {0};
            cpl_str_add(&out, "");
            cpl_model_write(m, &answers[i], 0, &out);
            assert_string_equal(out.data, outputs[i]);
            cpl_str_free(&out);
        }
    }
    double score = answers[2].output.score;
    assert_int_equal(answers[2].output.length, 3);
    place_write(&p, "one.tsv", "this is Trillian and Marvin\tMarvin then Trillian\n");
    cpl_evaluate_options e = {.pairs = place_file(&p, "one.tsv", pairs), .json = 1, .metrics = "loss"};
    must(cpl_evaluate(m, &e, &text, &err), &err);
    assert_true(fabs(figure(text, "loss") * 4 + score) < 1e-5);
    cpl_free(text);
    cpl_model_close(m);
    place_remove(&p);
}

/* The picture's labels are the words themselves, and the examples of a training run show them too. */
static void pictures_and_examples_show_the_words(void **state)
{
    (void)state;
    place p;
    char folder[300];
    cpl_error err = CPL_ERROR_INIT;
    const cpl_answer *answers;
    cpl_attention_view view = {0};
    place_make(&p);
    cpl_model *m = train(&p, NULL);
    char *bar = strchr(shown, '|');
    assert_non_null(bar);
    assert_memory_equal(shown, bar + 1, strlen(bar + 1));
    assert_int_equal(strlen(shown), 2 * strlen(bar + 1) + 1);
    assert_null(strstr(shown, "[UNK]"));
    cpl_line line = {"name Zaphod", 11, 1};
    cpl_generate_options o = {.attention_folder = place_file(&p, "pictures", folder)};
    must(cpl_model_answer(m, &line, 1, &o, &answers, &err), &err);
    must(cpl_attention_see(&view, m, &line, answers, &err), &err);
    assert_int_equal(view.picture.target.count, 2);
    assert_int_equal(view.picture.target.labels[0].length, 6);
    assert_memory_equal(view.picture.target.labels[0].text, "Zaphod", 6);
    assert_true(view.picture.weights[2] > 0.8f); /* [START] name Zaphod [END]: it looks at what it copies */
    cpl_attention_close(&view);
    cpl_model_close(m);
    place_remove(&p);
}

static void what_cannot_copy_is_refused(void **state)
{
    (void)state;
    static const char *const keys[][2] = {{"model.decoder.attention.heads", "2"},
                                          {"model.decoder.attention.score", "none"},
                                          {"text.source.tokens", "char"}};
    for (int i = 0; i < 5; i++) {
        int coverage = i > 2, k = i % 3;
        cpl_config *c;
        cpl_error err = CPL_ERROR_INIT;
        must(cpl_config_default(&c, &err), &err);
        must(cpl_config_set_pair(c, coverage ? "model.coverage=1" : "model.copy=true", &err), &err);
        must(cpl_config_set(c, "model.decoder.initial_state", "encoder", &err), &err);
        must(cpl_config_check(c, 0, &err), &err);
        must(cpl_config_set(c, keys[k][0], keys[k][1], &err), &err);
        assert_int_equal(cpl_config_check(c, 0, &err), CPL_USAGE);
        assert_non_null(strstr(err.line[0], coverage ? "'model.coverage' is set, but" : "'model.copy' is set, but"));
        assert_non_null(strstr(err.hint, k < 2 ? keys[k][0] : "text.target.tokens"));
        cpl_config_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names_are_written_exactly),
        cmocka_unit_test(answers_keep_their_own_words),
        cmocka_unit_test(pictures_and_examples_show_the_words),
        cmocka_unit_test(what_cannot_copy_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
