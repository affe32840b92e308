/* gemm.c: C = op(A)·op(B) + beta·C, cut into panels and tiles.
 *
 * For each block of rows, each slice of k, each panel of PANEL columns: tiles of up to TILE_ROWS rows run
 * down the panel. The first tile reads B where it stands and leaves a packed copy in scratch, from which the
 * following tiles read; a transposed B and the last, narrow panel are packed beforehand. A transposed A is
 * packed once per block; any other A is read in place. When one tile covers all rows nothing is copied
 * and the tile is as wide as registers allow. */
#include "kernel/vector/gemm_pack.h"
#include "kernel/vector/gemm_tile.h"
#include "kernel/vector/vector.h"

typedef void (*tile_function)(const tile_job *t);

typedef struct tile_set {
    tile_function packed; /* reads a panel, or B in place */
    tile_function copy;   /* reads B and fills a panel */
    tile_function wide;   /* reads wide_vecs vectors of B in place */
    int wide_vecs;
} tile_set;

#define DEFINE_TILES(R, W)                                                                                             \
    static void packed_##R(const tile_job *t)                                                                          \
    {                                                                                                                  \
        tile(R, TILE_VECS, 0, 0, t);                                                                                   \
    }                                                                                                                  \
    static void copy_##R(const tile_job *t)                                                                            \
    {                                                                                                                  \
        tile(R, TILE_VECS, 1, 0, t);                                                                                   \
    }                                                                                                                  \
    static void wide_##R(const tile_job *t)                                                                            \
    {                                                                                                                  \
        tile(R, W, 0, 0, t);                                                                                           \
    }

#define LIST_TILES(R, W) {packed_##R, copy_##R, wide_##R, W},

EVERY_TILE(DEFINE_TILES)

static const tile_set tiles[TILE_ROWS + 1] = {{0}, EVERY_TILE(LIST_TILES)};

/* One block of rows times one slice of k. */
typedef struct block {
    const cpl_gemm *g;
    int64_t i, rows, p, depth;
    float *panel;          /* scratch: [depth PANEL] */
    const float *a_packed; /* the slice of a transposed A, tile by tile, or NULL */
    int add;
    parts tiles; /* of the rows */
} block;

/* Runs the tiles of one panel, columns j … j+columns. in_place: B is read where it stands and, when more
 * than one tile follows, copied on the way; else the panel is already packed. */
static void run_panel(const block *b, int64_t j, int columns, int in_place)
{
    const cpl_gemm *g = b->g;
    tile_job t = {.k = b->depth, .panel = b->panel, .ldc = g->ldc, .columns = columns, .add = b->add};

    for (int64_t index = 0, i = 0; index < b->tiles.count; index++) {
        int64_t rows = part_size(b->tiles, index);
        int from_b = in_place && index == 0;

        t.a = b->a_packed != NULL ? b->a_packed + i * b->depth : g->a + (b->i + i) * g->lda + b->p;
        t.a_row = b->a_packed != NULL ? 1 : g->lda;
        t.a_step = b->a_packed != NULL ? rows : 1;
        t.b = from_b ? g->b + b->p * g->ldb + j : b->panel;
        t.b_step = from_b ? g->ldb : PANEL;
        t.c = g->c + (b->i + i) * g->ldc + j;
        /* The second tile fetches the next panel, whose rows lie too far apart for the processor to guess.
         * Its last column names the line that this panel has not touched. */
        t.next = in_place && index == 1 ? g->b + b->p * g->ldb + j + 2 * PANEL - 1 : b->panel;
        t.next_step = in_place && index == 1 ? g->ldb : 0;
        if (from_b && b->tiles.count > 1)
            tiles[rows].copy(&t);
        else
            tiles[rows].packed(&t);
        i += rows;
    }
}

/* All rows fit one tile and B stands row by row: tiles as wide as registers allow, nothing copied.
 * Returns the first column that is left. */
static int64_t run_wide(const block *b)
{
    const cpl_gemm *g = b->g;
    int64_t step = tiles[b->rows].wide_vecs * LANES;
    int64_t j = 0;
    tile_job t = {.k = b->depth, .ldc = g->ldc, .columns = PANEL, .add = b->add, .b_step = g->ldb};

    t.a = b->a_packed != NULL ? b->a_packed : g->a + b->i * g->lda + b->p;
    t.a_row = b->a_packed != NULL ? 1 : g->lda;
    t.a_step = b->a_packed != NULL ? b->rows : 1;
    for (; j + step <= g->n; j += step) {
        t.b = g->b + b->p * g->ldb + j;
        t.c = g->c + b->i * g->ldc + j;
        tiles[b->rows].wide(&t);
    }
    return j;
}

static void run_block(const block *b)
{
    const cpl_gemm *g = b->g;
    int64_t j = b->rows <= TILE_ROWS && !g->transpose_b ? run_wide(b) : 0;

    for (; j < g->n; j += PANEL) {
        int columns = g->n - j < PANEL ? (int)(g->n - j) : PANEL;
        int in_place = columns == PANEL && !g->transpose_b;

        if (!in_place && g->transpose_b)
            pack_transposed(g->b + j * g->ldb + b->p, g->ldb, b->depth, columns, b->panel);
        else if (!in_place)
            pack_narrow(g->b + b->p * g->ldb + j, g->ldb, b->depth, columns, b->panel);
        run_panel(b, j, columns, in_place);
    }
}

void CPL_FN(gemm)(const cpl_gemm *g, void *scratch)
{
    parts blocks = cut_evenly(g->m, ROWS_MOST);
    parts slices = cut_evenly(g->k, DEPTH_MOST); /* of k alone: a row's sums are cut alike in every call */
    float *a_packed = (float *)scratch + DEPTH_MOST * PANEL;
    block b = {.g = g, .panel = scratch};

    if (slices.count == 0)
        clear(g);
    for (int64_t index = 0; index < blocks.count; index++, b.i += b.rows) {
        b.rows = part_size(blocks, index);
        b.tiles = cut_evenly(b.rows, TILE_ROWS);
        b.p = 0;
        for (int64_t slice = 0; slice < slices.count; slice++, b.p += b.depth) {
            b.depth = part_size(slices, slice);
            b.add = slice > 0 || g->beta != 0.0f;
            if (g->transpose_a) {
                pack_rows(g->a + b.p * g->lda + b.i, g->lda, b.rows, b.depth, a_packed);
                b.a_packed = a_packed;
            }
            run_block(&b);
        }
    }
}
