/* packed.c: filling and reading packed weights, a column at a time: once when a model is loaded, and for rows of
 * embeddings. */
#include "kernel/packed.h"

#include <math.h>
#include <string.h>

static int64_t blocks_of(int64_t columns)
{
    return (columns + CPL_PACK - 1) / CPL_PACK;
}

/* Words of 32 bits that a column has: a float, two bfloat16 or four bytes each. */
static int64_t words_of(cpl_weight_type type, int64_t depth)
{
    int64_t in_word = type == CPL_WEIGHT_FLOAT32 ? 1 : type == CPL_WEIGHT_BFLOAT16 ? 2 : 4;
    return (depth + in_word - 1) / in_word;
}

size_t cpl_packed_bytes(cpl_weight_type type, int64_t columns, int64_t depth)
{
    int64_t wide = blocks_of(columns) * CPL_PACK;
    int64_t sides = type == CPL_WEIGHT_INT8 ? 2 : 0; /* scale and sum */
    return (size_t)(wide * (words_of(type, depth) + sides)) * sizeof(uint32_t);
}

void cpl_packed_place_unset(cpl_packed *p, cpl_weight_type type, int64_t columns, int64_t depth, void *memory)
{
    int64_t wide = blocks_of(columns) * CPL_PACK;
    uint32_t *words = memory;
    *p = (cpl_packed){.type = type, .columns = columns, .depth = depth, .words = words};
    if (type == CPL_WEIGHT_INT8) {
        p->scale = (float *)(words + wide * words_of(type, depth));
        p->sum = (int32_t *)(p->scale + wide);
    }
}

void cpl_packed_place(cpl_packed *p, cpl_weight_type type, int64_t columns, int64_t depth, void *memory)
{
    memset(memory, 0, cpl_packed_bytes(type, columns, depth));
    cpl_packed_place_unset(p, type, columns, depth, memory);
}

/* Where word i of a column stands. */
static uint32_t *word_at(const cpl_packed *p, int64_t column, int64_t i)
{
    int64_t block = column / CPL_PACK, words = words_of(p->type, p->depth);
    return p->words + (block * words + i) * CPL_PACK + column % CPL_PACK;
}

static int8_t *byte_at(const cpl_packed *p, int64_t column, int64_t i)
{
    return (int8_t *)word_at(p, column, i / 4) + i % 4;
}

void cpl_packed_set(cpl_packed *p, int64_t column, const void *numbers, int64_t step, float scale)
{
    const uint16_t *halves = numbers;
    const int8_t *bytes = numbers;
    int32_t sum = 0;
    for (int64_t i = 0; i < p->depth && p->type == CPL_WEIGHT_BFLOAT16; i += 2) {
        uint32_t second = i + 1 < p->depth ? halves[(i + 1) * step] : 0;
        *word_at(p, column, i / 2) = (uint32_t)halves[i * step] << 16 | second;
    }
    if (p->type != CPL_WEIGHT_INT8)
        return;
    for (int64_t i = 0; i < p->depth; i++) {
        *byte_at(p, column, i) = bytes[i * step];
        sum += bytes[i * step];
    }
    p->scale[column] = scale;
    p->sum[column] = sum;
}

int64_t cpl_packed_blocks(const cpl_packed *p)
{
    return blocks_of(p->columns);
}

/* Whole blocks have loops of a fixed length; where columns are missing there are zeros. */
static inline void set_block(uint32_t *to, int64_t depth, int64_t n, const real *w, int64_t step, int64_t next)
{
    for (int64_t i = 0; i < depth; i++) {
        for (int64_t k = 0; k < n; k++) {
            float number = (float)w[i * step + k * next];
            memcpy(&to[i * CPL_PACK + k], &number, sizeof number);
        }
        for (int64_t k = n; k < CPL_PACK; k++)
            to[i * CPL_PACK + k] = 0;
    }
}

void cpl_packed_set_block(cpl_packed *p, int64_t block, const real *w, int64_t step, int64_t next)
{
    int64_t column = block * CPL_PACK, left = p->columns - column;
    uint32_t *to = word_at(p, column, 0);
    w += column * next;
    if (left < CPL_PACK)
        set_block(to, p->depth, left, w, step, next);
    else if (next == 1)
        set_block(to, p->depth, CPL_PACK, w, step, 1);
    else
        set_block(to, p->depth, CPL_PACK, w, step, next);
}

void cpl_packed_set_whole(cpl_packed *p, const real *w)
{
    for (int64_t block = 0; block < blocks_of(p->columns); block++)
        cpl_packed_set_block(p, block, w, p->columns, 1);
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void cpl_packed_get(const cpl_packed *p, int64_t column, real *to)
{
    const uint32_t *word = word_at(p, column, 0);
    for (int64_t i = 0; i < p->depth && p->type == CPL_WEIGHT_FLOAT32; i++)
        to[i] = (real)of_bits(word[i * CPL_PACK]);
    for (int64_t i = 0; i < p->depth && p->type == CPL_WEIGHT_BFLOAT16; i++) {
        uint32_t pair = word[i / 2 * CPL_PACK];
        to[i] = (real)of_bits(i % 2 ? pair << 16 : pair & 0xffff0000u);
    }
    for (int64_t i = 0; i < p->depth && p->type == CPL_WEIGHT_INT8; i++) {
        const int8_t *four = (const int8_t *)(word + i / 4 * CPL_PACK);
        to[i] = (real)((float)four[i % 4] * p->scale[column]);
    }
}

void cpl_packed_copy(const cpl_packed *from, int64_t column, cpl_packed *to, int64_t at)
{
    int64_t words = words_of(from->type, from->depth);
    uint32_t *put = word_at(to, at, 0);
    const uint32_t *get = word_at(from, column, 0);
    for (int64_t i = 0; i < words; i++)
        put[i * CPL_PACK] = get[i * CPL_PACK];
    if (from->type == CPL_WEIGHT_INT8) {
        to->scale[at] = from->scale[column];
        to->sum[at] = from->sum[column];
    }
}

/* ---- making them ---- */

/* A scale that is no normal number would make the bytes meaningless: such weights are 0. */
float cpl_to_int8(int64_t n, const float *x, int64_t step, int8_t *bytes, int64_t byte_step)
{
    float largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fabsf(x[i * step]) > largest ? fabsf(x[i * step]) : largest;
    float scale = largest / 127.0f;
    if (!isnormal(scale))
        scale = 0;
    for (int64_t i = 0; i < n; i++) {
        float q = scale > 0 ? rintf(x[i * step] / scale) : 0;
        bytes[i * byte_step] = (int8_t)(q > 127 ? 127 : q < -127 ? -127 : q);
    }
    return scale;
}

uint16_t cpl_to_bfloat16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
