/* gemm_pack.h: how the pieces that a tile cannot read in place are copied into scratch. */
#ifndef CPL_KERNEL_VECTOR_GEMM_PACK_H
#define CPL_KERNEL_VECTOR_GEMM_PACK_H

#include "kernel/kernel.h"
#include "kernel/vector/gemm_tile.h"
#include "kernel/vector/turn.h"

INLINE int64_t parts_of(int64_t total, int64_t most)
{
    return (total + most - 1) / most;
}

/* `total` cut into parts of at most `most` whose sizes differ by one at most, so that no part is a small rest: the
 * first `larger` ones have one more than `least`. Made outside of loops, as divisions are slow. */
typedef struct parts {
    int64_t count, least, larger;
} parts;

INLINE parts cut_evenly(int64_t total, int64_t most)
{
    parts p = {.count = parts_of(total, most)};

    if (p.count > 0)
        p.least = total / p.count, p.larger = total - p.least * p.count;
    return p;
}

INLINE int64_t part_size(parts p, int64_t index)
{
    return p.least + (index < p.larger);
}

/* A square block turned: to[p·PANEL + i] = from[i·ld + p] for i, p < TURN. */
INLINE void turn(const float *from, int64_t ld, float *to)
{
    const float *row[TURN];
    turn_vec turned[TURN];

    UNROLL
    for (int i = 0; i < TURN; i++)
        row[i] = from + i * ld;
    turn_rows(row, turned);
    UNROLL
    for (int p = 0; p < TURN; p++)
        memcpy(to + p * PANEL, &turned[p], sizeof turned[p]);
}

/* B stored [n k]: `columns` rows of b become the columns of panel[k PANEL]; missing columns are 0. */
INLINE void pack_transposed(const float *b, int64_t ld, int64_t k, int columns, float *panel)
{
    int i = 0;

    for (; i + TURN <= columns; i += TURN) {
        int64_t p = 0;

        for (; p + TURN <= k; p += TURN)
            turn(b + i * ld + p, ld, panel + p * PANEL + i);
        for (; p < k; p++) {
            for (int c = i; c < i + TURN; c++)
                panel[p * PANEL + c] = b[c * ld + p];
        }
    }
    for (; i < PANEL; i++) {
        for (int64_t p = 0; p < k; p++)
            panel[p * PANEL + i] = i < columns ? b[i * ld + p] : 0.0f;
    }
}

/* B stored [k n], the last panel of fewer than PANEL columns; missing columns are 0. */
INLINE void pack_narrow(const float *b, int64_t ld, int64_t k, int columns, float *panel)
{
    for (int64_t p = 0; p < k; p++) {
        UNROLL
        for (int v = 0; v < TILE_VECS; v++) {
            int w = columns - v * LANES;

            store(panel + p * PANEL + v * LANES, load_part(b + p * ld + v * LANES, w < 0 ? 0 : width(w)));
        }
    }
}

/* A stored [k m]: the rows of each tile side by side, step after step, in the order that tiles read them. */
INLINE void pack_rows(const float *a, int64_t ld, int64_t rows, int64_t k, float *packed)
{
    parts cut = cut_evenly(rows, TILE_ROWS);

    for (int64_t index = 0; index < cut.count; index++) {
        int64_t size = part_size(cut, index);

        for (int64_t p = 0; p < k; p++) {
            for (int64_t r = 0; r < size; r++)
                packed[p * size + r] = a[p * ld + r];
        }
        packed += k * size;
        a += size;
    }
}

/* k is 0: a sum of nothing. */
INLINE void clear(const cpl_gemm *g)
{
    for (int64_t i = 0; i < g->m && g->beta == 0.0f; i++)
        memset(g->c + i * g->ldc, 0, sizeof(float) * (size_t)g->n);
}

#endif
