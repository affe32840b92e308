/* bootstrap.h: how sure figures are, and whether two systems differ, by resampling items (Koehn 2004).
 *
 *   cpl_bootstrap b = {.samples = 1000, .seed = 1};
 *   CPL_TRY(cpl_bootstrap_run(&b, scorer, baseline, err), err, "cannot resample");
 *   … b.of[CPL_FIGURE_BLEU].low, .high, b.p[CPL_FIGURE_BLEU] …
 *
 * A resample draws as many items as there are, with replacement, and is scored from the sums of their numbers; both
 * systems have the same items drawn. Interval and p are as sacreBLEU's --paired-bs defines them, with other random
 * numbers: the interval is what is left when 1/40 of the resamples is cut off at each end, and
 *
 *   p = (1 + resamples in which |difference| − mean |difference| > |difference of the whole|) / (1 + resamples)
 *
 * except that a difference of 0 counts those that are equal too, so that a system against itself has p = 1. */
#ifndef CPL_METRIC_BOOTSTRAP_H
#define CPL_METRIC_BOOTSTRAP_H

#include "metric/scorer.h"

typedef struct cpl_interval {
    double mean, low, high; /* of the resamples; low … high holds 95 % */
} cpl_interval;

typedef struct cpl_bootstrap {
    size_t samples; /* set these two: at least 1 */
    uint64_t seed;
    cpl_interval of[CPL_FIGURES], of_baseline[CPL_FIGURES]; /* of the figures that were wanted and need no model */
    double p[CPL_FIGURES];
} cpl_bootstrap;

/* Both were made with `keep`, for the same figures, over the same items; baseline NULL: intervals alone. Work: samples
 * × items × numbers of an item. */
cpl_status cpl_bootstrap_run(cpl_bootstrap *b, const cpl_scorer *scorer, const cpl_scorer *baseline, cpl_error *err);

#endif
