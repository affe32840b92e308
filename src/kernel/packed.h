/* packed.h: weights standing as products read them, in float32 or a lower type (kernel.h: cpl_gemm_packed).
 *
 * Blocks of CPL_PACK columns, each a piece of memory that a product reads from its beginning to its end:
 *   float32   [block][depth][column] floats
 *   bfloat16  [block][pair of depth][column] words of 32 bits: the first of the pair in the upper half
 *   int8      [block][four of depth][column][4] bytes
 * What a block has beyond the columns or the depth is 0. A column's number is byte · scale of the column.
 *
 *   void *memory = cpl_alloc_aligned(cpl_packed_bytes(type, columns, depth), 64);
 *   cpl_packed_place(&p, type, columns, depth, memory);
 *   … for each column: cpl_packed_set(&p, column, numbers, 1, scale); … */
#ifndef CPL_KERNEL_PACKED_H
#define CPL_KERNEL_PACKED_H

#include "kernel/kernel.h"

/* The largest depth of int8: sums of so many products of bytes fit 32 bits. */
enum { CPL_PACKED_DEPTH = 1 << 17 };

size_t cpl_packed_bytes(cpl_weight_type type, int64_t columns, int64_t depth);
/* p with all numbers 0, in memory of that many bytes, 64-byte aligned. */
void cpl_packed_place(cpl_packed *p, cpl_weight_type type, int64_t columns, int64_t depth, void *memory);
/* One column of a lower type: uint16_t or int8_t, `step` of them apart. bfloat16 has no scale. */
void cpl_packed_set(cpl_packed *p, int64_t column, const void *numbers, int64_t step, float scale);
/* The same while its numbers are still to be set, all of them. */
void cpl_packed_place_unset(cpl_packed *p, cpl_weight_type type, int64_t columns, int64_t depth, void *memory);
/* float32: a block of CPL_PACK columns, number i of column k of all being w[i · step + k · next]; all of
 * w[depth columns]. */
void cpl_packed_set_block(cpl_packed *p, int64_t block, const real *w, int64_t step, int64_t next);
void cpl_packed_set_whole(cpl_packed *p, const real *w);
int64_t cpl_packed_blocks(const cpl_packed *p);
/* The numbers of one column. */
void cpl_packed_get(const cpl_packed *p, int64_t column, real *to);
/* One column of another matrix of the same type and depth. */
void cpl_packed_copy(const cpl_packed *from, int64_t column, cpl_packed *to, int64_t at);

/* x[n], `step` apart, as bytes −127 … 127, byte_step apart, nearest to x / scale. The scale is what is returned: the
 * largest |x| / 127, and 0 where all are 0. All x must be finite. */
float cpl_to_int8(int64_t n, const float *x, int64_t step, int8_t *bytes, int64_t byte_step);
uint16_t cpl_to_bfloat16(float x); /* the nearest, of two the even one; a NaN stays a NaN */

#endif
