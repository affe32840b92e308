/* alignment.c: the hard alignment of an output: the largest weight of each token. START and END get attention too, but
 * stand for no word: what is left to words decides, however little it is. */
#include "api/alignment.h"

int64_t cpl_alignment_word(const float *weights, int64_t length)
{
    int64_t best = -1;
    for (int64_t s = 1; s + 1 < length; s++)
        if (best < 0 || weights[s] > weights[best])
            best = s;
    return best > 0 ? best - 1 : -1;
}

int64_t cpl_alignment_of(const cpl_decoded *output, int64_t t)
{
    if (!output->attention)
        return -1;
    return cpl_alignment_word(output->attention + t * output->source_length, output->source_length);
}

void cpl_alignment_write(const cpl_decoded *output, cpl_str *out)
{
    const char *between = "";
    for (int64_t t = 0; t < output->length; t++) {
        int64_t s = cpl_alignment_of(output, t);
        if (s < 0)
            continue;
        cpl_str_printf(out, "%s%lld-%lld", between, (long long)s, (long long)t);
        between = " ";
    }
}
