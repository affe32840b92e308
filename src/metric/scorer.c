/* scorer.c: figures by families: those of a family follow from the same numbers, which stand side by side in an item's
 * row. A row's families are those of which a figure is wanted. */
#include "metric/scorer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "metric/chrf.h"
#include "metric/repetition.h"
#include "metric/rouge.h"

enum { BLEU, CHRF, CHRF_WORDS, EXACT, TOKEN_ERROR, ROUGE, REPETITION, FAMILIES };

struct cpl_scorer {
    cpl_scorer_options o;
    size_t offset[FAMILIES]; /* in a row */
    size_t width;
    double *sums; /* [width] */
    double *rows; /* [items width], with o.keep */
    double *row;  /* the item at hand, without */
    size_t capacity, items;
    uint64_t least, most; /* references of an item */
    cpl_metric *bleu;
    cpl_chrf *chrf, *chrf_words;
    cpl_token_error *errors;
    cpl_rouge *rouge;
};

/* ---- families ---- */

static cpl_status add_bleu(cpl_scorer *s, const cpl_scored *item, double *row, cpl_error *err)
{
    cpl_metric_counts before = *cpl_metric_so_far(s->bleu);
    cpl_status status = cpl_metric_add(s->bleu, item->output, item->references, item->n, err);
    const cpl_metric_counts *now = cpl_metric_so_far(s->bleu);
    for (int k = 0; k < CPL_BLEU_ORDER; k++) {
        row[k] = (double)(now->matches[k] - before.matches[k]);
        row[CPL_BLEU_ORDER + k] = (double)(now->totals[k] - before.totals[k]);
    }
    row[2 * CPL_BLEU_ORDER] = (double)(now->output_length - before.output_length);
    row[2 * CPL_BLEU_ORDER + 1] = (double)(now->reference_length - before.reference_length);
    return status;
}

static double bleu_of(const double *sums, double items, int kind)
{
    (void)items, (void)kind;
    cpl_metric_counts c = {.output_length = (uint64_t)sums[2 * CPL_BLEU_ORDER],
                           .reference_length = (uint64_t)sums[2 * CPL_BLEU_ORDER + 1]};
    for (int k = 0; k < CPL_BLEU_ORDER; k++) {
        c.matches[k] = (uint64_t)sums[k];
        c.totals[k] = (uint64_t)sums[CPL_BLEU_ORDER + k];
    }
    return cpl_bleu_from_counts(&c).score;
}

static cpl_status add_chrf(cpl_scorer *s, const cpl_scored *item, double *row, cpl_error *err)
{
    return cpl_chrf_count(s->chrf, item->output, item->references, item->n, row, err);
}

static cpl_status add_chrf_words(cpl_scorer *s, const cpl_scored *item, double *row, cpl_error *err)
{
    return cpl_chrf_count(s->chrf_words, item->output, item->references, item->n, row, err);
}

static double chrf_of(const double *sums, double items, int kind)
{
    (void)items, (void)kind;
    return cpl_chrf_score(sums, 0);
}

static double chrf_words_of(const double *sums, double items, int kind)
{
    (void)items, (void)kind;
    return cpl_chrf_score(sums, 2);
}

static cpl_status add_exact(cpl_scorer *s, const cpl_scored *item, double *row, cpl_error *err)
{
    (void)s, (void)err;
    row[0] = cpl_exact_match(item->output, item->references, item->n);
    return CPL_OK;
}

static double exact_of(const double *sums, double items, int kind)
{
    return items > 0 ? sums[kind] / items : 0;
}

static cpl_status add_token_error(cpl_scorer *s, const cpl_scored *item, double *row, cpl_error *err)
{
    cpl_edits edits = {0, 0};
    cpl_status status = cpl_token_error_count(s->errors, item->output, item->references, item->n, &edits, err);
    row[0] = edits.edits;
    row[1] = edits.tokens;
    return status;
}

static double token_error_of(const double *sums, double items, int kind)
{
    (void)items, (void)kind;
    return cpl_token_error_rate(sums[0], sums[1]);
}

static cpl_status add_rouge(cpl_scorer *s, const cpl_scored *item, double *row, cpl_error *err)
{
    cpl_status status = cpl_rouge_add(s->rouge, item->output, item->references, item->n, err);
    for (int k = 0; k < CPL_ROUGE_KINDS; k++)
        row[k] = cpl_rouge_last(s->rouge, k);
    return status;
}

static double rouge_of(const double *sums, double items, int kind)
{
    return items > 0 ? 100 * sums[kind] / items : 0;
}

static cpl_status add_repetition(cpl_scorer *s, const cpl_scored *item, double *row, cpl_error *err)
{
    cpl_repetition_counts c = {0};
    cpl_status status = cpl_repetition_add(&c, s->o.split, item->output, item->source, err);
    row[0] = (double)c.repeated, row[1] = (double)c.trigrams;
    row[2] = (double)c.copied, row[3] = (double)c.tokens;
    return status;
}

static double repetition_of(const double *sums, double items, int kind)
{
    (void)items;
    return sums[2 * kind + 1] > 0 ? sums[2 * kind] / sums[2 * kind + 1] : 0;
}

static const struct family {
    int first, figures; /* its figures follow one another; kind 0 is the first */
    size_t width;       /* numbers in a row */
    cpl_status (*add)(cpl_scorer *s, const cpl_scored *item, double *row, cpl_error *err);
    double (*value)(const double *sums, double items, int kind);
} families[FAMILIES] = {
    [BLEU] = {CPL_FIGURE_BLEU, 1, 2 * CPL_BLEU_ORDER + 2, add_bleu, bleu_of},
    [CHRF] = {CPL_FIGURE_CHRF, 1, CPL_CHRF_WIDTH, add_chrf, chrf_of},
    [CHRF_WORDS] = {CPL_FIGURE_CHRF_WORDS, 1, CPL_CHRF_WIDTH, add_chrf_words, chrf_words_of},
    [EXACT] = {CPL_FIGURE_EXACT, 1, 1, add_exact, exact_of},
    [TOKEN_ERROR] = {CPL_FIGURE_TOKEN_ERROR_RATE, 1, 2, add_token_error, token_error_of},
    [ROUGE] = {CPL_FIGURE_ROUGE, CPL_ROUGE_KINDS, CPL_ROUGE_KINDS, add_rouge, rouge_of},
    [REPETITION] = {CPL_FIGURE_REPEATED_TRIGRAMS, 2, 4, add_repetition, repetition_of},
};

static int is_wanted(const cpl_scorer *s, int family)
{
    const struct family *f = &families[family];
    uint32_t bits = ((UINT32_C(1) << f->figures) - 1) << f->first;
    return (s->o.wanted & bits) != 0;
}

/* The family that counts a wanted figure, or −1. */
static int family_of(const cpl_scorer *s, int figure)
{
    for (int i = 0; i < FAMILIES; i++)
        if (figure >= families[i].first && figure < families[i].first + families[i].figures)
            return is_wanted(s, i) ? i : -1;
    return -1;
}

/* ---- the scorer ---- */

static cpl_status make_counters(cpl_scorer *s, cpl_error *err)
{
    cpl_token_rule rule = {.tokens = s->o.tokens, .by_pieces = s->o.split_all, .split = s->o.split};
    cpl_status status = CPL_OK;
    if (is_wanted(s, BLEU))
        status = cpl_metric_new(&s->bleu, s->o.split, err);
    if (status == CPL_OK && is_wanted(s, CHRF))
        status = cpl_chrf_new(&s->chrf, 0, err);
    if (status == CPL_OK && is_wanted(s, CHRF_WORDS))
        status = cpl_chrf_new(&s->chrf_words, 2, err);
    if (status == CPL_OK && is_wanted(s, TOKEN_ERROR))
        status = cpl_token_error_new(&s->errors, &rule, err);
    if (status == CPL_OK && is_wanted(s, ROUGE))
        status = cpl_rouge_new(&s->rouge, err);
    if (status == CPL_OK && s->rouge && s->o.split_all)
        status = cpl_rouge_split(s->rouge, s->o.split, err);
    return status;
}

cpl_status cpl_scorer_new(cpl_scorer **out, const cpl_scorer_options *options, cpl_error *err)
{
    cpl_scorer *s = *out = cpl_alloc(1, sizeof *s);
    if (!s)
        CPL_FAIL(err, CPL_FAILED, "no memory for scoring");
    s->o = *options;
    for (int i = 0; i < FAMILIES; i++) {
        s->offset[i] = s->width;
        s->width += is_wanted(s, i) ? families[i].width : 0;
    }
    s->sums = cpl_alloc(s->width, sizeof *s->sums);
    s->row = cpl_alloc(s->width, sizeof *s->row);
    cpl_status status = s->sums && s->row ? make_counters(s, err)
                                          : cpl_error_set(err, CPL_FAILED, "no memory for scoring");
    if (status != CPL_OK) {
        cpl_scorer_free(s);
        *out = NULL;
    }
    return status;
}

void cpl_scorer_free(cpl_scorer *s)
{
    if (!s)
        return;
    cpl_metric_free(s->bleu);
    cpl_chrf_free(s->chrf);
    cpl_chrf_free(s->chrf_words);
    cpl_token_error_free(s->errors);
    cpl_rouge_free(s->rouge);
    cpl_release(s->sums);
    cpl_release(s->rows);
    cpl_release(s->row);
    cpl_release(s);
}

void cpl_scorer_clear(cpl_scorer *s)
{
    memset(s->sums, 0, s->width * sizeof *s->sums);
    s->items = 0;
    s->least = s->most = 0;
    if (s->bleu)
        cpl_metric_clear(s->bleu);
    if (s->rouge)
        cpl_rouge_clear(s->rouge);
}

cpl_status cpl_scorer_add(cpl_scorer *s, const cpl_scored *item, cpl_error *err)
{
    double *row = s->row;
    if (item->n == 0)
        CPL_FAIL(err, CPL_USAGE, "an output has 0 references, expected at least 1");
    if (s->o.keep) {
        if (cpl_grow(&s->rows, &s->capacity, (s->items + 1) * s->width, sizeof *s->rows))
            CPL_FAIL(err, CPL_FAILED, "no memory for the figures of %zu items", s->items + 1);
        row = s->rows + s->items * s->width;
    }
    for (int i = 0; i < FAMILIES; i++) {
        cpl_status status = is_wanted(s, i) ? families[i].add(s, item, row + s->offset[i], err) : CPL_OK;
        if (status != CPL_OK)
            return status;
    }
    for (size_t i = 0; i < s->width; i++)
        s->sums[i] += row[i];
    s->least = s->items == 0 || item->n < s->least ? item->n : s->least;
    s->most = item->n > s->most ? item->n : s->most;
    s->items++;
    return CPL_OK;
}

size_t cpl_scorer_items(const cpl_scorer *s)
{
    return s->items;
}

size_t cpl_scorer_width(const cpl_scorer *s)
{
    return s->width;
}

const double *cpl_scorer_row(const cpl_scorer *s, size_t item)
{
    return s->rows + item * s->width;
}

double cpl_scorer_value_of(const cpl_scorer *s, int figure, const double *sums, size_t items)
{
    int i = family_of(s, figure);
    if (i < 0)
        return (double)NAN;
    return families[i].value(sums + s->offset[i], (double)items, figure - families[i].first);
}

double cpl_scorer_value(const cpl_scorer *s, int figure)
{
    return cpl_scorer_value_of(s, figure, s->sums, s->items);
}

/* ---- signatures ---- */

/* "nrefs:1|", "nrefs:var|". */
static void write_references(const cpl_scorer *s, char text[32])
{
    snprintf(text, 32, "nrefs:var|");
    if (s->least == s->most)
        snprintf(text, 32, "nrefs:%" PRIu64 "|", s->items ? s->most : 1);
}

/* Without resamples; empty when the figure has none. */
static void write_signature(const cpl_scorer *s, int figure, char buffer[CPL_SIGNATURE_SIZE])
{
    char references[32];
    int family = family_of(s, figure), kind = family < 0 ? 0 : figure - families[family].first;
    buffer[0] = '\0';
    write_references(s, references);
    if (family == BLEU)
        cpl_metric_signature(s->bleu, buffer, CPL_SIGNATURE_SIZE);
    else if (family == ROUGE)
        cpl_rouge_signature(s->rouge, kind, buffer, CPL_SIGNATURE_SIZE);
    else if (family == REPETITION)
        cpl_repetition_signature(s->o.split, buffer, CPL_SIGNATURE_SIZE);
    else if (family == CHRF || family == CHRF_WORDS)
        snprintf(buffer, CPL_SIGNATURE_SIZE, "%scase:mixed|eff:yes|nc:%d|nw:%d|space:no|version:couplet-%s", references,
                 CPL_CHRF_CHARACTERS, family == CHRF ? 0 : 2, CPL_VERSION_STRING);
    else if (family == TOKEN_ERROR) {
        cpl_token_rule rule = {.tokens = s->o.tokens, .by_pieces = s->o.split_all, .split = s->o.split};
        snprintf(buffer, CPL_SIGNATURE_SIZE, "%scase:mixed|tok:%s|ref:nearest|version:couplet-%s", references,
                 cpl_token_rule_name(&rule), CPL_VERSION_STRING);
    }
}

const char *cpl_scorer_signature(const cpl_scorer *s, int figure, size_t resamples, uint64_t seed, char *buffer)
{
    char plain[CPL_SIGNATURE_SIZE];
    write_signature(s, figure, plain);
    if (!plain[0])
        return NULL;
    /* sacreBLEU's place for it: after the number of references. */
    size_t cut = strncmp(plain, "nrefs:", 6) == 0 ? strcspn(plain, "|") + 1 : 0;
    if (resamples)
        snprintf(buffer, CPL_SIGNATURE_SIZE, "%.*sbs:%zu|seed:%" PRIu64 "|%s", (int)cut, plain, resamples, seed,
                 plain + cut);
    else
        memcpy(buffer, plain, sizeof plain);
    return buffer;
}
