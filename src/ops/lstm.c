/* lstm.c: long short-term memory. Gate order i, f, c, o.
 *
 *     a = x·W + b + h·U
 *     c' = σ(a_f)·c + σ(a_i)·tanh(a_c)        h' = σ(a_o)·tanh(c')
 *
 * Backward, from dh and dc = gradients of h' and c':
 *     dc += dh·o·(1 − tanh²c')   da_o = dh·tanh(c')·o(1 − o)
 *     da_i = dc·c̃·i(1 − i)   da_f = dc·c·f(1 − f)   da_c = dc·i·(1 − c̃²)
 *     dc_prev = dc·f   dh_prev = da·Uᵀ   dx = da·Wᵀ   dW = xᵀ·da   dU = h_prevᵀ·da   db = Σ da
 *
 * With recurrent dropout h·m stands for h in the product h·U.
 *
 * Kept: the gates after their activations, and the cell of every step. Work is cut as in gru.c. */
#include "graph/attributes.h"
#include "ops/recurrent.h"

enum { IN_H0 = 4, IN_C0 = 5, IN_IDS = 6, OUT_Y = 0, OUT_H = 1, OUT_C = 2, OUT_KEEP = 3, OUT_CELLS = 4 };

typedef struct lstm_space {
    real *xg, *rows, *hg, *state, *cell;            /* forward: [distinct 4u], 2 × [batch 4u], 2 × [batch u] */
    real *keep, *next;                              /* where nothing is kept: [batch 4u], [batch u] */
    real *da, *previous, *before;                   /* backward: [rows 4u], h_prev [rows u], c_prev [batch u] */
    real *dh, *dc;                                  /* 2 × [batch u] */
    real *kernel, *turned;                          /* [u 4u], packed; [4u u] */
} lstm_space;

static lstm_space forward_space(cpl_carve *c, cpl_recurrent_sizes n, int differentiated)
{
    lstm_space s = {0};
    s.xg = cpl_carve_reals(c, n.distinct * 4 * n.u);
    s.rows = n.entries ? cpl_carve_reals(c, n.batch * 4 * n.u) : NULL;
    s.hg = cpl_carve_reals(c, n.batch * 4 * n.u);
    s.state = cpl_carve_reals(c, n.batch * n.u);
    s.cell = cpl_carve_reals(c, n.batch * n.u);
    s.keep = differentiated ? NULL : cpl_carve_reals(c, n.batch * 4 * n.u);
    s.next = differentiated ? NULL : cpl_carve_reals(c, n.batch * n.u);
    s.kernel = differentiated ? cpl_carve_reals(c, cpl_recurrent_pack_reals(&n)) : NULL;
    return s;
}

static lstm_space backward_space(cpl_carve *c, cpl_recurrent_sizes n)
{
    lstm_space s = {0};
    s.da = cpl_carve_reals(c, n.rows * 4 * n.u);
    s.previous = cpl_carve_reals(c, n.rows * n.u);
    s.before = cpl_carve_reals(c, n.batch * n.u);
    s.dh = cpl_carve_reals(c, n.batch * n.u);
    s.dc = cpl_carve_reals(c, n.batch * n.u);
    s.turned = cpl_carve_reals(c, cpl_recurrent_turn_reals(n.u, 4 * n.u));
    return s;
}

static size_t workspace(const cpl_size_context *s)
{
    cpl_carve c = {0};
    cpl_recurrent_sizes n = cpl_recurrent_call_sizes(s, IN_IDS);
    cpl_recurrent_carve(&c, &n);
    if (s->backward)
        backward_space(&c, n);
    else
        forward_space(&c, n, s->differentiated);
    return c.used;
}

typedef struct lstm_walk {
    cpl_recurrent w;
    lstm_space s;
    cpl_recurrent_kernel turned;
} lstm_walk;

/* One step of a part: n rows from packed row `row`, states from position lo. */
static void step_forward(const lstm_walk *a, int64_t row, int64_t lo, int64_t n, int thread)
{
    const cpl_run_context *r = a->w.r;
    int64_t u = a->w.u;
    real *xg = cpl_recurrent_projected(&a->w, a->s.xg, row, lo, n, a->s.rows);
    real *hg = a->s.hg + lo * 4 * u;
    real *state = a->s.state + lo * u, *cell = a->s.cell + lo * u;
    int kept = r->out[OUT_KEEP].data != NULL;
    real *keep = kept ? r->out[OUT_KEEP].data + row * 4 * u : a->s.keep + lo * 4 * u;
    real *next = kept ? r->out[OUT_CELLS].data + row * u : a->s.next + lo * u;

    if (r->in[3].data)
        r->kernels->bias_activation(n, 4 * u, xg, r->in[3].data, CPL_LINEAR, xg);
    cpl_recurrent_forward(&a->w, &(cpl_gemm){.m = n, .n = 4 * u, .k = u,
                                             .a = cpl_recurrent_masked(&a->w, lo, n, state), .lda = u, .ldb = 4 * u,
                                             .c = hg, .ldc = 4 * u}, 0, thread);
    r->kernels->lstm_forward(n, u, xg, hg, cell, keep, next, state);
    memcpy(cell, next, (size_t)(n * u) * sizeof *cell);
    if (r->out[OUT_Y].data)
        memcpy(r->out[OUT_Y].data + row * u, state, (size_t)(n * u) * sizeof *state);
}

static void part_forward(void *arguments, int64_t part, int thread)
{
    const lstm_walk *a = arguments;
    const cpl_recurrent *w = &a->w;
    const cpl_run_context *r = w->r;
    int64_t lo = w->cut[part];

    cpl_recurrent_set(w, part, r->in[IN_H0].data, a->s.state);
    cpl_recurrent_set(w, part, r->in[IN_C0].data, a->s.cell);
    for (int64_t i = 0; i < w->g->longest; i++) {
        int64_t k = cpl_recurrent_time(w, i), n = cpl_recurrent_alive(w, part, k);
        if (n)
            step_forward(a, w->g->offset[k] + lo, lo, n, thread);
    }
    if (r->out[OUT_H].data)
        cpl_recurrent_set(w, part, a->s.state, r->out[OUT_H].data);
    if (r->out[OUT_C].data)
        cpl_recurrent_set(w, part, a->s.cell, r->out[OUT_C].data);
}

static void forward(const cpl_run_context *r)
{
    lstm_walk a;
    cpl_carve c = {.base = r->workspace};
    cpl_recurrent_sizes n = cpl_recurrent_begin(&a.w, r, IN_IDS, &c);
    a.s = forward_space(&c, n, r->out[OUT_KEEP].data != NULL);
    cpl_recurrent_pack(&a.w, &n, a.s.kernel);
    cpl_recurrent_input(&a.w, a.s.xg);
    cpl_run_tasks(r, a.w.parts, part_forward, &a);
}

/* Undoes one step: dh and dc of the part become the gradients of the state before it. */
static void step_backward(const lstm_walk *a, int64_t row, int64_t lo, int64_t n, int thread)
{
    const cpl_run_context *r = a->w.r;
    int64_t u = a->w.u;
    real *dh = a->s.dh + lo * u, *dc = a->s.dc + lo * u, *da = a->s.da + row * 4 * u;

    if (r->dout[OUT_Y].data)
        r->kernels->add(n * u, dh, r->dout[OUT_Y].data + row * u, dh);
    r->kernels->lstm_backward(n, u, r->out[OUT_KEEP].data + row * 4 * u, a->s.before + lo * u,
                              r->out[OUT_CELLS].data + row * u, dh, dc, da, dc);
    cpl_recurrent_unmasked(&a->w, lo, &(cpl_gemm){.m = n, .n = u, .k = 4 * u, .a = da, .lda = 4 * u, .ldb = u,
                                                  .c = dh, .ldc = u}, &a->turned, thread);
    cpl_recurrent_mask(&a->w, lo, n, a->s.previous + row * u);
}

static void part_backward(void *arguments, int64_t part, int thread)
{
    const lstm_walk *a = arguments;
    const cpl_recurrent *w = &a->w;
    const cpl_run_context *r = w->r;
    int64_t u = w->u, lo = w->cut[part];

    cpl_recurrent_set(w, part, r->dout[OUT_H].data, a->s.dh);
    cpl_recurrent_set(w, part, r->dout[OUT_C].data, a->s.dc);
    for (int64_t i = w->g->longest - 1; i >= 0; i--) {
        int64_t k = cpl_recurrent_time(w, i), n = cpl_recurrent_alive(w, part, k);
        int64_t row = w->g->offset[k] + lo;
        if (!n)
            continue;
        cpl_recurrent_previous(w, part, k, r->out[OUT_Y].data, r->in[IN_H0].data, a->s.previous + row * u);
        cpl_recurrent_previous(w, part, k, r->out[OUT_CELLS].data, r->in[IN_C0].data, a->s.before + lo * u);
        step_backward(a, row, lo, n, thread);
    }
    if (r->din[IN_H0].data)
        cpl_recurrent_set(w, part, a->s.dh, r->din[IN_H0].data);
    if (r->din[IN_C0].data)
        cpl_recurrent_set(w, part, a->s.dc, r->din[IN_C0].data);
}

static void backward(const cpl_run_context *r)
{
    lstm_walk a;
    cpl_carve c = {.base = r->workspace};
    cpl_recurrent_sizes n = cpl_recurrent_begin(&a.w, r, IN_IDS, &c);
    int64_t rows = n.rows, u = n.u;
    a.s = backward_space(&c, n);
    cpl_recurrent_turn(&a.w, 0, 4 * u, a.s.turned, &a.turned);
    cpl_run_tasks(r, a.w.parts, part_backward, &a);
    if (r->din[2].data)
        cpl_recurrent_product(&a.w, &(cpl_gemm){.transpose_a = 1, .m = u, .n = 4 * u, .k = rows, .a = a.s.previous,
                                                .lda = u, .b = a.s.da, .ldb = 4 * u, .c = r->din[2].data,
                                                .ldc = 4 * u});
    cpl_recurrent_gradients(&a.w, a.s.da);
}

static const char *const tests[] = {
    "in=3 u=5 ids=absent",
    "in=17 u=7 ids=absent attr.0=1",
    "in=1 u=1 h0=absent c0=absent ids=absent",
    "in=5 u=3 b=absent h0=absent ids=absent attr.0=1",
    "in=3 u=5 ids=absent attr.1=0.5",
    "in=2 u=4 h0=absent c0=absent ids=absent attr.0=1 attr.1=0.25",
    NULL
};

const cpl_op cpl_op_lstm = {
    .name = "lstm",
    .doc = "long short-term memory over a sequence",
    .signature = "x[batch t in] w[in 4u] r[u 4u] b[4u]? h0[batch u]? c0[batch u]? id ids[batch t]? "
                 "-> y[batch t u] h[batch u] c[batch u] ; keep[batch t 4u] cells[batch t u]",
    .keeps = CPL_KEEP_IN0 | CPL_KEEP_IN1 | CPL_KEEP_IN2 | CPL_KEEP_IN4 | CPL_KEEP_IN5 | CPL_KEEP_IN6 |
             CPL_KEEP_OUT0,
    .for_weights = CPL_KEEP_IN0,
    .weights = 1 << 1 | 1 << 2,
    .ids = 6,
    .attributes = sizeof(cpl_recurrent_attributes),
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .flops = cpl_recurrent_flops,
    .tests = tests,
};
