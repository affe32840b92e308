/* gemm.c: the reference product, one dot product per element. */
#include "kernel/ref/reference.h"

void cpl_ref_gemm(const cpl_gemm *g, void *scratch)
{
    /* op(A)[i p] is a[i·a_row + p·a_step], op(B)[p j] is b[j·b_column + p·b_step]. */
    int64_t a_row = g->transpose_a ? 1 : g->lda;
    int64_t a_step = g->transpose_a ? g->lda : 1;
    int64_t b_column = g->transpose_b ? g->ldb : 1;
    int64_t b_step = g->transpose_b ? 1 : g->ldb;

    (void)scratch;
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j++) {
            const real *a = g->a + i * a_row;
            const real *b = g->b + j * b_column;
            real *c = g->c + i * g->ldc + j;
            double sum = 0.0;

            for (int64_t p = 0; p < g->k; p++)
                sum += (double)a[p * a_step] * (double)b[p * b_step];
            *c = (real)(g->beta == 0 ? sum : sum + (double)g->beta * (double)*c);
        }
    }
}
