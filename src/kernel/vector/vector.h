/* vector.h: the functions of the fast tables; kernel.h says what each does. CPL_FN adds the name of the
 * instruction set, so that the same files can be compiled and linked several times. */
#ifndef CPL_KERNEL_VECTOR_VECTOR_H
#define CPL_KERNEL_VECTOR_VECTOR_H

#include "kernel/kernel.h"
#include "kernel/vector/vec.h"

void CPL_FN(gemm)(const cpl_gemm *g, void *scratch);
void CPL_FN(gemm_bf16)(const cpl_gemm *g, void *scratch);
void CPL_FN(gemm_packed)(const cpl_gemm_packed *g, void *scratch);
void CPL_FN(gemm_int8)(const cpl_gemm_packed *g, void *scratch);

void CPL_FN(axpy)(int64_t n, float a, const float *x, float *y);
void CPL_FN(scale)(int64_t n, float a, const float *x, float *y);
void CPL_FN(add)(int64_t n, const float *x1, const float *x2, float *y);
void CPL_FN(multiply)(int64_t n, const float *x1, const float *x2, float *y);
float CPL_FN(dot)(int64_t n, const float *x1, const float *x2);
void CPL_FN(bias_activation)(int64_t rows, int64_t n, const float *x, const float *bias, cpl_activation f, float *y);
void CPL_FN(activation_backward)(int64_t n, cpl_activation f, const float *y, const float *dy, float *dx);
void CPL_FN(add_rows)(int64_t rows, int64_t n, const float *x, int64_t ldx, float *sum);
void CPL_FN(adam)(int64_t n, const float *g, float g_scale, float rate, float beta_1, float beta_2, float epsilon,
                  float rate_decay, float *w, float *m, float *v);
double CPL_FN(multiply_adds)(int64_t rounds, int bf16, float *sink);

void CPL_FN(gru_forward)(int64_t rows, int64_t u, const float *xg, const float *hg, const float *h, float *keep,
                         float *h_next);
void CPL_FN(gru_backward)(int64_t rows, int64_t u, const float *keep, const float *h, const float *dh, float *dxg,
                          float *dhg, float *dh_prev);
void CPL_FN(gru_before_gates)(int64_t rows, int64_t u, const float *xg, const float *hg2, const float *h, float *keep,
                              float *rh);
void CPL_FN(gru_before_state)(int64_t rows, int64_t u, const float *xg, const float *hn, const float *h, float *keep,
                              float *h_next);
void CPL_FN(gru_before_backward_state)(int64_t rows, int64_t u, const float *keep, const float *h, const float *dh,
                                       float *dxg, float *dh_prev);
void CPL_FN(gru_before_backward_gates)(int64_t rows, int64_t u, const float *keep, const float *h, const float *drh,
                                       float *dxg, float *dh_prev);
void CPL_FN(lstm_forward)(int64_t rows, int64_t u, const float *xg, const float *hg, const float *c, float *keep,
                          float *c_next, float *h_next);
void CPL_FN(lstm_backward)(int64_t rows, int64_t u, const float *keep, const float *c, const float *c_next,
                           const float *dh, const float *dc, float *da, float *dc_prev);

void CPL_FN(softmax)(int64_t rows, int64_t n, float *x, int64_t ldx);
void CPL_FN(softmax_backward)(int64_t rows, int64_t n, const float *y, const float *dy, float *dx, int64_t ld);
void CPL_FN(additive_scores)(int64_t t, int64_t s, int64_t n, const float *q, const float *k, const float *v,
                             float *scratch, float *scores);
void CPL_FN(additive_scores_backward)(int64_t t, int64_t s, int64_t n, const float *q, const float *k,
                                      const float *v, const float *dscores, float *scratch, float *dq, float *dk,
                                      float *dv);
void CPL_FN(additive_exponentials)(int64_t n, const float *k, float *e);
void CPL_FN(additive_step)(const cpl_additive_step *a, float *weights, float *y);
void CPL_FN(additive_step_backward)(const cpl_additive_step *a, const float *weights, const float *dy,
                                    const float *dweights, float *dq);
void CPL_FN(attention_step)(const cpl_attention_step *a);
void CPL_FN(cross_entropy)(int64_t rows, int64_t n, float *logits, int64_t ld, const float *bias, const int32_t *target,
                           float scale, int gradient, float *loss, float *correct);
void CPL_FN(argmax)(int64_t rows, int64_t n, const float *x, int64_t ldx, int32_t *index);
void CPL_FN(argmax_sum_exp)(int64_t rows, int64_t n, const float *x, int64_t ldx, int32_t *index, float *sum);
void CPL_FN(layer_norm)(int64_t rows, int64_t n, const float *x, const float *gamma, const float *beta, float epsilon,
                        float *y, float *keep);
void CPL_FN(layer_norm_backward)(int64_t rows, int64_t n, const float *x, const float *gamma, const float *keep,
                                 const float *dy, float *dx, float *dgamma, float *dbeta);

float CPL_FN(read)(int64_t n, const float *x);

#endif
