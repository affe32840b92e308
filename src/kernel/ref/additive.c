/* additive.c: reference scores of additive attention, and their gradients. */
#include <math.h>
#include "kernel/ref/reference.h"

void cpl_ref_additive_scores(int64_t t, int64_t s, int64_t n, const real *q, const real *k, const real *v,
                             real *scratch, real *scores)
{
    (void)scratch;
    for (int64_t i = 0; i < t; i++) {
        for (int64_t j = 0; j < s; j++) {
            double sum = 0.0;

            for (int64_t c = 0; c < n; c++)
                sum += (double)v[c] * tanh((double)q[i * n + c] + (double)k[j * n + c]);
            scores[i * s + j] = (real)sum;
        }
    }
}

/* Σ over j of d[j · step] · slope of tanh(x + y[j n]): the gradient of one number of q (y = k) or of k (y = q). */
static double slopes(int64_t count, int64_t n, double x, const real *y, const real *d, int64_t step)
{
    double sum = 0.0;

    for (int64_t j = 0; j < count; j++) {
        double f = tanh(x + (double)y[j * n]);

        sum += (double)d[j * step] * (1.0 - f * f);
    }
    return sum;
}

void cpl_ref_additive_scores_backward(int64_t t, int64_t s, int64_t n, const real *q, const real *k, const real *v,
                                      const real *dscores, real *scratch, real *dq, real *dk, real *dv)
{
    (void)scratch;
    for (int64_t c = 0; c < n; c++) {
        double sum = 0.0;

        for (int64_t i = 0; i < t; i++)
            dq[i * n + c] = (real)((double)v[c] * slopes(s, n, (double)q[i * n + c], k + c, dscores + i * s, 1));
        for (int64_t j = 0; j < s; j++)
            dk[j * n + c] = (real)((double)v[c] * slopes(t, n, (double)k[j * n + c], q + c, dscores + j, s));
        for (int64_t i = 0; i < t * s; i++)
            sum += (double)dscores[i] * tanh((double)q[i / s * n + c] + (double)k[i % s * n + c]);
        dv[c] = (real)sum;
    }
}
