/* metric.c: counts over lines.
 *
 * A split line is one string with one space between pieces, so an n-gram is a slice of it and can be a map's
 * key as it stands. For each order the output's n-grams are counted in a map; each reference raises the limit
 * of an n-gram to its own count; what the output has up to the limit matches (clipping). */
#include "metric/metric.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"

/* A split line. Piece i is text[starts[i]] up to the space before text[starts[i + 1]]. */
typedef struct pieces {
    cpl_str text;
    size_t *starts;
    size_t capacity;
    size_t count;
} pieces;

struct cpl_metric {
    cpl_bleu_split split;
    cpl_metric_counts counts;
    pieces output;
    pieces *references; /* reused from line to line */
    size_t reference_capacity;
    size_t reference_used; /* how many of them hold memory */
    int64_t *limits;       /* by n-gram of the output */
    size_t limit_capacity;
};

cpl_status cpl_metric_new(cpl_metric **m, cpl_bleu_split split, cpl_error *err)
{
    *m = cpl_alloc(1, sizeof **m);
    if (!*m)
        CPL_FAIL(err, CPL_FAILED, "no memory for scoring");
    (*m)->split = split;
    return CPL_OK;
}

static void free_pieces(pieces *p)
{
    cpl_str_free(&p->text);
    cpl_release(p->starts);
}

void cpl_metric_free(cpl_metric *m)
{
    if (!m)
        return;
    free_pieces(&m->output);
    for (size_t i = 0; i < m->reference_used; i++)
        free_pieces(&m->references[i]);
    cpl_release(m->references);
    cpl_release(m->limits);
    cpl_release(m);
}

void cpl_metric_clear(cpl_metric *m)
{
    memset(&m->counts, 0, sizeof m->counts);
}

/* Splits into p and finds the pieces; starts has one entry past the last piece. Returns 0, or -1 without memory. */
static int split_into(pieces *p, cpl_bleu_split split, cpl_metric_text line)
{
    cpl_str_clear(&p->text);
    p->count = 0;
    cpl_bleu_split_line(split, line.text, line.length, &p->text);
    if (p->text.failed || cpl_grow(&p->starts, &p->capacity, 2, sizeof *p->starts))
        return -1;
    p->starts[0] = 0;
    if (p->text.length == 0)
        return 0;
    for (size_t i = 0; i <= p->text.length; i++) {
        if (i < p->text.length && p->text.data[i] != ' ')
            continue;
        if (cpl_grow(&p->starts, &p->capacity, p->count + 2, sizeof *p->starts))
            return -1;
        p->starts[++p->count] = i + 1;
    }
    return 0;
}

/* Counts the n-grams of p. NULL without memory. */
static cpl_map *count_ngrams(const pieces *p, size_t n)
{
    cpl_map *map = cpl_map_new();
    for (size_t i = 0; map && i + n <= p->count; i++) {
        size_t begin = p->starts[i], end = p->starts[i + n] - 1;
        int64_t *count = cpl_map_insert(map, p->text.data + begin, end - begin, NULL);
        if (!count) {
            cpl_map_free(map);
            return NULL;
        }
        ++*count;
    }
    return map;
}

/* Raises each limit to what the reference has of that n-gram. Returns 0, or -1 without memory. */
static int raise_limits(int64_t *limits, const cpl_map *output, const pieces *reference, size_t n)
{
    cpl_map *map = count_ngrams(reference, n);
    if (!map)
        return -1;
    for (size_t i = 0; i < cpl_map_size(output); i++) {
        size_t length;
        const char *key = cpl_map_key(output, i, &length);
        const int64_t *count = cpl_map_find(map, key, length);
        if (count && *count > limits[i])
            limits[i] = *count;
    }
    cpl_map_free(map);
    return 0;
}

/* Matches of order n of the line at hand into *matches. Returns 0, or -1 without memory. */
static int match_order(cpl_metric *m, size_t references, size_t n, uint64_t *matches)
{
    *matches = 0;
    cpl_map *output = count_ngrams(&m->output, n);
    if (!output)
        return -1;
    size_t size = cpl_map_size(output);
    int failed = cpl_grow(&m->limits, &m->limit_capacity, size + 1, sizeof *m->limits);
    if (!failed)
        memset(m->limits, 0, size * sizeof *m->limits);
    for (size_t r = 0; r < references && !failed; r++)
        failed = raise_limits(m->limits, output, &m->references[r], n);
    for (size_t i = 0; i < size && !failed; i++) {
        int64_t count = cpl_map_value(output, i);
        *matches += (uint64_t)(count < m->limits[i] ? count : m->limits[i]);
    }
    cpl_map_free(output);
    return failed;
}

/* Length of the reference nearest to the output's, the shorter of two equally near. */
static size_t nearest_length(const cpl_metric *m, size_t references)
{
    size_t length = m->output.count, best = m->references[0].count;
    for (size_t r = 1; r < references; r++) {
        size_t other = m->references[r].count;
        size_t far = other > length ? other - length : length - other;
        size_t near = best > length ? best - length : length - best;
        if (far < near || (far == near && other < best))
            best = other;
    }
    return best;
}

/* Splits the output and its references into m's scratch, which grows to the largest line and stays. */
static int split_all(cpl_metric *m, cpl_metric_text output, const cpl_metric_text *references, size_t n)
{
    if (cpl_grow(&m->references, &m->reference_capacity, n, sizeof *m->references))
        return -1;
    while (m->reference_used < n)
        memset(&m->references[m->reference_used++], 0, sizeof *m->references);
    int failed = split_into(&m->output, m->split, output);
    for (size_t r = 0; r < n && !failed; r++)
        failed = split_into(&m->references[r], m->split, references[r]);
    return failed;
}

int cpl_exact_match(cpl_metric_text output, const cpl_metric_text *references, size_t n)
{
    for (size_t r = 0; r < n; r++) {
        if (references[r].length != output.length)
            continue;
        if (output.length == 0 || memcmp(references[r].text, output.text, output.length) == 0)
            return 1;
    }
    return 0;
}

/* For the signature: whether all lines had the same number of references. */
static void note_references(cpl_metric_counts *c, uint64_t least, uint64_t most)
{
    if (c->references_least == 0 || least < c->references_least)
        c->references_least = least;
    if (most > c->references_most)
        c->references_most = most;
}

cpl_status cpl_metric_add(cpl_metric *m, cpl_metric_text output, const cpl_metric_text *references, size_t n,
                          cpl_error *err)
{
    if (n == 0)
        CPL_FAIL(err, CPL_USAGE, "an output has 0 references, expected at least 1");
    int failed = split_all(m, output, references, n);
    uint64_t matches[CPL_BLEU_ORDER];
    for (size_t k = 0; k < CPL_BLEU_ORDER && !failed; k++)
        failed = match_order(m, n, k + 1, &matches[k]);
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "no memory for scoring a line of %zu bytes", output.length);

    cpl_metric_counts *c = &m->counts;
    for (size_t k = 0; k < CPL_BLEU_ORDER; k++) {
        c->matches[k] += matches[k];
        c->totals[k] += m->output.count > k ? m->output.count - k : 0;
    }
    c->lines++;
    c->exact += (uint64_t)cpl_exact_match(output, references, n);
    c->output_length += m->output.count;
    c->reference_length += nearest_length(m, n);
    note_references(c, n, n);
    return CPL_OK;
}

void cpl_metric_merge(cpl_metric *m, const cpl_metric *other)
{
    cpl_metric_counts *c = &m->counts;
    const cpl_metric_counts *o = &other->counts;
    if (o->lines == 0)
        return;
    for (int k = 0; k < CPL_BLEU_ORDER; k++) {
        c->matches[k] += o->matches[k];
        c->totals[k] += o->totals[k];
    }
    c->lines += o->lines;
    c->exact += o->exact;
    c->output_length += o->output_length;
    c->reference_length += o->reference_length;
    note_references(c, o->references_least, o->references_most);
}

const cpl_metric_counts *cpl_metric_so_far(const cpl_metric *m)
{
    return &m->counts;
}

double cpl_metric_exact(const cpl_metric *m)
{
    return m->counts.lines ? (double)m->counts.exact / (double)m->counts.lines : 0;
}

char *cpl_metric_signature(const cpl_metric *m, char *buffer, size_t size)
{
    const cpl_metric_counts *c = &m->counts;
    char references[24] = "var";
    if (c->references_least == c->references_most)
        snprintf(references, sizeof references, "%" PRIu64, c->lines ? c->references_most : 1);
    snprintf(buffer, size, "nrefs:%s|case:mixed|eff:no|tok:%s|smooth:exp|version:couplet-" CPL_VERSION_STRING,
             references, cpl_bleu_split_name(m->split));
    return buffer;
}
