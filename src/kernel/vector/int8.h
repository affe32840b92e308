/* int8.h: products of bytes, four of the depth at a time.
 *
 * A vector of weights is STEP bytes: four neighbours along the depth for each of STEP / 4 columns. Without VNNI the
 * bytes are widened to 16 bits and multiplied by vpmaddwd, which adds pairs in 32 bits: a column's sum stands in two
 * lanes (SHARES) until fold. (vpmaddubsw takes bytes as they are, and with all signs on one side two products fit its
 * 16 bits, but that is slower: bench/LOG.md.) VNNI's vpdpbusd takes four products into one lane; its left side is
 * unsigned, so rows of A are stored with 128 added (ADDED), and 128 times the sum of the column's bytes is taken off
 * again. All is exact: every way gives the same 32 bits. CPL_INT8_QUADS asks for the layout of VNNI without the
 * instruction: for the test of it. */
#ifndef CPL_KERNEL_VECTOR_INT8_H
#define CPL_KERNEL_VECTOR_INT8_H

#include "kernel/kernel.h"
#include "kernel/vector/bf16.h"

#if defined __AVX512VNNI__ || defined CPL_INT8_QUADS || !defined __x86_64__

enum { SHARES = 1, ADDED = 128 };
typedef uint8_t left_number; /* of a row of A */

INLINE ivec columns_of(const int8_t *bytes)
{
    ivec v;

    memcpy(&v, bytes, sizeof v);
    return v;
}

/* The four numbers of a row of A in every place. */
INLINE ivec spread(const left_number *a)
{
    int32_t four;

    memcpy(&four, a, sizeof four);
    return four - (ivec){0};
}

INLINE ivec dot(ivec sum, ivec columns, ivec a)
{
#if defined __AVX512VNNI__
    return (ivec)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)columns);
#else
    for (int i = 0; i < 4; i++) {
        ivec unsigned_byte = (ivec)((uvec)a >> 8 * i & 0xff);
        ivec signed_byte = (ivec)((uvec)columns << (24 - 8 * i)) >> 24;

        sum = (ivec)((uvec)sum + (uvec)(unsigned_byte * signed_byte)); /* which wraps */
    }
    return sum;
#endif
}

INLINE ivec fold(ivec first, ivec second)
{
    (void)second;
    return first;
}

#else

enum { SHARES = 2, ADDED = 0 };
typedef int16_t left_number;

INLINE ivec columns_of(const int8_t *bytes)
{
#if defined __AVX512F__
    __m256i half;

    memcpy(&half, bytes, sizeof half);
    return (ivec)_mm512_cvtepi8_epi16(half);
#elif defined __AVX2__
    __m128i half;

    memcpy(&half, bytes, sizeof half);
    return (ivec)_mm256_cvtepi8_epi16(half);
#else
    __m128i half = _mm_loadl_epi64((const __m128i *)(const void *)bytes);

    return (ivec)_mm_srai_epi16(_mm_unpacklo_epi8(half, half), 8);
#endif
}

INLINE ivec spread(const left_number *a)
{
    int64_t four;

    memcpy(&four, a, sizeof four);
#if defined __AVX512F__
    return (ivec)_mm512_set1_epi64(four);
#elif defined __AVX2__
    return (ivec)_mm256_set1_epi64x(four);
#else
    return (ivec)_mm_set1_epi64x(four);
#endif
}

INLINE ivec dot(ivec sum, ivec columns, ivec a)
{
#if defined __AVX512F__
    return sum + (ivec)_mm512_madd_epi16((__m512i)columns, (__m512i)a);
#elif defined __AVX2__
    return sum + (ivec)_mm256_madd_epi16((__m256i)columns, (__m256i)a);
#else
    return sum + (ivec)_mm_madd_epi16((__m128i)columns, (__m128i)a);
#endif
}

/* The sums of LANES columns, whose halves are neighbours in two vectors. */
INLINE ivec fold(ivec first, ivec second)
{
#if defined __AVX512F__
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);

    return (ivec)_mm512_permutex2var_epi32((__m512i)first, evens, (__m512i)second) +
           (ivec)_mm512_permutex2var_epi32((__m512i)first, odds, (__m512i)second);
#elif defined __AVX2__
    return (ivec)_mm256_permute4x64_epi64(_mm256_hadd_epi32((__m256i)first, (__m256i)second), 0xd8);
#else
    __m128 x = (__m128)first, y = (__m128)second;

    return (ivec)_mm_shuffle_ps(x, y, 0x88) + (ivec)_mm_shuffle_ps(x, y, 0xdd);
#endif
}

#endif

enum { STEP = 4 * LANES / SHARES, SUMS = CPL_PACK * SHARES / LANES }; /* SUMS: vectors of a block of columns */
typedef left_number left_numbers __attribute__((vector_size(LANES * sizeof(left_number))));

#endif
