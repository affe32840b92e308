/* ensemble.c: several models that decide together. The first one's decoder searches; the others encode their own
 * sources, take the same tokens, and their step's probabilities are averaged with the first one's:
 *
 *     p(y) = 1/K Σ_k softmax(logits_k)(y)
 *
 * The logarithm of it takes the place of the first one's logits, whose softmax it then is: what chooses from logits
 * needs to know nothing of ensembles. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "decode/internal.h"

/* ---- making one ---- */

static cpl_status check_member(const cpl_decoder *first, const cpl_decoder *d, int number, cpl_error *err)
{
    if (d->description.copies)
        CPL_FAIL(err, CPL_USAGE, "model %d copies words of its source: such a model cannot be part of an ensemble",
                 number);
    if (d->description.mirrors)
        CPL_FAIL(err, CPL_USAGE, "model %d has no decoder: such a model cannot be part of an ensemble", number);
    if (d->shortlist.on)
        CPL_FAIL(err, CPL_USAGE, "an ensemble has no short list");
    if (d->vocabulary != first->vocabulary)
        CPL_FAIL(err, CPL_USAGE, "model %d has %lld target entries, the first model %lld", number,
                 (long long)d->vocabulary, (long long)first->vocabulary);
    return CPL_OK;
}

cpl_status cpl_decoder_join(cpl_decoder *d, cpl_decoder *const *others, int count, cpl_error *err)
{
    if (count >= CPL_DECODE_MODELS)
        CPL_FAIL(err, CPL_USAGE, "an ensemble of %d models, expected at most %d", count + 1, CPL_DECODE_MODELS);
    cpl_status status = count > 0 ? check_member(d, d, 1, err) : CPL_OK;
    for (int k = 0; k < count && status == CPL_OK; k++)
        status = check_member(d, others[k], k + 2, err);
    if (status != CPL_OK)
        return status;
    cpl_release(d->more);
    d->more_count = 0;
    d->more = cpl_alloc((size_t)count + 1, sizeof(cpl_decoder *));
    if (!d->more)
        CPL_FAIL(err, CPL_FAILED, "out of memory for an ensemble of %d models", count + 1);
    for (int k = 0; k < count; k++)
        d->more[k] = others[k];
    d->more_count = count;
    return CPL_OK;
}

/* ---- a batch ---- */

cpl_decode_batch cpl_ensemble_batch(const cpl_decode_batch *b, int k)
{
    cpl_decode_batch its = *b;
    its.source = b->more[k].source;
    its.length = b->more[k].length;
    its.more = NULL;
    return its;
}

cpl_status cpl_ensemble_check(const cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    if (d->more_count > 0 && !b->more)
        CPL_FAIL(err, CPL_FAILED, "an ensemble of %d models needs the sources of each", d->more_count + 1);
    for (int k = 0; k < d->more_count && (b->attention || b->coverage_penalty > 0); k++)
        for (int64_t i = 0; i < b->count; i++)
            if (b->more[k].length[i] != b->length[i])
                CPL_FAIL(err, CPL_USAGE, "row %lld has %lld source tokens for the first model and %lld for model %d: "
                         "their attention has no mean", (long long)i, (long long)b->length[i],
                         (long long)b->more[k].length[i], k + 2);
    return CPL_OK;
}

/* ---- a step ---- */

/* What is too small for the sum of shares is taken from the logits: a rule may force it. */
static double log_of_shares(const double *z, const real *const *logits, int models, int64_t i)
{
    double most = -INFINITY, sum = 0;
    for (int k = 0; k < models; k++)
        most = fmax(most, (double)logits[k][i] - z[k]);
    for (int k = 0; k < models && isfinite(most); k++)
        sum += exp((double)logits[k][i] - z[k] - most);
    return isfinite(most) ? most + log(sum) - log(models) : most;
}

/* z, the logarithm of a model's sum of exponentials, is read off the softmax kernel's largest entry. */
typedef struct mixing {
    cpl_decoder *d;
    cpl_tensor logits[CPL_DECODE_MODELS];
} mixing;

/* Row `task` is the same path in every model: equal lengths give equal orders. */
static void mix_row(void *arguments, int64_t task, int thread)
{
    enum { LEAST = 30 }; /* of a sum of shares that a float holds well, as a power of 10 */
    const mixing *m = arguments;
    const cpl_decoder *d = m->d;
    const cpl_kernels *kernels = d->step->engine->kernels;
    int models = d->more_count + 1;
    int64_t n = m->logits[0].width;
    real *sum = cpl_decoder_scratch(d, thread, 0), *shares = cpl_decoder_scratch(d, thread, 1);
    const real *logits[CPL_DECODE_MODELS];
    double z[CPL_DECODE_MODELS];
    real *to = m->logits[0].data + task * n, least = (real)pow(10, -LEAST);
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int k = 0; k < models; k++) {
        int32_t top = -1;
        logits[k] = m->logits[k].data + task * n;
        kernels->argmax(1, n, logits[k], n, &top);
        if (top < 0 || !isfinite(logits[k][top])) {
            for (int64_t i = 0; i < n; i++)
                to[i] = NAN; /* what chooses says so */
            return;
        }
        memcpy(shares, logits[k], (size_t)n * sizeof *shares);
        kernels->softmax(1, n, shares, n);
        z[k] = (double)logits[k][top] - log((double)shares[top]);
        for (int64_t i = 0; i < n; i++)
            sum[i] += shares[i];
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = sum[i] > least ? (real)log((double)sum[i] / models) : (real)log_of_shares(z, logits, models, i);
}

cpl_status cpl_ensemble_mix(cpl_decoder *d, cpl_error *err)
{
    mixing m = {.d = d};
    for (int k = 0; k <= d->more_count; k++)
        if (!cpl_program_output((k > 0 ? d->more[k - 1] : d)->step, "logits", &m.logits[k]))
            CPL_FAIL(err, CPL_FAILED, "the step graph of model %d has no output 'logits'", k + 1);
    cpl_pool_run(d->step->engine->pool, m.logits[0].rows, mix_row, &m);
    return CPL_OK;
}

cpl_status cpl_decoder_look(cpl_decoder *d, cpl_attention_shape *of, cpl_error *err)
{
    cpl_status status = cpl_attention_read(&d->attention, d->step, of, err);
    int64_t n = of->batch * of->width;
    for (int k = 0; k < d->more_count && status == CPL_OK; k++) {
        cpl_decoder *other = d->more[k];
        CPL_TRY(cpl_attention_read(&other->attention, other->step, of, err), err, "model %d", k + 2);
        for (int64_t i = 0; i < n; i++)
            d->attention.step[i] += other->attention.step[i];
    }
    for (int64_t i = 0; d->more_count > 0 && status == CPL_OK && i < n; i++)
        d->attention.step[i] /= (float)(d->more_count + 1);
    return status;
}
