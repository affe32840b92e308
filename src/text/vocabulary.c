/* vocabulary.c: which token has which id.
 *
 * A vocabulary is a map whose order of insertion is the order of ids, the four special entries first. That the
 * specials are in the map costs one comparison in a look-up, and gives the rule of E12: what text spells is never one
 * of them. */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "text/entries.h"
#include "text/text.h"
#include "text/unicode.h"

struct cpl_vocabulary_counter {
    cpl_map *counts;
};

static const char *const specials[CPL_ID_WORDS] = {"", "[UNK]", "[START]", "[END]"};

int cpl_token_is_special(const char *token, size_t length)
{
    if (length && *token != '[')
        return 0;
    for (int i = 0; i < CPL_ID_WORDS; i++)
        if (length == strlen(specials[i]) && (length == 0 || memcmp(token, specials[i], length) == 0))
            return 1;
    return 0;
}

/* ---- counting ----
 * Every token is counted, those that spell a special too: they are left out only when a vocabulary is built, so that
 * the statistics can say how many there were. */

cpl_vocabulary_counter *cpl_counter_new(void)
{
    cpl_vocabulary_counter *c = cpl_alloc(1, sizeof *c);
    if (c && !(c->counts = cpl_map_new())) {
        cpl_release(c);
        c = NULL;
    }
    return c;
}

void cpl_counter_free(cpl_vocabulary_counter *c)
{
    if (c)
        cpl_map_free(c->counts);
    cpl_release(c);
}

cpl_status cpl_counter_add(cpl_vocabulary_counter *c, const cpl_token *tokens, size_t n, cpl_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int64_t *count = cpl_map_insert(c->counts, tokens[i].text, tokens[i].length, NULL);
        if (!count)
            CPL_FAIL(err, CPL_FAILED, "no memory to count token %zu of %zu, after %zu different tokens", i + 1, n,
                     cpl_map_size(c->counts));
        ++*count;
    }
    return CPL_OK;
}

cpl_token_statistics cpl_counter_statistics(const cpl_vocabulary_counter *c)
{
    cpl_token_statistics s = {0};
    s.types = cpl_map_size(c->counts);
    for (size_t i = 0; i < s.types; i++) {
        size_t length;
        const char *token = cpl_map_key(c->counts, i, &length);
        uint64_t count = (uint64_t)cpl_map_value(c->counts, i);
        s.tokens += count;
        s.characters += count * cpl_utf8_count(token, length);
        s.singletons += count == 1;
        if (cpl_token_is_special(token, length))
            s.specials += count;
    }
    return s;
}

uint64_t cpl_counter_known(const cpl_vocabulary_counter *c, const cpl_vocabulary *v, uint64_t *types)
{
    uint64_t known = 0, different = 0;
    for (size_t i = 0; i < cpl_map_size(c->counts); i++) {
        size_t length;
        const char *token = cpl_map_key(c->counts, i, &length);
        if (cpl_vocabulary_id(v, token, length) == CPL_ID_UNKNOWN)
            continue;
        known += (uint64_t)cpl_map_value(c->counts, i);
        different++;
    }
    if (types)
        *types = different;
    return known;
}

/* ---- building ---- */

typedef struct entry {
    const char *token;
    size_t length;
    int64_t count;
} entry;

/* Frequent first; ties in reverse byte order, as the reference sorts them (a longer token before its prefix). */
static int by_rank(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp(y->token, x->token, shorter);
    return order ? order : (x->length < y->length) - (x->length > y->length);
}

/* A token that is there already is an error: to skip it would shift all later ids against the rows of a trained
 * matrix. */
cpl_status cpl_vocabulary_append(cpl_vocabulary *v, const char *token, size_t length, cpl_error *err)
{
    int is_new;
    size_t id = cpl_map_size(v->ids);
    if (id > INT32_MAX)
        CPL_FAIL(err, CPL_USAGE, "vocabulary has over %d entries", INT32_MAX);
    int64_t *place = cpl_map_insert(v->ids, token, length, &is_new);
    if (!place)
        CPL_FAIL(err, CPL_FAILED, "no memory for a vocabulary of over %zu entries", id);
    if (!is_new) {
        char shown[80];
        CPL_FAIL(err, CPL_USAGE, "vocabulary holds '%s' twice, as ids %lld and %zu",
                 cpl_escape(shown, sizeof shown, token, length), (long long)*place, id);
    }
    *place = (int64_t)id;
    return CPL_OK;
}

cpl_status cpl_vocabulary_bare(cpl_vocabulary **v, cpl_error *err)
{
    *v = cpl_alloc(1, sizeof **v);
    if (!*v || !((*v)->ids = cpl_map_new())) {
        cpl_release(*v);
        *v = NULL;
        CPL_FAIL(err, CPL_FAILED, "no memory for a vocabulary");
    }
    cpl_status status = CPL_OK;
    for (int i = 0; i < CPL_ID_WORDS && status == CPL_OK; i++)
        status = cpl_vocabulary_append(*v, specials[i], strlen(specials[i]), err);
    return status;
}

/* The tokens that may enter, in rank order. *entries is the caller's to release. */
static size_t ranked(const cpl_vocabulary_counter *c, int64_t min_count, entry **entries)
{
    size_t types = cpl_map_size(c->counts), n = 0;
    *entries = cpl_alloc(types, sizeof **entries);
    if (!*entries)
        return 0;
    for (size_t i = 0; i < types; i++) {
        entry e = {0};
        e.token = cpl_map_key(c->counts, i, &e.length);
        e.count = cpl_map_value(c->counts, i);
        if (e.count >= min_count && !cpl_token_is_special(e.token, e.length))
            (*entries)[n++] = e;
    }
    if (n)
        qsort(*entries, n, sizeof **entries, by_rank);
    return n;
}

cpl_status cpl_vocabulary_build(cpl_vocabulary **v, const cpl_vocabulary_counter *c, int64_t size, int64_t min_count,
                                cpl_error *err)
{
    *v = NULL;
    int64_t least = cpl_map_size(c->counts) ? CPL_ID_WORDS + 1 : CPL_ID_WORDS;
    if (size != 0 && size < least)
        CPL_FAIL(err, CPL_USAGE,
                 "vocabulary size is %lld, expected at least %lld (4 special entries%s) or 0 for no limit",
                 (long long)size, (long long)least, least > CPL_ID_WORDS ? " and a word" : "");
    entry *entries;
    size_t n = ranked(c, min_count, &entries);
    if (!entries)
        CPL_FAIL(err, CPL_FAILED, "no memory to sort %zu tokens", cpl_map_size(c->counts));
    if (size != 0 && n > (size_t)(size - CPL_ID_WORDS))
        n = (size_t)(size - CPL_ID_WORDS);
    cpl_status status = cpl_vocabulary_bare(v, err);
    for (size_t i = 0; i < n && status == CPL_OK; i++)
        status = cpl_vocabulary_append(*v, entries[i].token, entries[i].length, err);
    cpl_release(entries);
    if (status != CPL_OK) {
        cpl_vocabulary_free(*v);
        *v = NULL;
    }
    return status;
}

cpl_status cpl_vocabulary_of_bytes(cpl_vocabulary **v, cpl_error *err)
{
    cpl_status status = cpl_vocabulary_bare(v, err);
    for (int byte = 0; byte < 256 && status == CPL_OK; byte++) {
        cpl_token token = cpl_byte_token((unsigned char)byte);
        status = cpl_vocabulary_append(*v, token.text, token.length, err);
    }
    if (status != CPL_OK) {
        cpl_vocabulary_free(*v);
        *v = NULL;
    }
    return status;
}

void cpl_vocabulary_free(cpl_vocabulary *v)
{
    if (!v)
        return;
    cpl_map_free(v->ids);
    cpl_subwords_free(v->subwords);
    cpl_release(v);
}

/* ---- looking up ---- */

int64_t cpl_vocabulary_size(const cpl_vocabulary *v)
{
    return (int64_t)cpl_map_size(v->ids);
}

int32_t cpl_vocabulary_id(const cpl_vocabulary *v, const char *token, size_t length)
{
    const int64_t *id = cpl_map_find(v->ids, token, length);
    return id && *id >= CPL_ID_WORDS ? (int32_t)*id : CPL_ID_UNKNOWN;
}

const char *cpl_vocabulary_token(const cpl_vocabulary *v, int64_t id, size_t *length)
{
    if (id < 0 || id >= cpl_vocabulary_size(v))
        return NULL;
    size_t unused;
    return cpl_map_key(v->ids, (size_t)id, length ? length : &unused);
}

int64_t cpl_vocabulary_first_difference(const cpl_vocabulary *a, const cpl_vocabulary *b)
{
    int64_t n = cpl_vocabulary_size(a), m = cpl_vocabulary_size(b), id = 0;
    for (; id < n && id < m; id++) {
        size_t x, y;
        const char *one = cpl_vocabulary_token(a, id, &x), *other = cpl_vocabulary_token(b, id, &y);
        if (x != y || memcmp(one, other, x) != 0)
            break;
    }
    return id;
}

uint64_t cpl_vocabulary_checksum(const cpl_vocabulary *v)
{
    uint64_t hash = 0;
    for (int64_t id = 0; id < cpl_vocabulary_size(v); id++) {
        size_t length;
        const char *token = cpl_vocabulary_token(v, id, &length);
        /* Lengths first, low byte first on every machine: "ab" "c" is not "a" "bc". */
        unsigned char size[4] = {(unsigned char)length, (unsigned char)(length >> 8), (unsigned char)(length >> 16),
                                 (unsigned char)(length >> 24)};
        hash = cpl_hash64(hash, size, sizeof size);
        hash = cpl_hash64(hash, token, length);
    }
    size_t bytes;
    const char *model = cpl_vocabulary_model(v, &bytes); /* the same pieces may have other scores */
    return model ? cpl_hash64(hash, model, bytes) : hash;
}

size_t cpl_vocabulary_bytes(const cpl_vocabulary *v)
{
    size_t model = 0;
    cpl_vocabulary_model(v, &model);
    return sizeof *v + cpl_map_bytes(v->ids) + model;
}

/* ---- in the model file ---- */

cpl_json *cpl_vocabulary_to_json(const cpl_vocabulary *v)
{
    if (v->subwords)
        return cpl_subwords_to_json(v->subwords);
    cpl_json *array = cpl_json_array();
    if (!array)
        return NULL;
    for (int64_t id = 0; id < cpl_vocabulary_size(v); id++) {
        size_t length;
        const char *token = cpl_vocabulary_token(v, id, &length);
        cpl_json_add_text(array, token, length);
    }
    return array;
}

/* The file is checked entry by entry: kinds, the special entries in their places, no token twice. */
static cpl_status fill_from_json(cpl_vocabulary *v, const cpl_json *array, cpl_error *err)
{
    for (size_t i = 0; i < cpl_json_size(array); i++) {
        size_t length = 0;
        const char *token = cpl_json_text(cpl_json_at(array, i), &length);
        if (!token)
            CPL_FAIL(err, CPL_USAGE, "vocabulary entry %zu of %zu is not text", i, cpl_json_size(array));
        if (i >= CPL_ID_WORDS) {
            cpl_status status = cpl_vocabulary_append(v, token, length, err);
            if (status != CPL_OK)
                return status;
        } else if (length != strlen(specials[i]) || memcmp(token, specials[i], length) != 0) {
            char shown[80];
            CPL_FAIL(err, CPL_USAGE, "vocabulary entry %zu is '%s', expected the special entry '%s'", i,
                     cpl_escape(shown, sizeof shown, token, length), specials[i]);
        }
    }
    return CPL_OK;
}

cpl_status cpl_vocabulary_from_json(cpl_vocabulary **v, const cpl_json *array, cpl_error *err)
{
    *v = NULL;
    if (cpl_json_what(array) == CPL_JSON_OBJECT)
        return cpl_subwords_from_json(v, array, err);
    if (cpl_json_what(array) != CPL_JSON_ARRAY)
        CPL_FAIL(err, CPL_USAGE, "vocabulary is not a list");
    if (cpl_json_size(array) < CPL_ID_WORDS)
        CPL_FAIL(err, CPL_USAGE, "vocabulary has %zu entries, expected at least %d", cpl_json_size(array),
                 CPL_ID_WORDS);
    cpl_status status = cpl_vocabulary_bare(v, err);
    if (status == CPL_OK)
        status = fill_from_json(*v, array, err);
    if (status != CPL_OK) {
        cpl_vocabulary_free(*v);
        *v = NULL;
    }
    return status;
}
