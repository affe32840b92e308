/* work.c: lengths and ids of a work, the same each time and for every program that counts as this file does.
 *
 * Batch k takes pairs k·batch … of the lengths, wrapping round. Word j of sentence i is
 * 4 + splitmix64(i·width + j + (seed << 32)) mod (vocabulary − 4), seed 2k+10 for sources and 2k+11 for targets, width
 * being that of a rectangle that holds all of the work's sentences. */
#include <math.h>
#include <string.h>

#include "api/bench/bench.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "text/text.h"

typedef struct side {
    double mean, deviation;
    int64_t least, most;
} side;

typedef struct reference {
    const char *name;
    int64_t batch, vocabulary, batches;
    side side[2]; /* lengths are normal, rounded, and cut to the range */
    double correlation;
} reference;

static const reference references[] = {
    {"translator", 64, 5000, 50, {{16, 6, 3, 32}, {16, 6, 3, 32}}, 0.8},
    {"autoencoder", 64, 5000, 50, {{16, 6, 3, 32}, {16, 6, 3, 32}}, 0.8},
    {"summarizer", 32, 6764, 20, {{330, 90, 60, 400}, {32, 10, 8, 50}}, 0.3},
};

static const reference *find(const char *name)
{
    for (size_t i = 0; i < sizeof references / sizeof *references; i++)
        if (strcmp(references[i].name, name) == 0)
            return &references[i];
    return &references[0];
}

static int64_t cut(const side *s, double normal)
{
    int64_t length = (int64_t)lround(s->mean + s->deviation * normal);
    return length < s->least ? s->least : length > s->most ? s->most : length;
}

static void draw_lengths(cpl_bench_work *w, const reference *r)
{
    uint64_t key = cpl_random_key(1, 0, 0);
    for (int64_t i = 0; i < w->count; i++) {
        double a = cpl_random_normal(key, (uint64_t)(2 * i)), c = cpl_random_normal(key, (uint64_t)(2 * i + 1));
        w->lengths[2 * i] = cut(&r->side[0], a);
        w->lengths[2 * i + 1] =
            cut(&r->side[1], r->correlation * a + sqrt(1 - r->correlation * r->correlation) * c);
    }
}

static cpl_status make_lengths(cpl_bench_work *w, const cpl_bench *b, const reference *r, const int64_t fixed[2],
                               cpl_error *err)
{
    w->count = fixed ? 1 : b->lengths ? b->length_count : r->batch * r->batches;
    w->lengths = cpl_alloc((size_t)(2 * w->count), sizeof *w->lengths);
    if (!w->lengths)
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld lengths", (long long)w->count);
    if (fixed)
        w->lengths[0] = fixed[0], w->lengths[1] = fixed[1];
    else if (b->lengths)
        memcpy(w->lengths, b->lengths, (size_t)(2 * w->count) * sizeof *w->lengths);
    else
        draw_lengths(w, r);
    for (int s = 0; s < 2; s++) {
        w->width[s] = fixed ? 0 : r->side[s].most;
        for (int64_t i = 0; i < w->count; i++)
            w->width[s] = w->lengths[2 * i + s] > w->width[s] ? w->lengths[2 * i + s] : w->width[s];
    }
    return CPL_OK;
}

static cpl_status make_rows(cpl_bench_work *w, cpl_error *err)
{
    int ok = 1;
    for (int i = 0; i < 3; i++) {
        w->ids[i] = cpl_alloc((size_t)(w->batch * w->width[i > 0]), sizeof *w->ids[i]);
        w->rows[i] = cpl_alloc((size_t)w->batch, sizeof *w->rows[i]);
        ok = ok && w->ids[i] && w->rows[i];
    }
    for (int i = 0; i < 2; i++)
        ok = (w->length[i] = cpl_alloc((size_t)w->batch, sizeof *w->length[i])) && ok;
    if (!ok)
        CPL_FAIL(err, CPL_FAILED, "out of memory for a batch of %lld pairs", (long long)w->batch);
    return CPL_OK;
}

cpl_status cpl_bench_work_new(cpl_bench_work **out, const cpl_bench *b, const char *name, int64_t batch,
                              const int64_t fixed[2], cpl_error *err)
{
    const reference *r = find(name);
    cpl_bench_work *w = *out = cpl_alloc(1, sizeof *w);
    if (!w)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    w->name = name;
    w->batch = batch > 0 ? batch : b->options->batch > 0 ? b->options->batch : r->batch;
    w->vocabulary = b->options->vocabulary > 0 ? b->options->vocabulary : r->vocabulary;
    w->batches = r->batches;
    cpl_status status = make_lengths(w, b, r, fixed, err);
    return status == CPL_OK ? make_rows(w, err) : status;
}

void cpl_bench_work_free(cpl_bench_work *w)
{
    if (!w)
        return;
    for (int i = 0; i < 3; i++) {
        cpl_release(w->ids[i]);
        cpl_release(w->rows[i]);
    }
    cpl_release(w->length[0]);
    cpl_release(w->length[1]);
    cpl_release(w->lengths);
    cpl_release(w);
}

static int32_t word(const cpl_bench_work *w, int64_t number, uint64_t seed)
{
    uint64_t bits = cpl_mix64((uint64_t)number + (seed << 32));
    return (int32_t)(CPL_ID_WORDS + bits % (uint64_t)(w->vocabulary - CPL_ID_WORDS));
}

void cpl_bench_fill(cpl_bench_work *w, int64_t batch)
{
    int64_t at[2] = {0, 0};
    batch %= w->batches;
    uint64_t seed = (uint64_t)(2 * batch + 10);
    for (int64_t i = 0; i < w->batch; i++) {
        const int64_t *l = w->lengths + (batch * w->batch + i) % w->count * 2;
        int32_t *source = w->ids[0] + at[0], *in = w->ids[1] + at[1], *out = w->ids[2] + at[1];
        for (int64_t j = 0; j < l[0]; j++)
            source[j] = word(w, i * w->width[0] + j, seed);
        for (int64_t j = 0; j < l[1]; j++) {
            in[j] = j ? out[j - 1] : CPL_ID_START;
            out[j] = j == l[1] - 1 ? CPL_ID_END : word(w, i * w->width[1] + j, seed + 1);
        }
        w->rows[0][i] = source, w->rows[1][i] = in, w->rows[2][i] = out;
        w->length[0][i] = l[0], w->length[1][i] = l[1];
        at[0] += l[0], at[1] += l[1];
    }
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

cpl_binding cpl_bench_capacity(const cpl_bench_work *w, const cpl_program *p)
{
    cpl_binding c = {.batch = w->batch};
    int s = cpl_program_place(p, "s"), t = cpl_program_place(p, "t");
    for (int64_t k = 0; k < w->batches; k++) {
        int64_t sum[2] = {0, 0}, products = 0;
        for (int64_t i = 0; i < w->batch; i++) {
            const int64_t *l = w->lengths + (k * w->batch + i) % w->count * 2;
            sum[0] += l[0], sum[1] += l[1], products += l[0] * l[1];
            c.longest[s] = larger(c.longest[s], l[0]);
            c.longest[t] = larger(c.longest[t], l[1]);
        }
        c.rows[s] = larger(c.rows[s], sum[0]);
        c.rows[t] = larger(c.rows[t], sum[1]);
        c.pairs[s][t] = c.pairs[t][s] = larger(c.pairs[s][t], products);
    }
    return c;
}
