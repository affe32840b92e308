/* order.c: the order of a pass, a pure function of (seed, pass).
 *
 * Shuffle all rows; in pools of 50 batches sort by length, so that a batch holds texts of like length and steps are
 * short; cut into batches; shuffle the batches. What fills no batch is drawn first and comes last, so that it is a
 * fair sample too. Validation takes the rows as they are, pool by pool, without shuffling.
 *
 * Batches of a number of target tokens: all rows are sorted by length, pairs of equal length in random order, cut where
 * the next pair would be too much, and the batches shuffled. The cuts follow from the sorted lengths alone, so they are
 * the same in every pass: their number, and the most that a batch holds, are known before the first. A validation of
 * some batches alone must not take the shortest pairs: it takes the first ones, and sorts within batches. */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/order.h"

enum { POOL_BATCHES = 50, STREAM_ROWS = 0x6F726472, STREAM_BATCHES = 0x62617463 };

int64_t cpl_order_count(const cpl_rows *rows, int64_t batch_size, int64_t most_batches)
{
    int64_t all = cpl_rows_in_pass(rows);
    if (most_batches <= 0 || most_batches >= all / batch_size + 1)
        return all;
    int64_t most = most_batches * batch_size;
    return most < all ? most : all;
}

/* ---- batches of tokens ---- */

/* 1: a pair of `own` labels begins a batch. *sum: labels of the batch that it is in then; −1 before the first. */
static int begins(int64_t *sum, int64_t own, int64_t tokens)
{
    int begun = *sum < 0 || *sum + own > tokens;
    *sum = begun ? own : *sum + own;
    return begun;
}

/* Cuts a list of rows into batches. cuts (may be NULL) receives where they begin, and where the last ends. Returns how
 * many there are. */
static int64_t cut(const cpl_rows *rows, const uint32_t *list, int64_t count, int64_t tokens, int64_t *cuts)
{
    int64_t batches = 0, sum = -1;
    for (int64_t i = 0; i < count; i++) {
        if (!begins(&sum, rows->items[list[i]].target - 1, tokens))
            continue;
        if (cuts)
            cuts[batches] = i;
        batches++;
    }
    if (cuts)
        cuts[batches] = count;
    return batches;
}

int64_t cpl_order_token_count(const cpl_rows *rows, int64_t batch_tokens, int64_t most_batches)
{
    int64_t sum = -1, batches = 0, i = 0;
    if (most_batches <= 0)
        return cpl_rows_in_pass(rows);
    for (; i < rows->count; i++)
        if (begins(&sum, rows->items[i].target - 1, batch_tokens) && batches++ == most_batches)
            break;
    return i;
}

static cpl_status allocate(cpl_order *o, cpl_error *err)
{
    o->drawn = cpl_alloc((size_t)o->count, sizeof *o->drawn);
    o->keys = cpl_alloc((size_t)o->pool, sizeof *o->keys);
    o->spare = cpl_alloc((size_t)o->pool, sizeof *o->spare);
    if (!o->drawn || !o->keys || !o->spare)
        CPL_FAIL(err, CPL_FAILED, "no memory to order %lld pairs", (long long)o->count);
    return CPL_OK;
}

static void sort_pools(cpl_order *o, uint32_t *rows, int64_t n);

/* The cuts of every pass. */
static cpl_status find_cuts(cpl_order *o, cpl_error *err)
{
    cpl_order_deal(o, 0, o->drawn);
    if (o->most_batches <= 0)
        sort_pools(o, o->drawn, o->count);
    o->batches = cut(o->rows, o->drawn, o->count, o->batch_tokens, NULL);
    o->cuts = cpl_alloc((size_t)o->batches + 1, sizeof *o->cuts);
    if (!o->cuts)
        CPL_FAIL(err, CPL_FAILED, "no memory for %lld batches", (long long)o->batches);
    cut(o->rows, o->drawn, o->count, o->batch_tokens, o->cuts);
    for (int64_t b = 0; b < o->batches; b++)
        cpl_capacity_widen(&o->most, o->rows, o->drawn + o->cuts[b], o->cuts[b + 1] - o->cuts[b]);
    o->width = o->most.pairs;
    return CPL_OK;
}

/* ---- making one ---- */

cpl_status cpl_order_init(cpl_order *o, const cpl_rows *rows, const cpl_batcher_options *options, cpl_error *err)
{
    *o = (cpl_order){.rows = rows, .batch_size = options->batch_size, .seed = options->seed,
                     .shuffle = options->shuffle, .batch_tokens = options->batch_tokens,
                     .most_batches = options->most_batches};
    int tokens = o->batch_tokens > 0;
    o->count = tokens ? cpl_order_token_count(rows, o->batch_tokens, o->most_batches)
                      : cpl_order_count(rows, o->batch_size, o->most_batches);
    if (o->count > UINT32_MAX)
        CPL_FAIL(err, CPL_USAGE, "%lld pairs are too many, the limit is %u", (long long)o->count, UINT32_MAX);
    o->pool = tokens || o->batch_size > o->count / POOL_BATCHES ? o->count : o->batch_size * POOL_BATCHES;
    cpl_status status = allocate(o, err);
    if (status == CPL_OK && tokens) {
        status = find_cuts(o, err);
    } else if (status == CPL_OK) {
        o->batches = o->count / o->batch_size + (o->count % o->batch_size != 0);
        o->width = o->batch_size < o->count ? o->batch_size : o->count;
    }
    if (status == CPL_OK && !(o->deck = cpl_alloc((size_t)o->batches, sizeof *o->deck)))
        status = cpl_error_set(err, CPL_FAILED, "no memory to order %lld pairs", (long long)o->count);
    if (status != CPL_OK)
        cpl_order_free(o);
    return status;
}

void cpl_order_free(cpl_order *o)
{
    cpl_release(o->drawn);
    cpl_release(o->deck);
    cpl_release(o->keys);
    cpl_release(o->spare);
    cpl_release(o->cuts);
    *o = (cpl_order){0};
}

uint64_t cpl_order_bytes(const cpl_order *o)
{
    return (uint64_t)o->count * sizeof *o->drawn + (uint64_t)o->batches * sizeof *o->deck +
           (uint64_t)o->pool * 2 * sizeof *o->keys + (o->cuts ? (uint64_t)(o->batches + 1) * sizeof *o->cuts : 0);
}

/* ---- order ---- */

/* Fisher–Yates. */
static void shuffle(uint32_t *a, int64_t n, uint64_t key)
{
    for (int64_t i = n - 1; i > 0; i--) {
        uint64_t j = cpl_random_below(key, (uint64_t)i, (uint64_t)i + 1);
        uint32_t t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}

static void merge(const cpl_order_key *from, cpl_order_key *to, int64_t start, int64_t middle, int64_t stop)
{
    int64_t a = start, b = middle;
    for (int64_t k = start; k < stop; k++)
        to[k] = a < middle && (b >= stop || from[a].key <= from[b].key) ? from[a++] : from[b++];
}

/* Sorts rows by target length, then source length. Merging is stable, so that equal lengths keep the order of the
 * draw, and it allocates nothing. */
static void sort_pool(cpl_order *o, uint32_t *rows, int64_t n)
{
    cpl_order_key *from = o->keys, *to = o->spare;
    for (int64_t i = 0; i < n; i++) {
        const cpl_row *row = &o->rows->items[rows[i]];
        from[i] = (cpl_order_key){(uint64_t)row->target << 32 | (uint32_t)row->source, rows[i]};
    }
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t start = 0; start < n; start += 2 * width) {
            int64_t middle = start + width < n ? start + width : n;
            int64_t stop = middle + width < n ? middle + width : n;
            merge(from, to, start, middle, stop);
        }
        cpl_order_key *t = from;
        from = to;
        to = t;
    }
    for (int64_t i = 0; i < n; i++)
        rows[i] = from[i].row;
}

static void sort_pools(cpl_order *o, uint32_t *rows, int64_t n)
{
    for (int64_t at = 0; at < n; at += o->pool)
        sort_pool(o, rows + at, n - at < o->pool ? n - at : o->pool);
}

/* The batches of the cuts in the order of the deck. */
static void lay_out(const cpl_order *o, uint32_t *to, int64_t *starts)
{
    int64_t at = 0;
    for (int64_t b = 0; b < o->batches; b++) {
        int64_t from = o->cuts[o->deck[b]], n = o->cuts[o->deck[b] + 1] - from;
        memcpy(to + at, o->drawn + from, (size_t)n * sizeof *to);
        starts[b] = at;
        at += n;
    }
    starts[o->batches] = at;
}

static void shuffle_deck(cpl_order *o, int64_t batches, int64_t pass)
{
    for (int64_t b = 0; b < batches; b++)
        o->deck[b] = (uint32_t)b;
    shuffle(o->deck, batches, cpl_random_key(o->seed, STREAM_BATCHES, (uint64_t)pass));
}

/* A validation: always the same. */
static void make_fixed(cpl_order *o, uint32_t *to, int64_t *starts)
{
    cpl_order_deal(o, 0, to);
    if (!o->cuts || o->most_batches <= 0)
        sort_pools(o, to, o->count);
    for (int64_t b = 0; o->cuts && o->most_batches > 0 && b < o->batches; b++)
        sort_pool(o, to + o->cuts[b], o->cuts[b + 1] - o->cuts[b]);
    if (o->cuts)
        memcpy(starts, o->cuts, (size_t)(o->batches + 1) * sizeof *starts);
}

void cpl_order_make(cpl_order *o, int64_t pass, uint32_t *to, int64_t *starts)
{
    if (!o->shuffle) {
        make_fixed(o, to, starts);
        return;
    }
    cpl_order_deal(o, pass, o->drawn);
    shuffle(o->drawn, o->count, cpl_random_key(o->seed, STREAM_ROWS, (uint64_t)pass));
    if (o->cuts) {
        sort_pools(o, o->drawn, o->count);
        shuffle_deck(o, o->batches, pass);
        lay_out(o, to, starts);
        return;
    }
    int64_t batches = o->count / o->batch_size, full = batches * o->batch_size;
    size_t bytes = (size_t)o->batch_size * sizeof *to;
    sort_pools(o, o->drawn, full);
    shuffle_deck(o, batches, pass);
    for (int64_t b = 0; b < batches; b++)
        memcpy(to + b * o->batch_size, o->drawn + (int64_t)o->deck[b] * o->batch_size, bytes);
    memcpy(to + full, o->drawn + full, (size_t)(o->count - full) * sizeof *to);
}
