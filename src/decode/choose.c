/* choose.c: one row of logits → one token and its log-probability. */
#include <math.h>
#include "base/error.h"
#include "decode/decode.h"

cpl_status cpl_decode_check_temperature(double temperature, cpl_error *err)
{
    if (temperature >= 0 && isfinite(temperature))
        return CPL_OK;
    CPL_FAIL(err, CPL_USAGE, "temperature is %g, expected 0 or a positive number" CPL_HINT
             "0 always takes the most probable token; larger values take more risks, 1 samples as the model believes",
             temperature);
}

static int allowed(int64_t id, uint64_t forbidden)
{
    return id >= 64 || !(forbidden >> id & 1);
}

/* The first largest of those that are allowed; −1 when there is none. */
static int32_t largest(const real *logits, int64_t n, uint64_t forbidden)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (allowed(i, forbidden) && (best < 0 || logits[i] > logits[best]))
            best = i;
    return (int32_t)best;
}

/* Inverse of the cumulated distribution. Exponents are at most 0 (the top is subtracted first), so that no temperature,
 * however small, overflows; the last id with a share takes what rounding leaves at the end. */
static int32_t sample(const real *logits, int64_t n, uint64_t forbidden, double temperature, double unit)
{
    int32_t top = largest(logits, n, forbidden), last = top;
    double sum = 0, passed = 0;
    for (int64_t i = 0; top >= 0 && i < n; i++)
        if (allowed(i, forbidden))
            sum += exp(((double)logits[i] - (double)logits[top]) / temperature);
    for (int64_t i = 0; top >= 0 && i < n; i++) {
        double share = allowed(i, forbidden) ? exp(((double)logits[i] - (double)logits[top]) / temperature) : 0;
        if (share <= 0)
            continue;
        passed += share;
        last = (int32_t)i;
        if (passed > unit * sum)
            break;
    }
    return last;
}

/* The sum of exponentials is read off the softmax kernel's largest entry, which is 1/Σexp(x − top): the logarithm is
 * then exact also for ids whose probability is too small for a float. */
cpl_chosen cpl_decode_choose(const cpl_kernels *kernels, real *logits, int64_t n, uint64_t forbidden,
                             double temperature, double unit)
{
    cpl_chosen nothing = {.id = -1, .log_probability = NAN};
    int32_t top = -1;
    kernels->argmax(1, n, logits, n, &top);
    if (top < 0 || !isfinite(logits[top]))
        return nothing;
    int32_t id = top;
    if (temperature > 0)
        id = sample(logits, n, forbidden, temperature, unit);
    else if (!allowed(top, forbidden))
        id = largest(logits, n, forbidden);
    if (id < 0)
        return nothing;
    double below = (double)logits[id] - (double)logits[top];
    kernels->softmax(1, n, logits, n);
    return (cpl_chosen){.id = id, .log_probability = below + log((double)logits[top])};
}
