/* turn.h: a square block of numbers turned in registers: rows that stand apart become columns side by side. */
#ifndef CPL_KERNEL_VECTOR_TURN_H
#define CPL_KERNEL_VECTOR_TURN_H

#include "kernel/vector/vec.h"

/* turned[p] holds, in lane i, number p of row[i], for i, p < TURN. turn_fma: a·b + c as fma_. */
#if defined __AVX2__
enum { TURN = 8 };
typedef __m256 turn_vec;

INLINE void turn_rows(const float *const row[TURN], turn_vec turned[TURN])
{
    __m256 x[8], y[8];

    /* Halves of rows i and i+4 side by side, then pairs, then quadruples. */
    UNROLL
    for (int i = 0; i < 4; i++) {
        x[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[i])), _mm_loadu_ps(row[i + 4]), 1);
        x[i + 4] =
            _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[i] + 4)), _mm_loadu_ps(row[i + 4] + 4), 1);
    }
    UNROLL
    for (int half = 0; half < 8; half += 4) {
        y[half] = _mm256_unpacklo_ps(x[half], x[half + 1]);
        y[half + 1] = _mm256_unpackhi_ps(x[half], x[half + 1]);
        y[half + 2] = _mm256_unpacklo_ps(x[half + 2], x[half + 3]);
        y[half + 3] = _mm256_unpackhi_ps(x[half + 2], x[half + 3]);
        turned[half] = _mm256_shuffle_ps(y[half], y[half + 2], 0x44);
        turned[half + 1] = _mm256_shuffle_ps(y[half], y[half + 2], 0xee);
        turned[half + 2] = _mm256_shuffle_ps(y[half + 1], y[half + 3], 0x44);
        turned[half + 3] = _mm256_shuffle_ps(y[half + 1], y[half + 3], 0xee);
    }
}

INLINE turn_vec turn_fma(turn_vec a, turn_vec b, turn_vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
#else
enum { TURN = 4 };
typedef vec turn_vec;

INLINE void turn_rows(const float *const row[TURN], turn_vec turned[TURN])
{
    UNROLL
    for (int p = 0; p < TURN; p++)
        turned[p] = (turn_vec){row[0][p], row[1][p], row[2][p], row[3][p]};
}

INLINE turn_vec turn_fma(turn_vec a, turn_vec b, turn_vec c)
{
    return fma_(a, b, c);
}
#endif

INLINE turn_vec turn_splat(float x)
{
    return x - (turn_vec){0};
}

#endif
