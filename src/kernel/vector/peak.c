/* peak.c: multiply-adds and nothing else: the most that the arithmetic of this instruction set can do.
 *
 * CHAINS independent sums cover the latency of a multiply-add on two pipes and fit into 16 registers. A sum goes
 * through its own product, so that no part of the work can be taken out of the loop; 0.5·x + 1 stays below 2. Numbers
 * come through volatile memory, since a compiler that knew them could do the work itself. */
#include "kernel/vector/gemm_tile.h"
#include "kernel/vector/vector.h"

enum { CHAINS = 12, STREAMS = 8 };

double CPL_FN(multiply_adds)(int64_t rounds, int bf16, float *sink)
{
    static const volatile float half = 0.5f, one = 1.0f;
    vec a = splat(half), b = splat(one), sum[CHAINS], all = splat(0.0f);

    UNROLL
    for (int i = 0; i < CHAINS; i++)
        sum[i] = b;
    for (int64_t r = 0; bf16 && r < rounds; r++) {
        UNROLL
        for (int i = 0; i < CHAINS; i++)
            sum[i] = dot_words(a, b, sum[i]);
    }
    for (int64_t r = 0; !bf16 && r < rounds; r++) {
        UNROLL
        for (int i = 0; i < CHAINS; i++)
            sum[i] = fma_(sum[i], a, b);
    }
    for (int i = 0; i < CHAINS; i++)
        all = all + sum[i];
    store_part(sink, 1, all);
    return 2.0 * CHAINS * LANES * (double)(bf16 ? TOGETHER : 1) * (double)rounds;
}

/* The sum of x[n], in streams that hide the latency of an addition. */
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
    for (int k = 1; k < STREAMS; k++)
        sum[0] += sum[k];
    return sum_lanes(sum[0]);
}
