/* peak.c: what this instruction set can do at most, for benchmarks to compare with. */
#include "kernel/vector/bf16.h"
#include "kernel/vector/gemm_tile.h"
#include "kernel/vector/vector.h"

/* Independent sums: as many as hide the latency of a multiply-add, and still fit into 16 registers with x and y. */
enum { CHAINS = 12, STREAMS = 8 };

INLINE float total(const vec *sum, int count)
{
    float all = 0.0f;

    for (int i = 0; i < count; i++)
        all += sum_lanes(sum[i]);
    return all;
}

float CPL_FN(peak)(int64_t steps, double *operations)
{
    vec sum[CHAINS], x = splat(0.999f), y = splat(0.001f);

    for (int i = 0; i < CHAINS; i++)
        sum[i] = splat((float)i);
    for (int64_t step = 0; step < steps; step++) {
        UNROLL
        for (int i = 0; i < CHAINS; i++)
            sum[i] = fma_(sum[i], x, y);
    }
    *operations = 2.0 * CHAINS * LANES * (double)steps;
    return total(sum, CHAINS);
}

/* Words of 1e-5 in both places: the sums grow, and reach no infinity that would be slow somewhere. */
float CPL_FN(peak_bf16)(int64_t steps, double *operations)
{
    vec near = round_bf16(splat(1e-5f)), x = join(near, near), sum[CHAINS];

    for (int i = 0; i < CHAINS; i++)
        sum[i] = splat((float)i);
    for (int64_t step = 0; step < steps; step++) {
        UNROLL
        for (int i = 0; i < CHAINS; i++)
            sum[i] = dot_words(x, x, sum[i]);
    }
    *operations = 2.0 * CHAINS * LANES * TOGETHER * (double)steps;
    return total(sum, CHAINS);
}

float CPL_FN(read)(int64_t n, const float *x)
{
    vec sum[STREAMS];
    int64_t i = 0;

    for (int k = 0; k < STREAMS; k++)
        sum[k] = splat(0.0f);
    for (; i + STREAMS * LANES <= n; i += STREAMS * LANES) {
        UNROLL
        for (int k = 0; k < STREAMS; k++)
            sum[k] += load(x + i + k * LANES);
    }
    for (; i < n; i += LANES)
        sum[0] += load_part(x + i, width(n - i));
    return total(sum, STREAMS);
}
