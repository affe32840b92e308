/* choose.c: one row of logits → one token and its log-probability. */
#include <math.h>
#include <string.h>
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

/* The first largest of those that are allowed; −1 when there is none. What is forbidden stands among the first 64: it
 * is −∞ while the kernel looks, which names it only where nothing is above −∞. */
static int32_t largest(const cpl_kernels *kernels, real *logits, int64_t n, uint64_t forbidden)
{
    real kept[64];
    int64_t few = n < 64 ? n : 64;
    int32_t best;
    memcpy(kept, logits, (size_t)few * sizeof *kept);
    for (int64_t i = 0; i < few; i++)
        if (!allowed(i, forbidden))
            logits[i] = -INFINITY;
    kernels->argmax(1, n, logits, n, &best);
    memcpy(logits, kept, (size_t)few * sizeof *kept);
    while (best < n && !allowed(best, forbidden))
        best++;
    return best < n ? best : -1;
}

/* Inverse of the cumulated distribution. Exponents are at most 0 (the top is subtracted first), so that no temperature,
 * however small, overflows; the last id with a share takes what rounding leaves at the end. */
static int32_t sample(const real *logits, int64_t n, const cpl_choice *c, int32_t top)
{
    uint64_t forbidden = c->forbidden;
    double temperature = c->temperature;
    int32_t last = top;
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
        if (passed > c->unit * sum)
            break;
    }
    return last;
}

/* That a logit is no number is seen in all of them, also in those that are forbidden. */
cpl_chosen cpl_decode_choose(const cpl_kernels *kernels, real *logits, int64_t n, const cpl_choice *c)
{
    cpl_chosen nothing = {.id = -1, .log_probability = NAN};
    int32_t top = -1;
    real sum = (real)NAN;
    if (c->no_probability)
        kernels->argmax(1, n, logits, n, &top);
    else
        kernels->argmax_sum_exp(1, n, logits, n, &top, &sum);
    if (top < 0 || !isfinite(logits[top]))
        return nothing;
    int32_t id = allowed(top, c->forbidden) ? top : largest(kernels, logits, n, c->forbidden);
    if (id >= 0 && c->temperature > 0)
        id = sample(logits, n, c, id);
    if (id < 0)
        return nothing;
    return (cpl_chosen){.id = id, .log_probability = (double)logits[id] - (double)logits[top] - log((double)sum)};
}
