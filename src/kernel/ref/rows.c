/* rows.c: reference functions of whole rows: softmax, cross-entropy, argmax, layer normalisation. */
#include <math.h>
#include "kernel/ref/reference.h"

/* The largest entry, NaN skipped (the exponentials that follow bring it back), −∞ taken as 0 so that a
 * row of −∞ alone sums to 0 and never to NaN. */
static double peak(int64_t n, const real *x)
{
    double most = -INFINITY;

    for (int64_t i = 0; i < n; i++) {
        if ((double)x[i] > most)
            most = (double)x[i];
    }
    return most == -INFINITY ? 0.0 : most;
}

void cpl_ref_softmax(int64_t rows, int64_t n, real *x, int64_t ldx)
{
    for (int64_t r = 0; r < rows; r++) {
        real *row = x + r * ldx;
        double most = peak(n, row);
        double sum = 0.0;

        for (int64_t i = 0; i < n; i++)
            sum += exp((double)row[i] - most);
        for (int64_t i = 0; i < n; i++) /* sum 0: every entry is −∞, every weight 0 */
            row[i] = (real)(sum == 0.0 ? 0.0 : exp((double)row[i] - most) / sum);
    }
}

void cpl_ref_softmax_backward(int64_t rows, int64_t n, const real *y, const real *dy, real *dx, int64_t ld)
{
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0.0;

        for (int64_t i = r * ld; i < r * ld + n; i++)
            sum += (double)y[i] * (double)dy[i];
        for (int64_t i = r * ld; i < r * ld + n; i++)
            dx[i] = (real)((double)y[i] * ((double)dy[i] - sum));
    }
}

void cpl_ref_argmax(int64_t rows, int64_t n, const real *x, int64_t ldx, int32_t *index)
{
    for (int64_t r = 0; r < rows; r++) {
        const real *row = x + r * ldx;
        int64_t best = 0;
        int nan = n == 0;

        for (int64_t i = 0; i < n; i++) {
            nan |= isnan(row[i]) != 0;
            if (row[i] > row[best])
                best = i;
        }
        index[r] = nan ? -1 : (int32_t)best;
    }
}

void cpl_ref_argmax_sum_exp(int64_t rows, int64_t n, const real *x, int64_t ldx, int32_t *index, real *sum)
{
    cpl_ref_argmax(rows, n, x, ldx, index);
    for (int64_t r = 0; r < rows; r++) {
        const real *row = x + r * ldx;
        double most = peak(n, row);
        double total = 0.0;

        for (int64_t i = 0; i < n; i++)
            total += exp((double)row[i] - most);
        sum[r] = (real)total;
    }
}

/* One row; see kernel.h. */
static void row_entropy(int64_t n, real *x, int32_t target, real scale, int gradient, real *loss, real *correct)
{
    double most = peak(n, x);
    double sum = 0.0;
    int32_t best;

    *loss = 0;
    *correct = 0;
    if (target != 0) {
        for (int64_t i = 0; i < n; i++)
            sum += exp((double)x[i] - most);
        cpl_ref_argmax(1, n, x, n, &best);
        *loss = (real)(log(sum) + most - (double)x[target]);
        *correct = best == target ? 1 : 0;
    }
    if (!gradient)
        return;
    for (int64_t i = 0; i < n; i++) {
        double share = target == 0 ? 0.0 : exp((double)x[i] - most) / sum - (i == target ? 1.0 : 0.0);

        x[i] = target == 0 ? 0 : (real)((double)scale * share);
    }
}

void cpl_ref_cross_entropy(int64_t rows, int64_t n, real *logits, int64_t ld, const real *bias, const int32_t *target,
                           real scale, int gradient, real *loss, real *correct)
{
    for (int64_t r = 0; r < rows; r++) {
        real *row = logits + r * ld;

        for (int64_t i = 0; bias != NULL && i < n; i++)
            row[i] += bias[i];
        row_entropy(n, row, target[r], scale, gradient, &loss[r], &correct[r]);
    }
}

void cpl_ref_layer_norm(int64_t rows, int64_t n, const real *x, const real *gamma, const real *beta, real epsilon,
                        real *y, real *keep)
{
    for (int64_t r = 0; r < rows; r++) {
        const real *row = x + r * n;
        double mean = 0.0;
        double variance = 0.0;
        double inverse;

        for (int64_t i = 0; i < n; i++)
            mean += (double)row[i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            variance += ((double)row[i] - mean) * ((double)row[i] - mean) / (double)n;
        inverse = 1.0 / sqrt(variance + (double)epsilon);
        for (int64_t i = 0; i < n; i++)
            y[r * n + i] = (real)(((double)row[i] - mean) * inverse * (double)gamma[i] + (double)beta[i]);
        keep[2 * r] = (real)mean;
        keep[2 * r + 1] = (real)inverse;
    }
}

/* With s = (x − mean)·inverse and g = dy·gamma:  dx = inverse · (g − mean(g) − s · mean(g·s)). */
void cpl_ref_layer_norm_backward(int64_t rows, int64_t n, const real *x, const real *gamma, const real *keep,
                                 const real *dy, real *dx, real *dgamma, real *dbeta)
{
    for (int64_t r = 0; r < rows; r++) {
        double mean = (double)keep[2 * r];
        double inverse = (double)keep[2 * r + 1];
        double mean_g = 0.0;
        double mean_gs = 0.0;

        for (int64_t i = 0; i < n; i++) {
            double s = ((double)x[r * n + i] - mean) * inverse;
            double g = (double)dy[r * n + i] * (double)gamma[i];

            mean_g += g / (double)n;
            mean_gs += g * s / (double)n;
            dgamma[i] = (real)((double)dgamma[i] + (double)dy[r * n + i] * s);
            dbeta[i] += dy[r * n + i];
        }
        for (int64_t i = 0; i < n; i++) {
            double s = ((double)x[r * n + i] - mean) * inverse;
            double g = (double)dy[r * n + i] * (double)gamma[i];

            dx[r * n + i] = (real)(inverse * (g - mean_g - s * mean_gs));
        }
    }
}
