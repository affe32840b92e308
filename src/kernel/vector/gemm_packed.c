/* gemm_packed.c: C = A·B + beta·C with B in bfloat16; B in bytes is gemm_int8.c.
 *
 * A word of B is a pair along the depth, so masking and shifting give two vectors of floats and a load serves both: at
 * one row the time is that of reading B. Sums go from the first of the depth to the last with one fma each, whatever
 * the tile, which is why a row's bits do not depend on the rows around it. */
#include "kernel/vector/gemm_pack.h"
#include "kernel/vector/packed_store.h"
#include "kernel/vector/vector.h"

typedef struct half_job {
    const cpl_gemm_packed *g;
    const float *a; /* the tile's first row */
    int64_t block;  /* of columns, the first */
    float *c;       /* row of C where the tile begins, column `from` of B */
} half_job;

enum { VECS = CPL_PACK / LANES }; /* vectors of a block of columns */

/* One step of the depth: the upper halves of the words, then (second) the lower ones. */
INLINE void half_step(const int R, const int B, const int second, const half_job *t, int64_t p, const uint32_t *words,
                      int64_t apart, vec (*sum)[8])
{
    vec columns[8];

    UNROLL
    for (int v = 0; v < B * VECS; v++) {
        uvec word;

        memcpy(&word, words + v / VECS * apart + v % VECS * LANES, sizeof word);
        columns[v] = (vec)(second ? word << 16 : word & 0xffff0000u);
    }
    UNROLL
    for (int r = 0; r < R; r++) {
        vec x = splat(t->a[r * t->g->lda + p]);

        UNROLL
        for (int v = 0; v < B * VECS; v++)
            sum[r][v] = fma_(x, columns[v], sum[r][v]);
    }
}

/* R rows times B blocks of columns. */
INLINE void half_tile(const int R, const int B, const half_job *t)
{
    int64_t depth = t->g->b->depth, apart = (depth + 1) / 2 * CPL_PACK, p = 0;
    const uint32_t *words = t->g->b->words + t->block * apart;
    vec sum[TILE_ROWS][8];

    UNROLL
    for (int r = 0; r < R; r++) {
        UNROLL
        for (int v = 0; v < B * VECS; v++)
            sum[r][v] = splat(0.0f);
    }
    for (; p + 1 < depth; p += 2, words += CPL_PACK) {
        half_step(R, B, 0, t, p, words, apart, sum);
        half_step(R, B, 1, t, p + 1, words, apart, sum);
    }
    if (p < depth)
        half_step(R, B, 0, t, p, words, apart, sum);
    UNROLL
    for (int r = 0; r < R; r++) {
        UNROLL
        for (int v = 0; v < B * VECS; v++)
            store_columns(t->g, t->c + r * t->g->ldc, t->block * CPL_PACK + v * LANES, sum[r][v]);
    }
}

/* Rows of a tile and the blocks that it takes at a time; what is left over takes one at a time. */
#if defined __AVX512F__
#define EVERY_HALF(X)                                                                                                  \
    X(1, 8) X(2, 4) X(3, 4) X(4, 4) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2)
#elif defined __AVX2__
#define EVERY_HALF(X) X(1, 4) X(2, 2) X(3, 2) X(4, 1) X(5, 1) X(6, 1)
#else
#define EVERY_HALF(X) X(1, 2) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1)
#endif

typedef struct tile_set {
    void (*one)(const half_job *t);
    void (*several)(const half_job *t);
    int blocks; /* of several */
} tile_set;

#define DEFINE_TILES(R, B)                                                                                             \
    static void one_##R(const half_job *t)                                                                             \
    {                                                                                                                  \
        half_tile(R, 1, t);                                                                                            \
    }                                                                                                                  \
    static void several_##R(const half_job *t)                                                                         \
    {                                                                                                                  \
        half_tile(R, B, t);                                                                                            \
    }
#define LIST_TILES(R, B) {one_##R, several_##R, B},

EVERY_HALF(DEFINE_TILES)

static const tile_set tiles[TILE_ROWS + 1] = {{0}, EVERY_HALF(LIST_TILES)};

/* The tiles of some rows share a block of columns while it is near; as many rows as stay near themselves. */
enum { HALF_ROWS = 48 };

static void half_rows(const cpl_gemm_packed *g, int64_t i, int64_t rows)
{
    int64_t count = parts_of(rows, TILE_ROWS), end = parts_of(g->from + g->n, CPL_PACK);
    int most = tiles[part_size(rows, count, count - 1)].blocks; /* of the smallest tile: the others divide it */

    for (int64_t block = g->from / CPL_PACK; block < end;) {
        int several = block + most <= end;

        for (int64_t tile = 0, r = 0; tile < count; tile++) {
            int64_t size = part_size(rows, count, tile);
            half_job t = {.g = g, .a = g->a + (i + r) * g->lda, .block = block, .c = g->c + (i + r) * g->ldc};

            for (int taken = 0; taken < (several ? most : 1); taken += several ? tiles[size].blocks : 1) {
                t.block = block + taken;
                (several ? tiles[size].several : tiles[size].one)(&t);
            }
            r += size;
        }
        block += several ? most : 1;
    }
}

void CPL_FN(gemm_packed)(const cpl_gemm_packed *g, void *scratch)
{
    int64_t blocks = parts_of(g->m, HALF_ROWS);

    if (g->b->type == CPL_WEIGHT_INT8) {
        CPL_FN(gemm_int8)(g, scratch);
        return;
    }
    for (int64_t index = 0, i = 0; index < blocks; index++) {
        int64_t rows = part_size(g->m, blocks, index);

        half_rows(g, i, rows);
        i += rows;
    }
}
