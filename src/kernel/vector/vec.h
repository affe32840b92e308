/* vec.h: one short vector of floats, written once for every instruction set.
 *
 * `vec` holds LANES floats; + − · / work on it as on numbers. The functions below are the few things that
 * C's operators cannot say; each has a version for AVX-512, AVX2, SSE2 and plain C. A product and a sum
 * are fused only by fma() (the files are compiled with -ffp-contract=off), so the bits of a lane depend on
 * nothing but the lane's inputs. Included only by the files of this folder, which are compiled once per
 * instruction set; CPL_ISA names the one at hand. */
#ifndef CPL_KERNEL_VECTOR_VEC_H
#define CPL_KERNEL_VECTOR_VEC_H

#include <stdint.h>
#include <string.h>
#if defined __x86_64__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#else
#include <math.h>
#endif

#define CPL_JOIN_(isa, name) cpl_##isa##_##name
#define CPL_JOIN(isa, name)  CPL_JOIN_(isa, name)
#define CPL_FN(name)         CPL_JOIN(CPL_ISA, name) /* cpl_avx2_gemm */

#define INLINE static inline __attribute__((always_inline, unused))

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

#if defined __AVX512F__
enum { LANES = 16 };
typedef __m512 vec;
#elif defined __AVX2__
enum { LANES = 8 };
typedef __m256 vec;
#elif defined __x86_64__
enum { LANES = 4 };
typedef __m128 vec;
#else
enum { LANES = 4 };
typedef float vec __attribute__((vector_size(16)));
#endif
typedef int32_t ivec __attribute__((vector_size(LANES * 4)));

/* How many of the `left` elements the next vector takes: LANES, or fewer at the end. */
INLINE int width(int64_t left)
{
    return left < LANES ? (int)left : LANES;
}

INLINE vec load(const float *p)
{
    vec v;

    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store(float *p, vec v)
{
    memcpy(p, &v, sizeof v);
}

INLINE vec splat(float x)
{
    return x - (vec){0}; /* minus +0 keeps a −0 */
}

/* The first w floats of p (nothing beyond is read), other lanes `fill`. The second form fills with 0. */
INLINE vec load_fill(const float *p, int w, vec fill);
/* The first w lanes go to p. */
INLINE void store_part(float *p, int w, vec v);
INLINE vec fma_(vec a, vec b, vec c); /* a·b + c, rounded once where the processor can */
INLINE vec max_(vec a, vec b);        /* b where either is a NaN */
INLINE vec min_(vec a, vec b);        /* b where either is a NaN */
INLINE vec sqrt_(vec a);
INLINE vec inverse_guess(vec a); /* 1/a to 11 bits or more, for 1e-37 < |a| < 1e37 */

#if defined __AVX512F__

INLINE __mmask16 lane_mask(int w)
{
    return (__mmask16)((1u << w) - 1u);
}

INLINE vec load_fill(const float *p, int w, vec fill)
{
    return _mm512_mask_loadu_ps(fill, lane_mask(w), p);
}

INLINE void store_part(float *p, int w, vec v)
{
    _mm512_mask_storeu_ps(p, lane_mask(w), v);
}

INLINE vec fma_(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE vec max_(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

INLINE vec min_(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

INLINE vec sqrt_(vec a)
{
    return _mm512_sqrt_ps(a);
}

INLINE vec inverse_guess(vec a)
{
    return _mm512_rcp14_ps(a);
}

#elif defined __AVX2__

INLINE __m256i lane_mask(int w)
{
    static const int32_t bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    __m256i mask;

    memcpy(&mask, bits + 8 - w, sizeof mask);
    return mask;
}

INLINE vec load_fill(const float *p, int w, vec fill)
{
    if (w == LANES)
        return load(p);
    return _mm256_blendv_ps(fill, _mm256_maskload_ps(p, lane_mask(w)), _mm256_castsi256_ps(lane_mask(w)));
}

INLINE void store_part(float *p, int w, vec v)
{
    if (w == LANES)
        store(p, v);
    else
        _mm256_maskstore_ps(p, lane_mask(w), v);
}

INLINE vec fma_(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

INLINE vec max_(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

INLINE vec min_(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}

INLINE vec sqrt_(vec a)
{
    return _mm256_sqrt_ps(a);
}

INLINE vec inverse_guess(vec a)
{
    return _mm256_rcp_ps(a);
}

#else

INLINE vec load_fill(const float *p, int w, vec fill)
{
    if (w == LANES)
        return load(p);
    for (int i = 0; i < w; i++)
        fill[i] = p[i];
    return fill;
}

INLINE void store_part(float *p, int w, vec v)
{
    if (w == LANES) {
        store(p, v);
        return;
    }
    for (int i = 0; i < w; i++)
        p[i] = v[i];
}

#if defined __x86_64__

INLINE vec fma_(vec a, vec b, vec c)
{
    return a * b + c;
}

INLINE vec max_(vec a, vec b)
{
    return _mm_max_ps(a, b);
}

INLINE vec min_(vec a, vec b)
{
    return _mm_min_ps(a, b);
}

INLINE vec sqrt_(vec a)
{
    return _mm_sqrt_ps(a);
}

INLINE vec inverse_guess(vec a)
{
    return _mm_rcp_ps(a);
}

#else

INLINE vec max_(vec a, vec b)
{
    ivec first = a > b;

    return (vec)((first & (ivec)a) | (~first & (ivec)b));
}

INLINE vec min_(vec a, vec b)
{
    ivec first = a < b;

    return (vec)((first & (ivec)a) | (~first & (ivec)b));
}

#if defined __aarch64__

INLINE vec fma_(vec a, vec b, vec c)
{
    return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

INLINE vec sqrt_(vec a)
{
    return (vec)vsqrtq_f32((float32x4_t)a);
}

INLINE vec inverse_guess(vec a)
{
    float32x4_t x = (float32x4_t)a, guess = vrecpeq_f32(x);

    return (vec)vmulq_f32(guess, vrecpsq_f32(x, guess));
}

#else

INLINE vec fma_(vec a, vec b, vec c)
{
    return a * b + c;
}

INLINE vec sqrt_(vec a)
{
    for (int i = 0; i < LANES; i++)
        a[i] = sqrtf(a[i]);
    return a;
}

INLINE vec inverse_guess(vec a)
{
    return splat(1.0f) / a;
}

#endif
#endif
#endif

INLINE vec load_part(const float *p, int w)
{
    return load_fill(p, w, splat(0.0f));
}

/* Sum and largest of the lanes, folded in halves: a fixed order. */
INLINE float sum_lanes(vec v)
{
    float x[LANES];

    store(x, v);
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++)
            x[i] += x[i + half];
    }
    return x[0];
}

INLINE float max_lanes(vec v)
{
    float x[LANES];

    store(x, v);
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++)
            x[i] = x[i + half] > x[i] ? x[i + half] : x[i];
    }
    return x[0];
}

#endif
