/* weights.c: which rows stand in a pass, and how often.
 *
 * Each row as often as the whole part of its file's weight says; and of each file as many rows more as the fraction
 * says, drawn anew in each pass (selection sampling: Knuth, algorithm S). So every pass has the same number of rows of
 * each file, and what is drawn is a pure function of seed and pass. */
#include "base/hash.h"
#include "data/order.h"

enum { STREAM_WEIGHTS = 0x77656967 };

/* Of the rows of a file, which stand side by side: how many, whole copies of each, and how many get one more. */
typedef struct share {
    int64_t rows, copies, extra;
} share;

static share share_of(const cpl_rows *rows, int64_t first)
{
    uint32_t file = rows->items[first].file;
    double weight = rows->weights[file];
    share s = {.copies = (int64_t)weight};
    while (first + s.rows < rows->count && rows->items[first + s.rows].file == file)
        s.rows++;
    s.extra = (int64_t)((weight - (double)s.copies) * (double)s.rows + 0.5);
    return s;
}

int64_t cpl_rows_in_pass(const cpl_rows *rows)
{
    int64_t count = 0;
    if (!rows->weights)
        return rows->count;
    for (int64_t i = 0; i < rows->count;) {
        share s = share_of(rows, i);
        count += s.rows * s.copies + s.extra;
        i += s.rows;
    }
    return count;
}

void cpl_order_deal(const cpl_order *o, int64_t pass, uint32_t *to)
{
    const cpl_rows *rows = o->rows;
    uint64_t key = cpl_random_key(o->seed, STREAM_WEIGHTS, (uint64_t)pass);
    if (!rows->weights) {
        for (int64_t i = 0; i < o->count; i++)
            to[i] = (uint32_t)i;
        return;
    }
    for (int64_t i = 0, end; i < rows->count; i = end) {
        share s = share_of(rows, i);
        for (end = i + s.rows; i < end; i++) {
            int64_t left = end - i, chosen = (int64_t)cpl_random_below(key, (uint64_t)i, (uint64_t)left) < s.extra;
            s.extra -= chosen;
            for (int64_t k = 0; k < s.copies + chosen; k++)
                *to++ = (uint32_t)i;
        }
    }
}
