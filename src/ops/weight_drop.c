/* weight_drop.c: masks of attention weights, drawn as dropout.c draws its own: a pure function of (key of the node and
 * step, sentence of the batch, head, step in the caller's rectangle, step of the source). A step of a loop has the key
 * of its node and its own place, so it drops what the same call over all steps drops. */
#include "base/hash.h"
#include "ops/weight_drop.h"

cpl_weight_drop cpl_weight_drop_of(const cpl_run_context *r, const cpl_geometry *t, float rate)
{
    cpl_weight_drop d = {.t = t, .key = r->random_key, .first = r->first_sentence};
    d.limit = r->training ? (uint64_t)((double)rate * 4294967296.0) : 0;
    d.factor = (real)(1.0 / (1.0 - (double)rate));
    return d;
}

/* Each 64-bit number serves two weights; the heads of a step count on in one stream. */
void cpl_weight_drop_row(const cpl_weight_drop *d, cpl_weight_place at, int64_t s, real *weights)
{
    const cpl_geometry *t = d->t;
    uint64_t sentence = (uint64_t)(d->first + t->sentence[at.i]);
    uint64_t key = cpl_random_key(d->key, sentence, (uint64_t)t->place[t->offset[at.step] + at.i]);
    uint64_t from = (uint64_t)at.head << 32;

    for (int64_t j = 0; j < s; j += 2) {
        uint64_t bits = cpl_random_bits(key, from + (uint64_t)j);
        weights[j] = (bits & 0xFFFFFFFFu) < d->limit ? 0 : weights[j] * d->factor;
        if (j + 1 < s)
            weights[j + 1] = (bits >> 32) < d->limit ? 0 : weights[j + 1] * d->factor;
    }
}
