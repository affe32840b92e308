/* encode.c: each text is standardised and split once; see encode.h for why the ids are provisional. */
#include "data/encode.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

void cpl_encoder_free(cpl_encoder *e)
{
    cpl_encode_side *sides[2] = {&e->source, &e->target};
    for (int i = 0; i < 2; i++) {
        cpl_map_free(sides[i]->types);
        cpl_str_free(&sides[i]->text);
        cpl_token_list_free(&sides[i]->tokens);
    }
    cpl_release(e->ids);
}

void cpl_row_list_free(cpl_row_list *list)
{
    cpl_release(list->items);
    cpl_release(list->keys);
}

static cpl_status tokenize(cpl_encode_side *s, cpl_slice line, cpl_error *err)
{
    s->tokens.count = 0;
    cpl_str_clear(&s->text);
    uint64_t kept = 0, before = s->report->deleted;
    cpl_status status = cpl_standardize_text(s->rules.standardize, line.text, line.length, &s->text,
                                             &s->report->deleted, &kept, err);
    s->report->characters += kept + s->report->deleted - before;
    if (status == CPL_OK && s->text.length)
        status = cpl_vocabulary_split(s->vocabulary, s->kind, s->text.data, s->text.length, &s->tokens, err);
    return status;
}

static int too_long(const cpl_encode_side *s)
{
    return s->limit > 0 && s->tokens.count > (size_t)s->limit && !s->cut;
}

/* Appends [START] tokens [END]; a cut target has no END, since the text did not end there. A source gets padding. */
static cpl_status append(cpl_encoder *e, cpl_encode_side *s, int32_t *length, cpl_error *err)
{
    size_t n = s->tokens.count, start = e->count;
    int cut = !e->no_limits && s->limit > 0 && n > (size_t)s->limit;
    if (cut) {
        n = (size_t)s->limit;
        s->report->cut++;
    }
    if (n > INT32_MAX - 2)
        CPL_FAIL(err, CPL_USAGE, "a text of %zu tokens is too long", n);
    size_t room = cpl_source_length(n, s->pad_to);
    if (start + room > e->capacity && cpl_grow(&e->ids, &e->capacity, start + room, sizeof *e->ids))
        CPL_FAIL(err, CPL_FAILED, "no memory for %zu ids", start + room);
    for (size_t i = 0; i < n; i++) {
        int is_new;
        int64_t *id = cpl_map_insert(s->types, s->tokens.items[i].text, s->tokens.items[i].length, &is_new);
        if (!id || cpl_map_size(s->types) > INT32_MAX - CPL_ID_WORDS)
            CPL_FAIL(err, CPL_FAILED, "no memory for %zu different tokens", cpl_map_size(s->types));
        if (is_new)
            *id = CPL_ID_WORDS + (int64_t)cpl_map_size(s->types) - 1;
        e->ids[start + 1 + i] = (int32_t)*id;
    }
    size_t all = cpl_source_close(e->ids + start, n, s->pad_to) - (cut && s == &e->target);
    s->report->over_pad_to += s->pad_to > 0 && n + 2 > (size_t)s->pad_to;
    e->count = start + all;
    *length = (int32_t)all;
    return CPL_OK;
}

/* Decides about the tokenised pair. 1: it is dropped, and counted. */
static int dropped(cpl_encoder *e)
{
    if (!e->keep_emptied && (e->source.tokens.count == 0 || e->target.tokens.count == 0)) {
        e->report->emptied++;
        return 1;
    }
    if (e->no_limits)
        return 0;
    cpl_encode_side *first = too_long(&e->source) ? &e->source : too_long(&e->target) ? &e->target : NULL;
    if (!first)
        return 0;
    first->report->too_long++;
    e->report->too_long++;
    return 1;
}

static cpl_status add_row(cpl_encoder *e, const cpl_pair *pair, cpl_row_list *list, cpl_error *err)
{
    if (cpl_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items) ||
        cpl_grow(&list->keys, &list->key_capacity, list->count + 1, sizeof *list->keys))
        CPL_FAIL(err, CPL_FAILED, "no memory for pair %zu", list->count + 1);
    cpl_row *row = &list->items[list->count];
    *row = (cpl_row){.offset = (int64_t)e->count, .file = pair->file, .line = pair->line};
    cpl_status status = append(e, &e->source, &row->source, err);
    if (status == CPL_OK)
        status = append(e, &e->target, &row->target, err);
    if (status != CPL_OK)
        return status;
    if (e->copy) {
        size_t n = e->count + (size_t)(row->source + row->target);
        if (cpl_grow(&e->ids, &e->capacity, n, sizeof *e->ids))
            CPL_FAIL(err, CPL_FAILED, "no memory for %zu ids", n);
        e->count = n;
    }
    const int32_t *ids = e->ids + row->offset;
    cpl_row_key *key = &list->keys[list->count++];
    key->text = cpl_hash64(0, pair->source.text, pair->source.length);
    key->source = cpl_hash64(0, ids, (size_t)row->source * sizeof *ids);
    key->pair = cpl_hash64(key->source, ids + row->source, (size_t)row->target * sizeof *ids);
    return CPL_OK;
}

cpl_status cpl_encode_pair(cpl_encoder *e, const cpl_pair *pair, size_t item, cpl_row_list *list, cpl_error *err)
{
    cpl_status status = tokenize(&e->source, pair->source, err);
    if (status == CPL_OK)
        status = tokenize(&e->target, pair->target, err);
    if (status != CPL_OK || dropped(e))
        return status;
    status = add_row(e, pair, list, err);
    if (status == CPL_OK)
        list->keys[list->count - 1].item = item;
    return status;
}

cpl_status cpl_encode_pairs(cpl_encoder *e, const cpl_pairs *pairs, uint32_t file, cpl_row_list *list, cpl_error *err)
{
    for (size_t i = 0; i < pairs->count; i++) {
        cpl_pair pair = pairs->items[i];
        pair.file += file;
        CPL_TRY(cpl_encode_pair(e, &pair, i, list, err), err, "cannot encode line %u of '%s'", pair.line,
                pairs->files[pairs->items[i].file]);
    }
    return CPL_OK;
}
