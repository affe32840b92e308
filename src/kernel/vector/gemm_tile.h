/* gemm_tile.h: the innermost loops of the product: a tile of C kept in registers.
 *
 * A tile of R rows and V vectors starts at 0, adds a[r p] · b[p v] for p = 0, 1, … with one fma each, and is
 * then stored or added to C. Every tile, whatever R and V, does the same operations in the same order to one
 * element, which is why a row's bits do not depend on the rows around it. */
#ifndef CPL_KERNEL_VECTOR_GEMM_TILE_H
#define CPL_KERNEL_VECTOR_GEMM_TILE_H

#include "kernel/vector/bf16.h"
#include "kernel/vector/vec.h"

/* How many rows a tile may have, and each number of rows with its widest tile in vectors: rows · vectors
 * sums must fit the registers (32 with AVX-512, else 16), next to a vector of B and a number of A. */
#ifdef __AVX512F__
enum { TILE_ROWS = 12 };
#define EVERY_TILE(X) X(1, 8) X(2, 8) X(3, 8) X(4, 6) X(5, 4) X(6, 4) X(7, 3) X(8, 3) X(9, 2) X(10, 2) X(11, 2) X(12, 2)
#else
enum { TILE_ROWS = 6 };
#define EVERY_TILE(X) X(1, 8) X(2, 4) X(3, 4) X(4, 3) X(5, 2) X(6, 2)
#endif
enum { TILE_VECS = 2, PANEL = TILE_VECS * LANES };

/* Slices of k and blocks of rows: a panel of 256 steps is 16 KiB with AVX2, half of a first-level cache. */
enum { DEPTH_MOST = 256, ROWS_MOST = 256 };

/* Floats of scratch: one panel of B, one packed block of a transposed A. */
enum { SCRATCH_FLOATS = DEPTH_MOST * (PANEL + ROWS_MOST) };

typedef struct tile_job {
    int64_t k;
    const float *a; /* element of row r, step p: a[r·a_row + p·a_step] */
    int64_t a_row, a_step;
    const float *b; /* columns of step p: b[p·b_step …] */
    int64_t b_step;
    float *panel;      /* tiles that copy: receives the columns, PANEL apart */
    const float *next; /* brought nearer meanwhile, one line a step: the next panel of B */
    int64_t next_step;
    float *c;
    int64_t ldc;
    int columns; /* how many columns of the tile exist in C; packed tiles only */
    int add;     /* C += tile, else C = tile */
} tile_job;

INLINE void tile_finish(const int R, const int V, vec (*sum)[8], const tile_job *t, int whole)
{
    UNROLL
    for (int r = 0; r < R; r++) {
        UNROLL
        for (int v = 0; v < V; v++) {
            float *c = t->c + r * t->ldc + v * LANES;
            int left = whole ? LANES : t->columns - v * LANES;
            int w = left < LANES ? left : LANES;

            if (w > 0 && t->add)
                store_part(c, w, load_part(c, w) + sum[r][v]);
            else if (w > 0)
                store_part(c, w, sum[r][v]);
        }
    }
}

/* words: a and b hold the words of bf16.h. */
INLINE void tile(const int R, const int V, const int copy, const int words, const tile_job *t)
{
    const float *a = t->a;
    const float *b = t->b;
    const float *next = t->next;
    float *panel = t->panel;
    vec sum[TILE_ROWS][8];

    UNROLL
    for (int r = 0; r < R; r++) {
        UNROLL
        for (int v = 0; v < V; v++)
            sum[r][v] = splat(0.0f);
    }
    for (int64_t p = 0; p < t->k; p++) {
        vec column[8];

        UNROLL
        for (int v = 0; v < V; v++) {
            column[v] = load(b + v * LANES);
            if (copy)
                store(panel + v * LANES, column[v]);
        }
        UNROLL
        for (int r = 0; r < R; r++) {
            vec x = splat(a[r * t->a_row]);

            UNROLL
            for (int v = 0; v < V; v++)
                sum[r][v] = words ? dot_words(x, column[v], sum[r][v]) : fma_(x, column[v], sum[r][v]);
        }
        a += t->a_step;
        b += t->b_step;
        if (copy)
            panel += PANEL;
        if (V == TILE_VECS) {
            __builtin_prefetch(next, 0, 2);
            next += t->next_step;
        } else { /* rows of B lie far apart: ask for the lines of a later one */
            UNROLL
            for (int v = 0; v < (V * LANES + 15) / 16; v++)
                __builtin_prefetch(b + 8 * t->b_step + v * 16);
        }
    }
    if (V * LANES <= PANEL && t->columns < V * LANES)
        tile_finish(R, V, sum, t, 0);
    else
        tile_finish(R, V, sum, t, 1);
}

#endif
