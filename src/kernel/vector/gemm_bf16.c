/* gemm_bf16.c: C = op(A)·op(B) + beta·C with A and B rounded to bfloat16, sums in float.
 *
 * The plan of gemm.c, blocks of rows, slices of k, panels of PANEL columns, but nothing is read in place: a block of A
 * and a panel of B are rounded on their way into scratch, as words of bf16.h, and the tiles read those. Slices and the
 * order of a sum are those of gemm.c, so without the instruction the result has the bits of gemm on rounded numbers. */
#include "kernel/vector/gemm_pack.h"
#include "kernel/vector/gemm_tile.h"
#include "kernel/vector/vector.h"

typedef void (*tile_function)(const tile_job *t);

#define DEFINE_TILE(R, W)                                                                                              \
    static void words_##R(const tile_job *t)                                                                           \
    {                                                                                                                  \
        tile(R, TILE_VECS, 0, 1, t);                                                                                   \
    }
#define LIST_TILE(R, W) words_##R,

EVERY_TILE(DEFINE_TILE)

static const tile_function tiles[TILE_ROWS + 1] = {NULL, EVERY_TILE(LIST_TILE)};

/* One block of rows times one slice of k: `depth` numbers, `steps` words. */
typedef struct block {
    const cpl_gemm *g;
    int64_t i, rows, p, depth, steps;
    float *panel;   /* scratch: [steps PANEL] words of B; [depth PANEL] numbers before */
    float *a_words; /* scratch: a transposed A tile by tile, [steps rows of the tile], else [rows steps] */
    int add;
    parts tiles; /* of the rows */
} block;

/* x[depth count] becomes words to[steps count]: TOGETHER rows in one. to may be x, at the same distance of rows: a row
 * of words is written after the rows of numbers that stood there were read. */
static void words_down(const float *x, int64_t ld, int64_t depth, int64_t count, float *to, int64_t to_ld)
{
    for (int64_t p = 0; p < depth; p += TOGETHER, to += to_ld) {
        for (int64_t i = 0; i < count; i += LANES) {
            const float *from = x + p * ld + i;
            int w = width(count - i);
            vec first = round_bf16(load_part(from, w)), second = splat(0.0f);

            if (TOGETHER == 2 && p + 1 < depth)
                second = round_bf16(load_part(from + ld, w));
            store_part(to + i, w, join(first, second));
        }
    }
}

static void words_of_a(const block *b)
{
    const cpl_gemm *g = b->g;
    const float *a = g->transpose_a ? g->a + b->p * g->lda + b->i : g->a + b->i * g->lda + b->p;
    float *to = b->a_words;

    for (int64_t index = 0; g->transpose_a && index < b->tiles.count; index++) {
        int64_t size = part_size(b->tiles, index);

        words_down(a, g->lda, b->depth, size, to, size);
        a += size;
        to += size * b->steps;
    }
    for (int64_t r = 0; !g->transpose_a && r < b->rows; r++, a += g->lda, to += b->steps) {
        for (int64_t s = 0; s < b->steps; s += LANES)
            store_part(to + s, width(b->steps - s), neighbours(a + s * TOGETHER, b->depth - s * TOGETHER));
    }
}

static void words_of_b(const block *b, int64_t j, int columns)
{
    const cpl_gemm *g = b->g;
    const float *from = g->transpose_b ? g->b + j * g->ldb + b->p : g->b + b->p * g->ldb + j;
    int64_t ld = g->ldb;

    if (g->transpose_b)
        pack_transposed(from, ld, b->depth, columns, b->panel);
    else if (columns < PANEL)
        pack_narrow(from, ld, b->depth, columns, b->panel);
    if (g->transpose_b || columns < PANEL) {
        from = b->panel;
        ld = PANEL;
    }
    words_down(from, ld, b->depth, PANEL, b->panel, PANEL);
}

static void run_panel(const block *b, int64_t j, int columns)
{
    const cpl_gemm *g = b->g;
    tile_job t = {.k = b->steps, .b = b->panel, .b_step = PANEL, .next = b->panel, .ldc = g->ldc, .columns = columns,
                  .add = b->add};

    for (int64_t index = 0, i = 0; index < b->tiles.count; index++) {
        int64_t rows = part_size(b->tiles, index);

        t.a = b->a_words + i * b->steps;
        t.a_row = g->transpose_a ? 1 : b->steps;
        t.a_step = g->transpose_a ? rows : 1;
        t.c = g->c + (b->i + i) * g->ldc + j;
        tiles[rows](&t);
        i += rows;
    }
}

void CPL_FN(gemm_bf16)(const cpl_gemm *g, void *scratch)
{
    parts blocks = cut_evenly(g->m, ROWS_MOST);
    parts slices = cut_evenly(g->k, DEPTH_MOST);
    block b = {.g = g, .panel = scratch, .a_words = (float *)scratch + DEPTH_MOST * PANEL};

    if (slices.count == 0)
        clear(g);
    for (int64_t index = 0; index < blocks.count; index++, b.i += b.rows) {
        b.rows = part_size(blocks, index);
        b.tiles = cut_evenly(b.rows, TILE_ROWS);
        b.p = 0;
        for (int64_t slice = 0; slice < slices.count; slice++, b.p += b.depth) {
            b.depth = part_size(slices, slice);
            b.steps = parts_of(b.depth, TOGETHER);
            b.add = slice > 0 || g->beta != 0.0f;
            words_of_a(&b);
            for (int64_t j = 0; j < g->n; j += PANEL) {
                int columns = g->n - j < PANEL ? (int)(g->n - j) : PANEL;

                words_of_b(&b, j, columns);
                run_panel(&b, j, columns);
            }
        }
    }
}
