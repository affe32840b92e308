/* ids.c: from provisional ids to the vocabularies'. Each type is looked up once, not each occurrence. */
#include "base/error.h"
#include "base/memory.h"
#include "data/encode.h"

/* ---- vocabularies ---- */

/* Counts the tokens of the training rows of one side (0: source, 1: target). */
static cpl_status count_tokens(const cpl_maker *m, int side, cpl_vocabulary_counter *counter, cpl_error *err)
{
    const cpl_map *types = (side ? &m->encoder.target : &m->encoder.source)->types;
    for (size_t i = 0; i < m->train.count; i++) {
        const cpl_row *row = &m->train.items[i];
        const int32_t *ids = m->encoder.ids + row->offset + (side ? row->source : 0);
        int32_t n = side ? row->target : row->source;
        for (int32_t k = 0; k < n; k++) {
            if (ids[k] < CPL_ID_WORDS)
                continue;
            cpl_token token;
            token.text = cpl_map_key(types, (size_t)(ids[k] - CPL_ID_WORDS), &token.length);
            cpl_status status = cpl_counter_add(counter, &token, 1, err);
            if (status != CPL_OK)
                return status;
        }
    }
    return CPL_OK;
}

/* v NULL: only counts. */
static cpl_status make_vocabulary(cpl_maker *m, int side, const cpl_config_side *rules, cpl_vocabulary **v,
                                  cpl_error *err)
{
    cpl_vocabulary_counter *counter = cpl_counter_new();
    if (!counter)
        CPL_FAIL(err, CPL_FAILED, "no memory to count tokens");
    cpl_status status = count_tokens(m, side, counter, err);
    if (status == CPL_OK) {
        cpl_token_statistics s = cpl_counter_statistics(counter);
        cpl_side_report *r = side ? &m->d->report.target : &m->d->report.source;
        r->types = (int64_t)s.types;
        r->singletons = (int64_t)s.singletons;
        r->letters = s.characters;
        if (v && rules->tokens == CPL_TOKENS_BYTE)
            status = cpl_vocabulary_of_bytes(v, err);
        else if (v)
            status = cpl_vocabulary_build(v, counter, rules->vocabulary_size, rules->min_count, err);
    }
    cpl_counter_free(counter);
    return status;
}

/* One vocabulary, of the tokens of both sides together, is the source's own and the target's too. An autoencoder's
 * sides are one text, which counts once. */
static cpl_status make_shared(cpl_maker *m, const cpl_config_side *rules, cpl_error *err)
{
    int sides = m->options->config->model.type == CPL_MODEL_AUTOENCODER ? 1 : 2;
    cpl_vocabulary_counter *counter = cpl_counter_new();
    cpl_status status = counter ? CPL_OK : cpl_error_set(err, CPL_FAILED, "no memory to count tokens");
    for (int side = 0; side < sides && status == CPL_OK; side++)
        status = count_tokens(m, side, counter, err);
    if (status == CPL_OK && rules->tokens == CPL_TOKENS_BYTE)
        status = cpl_vocabulary_of_bytes(&m->d->own_source, err);
    else if (status == CPL_OK)
        status = cpl_vocabulary_build(&m->d->own_source, counter, rules->vocabulary_size, rules->min_count, err);
    cpl_counter_free(counter);
    return status;
}

cpl_status cpl_maker_vocabularies(cpl_maker *m, cpl_error *err)
{
    const cpl_config_text *text = &m->options->config->text;
    cpl_dataset *d = m->d;
    d->source = m->options->source ? m->options->source : d->own_source; /* subwords are there already */
    d->target = m->options->target ? m->options->target : d->own_target;
    int one = cpl_config_one_text(m->options->config);
    if (one && !d->source && !d->target)
        CPL_TRY(make_shared(m, &text->source, err), err, "cannot build the shared vocabulary");
    if (one && !d->source)
        d->source = d->target ? d->target : d->own_source;
    if (one && !d->target)
        d->target = d->source;
    CPL_TRY(make_vocabulary(m, 0, &text->source, d->source ? NULL : &d->own_source, err), err,
            "cannot build the source vocabulary");
    CPL_TRY(make_vocabulary(m, 1, &text->target, d->target ? NULL : &d->own_target, err), err,
            "cannot build the target vocabulary");
    d->report.source.vocabulary_from = m->options->source_from;
    d->report.target.vocabulary_from = m->options->target_from;
    if (!d->source)
        d->source = d->own_source;
    if (!d->target)
        d->target = d->own_target;
    d->report.source.vocabulary = cpl_vocabulary_size(d->source);
    d->report.target.vocabulary = cpl_vocabulary_size(d->target);
    return CPL_OK;
}

/* ---- provisional ids to ids ---- */

/* What the vocabulary says to each provisional id; −1 for text that spells a special entry, to be counted. */
static int32_t *translation(const cpl_map *types, const cpl_vocabulary *v)
{
    size_t n = cpl_map_size(types);
    int32_t *table = cpl_alloc(n, sizeof *table);
    for (size_t i = 0; table && i < n; i++) {
        size_t length;
        const char *token = cpl_map_key(types, i, &length);
        table[i] = cpl_token_is_special(token, length) ? -1 : cpl_vocabulary_id(v, token, length);
    }
    return table;
}

/* Translates one text in place; returns how many of its n tokens are unknown. */
static uint64_t translate(int32_t *ids, int32_t n, const int32_t *table, uint64_t *specials, int64_t *words)
{
    uint64_t unknown = 0;
    *words = 0;
    for (int32_t k = 0; k < n; k++) {
        if (ids[k] < CPL_ID_WORDS)
            continue;
        int32_t id = table[ids[k] - CPL_ID_WORDS];
        *specials += id < 0;
        ids[k] = id < 0 ? CPL_ID_UNKNOWN : id;
        unknown += ids[k] == CPL_ID_UNKNOWN;
        ++*words;
    }
    return unknown;
}

static void translate_side(cpl_maker *m, int side, const int32_t *table)
{
    cpl_side_report *r = side ? &m->d->report.target : &m->d->report.source;
    for (int split = 0; split < 2; split++) {
        const cpl_row_list *list = split ? &m->valid : &m->train;
        uint64_t *tokens = split ? &r->valid_tokens : &r->tokens, *unknown = split ? &r->valid_unknown : &r->unknown;
        int64_t *longest = split ? &r->valid_longest : &r->longest, words;
        for (size_t i = 0; i < list->count; i++) {
            const cpl_row *row = &list->items[i];
            int32_t *ids = m->encoder.ids + row->offset + (side ? row->source : 0);
            *unknown += translate(ids, side ? row->target : row->source, table, &r->specials, &words);
            *tokens += (uint64_t)words;
            if (words <= *longest)
                continue;
            *longest = words;
            if (split == 0 || m->train.count == 0) {
                r->longest_file = row->file;
                r->longest_line = row->line;
            }
        }
    }
}

cpl_status cpl_maker_translate(cpl_maker *m, cpl_error *err)
{
    for (int side = 0; side < 2; side++) {
        const cpl_encode_side *s = side ? &m->encoder.target : &m->encoder.source;
        int32_t *table = translation(s->types, side ? m->d->target : m->d->source);
        if (!table)
            CPL_FAIL(err, CPL_FAILED, "no memory to translate %zu tokens", cpl_map_size(s->types));
        translate_side(m, side, table);
        cpl_release(table);
    }
    return CPL_OK;
}
