/* kernel.h: loops on plain pointers, one table of functions per instruction set.
 *
 * A kernel is single-threaded, allocates nothing, and knows no tensor, no graph and no thread. Matrices are
 * row-major; `ld` is the distance between rows in elements. Outputs never overlap inputs unless a comment
 * says "may be the same". The reference table (ref/) is the readable judge of the others; the library is
 * also built with CPL_DOUBLE, where `real` is double and only the reference table exists.
 *
 * Rule for every table: the bits of one row of a result depend on that row's inputs and on n and k alone, never
 * on how many rows a call has or where the row stands in the call (a test proves it on every shape class), so
 * rows may be dealt to threads freely. */
#ifndef CPL_KERNEL_KERNEL_H
#define CPL_KERNEL_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include "couplet.h"

#ifdef CPL_DOUBLE
typedef double real;
#else
typedef float real;
#endif

typedef enum cpl_activation { CPL_LINEAR, CPL_TANH, CPL_SIGMOID, CPL_RELU } cpl_activation;

/* One product C[m n] = op(A)[m k] · op(B)[k n] + beta · C, beta 0 or 1 (0: C is not read).
 * transpose_a: A is stored [k m]; transpose_b: B is stored [n k]. */
typedef struct cpl_gemm {
    int transpose_a, transpose_b;
    int64_t m, n, k;
    const real *a;
    int64_t lda;
    const real *b;
    int64_t ldb;
    real beta;
    real *c;
    int64_t ldc;
} cpl_gemm;

/* ---- packed weights ---- */

typedef enum cpl_weight_type { CPL_WEIGHT_FLOAT32, CPL_WEIGHT_BFLOAT16, CPL_WEIGHT_INT8 } cpl_weight_type;

enum { CPL_PACK = 16 }; /* columns that stand together */

/* A right operand B[depth columns]; packed.h says how it stands, makes it and reads it. */
typedef struct cpl_packed {
    cpl_weight_type type;
    int64_t columns, depth;
    uint32_t *words;
    float *scale;         /* INT8, of each column: a number is its byte · scale */
    int32_t *sum;         /* INT8, of each column: the sum of its bytes */
} cpl_packed;

/* C[m n] = A[m depth] · columns from … from+n−1 of B + beta · C, beta 0 or 1 (0: C is not read).
 *
 * float32: the bits that gemm gives with the same numbers.
 * bfloat16: A is not rounded, sums are float, in the order of depth.
 * int8: each row of A becomes bytes too: with L its largest |a|, q = a · (127 / L) rounded to the nearest, of two the
 * even one. C = (Σ q · byte) · ((L / 127) · scale) + beta · C, each operation in float but for the sum, which is exact
 * in 32 bits: all tables give the same bits. A row with a NaN or an infinity gives NaNs; one whose L is below 1e-30
 * counts as zeros. */
typedef struct cpl_gemm_packed {
    int64_t m;
    const real *a;
    int64_t lda;
    const cpl_packed *b;
    int64_t from, n;
    real beta;
    real *c;
    int64_t ldc;
} cpl_gemm_packed;

/* One step of additive attention: a query against the keys of one sentence where they stand among packed rows, key j
 * at k + at[j]·n, row j of the memory at m + at[j]·u. For loops, where a step reads all rows for a single query. */
typedef struct cpl_additive_step {
    int64_t s, n, u; /* s at least 1 */
    const int32_t *at;
    const real *q, *k, *m;
    const real *e; /* additive_exponentials of all keys, at the same places; NULL: taken on the way */
    const real *v;
    const real *mask; /* [s]: what each weight is multiplied with before it mixes the memory; NULL: ones */
    real *scratch; /* cpl_additive_scratch(1, s, n) reals, 64-byte aligned */
} cpl_additive_step;

/* One step of scaled dot-product attention: a query against the keys and values of one sentence where they stand, key j
 * at k + at[j]·heads·width, its value at v + at[j]·heads·width; the heads' parts of a row side by side. */
typedef struct cpl_attention_step {
    int64_t s, heads, width; /* s at least 1; width: of a head */
    const int32_t *at;
    const real *q, *k, *v;
    real scale;
    real *weights; /* of head h: [s] at weights + h·ld; ld may be 0 when nobody reads them */
    int64_t ld;
    real *y;       /* [heads·width] */
} cpl_attention_step;

typedef struct cpl_kernels {
    const char *name; /* "reference", "generic", "avx2", "avx512", "avx512bf16" */

    /* scratch: gemm_scratch bytes of the calling thread, 64-byte aligned (NULL when 0). */
    size_t gemm_scratch;
    void (*gemm)(const cpl_gemm *g, void *scratch);
    /* The same with A and B rounded to bfloat16 (to the nearest, of two to the even one); sums and C are not. */
    void (*gemm_bf16)(const cpl_gemm *g, void *scratch);
    int multiplies_bf16; /* 0: gemm_bf16 rounds, then multiplies as gemm does: no faster */
    /* Products with packed weights; scratch as for gemm. */
    void (*gemm_packed)(const cpl_gemm_packed *g, void *scratch);

    /* y[i] += a · x[i];  y[i] = a · x[i];  y = x1 + x2;  y = x1 · x2 (y may be x1 or x2);  Σ x1·x2 */
    void (*axpy)(int64_t n, real a, const real *x, real *y);
    void (*scale)(int64_t n, real a, const real *x, real *y); /* y may be x */
    void (*add)(int64_t n, const real *x1, const real *x2, real *y);
    void (*multiply)(int64_t n, const real *x1, const real *x2, real *y);
    real (*dot)(int64_t n, const real *x1, const real *x2);

    /* y[rows n] = f(x[rows n] + bias[n]); bias may be NULL; y may be x; contiguous rows. */
    void (*bias_activation)(int64_t rows, int64_t n, const real *x, const real *bias, cpl_activation f, real *y);
    /* dx = dy · f'(.), written through y = f(x): tanh 1−y², sigmoid y(1−y), relu y>0. dx may be dy. */
    void (*activation_backward)(int64_t n, cpl_activation f, const real *y, const real *dy, real *dx);
    /* sum[n] += Σ rows of x[rows n] (ldx), rows in order. */
    void (*add_rows)(int64_t rows, int64_t n, const real *x, int64_t ldx, real *sum);

    /* GRU gates of one step, `rows` sentences, order z r h. Input xg[rows 3u] = x·W + b0, hg[rows 3u] = h·U (+ b1).
     * reset after:  z = σ(xz+hz); r = σ(xr+hr); n = tanh(xh + r·hh); h' = z·h + (1−z)·n
     * keep[rows 4u] receives z, r, n, hh. h_next may be h. */
    void (*gru_forward)(int64_t rows, int64_t u, const real *xg, const real *hg, const real *h, real *keep,
                        real *h_next);
    /* dh[rows u]: gradient of h'. Gives dxg[rows 3u] = (dz, dr, dn) before the activations,
     * dhg[rows 3u] = (dz, dr, dn·r), and dh_prev[rows u] = dh·z (the recurrent product adds to it later; may be dh). */
    void (*gru_backward)(int64_t rows, int64_t u, const real *keep, const real *h, const real *dh, real *dxg, real *dhg,
                         real *dh_prev);

    /* GRU, reset before, in two halves. First: zr[rows 2u] = σ(xg[:, :2u] + hg2[rows 2u]) into keep's first 2u, and
     * rh[rows u] = r·h (the input of the second product). keep[rows 3u] = z, r, n. */
    void (*gru_before_gates)(int64_t rows, int64_t u, const real *xg, const real *hg2, const real *h, real *keep,
                             real *rh);
    /* Second: n = tanh(xh + hn[rows u]); h' = z·h + (1−z)·n. */
    void (*gru_before_state)(int64_t rows, int64_t u, const real *xg, const real *hn, const real *h, real *keep,
                             real *h_next);
    /* Backward, first half: from dh gives dxg's dn block (pre-activation) and dz block, and dh_prev = dh·z.
     * Then the caller computes drh[rows u] = dn · U_hᵀ. Second half: dr block of dxg, and dh_prev += drh·r. */
    void (*gru_before_backward_state)(int64_t rows, int64_t u, const real *keep, const real *h, const real *dh,
                                      real *dxg, real *dh_prev);
    void (*gru_before_backward_gates)(int64_t rows, int64_t u, const real *keep, const real *h, const real *drh,
                                      real *dxg, real *dh_prev);

    /* LSTM gates of one step, order i f c o; xg[rows 4u] = x·W + b, hg[rows 4u] = h·U.
     * a = xg + hg; c' = σ(f)·c + σ(i)·tanh(c̃); h' = σ(o)·tanh(c'). keep[rows 4u] = i, f, tanh c̃, o after their
     * activations. c_next may be c. */
    void (*lstm_forward)(int64_t rows, int64_t u, const real *xg, const real *hg, const real *c, real *keep,
                         real *c_next, real *h_next);
    /* dh, dc[rows u]: gradients of h', c'. Gives da[rows 4u] before the activations and dc_prev (may be dc).
     * c: the previous cell, c_next: the new one (its tanh is recomputed). */
    void (*lstm_backward)(int64_t rows, int64_t u, const real *keep, const real *c, const real *c_next, const real *dh,
                          const real *dc, real *da, real *dc_prev);

    /* Softmax of each row of x[rows n] (ldx) in place; n 0 does nothing. A row of −∞ alone becomes zeros, not NaN;
     * a NaN makes its whole row NaN. */
    void (*softmax)(int64_t rows, int64_t n, real *x, int64_t ldx);
    /* dx = y · (dy − Σ y·dy), each row; dx may be dy. */
    void (*softmax_backward)(int64_t rows, int64_t n, const real *y, const real *dy, real *dx, int64_t ld);

    /* Scores of additive attention, one sentence: scores[t s] = Σ over n of v[n] · tanh(q[t n] + k[s n]); t, s ≥ 0.
     * scratch: cpl_additive_scratch(t, s, n) reals, 64-byte aligned. tanh within 1e-6 absolute. */
    void (*additive_scores)(int64_t t, int64_t s, int64_t n, const real *q, const real *k, const real *v, real *scratch,
                            real *scores);
    /* From dscores[t s] the gradients dq[t n], dk[s n], dv[n], all overwritten; tanh is computed again. Not
     * wanted: dq NULL, or dk and dv NULL. */
    void (*additive_scores_backward)(int64_t t, int64_t s, int64_t n, const real *q, const real *k, const real *v,
                                     const real *dscores, real *scratch, real *dq, real *dk, real *dv);

    /* e[i] = e^2k[i], a NaN where |k[i]| is above 20: what the keys of a source have in common for all queries. */
    void (*additive_exponentials)(int64_t n, const real *k, real *e);
    /* One step: weights[s] = softmax of the scores, y[u] = (weights ⊙ mask) · rows of m. Backward, from the weights,
     * dy[u] and dweights[s] (these two may be NULL): the query's gradient dq[n] alone. */
    void (*additive_step)(const cpl_additive_step *a, real *weights, real *y);
    void (*additive_step_backward)(const cpl_additive_step *a, const real *weights, const real *dy,
                                   const real *dweights, real *dq);

    /* weights = softmax of scale · q·kᵀ, y = weights · v, each head: the bits of gemm, scale, softmax and gemm on
     * gathered rows. NULL in a table whose gemm rounds to bfloat16. */
    void (*attention_step)(const cpl_attention_step *a);

    /* Masked cross-entropy of rows of logits[rows n] (ld): row r's label target[r] (0 … n−1), weight 1, or 0 where the
     * label is 0 (padding: no loss, no gradient). bias[n] (may be NULL) is added to the logits first.
     * loss[r] = (logΣexp − logit[target]) or 0; correct[r] = 1 when the first largest logit is the target, else 0.
     * gradient != 0: logits are replaced by scale · (softmax − onehot), rows of label 0 by zeros;
     * gradient == 0: logits are left with the bias added. */
    void (*cross_entropy)(int64_t rows, int64_t n, real *logits, int64_t ld, const real *bias, const int32_t *target,
                          real scale, int gradient, real *loss, real *correct);

    /* The first largest entry of each row → index[rows]; a NaN in the row, or n 0, gives −1. */
    void (*argmax)(int64_t rows, int64_t n, const real *x, int64_t ldx, int32_t *index);
    /* The same, and Σ exp(x − that entry) → sum[rows]: log softmax(x)[i] is x[i] − x[index] − log(sum), without a write
     * to x. A row of −∞ alone gives 0 and the sum 0, as the weights that softmax gives it; a NaN −1 and NaN; an entry
     * of ∞ its index and NaN; n 0 −1 and 0. */
    void (*argmax_sum_exp)(int64_t rows, int64_t n, const real *x, int64_t ldx, int32_t *index, real *sum);

    /* Layer normalisation over the last axis, biased variance: y = (x − mean)/√(var + epsilon) · gamma + beta.
     * keep[rows 2] = mean, 1/√(var+epsilon). */
    void (*layer_norm)(int64_t rows, int64_t n, const real *x, const real *gamma, const real *beta, real epsilon,
                       real *y, real *keep);
    /* dx (may be dy); dgamma, dbeta[n] are added to. */
    void (*layer_norm_backward)(int64_t rows, int64_t n, const real *x, const real *gamma, const real *keep,
                                const real *dy, real *dx, real *dgamma, real *dbeta);

    /* Adam, one tensor: m = b1·m + (1−b1)·g; v = b2·v + (1−b2)·g²; w −= rate·m/(√v + epsilon) + rate_decay·w.
     * rate = lr·√(1−b2ᵗ)/(1−b1ᵗ) is the caller's; g is multiplied by g_scale first; rate_decay: lr·weight_decay,
     * 0 for adam. */
    void (*adam)(int64_t n, const real *g, real g_scale, real rate, real beta_1, real beta_2, real epsilon,
                 real rate_decay, real *w, real *m, real *v);

    /* For measuring: multiply-adds between registers and nothing else, `rounds` times as many as it takes to keep the
     * processor busy; bf16: those of gemm_bf16. Returns how many operations that were, a multiply-add counted as two.
     * *sink receives a number that depends on all of them. */
    double (*multiply_adds)(int64_t rounds, int bf16, real *sink);

    /* For measuring what reading costs: Σ x[n]. */
    real (*read)(int64_t n, const real *x);
} cpl_kernels;

/* Reals of scratch that the kernels of additive attention need. */
static inline int64_t cpl_additive_scratch(int64_t t, int64_t s, int64_t n)
{
    return (t + s + 5) * ((n + 15) / 16 * 16) + 16 * s + t;
}

/* The table with gemm_bf16 in the place of gemm: whoever computes with it has products in bfloat16. */
static inline cpl_kernels cpl_kernels_in_bf16(const cpl_kernels *table)
{
    cpl_kernels t = *table;
    t.gemm = t.gemm_bf16;
    t.attention_step = NULL;
    return t;
}

/* The table chosen for this processor; COUPLET_ISA=ref|generic|avx2|avx512|avx512bf16 forces one. A name that is
 * unknown, or that the processor lacks, is an error that lists what is there. */
cpl_status cpl_kernels_pick(const cpl_kernels **table, cpl_error *err);
/* One table by name, or NULL when unknown or not for this processor. */
const cpl_kernels *cpl_kernels_named(const char *name);
/* The tables that this processor can run, fastest first. Returns their number (at most `most`). */
int cpl_kernels_all(const cpl_kernels **tables, int most);

#endif
