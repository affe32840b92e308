/* ranking.c: what makes one output better than another: its score, divided by a penalty of its length, and less what
 * of the source it left unseen (Wu et al. 2016). A score is a sum of logarithms and only falls; without a penalty
 * short outputs win. */
#include <math.h>
#include "decode/decode.h"

static double penalty(const cpl_decode_batch *b, int64_t length)
{
    double x = b->plain_penalty ? (double)length : (5 + (double)length) / 6;
    return b->length_penalty > 0 ? pow(x, b->length_penalty) : 1;
}

double cpl_decode_rank(const cpl_decode_batch *b, double score, int64_t length, double covered)
{
    return score / penalty(b, length) + b->coverage_penalty * covered;
}

/* It loses nothing more, becomes as long as it may, and sees the whole source. */
double cpl_decode_rank_bound(const cpl_decode_batch *b, double score, int64_t most)
{
    return score / penalty(b, most + 1);
}
