/* gemm.c: the reference products, one dot product per element. */
#include <math.h>
#include <string.h>
#include "kernel/ref/reference.h"

/* Inline, so that each product has its own loop. seen: what a number of A or B counts as. */
static inline void product(const cpl_gemm *g, double (*seen)(double))
{
    /* op(A)[i p] is a[i·a_row + p·a_step], op(B)[p j] is b[j·b_column + p·b_step]. */
    int64_t a_row = g->transpose_a ? 1 : g->lda;
    int64_t a_step = g->transpose_a ? g->lda : 1;
    int64_t b_column = g->transpose_b ? g->ldb : 1;
    int64_t b_step = g->transpose_b ? 1 : g->ldb;

    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j++) {
            const real *a = g->a + i * a_row;
            const real *b = g->b + j * b_column;
            real *c = g->c + i * g->ldc + j;
            double sum = 0.0;

            for (int64_t p = 0; p < g->k; p++)
                sum += seen((double)a[p * a_step]) * seen((double)b[p * b_step]);
            *c = (real)(g->beta == 0 ? sum : sum + (double)g->beta * (double)*c);
        }
    }
}

static double as_it_is(double x)
{
    return x;
}

void cpl_ref_gemm(const cpl_gemm *g, void *scratch)
{
    (void)scratch;
    product(g, as_it_is);
}

/* bfloat16 is float without the lower 16 bits. What is cut off is more than a half when adding 0x7fff to it carries;
 * an exact half has to carry when the number kept is odd. The carry may go on into the exponent, up to infinity. */
double cpl_ref_round_bf16(double x)
{
    float y = (float)x;
    uint32_t bits;

    if (isnan(y))
        return x;
    memcpy(&bits, &y, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    bits &= 0xffff0000;
    memcpy(&y, &bits, sizeof y);
    return (double)y;
}

void cpl_ref_gemm_bf16(const cpl_gemm *g, void *scratch)
{
    (void)scratch;
    product(g, cpl_ref_round_bf16);
}
