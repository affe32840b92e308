/* recurrent_drop.c: dropout of recurrent states (Gal and Ghahramani 2016): a sentence's mask is drawn once and serves
 * all its steps, so what a step forgets the others forget too. It is a pure function of (key of the node and step,
 * sentence of the batch, column): drawn again in the backward pass, the same for any threads and parts of a batch. */
#include "base/hash.h"
#include "graph/attributes.h"
#include "ops/recurrent.h"

static void draw_part(void *arguments, int64_t part, int thread)
{
    const cpl_recurrent *w = arguments;
    const cpl_recurrent_attributes *a = w->r->attributes;
    uint64_t limit = (uint64_t)((double)a->dropout * 4294967296.0);
    real factor = (real)(1.0 / (1.0 - (double)a->dropout));
    (void)thread;
    for (int64_t i = w->cut[part]; i < w->cut[part + 1]; i++) {
        uint64_t key = cpl_random_key(w->r->random_key, (uint64_t)(w->r->first_sentence + w->g->sentence[i]), 0);
        real *m = w->mask + i * w->u;
        for (int64_t j = 0; j < w->u; j += 2) { /* each 64-bit number serves two of them */
            uint64_t bits = cpl_random_bits(key, (uint64_t)j);
            m[j] = (bits & 0xFFFFFFFFu) < limit ? 0 : factor;
            if (j + 1 < w->u)
                m[j + 1] = (bits >> 32) < limit ? 0 : factor;
        }
    }
}

void cpl_recurrent_draw(cpl_recurrent *w)
{
    if (!w->r->training)
        w->mask = w->masked = NULL;
    if (w->mask)
        cpl_run_tasks(w->r, w->parts, draw_part, w);
}

const real *cpl_recurrent_masked(const cpl_recurrent *w, int64_t lo, int64_t n, const real *h)
{
    if (!w->mask)
        return h;
    real *to = w->masked + lo * w->u;
    w->r->kernels->multiply(n * w->u, h, w->mask + lo * w->u, to);
    return to;
}

void cpl_recurrent_mask(const cpl_recurrent *w, int64_t lo, int64_t n, real *h)
{
    if (w->mask)
        w->r->kernels->multiply(n * w->u, h, w->mask + lo * w->u, h);
}

void cpl_recurrent_unmasked(const cpl_recurrent *w, int64_t lo, const cpl_gemm *g, const cpl_recurrent_kernel *turned,
                            int thread)
{
    cpl_gemm direct = *g;
    int64_t elements = g->m * w->u;
    if (w->mask && g->beta != 0)
        direct.c = w->masked + lo * w->u, direct.beta = 0;
    cpl_recurrent_backward(w, &direct, turned, thread);
    if (!w->mask)
        return;
    w->r->kernels->multiply(elements, direct.c, w->mask + lo * w->u, direct.c);
    if (direct.c != g->c)
        w->r->kernels->add(elements, g->c, direct.c, g->c);
}
