/* projection.c: the three products in both layouts of the weights: the kernels read either, so nothing is copied. */
#include "ops/projection.h"

int64_t cpl_projection_vocab(const cpl_type *w, int tied)
{
    return w->dim[tied ? 0 : 1].size;
}

cpl_projection cpl_projection_of(const cpl_run_context *r, int tied)
{
    const cpl_type *w = r->in[1].type;
    return (cpl_projection){.r = r, .tied = tied, .in = w->dim[tied ? 1 : 0].size,
                            .vocab = cpl_projection_vocab(w, tied), .w = r->in[1].data};
}

void cpl_projection_forward(const cpl_projection *p, int64_t n, const real *x, const real *bias, real *y)
{
    cpl_run_dense(p->r, &(cpl_gemm){.transpose_b = p->tied, .m = n, .n = p->vocab, .k = p->in, .a = x, .lda = p->in,
                                    .ldb = p->tied ? p->in : p->vocab, .c = y, .ldc = p->vocab}, &p->r->in[1], bias,
                  CPL_LINEAR);
}

void cpl_projection_input(const cpl_projection *p, int64_t n, const real *dy, real *dx)
{
    cpl_run_gemm(p->r, &(cpl_gemm){.transpose_b = !p->tied, .m = n, .n = p->in, .k = p->vocab, .a = dy,
                                   .lda = p->vocab, .b = p->w, .ldb = p->tied ? p->in : p->vocab, .c = dx,
                                   .ldc = p->in});
}

void cpl_projection_weights(const cpl_projection *p, int64_t n, const real *x, const real *dy, real beta, real *dw)
{
    if (p->tied)
        cpl_run_gemm(p->r, &(cpl_gemm){.transpose_a = 1, .m = p->vocab, .n = p->in, .k = n, .a = dy, .lda = p->vocab,
                                       .b = x, .ldb = p->in, .beta = beta, .c = dw, .ldc = p->in});
    else
        cpl_run_gemm(p->r, &(cpl_gemm){.transpose_a = 1, .m = p->in, .n = p->vocab, .k = n, .a = x, .lda = p->in,
                                       .b = dy, .ldb = p->vocab, .beta = beta, .c = dw, .ldc = p->vocab});
}
