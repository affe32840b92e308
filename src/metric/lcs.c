/* lcs.c: the table of lengths, of which one row is kept. To find the way back, one bit a cell is enough: which
 * neighbour the length came from, where the elements differ. */
#include "metric/lcs.h"

#include <string.h>

#include "base/memory.h"

void cpl_lcs_free(cpl_lcs *l)
{
    cpl_release(l->marks);
    cpl_release(l->row);
    cpl_release(l->turns);
    memset(l, 0, sizeof *l);
}

/* row[j]: the length for a's elements so far and b's first j. turns (may be NULL): bit i × b.count + j is set where
 * (i + 1, j) is longer than (i, j + 1). */
static int fill(cpl_lcs *l, cpl_lcs_side a, cpl_lcs_side b, unsigned char *turns)
{
    if (cpl_grow(&l->row, &l->row_capacity, b.count + 1, sizeof *l->row))
        return -1;
    uint32_t *row = l->row;
    memset(row, 0, (b.count + 1) * sizeof *row);
    for (size_t i = 0; i < a.count; i++) {
        uint32_t diagonal = 0; /* what row[j] was one element of a before */
        for (size_t j = 0; j < b.count; j++) {
            uint32_t above = row[j + 1];
            if (a.ids[i] == b.ids[j])
                row[j + 1] = diagonal + 1;
            else if (row[j] > above) {
                row[j + 1] = row[j];
                if (turns)
                    turns[(i * b.count + j) / 8] |= (unsigned char)(1 << (i * b.count + j) % 8);
            }
            diagonal = above;
        }
    }
    return 0;
}

int cpl_lcs_length(cpl_lcs *l, cpl_lcs_side a, cpl_lcs_side b, size_t *length)
{
    if (fill(l, a, b, NULL))
        return -1;
    *length = l->row[b.count];
    return 0;
}

int cpl_lcs_clear(cpl_lcs *l, size_t count)
{
    if (cpl_grow(&l->marks, &l->mark_capacity, count + 1, 1))
        return -1;
    memset(l->marks, 0, count);
    return 0;
}

int cpl_lcs_mark(cpl_lcs *l, cpl_lcs_side a, cpl_lcs_side b)
{
    if (b.count && a.count > (SIZE_MAX - 8) / b.count)
        return -1;
    size_t bytes = a.count * b.count / 8 + 1;
    if (cpl_grow(&l->turns, &l->turn_capacity, bytes, 1))
        return -1;
    memset(l->turns, 0, bytes);
    if (fill(l, a, b, l->turns))
        return -1;
    for (size_t i = a.count, j = b.count; i > 0 && j > 0;) {
        size_t cell = (i - 1) * b.count + j - 1;
        if (a.ids[i - 1] == b.ids[j - 1]) {
            l->marks[i - 1] = 1;
            i--;
            j--;
        } else if (l->turns[cell / 8] >> cell % 8 & 1)
            j--;
        else
            i--;
    }
    return 0;
}
