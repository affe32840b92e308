/* rouge.c: words as numbers, then n-grams in maps and longest common subsequences in tables.
 *
 * Words get their numbers item by item, so that comparing two is one comparison of integers and counts by word are
 * plain arrays. */
#include "metric/rouge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "metric/lcs.h"
#include "text/unicode.h"

/* A text's words, and where its sentences end among them. Sentences without words are left out: they match nothing. */
typedef struct words {
    int32_t *ids;
    size_t capacity, count;
    size_t *ends;
    size_t end_capacity, sentences;
} words;

struct cpl_rouge {
    int by_pieces;        /* words are BLEU's pieces by split; otherwise runs of a-z and 0-9 */
    cpl_bleu_split split;
    cpl_str lower, pieces; /* scratch of the former */
    double sum[CPL_ROUGE_KINDS]; /* of F-measures, 0 … 1 */
    double last[CPL_ROUGE_KINDS];
    uint64_t items;
    uint64_t references_least, references_most;
    words output, reference; /* scratch from here on */
    cpl_map *numbers;        /* of the item at hand: word → its number + 1 */
    cpl_str word;
    cpl_lcs lcs;
    int64_t *left; /* by word: how often the output, then the reference, may still be hit */
    size_t left_capacity;
};

const char *cpl_rouge_name(int kind)
{
    static const char *const names[CPL_ROUGE_KINDS] = {"rouge1", "rouge2", "rougeL", "rougeLsum"};
    return names[kind];
}

cpl_status cpl_rouge_new(cpl_rouge **r, cpl_error *err)
{
    *r = cpl_alloc(1, sizeof **r);
    if (!*r)
        CPL_FAIL(err, CPL_FAILED, "no memory for scoring");
    return CPL_OK;
}

static void free_words(words *w)
{
    cpl_release(w->ids);
    cpl_release(w->ends);
}

void cpl_rouge_free(cpl_rouge *r)
{
    if (!r)
        return;
    free_words(&r->output);
    free_words(&r->reference);
    cpl_map_free(r->numbers);
    cpl_str_free(&r->word);
    cpl_str_free(&r->lower);
    cpl_str_free(&r->pieces);
    cpl_lcs_free(&r->lcs);
    cpl_release(r->left);
    cpl_release(r);
}

void cpl_rouge_clear(cpl_rouge *r)
{
    memset(r->sum, 0, sizeof r->sum);
    r->items = r->references_least = r->references_most = 0;
}

/* ---- words ---- */

/* Appends text in lower case. */
static cpl_status add_lower(cpl_metric_text t, cpl_str *out, cpl_error *err)
{
    return cpl_compose(t.text, t.length, 0, 1, out, err);
}

cpl_status cpl_rouge_split(cpl_rouge *r, cpl_bleu_split split, cpl_error *err)
{
    cpl_str_clear(&r->lower);
    CPL_TRY(add_lower((cpl_metric_text){"É", 2}, &r->lower, err), err, "cannot split words for ROUGE");
    r->by_pieces = 1;
    r->split = split;
    return CPL_OK;
}

/* The letter or digit at text, in lower case, or 0; *size: its bytes. Two characters beyond ASCII have a lower case
 * with a letter a-z in it: the kelvin sign is k, and the capital I with a dot is i and a mark, which separates. */
static char letter_at(const char *text, size_t left, size_t *size)
{
    char c = text[0];
    *size = 1;
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
        return c;
    if (left >= 3 && memcmp(text, "\xe2\x84\xaa", 3) == 0) {
        *size = 3;
        return 'k';
    }
    if (left >= 2 && memcmp(text, "\xc4\xb0", 2) == 0) {
        *size = 2;
        return 'i';
    }
    return 0;
}

/* The word at hand, if there is one, joins w. Returns 0, or -1 without memory. */
static int end_word(cpl_rouge *r, words *w)
{
    if (r->word.failed)
        return -1;
    if (r->word.length == 0)
        return 0;
    int is_new;
    int64_t *number = cpl_map_insert(r->numbers, r->word.data, r->word.length, &is_new);
    if (!number || cpl_grow(&w->ids, &w->capacity, w->count + 1, sizeof *w->ids))
        return -1;
    if (is_new)
        *number = (int64_t)cpl_map_size(r->numbers);
    w->ids[w->count++] = (int32_t)(*number - 1);
    cpl_str_clear(&r->word);
    return 0;
}

static int end_sentence(cpl_rouge *r, words *w)
{
    if (end_word(r, w))
        return -1;
    if (w->count == (w->sentences ? w->ends[w->sentences - 1] : 0))
        return 0;
    if (cpl_grow(&w->ends, &w->end_capacity, w->sentences + 1, sizeof *w->ends))
        return -1;
    w->ends[w->sentences++] = w->count;
    return 0;
}

/* BLEU's pieces of one line of lower-case text. */
static int read_pieces(cpl_rouge *r, words *w, const char *line, size_t length)
{
    int failed = 0;
    cpl_str_clear(&r->pieces);
    cpl_bleu_split_line(r->split, line, length, &r->pieces);
    for (size_t i = 0; i < r->pieces.length && !failed; i++) {
        if (r->pieces.data[i] == ' ')
            failed = end_word(r, w);
        else
            cpl_str_add_char(&r->word, r->pieces.data[i]);
    }
    return r->pieces.failed || failed ? -1 : end_sentence(r, w);
}

static int read_lines(cpl_rouge *r, words *w, cpl_metric_text t)
{
    w->count = w->sentences = 0;
    cpl_str_clear(&r->word);
    cpl_str_clear(&r->lower);
    int failed = add_lower(t, &r->lower, NULL) != CPL_OK || r->lower.failed;
    for (size_t at = 0; at < r->lower.length && !failed;) {
        const char *line = r->lower.data + at, *end = memchr(line, '\n', r->lower.length - at);
        size_t length = end ? (size_t)(end - line) : r->lower.length - at;
        failed = read_pieces(r, w, line, length);
        at += length + 1;
    }
    return failed ? -1 : 0;
}

static int read_words(cpl_rouge *r, words *w, cpl_metric_text t)
{
    if (r->by_pieces)
        return read_lines(r, w, t);
    size_t size;
    int failed = 0;
    w->count = w->sentences = 0;
    cpl_str_clear(&r->word);
    for (size_t i = 0; i < t.length && !failed; i += size) {
        char c = letter_at(t.text + i, t.length - i, &size);
        if (c)
            cpl_str_add_char(&r->word, c);
        if (!c || (c == 'i' && size == 2))
            failed = t.text[i] == '\n' ? end_sentence(r, w) : end_word(r, w);
    }
    return failed ? -1 : end_sentence(r, w);
}

/* ---- scores of one output and one reference ---- */

static double f_measure(size_t hits, size_t output, size_t reference)
{
    double precision = (double)hits / (double)(output ? output : 1);
    double recall = (double)hits / (double)(reference ? reference : 1);
    return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

/* NULL without memory. An n-gram's key is its numbers' bytes. */
static cpl_map *count_ngrams(const words *w, size_t n)
{
    cpl_map *map = cpl_map_new();
    for (size_t i = 0; map && i + n <= w->count; i++) {
        int64_t *count = cpl_map_insert(map, (const char *)(w->ids + i), n * sizeof *w->ids, NULL);
        if (!count) {
            cpl_map_free(map);
            return NULL;
        }
        ++*count;
    }
    return map;
}

static int score_ngrams(const cpl_rouge *r, size_t n, double *score)
{
    cpl_map *output = count_ngrams(&r->output, n), *reference = count_ngrams(&r->reference, n);
    int failed = !output || !reference;
    int64_t hits = 0;
    for (size_t i = 0; !failed && i < cpl_map_size(reference); i++) {
        size_t length;
        const char *key = cpl_map_key(reference, i, &length);
        const int64_t *there = cpl_map_find(output, key, length);
        int64_t wanted = cpl_map_value(reference, i);
        hits += !there ? 0 : *there < wanted ? *there : wanted;
    }
    cpl_map_free(output);
    cpl_map_free(reference);
    *score = f_measure((size_t)hits, r->output.count >= n ? r->output.count - n + 1 : 0,
                       r->reference.count >= n ? r->reference.count - n + 1 : 0);
    return failed ? -1 : 0;
}

static cpl_lcs_side sentence(const words *w, size_t i)
{
    size_t begin = i ? w->ends[i - 1] : 0;
    return (cpl_lcs_side){w->ids + begin, w->ends[i] - begin};
}

/* A reference word is hit when it lies on the subsequence common with any of the output's sentences; no word is hit
 * more often than it occurs in the output, or in the reference. */
static int count_hits(cpl_rouge *r, size_t *hits)
{
    size_t size = cpl_map_size(r->numbers);
    *hits = 0;
    if (cpl_grow(&r->left, &r->left_capacity, 2 * size, sizeof *r->left))
        return -1;
    int64_t *output = r->left, *reference = r->left + size;
    memset(r->left, 0, 2 * size * sizeof *r->left);
    for (size_t i = 0; i < r->output.count; i++)
        output[r->output.ids[i]]++;
    for (size_t i = 0; i < r->reference.count; i++)
        reference[r->reference.ids[i]]++;
    for (size_t s = 0; s < r->reference.sentences; s++) {
        cpl_lcs_side ref = sentence(&r->reference, s);
        int failed = cpl_lcs_clear(&r->lcs, ref.count);
        for (size_t k = 0; k < r->output.sentences && !failed; k++)
            failed = cpl_lcs_mark(&r->lcs, ref, sentence(&r->output, k));
        for (size_t i = 0; i < ref.count && !failed; i++) {
            int32_t id = ref.ids[i];
            if (!r->lcs.marks[i] || output[id] <= 0 || reference[id] <= 0)
                continue;
            output[id]--;
            reference[id]--;
            ++*hits;
        }
        if (failed)
            return -1;
    }
    return 0;
}

static int score_sequences(cpl_rouge *r, double *whole, double *sentences)
{
    size_t n = r->output.count, m = r->reference.count, hits;
    *whole = *sentences = 0;
    if (n == 0 || m == 0)
        return 0;
    if (cpl_lcs_length(&r->lcs, (cpl_lcs_side){r->reference.ids, m}, (cpl_lcs_side){r->output.ids, n}, &hits))
        return -1;
    *whole = *sentences = f_measure(hits, n, m);
    if (r->output.sentences == 1 && r->reference.sentences == 1)
        return 0; /* then a longest common subsequence is all there is to hit */
    if (count_hits(r, &hits))
        return -1;
    *sentences = f_measure(hits, n, m);
    return 0;
}

/* ---- items ---- */

static int score_item(cpl_rouge *r, cpl_metric_text output, const cpl_metric_text *references, size_t n,
                      double best[CPL_ROUGE_KINDS])
{
    int failed = read_words(r, &r->output, output);
    for (size_t i = 0; i < n && !failed; i++) {
        double score[CPL_ROUGE_KINDS];
        failed = read_words(r, &r->reference, references[i]) || score_ngrams(r, 1, &score[CPL_ROUGE_1]) ||
                 score_ngrams(r, 2, &score[CPL_ROUGE_2]) ||
                 score_sequences(r, &score[CPL_ROUGE_L], &score[CPL_ROUGE_LSUM]);
        for (int k = 0; k < CPL_ROUGE_KINDS && !failed; k++)
            best[k] = score[k] > best[k] ? score[k] : best[k];
    }
    return failed;
}

static void note_references(cpl_rouge *r, uint64_t least, uint64_t most)
{
    if (r->references_least == 0 || least < r->references_least)
        r->references_least = least;
    if (most > r->references_most)
        r->references_most = most;
}

cpl_status cpl_rouge_add(cpl_rouge *r, cpl_metric_text output, const cpl_metric_text *references, size_t n,
                         cpl_error *err)
{
    double best[CPL_ROUGE_KINDS] = {0};
    if (n == 0)
        CPL_FAIL(err, CPL_USAGE, "an output has 0 references, expected at least 1");
    r->numbers = cpl_map_new();
    int failed = !r->numbers || score_item(r, output, references, n, best);
    cpl_map_free(r->numbers);
    r->numbers = NULL;
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "no memory for scoring a text of %zu bytes", output.length);
    for (int k = 0; k < CPL_ROUGE_KINDS; k++) {
        r->last[k] = best[k];
        r->sum[k] += best[k];
    }
    r->items++;
    note_references(r, n, n);
    return CPL_OK;
}

void cpl_rouge_merge(cpl_rouge *r, const cpl_rouge *other)
{
    if (other->items == 0)
        return;
    for (int k = 0; k < CPL_ROUGE_KINDS; k++)
        r->sum[k] += other->sum[k];
    r->items += other->items;
    note_references(r, other->references_least, other->references_most);
}

double cpl_rouge_score(const cpl_rouge *r, int kind)
{
    return r->items ? 100 * r->sum[kind] / (double)r->items : 0;
}

double cpl_rouge_last(const cpl_rouge *r, int kind)
{
    return r->last[kind];
}

char *cpl_rouge_signature(const cpl_rouge *r, int kind, char *buffer, size_t size)
{
    char references[24] = "var";
    if (r->references_least == r->references_most)
        snprintf(references, sizeof references, "%" PRIu64, r->items ? r->references_most : 1);
    snprintf(buffer, size, "nrefs:%s|case:lower|tok:%s|stem:no|%smeasure:f1|average:mean|version:couplet-%s",
             references, r->by_pieces ? cpl_bleu_split_name(r->split) : "a-z0-9",
             kind == CPL_ROUGE_LSUM ? "sent:newline|" : "", CPL_VERSION_STRING);
    return buffer;
}
