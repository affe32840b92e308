/* gru_before.c: gated recurrent unit, reset before the recurrent product. Gate order z, r, n; U = (U_zr, U_n).
 *
 *     xg = x·W + b         hg = h·U_zr
 *     z = σ(xg_z + hg_z)   r = σ(xg_r + hg_r)   n = tanh(xg_n + (r·h)·U_n)   h' = z·h + (1 − z)·n
 *
 * Backward, from dh = gradient of h':
 *     dn = dh·(1 − z)·(1 − n²)   dz = dh·(h − n)·z(1 − z)   drh = dn·U_nᵀ   dr = drh·h·r(1 − r)
 *     dh_prev = dh·z + drh·r + (dz, dr)·U_zrᵀ
 *     dx = dxg·Wᵀ   dW = xᵀ·dxg   dU_zr = h_prevᵀ·(dz, dr)   dU_n = (r·h_prev)ᵀ·dn   db = Σ dxg
 *
 * With recurrent dropout h·m stands for h in both products, not in z·h.
 *
 * Two products per step, because the second needs r. Otherwise as in gru.c. */
#include "graph/attributes.h"
#include "ops/recurrent.h"

enum { IDS = 5 };

typedef struct before_space {
    real *xg, *rows; /* forward: [distinct 3u], [batch 3u] */
    real *hg, *rh, *hn, *state, *next, *keep; /* [batch 2u], 4 × [batch u], [batch 3u] */
    real *dxg, *previous, *reset;                  /* backward: [rows 3u], h_prev and r·h_prev [rows u] */
    real *dh, *dh_next, *drh;                      /* 3 × [batch u] */
    real *kernel, *turned_gates, *turned_state;    /* [u 3u], packed; [2u u], [u u] */
} before_space;

static before_space forward_space(cpl_carve *c, cpl_recurrent_sizes n, int differentiated)
{
    before_space s = {0};
    s.xg = cpl_carve_reals(c, n.distinct * 3 * n.u);
    s.rows = n.entries ? cpl_carve_reals(c, n.batch * 3 * n.u) : NULL;
    s.hg = cpl_carve_reals(c, n.batch * 2 * n.u);
    s.rh = cpl_carve_reals(c, n.batch * n.u);
    s.hn = cpl_carve_reals(c, n.batch * n.u);
    s.state = cpl_carve_reals(c, n.batch * n.u);
    s.next = cpl_carve_reals(c, n.batch * n.u);
    s.keep = differentiated ? NULL : cpl_carve_reals(c, n.batch * 3 * n.u);
    s.kernel = differentiated ? cpl_carve_reals(c, cpl_recurrent_pack_reals(&n)) : NULL;
    return s;
}

static before_space backward_space(cpl_carve *c, cpl_recurrent_sizes n)
{
    before_space s = {0};
    s.dxg = cpl_carve_reals(c, n.rows * 3 * n.u);
    s.previous = cpl_carve_reals(c, n.rows * n.u);
    s.reset = cpl_carve_reals(c, n.rows * n.u);
    s.dh = cpl_carve_reals(c, n.batch * n.u);
    s.dh_next = cpl_carve_reals(c, n.batch * n.u);
    s.drh = cpl_carve_reals(c, n.batch * n.u);
    s.turned_gates = cpl_carve_reals(c, cpl_recurrent_turn_reals(n.u, 2 * n.u));
    s.turned_state = cpl_carve_reals(c, cpl_recurrent_turn_reals(n.u, n.u));
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

typedef struct before_walk {
    cpl_recurrent w;
    before_space s;
    cpl_recurrent_kernel turned_gates, turned_state;
} before_walk;

/* One step of a part: n rows from packed row `row`, states from position lo. */
static void step_forward(const before_walk *a, int64_t row, int64_t lo, int64_t n, int thread)
{
    const cpl_run_context *r = a->w.r;
    const cpl_kernels *f = r->kernels;
    int64_t u = a->w.u;
    real *xg = cpl_recurrent_projected(&a->w, a->s.xg, row, lo, n, a->s.rows);
    real *hg = a->s.hg + lo * 2 * u, *state = a->s.state + lo * u;
    real *rh = a->s.rh + lo * u, *hn = a->s.hn + lo * u, *next = a->s.next + lo * u;
    real *keep = r->out[2].data ? r->out[2].data + row * 3 * u : a->s.keep + lo * 3 * u;

    if (r->in[3].data)
        f->bias_activation(n, 3 * u, xg, r->in[3].data, CPL_LINEAR, xg);
    cpl_recurrent_forward(&a->w, &(cpl_gemm){.m = n, .n = 2 * u, .k = u,
                                             .a = cpl_recurrent_masked(&a->w, lo, n, state), .lda = u, .ldb = 3 * u,
                                             .c = hg, .ldc = 2 * u}, 0, thread);
    f->gru_before_gates(n, u, xg, hg, state, keep, rh);
    cpl_recurrent_mask(&a->w, lo, n, rh);
    cpl_recurrent_forward(&a->w, &(cpl_gemm){.m = n, .n = u, .k = u, .a = rh, .lda = u, .ldb = 3 * u, .c = hn,
                                             .ldc = u}, 2 * u, thread);
    f->gru_before_state(n, u, xg, hn, state, keep, next);
    memcpy(state, next, (size_t)(n * u) * sizeof *state);
    if (r->out[0].data)
        memcpy(r->out[0].data + row * u, next, (size_t)(n * u) * sizeof *next);
}

static void part_forward(void *arguments, int64_t part, int thread)
{
    const before_walk *a = arguments;
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
    before_walk a;
    cpl_carve c = {.base = r->workspace};
    cpl_recurrent_sizes n = cpl_recurrent_begin(&a.w, r, IDS, &c);
    a.s = forward_space(&c, n, r->out[2].data != NULL);
    cpl_recurrent_pack(&a.w, &n, a.s.kernel);
    cpl_recurrent_input(&a.w, a.s.xg);
    cpl_run_tasks(r, a.w.parts, part_forward, &a);
}

/* Undoes one step: dh of the part becomes the gradient of the state before it. */
static void step_backward(const before_walk *a, int64_t row, int64_t lo, int64_t n, int thread)
{
    const cpl_run_context *r = a->w.r;
    const cpl_kernels *f = r->kernels;
    int64_t u = a->w.u;
    real *dh = a->s.dh + lo * u, *dh_next = a->s.dh_next + lo * u, *drh = a->s.drh + lo * u;
    real *dxg = a->s.dxg + row * 3 * u, *previous = a->s.previous + row * u;
    const real *keep = r->out[2].data + row * 3 * u;

    if (r->dout[0].data)
        f->add(n * u, dh, r->dout[0].data + row * u, dh);
    f->gru_before_backward_state(n, u, keep, previous, dh, dxg, dh_next);
    cpl_recurrent_unmasked(&a->w, lo, &(cpl_gemm){.m = n, .n = u, .k = u, .a = dxg + 2 * u, .lda = 3 * u, .ldb = u,
                                                  .c = drh, .ldc = u}, &a->turned_state, thread);
    f->gru_before_backward_gates(n, u, keep, previous, drh, dxg, dh_next);
    cpl_recurrent_unmasked(&a->w, lo, &(cpl_gemm){.m = n, .n = u, .k = 2 * u, .a = dxg, .lda = 3 * u, .ldb = u,
                                                  .beta = 1, .c = dh_next, .ldc = u}, &a->turned_gates, thread);
    memcpy(dh, dh_next, (size_t)(n * u) * sizeof *dh);
    for (int64_t i = 0; i < n; i++)
        f->multiply(u, keep + i * 3 * u + u, previous + i * u, a->s.reset + (row + i) * u);
    cpl_recurrent_mask(&a->w, lo, n, a->s.reset + row * u);
    cpl_recurrent_mask(&a->w, lo, n, previous);
}

static void part_backward(void *arguments, int64_t part, int thread)
{
    const before_walk *a = arguments;
    const cpl_recurrent *w = &a->w;
    int64_t u = w->u, lo = w->cut[part];

    cpl_recurrent_set(w, part, w->r->dout[1].data, a->s.dh);
    for (int64_t i = w->g->longest - 1; i >= 0; i--) {
        int64_t k = cpl_recurrent_time(w, i), n = cpl_recurrent_alive(w, part, k);
        int64_t row = w->g->offset[k] + lo;
        if (!n)
            continue;
        cpl_recurrent_previous(w, part, k, w->r->out[0].data, w->r->in[4].data, a->s.previous + row * u);
        step_backward(a, row, lo, n, thread);
    }
    if (w->r->din[4].data)
        cpl_recurrent_set(w, part, a->s.dh, w->r->din[4].data);
}

static void backward(const cpl_run_context *r)
{
    before_walk a;
    cpl_carve c = {.base = r->workspace};
    cpl_recurrent_sizes n = cpl_recurrent_begin(&a.w, r, IDS, &c);
    int64_t rows = n.rows, u = n.u;
    a.s = backward_space(&c, n);
    cpl_recurrent_turn(&a.w, 0, 2 * u, a.s.turned_gates, &a.turned_gates);
    cpl_recurrent_turn(&a.w, 2 * u, u, a.s.turned_state, &a.turned_state);
    cpl_run_tasks(r, a.w.parts, part_backward, &a);
    real *dr = r->din[2].data;
    if (dr) {
        cpl_recurrent_product(&a.w, &(cpl_gemm){.transpose_a = 1, .m = u, .n = 2 * u, .k = rows, .a = a.s.previous,
                                                .lda = u, .b = a.s.dxg, .ldb = 3 * u, .c = dr, .ldc = 3 * u});
        cpl_recurrent_product(&a.w, &(cpl_gemm){.transpose_a = 1, .m = u, .n = u, .k = rows, .a = a.s.reset, .lda = u,
                                                .b = a.s.dxg + 2 * u, .ldb = 3 * u, .c = dr + 2 * u, .ldc = 3 * u});
    }
    cpl_recurrent_gradients(&a.w, a.s.dxg);
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

const cpl_op cpl_op_gru_before = {
    .name = "gru_before",
    .doc = "gated recurrent unit over a sequence, reset before the recurrent product",
    .signature = "x[batch t in] w[in 3u] r[u 3u] b[3u]? h0[batch u]? id ids[batch t]? "
                 "-> y[batch t u] h[batch u] ; keep[batch t 3u]",
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
