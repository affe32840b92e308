/* copy.c: from vocabulary logits, gate and attention to logits over extended ids.
 *
 * With g = σ(gate), p = softmax(x) and m(y) the attention's weight on word y, the mixture g · p(y) + (1 − g) · m(y) is
 * proportional to exp(x_y) + m(y) · exp(z − gate), where z = log Σ exp(x) and (1 − g) / g = exp(−gate). So only words
 * of the source change their logit, and what chooses from logits needs to know nothing of copying. */
#include "decode/copy.h"

#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"

static size_t row_of_scratch(const cpl_decode_copy *c)
{
    return (size_t)(c->vocabulary + c->room_longest);
}

cpl_status cpl_decode_copy_reserve(cpl_decode_copy *c, int threads, int64_t batch, int64_t longest, cpl_error *err)
{
    if (c->vocabulary == 0)
        return CPL_OK;
    cpl_decode_copy_free(c);
    c->room_longest = longest;
    size_t n = 2 * (size_t)threads * row_of_scratch(c);
    c->scratch = cpl_alloc(n, sizeof *c->scratch);
    c->at = cpl_alloc((size_t)batch, sizeof *c->at);
    if (!c->scratch || !c->at)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the words that can be copied");
    return CPL_OK;
}

void cpl_decode_copy_free(cpl_decode_copy *c)
{
    cpl_release(c->scratch);
    cpl_release(c->at);
    c->scratch = NULL;
    c->at = NULL;
}

cpl_status cpl_decode_copy_see(cpl_decode_copy *c, cpl_program *step, const cpl_decode_batch *b,
                               const int32_t *sentence, cpl_error *err)
{
    cpl_tensor gate, weights;
    if (c->vocabulary == 0)
        return CPL_OK;
    if (!b->copy)
        CPL_FAIL(err, CPL_FAILED, "a model that copies needs the extended ids of its sources");
    if (!cpl_program_output(step, "gate", &gate) || !cpl_program_output(step, "weights", &weights))
        CPL_FAIL(err, CPL_FAILED, "the step graph of a model that copies has no output 'gate' or 'weights'");
    c->gate = gate.data;
    c->weights = weights.data;
    for (int64_t k = 0, at = 0; k < gate.rows; at += b->length[sentence[k++]])
        c->at[k] = at;
    return CPL_OK;
}

/* log(exp(x) + exp(y)); either may be −∞. */
static double log_sum(double x, double y)
{
    double high = x > y ? x : y, low = x > y ? y : x;
    return low == -INFINITY ? high : high + log1p(exp(low - high));
}

real *cpl_decode_copy_mix(const cpl_decode_copy *c, const cpl_kernels *kernels, int thread, int64_t k,
                          const cpl_decode_batch *b, int32_t sentence, real *logits, int64_t *n)
{
    const int32_t *ids = b->copy[sentence];
    const real *weights = c->weights + c->at[k];
    int64_t length = b->length[sentence], vocabulary = c->vocabulary;
    real *mixed = c->scratch + 2 * (size_t)thread * row_of_scratch(c), *sums = mixed + row_of_scratch(c);
    int32_t top = -1;
    real sum_exp = 0;
    *n = vocabulary;
    memcpy(mixed, logits, (size_t)vocabulary * sizeof *mixed);
    kernels->argmax_sum_exp(1, vocabulary, logits, vocabulary, &top, &sum_exp);
    if (top < 0) /* not numbers: what chooses says so */
        return mixed;
    double z = (double)logits[top] + log((double)sum_exp);
    for (int64_t s = 0; s < length; s++) {
        sums[ids[s]] += weights[s];
        for (; *n <= ids[s]; ++*n)
            mixed[*n] = -INFINITY;
    }
    for (int64_t s = 0; s < length; s++) {
        real sum = sums[ids[s]];
        if (sum == 0) /* nothing, or done */
            continue;
        mixed[ids[s]] = (real)log_sum((double)mixed[ids[s]], log((double)sum) - (double)c->gate[k] + z);
        sums[ids[s]] = 0;
    }
    return mixed;
}
