/* order.c: the order of a pass, a pure function of (seed, pass).
 *
 * Shuffle all rows; in pools of 50 batches sort by length, so that a batch holds texts of like length and steps are
 * short; cut into batches; shuffle the batches. What fills no batch is drawn first and comes last, so that it is a
 * fair sample too. Validation takes the rows as they are, pool by pool, without shuffling. */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/order.h"

enum { POOL_BATCHES = 50, STREAM_ROWS = 0x6F726472, STREAM_BATCHES = 0x62617463 };

int64_t cpl_order_count(const cpl_rows *rows, int64_t batch_size, int64_t most_batches)
{
    if (most_batches <= 0 || most_batches >= rows->count / batch_size + 1)
        return rows->count;
    int64_t most = most_batches * batch_size;
    return most < rows->count ? most : rows->count;
}

cpl_status cpl_order_init(cpl_order *o, const cpl_rows *rows, const cpl_batcher_options *options, cpl_error *err)
{
    *o = (cpl_order){.rows = rows, .batch_size = options->batch_size, .seed = options->seed,
                     .shuffle = options->shuffle};
    o->count = cpl_order_count(rows, o->batch_size, options->most_batches);
    if (o->count > UINT32_MAX)
        CPL_FAIL(err, CPL_USAGE, "%lld pairs are too many, the limit is %u", (long long)o->count, UINT32_MAX);
    o->pool = o->batch_size > o->count / POOL_BATCHES ? o->count : o->batch_size * POOL_BATCHES;
    o->drawn = cpl_alloc((size_t)o->count, sizeof *o->drawn);
    o->deck = cpl_alloc((size_t)(o->count / o->batch_size), sizeof *o->deck);
    o->keys = cpl_alloc((size_t)o->pool, sizeof *o->keys);
    o->spare = cpl_alloc((size_t)o->pool, sizeof *o->spare);
    if (o->drawn && o->deck && o->keys && o->spare)
        return CPL_OK;
    cpl_order_free(o);
    CPL_FAIL(err, CPL_FAILED, "no memory to order %lld pairs", (long long)rows->count);
}

void cpl_order_free(cpl_order *o)
{
    cpl_release(o->drawn);
    cpl_release(o->deck);
    cpl_release(o->keys);
    cpl_release(o->spare);
    *o = (cpl_order){0};
}

uint64_t cpl_order_bytes(const cpl_order *o)
{
    return (uint64_t)o->count * sizeof *o->drawn + (uint64_t)(o->count / o->batch_size) * sizeof *o->deck +
           (uint64_t)o->pool * 2 * sizeof *o->keys;
}

/* Fisher–Yates over 0 … n−1. */
static void shuffle(uint32_t *a, int64_t n, uint64_t key)
{
    for (int64_t i = 0; i < n; i++)
        a[i] = (uint32_t)i;
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

void cpl_order_make(cpl_order *o, int64_t pass, uint32_t *to)
{
    if (!o->shuffle) {
        for (int64_t i = 0; i < o->count; i++)
            to[i] = (uint32_t)i;
        sort_pools(o, to, o->count);
        return;
    }
    int64_t batches = o->count / o->batch_size, full = batches * o->batch_size;
    size_t bytes = (size_t)o->batch_size * sizeof *to;
    shuffle(o->drawn, o->count, cpl_random_key(o->seed, STREAM_ROWS, (uint64_t)pass));
    sort_pools(o, o->drawn, full);
    shuffle(o->deck, batches, cpl_random_key(o->seed, STREAM_BATCHES, (uint64_t)pass));
    for (int64_t b = 0; b < batches; b++)
        memcpy(to + b * o->batch_size, o->drawn + (int64_t)o->deck[b] * o->batch_size, bytes);
    memcpy(to + full, o->drawn + full, (size_t)(o->count - full) * sizeof *to);
}
