/* beam_end.c: outputs of a search: kept in order, then written out. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "decode/beam.h"
#include "text/text.h"

/* What ended by END comes before what was cut; of equals the one that was found first. */
static int is_better(const cpl_beam_ending *a, const cpl_beam_ending *b)
{
    return a->finished != b->finished ? a->finished : a->ranked > b->ranked;
}

void cpl_beam_end(cpl_beam *s, int64_t i, const cpl_beam_ending *ending)
{
    cpl_beam_ending *kept = s->endings + i * s->width;
    int64_t at = s->ended[i];
    if (at == s->width) {
        if (!is_better(ending, &kept[at - 1]))
            return;
        at--;
    } else {
        s->ended[i]++;
    }
    for (; at > 0 && is_better(ending, &kept[at - 1]); at--)
        kept[at] = kept[at - 1];
    kept[at] = *ending;
}

/* A word that was never looked at counts as 1e-6, not as −∞. */
double cpl_beam_covered(const cpl_beam *s, int64_t i, int32_t slot, int64_t step, int64_t words)
{
    int64_t row = i * s->width + slot;
    const float *seen = s->seen[step & 1] + s->look_at[row], *now = s->looks + step * s->tokens + s->look_at[row];
    double sum = 0;
    for (int64_t k = 0; k < words; k++) {
        double x = (double)seen[k] + (double)now[k];
        sum += log(x > 1 ? 1 : x > 1e-6 ? x : 1e-6);
    }
    return sum;
}

void cpl_beam_path(const cpl_beam *s, int64_t i, int32_t slot, int64_t length, int32_t *to)
{
    for (int64_t k = length - 1; k >= 0; k--) {
        const cpl_beam_node *n = &s->nodes[k * s->rows + i * s->width + slot];
        to[k] = n->token;
        slot = n->parent;
    }
}

/* Step k's token looked from the slot that its path stood in before; END from the last one. */
static void path_weights(const cpl_beam *s, int64_t i, const cpl_beam_ending *e, float *to)
{
    int64_t n = s->length[i * s->width];
    int32_t slot = e->slot;
    for (int64_t k = e->length; k >= 0; k--) {
        if (k < e->length || e->finished)
            memcpy(to + k * n, s->looks + k * s->tokens + s->look_at[i * s->width + slot], (size_t)n * sizeof *to);
        if (k > 0)
            slot = s->nodes[(k - 1) * s->rows + i * s->width + slot].parent;
    }
}

/* Room for all ids and weights at once: pointers into them stay. */
static cpl_status reserve(cpl_beam *s, const cpl_decode_batch *b, cpl_error *err)
{
    int64_t ids = 1, weights = 1;
    for (int64_t i = 0; i < b->count; i++)
        for (int64_t k = 0; k < s->ended[i]; k++) {
            const cpl_beam_ending *e = &s->endings[i * s->width + k];
            ids += e->length;
            weights += (e->length + e->finished) * b->length[i];
        }
    if (cpl_grow(&s->ids, &s->ids_capacity, (size_t)ids, sizeof *s->ids) ||
        (b->attention && cpl_grow(&s->weights, &s->weights_capacity, (size_t)weights, sizeof *s->weights)))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld tokens", (long long)ids);
    return CPL_OK;
}

cpl_status cpl_beam_collect(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    cpl_beam *s = d->beam;
    int64_t wanted = b->nbest > 0 ? b->nbest : 1;
    CPL_TRY(reserve(s, b, err), err, "cannot decode with a beam");
    int32_t *ids = s->ids;
    float *weights = s->weights;
    for (int64_t i = 0; i < b->count; i++) {
        cpl_decoded *outputs = s->outputs + i * s->width;
        int64_t count = s->ended[i] < wanted ? s->ended[i] : wanted;
        for (int64_t k = 0; k < count; k++) {
            const cpl_beam_ending *e = &s->endings[i * s->width + k];
            outputs[k] = (cpl_decoded){.ids = ids, .length = e->length, .score = e->score, .finished = e->finished,
                                       .source_length = b->length[i], .ranked = e->ranked};
            cpl_beam_path(s, i, e->slot, e->length, ids);
            ids += e->length;
            if (!b->attention)
                continue;
            outputs[k].attention = weights;
            path_weights(s, i, e, weights);
            weights += (e->length + e->finished) * b->length[i];
        }
        d->results[i] = count > 0 ? outputs[0] : (cpl_decoded){.ids = ids, .source_length = b->length[i]};
        d->results[i].failed = d->rows[i].failed;
        d->results[i].nbest = outputs;
        d->results[i].nbest_count = count;
    }
    return CPL_OK;
}
