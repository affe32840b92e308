/* noise.c: damage to source rows, for an autoencoder that learns to mend them. */
#include "base/hash.h"
#include "data/data.h"

/* A swap takes two tokens at once: begun with p at a place that is free, it moves a share of 2p / (1 + p). */
static double begin_of(double share)
{
    return share / (2 - share);
}

int64_t cpl_noise_row(const cpl_config_noise *n, uint64_t seed, int64_t pass, int64_t pair, const int32_t *row,
                      int64_t length, int32_t *to)
{
    uint64_t key = cpl_random_key(seed ^ 0x6e6f697365, (uint64_t)pass, (uint64_t)pair);
    double swap = begin_of(n->swap);
    int64_t count = 0;
    to[count++] = row[0];
    for (int64_t i = 1; i < length; i++) {
        int is_word = i + 1 < length || row[i] != CPL_ID_END;
        double unit = (double)(cpl_random_bits(key, (uint64_t)i) >> 11) * 0x1p-53;
        if (is_word && unit < n->drop)
            continue;
        to[count++] = is_word && unit < n->drop + n->mask ? CPL_ID_UNKNOWN : row[i];
    }
    for (int64_t i = 1; i + 1 < count - (to[count - 1] == CPL_ID_END); i++) {
        double unit = (double)(cpl_random_bits(key, (uint64_t)(length + i)) >> 11) * 0x1p-53;
        if (unit >= swap)
            continue;
        int32_t one = to[i];
        to[i] = to[i + 1];
        to[++i] = one;
    }
    return count;
}
