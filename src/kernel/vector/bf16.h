/* bf16.h: rounding to bfloat16, and the multiply-add of rounded numbers.
 *
 * A product in bfloat16 multiplies words of 32 bits, kept in a vec. Where the processor multiplies bfloat16, a word
 * is a pair of numbers, neighbours along k, the first in the upper half, because vdpbf16ps adds the upper product
 * first. Elsewhere a word is one number, a float whose lower half is 0. A product of two bfloat16 is exact in float,
 * so both ways add the same terms in the same order and, as the instruction is defined, give the same bits; only
 * numbers below 1e-38, which it takes for 0, can differ. CPL_BF16_PAIRS asks for pairs without the instruction: for
 * the test of their layout. */
#ifndef CPL_KERNEL_VECTOR_BF16_H
#define CPL_KERNEL_VECTOR_BF16_H

#include "kernel/vector/vec.h"

typedef uint32_t uvec __attribute__((vector_size(LANES * 4)));

/* Each lane becomes the nearest bfloat16, of two the even one, as a float; beyond the largest, infinity. A NaN stays a
 * NaN, which the sum alone would not grant. */
INLINE vec round_bf16(vec v)
{
    uvec bits = (uvec)v, nan = (uvec)(v != v);
    uvec near = bits + 0x7fffu + ((bits >> 16) & 1u);
    uvec quiet = bits | 0x400000u;

    return (vec)(((near & ~nan) | (quiet & nan)) & 0xffff0000u);
}

#if defined __AVX512BF16__ || defined CPL_BF16_PAIRS
enum { TOGETHER = 2 }; /* numbers in a word */

INLINE vec join(vec first, vec second)
{
    return (vec)((uvec)first | (uvec)second >> 16);
}

/* The words of the next 2·LANES numbers of x, of which `left` exist; the others are 0. */
INLINE vec neighbours(const float *x, int64_t left)
{
    vec low = round_bf16(load_part(x, width(left)));
    vec high = left > LANES ? round_bf16(load_part(x + LANES, width(left - LANES))) : splat(0.0f);
#if defined __AVX512F__
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);

    return join(_mm512_permutex2var_ps(low, evens, high), _mm512_permutex2var_ps(low, odds, high));
#else
    float both[2 * LANES], first[LANES], second[LANES];

    store(both, low);
    store(both + LANES, high);
    for (int i = 0; i < LANES; i++) {
        first[i] = both[2 * i];
        second[i] = both[2 * i + 1];
    }
    return join(load(first), load(second));
#endif
}

/* sum + a · b, pair by pair. */
INLINE vec dot_words(vec a, vec b, vec sum)
{
#if defined __AVX512BF16__
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
#else
    sum = fma_((vec)((uvec)a & 0xffff0000u), (vec)((uvec)b & 0xffff0000u), sum);
    return fma_((vec)((uvec)a << 16), (vec)((uvec)b << 16), sum);
#endif
}

#else
enum { TOGETHER = 1 };

INLINE vec join(vec first, vec second)
{
    (void)second;
    return first;
}

INLINE vec neighbours(const float *x, int64_t left)
{
    return round_bf16(load_part(x, width(left)));
}

INLINE vec dot_words(vec a, vec b, vec sum)
{
    return fma_(a, b, sum);
}
#endif

#endif
