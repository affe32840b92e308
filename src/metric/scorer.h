/* scorer.h: every figure by its name, from outputs and references. One table (figures.c) has them all; `evaluate` and
 * the validation of a training ask for names and get numbers.
 *
 *   uint32_t wanted;
 *   cpl_scorer *s;
 *   CPL_TRY(cpl_figures_parse("bleu,rouge", &wanted, err), err, "cannot evaluate");
 *   CPL_TRY(cpl_scorer_new(&s, &(cpl_scorer_options){.wanted = wanted}, err), err, "cannot evaluate");
 *   for each output: CPL_TRY(cpl_scorer_add(s, &(cpl_scored){output, source, references, n}, err), err, "item %zu", i);
 *   for (int f = 0; f < CPL_FIGURES; f++)
 *       if (wanted & cpl_figure_bit(f))
 *           … cpl_figure_at(f)->name, cpl_scorer_value(s, f) …
 *   cpl_scorer_free(s);
 *
 * A figure follows from numbers that are summed over items. With `keep` the items' own numbers stay, so that resamples
 * of them can be scored (bootstrap.h). Figures that need the model's probabilities have a name here, no value. */
#ifndef CPL_METRIC_SCORER_H
#define CPL_METRIC_SCORER_H

#include "metric/metric.h"
#include "metric/token_error.h"

/* In the order in which they are shown. */
typedef enum cpl_figure {
    CPL_FIGURE_BLEU,
    CPL_FIGURE_CHRF,
    CPL_FIGURE_CHRF_WORDS, /* chrf++ */
    CPL_FIGURE_EXACT,
    CPL_FIGURE_TOKEN_ERROR_RATE,
    CPL_FIGURE_ROUGE, /* four of them, as rouge.h counts kinds */
    CPL_FIGURE_REPEATED_TRIGRAMS = CPL_FIGURE_ROUGE + 4,
    CPL_FIGURE_COPY_RATE,
    CPL_FIGURE_ACCURACY,
    CPL_FIGURE_LOSS,
    CPL_FIGURE_PERPLEXITY,
    CPL_FIGURES
} cpl_figure;

/* What a figure is counted from. */
typedef enum cpl_figure_needs { CPL_NEEDS_OUTPUT, CPL_NEEDS_SOURCE, CPL_NEEDS_MODEL } cpl_figure_needs;

typedef struct cpl_figure_row {
    const char *name;
    cpl_figure_needs needs; /* OUTPUT: and references; SOURCE: and the source too */
    int percent;            /* 1: 0 … 100, shown with two digits; 0: with four */
    int by_default;         /* 1: evaluate shows it when no names are given */
    int smaller_is_better;
} cpl_figure_row;

const cpl_figure_row *cpl_figure_at(int figure);
static inline uint32_t cpl_figure_bit(int figure)
{
    return UINT32_C(1) << figure;
}
/* The figures with these needs, as bits. */
uint32_t cpl_figures_that_need(cpl_figure_needs needs);
uint32_t cpl_figures_default(void);
/* "bleu,rouge" → bits; "rouge" stands for all four kinds. An unknown name is CPL_USAGE with the nearest one. */
cpl_status cpl_figures_parse(const char *list, uint32_t *wanted, cpl_error *err);

typedef struct cpl_scorer_options {
    uint32_t wanted;      /* bits; those that need a model are left out */
    cpl_bleu_split split; /* of BLEU, repetition and copying */
    int split_all;        /* 1: ROUGE and token_error_rate split so too */
    cpl_tokens tokens;    /* otherwise what token_error_rate counts: the target's text rule */
    int keep;             /* 1: the items' numbers are kept */
} cpl_scorer_options;

/* One output, its source (needed by CPL_NEEDS_SOURCE alone) and its references (n ≥ 1). */
typedef struct cpl_scored {
    cpl_metric_text output, source;
    const cpl_metric_text *references;
    size_t n;
} cpl_scored;

typedef struct cpl_scorer cpl_scorer; /* one for one thread */
cpl_status cpl_scorer_new(cpl_scorer **s, const cpl_scorer_options *options, cpl_error *err);
void cpl_scorer_free(cpl_scorer *s); /* NULL is fine */
void cpl_scorer_clear(cpl_scorer *s);
cpl_status cpl_scorer_add(cpl_scorer *s, const cpl_scored *item, cpl_error *err);
size_t cpl_scorer_items(const cpl_scorer *s);
/* Of the items so far; NaN when the figure was not wanted or needs a model. */
double cpl_scorer_value(const cpl_scorer *s, int figure);
/* As sacreBLEU writes it; with resamples > 0 "bs:1000|seed:1" too. NULL for a figure that means the same whoever counts
 * it. buffer has CPL_SIGNATURE_SIZE bytes. */
const char *cpl_scorer_signature(const cpl_scorer *s, int figure, size_t resamples, uint64_t seed, char *buffer);

/* ---- for bootstrap.c: numbers of items ---- */

size_t cpl_scorer_width(const cpl_scorer *s);
const double *cpl_scorer_row(const cpl_scorer *s, size_t item); /* [width]; with `keep` alone */
/* The figure of `items` items whose rows sum to sums. */
double cpl_scorer_value_of(const cpl_scorer *s, int figure, const double *sums, size_t items);

#endif
