/* Splitting: tokens worked out by hand, and that joining undoes it for every text. */
#include "base/hash.h"
#include "text_test.h"

#define J "\xEF\xBF\xAD" /* the joiner */
#define Q "\xEF\xBF\xAE" /* the escape */

static void words(void **state)
{
    (void)state;
    assert_tokens(CPL_TOKENS_WORD, "", "");
    assert_tokens(CPL_TOKENS_WORD, "  \t ", "");
    assert_tokens(CPL_TOKENS_WORD, "Hi.", "Hi|" J ".");
    assert_tokens(CPL_TOKENS_WORD, "He said: \"no!\"", "He|said|" J ":|\"" J "|no|" J "!|" J "\"");
    assert_tokens(CPL_TOKENS_WORD, "don't e-mail John's", "don't|e|" J "-" J "|mail|John's");
    assert_tokens(CPL_TOKENS_WORD, "the boys' 'tis", "the|boys|" J "'|'" J "|tis");
    assert_tokens(CPL_TOKENS_WORD, "1,000 3.14 1990-95 v2.0.", "1,000|3.14|1990|" J "-" J "|95|v2.0|" J ".");
    assert_tokens(CPL_TOKENS_WORD, "a , b", "a|,|b");
    assert_tokens(CPL_TOKENS_WORD, "(a)", "(" J "|a|" J ")");
    assert_tokens(CPL_TOKENS_WORD, "...", ".|" J ".|" J ".");
    assert_tokens(CPL_TOKENS_WORD, "snake_case x", "snake_case|x");
}

static void words_beyond_ascii(void **state)
{
    (void)state;
    NEEDS_UNICODE();
    assert_tokens(CPL_TOKENS_WORD, "\xC2\xBFT\xC3\xBA?", "\xC2\xBF" J "|T\xC3\xBA|" J "?"); /* ¿Tú? */
    assert_tokens(CPL_TOKENS_WORD,
                  "l\xE2\x80\x99"
                  "eau",
                  "l\xE2\x80\x99"
                  "eau");                                                   /* typographic apostrophe */
    assert_tokens(CPL_TOKENS_WORD, "cafe\xCC\x81!", "cafe\xCC\x81|" J "!"); /* a mark stays with its letter */
    /* A family linked by zero-width joiners, and a heart with a variation selector. */
    assert_tokens(CPL_TOKENS_WORD, "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 \xE2\x9D\xA4\xEF\xB8\x8F!",
                  "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7|\xE2\x9D\xA4\xEF\xB8\x8F|" J "!");
    /* The joiner and the escape in the text itself. */
    assert_tokens(CPL_TOKENS_WORD, J, Q "j");
    assert_tokens(CPL_TOKENS_WORD, "a" J "b " Q "j", "a|" J Q "j" J "|b|" Q "e" J "|j");
}

static void spaces_and_characters(void **state)
{
    (void)state;
    assert_tokens(CPL_TOKENS_SPACE, " don't  stop, e-mail!\t", "don't|stop,|e-mail!");
    assert_tokens(CPL_TOKENS_CHAR, "a b", "a| |b");
    assert_tokens(CPL_TOKENS_CHAR, "e\xCC\x81\xC3\xA9", "e|\xCC\x81|\xC3\xA9"); /* code points */
}

static void made_up_rows_join(void **state)
{
    (void)state;
    static const cpl_token tokens[] = {{J ".", 4}, {"a", 1}, {J, 3}, {"b", 1}, {"(" J, 4}, {J ")", 4}, {"", 0}, {Q, 3}};
    cpl_str out = {0};
    cpl_join(CPL_TOKENS_WORD, tokens, sizeof tokens / sizeof *tokens, &out);
    assert_string_equal(out.data, ". a b ()  " Q);
    cpl_str_free(&out);
}

/* ---- the property: joining undoes splitting ---- */

static int in_list(const char *p, const char *end, size_t *n)
{
    static const char *const spaces[] = {" ",
                                         "\t",
                                         "\n",
                                         "\v",
                                         "\f",
                                         "\r",
                                         "\xC2\x85",
                                         "\xC2\xA0",
                                         "\xE1\x9A\x80",
                                         "\xE2\x80\x80",
                                         "\xE2\x80\x83",
                                         "\xE2\x80\x8A",
                                         "\xE2\x80\x8B",
                                         "\xE2\x80\xA8",
                                         "\xE2\x80\xA9",
                                         "\xE2\x80\xAF",
                                         "\xE2\x81\x9F",
                                         "\xE3\x80\x80"};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        *n = strlen(spaces[i]);
        if ((size_t)(end - p) >= *n && memcmp(p, spaces[i], *n) == 0)
            return 1;
    }
    return 0;
}

static void collapse(const char *p, size_t length, cpl_str *out)
{
    int pending = 0;
    for (const char *end = p + length; p < end;) {
        size_t n;
        if (in_list(p, end, &n)) {
            pending = 1;
            p += n;
            continue;
        }
        if (pending && out->length)
            cpl_str_add_char(out, ' ');
        pending = 0;
        cpl_str_add_char(out, *p++);
    }
}

static void check_undone(cpl_tokens kind, const char *text, size_t length, cpl_token_list *list)
{
    cpl_str expected = {0}, got = {0};
    if (kind == CPL_TOKENS_CHAR)
        cpl_str_add_bytes(&expected, text, length);
    else
        collapse(text, length, &expected);
    assert_int_equal(cpl_split(kind, text, length, list, NULL), CPL_OK);
    cpl_join(kind, list->items, list->count, &got);
    assert_int_equal(got.length, expected.length);
    if (got.length)
        assert_memory_equal(got.data, expected.data, got.length);
    for (size_t i = 0; i < list->count; i++)
        assert_true(list->items[i].length > 0);
    cpl_str_free(&expected);
    cpl_str_free(&got);
}

static void joining_undoes_splitting(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "\"Quoted,\" he said (twice) [sic] {x}.",
        "https://www.example.com/a_b?c=1&d=%20#e",
        "a@b.org, C++ & C#; 50% -5 +3",
        "rock'n'roll 'n' ''",
        "\xE6\x88\x91\xE7\x88\xB1\xE7\x8C\xAB\xE3\x80\x82\xE3\x80\x8C\xE7\x8C\xAB\xE3\x80\x8D",
        "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD!\xF0\x9F\x98\x80x",
        J J Q Q "j" Q "e" J "a" J " " J,
        "\xC2\xAB"
        "bon\xC2\xA0"
        "mot\xC2\xA0\xC2\xBB\xE2\x80\xA6",
        "[END] [START] [UNK]",
        "\xE2\x80\x8F\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D\xE2\x80\x8E."};
    cpl_token_list list = {0};
    for (int kind = CPL_TOKENS_SPACE; kind <= CPL_TOKENS_CHAR; kind++)
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
            if (kind != CPL_TOKENS_WORD || cpl_unicode_available() || cpl_is_ascii(lines[i], strlen(lines[i])))
                check_undone((cpl_tokens)kind, lines[i], strlen(lines[i]), &list);
    cpl_token_list_free(&list);
}

/* Random rows of pieces that are likely to disagree with each other, ill-formed bytes and NUL included. */
static void joining_undoes_splitting_of_anything(void **state)
{
    (void)state;
    NEEDS_UNICODE();
    static const struct {
        const char *bytes;
        size_t n;
    } pieces[] = {{"a", 1},
                  {"B", 1},
                  {"7", 1},
                  {" ", 1},
                  {"  ", 2},
                  {"\t", 1},
                  {"\0", 1},
                  {"'", 1},
                  {"\"", 1},
                  {".", 1},
                  {",", 1},
                  {"-", 1},
                  {"_", 1},
                  {"(", 1},
                  {"]", 1},
                  {"/", 1},
                  {"\x7F", 1},
                  {J, 3},
                  {Q, 3},
                  {"j", 1},
                  {"e", 1},
                  {"\xC3\xA9", 2},
                  {"\xCC\x81", 2},
                  {"\xE2\x80\x8D", 3},
                  {"\xE2\x80\x8B", 3},
                  {"\xC2\xA0", 2},
                  {"\xE3\x80\x80", 3},
                  {"\xE7\x8C\xAB", 3},
                  {"\xF0\x9F\x98\x80", 4},
                  {"\xF0\x9F\x8F\xBD", 4},
                  {"\xE2\x80\xA8", 3},
                  {"\xEF\xBB\xBF", 3},
                  {"\xEF\xB8\x8F", 3},
                  {"\xE2\x80\x99", 3},
                  {"\xFF", 1},
                  {"\xEF\xBF", 2},
                  {"\xC2\xAD", 2},
                  {"\xC2\xBD", 2},
                  {"\xEF", 1}};
    const size_t n = sizeof pieces / sizeof *pieces;
    cpl_token_list list = {0};
    cpl_str text = {0};
    uint64_t key = cpl_random_key(7, 1, 2), counter = 0;
    for (int round = 0; round < 30000; round++) {
        cpl_str_clear(&text);
        size_t length = (size_t)cpl_random_below(key, counter++, 14);
        for (size_t i = 0; i < length; i++) {
            size_t k = (size_t)cpl_random_below(key, counter++, n);
            cpl_str_add_bytes(&text, pieces[k].bytes, pieces[k].n);
        }
        for (int kind = CPL_TOKENS_SPACE; kind <= CPL_TOKENS_CHAR; kind++)
            check_undone((cpl_tokens)kind, text.data ? text.data : "", text.length, &list);
    }
    cpl_token_list_free(&list);
    cpl_str_free(&text);
}

/* ---- cases ---- */

static void assert_field(const char *file, int line, cpl_tokens kind, const char *expected)
{
    size_t length;
    char *text = case_field(file, line, 0, &length), *got = shown(kind, text, length);
    assert_string_equal(got, expected);
    cpl_release(text);
    cpl_release(got);
}

/* Line separators are white space; the files have three lines each, by LF alone. */
static void case_E05_line_separators_are_white_space(void **state)
{
    (void)state;
    assert_field("E05_line_separators.src", 1, CPL_TOKENS_SPACE, "one|still|one");
    assert_field("E05_line_separators.src", 2, CPL_TOKENS_SPACE, "two|still|two");
    assert_field("E05_line_separators.src", 3, CPL_TOKENS_SPACE, "three|still|three|and|on");
    assert_field("E05_line_separators.tgt", 3, CPL_TOKENS_SPACE, "tres");
}

static void case_E13_unicode_spaces_separate(void **state)
{
    (void)state;
    static const char *const expected[] = {"a|b", "c|d", "e|f", "lead|and|trail"};
    for (int i = 0; i < 4; i++) {
        assert_field("E13_spaces.tsv", i + 1, CPL_TOKENS_SPACE, expected[i]);
        if (cpl_unicode_available())
            assert_field("E13_spaces.tsv", i + 1, CPL_TOKENS_WORD, expected[i]);
    }
}

/* A NUL is a character like others: two tokens, the first of three bytes; the target is not lost. */
static void case_E15_nul_inside_a_line(void **state)
{
    (void)state;
    size_t length;
    char *text = case_field("E15_nul.tsv", 1, 0, &length);
    cpl_token_list list = {0};
    cpl_str line = {0};
    assert_int_equal(length, 5);
    assert_int_equal(cpl_standardize_text(CPL_STANDARDIZE_NFKC_LOWER, text, length, &line, NULL, NULL, NULL), CPL_OK);
    assert_int_equal(cpl_split(CPL_TOKENS_SPACE, line.data, line.length, &list, NULL), CPL_OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.items[0].length, 3);
    assert_memory_equal(list.items[0].text, "a\0b", 3);
    cpl_release(text);
    text = case_field("E15_nul.tsv", 1, 1, &length);
    assert_int_equal(length, 3);
    assert_memory_equal(text, "x y", 3);
    cpl_release(text);
    cpl_str_free(&line);
    cpl_token_list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(words_beyond_ascii),
        cmocka_unit_test(spaces_and_characters),
        cmocka_unit_test(made_up_rows_join),
        cmocka_unit_test(joining_undoes_splitting),
        cmocka_unit_test(joining_undoes_splitting_of_anything),
        cmocka_unit_test(case_E05_line_separators_are_white_space),
        cmocka_unit_test(case_E13_unicode_spaces_separate),
        cmocka_unit_test(case_E15_nul_inside_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
