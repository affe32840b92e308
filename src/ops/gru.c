/* gru.c: gated recurrent unit, reset after the recurrent product (Keras' default). Gate order z, r, n.
 *
 *     xg = x·W + b0        hg = h·U + b1
 *     z = σ(xg_z + hg_z)   r = σ(xg_r + hg_r)   n = tanh(xg_n + r·hg_n)   h' = z·h + (1 − z)·n
 *
 * Backward, from dh = gradient of h' (output and next step together):
 *     dn = dh·(1 − z)·(1 − n²)   dz = dh·(h − n)·z(1 − z)   dr = dn·hg_n·r(1 − r)
 *     dxg = (dz, dr, dn)   dhg = (dz, dr, dn·r)   dh_prev = dh·z + dhg·Uᵀ
 *     dx = dxg·Wᵀ   dW = xᵀ·dxg   dU = h_prevᵀ·dhg   db = Σ dxg, Σ dhg
 *
 * With recurrent dropout h·m stands for h in the product h·U alone: one mask for the three gates, none in z·h.
 *
 * x·W is one product for all steps; h·U is a product per step and part of the batch. What can wait for the end
 * of the backward walk (dx, dW, dU, db) is one product each. */
#include "graph/attributes.h"
#include "ops/recurrent.h"

enum { IDS = 5 };

typedef struct gru_space {
    real *xg, *rows, *hg, *state, *keep;         /* forward: [distinct 3u], 2 × [batch 3u], [batch u], [batch 4u] */
    real *kernel;                                /* [u 3u], packed */
    real *dxg, *dhg, *previous, *dh, *turned;    /* backward: [rows 3u] twice, [rows u], [batch u], [3u u] */
} gru_space;

static gru_space forward_space(cpl_carve *c, cpl_recurrent_sizes n, int differentiated)
{
    gru_space s = {0};
    s.xg = cpl_carve_reals(c, n.distinct * 3 * n.u);
    s.rows = n.entries ? cpl_carve_reals(c, n.batch * 3 * n.u) : NULL;
    s.hg = cpl_carve_reals(c, n.batch * 3 * n.u);
    s.state = cpl_carve_reals(c, n.batch * n.u);
    s.keep = differentiated ? NULL : cpl_carve_reals(c, n.batch * 4 * n.u);
    s.kernel = differentiated ? cpl_carve_reals(c, cpl_recurrent_pack_reals(&n)) : NULL;
    return s;
}

static gru_space backward_space(cpl_carve *c, cpl_recurrent_sizes n)
{
    gru_space s = {0};
    s.dxg = cpl_carve_reals(c, n.rows * 3 * n.u);
    s.dhg = cpl_carve_reals(c, n.rows * 3 * n.u);
    s.previous = cpl_carve_reals(c, n.rows * n.u);
    s.dh = cpl_carve_reals(c, n.batch * n.u);
    s.turned = cpl_carve_reals(c, cpl_recurrent_turn_reals(n.u, 3 * n.u));
    return s;
}

static size_t workspace(const cpl_size_context *s)
{
    cpl_carve c = {0};
    cpl_recurrent_sizes n = cpl_recurrent_call_sizes(s, IDS);
    cpl_recurrent_carve(&c, &n);
    if (s->backward)
        backward_space(&c, n);
    else
        forward_space(&c, n, s->differentiated);
    return c.used;
}

typedef struct gru_walk {
    cpl_recurrent w;
    gru_space s;
    cpl_recurrent_kernel turned;
} gru_walk;

/* One step of a part: n rows from packed row `row`, states from position lo. */
static void step_forward(const gru_walk *a, int64_t row, int64_t lo, int64_t n, int thread)
{
    const cpl_run_context *r = a->w.r;
    const real *b = r->in[3].data;
    int64_t u = a->w.u;
    real *xg = cpl_recurrent_projected(&a->w, a->s.xg, row, lo, n, a->s.rows);
    real *hg = a->s.hg + lo * 3 * u, *state = a->s.state + lo * u;
    real *keep = r->out[2].data ? r->out[2].data + row * 4 * u : a->s.keep + lo * 4 * u;

    if (b) {
        r->kernels->bias_activation(n, 3 * u, xg, b, CPL_LINEAR, xg);
        for (int64_t i = 0; i < n; i++)
            memcpy(hg + i * 3 * u, b + 3 * u, (size_t)(3 * u) * sizeof *hg);
    }
    cpl_recurrent_forward(&a->w, &(cpl_gemm){.m = n, .n = 3 * u, .k = u,
                                             .a = cpl_recurrent_masked(&a->w, lo, n, state), .lda = u, .ldb = 3 * u,
                                             .beta = b ? 1 : 0, .c = hg, .ldc = 3 * u}, 0, thread);
    r->kernels->gru_forward(n, u, xg, hg, state, keep, state);
    if (r->out[0].data)
        memcpy(r->out[0].data + row * u, state, (size_t)(n * u) * sizeof *state);
}

static void part_forward(void *arguments, int64_t part, int thread)
{
    const gru_walk *a = arguments;
    const cpl_recurrent *w = &a->w;
    int64_t lo = w->cut[part];

    cpl_recurrent_set(w, part, w->r->in[4].data, a->s.state);
    for (int64_t i = 0; i < w->g->longest; i++) {
        int64_t k = cpl_recurrent_time(w, i), n = cpl_recurrent_alive(w, part, k);
        if (n)
            step_forward(a, w->g->offset[k] + lo, lo, n, thread);
    }
    if (w->r->out[1].data)
        cpl_recurrent_set(w, part, a->s.state, w->r->out[1].data);
}

static void forward(const cpl_run_context *r)
{
    gru_walk a;
    cpl_carve c = {.base = r->workspace};
    cpl_recurrent_sizes n = cpl_recurrent_begin(&a.w, r, IDS, &c);
    a.s = forward_space(&c, n, r->out[2].data != NULL);
    cpl_recurrent_pack(&a.w, &n, a.s.kernel);
    cpl_recurrent_input(&a.w, a.s.xg);
    cpl_run_tasks(r, a.w.parts, part_forward, &a);
}

/* dh holds, for each sentence, the gradient of the state after the step being undone. */
static void part_backward(void *arguments, int64_t part, int thread)
{
    const gru_walk *a = arguments;
    const cpl_recurrent *w = &a->w;
    const cpl_run_context *r = w->r;
    const cpl_kernels *f = r->kernels;
    int64_t u = w->u, lo = w->cut[part];
    real *dh = a->s.dh + lo * u;

    cpl_recurrent_set(w, part, r->dout[1].data, a->s.dh);
    for (int64_t i = w->g->longest - 1; i >= 0; i--) {
        int64_t k = cpl_recurrent_time(w, i), n = cpl_recurrent_alive(w, part, k);
        int64_t row = w->g->offset[k] + lo;
        real *previous = a->s.previous + row * u, *dhg = a->s.dhg + row * 3 * u;
        if (!n)
            continue;
        cpl_recurrent_previous(w, part, k, r->out[0].data, r->in[4].data, previous);
        if (r->dout[0].data)
            f->add(n * u, dh, r->dout[0].data + row * u, dh);
        f->gru_backward(n, u, r->out[2].data + row * 4 * u, previous, dh, a->s.dxg + row * 3 * u, dhg, dh);
        cpl_recurrent_unmasked(w, lo, &(cpl_gemm){.m = n, .n = u, .k = 3 * u, .a = dhg, .lda = 3 * u, .ldb = u,
                                                  .beta = 1, .c = dh, .ldc = u}, &a->turned, thread);
        cpl_recurrent_mask(w, lo, n, previous);
    }
    if (r->din[4].data)
        cpl_recurrent_set(w, part, a->s.dh, r->din[4].data);
}

static void backward(const cpl_run_context *r)
{
    gru_walk a;
    cpl_carve c = {.base = r->workspace};
    cpl_recurrent_sizes n = cpl_recurrent_begin(&a.w, r, IDS, &c);
    int64_t rows = n.rows, u = n.u;
    a.s = backward_space(&c, n);
    cpl_recurrent_turn(&a.w, 0, 3 * u, a.s.turned, &a.turned);
    cpl_run_tasks(r, a.w.parts, part_backward, &a);
    cpl_recurrent_gradients(&a.w, a.s.dxg);
    if (r->din[2].data)
        cpl_recurrent_product(&a.w, &(cpl_gemm){.transpose_a = 1, .m = u, .n = 3 * u, .k = rows, .a = a.s.previous,
                                                .lda = u, .b = a.s.dhg, .ldb = 3 * u, .c = r->din[2].data,
                                                .ldc = 3 * u});
    if (r->din[3].data)
        cpl_run_sum_rows(r, rows, 3 * u, a.s.dhg, r->din[3].data + 3 * u);
}

static const char *const tests[] = {
    "in=3 u=5 ids=absent",
    "in=17 u=7 ids=absent attr.0=1",
    "in=1 u=1 h0=absent ids=absent",
    "in=5 u=3 b=absent h0=absent ids=absent attr.0=1",
    "in=3 u=5 ids=absent attr.1=0.5",
    "in=2 u=4 h0=absent ids=absent attr.0=1 attr.1=0.25",
    NULL
};

const cpl_op cpl_op_gru = {
    .name = "gru",
    .doc = "gated recurrent unit over a sequence, reset after the recurrent product",
    .signature = "x[batch t in] w[in 3u] r[u 3u] b[2 3u]? h0[batch u]? id ids[batch t]? "
                 "-> y[batch t u] h[batch u] ; keep[batch t 4u]",
    .keeps = CPL_KEEP_IN0 | CPL_KEEP_IN1 | CPL_KEEP_IN2 | CPL_KEEP_IN4 | CPL_KEEP_IN5 | CPL_KEEP_OUT0,
    .for_weights = CPL_KEEP_IN0,
    .weights = 1 << 1 | 1 << 2,
    .ids = 5,
    .attributes = sizeof(cpl_recurrent_attributes),
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .flops = cpl_recurrent_flops,
    .tests = tests,
};
