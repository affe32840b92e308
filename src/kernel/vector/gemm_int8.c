/* gemm_int8.c: C = A·B + beta·C with B in bytes; rows of A become bytes on the way.
 *
 * A block of rows is turned into bytes in scratch, as int8.h wants them. Then each block of columns is read once for
 * every tile of rows, from the first-level cache after the first. Sums of 32 bits are exact, so tiles may take any
 * number of rows and columns, and in any order. */
#include <math.h>
#include "kernel/vector/gemm_pack.h"
#include "kernel/vector/int8.h"
#include "kernel/vector/packed_store.h"
#include "kernel/vector/vector.h"

/* Rows of A in scratch at a time; numbers of a row begin 16 numbers apart at least. */
enum { INT8_ROWS = 35, INT8_ALIGN = 16, BLOCK_BYTES = 4 * CPL_PACK };

typedef struct int8_job {
    const cpl_gemm_packed *g;
    const left_number *a;  /* of the tile's first row: a[r·a_row + p] */
    int64_t a_row, groups; /* groups of four along the depth */
    const float *a_scale;
    int64_t block, end;    /* of columns: blocks block … end − 1 */
    float *c;              /* row of C where the tile begins, column `from` of B */
} int8_job;

/* LANES columns from `column` on, of row r: the sums become numbers of C. */
INLINE void finish(const int8_job *t, int r, int64_t column, ivec sum)
{
    typedef float floats __attribute__((vector_size(LANES * 4)));
    const cpl_packed *b = t->g->b;

    if (ADDED) {
        uvec all;

        memcpy(&all, b->sum + column, sizeof all);
        sum = (ivec)((uvec)sum - ADDED * all);
    }
    vec scale = splat(t->a_scale[r]) * load(b->scale + column);
    store_columns(t->g, t->c + r * t->g->ldc, column, (vec)__builtin_convertvector(sum, floats) * scale,
                  t->g->beta != 0.0f);
}

/* R rows times one block of columns, V vectors of it at a time. */
INLINE void int8_block(const int R, const int V, const int8_job *t, int64_t number)
{
    const int8_t *block = (const int8_t *)t->g->b->words + number * t->groups * BLOCK_BYTES;

    for (int part = 0; part < SUMS; part += V) {
        const int8_t *b = block + part * STEP;
        ivec sum[TILE_ROWS][8];

        UNROLL
        for (int r = 0; r < R; r++) {
            UNROLL
            for (int v = 0; v < V; v++)
                sum[r][v] = (ivec){0};
        }
        for (int64_t p = 0; p < t->groups; p++, b += BLOCK_BYTES) {
            ivec columns[8];

            UNROLL
            for (int v = 0; v < V; v++)
                columns[v] = columns_of(b + v * STEP);
            UNROLL
            for (int r = 0; r < R; r++) {
                ivec x = spread(t->a + r * t->a_row + 4 * p);

                UNROLL
                for (int v = 0; v < V; v++)
                    sum[r][v] = dot(sum[r][v], columns[v], x);
            }
        }
        UNROLL
        for (int r = 0; r < R; r++) {
            UNROLL
            for (int v = 0; v < V; v += SHARES)
                finish(t, r, number * CPL_PACK + (part + v) / SHARES * LANES,
                       fold(sum[r][v], sum[r][v + SHARES - 1]));
        }
    }
}

INLINE void int8_tile(const int R, const int V, const int8_job *t)
{
    for (int64_t block = t->block; block < t->end; block++)
        int8_block(R, V, t, block);
}

/* Rows of a tile, and the vectors of a block that it takes at a time: R · V sums must fit the registers, next to V
 * vectors of weights, a number of A and a product on its way. (Of 16 registers 12 sums are one too many: the one that
 * goes through memory made a tile of 6 rows take twice as long as one of 5.) */
#if defined __AVX512F__
enum { INT8_TILE = 12 };
#define EVERY_INT8(X)                                                                                                  \
    X(1, SUMS) X(2, SUMS) X(3, SUMS) X(4, SUMS) X(5, SUMS) X(6, SUMS) X(7, SUMS) X(8, SUMS) X(9, SUMS) X(10, SUMS)     \
    X(11, SUMS) X(12, SUMS)
#else
enum { INT8_TILE = 5 };
#define EVERY_INT8(X) X(1, 4) X(2, 4) X(3, 2) X(4, 2) X(5, 2)
#endif

typedef void (*tile_function)(const int8_job *t);

#define DEFINE_TILE(R, V)                                                                                              \
    static void int8_##R(const int8_job *t)                                                                            \
    {                                                                                                                  \
        int8_tile(R, V, t);                                                                                            \
    }
#define LIST_TILE(R, V) int8_##R,

EVERY_INT8(DEFINE_TILE)

static const tile_function tiles[INT8_TILE + 1] = {NULL, EVERY_INT8(LIST_TILE)};

/* The largest |x| as bits, which order as the numbers do; a NaN and infinity come last. */
INLINE int32_t largest_bits(const float *x, int64_t n)
{
    ivec most = {0};
    int32_t lanes[LANES], largest = 0;

    for (int64_t i = 0; i < n; i += LANES) {
        ivec bits = (ivec)load_part(x + i, width(n - i)) & 0x7fffffff;
        ivec more = bits > most;

        most = (bits & more) | (most & ~more);
    }
    memcpy(lanes, &most, sizeof lanes);
    for (int i = 0; i < LANES; i++)
        largest = lanes[i] > largest ? lanes[i] : largest;
    return largest;
}

/* Adding 1.5·2²³ leaves a whole number in the lower bits, rounded to the nearest even. Returns the row's scale. */
INLINE float row_to_bytes(const float *x, int64_t n, left_number *to, int64_t room)
{
    const float shift = 12582912.0f;
    int32_t bits = largest_bits(x, n);
    float largest;

    memcpy(&largest, &bits, sizeof largest);
    if (bits >= 0x7f800000 || largest < 1e-30f) {
        memset(to, 0, (size_t)room * sizeof *to);
        for (int64_t i = 0; i < room; i++)
            to[i] = ADDED;
        return bits >= 0x7f800000 ? NAN : 0.0f;
    }
    vec times = splat(127.0f / largest);
    for (int64_t i = 0; i < n; i += LANES) {
        vec v = load_part(x + i, width(n - i)) * times + splat(shift);
        ivec q = (ivec)v - (ivec)splat(shift) + ADDED;
        left_numbers numbers = __builtin_convertvector(q, left_numbers);

        memcpy(to + i, &numbers, sizeof numbers);
    }
    return largest / 127.0f;
}

void CPL_FN(gemm_int8)(const cpl_gemm_packed *g, void *scratch)
{
    int64_t depth = g->b->depth, a_row = (depth + INT8_ALIGN - 1) / INT8_ALIGN * INT8_ALIGN;
    int64_t fit = a_row ? SCRATCH_FLOATS * (int64_t)sizeof(float) / (a_row * (int64_t)sizeof(left_number)) : INT8_ROWS;
    parts blocks = cut_evenly(g->m, fit < INT8_ROWS ? fit : INT8_ROWS);
    int64_t end = parts_of(g->from + g->n, CPL_PACK);
    float scale[INT8_ROWS];
    left_number *a = scratch;
    int8_job t = {.g = g, .a_row = a_row, .groups = parts_of(depth, 4)};

    for (int64_t index = 0, i = 0; index < blocks.count; index++) {
        int64_t rows = part_size(blocks, index);
        parts cut = cut_evenly(rows, INT8_TILE);

        for (int64_t r = 0; r < rows; r++)
            scale[r] = row_to_bytes(g->a + (i + r) * g->lda, depth, a + r * a_row, a_row);
        for (t.block = g->from / CPL_PACK; t.block < end; t.block = t.end) {
            t.end = cut.count > 1 ? t.block + 1 : end; /* a tile alone takes all blocks at once */
            for (int64_t tile = 0, r = 0; tile < cut.count; tile++) {
                t.a = a + r * a_row;
                t.a_scale = scale + r;
                t.c = g->c + (i + r) * g->ldc;
                tiles[part_size(cut, tile)](&t);
                r += part_size(cut, tile);
            }
        }
        i += rows;
    }
}
