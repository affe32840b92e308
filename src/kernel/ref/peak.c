/* peak.c: what the plainest loop can do: the reference has no limit of its own to be compared with. */
#include "kernel/ref/reference.h"

real cpl_ref_peak(int64_t steps, double *operations)
{
    real sum = 0;

    for (int64_t i = 0; i < steps; i++)
        sum = sum * (real)0.999 + (real)0.001;
    *operations = 2.0 * (double)steps;
    return sum;
}

real cpl_ref_read(int64_t n, const real *x)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return (real)sum;
}
