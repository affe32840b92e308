/* norm.c: layer normalisation, one row at a time. */
#include <math.h>
#include "kernel/vector/vector.h"

/* Σ x, then Σ (x − mean)²: two passes, because Σx² − n·mean² loses digits. */
static float sum_of(int64_t n, const float *x)
{
    vec sum = splat(0.0f);

    for (int64_t i = 0; i < n; i += LANES)
        sum = sum + load_part(x + i, width(n - i));
    return sum_lanes(sum);
}

static float sum_of_squares(int64_t n, const float *x, float mean)
{
    vec sum = splat(0.0f);

    for (int64_t i = 0; i < n; i += LANES) {
        vec d = load_fill(x + i, width(n - i), splat(mean)) - splat(mean);

        sum = fma_(d, d, sum);
    }
    return sum_lanes(sum);
}

void CPL_FN(layer_norm)(int64_t rows, int64_t n, const float *x, const float *gamma, const float *beta, float epsilon,
                        float *y, float *keep)
{
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        float mean = sum_of(n, x) / (float)n;
        float variance = sum_of_squares(n, x, mean) / (float)n;
        float inverse = 1.0f / sqrtf(variance + epsilon);

        for (int64_t i = 0; i < n; i += LANES) {
            int w = width(n - i);
            vec s = (load_part(x + i, w) - splat(mean)) * splat(inverse);

            store_part(y + i, w, fma_(s, load_part(gamma + i, w), load_part(beta + i, w)));
        }
        keep[2 * r] = mean;
        keep[2 * r + 1] = inverse;
    }
}

/* First pass of a row: the parameters' gradients and the two means that dx needs. */
static void norm_sums(int64_t n, const float *x, const float *gamma, const float *keep, const float *dy, float *dgamma,
                      float *dbeta, float means[2])
{
    vec sum_g = splat(0.0f);
    vec sum_gs = splat(0.0f);

    for (int64_t i = 0; i < n; i += LANES) {
        int w = width(n - i);
        vec s = (load_part(x + i, w) - splat(keep[0])) * splat(keep[1]);
        vec d = load_part(dy + i, w);
        vec g = d * load_part(gamma + i, w);

        sum_g = sum_g + g;
        sum_gs = fma_(g, s, sum_gs);
        store_part(dgamma + i, w, fma_(d, s, load_part(dgamma + i, w)));
        store_part(dbeta + i, w, d + load_part(dbeta + i, w));
    }
    means[0] = sum_lanes(sum_g) / (float)n;
    means[1] = sum_lanes(sum_gs) / (float)n;
}

void CPL_FN(layer_norm_backward)(int64_t rows, int64_t n, const float *x, const float *gamma, const float *keep,
                                 const float *dy, float *dx, float *dgamma, float *dbeta)
{
    for (int64_t r = 0; r < rows; r++, x += n, dy += n, dx += n, keep += 2) {
        float means[2];

        norm_sums(n, x, gamma, keep, dy, dgamma, dbeta, means);
        for (int64_t i = 0; i < n; i += LANES) {
            int w = width(n - i);
            vec s = (load_part(x + i, w) - splat(keep[0])) * splat(keep[1]);
            vec g = load_part(dy + i, w) * load_part(gamma + i, w);

            store_part(dx + i, w, splat(keep[1]) * (g - splat(means[0]) - s * splat(means[1])));
        }
    }
}
