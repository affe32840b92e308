/* Bytes and subwords: pieces, ids and joined text as SentencePiece's Python package gives them (subwords/), models that
 * are learned here, and what is refused. */
#include "support/run.h"
#include "text/text_test.h"

#define NEEDS_SUBWORDS()                                                                                               \
    do {                                                                                                               \
        if (!cpl_subwords_available())                                                                                 \
            skip();                                                                                                    \
    } while (0)

static cpl_json *fixture(void)
{
    return golden("../text/subwords/subwords.json");
}

static cpl_vocabulary *given(const char *name)
{
    char path[512], *model;
    size_t length;
    cpl_vocabulary *v;
    snprintf(path, sizeof path, "%s/text/subwords/%s.model", CPL_TEST_DATA, name);
    assert_int_equal(cpl_file_read(path, &model, &length, NULL), CPL_OK);
    assert_true(cpl_is_subword_model(model, length));
    assert_int_equal(cpl_vocabulary_from_model(&v, model, length, name, NULL), CPL_OK);
    cpl_release(model);
    return v;
}

static void assert_text(const cpl_json *value, const char *text, size_t length)
{
    size_t expected;
    const char *want = cpl_json_text(value, &expected);
    assert_int_equal(length, expected);
    if (length)
        assert_memory_equal(text, want, length);
}

/* One text: pieces, ids, and the pieces joined again. */
static void check_case(cpl_codec *codec, const cpl_json *c)
{
    int32_t *ids = NULL;
    size_t capacity = 0, count, unknown, length, tokens;
    const char *text = cpl_json_text(cpl_json_get(c, "text"), &length);
    const cpl_json *pieces = cpl_json_get(c, "pieces"), *want = cpl_json_get(c, "ids");
    assert_int_equal(cpl_codec_encode(codec, text, length, &ids, &capacity, &count, &unknown, NULL), CPL_OK);
    const cpl_token *token = cpl_codec_tokens(codec, &tokens);
    assert_int_equal(count, cpl_json_size(want));
    assert_int_equal(tokens, cpl_json_size(pieces));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(ids[i], cpl_json_int(cpl_json_at(want, i), -1));
        assert_text(cpl_json_at(pieces, i), token[i].text, token[i].length);
    }
    assert_int_equal(unknown == 0, cpl_json_bool(cpl_json_get(c, "known"), 0));
    cpl_str joined = {0};
    cpl_codec_join(codec, token, tokens, &joined);
    assert_text(cpl_json_get(c, "joined"), joined.data, joined.length);
    cpl_str_free(&joined);
    cpl_release(ids);
}

/* An output: "\n" stands in none, since an output is a line. */
static void check_output(const cpl_codec *codec, const cpl_json *o)
{
    int32_t ids[200];
    const cpl_json *list = cpl_json_get(o, "ids");
    for (size_t i = 0; i < cpl_json_size(list); i++)
        ids[i] = (int32_t)cpl_json_int(cpl_json_at(list, i), -1);
    cpl_str text = {0};
    cpl_codec_decode(codec, ids, cpl_json_size(list), 0, &text);
    assert_text(cpl_json_get(o, "text"), text.data, text.length);
    cpl_str_free(&text);
}

static void as_the_python_package(void **state)
{
    static const char *const names[] = {"bpe", "unigram", "bytes"};
    (void)state;
    NEEDS_SUBWORDS();
    cpl_json *root = fixture();
    for (int i = 0; i < 3; i++) {
        const cpl_json *f = cpl_json_get(root, names[i]), *entries = cpl_json_get(f, "entries");
        const cpl_json *cases = cpl_json_get(f, "cases"), *outputs = cpl_json_get(f, "outputs");
        cpl_tokens kind = i ? CPL_TOKENS_UNIGRAM : CPL_TOKENS_BPE;
        cpl_vocabulary *v = given(names[i]);
        cpl_codec *codec;
        assert_int_equal(cpl_vocabulary_size(v), cpl_json_int(cpl_json_get(f, "size"), 0));
        for (size_t k = 0; k < cpl_json_size(entries); k++) {
            size_t length;
            const char *piece = cpl_vocabulary_token(v, (int64_t)k + CPL_ID_WORDS, &length);
            assert_text(cpl_json_at(entries, k), piece, length);
        }
        assert_int_equal(cpl_codec_new(&codec, (cpl_text_rules){kind, CPL_STANDARDIZE_NONE}, v, NULL), CPL_OK);
        assert_true(cpl_json_size(cases) > 10);
        for (size_t k = 0; k < cpl_json_size(cases); k++)
            check_case(codec, cpl_json_at(cases, k));
        for (size_t k = 0; k < cpl_json_size(outputs); k++)
            if (!strchr(cpl_json_text(cpl_json_get(cpl_json_at(outputs, k), "text"), NULL), '\n'))
                check_output(codec, cpl_json_at(outputs, k));
        cpl_codec_free(codec);
        cpl_vocabulary_free(v);
    }
    cpl_json_free(root);
}

/* What a model says that it cannot spell, and pieces of another model (copied words). */
static void unknown_outputs(void **state)
{
    (void)state;
    NEEDS_SUBWORDS();
    cpl_vocabulary *v = given("bpe");
    cpl_codec *codec;
    assert_int_equal(cpl_codec_new(&codec, (cpl_text_rules){CPL_TOKENS_BPE, CPL_STANDARDIZE_NONE}, v, NULL), CPL_OK);
    int32_t ids[] = {CPL_ID_START, cpl_vocabulary_id(v, "\xE2\x96\x81Tom", 6), CPL_ID_UNKNOWN,
                     (int32_t)cpl_vocabulary_size(v), 1 << 20, CPL_ID_END, 7};
    const cpl_token more = {"\xE2\x96\x81Zug", 6};
    cpl_str text = {0};
    assert_true(ids[1] >= CPL_ID_WORDS);
    cpl_codec_decode_more(codec, ids, 7, (cpl_more_words){&more, 1}, 0, &text);
    assert_string_equal(text.data, "Tom[UNK] Zug[UNK]");
    cpl_str_clear(&text);
    cpl_codec_decode_more(codec, ids, 7, (cpl_more_words){&more, 1}, 1, &text);
    assert_string_equal(text.data, "\xE2\x96\x81Tom [UNK] \xE2\x96\x81Zug [UNK]");
    cpl_str_clear(&text);
    cpl_codec_decode_more(codec, ids + 3, 1, (cpl_more_words){&more, 1}, 0, &text);
    assert_string_equal(text.data, "Zug");
    cpl_str_free(&text);
    cpl_codec_free(codec);
    cpl_vocabulary_free(v);
}

/* A byte_fallback model may write any byte: an output stays one line of UTF-8. */
static void odd_bytes_of_a_model(void **state)
{
    (void)state;
    NEEDS_SUBWORDS();
    cpl_vocabulary *v = given("bytes");
    const cpl_token tokens[] = {{"<0x0A>", 6}, {"<0xE2>", 6}, {"a", 1}};
    cpl_str text = {0};
    cpl_vocabulary_join(v, CPL_TOKENS_UNIGRAM, tokens, 3, &text);
    assert_string_equal(text.data, "\xEF\xBF\xBD\xEF\xBF\xBD" "a");
    cpl_str_free(&text);
    cpl_vocabulary_free(v);
}

/* ---- learned here ---- */

typedef struct rows {
    const char *const *lines;
    size_t count, next;
} rows;

static int next_row(void *user, const char **line, size_t *length)
{
    rows *r = user;
    if (r->next == r->count) {
        r->next = 0;
        return 0;
    }
    *line = r->lines[r->next++];
    *length = strlen(*line);
    return 1;
}

static const char *const lines[] = {
    "low lower lowest", "new newer newest", "wide wider widest", "the lowest of the new", "a wider river",
    "the newest river", "x\xE2\x96\x85", "", " \t ", "under\xE2\x96\x81score", "caf\xC3\xA9 caf\xC3\xA9",
    "\xE2\x98\x83",
};

static cpl_status learn(cpl_vocabulary **v, cpl_tokens kind, int64_t size, int64_t min_count, cpl_error *err)
{
    rows r = {lines, sizeof lines / sizeof *lines, 0};
    const cpl_subword_lines source = {next_row, &r};
    return cpl_vocabulary_learn(v, kind, &source, size, min_count, err);
}

static void learned(void **state)
{
    (void)state;
    NEEDS_SUBWORDS();
    for (int kind = CPL_TOKENS_BPE; kind <= CPL_TOKENS_UNIGRAM; kind++) {
        cpl_vocabulary *v, *again, *other;
        cpl_codec *codec;
        assert_int_equal(learn(&v, (cpl_tokens)kind, 40, 1, NULL), CPL_OK);
        assert_int_equal(learn(&again, (cpl_tokens)kind, 40, 1, NULL), CPL_OK);
        assert_int_equal(learn(&other, (cpl_tokens)kind, 32000, 1, NULL), CPL_OK); /* more than there are */
        size_t a, b;
        const char *model = cpl_vocabulary_model(v, &a), *same = cpl_vocabulary_model(again, &b);
        assert_int_equal(a, b);
        assert_memory_equal(model, same, a);
        assert_true(cpl_vocabulary_size(v) <= 40 && cpl_vocabulary_size(other) < 32000);
        assert_true(cpl_vocabulary_checksum(v) == cpl_vocabulary_checksum(again));
        assert_string_equal(cpl_vocabulary_token(v, CPL_ID_END, NULL), "[END]");
        /* Round trips; only what no line of training has is unknown. */
        static const char *const texts[] = {"the newest caf\xC3\xA9", "lower", "\xE2\x98\x83 wide", "a b",
                                            "\xE4\xBD\xA0 is"};
        const cpl_text_rules rules = {(cpl_tokens)kind, CPL_STANDARDIZE_NONE};
        assert_int_equal(cpl_codec_new(&codec, rules, v, NULL), CPL_OK);
        for (int i = 0; i < 5; i++) {
            int32_t *ids = NULL;
            size_t capacity = 0, count, unknown, n;
            cpl_str text = {0};
            assert_int_equal(cpl_codec_encode(codec, texts[i], strlen(texts[i]), &ids, &capacity, &count, &unknown,
                                              NULL), CPL_OK);
            assert_int_equal(unknown, i < 3 ? 0 : 1);
            const cpl_token *tokens = cpl_codec_tokens(codec, &n);
            cpl_codec_join(codec, tokens, n, &text);
            assert_string_equal(text.data, texts[i]);
            cpl_str_clear(&text);
            cpl_codec_decode(codec, ids, count, 0, &text);
            assert_string_equal(text.data, i < 3 ? texts[i] : i == 3 ? "a [UNK]" : "[UNK] is");
            cpl_str_free(&text);
            cpl_release(ids);
        }
        cpl_codec_free(codec);
        cpl_vocabulary_free(v);
        cpl_vocabulary_free(again);
        cpl_vocabulary_free(other);
    }
}

static void rare_characters(void **state)
{
    (void)state;
    NEEDS_SUBWORDS();
    cpl_vocabulary *v;
    cpl_error err = CPL_ERROR_INIT;
    /* 14 letters of the first six lines, x, u, c, é, ☃; and the space and four special entries */
    assert_int_equal(learn(&v, CPL_TOKENS_BPE, 10, 1, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "size is 10, expected at least 24"));
    assert_non_null(strstr(err.line[0], "19 different characters"));
    assert_int_equal(learn(&v, CPL_TOKENS_BPE, 40, 2, NULL), CPL_OK);
    assert_int_equal(cpl_vocabulary_id(v, "\xE2\x98\x83", 3), CPL_ID_UNKNOWN); /* once */
    assert_int_equal(cpl_vocabulary_id(v, "x", 1), CPL_ID_UNKNOWN);
    assert_true(cpl_vocabulary_id(v, "\xC3\xA9", 2) >= CPL_ID_WORDS);
    cpl_vocabulary_free(v);
    rows none = {lines + 7, 2, 0};
    const cpl_subword_lines source = {next_row, &none};
    assert_int_equal(cpl_vocabulary_learn(&v, CPL_TOKENS_UNIGRAM, &source, 40, 1, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "no text"));
    /* Next to nothing to learn from. */
    static const char *const little[] = {"a", "a\x01 b"};
    for (int kind = CPL_TOKENS_BPE; kind <= CPL_TOKENS_UNIGRAM; kind++)
        for (size_t n = 1; n <= 2; n++) {
            rows few = {little, n, 0};
            const cpl_subword_lines some = {next_row, &few};
            assert_int_equal(cpl_vocabulary_learn(&v, (cpl_tokens)kind, &some, 40, 1, &err), CPL_OK);
            int32_t letter = cpl_vocabulary_id(v, "a", 1), word = cpl_vocabulary_id(v, "\xE2\x96\x81" "a", 4);
            assert_true(letter >= CPL_ID_WORDS || word >= CPL_ID_WORDS);
            cpl_vocabulary_free(v);
        }
}

static void in_the_model_file(void **state)
{
    (void)state;
    NEEDS_SUBWORDS();
    cpl_vocabulary *v = given("unigram"), *w = given("bytes"), *again;
    cpl_json *json = cpl_vocabulary_to_json(v);
    assert_int_equal(cpl_vocabulary_from_json(&again, json, NULL), CPL_OK);
    assert_true(cpl_vocabulary_checksum(v) == cpl_vocabulary_checksum(again));
    assert_true(cpl_vocabulary_checksum(v) != cpl_vocabulary_checksum(w));
    cpl_json_free(json);
    cpl_vocabulary_free(again);
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_json_parse(&json, "{\"sentencepiece\":\"AAAA\"}", 24, NULL), CPL_OK);
    assert_int_equal(cpl_vocabulary_from_json(&again, json, &err), CPL_USAGE);
    cpl_json_free(json);
    assert_int_equal(cpl_json_parse(&json, "{\"sentencepiece\":\"A*A=\"}", 24, NULL), CPL_OK);
    assert_int_equal(cpl_vocabulary_from_json(&again, json, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "neither a list nor"));
    cpl_json_free(json);
    cpl_vocabulary_free(v);
    cpl_vocabulary_free(w);
}

static void kinds_that_do_not_fit(void **state)
{
    (void)state;
    NEEDS_SUBWORDS();
    cpl_error err = CPL_ERROR_INIT;
    cpl_vocabulary *v = given("unigram"), *w;
    assert_int_equal(cpl_vocabulary_check_kind(v, CPL_TOKENS_UNIGRAM, &err), CPL_OK);
    assert_int_equal(cpl_vocabulary_check_kind(v, CPL_TOKENS_BPE, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "of the kind unigram, but tokens are bpe"));
    assert_int_equal(cpl_vocabulary_check_kind(v, CPL_TOKENS_WORD, &err), CPL_USAGE);
    cpl_vocabulary_free(v);
    v = given("bpe");
    assert_int_equal(cpl_vocabulary_check_kind(v, CPL_TOKENS_BPE, &err), CPL_OK);
    assert_int_equal(cpl_vocabulary_check_kind(v, CPL_TOKENS_UNIGRAM, &err), CPL_USAGE);
    cpl_vocabulary_free(v);
    assert_int_equal(cpl_vocabulary_of_bytes(&w, NULL), CPL_OK);
    assert_int_equal(cpl_vocabulary_check_kind(w, CPL_TOKENS_BPE, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "needs a SentencePiece model"));
    cpl_vocabulary_free(w);
    static const char *const broken[] = {"", "hello", "\x0A\x03" "abc"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cpl_vocabulary_from_model(&v, broken[i], strlen(broken[i]), "x.model", &err), CPL_USAGE);
        assert_non_null(strstr(err.line[0], "not a SentencePiece model"));
        assert_null(v);
    }
}

/* ---- bytes ---- */

static void bytes(void **state)
{
    (void)state;
    cpl_vocabulary *v;
    cpl_codec *codec;
    assert_int_equal(cpl_vocabulary_of_bytes(&v, NULL), CPL_OK);
    assert_int_equal(cpl_vocabulary_size(v), 260);
    assert_string_equal(cpl_vocabulary_token(v, 4 + 'A', NULL), "A");
    assert_string_equal(cpl_vocabulary_token(v, 4 + 0x7E, NULL), "~");
    assert_string_equal(cpl_vocabulary_token(v, 4 + 0x7F, NULL), "<0x7F>");
    assert_string_equal(cpl_vocabulary_token(v, 4 + 0xC3, NULL), "<0xC3>");
    assert_string_equal(cpl_vocabulary_token(v, 4, NULL), "<0x00>");
    assert_int_equal(cpl_codec_new(&codec, (cpl_text_rules){CPL_TOKENS_BYTE, CPL_STANDARDIZE_NONE}, v, NULL), CPL_OK);
    assert_tokens(CPL_TOKENS_BYTE, "a \xC3\xA9<", "a|<0x20>|<0xC3>|<0xA9>|<");
    static const char text[] = " <0x41> [UNK]\t\0\xE2\x98\x83\xF0\x9F\x91\xA9 ";
    int32_t *ids = NULL;
    size_t capacity = 0, count, unknown;
    cpl_str out = {0};
    assert_int_equal(cpl_codec_encode(codec, text, sizeof text - 1, &ids, &capacity, &count, &unknown, NULL), CPL_OK);
    assert_int_equal(count, sizeof text - 1);
    assert_int_equal(unknown, 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids[i], 4 + (unsigned char)text[i]);
    cpl_codec_decode(codec, ids, count, 0, &out);
    assert_int_equal(out.length, sizeof text - 1);
    assert_memory_equal(out.data, text, out.length);
    /* What is no UTF-8: half a character, a stray tail, a surrogate; and a line feed. [UNK] shows as elsewhere. */
    int32_t odd[] = {4 + 'a',  4 + 0xE2,       4 + 0x98,       4 + 'b', 4 + 0x80,
                     4 + '\n', CPL_ID_UNKNOWN, CPL_ID_PADDING, 4 + 0xC3};
    cpl_str_clear(&out);
    cpl_codec_decode(codec, odd, 9, 0, &out);
#define R "\xEF\xBF\xBD"
    assert_string_equal(out.data, "a" R R "b" R R "[UNK]" R);
    assert_int_equal(cpl_utf8_valid(out.data, out.length), out.length);
    cpl_str_free(&out);
    cpl_release(ids);
    cpl_codec_free(codec);
    cpl_vocabulary_free(v);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(as_the_python_package), cmocka_unit_test(unknown_outputs),
    cmocka_unit_test(odd_bytes_of_a_model),  cmocka_unit_test(learned),
    cmocka_unit_test(rare_characters),       cmocka_unit_test(in_the_model_file),
    cmocka_unit_test(kinds_that_do_not_fit), cmocka_unit_test(bytes),
};

CPL_TEST_MAIN(tests)
