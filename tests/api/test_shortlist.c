/* Short lists: what is not listed is never chosen, what is listed keeps its logits, and lines do not depend on each
 * other's words. */
#include "api/run_text.h"

#include <math.h>
#include "api/model.h"

static const char TEXT[] = "a b c\n\nd e f g h\nz y\na b c\nq r s t u v w\n";

static const char *const force[] = {"q"};
static const cpl_generate_options kinds[] = {
    {.json = 1}, {.beam = 4, .json = 1}, {.beam = 4, .nbest = 3, .length_penalty = 1}, {.temperature = 1, .json = 1},
    {.temperature = 1, .top_k = 5, .json = 1}, {.no_repeat = 2, .min_length = 3, .json = 1},
    {.beam = 3, .force = force, .force_count = 1, .json = 1}, {.prefix = "q a", .json = 1}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Every letter may become every letter, so that all columns but the first few are gathered. */
static const char *full_lexicon(const place *p, char path[300])
{
    cpl_str text = {0};
    for (const char *from = ALPHABET; *from; from++)
        for (const char *to = ALPHABET; *to && *from != ' '; to++)
            if (*to != ' ')
                cpl_str_printf(&text, "%c\t%c\n", *from, *to);
    place_write(p, "full.tsv", text.data);
    cpl_str_free(&text);
    return place_file(p, "full.tsv", path);
}

/* Of models that end their step differently: attention after and before the cell, copying, no attention, tied. */
static void a_list_of_all_changes_no_bit(void **state)
{
    (void)state;
    static const char *const models[][2] = {
        {"model.decoder.attention.heads=2", "model.decoder.cell=gru"},
        {"model.decoder.attention.position=before", "model.decoder.attention.score=additive"},
        {"model.copy=true", "model.decoder.attention.heads=1"},
        {"model.decoder.attention.score=none", "model.decoder.initial_state=bridge"},
        {"model.tie=target", "model.decoder.cell=gru"},
        {"model.tie=all", "model.decoder.cell=lstm"}};
    for (int k = 0; k < 6; k++) {
        place p;
        char path[300];
        place_make(&p);
        model_write(&p, lively, models[k], 2);
        cpl_model *m = model_open(&p);
        for (int i = 0; i < KINDS; i++) {
            cpl_generate_options o = kinds[i];
            char *whole = run(&p, m, TEXT, &o);
            o.shortlist = WORDS;
            char *list = run(&p, m, TEXT, &o);
            assert_string_equal(list, whole);
            cpl_release(list);
            o.shortlist = 1;
            o.lexicon = full_lexicon(&p, path);
            list = run(&p, m, TEXT, &o);
            assert_string_equal(list, whole);
            cpl_release(whole);
            cpl_release(list);
        }
        cpl_model_close(m);
        place_remove(&p);
    }
}

/* Probabilities are shares among what is listed: of 4 special entries and N words. */
static void probabilities_are_shares_of_the_list(void **state)
{
    (void)state;
    place p;
    char path[300];
    place_make(&p);
    model_write(&p, uniform, NULL, 0);
    place_write(&p, "lexicon.tsv", "a\tx\t0.5\na\ty\t0.2\nb\tnothing\nb\tc\n");
    cpl_model *m = model_open(&p);
    cpl_generate_options o = {.json = 1, .max_length = 3, .batch_size = 2};
    static const struct {
        int64_t list;
        int lexicon;
        double entries[2]; /* of the lines "a z" and "b b" */
    } expected[] = {{0, 0, {30, 30}}, {10, 0, {14, 14}}, {1000, 0, {30, 30}}, {2, 1, {8, 7}}, {3, 1, {9, 7}}};
    for (int i = 0; i < 5; i++) {
        o.shortlist = expected[i].list;
        o.lexicon = expected[i].lexicon ? place_file(&p, "lexicon.tsv", path) : NULL;
        char *out = run(&p, m, "a z\nb b\n", &o), *at = out;
        for (int line = 0; line < 2; line++) {
            at = strstr(at, "\"score\": ") + strlen("\"score\": ");
            double score = strtod(at, &at);
            if (!(fabs(score + 3 * log(expected[i].entries[line])) < 1e-4))
                fail_msg("list %d, line %d: %.9g, expected -3 log %g", i, line, score, expected[i].entries[line]);
        }
        cpl_release(out);
    }
    cpl_model_close(m);
    place_remove(&p);
}

static int has(const char *line, const char *word)
{
    const char *end = strchr(line, '\n'), *at = line;
    size_t n = strlen(word);
    for (; at < end; at++)
        if (strncmp(at, word, n) == 0 && (at == line || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\n'))
            return 1;
    return 0;
}

/* With what its own words may become, and no others': in every batch. */
static void lines_have_their_own_words(void **state)
{
    (void)state;
    place p;
    char path[300];
    int own = 0;
    static const char lines[] = "a b\nc b\na c b\nb\nc\n";
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    place_write(&p, "lexicon.tsv", "a\tx\na\ty\nc\tz\nc\tw\nc\tu\n");
    cpl_model *m = model_open(&p);
    for (int64_t beam = 1; beam <= 3; beam += 2)
        for (int i = 0; i < 3; i++) {
            cpl_generate_options o = {.shortlist = 1, .lexicon = place_file(&p, "lexicon.tsv", path), .tokens = 1,
                                      .min_length = 4, .max_length = 8, .beam = beam, .no_repeat = i == 2 ? 2 : 0,
                                      .batch_size = 5};
            o.min_length = i == 0 ? 0 : 4;
            char *together = run(&p, m, lines, &o), *line = together;
            o.batch_size = 1;
            char *alone = run(&p, m, lines, &o);
            assert_string_equal(together, alone);
            for (int k = 0; k < 5; k++, line = strchr(line, '\n') + 1) {
                int has_a = k == 0 || k == 2, has_c = k == 1 || k == 2 || k == 4;
                int x = has(line, "x") || has(line, "y"), z = has(line, "z") || has(line, "w") || has(line, "u");
                assert_true((has_a || !x) && (has_c || !z));
                own += x + z;
                assert_false(has(line, "b") || has(line, "k"));
            }
            cpl_release(together);
            cpl_release(alone);
        }
    assert_true(own > 0); /* or the test would show nothing */
    cpl_model_close(m);
    place_remove(&p);
}

static void what_has_no_list_is_refused(void **state)
{
    (void)state;
    place p;
    cpl_error err = CPL_ERROR_INIT;
    cpl_model *m;
    char *text;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    m = model_open(&p);
    refuse(m, &(cpl_generate_options){.lexicon = "words"}, "shortlist is not given");
    refuse(m, &(cpl_generate_options){.shortlist = -1}, "shortlist is -1");
    refuse(m, &(cpl_generate_options){.shortlist = 3, .lexicon = "/nowhere/words"}, "/nowhere/words");
    must(cpl_generate(&text, m, "a b", &(cpl_generate_options){.shortlist = 3}, &err), &err);
    cpl_free(text);
    cpl_model_close(m);
    must(cpl_model_open_ensemble(&m, (const char *[]){p.model, p.model}, 2, 1, &err), &err);
    refuse(m, &(cpl_generate_options){.shortlist = 3}, "an ensemble has no short list");
    cpl_model_close(m);
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_all_changes_no_bit),
        cmocka_unit_test(probabilities_are_shares_of_the_list),
        cmocka_unit_test(lines_have_their_own_words),
        cmocka_unit_test(what_has_no_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
