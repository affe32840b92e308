/* dataset.c: files to rows of ids, in this order: encode with provisional ids, part training and validation, build the
 * vocabularies from training alone, translate the ids in place, and forget the text. */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/encode.h"

enum { DELETED_LIMIT = 50, ARENA_BYTES = 4096 }; /* percent of characters that a text rule may delete */

/* ---- reading and splitting ---- */

/* A rule that deletes half of the text cannot be what was meant: `tutorial` on another script, say. */
static cpl_status check_deleted(const cpl_maker *m, cpl_error *err)
{
    for (int side = 0; side < 2; side++) {
        const cpl_encode_side *s = side ? &m->encoder.target : &m->encoder.source;
        const cpl_side_report *r = s->report;
        if (r->characters && r->deleted * 100 >= r->characters * DELETED_LIMIT)
            CPL_FAIL(err, CPL_USAGE, "text rule '%s' deletes %.1f %% of the characters of the %s, the limit is %d %%"
                     CPL_HINT "set text.%s.standardize to nfkc or none",
                     cpl_standardize_name(s->rules.standardize), 100.0 * (double)r->deleted / (double)r->characters,
                     side ? "target" : "source", DELETED_LIMIT, side ? "target" : "source");
    }
    return CPL_OK;
}

static cpl_status read_pairs(cpl_maker *m, const cpl_config_files *files, cpl_pairs **pairs, cpl_row_list *list,
                             cpl_error *err)
{
    cpl_pairs_options o = {.swap = m->options->config->data.swap,
                           .mirror = m->options->config->model.type == CPL_MODEL_AUTOENCODER,
                           .keep_empty = m->options->pairs && m->options->keep_empty, .log = m->options->log};
    cpl_status status = cpl_pairs_read(pairs, files, &o, err);
    if (status != CPL_OK)
        return status;
    uint32_t first = (uint32_t)m->d->file_count;
    size_t total = first + (*pairs)->file_count;
    char **names = cpl_arena_alloc(m->d->arena, total * sizeof *names);
    if (!names)
        CPL_FAIL(err, CPL_FAILED, "no memory for %zu file names", total);
    if (first)
        memcpy(names, m->d->files, first * sizeof *names);
    for (size_t i = first; i < total; i++) {
        const char *name = (*pairs)->files[i - first];
        names[i] = cpl_arena_strndup(m->d->arena, name, strlen(name));
        if (!names[i])
            CPL_FAIL(err, CPL_FAILED, "no memory for %zu file names", total);
    }
    m->d->files = names;
    m->d->file_count = total;
    status = cpl_encode_pairs(&m->encoder, *pairs, first, list, err);
    return status == CPL_OK && !m->options->pairs ? check_deleted(m, err) : status;
}

/* Moves the marked rows from train to valid; both keep the order of the file. */
static cpl_status part(cpl_maker *m, const uint8_t *marks, cpl_error *err)
{
    size_t n = m->train.count, chosen = 0, left = 0;
    for (size_t i = 0; i < n; i++)
        chosen += marks[i];
    if (cpl_grow(&m->valid.items, &m->valid.capacity, chosen, sizeof *m->valid.items) ||
        cpl_grow(&m->valid.keys, &m->valid.key_capacity, chosen, sizeof *m->valid.keys))
        CPL_FAIL(err, CPL_FAILED, "no memory for %zu validation pairs", chosen);
    for (size_t i = 0; i < n; i++) {
        cpl_row_list *to = marks[i] ? &m->valid : &m->train;
        size_t at = marks[i] ? m->valid.count++ : left++;
        to->items[at] = m->train.items[i];
        to->keys[at] = m->train.keys[i];
    }
    m->train.count = left;
    return CPL_OK;
}

static cpl_status part_share(cpl_maker *m, cpl_error *err)
{
    const cpl_config *c = m->options->config;
    uint8_t *marks = cpl_alloc(m->train.count, 1);
    if (!marks)
        CPL_FAIL(err, CPL_FAILED, "no memory to split %zu pairs", m->train.count);
    cpl_status status = cpl_share_choose(&m->train, c->data.valid.share, (uint64_t)c->training.seed, marks, err);
    if (status == CPL_OK)
        status = part(m, marks, err);
    cpl_release(marks);
    m->valid_text = m->train_text;
    return status;
}

static cpl_status refuse_empty(const cpl_maker *m, const char *what, const cpl_line_counts *n, cpl_error *err)
{
    const cpl_data_report *r = &m->d->report;
    CPL_FAIL(err, CPL_USAGE, "no %s pairs are left: of %lld lines %lld were blank, %lld had an empty side; %lld pairs "
             "were emptied by the text rule, %lld too long", what, (long long)n->lines, (long long)n->blank,
             (long long)(n->empty_source + n->empty_target + n->empty_both), (long long)r->emptied,
             (long long)r->too_long);
}

static cpl_status read_all(cpl_maker *m, cpl_error *err)
{
    const cpl_config *c = m->options->config;
    cpl_data_report *r = &m->d->report;
    cpl_status status = CPL_OK;
    const cpl_config_files *valid = m->options->pairs ? m->options->pairs : &c->data.valid;
    if (!m->options->pairs) {
        CPL_TRY(read_pairs(m, &c->data.train, &m->train_text, &m->train, err), err, "cannot use the training data");
        r->lines = m->train_text->counts;
        if (m->train.count == 0)
            return refuse_empty(m, "training", &r->lines, err);
    }
    if (valid->count == 0) {
        status = part_share(m, err);
    } else {
        CPL_TRY(read_pairs(m, valid, &m->valid_text, &m->valid, err), err, "cannot use the %s",
                m->options->pairs ? "pairs" : "validation data");
        r->valid_lines = m->valid_text->counts;
        if (m->valid.count == 0)
            return refuse_empty(m, m->options->pairs ? "usable" : "validation", &r->valid_lines, err);
    }
    return status;
}

/* Subwords, and what can only be told of the rows that are left then. */
static cpl_status encode_subwords(cpl_maker *m, cpl_error *err)
{
    cpl_data_report *r = &m->d->report;
    int trains = m->options->pairs == NULL, apart = r->valid_lines.lines > 0;
    cpl_status status = cpl_maker_subwords(m, err);
    if (status != CPL_OK)
        return status;
    if (trains && m->train.count == 0)
        return refuse_empty(m, "training", &r->lines, err);
    if (m->valid.count == 0)
        return refuse_empty(m, trains ? "validation" : "usable", apart ? &r->valid_lines : &r->lines, err);
    return trains && apart ? cpl_share_overlap(&m->train, &m->valid, r, err) : CPL_OK;
}

/* ---- what stays ---- */

static cpl_status keep_texts(cpl_maker *m, cpl_error *err)
{
    cpl_dataset *d = m->d;
    int64_t n = (int64_t)m->valid.count;
    n = m->options->texts >= 0 && m->options->texts < n ? m->options->texts : n;
    d->texts = cpl_arena_alloc(d->arena, (size_t)n * sizeof *d->texts);
    for (int64_t i = 0; d->texts && i < n; i++) {
        const cpl_pair *from = &m->valid_text->items[m->valid.keys[i].item];
        char *source = cpl_arena_strndup(d->arena, from->source.text, from->source.length);
        char *target = cpl_arena_strndup(d->arena, from->target.text, from->target.length);
        if (!source || !target)
            CPL_FAIL(err, CPL_FAILED, "no memory to keep %lld texts", (long long)n);
        d->texts[i] = (cpl_pair){{source, from->source.length}, {target, from->target.length},
                                 m->valid.items[i].file, m->valid.items[i].line};
        d->text_count = i + 1;
    }
    if (!d->texts && n)
        CPL_FAIL(err, CPL_FAILED, "no memory to keep %lld texts", (long long)n);
    return CPL_OK;
}

/* Gives the memory that growing left over back; a failure to shrink changes nothing. */
static void *trimmed(void *p, size_t count, size_t size)
{
    void *smaller = cpl_resize(p, count ? count : 1, size);
    return smaller ? smaller : p;
}

static uint64_t hash_rows(uint64_t hash, const cpl_rows *rows)
{
    hash = cpl_hash64(hash, &rows->count, sizeof rows->count);
    for (int64_t i = 0; i < rows->count; i++) {
        const cpl_row *row = &rows->items[i];
        int32_t lengths[2] = {row->source, row->target};
        hash = cpl_hash64(hash, lengths, sizeof lengths);
        size_t n = (size_t)(row->source + row->target) * (rows->copy ? 2 : 1);
        hash = cpl_hash64(hash, rows->ids + row->offset, n * sizeof *rows->ids);
    }
    return hash;
}

/* By file, where one has a weight. The training files come first. */
static cpl_status find_weights(cpl_maker *m, cpl_error *err)
{
    cpl_dataset *d = m->d;
    const cpl_config_files *files = &m->options->config->data.train;
    int weighted = 0;
    for (size_t i = 0; !m->options->pairs && i < files->count; i++)
        weighted |= cpl_config_weight(&files->items[i]) != 1;
    if (!weighted)
        return CPL_OK;
    double *weights = cpl_arena_alloc(d->arena, d->file_count * sizeof *weights);
    if (!weights)
        CPL_FAIL(err, CPL_FAILED, "no memory for the weights of %zu files", d->file_count);
    for (size_t i = 0; i < d->file_count; i++)
        weights[i] = i < files->count ? cpl_config_weight(&files->items[i]) : 1;
    m->weights = weights;
    cpl_rows rows = {.items = m->train.items, .count = (int64_t)m->train.count, .weights = weights};
    if (m->train.count > 0 && cpl_rows_in_pass(&rows) == 0)
        CPL_FAIL(err, CPL_USAGE, "the weights in 'data.train' leave no pair of %zu in a pass", m->train.count);
    return CPL_OK;
}

static void finish(cpl_maker *m)
{
    cpl_dataset *d = m->d;
    d->ids_count = m->encoder.count;
    d->ids = trimmed(m->encoder.ids, d->ids_count, sizeof *d->ids);
    m->encoder.ids = NULL;
    int copy = m->encoder.copy;
    d->train = (cpl_rows){trimmed(m->train.items, m->train.count, sizeof(cpl_row)), (int64_t)m->train.count, d->ids,
                          copy, m->weights};
    d->valid = (cpl_rows){trimmed(m->valid.items, m->valid.count, sizeof(cpl_row)), (int64_t)m->valid.count, d->ids,
                          copy, NULL};
    m->train.items = m->valid.items = NULL;
    d->report.train = d->train.count;
    d->report.valid = d->valid.count;
    d->report.in_pass = cpl_rows_in_pass(&d->train);
    uint64_t vocabularies[2] = {cpl_vocabulary_checksum(d->source), cpl_vocabulary_checksum(d->target)};
    d->checksum = cpl_hash64(hash_rows(hash_rows(0, &d->train), &d->valid), vocabularies, sizeof vocabularies);
    d->report.bytes = cpl_dataset_bytes(d);
}

static cpl_status make(cpl_maker *m, cpl_error *err)
{
    cpl_status status = read_all(m, err);
    if (status == CPL_OK)
        status = encode_subwords(m, err);
    if (status == CPL_OK)
        status = cpl_maker_vocabularies(m, err);
    if (status == CPL_OK)
        status = cpl_maker_copy(m, err);
    if (status == CPL_OK)
        status = cpl_maker_translate(m, err);
    if (status == CPL_OK)
        status = keep_texts(m, err);
    if (status == CPL_OK)
        status = find_weights(m, err);
    if (status == CPL_OK)
        finish(m);
    return status;
}

/* Other pairs than those to train on (evaluate) are cut with the given vocabulary at once, and have no limits. */
static cpl_encode_side make_side(const cpl_config_side *c, const cpl_vocabulary *given, int trains,
                                 cpl_side_report *report)
{
    int later = trains && cpl_tokens_are_subwords((cpl_tokens)c->tokens);
    return (cpl_encode_side){
        .rules = {(cpl_tokens)c->tokens, (cpl_standardize)c->standardize},
        .kind = later ? CPL_TOKENS_SPACE : (cpl_tokens)c->tokens,
        .vocabulary = given,
        .limit = trains ? c->max_length : 0,
        .cut = c->too_long == CPL_TOO_LONG_CUT,
        .pad_to = c->pad_to,
        .types = cpl_map_new(),
        .report = report,
    };
}

static cpl_status make_sides(cpl_maker *m, cpl_error *err)
{
    const cpl_dataset_options *o = m->options;
    const cpl_config_text *text = &o->config->text;
    cpl_encoder *e = &m->encoder;
    e->report = &m->d->report;
    e->keep_emptied = o->pairs != NULL;
    e->copy = o->copy;
    e->source = make_side(&text->source, o->source, !o->pairs, &m->d->report.source);
    e->target = make_side(&text->target, o->target, !o->pairs, &m->d->report.target);
    e->no_limits = e->source.kind != e->source.rules.tokens || e->target.kind != e->target.rules.tokens;
    m->d->report.source.pad_to = text->source.pad_to;
    m->d->source_rules = e->source.rules;
    m->d->target_rules = e->target.rules;
    if (!e->source.types || !e->target.types)
        CPL_FAIL(err, CPL_FAILED, "no memory for a data set");
    if (o->source)
        CPL_TRY(cpl_vocabulary_check_kind(o->source, e->source.rules.tokens, err), err, "cannot use text.source");
    if (o->target)
        CPL_TRY(cpl_vocabulary_check_kind(o->target, e->target.rules.tokens, err), err, "cannot use text.target");
    return CPL_OK;
}

cpl_status cpl_dataset_new(cpl_dataset **d, const cpl_dataset_options *options, cpl_error *err)
{
    *d = NULL;
    if (options->pairs && (!options->source || !options->target))
        CPL_FAIL(err, CPL_FAILED, "pairs without training data need both vocabularies");
    cpl_maker m = {.options = options, .d = cpl_alloc(1, sizeof *m.d)};
    if (!m.d)
        CPL_FAIL(err, CPL_FAILED, "no memory for a data set");
    m.d->arena = cpl_arena_new(ARENA_BYTES);
    cpl_status status = m.d->arena ? make_sides(&m, err) : cpl_error_set(err, CPL_FAILED, "no memory for a data set");
    if (status == CPL_OK)
        status = make(&m, err);
    cpl_encoder_free(&m.encoder);
    cpl_row_list_free(&m.train);
    cpl_row_list_free(&m.valid);
    if (m.valid_text != m.train_text)
        cpl_pairs_free(m.valid_text);
    cpl_pairs_free(m.train_text);
    if (status == CPL_OK)
        *d = m.d;
    else
        cpl_dataset_free(m.d);
    return status;
}

void cpl_dataset_free(cpl_dataset *d)
{
    if (!d)
        return;
    cpl_release(d->ids);
    cpl_release(d->train.items);
    cpl_release(d->valid.items);
    cpl_vocabulary_free(d->own_source);
    cpl_vocabulary_free(d->own_target);
    cpl_arena_free(d->arena);
    cpl_release(d);
}

uint64_t cpl_dataset_bytes(const cpl_dataset *d)
{
    uint64_t rows = (uint64_t)(d->train.count + d->valid.count) * sizeof(cpl_row);
    uint64_t bytes = sizeof *d + d->ids_count * sizeof *d->ids + rows + cpl_arena_bytes(d->arena);
    if (d->own_source)
        bytes += cpl_vocabulary_bytes(d->own_source);
    if (d->own_target)
        bytes += cpl_vocabulary_bytes(d->own_target);
    return bytes;
}

const char *cpl_dataset_place(const cpl_dataset *d, uint32_t file, uint32_t line, char *buffer, size_t size)
{
    snprintf(buffer, size, "'%s' line %u", file < d->file_count ? d->files[file] : "?", line);
    return buffer;
}
