/* repetition.h: whether outputs repeat themselves, and how much of them is copied from the source.
 *
 *   cpl_repetition_counts c = {0};
 *   for each output: CPL_TRY(cpl_repetition_add(&c, CPL_BLEU_13A, output, source, err), err, "item %zu", item);
 *   double repeated = cpl_repeated_trigrams(&c), copied = cpl_copy_rate(&c);
 *
 * Tokens are the pieces that BLEU counts, by the same rule (13a: punctuation stands alone), case as it is. Both figures
 * are shares of all outputs taken together, so a long output weighs more than a short one. */
#ifndef CPL_METRIC_REPETITION_H
#define CPL_METRIC_REPETITION_H

#include "metric/metric.h"

/* Sums over outputs. Plain numbers: may be added field by field. */
typedef struct cpl_repetition_counts {
    uint64_t trigrams; /* three tokens in a row; an output of n tokens has n − 2, or none */
    uint64_t repeated; /* trigrams equal to an earlier one of the same output (it may overlap) */
    uint64_t tokens;
    uint64_t copied; /* tokens that occur anywhere in the output's source */
} cpl_repetition_counts;

cpl_status cpl_repetition_add(cpl_repetition_counts *c, cpl_bleu_split split, cpl_metric_text output,
                              cpl_metric_text source, cpl_error *err);
double cpl_repeated_trigrams(const cpl_repetition_counts *c); /* repeated / trigrams, 0 … 1; 0 without trigrams */
double cpl_copy_rate(const cpl_repetition_counts *c);         /* copied / tokens, 0 … 1; 0 without tokens */
/* "case:mixed|tok:13a|version:couplet-0.1.0". Returns buffer. */
char *cpl_repetition_signature(cpl_bleu_split split, char *buffer, size_t size);

#endif
