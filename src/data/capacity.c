/* capacity.c: the most that a batch can hold, whichever rows meet in it. The sum of the batch_size largest values is a
 * bound for every batch, and cheap: a heap keeps the largest seen so far. */
#include "base/error.h"
#include "base/memory.h"
#include "data/order.h"

/* A heap whose top is the least of the largest `size` values. */
typedef struct heap {
    int64_t *values;
    int64_t size, count;
} heap;

static void sink(heap *h)
{
    int64_t *v = h->values, i = 0;
    for (int64_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count && v[child + 1] < v[child])
            child++;
        if (v[i] <= v[child])
            return;
        int64_t t = v[i];
        v[i] = v[child];
        v[child] = t;
    }
}

static void rise(heap *h)
{
    int64_t *v = h->values;
    for (int64_t i = h->count - 1, up; i > 0 && v[up = (i - 1) / 2] > v[i]; i = up) {
        int64_t t = v[i];
        v[i] = v[up];
        v[up] = t;
    }
}

static void offer(heap *h, int64_t value)
{
    if (h->count < h->size) {
        h->values[h->count++] = value;
        rise(h);
    } else if (value > h->values[0]) {
        h->values[0] = value;
        sink(h);
    }
}

static int64_t source_length(const cpl_row *row)
{
    return row->source;
}

static int64_t target_length(const cpl_row *row)
{
    return row->target - 1;
}

static int64_t product(const cpl_row *row)
{
    return source_length(row) * target_length(row);
}

/* How often a row can stand in one pass, so in one batch. */
static int64_t copies_of(const cpl_rows *rows, int64_t i)
{
    double weight = rows->weights ? rows->weights[rows->items[i].file] : 1;
    int64_t whole = (int64_t)weight;
    return whole + ((double)whole < weight);
}

/* The sum of the largest values, and the row of the largest. */
static int64_t largest(heap *h, const cpl_rows *rows, int64_t count, int64_t (*value)(const cpl_row *), int64_t *where)
{
    count = count < rows->count ? count : rows->count;
    int64_t sum = 0;
    h->count = 0;
    *where = 0;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0, n = copies_of(rows, i); k < n && k < h->size; k++)
            offer(h, value(&rows->items[i]));
        if (value(&rows->items[i]) > value(&rows->items[*where]))
            *where = i;
    }
    for (int64_t i = 0; i < h->count; i++)
        sum += h->values[i];
    return sum;
}

static void widen(int64_t *most, int64_t value)
{
    *most = value > *most ? value : *most;
}

void cpl_capacity_widen(cpl_batch_capacity *c, const cpl_rows *rows, const uint32_t *list, int64_t n)
{
    cpl_batch_capacity own = {0};
    for (int64_t i = 0; i < n; i++) {
        const cpl_row *row = &rows->items[list[i]];
        own.source_tokens += source_length(row), own.target_tokens += target_length(row);
        own.products += product(row);
        widen(&c->longest_source, source_length(row));
        widen(&c->longest_target, target_length(row));
        c->largest = product(row) > product(&rows->items[c->largest]) ? list[i] : c->largest;
    }
    widen(&c->pairs, n);
    widen(&c->source_tokens, own.source_tokens);
    widen(&c->target_tokens, own.target_tokens);
    widen(&c->products, own.products);
}

cpl_status cpl_rows_capacity(const cpl_rows *rows, int64_t batch_size, int64_t most_batches, cpl_batch_capacity *c,
                             cpl_error *err)
{
    *c = (cpl_batch_capacity){0};
    int64_t count = cpl_order_count(rows, batch_size, most_batches), where;
    if (count == 0)
        return CPL_OK;
    heap h = {.size = batch_size < count ? batch_size : count};
    h.values = cpl_alloc((size_t)h.size, sizeof *h.values);
    if (!h.values)
        CPL_FAIL(err, CPL_FAILED, "no memory to measure %lld pairs", (long long)count);
    c->pairs = h.size;
    c->source_tokens = largest(&h, rows, count, source_length, &where);
    c->longest_source = source_length(&rows->items[where]);
    c->target_tokens = largest(&h, rows, count, target_length, &where);
    c->longest_target = target_length(&rows->items[where]);
    c->products = largest(&h, rows, count, product, &c->largest);
    cpl_release(h.values);
    return CPL_OK;
}
