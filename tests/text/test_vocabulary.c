/* Vocabularies: order, limits, the special entries, the model file's form, and lines through a codec. */
#include "text_test.h"

/* Counts the tokens of lines. The caller frees. */
static cpl_vocabulary_counter *counted(cpl_tokens kind, const char *const *lines, size_t n)
{
    cpl_vocabulary_counter *c = cpl_counter_new();
    cpl_token_list list = {0};
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(cpl_split(kind, lines[i], strlen(lines[i]), &list, NULL), CPL_OK);
        assert_int_equal(cpl_counter_add(c, list.items, list.count, NULL), CPL_OK);
    }
    cpl_token_list_free(&list);
    return c;
}

static cpl_vocabulary *built(cpl_tokens kind, const char *line, int64_t size, int64_t min_count)
{
    cpl_vocabulary *v;
    cpl_vocabulary_counter *c = counted(kind, &line, 1);
    assert_int_equal(cpl_vocabulary_build(&v, c, size, min_count, NULL), CPL_OK);
    cpl_counter_free(c);
    return v;
}

static void assert_entries(const cpl_vocabulary *v, const char *expected)
{
    cpl_str got = {0};
    for (int64_t id = CPL_ID_WORDS; id < cpl_vocabulary_size(v); id++) {
        size_t length;
        const char *token = cpl_vocabulary_token(v, id, &length);
        cpl_str_add_bytes(&got, token, length);
        cpl_str_add_char(&got, '|');
        assert_int_equal(cpl_vocabulary_id(v, token, length), id);
    }
    assert_string_equal(got.data ? got.data : "", expected);
    cpl_str_free(&got);
}

static void order_and_limits(void **state)
{
    (void)state;
    const char *line = "b a c a b aa d d d";
    cpl_vocabulary *v = built(CPL_TOKENS_SPACE, line, 0, 1);
    assert_entries(v, "d|b|a|c|aa|"); /* frequency, then reverse byte order */
    assert_int_equal(cpl_vocabulary_id(v, "e", 1), CPL_ID_UNKNOWN);
    assert_null(cpl_vocabulary_token(v, 9, NULL));
    assert_null(cpl_vocabulary_token(v, -1, NULL));
    assert_true(cpl_vocabulary_bytes(v) > 0);
    cpl_vocabulary_free(v);
    v = built(CPL_TOKENS_SPACE, line, 6, 1);
    assert_entries(v, "d|b|");
    cpl_vocabulary_free(v);
    v = built(CPL_TOKENS_SPACE, line, 0, 2);
    assert_entries(v, "d|b|a|");
    cpl_vocabulary_free(v);
    v = built(CPL_TOKENS_SPACE, "", 4, 1); /* an empty corpus: the special entries */
    assert_int_equal(cpl_vocabulary_size(v), 4);
    assert_string_equal(cpl_vocabulary_token(v, CPL_ID_PADDING, NULL), "");
    assert_string_equal(cpl_vocabulary_token(v, CPL_ID_UNKNOWN, NULL), "[UNK]");
    assert_string_equal(cpl_vocabulary_token(v, CPL_ID_START, NULL), "[START]");
    assert_string_equal(cpl_vocabulary_token(v, CPL_ID_END, NULL), "[END]");
    cpl_vocabulary_free(v);
    v = built(CPL_TOKENS_SPACE, "a aa ab", 0, 1);
    assert_entries(v, "ab|aa|a|"); /* a longer token before its prefix */
    cpl_vocabulary_free(v);
}

static void too_small_is_an_error(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    const char *line = "a b";
    cpl_vocabulary_counter *c = counted(CPL_TOKENS_SPACE, &line, 1);
    cpl_vocabulary *v;
    assert_int_equal(cpl_vocabulary_build(&v, c, 4, 1, &err), CPL_USAGE);
    assert_null(v);
    assert_string_equal(err.line[0],
                        "vocabulary size is 4, expected at least 5 (4 special entries and a word) or 0 for no limit");
    assert_int_equal(cpl_vocabulary_build(&v, c, -1, 1, &err), CPL_USAGE);
    cpl_counter_free(c);
}

static void checksum_sees_content_and_order(void **state)
{
    (void)state;
    cpl_vocabulary *a = built(CPL_TOKENS_SPACE, "x y y", 0, 1), *b = built(CPL_TOKENS_SPACE, "y x y", 0, 1);
    cpl_vocabulary *c = built(CPL_TOKENS_SPACE, "x x y", 0, 1), *d = built(CPL_TOKENS_SPACE, "xy", 0, 1);
    assert_true(cpl_vocabulary_checksum(a) == cpl_vocabulary_checksum(b));
    assert_true(cpl_vocabulary_checksum(a) != cpl_vocabulary_checksum(c));
    assert_true(cpl_vocabulary_checksum(a) != cpl_vocabulary_checksum(d));
    cpl_vocabulary_free(a);
    cpl_vocabulary_free(b);
    cpl_vocabulary_free(c);
    cpl_vocabulary_free(d);
}

static void through_json(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    cpl_vocabulary_counter *c = cpl_counter_new();
    const cpl_token tokens[] = {{"a\0b", 3}, {"\xE7\x8C\xAB", 3}, {"\"", 1}, {"x", 1}};
    assert_int_equal(cpl_counter_add(c, tokens, 4, NULL), CPL_OK);
    cpl_vocabulary *v, *again;
    assert_int_equal(cpl_vocabulary_build(&v, c, 0, 1, NULL), CPL_OK);
    cpl_json *array = cpl_vocabulary_to_json(v), *parsed;
    cpl_str text = {0};
    assert_int_equal(cpl_json_write(array, &text, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&parsed, text.data, text.length, NULL), CPL_OK);
    assert_int_equal(cpl_vocabulary_from_json(&again, parsed, NULL), CPL_OK);
    assert_int_equal(cpl_vocabulary_size(again), 8);
    assert_true(cpl_vocabulary_checksum(again) == cpl_vocabulary_checksum(v));
    assert_int_equal(cpl_vocabulary_id(again, "a\0b", 3), cpl_vocabulary_id(v, "a\0b", 3));
    cpl_json_free(array);
    cpl_json_free(parsed);
    cpl_str_free(&text);
    cpl_vocabulary_free(v);
    cpl_vocabulary_free(again);
    cpl_counter_free(c);
}

static void check_refused(const char *json, const char *expected)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_json *root;
    cpl_vocabulary *v;
    assert_int_equal(cpl_json_parse(&root, json, strlen(json), NULL), CPL_OK);
    assert_int_equal(cpl_vocabulary_from_json(&v, root, &err), CPL_USAGE);
    assert_null(v);
    assert_string_equal(err.line[0], expected);
    cpl_json_free(root);
}

static void damaged_json_is_refused(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    check_refused("{}", "vocabulary is neither a list nor a SentencePiece model");
    check_refused("[\"\"]", "vocabulary has 1 entries, expected at least 4");
    check_refused("[\"\", \"[UNK]\", \"a\", \"[END]\"]",
                  "vocabulary entry 2 is 'a', expected the special entry '[START]'");
    check_refused("[\"\", \"[UNK]\", \"[START]\", \"[END]\", \"house\", \"cat\", \"house\"]",
                  "vocabulary holds 'house' twice, as ids 4 and 6");
    check_refused("[\"\", \"[UNK]\", \"[START]\", \"[END]\", 7]", "vocabulary entry 4 of 5 is not text");
}

/* ---- the reference's own numbers ---- */

static void assert_ids(cpl_codec *codec, const char *line, size_t length, const cpl_json *expected, int wrapped)
{
    int32_t *ids = NULL;
    size_t capacity = 0, count, unknown, misses = 0;
    assert_int_equal(cpl_codec_encode(codec, line, length, &ids, &capacity, &count, &unknown, NULL), CPL_OK);
    assert_int_equal(count + (wrapped ? 2 : 0), cpl_json_size(expected));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(ids[i], cpl_json_int(cpl_json_at(expected, wrapped ? i + 1 : i), -1));
        misses += ids[i] == CPL_ID_UNKNOWN;
    }
    assert_int_equal(unknown, misses);
    cpl_release(ids);
}

static void tutorial_golden(void **state)
{
    (void)state;
    NEEDS_UNICODE();
    if (!cpl_json_available())
        skip();
    cpl_json *root = golden("text.json");
    const cpl_json *input = cpl_json_get(root, "input"), *words = cpl_json_get(root, "vocabulary");
    cpl_vocabulary_counter *c = cpl_counter_new();
    cpl_token_list list = {0};
    for (size_t i = 0; i < cpl_json_size(input); i++) {
        size_t length;
        const char *text = cpl_json_text(cpl_json_at(input, i), &length);
        char *line = standard(CPL_STANDARDIZE_TUTORIAL, text, length);
        assert_int_equal(cpl_split(CPL_TOKENS_SPACE, line, strlen(line), &list, NULL), CPL_OK);
        assert_int_equal(cpl_counter_add(c, list.items, list.count, NULL), CPL_OK);
        cpl_release(line);
    }
    cpl_vocabulary *v;
    assert_int_equal(cpl_vocabulary_build(&v, c, cpl_json_int(cpl_json_get(root, "max_tokens"), 0), 1, NULL), CPL_OK);
    assert_int_equal(cpl_vocabulary_size(v), cpl_json_size(words));
    for (size_t i = 0; i < cpl_json_size(words); i++)
        assert_string_equal(cpl_vocabulary_token(v, (int64_t)i, NULL), cpl_json_text(cpl_json_at(words, i), NULL));
    cpl_codec *codec;
    assert_int_equal(cpl_codec_new(&codec, (cpl_text_rules){CPL_TOKENS_SPACE, CPL_STANDARDIZE_TUTORIAL}, v, NULL),
                     CPL_OK);
    for (size_t i = 0; i < cpl_json_size(input); i++) {
        size_t length;
        const char *text = cpl_json_text(cpl_json_at(input, i), &length);
        assert_ids(codec, text, length, cpl_json_at(cpl_json_get(root, "ids"), i), 1);
    }
    const cpl_json *unseen = cpl_json_get(root, "unseen");
    const char *text = cpl_json_text(cpl_json_get(unseen, "text"), NULL);
    assert_ids(codec, text, strlen(text), cpl_json_get(unseen, "ids"), 0);
    cpl_codec_free(codec);
    cpl_vocabulary_free(v);
    cpl_counter_free(c);
    cpl_token_list_free(&list);
    cpl_json_free(root);
}

static void lines_back_from_ids(void **state)
{
    (void)state;
    cpl_vocabulary *v = built(CPL_TOKENS_WORD, "Well, \"no\" (he said).", 0, 1);
    cpl_codec *codec;
    assert_int_equal(cpl_codec_new(&codec, (cpl_text_rules){CPL_TOKENS_WORD, CPL_STANDARDIZE_NONE}, v, NULL), CPL_OK);
    int32_t *ids = NULL;
    size_t capacity = 0, count, unknown, tokens;
    const char *line = " Well,  he said (no). ";
    assert_int_equal(cpl_codec_encode(codec, line, strlen(line), &ids, &capacity, &count, &unknown, NULL), CPL_OK);
    assert_int_equal(unknown, 0);
    cpl_codec_tokens(codec, &tokens);
    assert_int_equal(tokens, count);
    cpl_str out = {0};
    cpl_codec_decode(codec, ids, count, 0, &out);
    assert_string_equal(out.data, "Well, he said (no).");
    cpl_str_clear(&out);
    int32_t well = cpl_vocabulary_id(v, "Well", 4);
    const int32_t with_specials[] = {CPL_ID_START, CPL_ID_PADDING, well, CPL_ID_UNKNOWN, 999, CPL_ID_END, well};
    cpl_codec_decode(codec, with_specials, 7, 0, &out);
    assert_string_equal(out.data, "Well [UNK] [UNK]");
    cpl_str_clear(&out);
    cpl_codec_decode(codec, ids, 3, 1, &out);
    assert_string_equal(out.data, "Well \xEF\xBF\xAD, he");
    assert_int_equal(cpl_codec_encode(codec, "a\xFF", 2, &ids, &capacity, &count, NULL, NULL), CPL_USAGE);
    assert_int_equal(cpl_codec_encode(codec, "", 0, &ids, &capacity, &count, &unknown, NULL), CPL_OK);
    assert_int_equal(count, 0);
    cpl_str_free(&out);
    cpl_release(ids);
    cpl_codec_free(codec);
    cpl_vocabulary_free(v);
}

/* ---- cases ---- */

/* Text that spells a special entry: unknown where it is one token, ordinary where it is cut; never a control id. */
static void case_E12_text_never_gives_control_ids(void **state)
{
    (void)state;
    size_t length[2];
    char *line[2] = {case_field("E12_user_specials.tsv", 1, 0, &length[0]),
                     case_field("E12_user_specials.tsv", 2, 1, &length[1])};
    for (int kind = CPL_TOKENS_SPACE; kind <= CPL_TOKENS_CHAR; kind++) {
        cpl_vocabulary_counter *c = counted((cpl_tokens)kind, (const char *const *)line, 2);
        cpl_vocabulary *v;
        cpl_codec *codec;
        assert_int_equal(cpl_vocabulary_build(&v, c, 0, 1, NULL), CPL_OK);
        assert_int_equal(cpl_codec_new(&codec, (cpl_text_rules){(cpl_tokens)kind, CPL_STANDARDIZE_NONE}, v, NULL),
                         CPL_OK);
        assert_int_equal(cpl_counter_statistics(c).specials, kind == CPL_TOKENS_SPACE ? 1 : 0); /* for the warning */
        for (int i = 0; i < 2; i++) {
            int32_t *ids = NULL;
            size_t capacity = 0, count, unknown;
            assert_int_equal(cpl_codec_encode(codec, line[i], length[i], &ids, &capacity, &count, &unknown, NULL),
                             CPL_OK);
            assert_int_equal(unknown, kind == CPL_TOKENS_SPACE && i == 0 ? 1 : 0);
            for (size_t k = 0; k < count; k++)
                assert_true(ids[k] == CPL_ID_UNKNOWN || ids[k] >= CPL_ID_WORDS);
            cpl_release(ids);
        }
        cpl_codec_free(codec);
        cpl_vocabulary_free(v);
        cpl_counter_free(c);
    }
    cpl_release(line[0]);
    cpl_release(line[1]);
}

/* Characters: counts, and ties in reverse byte order. White space: what the data report needs for its warning. */
static void case_E14_text_without_spaces(void **state)
{
    (void)state;
    size_t length;
    char *line[2] = {case_field("E14_cjk.tsv", 1, 0, &length), case_field("E14_cjk.tsv", 2, 0, &length)};
    cpl_vocabulary_counter *c = counted(CPL_TOKENS_CHAR, (const char *const *)line, 2);
    cpl_vocabulary *v;
    assert_int_equal(cpl_vocabulary_build(&v, c, 0, 1, NULL), CPL_OK);
    assert_entries(v, "\xE7\x88\xB1|\xE6\x88\x91|\xE7\x8C\xAB|\xE7\x8B\x97|"); /* 爱 我 猫 狗 */
    cpl_token_statistics s = cpl_counter_statistics(c);
    assert_int_equal(s.tokens, 6);
    assert_int_equal(s.types, 4);
    assert_int_equal(s.singletons, 2);
    uint64_t types;
    assert_int_equal(cpl_counter_known(c, v, &types), 6);
    assert_int_equal(types, cpl_counter_statistics(c).types);
    cpl_vocabulary_free(v);
    assert_int_equal(cpl_vocabulary_build(&v, c, 0, 2, NULL), CPL_OK); /* the two that occur twice */
    assert_entries(v, "\xE7\x88\xB1|\xE6\x88\x91|");
    assert_int_equal(cpl_counter_known(c, v, &types), 4);
    assert_int_equal(types, 2);
    cpl_vocabulary_free(v);
    cpl_counter_free(c);
    c = counted(CPL_TOKENS_SPACE, (const char *const *)line, 2);
    s = cpl_counter_statistics(c);
    assert_int_equal(s.tokens, 2);
    assert_int_equal(s.types, 2);
    assert_int_equal(s.singletons, 2);
    assert_int_equal(s.characters, 6); /* three on average */
    cpl_counter_free(c);
    cpl_release(line[0]);
    cpl_release(line[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_and_limits),
        cmocka_unit_test(too_small_is_an_error),
        cmocka_unit_test(checksum_sees_content_and_order),
        cmocka_unit_test(through_json),
        cmocka_unit_test(damaged_json_is_refused),
        cmocka_unit_test(tutorial_golden),
        cmocka_unit_test(lines_back_from_ids),
        cmocka_unit_test(case_E12_text_never_gives_control_ids),
        cmocka_unit_test(case_E14_text_without_spaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
