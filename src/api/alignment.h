/* alignment.h: which source word each token of an answer belongs to: the one that it looked at most. */
#ifndef CPL_API_ALIGNMENT_H
#define CPL_API_ALIGNMENT_H

#include "base/str.h"
#include "decode/decode.h"

/* The first largest of weights[length], of a row [START] words [END]: a word from 0, or −1 when there is none. */
int64_t cpl_alignment_word(const float *weights, int64_t length);
/* Of token t of an output that was made with attention. */
int64_t cpl_alignment_of(const cpl_decoded *output, int64_t t);
/* Appends "0-0 2-1": source-target, in the order of the target, as Pharaoh and fast_align write them. START and END are
 * no words and have no number; each token of the output has one pair. */
void cpl_alignment_write(const cpl_decoded *output, cpl_str *out);

#endif
