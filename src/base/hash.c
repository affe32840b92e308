/* hash.c: the checksum that files store, and normal random numbers. */
#include "base/hash.h"

#include <math.h>
#include <string.h>

#define PRIME_A 0x9E3779B185EBCA87u
#define PRIME_B 0xC2B2AE3D27D4EB4Fu

/* Box–Muller. The first uniform lies in (0, 1), never 0, so that its logarithm is finite. */
double cpl_random_normal(uint64_t key, uint64_t counter)
{
    const double scale = 1.0 / 9007199254740992.0; /* 2^-53 */
    double u = ((double)(cpl_random_bits(key, 2 * counter) >> 11) + 0.5) * scale;
    double v = (double)(cpl_random_bits(key, 2 * counter + 1) >> 11) * scale;
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * v);
}

/* Little-endian everywhere: a file's checksum must not depend on the machine. */
static inline uint64_t read64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

static inline uint64_t turn(uint64_t lane, uint64_t word)
{
    lane += word * PRIME_B;
    lane = (lane << 31) | (lane >> 33);
    return lane * PRIME_A;
}

/* Four independent lanes over 32-byte blocks keep the multiplier busy; the rest goes word by word,
 * the last word padded with zeros. The length is mixed in, so padding cannot collide. */
uint64_t cpl_hash64(uint64_t hash, const void *bytes, size_t length)
{
    const uint8_t *p = bytes;
    size_t left = length;
    uint64_t state = cpl_mix64(hash ^ ((uint64_t)length * PRIME_A));
    if (left >= 32) {
        uint64_t lane[4] = {state, state + PRIME_A, state ^ PRIME_B, state - PRIME_A};
        for (; left >= 32; p += 32, left -= 32)
            for (int k = 0; k < 4; k++)
                lane[k] = turn(lane[k], read64(p + 8 * k));
        for (int k = 0; k < 4; k++)
            state = turn(state, cpl_mix64(lane[k]));
    }
    for (; left >= 8; p += 8, left -= 8)
        state = turn(state, read64(p));
    if (left > 0) {
        uint8_t last[8] = {0};
        memcpy(last, p, left);
        state = turn(state, read64(last));
    }
    return cpl_mix64(state);
}
