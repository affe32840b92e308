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
    int64_t count; /* rows in a pass: the first `count` of rows */
    int64_t batch_size, pool;
    uint64_t seed;
    int shuffle;
    uint32_t *drawn, *deck; /* [count], [batches] */
    cpl_order_key *keys, *spare; /* [pool] */
} cpl_order;

cpl_status cpl_order_init(cpl_order *o, const cpl_rows *rows, const cpl_batcher_options *options, cpl_error *err);
void cpl_order_free(cpl_order *o);
uint64_t cpl_order_bytes(const cpl_order *o);
/* Rows in a pass under these options. */
int64_t cpl_order_count(const cpl_rows *rows, int64_t batch_size, int64_t most_batches);
/* Writes the pass's rows, batch after batch; only the last batch may be short. */
void cpl_order_make(cpl_order *o, int64_t pass, uint32_t *to);

#endif
