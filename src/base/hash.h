/* hash.h: checksums and counter-based random numbers.
 *
 * Random numbers are a pure function of (seed, stream, counter): moving a node, changing the number of
 * threads or resuming changes nothing. */
#ifndef CPL_BASE_HASH_H
#define CPL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* splitmix64's finaliser: a bijection that mixes all bits (Steele, Lea, Flood 2014). */
static inline uint64_t cpl_mix64(uint64_t z)
{
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* The key of a stream: pass the run's seed and whatever identifies the use (step, node …). */
static inline uint64_t cpl_random_key(uint64_t seed, uint64_t a, uint64_t b)
{
    return cpl_mix64(cpl_mix64(cpl_mix64(seed) ^ a) ^ (b * 0xD1342543DE82EF95u));
}

/* 64 random bits number `counter` of the stream. */
static inline uint64_t cpl_random_bits(uint64_t key, uint64_t counter)
{
    return cpl_mix64(key ^ cpl_mix64(counter));
}

/* Uniform in [0, 1), 24 bits: exact in float. */
static inline double cpl_random_unit(uint64_t key, uint64_t counter)
{
    return (double)(cpl_random_bits(key, counter) >> 40) * (1.0 / 16777216.0);
}

/* Uniform in 0 … n-1 without bias worth measuring (128-bit multiply). n > 0. */
static inline uint64_t cpl_random_below(uint64_t key, uint64_t counter, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)cpl_random_bits(key, counter) * n) >> 64);
}

/* Standard normal (Box–Muller over counters 2k, 2k+1). */
double cpl_random_normal(uint64_t key, uint64_t counter);

/* 64-bit checksum of bytes (xxHash-like quality, our own fixed definition: stored in files). Start with
 * hash = 0; feed pieces one after another with the returned value. */
uint64_t cpl_hash64(uint64_t hash, const void *bytes, size_t length);

#endif
