/* top_p.c: samples come from the fewest tokens that have the probability p together (nucleus sampling, Holtzman et al.
 * 2020), after temperature and the rules before; of equal ones those with the lowest ids. */
#include <math.h>
#include <stdlib.h>
#include "decode/rules.h"

static int descending(const void *a, const void *b)
{
    real x = *(const real *)a, y = *(const real *)b;
    return (x < y) - (x > y);
}

/* Only logits that can matter are sorted: all whose share is below (1 − p) / n have less than 1 − p together. */
int cpl_rule_top_p(const cpl_decode_rules *o, const cpl_decode_path *path, real *logits, int64_t n)
{
    double p = o->top_p, t = path->temperature, sum = 0, passed = 0;
    if (t <= 0 || p <= 0 || p >= 1)
        return 0;
    real top = logits[0];
    for (int64_t i = 1; i < n; i++)
        top = logits[i] > top ? logits[i] : top;
    if (!isfinite(top))
        return 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(((double)logits[i] - (double)top) / t);
    int64_t count = 0, kept = 0, equal = 0;
    for (int64_t i = 0; i < n; i++)
        if (exp(((double)logits[i] - (double)top) / t) >= (1 - p) / (double)n * sum)
            path->scratch[count++] = logits[i];
    qsort(path->scratch, (size_t)count, sizeof *path->scratch, descending);
    while (kept < count && passed < p * sum)
        passed += exp(((double)path->scratch[kept++] - (double)top) / t);
    real least = path->scratch[kept - 1];
    for (int64_t i = 0; i < kept; i++)
        equal += path->scratch[i] == least;
    for (int64_t i = 0; i < n; i++)
        if (logits[i] < least || (logits[i] == least && equal-- <= 0))
            logits[i] = -INFINITY;
    return 0;
}
