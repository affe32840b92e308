/* elementwise.c: loops over vectors, activations, sums of rows and the Adam update. */
#include "kernel/vector/vector.h"
#include "kernel/vector/vmath.h"

void CPL_FN(axpy)(int64_t n, float a, const float *x, float *y)
{
    vec factor = splat(a);
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        store(y + i, fma_(factor, load(x + i), load(y + i)));
    if (i < n)
        store_part(y + i, width(n - i), fma_(factor, load_part(x + i, width(n - i)), load_part(y + i, width(n - i))));
}

/* One rounding each: whatever the compiler makes of these loops gives the same bits. */
void CPL_FN(scale)(int64_t n, float a, const float *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a * x[i];
}

void CPL_FN(add)(int64_t n, const float *x1, const float *x2, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x1[i] + x2[i];
}

void CPL_FN(multiply)(int64_t n, const float *x1, const float *x2, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x1[i] * x2[i];
}

/* Four sums, because one would wait for its own last addition. */
float CPL_FN(dot)(int64_t n, const float *x1, const float *x2)
{
    vec sum[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
    int64_t i = 0;

    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        for (int s = 0; s < 4; s++)
            sum[s] = fma_(load(x1 + i + s * LANES), load(x2 + i + s * LANES), sum[s]);
    }
    for (; i < n; i += LANES)
        sum[0] = fma_(load_part(x1 + i, width(n - i)), load_part(x2 + i, width(n - i)), sum[0]);
    return sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

INLINE vec activate(vec x, cpl_activation f)
{
    switch (f) {
    case CPL_TANH:
        return vtanh(x);
    case CPL_SIGMOID:
        return vsigmoid(x);
    case CPL_RELU:
        return max_(splat(0.0f), x); /* a NaN stays a NaN */
    case CPL_LINEAR:
        break;
    }
    return x;
}

/* Called with f constant, so that the loop holds one activation. */
INLINE void activate_rows(int64_t rows, int64_t n, const float *x, const float *bias, cpl_activation f, float *y)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i += LANES) {
            int w = width(n - i);
            vec v = load_part(x + r * n + i, w);

            if (bias != NULL)
                v = v + load_part(bias + i, w);
            store_part(y + r * n + i, w, activate(v, f));
        }
    }
}

void CPL_FN(bias_activation)(int64_t rows, int64_t n, const float *x, const float *bias, cpl_activation f, float *y)
{
    switch (f) {
    case CPL_TANH:
        activate_rows(rows, n, x, bias, CPL_TANH, y);
        return;
    case CPL_SIGMOID:
        activate_rows(rows, n, x, bias, CPL_SIGMOID, y);
        return;
    case CPL_RELU:
        activate_rows(rows, n, x, bias, CPL_RELU, y);
        return;
    case CPL_LINEAR:
        activate_rows(rows, n, x, bias, CPL_LINEAR, y);
        return;
    }
}

void CPL_FN(activation_backward)(int64_t n, cpl_activation f, const float *y, const float *dy, float *dx)
{
    switch (f) {
    case CPL_TANH:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * (1.0f - y[i] * y[i]);
        return;
    case CPL_SIGMOID:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * (y[i] * (1.0f - y[i]));
        return;
    case CPL_RELU:
        for (int64_t i = 0; i < n; i++)
            dx[i] = y[i] > 0.0f ? dy[i] : dy[i] * 0.0f;
        return;
    case CPL_LINEAR:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i];
        return;
    }
}

/* Four vectors of columns at a time, their sums in registers, down all rows. */
void CPL_FN(add_rows)(int64_t rows, int64_t n, const float *x, int64_t ldx, float *sum)
{
    int64_t i = 0;

    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        vec s[4];

        for (int v = 0; v < 4; v++)
            s[v] = load(sum + i + v * LANES);
        for (int64_t r = 0; r < rows; r++) {
            for (int v = 0; v < 4; v++)
                s[v] = s[v] + load(x + r * ldx + i + v * LANES);
        }
        for (int v = 0; v < 4; v++)
            store(sum + i + v * LANES, s[v]);
    }
    for (; i < n; i += LANES) {
        int w = width(n - i);
        vec s = load_part(sum + i, w);

        for (int64_t r = 0; r < rows; r++)
            s = s + load_part(x + r * ldx + i, w);
        store_part(sum + i, w, s);
    }
}

void CPL_FN(adam)(int64_t n, const float *g, float g_scale, float rate, float beta_1, float beta_2, float epsilon,
                  float rate_decay, float *w, float *m, float *v)
{
    vec b1 = splat(beta_1);
    vec b2 = splat(beta_2);
    vec rest_1 = splat((float)(1.0 - (double)beta_1));
    vec rest_2 = splat((float)(1.0 - (double)beta_2));

    for (int64_t i = 0; i < n; i += LANES) {
        int some = width(n - i);
        vec gradient = load_part(g + i, some) * splat(g_scale);
        vec first = fma_(b1, load_part(m + i, some), rest_1 * gradient);
        vec second = fma_(b2, load_part(v + i, some), rest_2 * gradient * gradient);
        vec weight = load_part(w + i, some);
        vec step = splat(rate) * first / (sqrt_(second) + splat(epsilon));

        store_part(m + i, some, first);
        store_part(v + i, some, second);
        store_part(w + i, some, weight - fma_(splat(rate_decay), weight, step));
    }
}
