/* subwords.c: vocabularies whose entries are the pieces of a SentencePiece model. learn.c makes models.
 *
 * The model cuts text and joins pieces; which piece has which id is the vocabulary's own business, as for every kind:
 * a piece is looked up by its bytes, and what the model could not cut is a piece that no vocabulary holds, hence
 * [UNK]. So the special ids of a model made elsewhere do not matter.
 *
 * White space is what it is for every kind (split.c), and U+2581, which SentencePiece writes for a space, is another
 * one: runs of it become one space before the model sees the text. */
#include <string.h>
#include "base/base64.h"
#include "base/error.h"
#include "base/memory.h"
#include "text/entries.h"
#include "text/list.h"
#include "text/sentencepiece.h"
#include "text/squeeze.h"
#include "text/unicode.h"

enum { UNIGRAM = 1, BPE = 2 }; /* TrainerSpec.model_type */

struct cpl_subwords {
    cpl_spm *spm;
    char *model;
    size_t length;
};

int cpl_tokens_are_subwords(cpl_tokens kind)
{
    return kind == CPL_TOKENS_BPE || kind == CPL_TOKENS_UNIGRAM;
}

static int is_mark(const char *p, const char *end)
{
    return (size_t)(end - p) >= CPL_PIECE_SPACE_BYTES && memcmp(p, CPL_PIECE_SPACE, CPL_PIECE_SPACE_BYTES) == 0;
}

void cpl_subwords_squeeze(const char *text, size_t length, cpl_str *out)
{
    int space = 1; /* none at the start */
    for (const char *p = text, *end = text + length; p < end;) {
        size_t n = cpl_space_at(p, end);
        if (n == 0 && is_mark(p, end))
            n = CPL_PIECE_SPACE_BYTES;
        if (n == 0 || !space)
            cpl_str_add_char(out, n ? ' ' : *p);
        space = n > 0;
        p += n ? n : 1;
    }
    if (space && out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
}

/* ---- what kind a model is ---- */

/* A number of a protobuf message at *at; *at = end where there is none. */
static uint64_t number(const unsigned char **at, const unsigned char *end)
{
    uint64_t value = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return value;
    }
    *at = end;
    return 0;
}

/* The next field of [*at, end): its number, 0 at the end. *value: of a number; of bytes their length, and *at is then
 * before them. */
static uint64_t field(const unsigned char **at, const unsigned char *end, int *is_bytes, uint64_t *value)
{
    uint64_t tag = number(at, end), wire = tag & 7;
    *is_bytes = wire == 2;
    *value = wire == 0 || wire == 2 ? number(at, end) : 0;
    size_t skip = wire == 1 ? 8 : wire == 5 ? 4 : 0;
    int odd = wire == 3 || wire == 4 || wire > 5 || skip > (size_t)(end - *at);
    if (*at == end || odd || (*is_bytes && *value > (uint64_t)(end - *at)))
        return wire == 0 && !odd ? tag >> 3 : 0; /* a number may be the last thing of its message */
    *at += skip;
    return tag >> 3;
}

/* ModelProto.trainer_spec (2) .model_type (3), unigram where it is not written. */
static int model_type(const char *model, size_t length)
{
    const unsigned char *at = (const unsigned char *)model, *end = at + length;
    uint64_t value, id;
    int is_bytes, type = UNIGRAM;
    while (at < end && (id = field(&at, end, &is_bytes, &value)) != 0) {
        const unsigned char *inner = at, *stop = is_bytes ? at + value : at;
        at = stop;
        while (id == 2 && inner < stop && (id = field(&inner, stop, &is_bytes, &value)) != 0) {
            type = id == 3 && !is_bytes ? (int)value : type;
            inner += is_bytes ? value : 0;
            id = 2;
        }
    }
    return type;
}

int cpl_is_subword_model(const char *bytes, size_t length)
{
    const unsigned char *b = (const unsigned char *)bytes;
    /* A message of under 128 bytes that holds a string and then, after the tag 0x15, its score. A word list that begins
     * with the same line feed goes on with "[UNK]". */
    if (length < 4 || b[0] != 0x0A || b[1] >= 0x80 || b[2] != 0x0A || b[3] + 7u > b[1])
        return 0;
    return length > 4u + b[3] && b[4 + b[3]] == 0x15;
}

cpl_status cpl_vocabulary_check_kind(const cpl_vocabulary *v, cpl_tokens kind, cpl_error *err)
{
    const char *name = cpl_tokens_name(kind);
    if (!v->subwords && !cpl_tokens_are_subwords(kind))
        return CPL_OK;
    if (!v->subwords)
        CPL_FAIL(err, CPL_USAGE, "the vocabulary is a list of tokens, but tokens: %s needs a SentencePiece model",
                 name);
    int type = model_type(v->subwords->model, v->subwords->length);
    const char *own = type == BPE ? "bpe" : type == UNIGRAM ? "unigram" : NULL;
    if (!own)
        CPL_FAIL(err, CPL_USAGE, "the vocabulary is a SentencePiece model of type %d, expected bpe or unigram", type);
    if (strcmp(own, name) != 0)
        CPL_FAIL(err, CPL_USAGE, "the vocabulary is a SentencePiece model of the kind %s, but tokens are %s" CPL_HINT
                 "set tokens to %s", own, name, own);
    return CPL_OK;
}

/* ---- the model ---- */

#ifdef CPL_HAVE_SENTENCEPIECE

int cpl_subwords_available(void)
{
    return 1;
}

/* SentencePiece's errors begin with the place in its source: "…cc(580) [condition] text". */
const char *cpl_spm_reason(const char *why)
{
    const char *end = strstr(why, "] ");
    return end && end[2] ? end + 2 : why;
}

static int add_piece(void *user, const char *bytes, size_t length)
{
    cpl_token_list *list = user;
    cpl_str_add_bytes(&list->bytes, bytes, length);
    return list->bytes.failed ? -1 : cpl_token_push(list, NULL, length);
}

static cpl_status split(const cpl_subwords *s, const char *text, size_t length, cpl_token_list *list, cpl_error *err)
{
    char why[CPL_SPM_WHY] = "";
    cpl_str line = {0};
    list->count = 0;
    cpl_str_clear(&list->bytes);
    if (length == 0)
        return CPL_OK;
    cpl_subwords_squeeze(text, length, &line);
    int failed = line.failed || cpl_spm_encode(s->spm, line.data ? line.data : "", line.length, add_piece, list, why);
    cpl_str_free(&line);
    if (failed) {
        list->count = 0;
        CPL_FAIL(err, CPL_FAILED, "cannot cut %zu bytes of text into subwords: %s", length,
                 *why ? cpl_spm_reason(why) : "no memory");
    }
    cpl_token_settle(list);
    return CPL_OK;
}

static int add_text(void *user, const char *bytes, size_t length)
{
    cpl_str *text = user;
    cpl_str_add_bytes(text, bytes, length);
    return text->failed ? -1 : 0;
}

/* A piece of another model (a copied word) stays as it is in what SentencePiece joins: its mark is a space too. */
static void add_line(const cpl_str *joined, cpl_str *out)
{
    cpl_str line = {0};
    const char *p = joined->data, *end = p + joined->length;
    for (size_t n; p < end; p += n) {
        int mark = is_mark(p, end);
        n = mark ? CPL_PIECE_SPACE_BYTES : 1;
        if (!mark || p > joined->data)
            cpl_str_add_char(&line, mark ? ' ' : *p);
    }
    cpl_utf8_repair(line.data, line.length, out);
    out->failed |= line.failed;
    cpl_str_free(&line);
}

static void join(const cpl_subwords *s, const cpl_token *tokens, size_t n, cpl_str *out)
{
    char why[CPL_SPM_WHY];
    cpl_str joined = {0};
    const char **pieces = cpl_alloc(n, sizeof *pieces);
    size_t *lengths = cpl_alloc(n, sizeof *lengths);
    for (size_t i = 0; pieces && lengths && i < n; i++)
        pieces[i] = tokens[i].text, lengths[i] = tokens[i].length;
    if (!pieces || !lengths || cpl_spm_decode(s->spm, pieces, lengths, n, add_text, &joined, why) != 0)
        out->failed = 1;
    else if (joined.length)
        add_line(&joined, out);
    cpl_release(pieces);
    cpl_release(lengths);
    cpl_str_free(&joined);
}

static cpl_status add_pieces(cpl_vocabulary *v, cpl_error *err)
{
    const cpl_spm *spm = v->subwords->spm;
    cpl_spm_specials special = cpl_spm_special_ids(spm);
    cpl_status status = CPL_OK;
    for (int id = 0; id < cpl_spm_size(spm) && status == CPL_OK; id++) {
        size_t length;
        const char *piece = cpl_spm_piece(spm, id, &length);
        if (id != special.padding && id != special.unknown && id != special.start && id != special.end)
            status = cpl_vocabulary_append(v, piece, length, err);
    }
    return status;
}

static cpl_status load(cpl_vocabulary *v, const char *model, size_t length, cpl_error *err)
{
    char why[CPL_SPM_WHY] = "";
    cpl_subwords *s = v->subwords = cpl_alloc(1, sizeof *s);
    if (!s || !(s->model = cpl_alloc(length, 1)))
        CPL_FAIL(err, CPL_FAILED, "no memory for a SentencePiece model of %zu bytes", length);
    memcpy(s->model, model, length);
    s->length = length;
    s->spm = length ? cpl_spm_load(model, length, why) : NULL;
    if (!s->spm)
        CPL_FAIL(err, CPL_USAGE, "it is not a SentencePiece model: %s", *why ? cpl_spm_reason(why) : "it is empty");
    return add_pieces(v, err);
}

void cpl_subwords_free(cpl_subwords *s)
{
    if (!s)
        return;
    cpl_spm_free(s->spm);
    cpl_release(s->model);
    cpl_release(s);
}

#else

int cpl_subwords_available(void)
{
    return 0;
}

/* No vocabulary with a model can be made, so what uses one is never reached. */
static cpl_status split(const cpl_subwords *s, const char *text, size_t length, cpl_token_list *list, cpl_error *err)
{
    (void)s, (void)text, (void)list;
    CPL_FAIL(err, CPL_USAGE, "cannot cut %zu bytes of text: " CPL_NO_SUBWORDS, length);
}

static void join(const cpl_subwords *s, const cpl_token *tokens, size_t n, cpl_str *out)
{
    (void)s, (void)tokens, (void)n;
    out->failed = 1;
}

static cpl_status load(cpl_vocabulary *v, const char *model, size_t length, cpl_error *err)
{
    (void)v, (void)model, (void)length;
    CPL_FAIL(err, CPL_USAGE, CPL_NO_SUBWORDS);
}

void cpl_subwords_free(cpl_subwords *s)
{
    (void)s;
}

#endif

cpl_status cpl_vocabulary_from_model(cpl_vocabulary **v, const char *model, size_t length, const char *name,
                                     cpl_error *err)
{
    cpl_status status = cpl_vocabulary_bare(v, err);
    if (status == CPL_OK)
        status = load(*v, model, length, err);
    if (status != CPL_OK) {
        cpl_vocabulary_free(*v);
        *v = NULL;
        return cpl_error_context(err, status, "'%s' cannot be used as a vocabulary", name);
    }
    return CPL_OK;
}

const char *cpl_vocabulary_model(const cpl_vocabulary *v, size_t *length)
{
    *length = v->subwords ? v->subwords->length : 0;
    return v->subwords ? v->subwords->model : NULL;
}

/* ---- cutting and joining, for every kind ---- */

cpl_status cpl_vocabulary_split(const cpl_vocabulary *v, cpl_tokens kind, const char *text, size_t length,
                                cpl_token_list *list, cpl_error *err)
{
    if (v && v->subwords && cpl_tokens_are_subwords(kind))
        return split(v->subwords, text, length, list, err);
    return cpl_split(kind, text, length, list, err);
}

void cpl_vocabulary_join(const cpl_vocabulary *v, cpl_tokens kind, const cpl_token *tokens, size_t n, cpl_str *out)
{
    if (v && v->subwords && cpl_tokens_are_subwords(kind))
        join(v->subwords, tokens, n, out);
    else
        cpl_join(kind, tokens, n, out);
}

/* ---- in the model file: {"sentencepiece": base64} ---- */

cpl_json *cpl_subwords_to_json(const cpl_subwords *s)
{
    cpl_json *object = cpl_json_object();
    cpl_str text = {0};
    cpl_base64_encode(s->model, s->length, &text);
    if (!text.failed)
        cpl_json_set_bytes(object, "sentencepiece", text.data, text.length);
    else
        cpl_json_free(object);
    cpl_str_free(&text);
    return text.failed ? NULL : object;
}

cpl_status cpl_subwords_from_json(cpl_vocabulary **v, const cpl_json *object, cpl_error *err)
{
    size_t length;
    const char *text = cpl_json_text(cpl_json_get(object, "sentencepiece"), &length);
    cpl_str model = {0};
    if (!text || cpl_base64_decode(text, length, &model) != 0) {
        cpl_str_free(&model);
        CPL_FAIL(err, CPL_USAGE, "vocabulary is neither a list nor a SentencePiece model");
    }
    cpl_status status = model.failed ? cpl_error_set(err, CPL_FAILED, "no memory for a SentencePiece model")
                                     : cpl_vocabulary_from_model(v, model.data ? model.data : "", model.length,
                                                                 "sentencepiece", err);
    cpl_str_free(&model);
    return status;
}
