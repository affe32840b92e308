/* bleu.c: the score from counts (Papineni et al. 2002).
 *
 *   BLEU = bp · exp(¼ Σ log pₙ),  pₙ = 100 matchesₙ / totalsₙ,  bp = min(1, exp(1 - reference / output length))
 *
 * Smoothing 'exp' (Chen and Cherry 2014, method 3): the k-th order without a match counts 1/2ᵏ matches. */
#include "metric/metric.h"

#include <math.h>

cpl_bleu_parts cpl_bleu_from_counts(const cpl_metric_counts *c)
{
    cpl_bleu_parts parts = {0, {0}, 1};
    if (c->output_length < c->reference_length)
        parts.brevity_penalty = c->output_length ? exp(1 - (double)c->reference_length / (double)c->output_length) : 0;
    /* Without a match of any order the score is 0 and nothing is smoothed. n-grams that match bring their
     * shorter ones along, so order 1 speaks for all. */
    if (c->matches[0] == 0)
        return parts;
    double halving = 1, logs = 0;
    int complete = 1;
    for (int n = 0; n < CPL_BLEU_ORDER; n++) {
        /* All outputs are shorter than n: without effective order the score is 0 too. */
        if (c->totals[n] == 0) {
            complete = 0;
            break;
        }
        double matches = (double)c->matches[n];
        if (c->matches[n] == 0) {
            halving *= 2;
            matches = 1 / halving;
        }
        parts.precision[n] = 100 * matches / (double)c->totals[n];
        logs += log(parts.precision[n]);
    }
    if (complete)
        parts.score = parts.brevity_penalty * exp(logs / CPL_BLEU_ORDER);
    return parts;
}

double cpl_metric_bleu(const cpl_metric *m, cpl_bleu_parts *parts)
{
    cpl_bleu_parts all = cpl_bleu_from_counts(cpl_metric_so_far(m));
    if (parts)
        *parts = all;
    return all.score;
}

double cpl_perplexity(double mean_loss)
{
    return exp(mean_loss);
}
