/* additive_step.c: additive attention of one query: the steps of a loop.
 *
 * A step reads every key and every row of the memory once, so what counts is how they come from memory: four rows at
 * a time where they stand, each row one run of addresses, the next four asked for ahead. Exponentials of the keys are
 * made once for all steps (additive_exponentials). A query or a key beyond 20 makes them NaN, hence the score too:
 * such scores are computed again from q and k themselves. */
#include "kernel/vector/additive.h"
#include "kernel/vector/vector.h"

enum { BLOCK = 4 /* rows at a time */, LINE = 16 /* floats of a cache line */ };

void CPL_FN(additive_exponentials)(int64_t n, const float *k, float *e)
{
    for (int64_t i = 0; i < n; i += LANES) {
        int w = width(n - i);
        vec x = load_part(k + i, w);
        ivec beyond = (ivec)(absolute(x) > splat(20.0f));

        store_part(e + i, w, (vec)((ivec)exponential_of(x) | beyond));
    }
}

typedef struct query {
    const cpl_additive_step *a;
    float *v, *eq, *rows; /* v and e^2q padded with zeros; e^2k of a block when nobody made them */
    int64_t padded;
    float total;          /* Σ v */
} query;

static query query_of(const cpl_additive_step *a)
{
    query x = {.a = a, .v = a->scratch, .padded = (a->n + 15) / 16 * 16};
    vec sum = splat(0.0f);

    x.eq = x.v + x.padded;
    x.rows = x.eq + x.padded;
    memset(x.v, 0, sizeof(float) * 2 * (size_t)x.padded);
    memcpy(x.v, a->v, sizeof(float) * (size_t)a->n);
    CPL_FN(additive_exponentials)(a->n, a->q, x.eq);
    for (int64_t p = 0; p < a->n; p += LANES)
        sum = sum + load(x.v + p);
    x.total = sum_lanes(sum);
    return x;
}

/* Room for a number of each key. */
static float *behind_rows(const query *x)
{
    return x->rows + BLOCK * x->padded;
}

/* Rows j … j + C − 1 of a sentence, and the ones after them, asked for while these are worked on. */
typedef struct block {
    const float *row[BLOCK], *ahead[BLOCK];
} block;

INLINE block block_of(const int C, const cpl_additive_step *a, const float *x, int64_t n, int64_t j)
{
    block b;

    for (int c = 0; c < C; c++) {
        b.row[c] = x + a->at[j + c] * n;
        b.ahead[c] = x + a->at[j + c + C < a->s ? j + c + C : a->s - 1] * n;
    }
    return b;
}

INLINE void ask_ahead(const int C, const block *b, int64_t p)
{
    for (int c = 0; p % LINE == 0 && c < C; c++)
        __builtin_prefetch(b->ahead[c] + p, 0, 2);
}

/* The exponentials of rows j … of the keys. */
INLINE block keys_of(const int C, const query *x, int64_t j)
{
    const cpl_additive_step *a = x->a;
    block b = block_of(C, a, a->e != NULL ? a->e : a->k, a->n, j);

    for (int c = 0; a->e == NULL && c < C; c++) {
        float *e = x->rows + c * x->padded;

        CPL_FN(additive_exponentials)(a->n, b.row[c], e);
        b.row[c] = e;
    }
    return b;
}

/* ---- forward ---- */

/* Scores Σ v − 2 Σ v·r of C keys. */
INLINE void scores_block(const int C, const query *x, int64_t j, float *scores)
{
    block b = keys_of(C, x, j);
    int64_t n = x->a->n, p = 0;
    vec sum[BLOCK];

    for (int c = 0; c < C; c++)
        sum[c] = splat(0.0f);
    for (; p + LANES <= n; p += LANES) {
        vec v = load(x->v + p), eq = load(x->eq + p);

        ask_ahead(C, &b, p);
        for (int c = 0; c < C; c++)
            sum[c] = fma_(v, share(eq, load(b.row[c] + p)), sum[c]);
    }
    for (int c = 0; p < n && c < C; c++)
        sum[c] = fma_(load(x->v + p), share(load(x->eq + p), load_part(b.row[c] + p, width(n - p))), sum[c]);
    for (int c = 0; c < C; c++)
        scores[j + c] = x->total - 2.0f * sum_lanes(sum[c]);
}

static float score_exact(const query *x, int64_t j)
{
    const cpl_additive_step *a = x->a;
    vec sum = splat(0.0f);

    for (int64_t p = 0; p < a->n; p += LANES) {
        int w = width(a->n - p);

        sum = fma_(load(x->v + p), vtanh(load_part(a->q + p, w) + load_part(a->k + a->at[j] * a->n + p, w)), sum);
    }
    return sum_lanes(sum);
}

/* y += Σ over C rows of w · row, in w columns from p on. */
INLINE void weighted_part(const int C, const float *weight, const block *b, int64_t p, int w, float *y)
{
    vec sum = load_part(y + p, w);

    for (int c = 0; c < C; c++)
        sum = fma_(splat(weight[c]), load_part(b->row[c] + p, w), sum);
    store_part(y + p, w, sum);
}

INLINE void weighted_block(const int C, const cpl_additive_step *a, int64_t j, const float *weight, float *y)
{
    block b = block_of(C, a, a->m, a->u, j);
    int64_t p = 0;

    for (; p + LANES <= a->u; p += LANES) {
        ask_ahead(C, &b, p);
        weighted_part(C, weight, &b, p, LANES, y);
    }
    if (p < a->u)
        weighted_part(C, weight, &b, p, width(a->u - p), y);
}

void CPL_FN(additive_step)(const cpl_additive_step *a, float *weights, float *y)
{
    query x = query_of(a);
    const float *mixing = weights;
    int64_t j = 0;

    for (; j + BLOCK <= a->s; j += BLOCK)
        scores_block(BLOCK, &x, j, weights);
    for (; j < a->s; j++)
        scores_block(1, &x, j, weights);
    for (j = 0; j < a->s; j++) {
        if (weights[j] != weights[j])
            weights[j] = score_exact(&x, j);
    }
    CPL_FN(softmax)(1, a->s, weights, a->s);
    if (a->mask != NULL) {
        CPL_FN(multiply)(a->s, weights, a->mask, behind_rows(&x));
        mixing = behind_rows(&x);
    }
    memset(y, 0, sizeof(float) * (size_t)a->u);
    for (j = 0; j + BLOCK <= a->s; j += BLOCK)
        weighted_block(BLOCK, a, j, mixing + j, y);
    for (; j < a->s; j++)
        weighted_block(1, a, j, mixing + j, y);
}

/* ---- the query's gradient ---- */

/* Products of dy with C rows of the memory. */
INLINE void products_block(const int C, const cpl_additive_step *a, int64_t j, const float *dy, float *products)
{
    block b = block_of(C, a, a->m, a->u, j);
    int64_t u = a->u, p = 0;
    vec sum[BLOCK];

    for (int c = 0; c < C; c++)
        sum[c] = splat(0.0f);
    for (; p + LANES <= u; p += LANES) {
        ask_ahead(C, &b, p);
        for (int c = 0; c < C; c++)
            sum[c] = fma_(load(dy + p), load(b.row[c] + p), sum[c]);
    }
    for (int c = 0; p < u && c < C; c++)
        sum[c] = fma_(load_part(dy + p, width(u - p)), load_part(b.row[c] + p, width(u - p)), sum[c]);
    for (int c = 0; c < C; c++)
        products[c] = sum_lanes(sum[c]);
}

/* Gradients of the scores. */
static void scores_backward(const cpl_additive_step *a, const float *weights, const float *dy, const float *dweights,
                            float *d)
{
    int64_t j = 0;

    memset(d, 0, sizeof(float) * (size_t)a->s);
    for (; dy != NULL && j + BLOCK <= a->s; j += BLOCK)
        products_block(BLOCK, a, j, dy, d + j);
    for (; dy != NULL && j < a->s; j++)
        products_block(1, a, j, dy, d + j);
    if (a->mask != NULL)
        CPL_FN(multiply)(a->s, d, a->mask, d);
    if (dweights != NULL)
        CPL_FN(add)(a->s, d, dweights, d);
    CPL_FN(softmax_backward)(1, a->s, weights, d, d, a->s);
}

/* dq += Σ over C keys of d · (r − r²), in w columns from p on. */
INLINE void slopes_part(const int C, const query *x, const block *b, const float *d, int64_t p, int w, float *dq)
{
    vec sum = load_part(dq + p, w), eq = load(x->eq + p);

    for (int c = 0; c < C; c++) {
        vec part = share(eq, load_part(b->row[c] + p, w));

        sum = fma_(splat(d[c]), fma_(-part, part, part), sum);
    }
    store_part(dq + p, w, sum);
}

INLINE void slopes_block(const int C, const query *x, int64_t j, const float *d, float *dq)
{
    block b = keys_of(C, x, j);
    int64_t n = x->a->n, p = 0;

    for (; p + LANES <= n; p += LANES) {
        ask_ahead(C, &b, p);
        slopes_part(C, x, &b, d, p, LANES, dq);
    }
    if (p < n)
        slopes_part(C, x, &b, d, p, width(n - p), dq);
}

/* One vector of dq again. */
static vec slopes_exact(const query *x, int64_t p, const float *d)
{
    const cpl_additive_step *a = x->a;
    vec sum = splat(0.0f);

    for (int64_t j = 0; j < a->s; j++) {
        vec part = share_exact(a->q + p, a->k + a->at[j] * a->n + p, width(a->n - p));

        sum = fma_(splat(d[j]), fma_(-part, part, part), sum);
    }
    return sum;
}

void CPL_FN(additive_step_backward)(const cpl_additive_step *a, const float *weights, const float *dy,
                                    const float *dweights, float *dq)
{
    query x = query_of(a);
    float *d = behind_rows(&x);
    int64_t j = 0;

    scores_backward(a, weights, dy, dweights, d);
    memset(dq, 0, sizeof(float) * (size_t)a->n);
    for (; j + BLOCK <= a->s; j += BLOCK)
        slopes_block(BLOCK, &x, j, d + j, dq);
    for (; j < a->s; j++)
        slopes_block(1, &x, j, d + j, dq);
    for (int64_t p = 0; p < a->n; p += LANES) {
        int w = width(a->n - p);
        vec sum = load_part(dq + p, w);

        if (sum_lanes(sum - sum) != 0.0f)
            sum = slopes_exact(&x, p, d);
        store_part(dq + p, w, splat(4.0f) * load(x.v + p) * sum);
    }
}
