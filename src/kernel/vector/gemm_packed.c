/* gemm_packed.c: C = A·B + beta·C with B packed, in float32 or bfloat16; B in bytes is gemm_int8.c.
 *
 * A block of columns is read from its beginning to its end, which a processor does as fast as it reads at all: at one
 * row the time is that of reading B. A word of bfloat16 is a pair along the depth, so masking and shifting give two
 * vectors of floats and a load serves both. Sums go from the first of the depth to the last with one fma each, whatever
 * the tile, which is why a row's bits do not depend on the rows around it; those of float32 are cut into slices where
 * gemm.c cuts them, so that both give the same bits. */
#include "kernel/vector/gemm_pack.h"
#include "kernel/vector/packed_store.h"
#include "kernel/vector/vector.h"

typedef struct packed_job {
    const cpl_gemm_packed *g;
    const float *a;       /* the tile's first row */
    int64_t block;        /* of columns, the first */
    int64_t first, depth; /* the slice of the depth; of bfloat16 all of it */
    float *c;             /* row of C where the tile begins, column `from` of B */
    int add;              /* C += tile, else C = tile */
} packed_job;

enum { VECS = CPL_PACK / LANES }; /* vectors of a block of columns */

/* One step of the depth; columns: of all blocks, in a row. */
INLINE void add_step(const int R, const int B, const packed_job *t, int64_t p, const vec *columns, vec (*sum)[8])
{
    UNROLL
    for (int r = 0; r < R; r++) {
        vec x = splat(t->a[r * t->g->lda + p]);

        UNROLL
        for (int v = 0; v < B * VECS; v++)
            sum[r][v] = fma_(x, columns[v], sum[r][v]);
    }
}

/* The upper halves of the words, then (second) the lower ones. */
INLINE void half_step(const int R, const int B, const int second, const packed_job *t, int64_t p, const uint32_t *words,
                      int64_t apart, vec (*sum)[8])
{
    vec columns[8];

    UNROLL
    for (int v = 0; v < B * VECS; v++) {
        uvec word;

        memcpy(&word, words + v / VECS * apart + v % VECS * LANES, sizeof word);
        columns[v] = (vec)(second ? word << 16 : word & 0xffff0000u);
    }
    add_step(R, B, t, p, columns, sum);
}

INLINE void half_steps(const int R, const int B, const packed_job *t, vec (*sum)[8])
{
    int64_t apart = (t->depth + 1) / 2 * CPL_PACK, p = 0;
    const uint32_t *words = t->g->b->words + t->block * apart;

    for (; p + 1 < t->depth; p += 2, words += CPL_PACK) {
        half_step(R, B, 0, t, p, words, apart, sum);
        half_step(R, B, 1, t, p + 1, words, apart, sum);
    }
    if (p < t->depth)
        half_step(R, B, 0, t, p, words, apart, sum);
}

INLINE void float_steps(const int R, const int B, const packed_job *t, vec (*sum)[8])
{
    int64_t apart = t->g->b->depth * CPL_PACK;
    const float *b = (const float *)t->g->b->words + t->block * apart + t->first * CPL_PACK;

    for (int64_t p = 0; p < t->depth; p++, b += CPL_PACK) {
        vec columns[8];

        UNROLL
        for (int v = 0; v < B * VECS; v++)
            columns[v] = load(b + v / VECS * apart + v % VECS * LANES);
        add_step(R, B, t, t->first + p, columns, sum);
    }
}

/* Most tiles lie between the first and the last column that were asked for. */
INLINE void store_tile(const int R, const int B, const packed_job *t, vec (*sum)[8])
{
    int64_t column = t->block * CPL_PACK - t->g->from;
    int inside = column >= 0 && column + B * CPL_PACK <= t->g->n;

    UNROLL
    for (int r = 0; r < R; r++) {
        float *c = t->c + r * t->g->ldc;

        UNROLL
        for (int v = 0; v < B * VECS; v++) {
            float *to = c + column + v * LANES;

            if (inside && t->add)
                store(to, load(to) + sum[r][v]);
            else if (inside)
                store(to, sum[r][v]);
            else
                store_columns(t->g, c, t->block * CPL_PACK + v * LANES, sum[r][v], t->add);
        }
    }
}

/* R rows times B blocks of columns. */
INLINE void packed_tile(const int R, const int B, const int halves, const packed_job *t)
{
    vec sum[TILE_ROWS][8];

    UNROLL
    for (int r = 0; r < R; r++) {
        UNROLL
        for (int v = 0; v < B * VECS; v++)
            sum[r][v] = splat(0.0f);
    }
    if (halves)
        half_steps(R, B, t, sum);
    else
        float_steps(R, B, t, sum);
    store_tile(R, B, t, sum);
}

/* Rows of a tile and the blocks that it takes at a time; what is left over takes one at a time. */
#if defined __AVX512F__
#define EVERY_PACKED(X)                                                                                                \
    X(1, 8) X(2, 4) X(3, 4) X(4, 4) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2)
#elif defined __AVX2__
#define EVERY_PACKED(X) X(1, 4) X(2, 2) X(3, 2) X(4, 1) X(5, 1) X(6, 1)
#else
#define EVERY_PACKED(X) X(1, 2) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1)
#endif

/* The most rows of a tile of bfloat16. Next to 12 sums the mask and two vectors of columns are one register too many
 * where there are 16, and the sum that goes through memory takes twice as long as all others. */
#if defined __AVX512F__
enum { HALF_ROWS = TILE_ROWS };
#else
enum { HALF_ROWS = 5 };
#endif

typedef struct tile_set {
    void (*one)(const packed_job *t);
    void (*several)(const packed_job *t);
    int blocks; /* of several */
} tile_set;

#define DEFINE_TILES_OF(R, B, NAME, HALVES)                                                                            \
    static void one_##NAME##_##R(const packed_job *t)                                                                  \
    {                                                                                                                  \
        packed_tile(R, 1, HALVES, t);                                                                                  \
    }                                                                                                                  \
    static void several_##NAME##_##R(const packed_job *t)                                                              \
    {                                                                                                                  \
        packed_tile(R, B, HALVES, t);                                                                                  \
    }
#define DEFINE_TILES(R, B) DEFINE_TILES_OF(R, B, float, 0) DEFINE_TILES_OF(R, B, half, 1)
#define LIST_FLOATS(R, B) {one_float_##R, several_float_##R, B},
#define LIST_HALVES(R, B) {one_half_##R, several_half_##R, B},

EVERY_PACKED(DEFINE_TILES)

static const tile_set float_tiles[TILE_ROWS + 1] = {{0}, EVERY_PACKED(LIST_FLOATS)};
static const tile_set half_tiles[TILE_ROWS + 1] = {{0}, EVERY_PACKED(LIST_HALVES)};

/* The tiles of some rows share a block of columns while it is near; as many rows as stay near themselves. */
enum { PACKED_ROWS = 96 };

/* part: a tile of the first row and the first block, of which each tile is a copy; cut: of the rows. */
static void packed_rows(const packed_job *part, const tile_set *tiles, parts cut)
{
    const cpl_gemm_packed *g = part->g;
    int64_t end = parts_of(g->from + g->n, CPL_PACK);
    int most = tiles[cut.least].blocks; /* of the smallest tile: the others divide it */
    packed_job t = *part;

    for (int64_t block = part->block; block < end;) {
        int several = block + most <= end;

        for (int64_t tile = 0, r = 0; tile < cut.count; tile++) {
            int64_t size = part_size(cut, tile);

            t.a = part->a + r * g->lda;
            t.c = part->c + r * g->ldc;
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
    int halves = g->b->type == CPL_WEIGHT_BFLOAT16;
    int64_t depth = g->b->depth;
    parts blocks = cut_evenly(g->m, PACKED_ROWS);
    parts slices = depth > 0 && !halves ? cut_evenly(depth, DEPTH_MOST) : (parts){.count = 1, .least = depth};

    if (g->b->type == CPL_WEIGHT_INT8) {
        CPL_FN(gemm_int8)(g, scratch);
        return;
    }
    for (int64_t index = 0, i = 0; index < blocks.count; index++) {
        int64_t rows = part_size(blocks, index);
        parts cut = cut_evenly(rows, halves ? HALF_ROWS : TILE_ROWS);
        packed_job part = {.g = g, .a = g->a + i * g->lda, .block = g->from / CPL_PACK, .c = g->c + i * g->ldc};

        for (int64_t slice = 0; slice < slices.count; slice++, part.first += part.depth) {
            part.depth = part_size(slices, slice);
            part.add = slice > 0 || g->beta != 0.0f;
            packed_rows(&part, halves ? half_tiles : float_tiles, cut);
        }
        i += rows;
    }
}
