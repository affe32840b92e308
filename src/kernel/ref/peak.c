/* peak.c: the multiply-adds of the reference table: plain C on `real`, as a compiler does them one after another. */
#include "kernel/ref/reference.h"

enum { CHAINS = 8 };

double cpl_ref_multiply_adds(int64_t rounds, int bf16, real *sink)
{
    static const volatile real half = (real)0.5, one = 1;
    real a = half, b = one, sum[CHAINS];

    (void)bf16; /* it has no arithmetic of its own for it */
    for (int i = 0; i < CHAINS; i++)
        sum[i] = b;
    for (int64_t r = 0; r < rounds; r++) {
        for (int i = 0; i < CHAINS; i++)
            sum[i] = sum[i] * a + b;
    }
    *sink = 0;
    for (int i = 0; i < CHAINS; i++)
        *sink += sum[i];
    return 2.0 * CHAINS * (double)rounds;
}

real cpl_ref_read(int64_t n, const real *x)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return (real)sum;
}
