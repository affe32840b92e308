/* top_k.c: samples come from the k most probable tokens; of equal ones those with the lowest ids. */
#include <math.h>
#include <string.h>
#include "decode/rules.h"

/* The k-th largest of x[n], which it reorders (Hoare's selection). */
static real kth_largest(real *x, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1, at = k - 1;
    while (low < high) {
        real pivot = x[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] > pivot)
                i++;
            while (x[j] < pivot)
                j--;
            if (i > j)
                break;
            real t = x[i];
            x[i++] = x[j];
            x[j--] = t;
        }
        if (at <= j)
            high = j;
        else if (at >= i)
            low = i;
        else
            break;
    }
    return x[at];
}

int cpl_rule_top_k(const cpl_decode_rules *o, const cpl_decode_path *path, real *logits, int64_t n)
{
    if (path->temperature <= 0 || o->top_k <= 0 || o->top_k >= n)
        return 0;
    memcpy(path->scratch, logits, (size_t)n * sizeof *logits);
    real least = kth_largest(path->scratch, n, o->top_k);
    int64_t equal = o->top_k; /* how many of those that equal the least may stay */
    for (int64_t i = 0; i < n; i++)
        equal -= logits[i] > least;
    for (int64_t i = 0; i < n; i++)
        if (logits[i] < least || (logits[i] == least && equal-- <= 0))
            logits[i] = -INFINITY;
    return 0;
}
