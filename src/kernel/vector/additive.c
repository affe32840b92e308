/* additive.c: scores of additive attention and their gradients, without an exponential for each pair of steps.
 *
 * With r = 1 / (1 + e^2q · e^2k):  tanh(q + k) = 1 − 2r  and its slope is 4 (r − r²). The exponentials are taken once
 * for each row of q and of k; a pair costs a product, a reciprocal guess and one Newton step. Exponents are cut
 * at ±40, so that a product of two stays a normal number. That is exact enough while both |q| and |k| stay
 * below 20; rows that hold larger numbers (`wide`) take tanh of the sum instead.
 *
 * Sums of one row of a result run in the same order whatever rows are computed beside it. */
#include "kernel/vector/additive.h"
#include "kernel/vector/vector.h"

enum { ROWS = 4, COLUMNS = 4 }; /* of a tile: rows of q in the backward pass, rows of k in the forward pass */

typedef struct sheet {
    int64_t t, s, n, padded; /* padded: n in whole vectors of the widest kind */
    const float *q, *k;
    float *v;        /* [padded], zeros behind n */
    float *eq;       /* [t padded] e^2q */
    float *ek;       /* e^2k: rows [s padded], or for the backward pass panels [padded/LANES s LANES] */
    float *dk;       /* [s LANES] backward: of the panel at hand, Σ over t of dscores · (r − r²) */
    float *wide;     /* [t] 1: the row is computed by tanh */
} sheet;

/* e^2x of rows; element (row, panel) goes to row · row_step + panel · panel_step. Gives the largest |x| in row r to
 * wide[r], or that of all rows as the result. */
static float exponentials(int64_t rows, int64_t n, const float *x, float *e, int64_t row_step, int64_t panel_step,
                          float *wide)
{
    float all = 0.0f;

    for (int64_t r = 0; r < rows; r++) {
        vec most = splat(0.0f);
        float largest;

        for (int64_t i = 0, p = 0; i < n; i += LANES, p++) {
            vec value = load_part(x + r * n + i, width(n - i));

            store(e + r * row_step + p * panel_step, exponential_of(value));
            most = max_(absolute(value), most);
        }
        largest = max_lanes(most);
        all = largest > all ? largest : all;
        if (wide != NULL)
            wide[r] = largest;
    }
    return all;
}

static sheet prepare(int64_t t, int64_t s, int64_t n, const float *v, float *scratch)
{
    sheet a = {.t = t, .s = s, .n = n, .padded = (n + 15) / 16 * 16, .v = scratch};

    a.eq = a.v + a.padded;
    a.ek = a.eq + t * a.padded;
    a.dk = a.ek + s * a.padded;
    a.wide = a.dk + s * 16;
    memcpy(a.v, v, sizeof(float) * (size_t)n);
    memset(a.v + n, 0, sizeof(float) * (size_t)(a.padded - n));
    return a;
}

/* Rows of q whose numbers, or any of the keys', are too large for the exponentials. */
static void find_wide(sheet *a, float largest_key)
{
    for (int64_t i = 0; i < a->t; i++)
        a->wide[i] = largest_key > 20.0f || a->wide[i] > 20.0f ? 1.0f : 0.0f;
}

/* ---- forward ---- */

/* Σ v·tanh = Σ v − 2 Σ v·r for R × C pairs; `total` is Σ v. Eight sums hide the latency of the additions. */
INLINE void scores_tile(const int R, const int C, const sheet *a, int64_t i, int64_t j, float total, float *scores)
{
    vec sum[2][COLUMNS];

    for (int r = 0; r < R; r++) {
        for (int c = 0; c < C; c++)
            sum[r][c] = splat(0.0f);
    }
    for (int64_t p = 0; p < a->n; p += LANES) {
        vec v = load(a->v + p);

        for (int c = 0; c < C; c++) {
            vec ek = load(a->ek + (j + c) * a->padded + p);

            for (int r = 0; r < R; r++)
                sum[r][c] = fma_(v, share(load(a->eq + (i + r) * a->padded + p), ek), sum[r][c]);
        }
    }
    for (int r = 0; r < R; r++) {
        for (int c = 0; c < C; c++)
            scores[(i + r) * a->s + j + c] = total - 2.0f * sum_lanes(sum[r][c]);
    }
}

/* All rows of q against C rows of k, which stay in the first-level cache. */
INLINE void scores_columns(const int C, const sheet *a, int64_t j, float total, float *scores)
{
    int64_t i = 0;

    for (; i + 2 <= a->t; i += 2)
        scores_tile(2, C, a, i, j, total, scores);
    if (i < a->t)
        scores_tile(1, C, a, i, j, total, scores);
}

static void scores_wide(const sheet *a, int64_t i, float *scores)
{
    for (int64_t j = 0; j < a->s; j++) {
        vec sum = splat(0.0f);

        for (int64_t p = 0; p < a->n; p += LANES) {
            int w = width(a->n - p);
            vec f = vtanh(load_part(a->q + i * a->n + p, w) + load_part(a->k + j * a->n + p, w));

            sum = fma_(load(a->v + p), f, sum);
        }
        scores[i * a->s + j] = sum_lanes(sum);
    }
}

void CPL_FN(additive_scores)(int64_t t, int64_t s, int64_t n, const float *q, const float *k, const float *v,
                             float *scratch, float *scores)
{
    sheet a = prepare(t, s, n, v, scratch);
    vec sum = splat(0.0f);
    float total;
    int64_t j = 0;

    a.q = q;
    a.k = k;
    exponentials(t, n, q, a.eq, a.padded, LANES, a.wide);
    find_wide(&a, exponentials(s, n, k, a.ek, a.padded, LANES, NULL));
    for (int64_t p = 0; p < n; p += LANES)
        sum = sum + load(a.v + p);
    total = sum_lanes(sum);
    for (; j + COLUMNS <= s; j += COLUMNS)
        scores_columns(COLUMNS, &a, j, total, scores);
    for (; j < s; j++)
        scores_columns(1, &a, j, total, scores);
    for (int64_t i = 0; i < t; i++) {
        if (a.wide[i] != 0.0f)
            scores_wide(&a, i, scores);
    }
}

/* ---- backward ---- */

typedef struct panel {
    const sheet *a;
    int64_t at; /* first column */
    int w;      /* columns that exist */
    const float *d, *ek;
    float *dk, *dq;
    vec dv; /* Σ dscores · r */
} panel;

enum { WANT_Q = 1, WANT_K = 2 };

/* R rows of q from row i on against all keys, in one panel of LANES columns: a key's sum over t goes on in row order
 * in dk, the sums over s stand in registers. */
INLINE void panel_rows(const int R, const int exact, const int want, panel *x, int64_t i)
{
    const sheet *a = x->a;
    const float *ek_rows = x->ek, *d_rows = x->d + i * a->s;
    float *dk_rows = x->dk;
    const int64_t s = a->s;
    vec eq[ROWS], dq[ROWS], all = x->dv; /* here: stores to dk could change what stands in memory */

    for (int r = 0; r < R; r++) {
        eq[r] = load(a->eq + (i + r) * a->padded + x->at);
        dq[r] = splat(0.0f);
    }
    for (int64_t j = 0; j < s; j++) {
        vec ek = load(ek_rows + j * LANES);
        vec dk = want & WANT_K ? load(dk_rows + j * LANES) : splat(0.0f);
        vec dv = splat(0.0f);

        for (int r = 0; r < R; r++) {
            vec d = splat(d_rows[r * s + j]);
            vec part = exact ? share_exact(a->q + i * a->n + x->at, a->k + j * a->n + x->at, x->w) : share(eq[r], ek);
            vec slope = fma_(-part, part, part);

            if (want & WANT_K) {
                dk = fma_(d, slope, dk);
                dv = fma_(d, part, dv);
            }
            if (want & WANT_Q)
                dq[r] = fma_(d, slope, dq[r]);
        }
        if (want & WANT_K) {
            store(dk_rows + j * LANES, dk);
            all = all + dv;
        }
    }
    x->dv = all;
    for (int r = 0; want & WANT_Q && r < R; r++)
        store_part(x->dq + (i + r) * a->n + x->at, x->w, splat(4.0f) * load(a->v + x->at) * dq[r]);
}

INLINE void run_panel(const int want, panel *x)
{
    const sheet *a = x->a;
    int64_t i = 0;

    if (want & WANT_K)
        memset(x->dk, 0, sizeof(float) * (size_t)(a->s * LANES));
    while (i < a->t) {
        int64_t rows = 0;

        while (rows < ROWS && i + rows < a->t && a->wide[i + rows] == 0.0f)
            rows++;
        if (rows == ROWS) {
            panel_rows(ROWS, 0, want, x, i);
            i += ROWS;
        } else if (rows >= 2) {
            panel_rows(2, 0, want, x, i);
            i += 2;
        } else if (rows == 1) {
            panel_rows(1, 0, want, x, i++);
        } else {
            panel_rows(1, 1, want, x, i++);
        }
    }
}

static void run_all_gradients(panel *x)
{
    run_panel(WANT_Q | WANT_K, x);
}

static void run_query_gradient(panel *x)
{
    run_panel(WANT_Q, x);
}

static void run_key_gradients(panel *x)
{
    run_panel(WANT_K, x);
}

void CPL_FN(additive_scores_backward)(int64_t t, int64_t s, int64_t n, const float *q, const float *k, const float *v,
                                      const float *dscores, float *scratch, float *dq, float *dk, float *dv)
{
    sheet a = prepare(t, s, n, v, scratch);
    void (*run)(panel *) = dk == NULL ? run_query_gradient : dq == NULL ? run_key_gradients : run_all_gradients;
    float total = 0.0f;

    a.q = q;
    a.k = k;
    exponentials(t, n, q, a.eq, a.padded, LANES, a.wide);
    find_wide(&a, exponentials(s, n, k, a.ek, LANES, s * LANES, NULL));
    for (int64_t i = 0; i < t * s; i++)
        total += dscores[i];
    for (int64_t at = 0; at < n; at += LANES) {
        panel x = {.a = &a, .at = at, .w = width(n - at), .d = dscores, .ek = a.ek + at * s, .dk = a.dk, .dq = dq,
                   .dv = splat(0.0f)};
        vec four_v = splat(4.0f) * load(a.v + at);

        run(&x);
        for (int64_t j = 0; dk != NULL && j < s; j++)
            store_part(dk + j * n + at, x.w, four_v * load(x.dk + j * LANES));
        if (dk != NULL)
            store_part(dv + at, x.w, splat(total) - splat(2.0f) * x.dv);
    }
}
