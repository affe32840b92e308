/* What outputs looked at, put to use: alignments in Pharaoh's form, and source words in the place of [UNK]. */
#include "api/run_text.h"

#include <math.h>
#include "api/alignment.h"
#include "api/dictionary.h"
#include "api/model.h"
#include "base/files.h"

static char *read_file(const char *path)
{
    char *data;
    size_t length;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_file_read(path, &data, &length, &err), &err);
    return data;
}

/* ---- alignments ---- */

/* START and END may get most of it: words alone are aligned. Ties go to the first. */
static void the_largest_weight_of_a_word_decides(void **state)
{
    (void)state;
    static const int32_t ids[] = {5, 6, 7, 8};
    static const float weights[] = {.1F, .2F, .3F, .3F, .1F, .9F, .01F, 0, .02F, .07F, 0, .5F, .5F, 0, 0, 0, 0, 0, 0, 1,
                                    .1F, .1F, .1F, .1F, .6F};
    const cpl_decoded d = {.ids = ids, .length = 4, .finished = 1, .attention = weights, .source_length = 5};
    const cpl_decoded empty = {.ids = ids, .length = 2, .attention = weights, .source_length = 2};
    cpl_str out = {0};
    cpl_alignment_write(&d, &out);
    assert_int_equal(out.length, strlen("1-0 2-1 0-2 0-3"));
    assert_memory_equal(out.data, "1-0 2-1 0-2 0-3", out.length);
    cpl_str_clear(&out);
    cpl_alignment_write(&empty, &out); /* a source without words */
    assert_int_equal(out.length, 0);
    cpl_str_free(&out);
}

static int lines_in(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void each_line_of_output_has_one(void **state)
{
    (void)state;
    place p;
    char path[300];
    place_make(&p);
    model_write(&p, lively, (const char *const[]){"model.decoder.attention.heads=2"}, 1);
    cpl_model *m = model_open(&p);
    cpl_generate_options o = {.alignments = place_file(&p, "alignments", path), .tokens = 1, .min_length = 3};
    char *out = run(&p, m, "a b c\n\nd e f g\n", &o), *text = read_file(path), *second = strchr(text, '\n') + 1;
    assert_int_equal(lines_in(text), 3);
    assert_int_equal(*second, '\n'); /* of the blank line */
    int tokens = 1, pairs = 0;
    for (const char *c = out; *c != '\n'; c++)
        tokens += *c == ' ';
    for (const char *c = text; *c != '\n'; c++)
        pairs += *c == '-';
    assert_int_equal(pairs, tokens);
    cpl_release(out);
    cpl_release(text);
    o.beam = 4, o.nbest = 3;
    out = run(&p, m, "a b c\n\nd e f g\n", &o), text = read_file(path);
    assert_int_equal(lines_in(text), lines_in(out));
    cpl_release(text);
    cpl_release(out);
    o.json = 1;
    out = run(&p, m, "a b c\n\nd e f g\n", &o), text = read_file(path);
    assert_int_equal(lines_in(text), 3);
    char expected[2000];
    snprintf(expected, sizeof expected, "\"alignment\": \"%.*s\"", (int)(strchr(text, '\n') - text), text);
    char *first = strstr(out, expected);
    if (!first || first > strchr(out, '\n'))
        fail_msg("no %s in %s", expected, out);
    assert_non_null(strstr(first + 1, expected)); /* in the list and of the best */
    cpl_release(text);
    cpl_release(out);
    cpl_model_close(m);
    place_remove(&p);
}

/* A model that reads its own output as given looks where it looked when it wrote it. */
static void given_targets_have_alignments(void **state)
{
    (void)state;
    static const char text[] = "a b c\nd e f g\nh i\n";
    for (int heads = 1; heads <= 2; heads++) {
        place p;
        char path[300], pairs[300], set[60], *at = NULL, *end;
        cpl_str tsv = {0};
        cpl_error err = CPL_ERROR_INIT;
        place_make(&p);
        snprintf(set, sizeof set, "model.decoder.attention.heads=%d", heads);
        const char *const sets[] = {set, "model.decoder.attention.score=multihead"};
        model_write(&p, lively, sets, 2);
        cpl_model *m = model_open(&p);
        cpl_generate_options o = {.alignments = place_file(&p, "alignments", path), .tokens = 1, .max_length = 6,
                                  .forbid = (const char *const[]){"[UNK]"}, .forbid_count = 1};
        char *out = run(&p, m, text, &o), *generated = read_file(path);
        at = out;
        for (const char *line = text; *line; line = strchr(line, '\n') + 1, at = end + 1) {
            end = strchr(at, '\n');
            cpl_str_printf(&tsv, "%.*s\t%.*s\n", (int)strcspn(line, "\n"), line, (int)(end - at), at);
        }
        place_write(&p, "pairs.tsv", tsv.data);
        FILE *scores = tmpfile();
        must(cpl_score_pairs(m, &(cpl_score_options){.pairs = place_file(&p, "pairs.tsv", pairs), .alignments = path,
                                                     .json = 1}, scores, &err), &err);
        char *scored = read_file(path), line[8192], expected[2000];
        assert_string_equal(scored, generated);
        assert_true(strchr(generated, '-') != NULL);
        rewind(scores);
        assert_non_null(fgets(line, sizeof line, scores));
        snprintf(expected, sizeof expected, "\"alignment\": \"%.*s\"", (int)strcspn(scored, "\n"), scored);
        assert_non_null(strstr(line, expected));
        fclose(scores);
        cpl_release(out), cpl_release(generated), cpl_release(scored);
        cpl_str_free(&tsv);
        cpl_model_close(m);
        place_remove(&p);
    }
}

static void without_attention_there_is_none(void **state)
{
    (void)state;
    place p;
    char path[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, (const char *const[]){"model.decoder.attention.score=none",
                                                  "model.decoder.initial_state=bridge"}, 2);
    place_write(&p, "pairs.tsv", "a\tb\n");
    place_write(&p, "in.txt", "a\n");
    cpl_model *m = model_open(&p);
    FILE *in = fopen(place_file(&p, "in.txt", path), "r"), *out = tmpfile();
    cpl_generate_options o = {.alignments = place_file(&p, "alignments", p.model)}; /* the model is open */
    assert_int_equal(cpl_generate_lines(m, in, out, &o, NULL, NULL, &err), CPL_USAGE);
    assert_true(says(&err, "this model has no attention"));
    err = (cpl_error)CPL_ERROR_INIT;
    assert_int_equal(cpl_generate(&text, m, "a", &(cpl_generate_options){.replace_unknown = 1}, &err), CPL_USAGE);
    assert_true(says(&err, "this model has no attention"));
    err = (cpl_error)CPL_ERROR_INIT;
    cpl_score_options s = {.pairs = place_file(&p, "pairs.tsv", path), .alignments = p.model};
    assert_int_equal(cpl_score_pairs(m, &s, out, &err), CPL_USAGE);
    assert_true(says(&err, "this model has no attention"));
    fclose(in);
    fclose(out);
    cpl_model_close(m);
    place_remove(&p);
}

/* ---- unknown words ---- */

/* Three tokens and END over [START] Haus an der [END], as a search could leave them: UNK looks at "an", at "Haus" (as
 * far as words go), and a known word in between. */
static const int32_t made[] = {CPL_ID_UNKNOWN, CPL_ID_WORDS, CPL_ID_UNKNOWN};
static const float looks[] = {.1F, .1F, .6F, .1F, .1F, 0, 0, 0, 1, 0, .5F, .2F, .1F, .1F, .1F, 0, 0, 0, 0, 1};

/* The answer to "Haus an der" with made[], written out. */
static char *replaced(cpl_model *m, const cpl_generate_options *o, int tokens, int beam)
{
    static const char text[] = "Haus an der";
    const cpl_line line = {.text = text, .length = sizeof text - 1, .number = 1};
    const cpl_answer *answers;
    cpl_error err = CPL_ERROR_INIT;
    cpl_str out = {0};
    must(cpl_model_answer(m, &line, 1, o, &answers, &err), &err);
    cpl_decoded d = {.ids = made, .length = 3, .finished = 1, .attention = looks, .source_length = 5}, list[2] = {d, d};
    list[1].length = 1;
    if (beam)
        d.nbest = list, d.nbest_count = 2;
    m->answers[0].output = d;
    must(cpl_replacer_apply(m, &line, 1, &err), &err);
    cpl_model_write(m, answers, tokens, &out);
    for (int64_t k = 0; k < answers->output.nbest_count; k++) {
        cpl_str_add(&out, " | ");
        cpl_model_write_output(m, answers, &answers->output.nbest[k], tokens, &out);
    }
    char *result = cpl_str_take(&out);
    assert_non_null(result);
    return result;
}

static void expect_replaced(cpl_model *m, const cpl_generate_options *o, int tokens, int beam, const char *expected)
{
    char *text = replaced(m, o, tokens, beam);
    assert_string_equal(text, expected);
    cpl_free(text);
}

static void unknown_words_become_what_they_looked_at(void **state)
{
    (void)state;
    place p;
    char path[300];
    place_make(&p);
    model_write(&p, lively, (const char *const[]){"text.source.standardize=nfkc_lower"}, 1);
    cpl_model *m = model_open(&p);
    cpl_generate_options o = {.replace_unknown = 1, .max_length = 2};
    expect_replaced(m, &o, 0, 0, "an a haus");
    expect_replaced(m, &o, 1, 0, "an a haus");
    expect_replaced(m, &o, 0, 1, "an a haus | an a haus | an");
    place_write(&p, "words.tsv", "Haus\thouse\t0.4\nhaus\thome building\t0.6\n\nder\tthe\nhaus\thome\t0.6\n");
    o.dictionary = place_file(&p, "words.tsv", path);
    expect_replaced(m, &o, 0, 0, "an a home building");
    expect_replaced(m, &o, 0, 1, "an a home building | an a home building | an");
    o.dictionary = NULL;
    expect_replaced(m, &o, 0, 0, "an a haus");
    cpl_model_close(m);
    place_remove(&p);
}

/* Nothing but [UNK]. */
static void ignorant(cpl_parameters *p)
{
    int64_t n;
    uniform(p);
    values_of(p, "decoder.output.bias", &n)[CPL_ID_UNKNOWN] = 10;
}

/* The whole way: the words are those that the alignment names, for a model that knows none of them. */
static void words_and_alignments_agree(void **state)
{
    (void)state;
    static const char *const words[] = {"rabe", "stern", "zug"};
    place p;
    char path[300];
    place_make(&p);
    model_write(&p, ignorant, NULL, 0);
    cpl_model *m = model_open(&p);
    for (int beam = 1; beam <= 3; beam += 2) {
        cpl_generate_options o = {.replace_unknown = 1, .max_length = 4, .min_length = 4, .beam = beam,
                                  .alignments = place_file(&p, "alignments", path)};
        char *out = run(&p, m, "rabe stern zug\nzug rabe stern\n", &o), *text = read_file(path), *pair = text, *word;
        word = strtok(out, " \n");
        for (int count = 0; count < 4; count++) {
            assert_non_null(word);
            assert_string_equal(word, words[strtol(pair, NULL, 10)]);
            word = strtok(NULL, " \n");
            pair += strcspn(pair, " \n") + 1;
        }
        assert_null(strstr(out, "[UNK]"));
        cpl_release(out);
        cpl_release(text);
    }
    cpl_model_close(m);
    place_remove(&p);
}

static void what_cannot_be_replaced_is_told(void **state)
{
    (void)state;
    place p;
    char path[300];
    place_make(&p);
    model_write(&p, lively, (const char *const[]){"text.target.tokens=char"}, 1);
    cpl_model *m = model_open(&p);
    refuse(m, &(cpl_generate_options){.replace_unknown = 1}, "the target's tokens are characters");
    cpl_model_close(m);
    model_write(&p, lively, (const char *const[]){"text.source.tokens=byte"}, 1);
    m = model_open(&p);
    refuse(m, &(cpl_generate_options){.replace_unknown = 1}, "the source's tokens are bytes");
    cpl_model_close(m);
    model_write(&p, lively, NULL, 0);
    m = model_open(&p);
    cpl_generate_options o = {.dictionary = place_file(&p, "words.tsv", path)};
    refuse(m, &o, "replace-unknown is not given");
    o.replace_unknown = 1;
    refuse(m, &o, "words.tsv");
    place_write(&p, "words.tsv", "a\tb\nno tab\n");
    refuse(m, &o, "line 2");
    place_write(&p, "words.tsv", "a\tb\tlikely\n");
    refuse(m, &o, "the probability is 'likely'");
    place_write(&p, "words.tsv", "a\t\n");
    refuse(m, &o, "the target is empty");
    place_write(&p, "words.tsv", "a\t\xff\n");
    refuse(m, &o, "UTF-8");
    cpl_model_close(m);
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_weight_of_a_word_decides),
        cmocka_unit_test(each_line_of_output_has_one),
        cmocka_unit_test(given_targets_have_alignments),
        cmocka_unit_test(without_attention_there_is_none),
        cmocka_unit_test(unknown_words_become_what_they_looked_at),
        cmocka_unit_test(words_and_alignments_agree),
        cmocka_unit_test(what_cannot_be_replaced_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
