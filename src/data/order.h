/* order.h: which rows stand in which batch of a pass. */
#ifndef CPL_DATA_ORDER_H
#define CPL_DATA_ORDER_H

#include "data/data.h"

typedef struct cpl_order_key {
    uint64_t key;
    uint32_t row;
} cpl_order_key;

/* Everything but the pass; the arrays are scratch of one thread. */
typedef struct cpl_order {
    const cpl_rows *rows;
    int64_t count; /* places in a pass: the first `count` of rows, or each row as often as its weight says */
    int64_t batches, width; /* in a pass; the most pairs in one */
    int64_t batch_size, batch_tokens, most_batches, pool;
    uint64_t seed;
    int shuffle;
    uint32_t *drawn, *deck; /* [count], [batches] */
    cpl_order_key *keys, *spare; /* [pool] */
    int64_t *cuts; /* with batch_tokens: where each batch begins before they are shuffled [batches + 1]; else NULL */
    cpl_batch_capacity most; /* with batch_tokens: what batches hold, the same in every pass */
} cpl_order;

cpl_status cpl_order_init(cpl_order *o, const cpl_rows *rows, const cpl_batcher_options *options, cpl_error *err);
void cpl_order_free(cpl_order *o);
uint64_t cpl_order_bytes(const cpl_order *o);
/* capacity.c: makes room for a batch of these rows. */
void cpl_capacity_widen(cpl_batch_capacity *c, const cpl_rows *rows, const uint32_t *list, int64_t n);
/* weights.c: the rows of a pass in the order of the file, o->count of them. */
void cpl_order_deal(const cpl_order *o, int64_t pass, uint32_t *to);
/* Places in a pass under these options. */
int64_t cpl_order_count(const cpl_rows *rows, int64_t batch_size, int64_t most_batches);
/* The same of batches of so many target tokens. */
int64_t cpl_order_token_count(const cpl_rows *rows, int64_t batch_tokens, int64_t most_batches);
/* Writes the pass's rows, batch after batch, and with batch_tokens where each begins [batches + 1] (else NULL). Of a
 * fixed size only the last batch may be short. */
void cpl_order_make(cpl_order *o, int64_t pass, uint32_t *to, int64_t *starts);

#endif
