/* codec.c: rules and vocabulary together, with the scratch that a thread reuses from line to line. */
#include "base/error.h"
#include "base/memory.h"
#include "text/text.h"

struct cpl_codec {
    cpl_text_rules rules;
    const cpl_vocabulary *vocabulary;
    cpl_str standardised; /* the tokens point into it */
    cpl_token_list tokens;
};

cpl_status cpl_codec_new(cpl_codec **codec, cpl_text_rules rules, const cpl_vocabulary *v, cpl_error *err)
{
    *codec = NULL;
    cpl_status status = cpl_vocabulary_check_kind(v, rules.tokens, err);
    if (status != CPL_OK)
        return status;
    *codec = cpl_alloc(1, sizeof **codec);
    if (!*codec)
        CPL_FAIL(err, CPL_FAILED, "no memory for a codec");
    (*codec)->rules = rules;
    (*codec)->vocabulary = v;
    return CPL_OK;
}

void cpl_codec_free(cpl_codec *c)
{
    if (!c)
        return;
    cpl_str_free(&c->standardised);
    cpl_token_list_free(&c->tokens);
    cpl_release(c);
}

/* The standardised text is a copy even where the rule changes nothing: tokens stay readable after the line is gone. */
cpl_status cpl_codec_encode(cpl_codec *c, const char *line, size_t length, int32_t **ids, size_t *capacity,
                            size_t *count, size_t *unknown, cpl_error *err)
{
    *count = 0;
    c->tokens.count = 0;
    cpl_str_clear(&c->standardised);
    cpl_status status = cpl_standardize_text(c->rules.standardize, line, length, &c->standardised, NULL, NULL, err);
    if (status == CPL_OK)
        status = cpl_vocabulary_split(c->vocabulary, c->rules.tokens, c->standardised.data, c->standardised.length,
                                      &c->tokens, err);
    if (status != CPL_OK)
        return status;
    size_t n = c->tokens.count, missing = 0;
    if (n > *capacity && cpl_grow(ids, capacity, n, sizeof **ids))
        CPL_FAIL(err, CPL_FAILED, "no memory for %zu ids", n);
    for (size_t i = 0; i < n; i++) {
        (*ids)[i] = cpl_vocabulary_id(c->vocabulary, c->tokens.items[i].text, c->tokens.items[i].length);
        missing += (*ids)[i] == CPL_ID_UNKNOWN;
    }
    *count = n;
    if (unknown)
        *unknown = missing;
    return CPL_OK;
}

const cpl_token *cpl_codec_tokens(const cpl_codec *c, size_t *count)
{
    *count = c->tokens.count;
    return c->tokens.items;
}

cpl_token cpl_word_of(const cpl_vocabulary *v, cpl_more_words more, int64_t id)
{
    cpl_token word;
    int64_t behind = id - cpl_vocabulary_size(v);
    if (behind >= 0 && (size_t)behind < more.count)
        return more.items[behind];
    word.text = cpl_vocabulary_token(v, id, &word.length);
    if (!word.text)
        word.text = cpl_vocabulary_token(v, CPL_ID_UNKNOWN, &word.length);
    return word;
}

void cpl_codec_join(const cpl_codec *c, const cpl_token *tokens, size_t n, cpl_str *out)
{
    cpl_vocabulary_join(c->vocabulary, c->rules.tokens, tokens, n, out);
}

void cpl_codec_decode(const cpl_codec *c, const int32_t *ids, size_t n, int tokens, cpl_str *out)
{
    cpl_codec_decode_more(c, ids, n, (cpl_more_words){NULL, 0}, tokens, out);
}

/* Control entries never become text: a model's output shows no [START] or [END], whatever the ids say. */
void cpl_codec_decode_more(const cpl_codec *c, const int32_t *ids, size_t n, cpl_more_words more, int tokens,
                           cpl_str *out)
{
    cpl_token *words = cpl_alloc(n, sizeof *words);
    if (!words) {
        out->failed = 1;
        return;
    }
    size_t count = 0;
    for (size_t i = 0; i < n && ids[i] != CPL_ID_END; i++) {
        if (ids[i] == CPL_ID_PADDING || ids[i] == CPL_ID_START)
            continue;
        words[count++] = cpl_word_of(c->vocabulary, more, ids[i]);
    }
    if (tokens)
        cpl_join(CPL_TOKENS_SPACE, words, count, out);
    else
        cpl_codec_join(c, words, count, out);
    cpl_release(words);
}
