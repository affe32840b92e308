/* shortlist.c: one list for a batch, for each row without what stands in it for another row's words: so a line's result
 * does not depend on its batch (F09).
 *
 * An entry's mark says who wants it: everybody (ALL: special entries, the frequent ones, what rules name), nobody (0),
 * or, while the rows are looked through, the last row that did. */
#include "api/shortlist.h"

#include <string.h>
#include "api/dictionary.h"
#include "base/error.h"
#include "base/memory.h"

enum { ALL = -1, NOBODY = 0, SOMEBODY = 1 };

struct cpl_shortlist {
    cpl_decoder *decoder;
    cpl_dictionary *lexicon; /* NULL: frequent entries alone */
    int32_t *ids;            /* what the rows' words may become, row after row */
    size_t count, capacity;
    int64_t *start; /* row i has ids[start[i]] … ids[start[i + 1] − 1] */
    size_t rows, start_capacity;
    int32_t *mark; /* by entry of the vocabulary */
    int32_t *list;
    int32_t *out; /* what rows leave out, row after row */
    size_t out_capacity;
    cpl_decode_places *left_out;
    size_t left_out_capacity;
};

void cpl_shortlist_close(struct cpl_shortlist *s)
{
    if (!s)
        return;
    cpl_decoder_free(s->decoder);
    cpl_dictionary_free(s->lexicon);
    cpl_release(s->ids);
    cpl_release(s->start);
    cpl_release(s->mark);
    cpl_release(s->list);
    cpl_release(s->out);
    cpl_release(s->left_out);
    cpl_release(s);
}

static cpl_status make(cpl_model *m, cpl_error *err)
{
    size_t n = (size_t)cpl_vocabulary_size(m->file->target);
    if (m->more_count > 0)
        CPL_FAIL(err, CPL_USAGE, "an ensemble has no short list: give one model, or no --shortlist");
    struct cpl_shortlist *s = m->shortlist = cpl_alloc(1, sizeof *s);
    if (!s || !(s->mark = cpl_alloc(n, sizeof *s->mark)) || !(s->list = cpl_alloc(n, sizeof *s->list)))
        CPL_FAIL(err, CPL_FAILED, "out of memory for a short list");
    return cpl_decoder_new_short(&s->decoder, m->file->kind, &m->file->sizes, m->engine, err);
}

cpl_status cpl_shortlist_open(cpl_model *m, const cpl_generate_options *o, cpl_error *err)
{
    cpl_status status = CPL_OK;
    if (o->shortlist == 0)
        return CPL_OK;
    if (!m->shortlist)
        status = make(m, err);
    struct cpl_shortlist *s = m->shortlist;
    if (status == CPL_OK)
        status = cpl_dictionary_use(&s->lexicon, o->lexicon, &m->file->config->text, err);
    if (status == CPL_OK)
        return CPL_OK;
    cpl_shortlist_close(s);
    m->shortlist = NULL;
    return cpl_error_context(err, status, "cannot use a short list");
}

void cpl_shortlist_clear(cpl_model *m)
{
    if (m->shortlist)
        m->shortlist->rows = m->shortlist->count = 0;
}

cpl_status cpl_shortlist_add(cpl_model *m, cpl_error *err)
{
    struct cpl_shortlist *s = m->shortlist;
    size_t count;
    const cpl_token *tokens = cpl_codec_tokens(m->source, &count);
    if (cpl_grow(&s->start, &s->start_capacity, s->rows + 2, sizeof *s->start))
        CPL_FAIL(err, CPL_FAILED, "out of memory for a short list");
    s->start[s->rows] = (int64_t)s->count;
    for (size_t i = 0; s->lexicon && i < count; i++) {
        const cpl_translation *t = cpl_dictionary_find(s->lexicon, tokens[i].text, tokens[i].length);
        for (; t; t = t->next) {
            int32_t id = cpl_vocabulary_id(m->file->target, t->text, t->length);
            if (cpl_grow(&s->ids, &s->capacity, s->count + 1, sizeof *s->ids))
                CPL_FAIL(err, CPL_FAILED, "out of memory for a short list");
            s->ids[s->count++] = id; /* [UNK] for what the vocabulary lacks, which is in every list */
        }
    }
    s->start[++s->rows] = (int64_t)s->count;
    return CPL_OK;
}

static void mark_all(struct cpl_shortlist *s, const int32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        s->mark[ids[i]] = ALL;
}

/* The places that a row leaves out. Marks of the entries that it wants become its number. */
static cpl_status leave_out(struct cpl_shortlist *s, int64_t row, int64_t listed, const cpl_decode_batch *b,
                            size_t *at, cpl_error *err)
{
    int32_t own = (int32_t)row + SOMEBODY + 1;
    for (int64_t k = s->start[row]; k < s->start[row + 1]; k++)
        if (s->mark[s->ids[k]] != ALL)
            s->mark[s->ids[k]] = own;
    if (cpl_grow(&s->out, &s->out_capacity, *at + (size_t)listed, sizeof *s->out))
        CPL_FAIL(err, CPL_FAILED, "out of memory for a short list");
    size_t from = *at;
    for (int64_t i = 0; i < b->list_count; i++)
        if (s->mark[b->list[i]] != ALL && s->mark[b->list[i]] != own)
            s->out[(*at)++] = (int32_t)i;
    s->left_out[row].count = (int64_t)(*at - from);
    return CPL_OK;
}

cpl_status cpl_shortlist_finish(cpl_model *m, const cpl_generate_options *o, cpl_decode_batch *b, cpl_error *err)
{
    struct cpl_shortlist *s = m->shortlist;
    int64_t size = cpl_vocabulary_size(m->file->target), listed = 0;
    size_t at = 0;
    for (int64_t i = 0; i < size; i++)
        s->mark[i] = i < CPL_ID_WORDS || i - CPL_ID_WORDS < o->shortlist ? ALL : NOBODY;
    mark_all(s, b->rules.forced, b->rules.forced_count);
    mark_all(s, b->rules.prefix, b->rules.prefix_count);
    for (size_t k = 0; k < s->count; k++)
        if (s->mark[s->ids[k]] == NOBODY)
            s->mark[s->ids[k]] = SOMEBODY, listed++;
    b->list = s->list;
    b->list_count = 0;
    for (int64_t i = 0; i < size; i++)
        if (s->mark[i] != NOBODY)
            s->list[b->list_count++] = (int32_t)i;
    if (listed == 0)
        return CPL_OK;
    if (cpl_grow(&s->left_out, &s->left_out_capacity, s->rows, sizeof *s->left_out))
        CPL_FAIL(err, CPL_FAILED, "out of memory for a short list");
    for (size_t row = 0; row < s->rows; row++)
        CPL_TRY(leave_out(s, (int64_t)row, listed, b, &at, err), err, "cannot make a short list");
    at = 0;
    for (size_t row = 0; row < s->rows; at += (size_t)s->left_out[row++].count)
        s->left_out[row].items = s->out + at;
    b->left_out = s->left_out;
    return CPL_OK;
}

cpl_decoder *cpl_shortlist_decoder(const cpl_model *m)
{
    return m->shortlist->decoder;
}
