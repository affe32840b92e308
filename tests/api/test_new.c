/* test_new.c: a configuration chosen from data: what is chosen for which kind of data, and that it is accepted as it
 * is by plan and train. */
#include "api/api_test.h"

#include <sys/stat.h>
#include "base/files.h"
#include "base/str.h"

static place here;

static int set_up(void **state)
{
    (void)state;
    place_make(&here);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    place_remove(&here);
    return 0;
}

static char *chosen(const char *name, int swap)
{
    char path[300], *text = NULL;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_new_config(place_file(&here, name, path), swap, &text, &err), &err);
    assert_non_null(text);
    return text;
}

/* Both commands take the text as it is; training ends after two steps. */
static void accepted(const char *text)
{
    static const char *const few[] = {"training.max_steps=2", "training.show_examples=0"};
    char path[300], folder[300], *plan = NULL;
    cpl_error err = CPL_ERROR_INIT;
    place_write(&here, "x.yaml", text);
    cpl_train_options o = {.config_path = place_file(&here, "x.yaml", path), .threads = 1,
                           .folder = place_file(&here, "run", folder), .overwrite = 1};
    must(cpl_plan(&o, 0, &plan, &err), &err);
    cpl_free(plan);
    o.set = few, o.set_count = 2;
    must(cpl_train(&o, &err), &err);
}

/* Runs of blanks count as one. */
static void expect(const char *text, const char *part)
{
    cpl_str squeezed = {0};
    for (const char *p = text; *p; p++)
        if (*p != ' ' || p[1] != ' ')
            cpl_str_add_char(&squeezed, *p);
    if (!strstr(squeezed.data, part))
        fail_msg("'%s' is not in:\n%s", part, text);
    cpl_str_free(&squeezed);
}

/* Lines of `words` numbers' names on each side, from a list of `types`; `end` closes each side. */
static void put_words(const char *name, int pairs, int types, int source, int target, const char *end)
{
    cpl_str text = {0};
    unsigned long long at = 1;
    for (int i = 0; i < pairs; i++)
        for (int side = 0; side < 2; side++) {
            int n = side ? target : source;
            for (int k = 0; k < n; k++) {
                at = at * 6364136223846793005u + 1442695040888963407u;
                cpl_str_printf(&text, "%sw%llu", k ? " " : "", (at >> 33) % (unsigned)types);
            }
            cpl_str_printf(&text, "%s%c", end, side ? '\n' : '\t');
        }
    assert_false(text.failed);
    place_write(&here, name, text.data);
    cpl_str_free(&text);
}

static void sentences_are_words(void **state)
{
    (void)state;
    put_words("train.tsv", 1200, 3000, 8, 7, ".");
    char *text = chosen("train.tsv", 0), *again = chosen("train.tsv", 0);
    assert_string_equal(text, again);
    expect(text, "type: translator");
    expect(text, " tokens: word # sentences: 9.0 words a line");
    expect(text, "standardize: nfkc_lower");
    expect(text, "valid: 5%");
    expect(text, "1140 training pairs are 36 steps");
    accepted(text);
    cpl_free(text);
    cpl_free(again);
}

static void text_that_was_split_is_not_split_again(void **state)
{
    (void)state;
    put_words("train.tsv", 300, 3000, 8, 7, " .");
    char *text = chosen("train.tsv", 0);
    expect(text, "tokens: space # split already: 300 marks .,!? stand apart, 0");
    accepted(text);
    cpl_free(text);
}

static void letters_apart_are_symbols(void **state)
{
    (void)state;
    cpl_str text = {0};
    for (int i = 0; i < 200; i++)
        cpl_str_printf(&text, "%c %c %c +N +PL\t%c %c %c s\n", 'a' + i % 26, 'a' + i * 7 % 26, 'a' + i * 3 % 26,
                       'a' + i % 26, 'a' + i * 7 % 26, 'a' + i * 3 % 26);
    place_write(&here, "train.tsv", text.data);
    cpl_str_free(&text);
    char *c = chosen("train.tsv", 0);
    expect(c, "a closed set: only 28 different tokens between spaces");
    expect(c, "100 % of what stands between spaces is one character");
    expect(c, "units: 192");
    expect(c, "monitor: val_accuracy");
    accepted(c);
    cpl_free(c);
}

/* Words spelt together, and a script without spaces. */
static void words_and_scripts_without_spaces_are_characters(void **state)
{
    (void)state;
    cpl_str text = {0};
    for (int i = 0; i < 100; i++)
        cpl_str_printf(&text, "word%dx%d\t%d\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u306f\u7a7a\u767d\u3092\u4f7f\u308f"
                       "\u305a\u306b\u66f8\u304b\u308c\u308b\u306e\u3067\u5358\u8a9e\u306e\u5883\u76ee\u304c"
                       "\u898b\u3048"
                       "\u306a\u3044\u3068\u3044\u3046\u3053\u3068\u306b\u306a\u308b\u304b\u3082"
                       "\u3057\u308c\u306a\u3044"
                       "\n", i, i * i, i);
    place_write(&here, "train.tsv", text.data);
    cpl_str_free(&text);
    char *c = chosen("train.tsv", 0);
    expect(c, "tokens: char # a line is a word: 1.0 of ");
    expect(c, "tokens: char # no spaces between words");
    accepted(c);
    cpl_free(c);
}

/* The target is the source's beginning: a summary that copies; the other way round it is neither. */
static void long_sources_are_summarized(void **state)
{
    (void)state;
    cpl_str text = {0};
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 45; k++)
            cpl_str_printf(&text, "n%d ", i * 17 + k * 31);
        cpl_str_printf(&text, "end.\tn%d n%d n%d\n", i * 17, i * 17 + 31, i * 17 + 62);
    }
    place_write(&here, "train.tsv", text.data);
    cpl_str_free(&text);
    char *c = chosen("train.tsv", 0), *swapped = chosen("train.tsv", 1);
    expect(c, "type: summarizer # long sources, short targets: 47.0 tokens to 3.0");
    expect(c, "copy: true # 100 % of the target's words stand in their");
    assert_null(strstr(c, "label_smoothing"));
    accepted(c);
    expect(swapped, "type: translator # 3.0 tokens to 47.0");
    expect(swapped, "swap: true");
    accepted(swapped);
    cpl_free(c);
    cpl_free(swapped);
}

static void lines_that_are_much_longer_are_left_out(void **state)
{
    (void)state;
    cpl_str text = {0};
    for (int i = 0; i < 200; i++)
        cpl_str_printf(&text, "a%d b%d c%d d%d e%d\tf%d g%d h%d.\n", i, i, i, i, i, i, i, i);
    for (int k = 0; k < 300; k++)
        cpl_str_printf(&text, "z%d ", k);
    cpl_str_add(&text, "\tf g h.\n");
    place_write(&here, "train.tsv", text.data);
    cpl_str_free(&text);
    char *c = chosen("train.tsv", 0);
    expect(c, " max_length: 10 # the longest has 300, 95 % have at most 5, 99 %");
    accepted(c);
    cpl_free(c);
}

/* tok.train.tsv has tok.valid.tsv for validation, not the valid.tsv of another form; odd names are quoted. */
static void validation_pairs_stand_beside(void **state)
{
    (void)state;
    char folder[300];
    assert_int_equal(mkdir(place_file(&here, "a \"b\" #c", folder), 0777), 0);
    put_words("a \"b\" #c/tok.train.tsv", 100, 400, 5, 5, ".");
    put_words("a \"b\" #c/valid.tsv", 7, 400, 5, 5, ".");
    char *c = chosen("a \"b\" #c/tok.train.tsv", 0);
    expect(c, "valid: 5%");
    accepted(c);
    cpl_free(c);
    put_words("a \"b\" #c/tok.valid.tsv", 9, 400, 5, 5, ".");
    c = chosen("a \"b\" #c/tok.train.tsv", 0);
    expect(c, "tok.valid.tsv\"");
    expect(c, "# stands beside it: 9 pairs");
    accepted(c);
    cpl_free(c);
}

static void several_targets_are_told(void **state)
{
    (void)state;
    place_write(&here, "train.tsv", "a b.\tc d.\na b.\te f.\na b.\tg h.\nx y.\tz z.\nx y.\tz z.\n");
    char *c = chosen("train.tsv", 0);
    expect(c, "# 1 of 2 different sources have several targets: 'couplet evaluate --group source'");
    cpl_free(c);
}

static void refuse(const char *path, const char *why, const char *hint)
{
    char *text = NULL;
    cpl_error err = CPL_ERROR_INIT;
    int found = 0;
    assert_int_equal(cpl_new_config(path, 0, &text, &err), CPL_USAGE);
    assert_null(text);
    for (int i = 0; i < err.lines; i++)
        found |= strstr(err.line[i], why) != NULL;
    assert_true(found);
    assert_non_null(strstr(err.hint, hint));
}

static void what_training_would_refuse_is_refused(void **state)
{
    (void)state;
    char path[300];
    place_write(&here, "odd.tsv", "a\tb\nno tab here\n");
    refuse(place_file(&here, "odd.tsv", path), "line 2", "");
    place_write(&here, "empty.tsv", "\n\n");
    refuse(place_file(&here, "empty.tsv", path), "holds no pairs", "");
    refuse("-", "standard input", "write them to a file");
    refuse("bad\xff.tsv", "not UTF-8", "rename");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sentences_are_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(text_that_was_split_is_not_split_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(letters_apart_are_symbols, set_up, tear_down),
        cmocka_unit_test_setup_teardown(words_and_scripts_without_spaces_are_characters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_sources_are_summarized, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lines_that_are_much_longer_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(validation_pairs_stand_beside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(several_targets_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_training_would_refuse_is_refused, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
