/* copy.h: the distribution of a model that copies, over its vocabulary and the words of each row's own source; between
 * decode.c and copy.c. Zero-initialise. */
#ifndef CPL_DECODE_COPY_H
#define CPL_DECODE_COPY_H

#include "decode/decode.h"

typedef struct cpl_decode_copy {
    int64_t vocabulary;   /* entries of the target vocabulary; 0: the model does not copy */
    int64_t room_longest; /* words of a source at most */
    real *scratch;        /* for each thread a row of mixed logits, and a row of sums that is zero between uses */
    int64_t *at;          /* by row of the step: where its weights begin */
    const real *gate, *weights;
} cpl_decode_copy;

cpl_status cpl_decode_copy_reserve(cpl_decode_copy *c, int threads, int64_t batch, int64_t longest, cpl_error *err);
void cpl_decode_copy_free(cpl_decode_copy *c);
/* Sees what the step program's last run gave: sentence[k] is the batch's row of row k. */
cpl_status cpl_decode_copy_see(cpl_decode_copy *c, cpl_program *step, const cpl_decode_batch *b,
                               const int32_t *sentence, cpl_error *err);
/* Row k of the step → logits over extended ids, in the thread's scratch: their softmax is the mixed distribution. *n:
 * how many they are. logits [vocabulary] are overwritten. */
real *cpl_decode_copy_mix(const cpl_decode_copy *c, const cpl_kernels *kernels, int thread, int64_t k,
                          const cpl_decode_batch *b, int32_t sentence, real *logits, int64_t *n);

#endif
