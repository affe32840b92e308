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

        for (int64_t i = 0; dq != NULL && i < t; i++)
            dq[i * n + c] = (real)((double)v[c] * slopes(s, n, (double)q[i * n + c], k + c, dscores + i * s, 1));
        for (int64_t j = 0; dk != NULL && j < s; j++)
            dk[j * n + c] = (real)((double)v[c] * slopes(t, n, (double)k[j * n + c], q + c, dscores + j, s));
        for (int64_t i = 0; dv != NULL && i < t * s; i++)
            sum += (double)dscores[i] * tanh((double)q[i / s * n + c] + (double)k[i % s * n + c]);
        if (dv != NULL)
            dv[c] = (real)sum;
    }
}

/* ---- single steps ---- */

void cpl_ref_additive_exponentials(int64_t n, const real *k, real *e)
{
    for (int64_t i = 0; i < n; i++)
        e[i] = fabs((double)k[i]) > 20.0 ? (real)NAN : (real)exp(2.0 * (double)k[i]);
}

static double mask_of(const cpl_additive_step *a, int64_t j)
{
    return a->mask != NULL ? (double)a->mask[j] : 1.0;
}

void cpl_ref_additive_step(const cpl_additive_step *a, real *weights, real *y)
{
    for (int64_t j = 0; j < a->s; j++)
        cpl_ref_additive_scores(1, 1, a->n, a->q, a->k + a->at[j] * a->n, a->v, NULL, weights + j);
    cpl_ref_softmax(1, a->s, weights, a->s);
    for (int64_t c = 0; c < a->u; c++) {
        double sum = 0.0;

        for (int64_t j = 0; j < a->s; j++)
            sum += (double)weights[j] * mask_of(a, j) * (double)a->m[a->at[j] * a->u + c];
        y[c] = (real)sum;
    }
}

/* Gradients of the scores; in double until the last, as their sum is 0. */
static void step_scores_backward(const cpl_additive_step *a, const real *weights, const real *dy, const real *dweights,
                                 real *d)
{
    double mean = 0.0;

    for (int64_t j = 0; j < a->s; j++) {
        double sum = dweights != NULL ? (double)dweights[j] : 0.0;

        for (int64_t c = 0; dy != NULL && c < a->u; c++)
            sum += (double)dy[c] * mask_of(a, j) * (double)a->m[a->at[j] * a->u + c];
        d[j] = (real)sum;
        mean += (double)weights[j] * sum;
    }
    for (int64_t j = 0; j < a->s; j++)
        d[j] = (real)((double)weights[j] * ((double)d[j] - mean));
}

void cpl_ref_additive_step_backward(const cpl_additive_step *a, const real *weights, const real *dy,
                                    const real *dweights, real *dq)
{
    step_scores_backward(a, weights, dy, dweights, a->scratch);
    for (int64_t c = 0; c < a->n; c++) {
        double sum = 0.0;

        for (int64_t j = 0; j < a->s; j++) {
            double f = tanh((double)a->q[c] + (double)a->k[a->at[j] * a->n + c]);

            sum += (double)a->scratch[j] * (1.0 - f * f);
        }
        dq[c] = (real)((double)a->v[c] * sum);
    }
}
