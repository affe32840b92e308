/* vectors.c: which rows of an embedding a file of word vectors gives, and how much of the training text that is.
 *
 * A word is looked up as it is, then in lower case: many files have lower case alone, and "Haus" at the beginning of
 * training is better as "haus" than as chance. An exact match wins wherever it stands in the file; of two lines with
 * the same token the first counts. Nothing of the file is kept but what goes into rows. */
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "data/vectors.h"

enum { ABSENT, LOWER, EXACT };

typedef struct filling {
    const cpl_vectors_options *o;
    const cpl_vocabulary *words;
    int64_t entries;
    uint8_t *found; /* [entries]: ABSENT … */
    cpl_map *lower; /* lower case → the first entry that has it, and is not written so */
    int32_t *next;  /* [entries]: the next entry of the same lower case; 0: none */
    cpl_vector_report report;
} filling;

/* Entries that are in lower case already need no second look-up. */
static cpl_status index_lower(filling *f, cpl_error *err)
{
    cpl_str text = {0};
    cpl_status status = CPL_OK;
    for (int64_t id = CPL_ID_WORDS; id < f->entries && status == CPL_OK; id++) {
        size_t length;
        const char *token = cpl_vocabulary_token(f->words, id, &length);
        cpl_str_clear(&text);
        status = cpl_lower_text(token, length, &text, err);
        if (status != CPL_OK || text.failed || (text.length == length && memcmp(text.data, token, length) == 0))
            continue;
        int64_t *first = cpl_map_insert(f->lower, text.data, text.length, NULL);
        if (!first) {
            text.failed = 1;
            break;
        }
        f->next[id] = (int32_t)*first;
        *first = id;
    }
    if (status == CPL_OK && text.failed)
        status = cpl_error_set(err, CPL_FAILED, "no memory to look up %lld words", (long long)f->entries);
    cpl_str_free(&text);
    return status;
}

static cpl_status put(filling *f, const cpl_vector_text *t, const cpl_vector_line *line, int64_t id, int how,
                      cpl_error *err)
{
    f->found[id] = (uint8_t)how;
    return cpl_vector_text_values(t, line, f->o->rows + id * f->o->width, err);
}

static cpl_status take(filling *f, const cpl_vector_text *t, const cpl_vector_line *line, cpl_error *err)
{
    cpl_status status = CPL_OK;
    int64_t id = cpl_vocabulary_id(f->words, line->token, line->length);
    f->report.vectors++;
    if (id >= CPL_ID_WORDS && f->found[id] == EXACT)
        f->report.repeated++;
    else if (id >= CPL_ID_WORDS)
        status = put(f, t, line, id, EXACT, err);
    const int64_t *first = cpl_map_find(f->lower, line->token, line->length);
    for (id = first ? *first : 0; id > 0 && status == CPL_OK; id = f->next[id])
        if (f->found[id] == ABSENT)
            status = put(f, t, line, id, LOWER, err);
    return status;
}

static cpl_status read_all(filling *f, cpl_error *err)
{
    cpl_vector_text *t;
    cpl_vector_line line = {0};
    cpl_status status = cpl_vector_text_open(&t, f->o, err);
    if (status != CPL_OK)
        return status;
    do {
        status = cpl_vector_text_next(t, &line, err);
        if (status == CPL_OK && line.token)
            status = take(f, t, &line, err);
    } while (status == CPL_OK && line.token);
    int64_t promised = cpl_vector_text_promised(t);
    cpl_vector_text_close(t);
    if (status == CPL_OK && f->report.vectors == 0)
        CPL_FAIL(err, CPL_USAGE, "'%s' holds no vectors", f->o->name);
    if (status == CPL_OK && promised >= 0 && promised != f->report.vectors)
        cpl_log_warning(f->o->log, "'%s' has %lld vectors, but its first line says %lld", f->o->name,
                        (long long)f->report.vectors, (long long)promised);
    return status;
}

/* ---- coverage ---- */

static void count(filling *f, const cpl_dataset *d)
{
    for (int64_t id = CPL_ID_WORDS; id < f->entries; id++) {
        f->report.exact += f->found[id] == EXACT;
        f->report.lower += f->found[id] == LOWER;
    }
    for (int64_t i = 0; i < d->train.count; i++) {
        const cpl_row *row = &d->train.items[i];
        const int32_t *ids = f->o->target ? cpl_row_target(&d->train, i) : cpl_row_source(&d->train, i);
        int32_t n = f->o->target ? row->target : row->source;
        for (int32_t k = 0; k < n; k++)
            f->report.tokens += f->found[ids[k]] != ABSENT; /* never of a special entry */
    }
}

/* Half of the text without a vector: another language, or text rules that the file was not made with. */
static void warn(const filling *f, const cpl_side_report *side)
{
    const cpl_vector_report *r = &f->report;
    const char *name = f->o->target ? "target" : "source";
    if (r->repeated)
        cpl_log_warning(f->o->log, "'%s' has %lld lines with a token that it had before: the first counts", r->from,
                        (long long)r->repeated);
    if (r->tokens * 2 < side->tokens)
        cpl_log_warning(f->o->log, "only %.1f %% of the tokens of the %s have a vector in '%s': check its language and "
                        "text.%s.tokens and standardize", 100.0 * (double)r->tokens / (double)side->tokens, name,
                        r->from, name);
}

cpl_status cpl_dataset_read_vectors(cpl_dataset *d, const cpl_vectors_options *options, cpl_error *err)
{
    filling f = {.o = options, .words = options->target ? d->target : d->source, .report = {.from = options->name}};
    f.entries = cpl_vocabulary_size(f.words);
    f.found = cpl_alloc((size_t)f.entries, sizeof *f.found);
    f.next = cpl_alloc((size_t)f.entries, sizeof *f.next);
    f.lower = cpl_map_new();
    cpl_status status = CPL_OK;
    if (!f.found || !f.next || !f.lower)
        status = cpl_error_set(err, CPL_FAILED, "no memory to look up %lld words", (long long)f.entries);
    if (status == CPL_OK)
        status = index_lower(&f, err);
    if (status == CPL_OK)
        status = read_all(&f, err);
    if (status == CPL_OK) {
        count(&f, d);
        cpl_side_report *side = options->target ? &d->report.target : &d->report.source;
        side->vectors = f.report;
        warn(&f, side);
    }
    cpl_release(f.found);
    cpl_release(f.next);
    cpl_map_free(f.lower);
    return status;
}
