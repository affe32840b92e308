/* vmath.h: exp, tanh and sigmoid of a vector, a few units in the last place (the kernel test measures them).
 *
 * exp(x) = 2ⁿ·exp(r) with n = round(x / ln 2), |r| ≤ ln 2 / 2, and exp(r) − 1 = r + r²·q(r), q of degree 4
 * through the Chebyshev points of that interval (error below 1e-8). NaN stays NaN everywhere. */
#ifndef CPL_KERNEL_VECTOR_VMATH_H
#define CPL_KERNEL_VECTOR_VMATH_H

#include "kernel/vector/vec.h"

/* exp(x) = (minus1 + 1)·2ⁿ: the parts that exp and tanh share, for |x| ≤ 105. */
typedef struct vexp_parts {
    ivec n;
    vec minus1; /* exp(r) − 1 */
} vexp_parts;

INLINE vexp_parts exp_parts(vec x)
{
    /* Adding 1.5·2²³ rounds to an integer that then stands in the low bits of the sum. */
    const vec magic = splat(12582912.0f);
    vec sum = fma_(x, splat(1.44269504f), magic);
    vec n = sum - magic;
    vec r =
        fma_(n, splat(-0.693359375f), x); /* ln 2 in two parts, the first with trailing zeros: n times it is exact */
    vec q = splat(1.392621347e-3f);
    vexp_parts parts;

    r = fma_(n, splat(2.12194440e-4f), r);
    q = fma_(q, r, splat(8.363202972e-3f));
    q = fma_(q, r, splat(4.166655444e-2f));
    q = fma_(q, r, splat(1.666657685e-1f));
    q = fma_(q, r, splat(0.5f));
    parts.minus1 = fma_(q * r, r, r);
    parts.n = (ivec)sum - (ivec)magic;
    return parts;
}

/* 2ⁿ for −126 ≤ n ≤ 127. */
INLINE vec power_of_two(ivec n)
{
    return (vec)((n + 127) << 23);
}

/* Overflow gives ∞, underflow passes through the subnormal numbers to 0. */
INLINE vec vexp(vec x)
{
    vexp_parts e = exp_parts(min_(splat(89.0f), max_(splat(-104.0f), x)));
    ivec half = e.n >> 1; /* n can be 128 or −150: two factors */

    return (e.minus1 + splat(1.0f)) * power_of_two(half) * power_of_two(e.n - half);
}

/* exp for x ≤ 0, as in a softmax; below −87.5, where results leave the normal numbers, it gives 0. */
INLINE vec vexp_negative(vec x)
{
    const vec lowest = splat(-87.5f);
    vexp_parts e = exp_parts(max_(lowest, x));
    vec y = (e.minus1 + splat(1.0f)) * power_of_two(e.n);
    ivec below = (ivec)(x < lowest); /* no for a NaN, which therefore stays */

    return (vec)((ivec)y & ~below);
}

INLINE vec vsigmoid(vec x)
{
    return splat(1.0f) / (splat(1.0f) + vexp(-x));
}

/* tanh |x| = t / (t + 2), t = exp(2|x|) − 1, which keeps every digit near 0; from 10 on it is 1. */
INLINE vec vtanh(vec x)
{
    ivec sign = (ivec)x & (ivec)splat(-0.0f);
    vec size = (vec)((ivec)x & ~(ivec)splat(-0.0f));
    vexp_parts e = exp_parts(min_(splat(20.0f), size + size));
    vec power = power_of_two(e.n);
    vec t = fma_(e.minus1, power, power - splat(1.0f));

    return (vec)((ivec)(t / (t + splat(2.0f))) | sign);
}

#endif
