/* reference.h: the functions of the reference table, one file per topic; see kernel.h for what each does.
 *
 * These are the judges: the plainest loop that says what is meant, every sum and every function of libm
 * in double, rounded to `real` once at the end. Nobody tunes them. */
#ifndef CPL_KERNEL_REF_REFERENCE_H
#define CPL_KERNEL_REF_REFERENCE_H

#include "kernel/kernel.h"

double cpl_ref_sigmoid(double x);

void cpl_ref_gemm(const cpl_gemm *g, void *scratch);
void cpl_ref_gemm_bf16(const cpl_gemm *g, void *scratch);
void cpl_ref_gemm_packed(const cpl_gemm_packed *g, void *scratch);
double cpl_ref_round_bf16(double x); /* the nearest bfloat16, of two the even one */

void cpl_ref_axpy(int64_t n, real a, const real *x, real *y);
void cpl_ref_scale(int64_t n, real a, const real *x, real *y);
void cpl_ref_add(int64_t n, const real *x1, const real *x2, real *y);
void cpl_ref_multiply(int64_t n, const real *x1, const real *x2, real *y);
real cpl_ref_dot(int64_t n, const real *x1, const real *x2);
void cpl_ref_bias_activation(int64_t rows, int64_t n, const real *x, const real *bias, cpl_activation f, real *y);
void cpl_ref_activation_backward(int64_t n, cpl_activation f, const real *y, const real *dy, real *dx);
void cpl_ref_add_rows(int64_t rows, int64_t n, const real *x, int64_t ldx, real *sum);
void cpl_ref_adam(int64_t n, const real *g, real g_scale, real rate, real beta_1, real beta_2, real epsilon,
                  real rate_decay, real *w, real *m, real *v);
double cpl_ref_multiply_adds(int64_t rounds, int bf16, real *sink);

void cpl_ref_gru_forward(int64_t rows, int64_t u, const real *xg, const real *hg, const real *h, real *keep,
                         real *h_next);
void cpl_ref_gru_backward(int64_t rows, int64_t u, const real *keep, const real *h, const real *dh, real *dxg,
                          real *dhg, real *dh_prev);
void cpl_ref_gru_before_gates(int64_t rows, int64_t u, const real *xg, const real *hg2, const real *h, real *keep,
                              real *rh);
void cpl_ref_gru_before_state(int64_t rows, int64_t u, const real *xg, const real *hn, const real *h, real *keep,
                              real *h_next);
void cpl_ref_gru_before_backward_state(int64_t rows, int64_t u, const real *keep, const real *h, const real *dh,
                                       real *dxg, real *dh_prev);
void cpl_ref_gru_before_backward_gates(int64_t rows, int64_t u, const real *keep, const real *h, const real *drh,
                                       real *dxg, real *dh_prev);
void cpl_ref_lstm_forward(int64_t rows, int64_t u, const real *xg, const real *hg, const real *c, real *keep,
                          real *c_next, real *h_next);
void cpl_ref_lstm_backward(int64_t rows, int64_t u, const real *keep, const real *c, const real *c_next, const real *dh,
                           const real *dc, real *da, real *dc_prev);

void cpl_ref_softmax(int64_t rows, int64_t n, real *x, int64_t ldx);
void cpl_ref_softmax_backward(int64_t rows, int64_t n, const real *y, const real *dy, real *dx, int64_t ld);
void cpl_ref_additive_scores(int64_t t, int64_t s, int64_t n, const real *q, const real *k, const real *v,
                             real *scratch, real *scores);
void cpl_ref_additive_scores_backward(int64_t t, int64_t s, int64_t n, const real *q, const real *k,
                                      const real *v, const real *dscores, real *scratch, real *dq, real *dk,
                                      real *dv);
void cpl_ref_additive_exponentials(int64_t n, const real *k, real *e);
void cpl_ref_additive_step(const cpl_additive_step *a, real *weights, real *y);
void cpl_ref_additive_step_backward(const cpl_additive_step *a, const real *weights, const real *dy,
                                    const real *dweights, real *dq);
void cpl_ref_attention_step(const cpl_attention_step *a);
void cpl_ref_cross_entropy(int64_t rows, int64_t n, real *logits, int64_t ld, const real *bias, const int32_t *target,
                           real scale, int gradient, real *loss, real *correct);
void cpl_ref_argmax(int64_t rows, int64_t n, const real *x, int64_t ldx, int32_t *index);
void cpl_ref_argmax_sum_exp(int64_t rows, int64_t n, const real *x, int64_t ldx, int32_t *index, real *sum);
void cpl_ref_layer_norm(int64_t rows, int64_t n, const real *x, const real *gamma, const real *beta, real epsilon,
                        real *y, real *keep);
void cpl_ref_layer_norm_backward(int64_t rows, int64_t n, const real *x, const real *gamma, const real *keep,
                                 const real *dy, real *dx, real *dgamma, real *dbeta);

real cpl_ref_read(int64_t n, const real *x);

#endif
