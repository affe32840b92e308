/* bootstrap.c: resamples as sums of rows. Draw i of resample k is random number i of stream k: the same for both
 * systems, without a list of what was drawn. */
#include "metric/bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

/* values: [CPL_FIGURES samples], by figure. */
static void score_resamples(const cpl_bootstrap *b, const cpl_scorer *s, double *sums, double *values)
{
    size_t items = cpl_scorer_items(s), width = cpl_scorer_width(s);
    for (size_t k = 0; k < b->samples; k++) {
        uint64_t key = cpl_random_key(b->seed, k, 0);
        memset(sums, 0, width * sizeof *sums);
        for (size_t i = 0; i < items; i++) {
            const double *row = cpl_scorer_row(s, cpl_random_below(key, i, items));
            for (size_t w = 0; w < width; w++)
                sums[w] += row[w];
        }
        for (int f = 0; f < CPL_FIGURES; f++)
            values[(size_t)f * b->samples + k] = cpl_scorer_value_of(s, f, sums, items);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values. */
static cpl_interval interval_of(double *values, size_t n)
{
    cpl_interval v = {0, 0, 0};
    for (size_t k = 0; k < n; k++)
        v.mean += values[k] / (double)n;
    qsort(values, n, sizeof *values, ascending);
    v.low = values[n / 40];
    v.high = values[n - n / 40 - 1];
    return v;
}

static double p_of(const double *a, const double *b, size_t n, double whole)
{
    double mean = 0;
    size_t beyond = 0;
    for (size_t k = 0; k < n; k++)
        mean += fabs(a[k] - b[k]) / (double)n;
    for (size_t k = 0; k < n; k++) {
        double centred = fabs(a[k] - b[k]) - mean;
        beyond += centred > whole || (whole <= 0 && centred >= 0);
    }
    return (double)(beyond + 1) / (double)(n + 1);
}

/* space: sums, then the values of both. */
static void resample(cpl_bootstrap *b, const cpl_scorer *scorer, const cpl_scorer *baseline, double *space)
{
    double *values = space + cpl_scorer_width(scorer), *others = values + CPL_FIGURES * b->samples;
    score_resamples(b, scorer, space, values);
    if (baseline)
        score_resamples(b, baseline, space, others);
    for (int f = 0; f < CPL_FIGURES; f++) {
        double whole = cpl_scorer_value(scorer, f), *a = values + (size_t)f * b->samples;
        double *c = others + (size_t)f * b->samples;
        if (isnan(whole))
            continue;
        if (baseline) {
            b->p[f] = p_of(a, c, b->samples, fabs(whole - cpl_scorer_value(baseline, f)));
            b->of_baseline[f] = interval_of(c, b->samples);
        }
        b->of[f] = interval_of(a, b->samples);
    }
}

cpl_status cpl_bootstrap_run(cpl_bootstrap *b, const cpl_scorer *scorer, const cpl_scorer *baseline, cpl_error *err)
{
    size_t items = cpl_scorer_items(scorer), values = CPL_FIGURES * b->samples;
    if (items == 0 || (baseline && cpl_scorer_items(baseline) != items))
        CPL_FAIL(err, CPL_USAGE, "cannot resample %zu items of a system and %zu of its baseline", items,
                 baseline ? cpl_scorer_items(baseline) : 0);
    double *space = b->samples > SIZE_MAX / CPL_FIGURES / 4
                        ? NULL
                        : cpl_alloc(cpl_scorer_width(scorer) + values * (baseline ? 2 : 1), sizeof *space);
    if (!space)
        CPL_FAIL(err, CPL_FAILED, "no memory for %zu resamples", b->samples);
    resample(b, scorer, baseline, space);
    cpl_release(space);
    return CPL_OK;
}
