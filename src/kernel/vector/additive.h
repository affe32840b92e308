/* additive.h: what the files of additive attention share; additive.c says why.
 *
 * r = 1 / (1 + e^2q · e^2k), from 1 down to 0:  tanh(q + k) = 1 − 2r,  slope 4 (r − r²). */
#ifndef CPL_KERNEL_VECTOR_ADDITIVE_H
#define CPL_KERNEL_VECTOR_ADDITIVE_H

#include "kernel/vector/vmath.h"

/* e^2x, exponents cut at ±40. */
INLINE vec exponential_of(vec x)
{
    vexp_parts parts = exp_parts(min_(splat(40.0f), max_(splat(-40.0f), x + x)));

    return (parts.minus1 + splat(1.0f)) * power_of_two(parts.n);
}

INLINE vec absolute(vec x)
{
    return (vec)((ivec)x & ~(ivec)splat(-0.0f));
}

INLINE vec share(vec eq, vec ek)
{
    vec x = fma_(eq, ek, splat(1.0f));
    vec guess = inverse_guess(x);

    return fma_(guess, fma_(-x, guess, splat(1.0f)), guess);
}

/* The same from q and k themselves, however large: the first w of them. */
INLINE vec share_exact(const float *q, const float *k, int w)
{
    return fma_(splat(-0.5f), vtanh(load_part(q, w) + load_part(k, w)), splat(0.5f));
}

#endif
