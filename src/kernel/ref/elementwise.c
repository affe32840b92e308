/* elementwise.c: reference loops over vectors, activations and the Adam update. */
#include <math.h>
#include "kernel/ref/reference.h"

void cpl_ref_axpy(int64_t n, real a, const real *x, real *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (real)((double)y[i] + (double)a * (double)x[i]);
}

void cpl_ref_scale(int64_t n, real a, const real *x, real *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a * x[i];
}

void cpl_ref_add(int64_t n, const real *x1, const real *x2, real *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x1[i] + x2[i];
}

void cpl_ref_multiply(int64_t n, const real *x1, const real *x2, real *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x1[i] * x2[i];
}

real cpl_ref_dot(int64_t n, const real *x1, const real *x2)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)x1[i] * (double)x2[i];
    return (real)sum;
}

/* Large negative x: exp(-x) is infinite and the quotient 0, as it should be. */
double cpl_ref_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double activate(double x, cpl_activation f)
{
    switch (f) {
    case CPL_TANH:
        return tanh(x);
    case CPL_SIGMOID:
        return cpl_ref_sigmoid(x);
    case CPL_RELU:
        return x < 0.0 ? 0.0 : x; /* in this order a NaN stays a NaN */
    case CPL_LINEAR:
        break;
    }
    return x;
}

void cpl_ref_bias_activation(int64_t rows, int64_t n, const real *x, const real *bias, cpl_activation f, real *y)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++) {
            double b = bias != NULL ? (double)bias[i] : 0.0;

            y[r * n + i] = (real)activate((double)x[r * n + i] + b, f);
        }
    }
}

/* f'(x) in terms of y = f(x). */
static double slope(double y, cpl_activation f)
{
    switch (f) {
    case CPL_TANH:
        return 1.0 - y * y;
    case CPL_SIGMOID:
        return y * (1.0 - y);
    case CPL_RELU:
        return y > 0.0 ? 1.0 : 0.0;
    case CPL_LINEAR:
        break;
    }
    return 1.0;
}

void cpl_ref_activation_backward(int64_t n, cpl_activation f, const real *y, const real *dy, real *dx)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = (real)((double)dy[i] * slope((double)y[i], f));
}

void cpl_ref_add_rows(int64_t rows, int64_t n, const real *x, int64_t ldx, real *sum)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++)
            sum[i] += x[r * ldx + i];
    }
}

void cpl_ref_adam(int64_t n, const real *g, real g_scale, real rate, real beta_1, real beta_2, real epsilon,
                  real rate_decay, real *w, real *m, real *v)
{
    for (int64_t i = 0; i < n; i++) {
        double gradient = (double)g[i] * (double)g_scale;
        double first = (double)beta_1 * (double)m[i] + (1.0 - (double)beta_1) * gradient;
        double second = (double)beta_2 * (double)v[i] + (1.0 - (double)beta_2) * gradient * gradient;
        double step = (double)rate * first / (sqrt(second) + (double)epsilon) + (double)rate_decay * (double)w[i];

        m[i] = (real)first;
        v[i] = (real)second;
        w[i] = (real)((double)w[i] - step);
    }
}
