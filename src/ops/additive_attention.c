/* additive_attention.c: additive attention (Bahdanau et al. 2015) over the source steps that exist, from projected
 * queries and keys.
 *
 *     for every sentence (q [t n], k [s n], m [s u]):
 *     p = softmax over s of Σ v · tanh(q_t + k_s) + b        y = (p ⊙ d)·m        weights = p
 *
 * Backward, from dy and (if anything reads the weights) dp:
 *     dm = (p ⊙ d)ᵀ·dy   ds = softmax'(dy·mᵀ ⊙ d + dp)   dq, dk, dv: kernel additive_scores_backward of ds   db = 0
 *
 * d is 1, or while training the mask of weight_drop.h (0 or 1/(1 − rate)), the same in a loop's step as over all
 * steps at once; weights are reported undropped.
 *
 * b moves all scores of a step alike, which the softmax takes away again: it is a weight of the files only; results
 * do not depend on it and its gradient is 0. Nothing of size t · s · n ever exists: each task gathers one sentence
 * into scratch, as in attention.c, and the kernels walk its pairs. dv is summed over sentences in their order. A
 * sentence without source steps has no weights and y = 0. Weights stand in packed rows of t (cpl_pair_index).
 *
 * Where no sentence has more than one step of t (a step of a loop), keys and memory are read where they stand. e, if
 * given, is additive_exponentials of k: made once for all steps of a loop. It is no input of its own, so it has no
 * gradient: all of it is dk. A loop wants dq alone of each step, and after it dk, dv and dm of all steps at once; what
 * is not wanted is not computed. */
#include <string.h>
#include "graph/attributes.h"
#include "graph/op.h"
#include "ops/carve.h"
#include "ops/weight_drop.h"

/* Of one thread: a sentence's rows of q, k, m and y (backward: dy), the gradients, and the kernels' scratch. */
typedef struct sentence_space {
    real *q, *k, *m, *y;
    real *dq, *dk, *dm;
    real *p, *ds, *scratch; /* p, ds [t s] */
    real *mask;             /* [s], of a single step */
} sentence_space;

typedef struct additive {
    const cpl_run_context *r;
    const cpl_geometry *t, *s;
    int64_t n, u;
    int backward;
    int want_scores;     /* backward: any of dq, dk, dv */
    cpl_weight_drop drop;
    cpl_pair_index rows; /* of the weights */
    real *dv;            /* backward: [batch n] of each sentence at its position of t */
    char *threads;       /* each thread's space of `bytes` */
    size_t bytes;
} additive;

enum { Q, K, V, B, M, E };

static sentence_space thread_space(cpl_carve *c, int64_t t, int64_t s, int64_t n, int64_t u, int backward)
{
    sentence_space x = {0};
    x.q = cpl_carve_reals(c, t * n);
    x.k = cpl_carve_reals(c, s * n);
    x.m = cpl_carve_reals(c, s * u);
    x.y = cpl_carve_reals(c, t * u);
    x.p = cpl_carve_reals(c, t * s);
    x.mask = cpl_carve_reals(c, s);
    x.scratch = cpl_carve_reals(c, cpl_additive_scratch(t, s, n));
    if (backward) {
        x.ds = cpl_carve_reals(c, t * s);
        x.dq = cpl_carve_reals(c, t * n);
        x.dk = cpl_carve_reals(c, s * n);
        x.dm = cpl_carve_reals(c, s * u);
    }
    return x;
}

static size_t workspace(const cpl_size_context *c)
{
    const cpl_binding *b = c->binding;
    int64_t t = b->longest[c->in[Q]->dim[1].symbol], s = b->longest[c->in[K]->dim[1].symbol];
    int64_t n = cpl_type_width(c->in[Q]), u = cpl_type_width(c->in[M]);
    cpl_carve begin = {0}, one = {0};
    cpl_carve_bytes(&begin, cpl_pair_index_bytes(b->batch, t));
    if (c->backward)
        cpl_carve_reals(&begin, b->batch * n);
    thread_space(&one, t, s, n, u, c->backward);
    return begin.used + (size_t)c->threads * one.used;
}

static void begin_run(additive *a, const cpl_run_context *r, int backward)
{
    cpl_carve c = {.base = r->workspace}, one = {0};
    a->r = r;
    a->backward = backward;
    a->t = cpl_tensor_geometry(r, &r->in[Q]);
    a->s = cpl_tensor_geometry(r, &r->in[K]);
    a->n = r->in[Q].width;
    a->u = r->in[M].width;
    a->drop = cpl_weight_drop_of(r, a->t, ((const cpl_additive_attributes *)r->attributes)->dropout);
    a->want_scores = r->din[Q].data || r->din[K].data || r->din[V].data;
    void *index = cpl_carve_bytes(&c, cpl_pair_index_bytes(a->t->batch, a->t->longest));
    a->rows = cpl_pair_index_make(index, a->t, a->s);
    a->dv = backward ? cpl_carve_reals(&c, a->t->batch * a->n) : NULL;
    thread_space(&one, a->t->longest, a->s->longest, a->n, a->u, backward);
    a->bytes = one.used;
    a->threads = r->workspace;
    a->threads += c.used;
}

static sentence_space space_of(const additive *a, int thread, int backward)
{
    cpl_carve c = {.base = a->threads + (size_t)thread * a->bytes};
    return thread_space(&c, a->t->longest, a->s->longest, a->n, a->u, backward);
}

/* ---- rows of one sentence ---- */

/* The task's sentence: positions in both orders and lengths. */
typedef struct pair {
    int64_t i, j, t, s;
} pair;

static pair pair_at(const additive *a, int64_t i)
{
    pair p = {.i = i, .j = a->s->position[a->t->sentence[i]]};
    p.t = a->t->length[p.i];
    p.s = a->s->length[p.j];
    return p;
}

static void gather(const cpl_geometry *g, int64_t position, const cpl_tensor *x, real *rows)
{
    for (int64_t k = 0; k < g->length[position]; k++)
        memcpy(rows + k * x->width, x->data + (g->offset[k] + position) * x->width, (size_t)x->width * sizeof *rows);
}

/* Nothing where nobody needs x. */
static void scatter(const cpl_geometry *g, int64_t position, const real *rows, const cpl_tensor *x)
{
    for (int64_t k = 0; x->data && k < g->length[position]; k++)
        memcpy(x->data + (g->offset[k] + position) * x->width, rows + k * x->width, (size_t)x->width * sizeof *rows);
}

static real *weights_at(const additive *a, const cpl_tensor *weights, int64_t step, int64_t i)
{
    return weights->data + cpl_pair_row(&a->rows, step, i);
}

static void clear(real *rows, int64_t n)
{
    if (n)
        memset(rows, 0, (size_t)n * sizeof *rows);
}

/* Weights of a step, or their gradients: those that the mask takes become 0. */
static void drop(const additive *a, const pair *p, int64_t step, real *row)
{
    if (a->drop.limit)
        cpl_weight_drop_row(&a->drop, (cpl_weight_place){p->i, step, 0}, p->s, row);
}

/* ---- a single step ---- */

static int single_step(const additive *a)
{
    return a->t->longest == 1;
}

static cpl_additive_step step_of(const additive *a, const pair *p, const sentence_space *x)
{
    const cpl_run_context *r = a->r;
    int64_t from = p->j * a->n;
    for (int64_t j = 0; a->drop.limit && j < p->s; j++)
        x->mask[j] = 1;
    drop(a, p, 0, x->mask);
    return (cpl_additive_step){.s = p->s, .n = a->n, .u = a->u, .at = a->s->offset,
                               .q = r->in[Q].data + p->i * a->n, .k = r->in[K].data + from,
                               .m = r->in[M].data + p->j * a->u, .e = r->in[E].data ? r->in[E].data + from : NULL,
                               .v = r->in[V].data, .mask = a->drop.limit ? x->mask : NULL,
                               .scratch = x->scratch};
}

static void step_forward(const additive *a, const pair *p, const sentence_space *x)
{
    const cpl_run_context *r = a->r;
    real *y = r->out[0].data ? r->out[0].data + p->i * a->u : x->y;

    if (p->s) {
        cpl_additive_step step = step_of(a, p, x);
        r->kernels->additive_step(&step, r->out[1].data ? weights_at(a, &r->out[1], 0, p->i) : x->p, y);
    } else {
        clear(y, a->u);
    }
}

/* dq alone. */
static void step_backward(const additive *a, const pair *p, const sentence_space *x)
{
    const cpl_run_context *r = a->r;
    real *dq = r->din[Q].data + p->i * a->n;

    if (p->s) {
        cpl_additive_step step = step_of(a, p, x);
        r->kernels->additive_step_backward(&step, weights_at(a, &r->out[1], 0, p->i),
                                           r->dout[0].data ? r->dout[0].data + p->i * a->u : NULL,
                                           r->dout[1].data ? weights_at(a, &r->dout[1], 0, p->i) : NULL, dq);
    } else {
        clear(dq, a->n);
    }
}

/* Sentences that stand side by side in s share pages of keys and memory, so one task takes several of them; when few
 * are left, one. Sentences do not touch each other: the results are those of any other cut. */
static int64_t step_sentences(const additive *a)
{
    return a->t->rows >= 16 ? 4 : 1;
}

static void run_steps(void *arguments, int64_t task, int thread)
{
    const additive *a = arguments;
    int64_t each = step_sentences(a), from = task * each;
    sentence_space x = space_of(a, thread, a->backward);

    for (int64_t j = from; j < from + each && j < a->s->batch; j++) {
        pair p = pair_at(a, a->t->position[a->s->sentence[j]]);
        if (p.t && a->backward)
            step_backward(a, &p, &x);
        else if (p.t)
            step_forward(a, &p, &x);
    }
}

static void step_tasks(additive *a)
{
    int64_t each = step_sentences(a);
    cpl_run_tasks(a->r, (a->s->batch + each - 1) / each, run_steps, a);
}

/* ---- forward ---- */

static void sentence_forward(void *arguments, int64_t task, int thread)
{
    const additive *a = arguments;
    const cpl_run_context *r = a->r;
    sentence_space x = space_of(a, thread, 0);
    pair p = pair_at(a, task);

    if (p.t && p.s) {
        gather(a->t, p.i, &r->in[Q], x.q);
        gather(a->s, p.j, &r->in[K], x.k);
        gather(a->s, p.j, &r->in[M], x.m);
        r->kernels->additive_scores(p.t, p.s, a->n, x.q, x.k, r->in[V].data, x.scratch, x.p);
        r->kernels->softmax(p.t, p.s, x.p, p.s);
        for (int64_t k = 0; r->out[1].data && k < p.t; k++)
            memcpy(weights_at(a, &r->out[1], k, p.i), x.p + k * p.s, (size_t)p.s * sizeof(real));
        for (int64_t k = 0; k < p.t; k++)
            drop(a, &p, k, x.p + k * p.s);
        r->kernels->gemm(&(cpl_gemm){.m = p.t, .n = a->u, .k = p.s, .a = x.p, .lda = p.s, .b = x.m, .ldb = a->u,
                                     .c = x.y, .ldc = a->u}, r->scratch[thread]);
    } else {
        clear(x.y, p.t * a->u);
    }
    scatter(a->t, p.i, x.y, &r->out[0]);
}

static void forward(const cpl_run_context *r)
{
    additive a;
    begin_run(&a, r, 0);
    if (single_step(&a))
        step_tasks(&a);
    else
        cpl_run_tasks(r, a.t->batch, sentence_forward, &a);
}

/* ---- backward ---- */

static void gather_weights(const additive *a, const sentence_space *x, const pair *p)
{
    for (int64_t k = 0; k < p->t; k++)
        memcpy(x->p + k * p->s, weights_at(a, &a->r->out[1], k, p->i), (size_t)p->s * sizeof(real));
}

/* dm, and ds of the scores. */
static void softmax_part(const additive *a, const sentence_space *x, const pair *p, void *scratch)
{
    const cpl_run_context *r = a->r;
    const cpl_kernels *f = r->kernels;
    int64_t u = a->u;

    gather_weights(a, x, p);
    for (int64_t k = 0; k < p->t; k++)
        drop(a, p, k, x->p + k * p->s);
    if (r->din[M].data)
        f->gemm(&(cpl_gemm){.transpose_a = 1, .m = p->s, .n = u, .k = p->t, .a = x->p, .lda = p->s, .b = x->y,
                            .ldb = u, .c = x->dm, .ldc = u}, scratch);
    if (!a->want_scores)
        return;
    f->gemm(&(cpl_gemm){.transpose_b = 1, .m = p->t, .n = p->s, .k = u, .a = x->y, .lda = u, .b = x->m, .ldb = u,
                        .c = x->ds, .ldc = p->s}, scratch);
    if (a->drop.limit)
        gather_weights(a, x, p);
    for (int64_t k = 0; k < p->t; k++)
        drop(a, p, k, x->ds + k * p->s);
    for (int64_t k = 0; r->dout[1].data && k < p->t; k++)
        f->add(p->s, x->ds + k * p->s, weights_at(a, &r->dout[1], k, p->i), x->ds + k * p->s);
    f->softmax_backward(p->t, p->s, x->p, x->ds, x->ds, p->s);
}

static void scores_part(const additive *a, const sentence_space *x, const pair *p, real *dv)
{
    const cpl_run_context *r = a->r;
    int keys = r->din[K].data || r->din[V].data;

    gather(a->t, p->i, &r->in[Q], x->q);
    gather(a->s, p->j, &r->in[K], x->k);
    r->kernels->additive_scores_backward(p->t, p->s, a->n, x->q, x->k, r->in[V].data, x->ds, x->scratch,
                                         r->din[Q].data ? x->dq : NULL, keys ? x->dk : NULL, keys ? dv : NULL);
}

static void sentence_backward(void *arguments, int64_t task, int thread)
{
    const additive *a = arguments;
    const cpl_run_context *r = a->r;
    sentence_space x = space_of(a, thread, 1);
    pair p = pair_at(a, task);
    real *dv = a->dv + p.i * a->n;

    if (p.t && p.s) {
        if (a->want_scores)
            gather(a->s, p.j, &r->in[M], x.m);
        clear(x.y, p.t * a->u);
        if (r->dout[0].data)
            gather(a->t, p.i, &r->dout[0], x.y);
        softmax_part(a, &x, &p, r->scratch[thread]);
        if (a->want_scores)
            scores_part(a, &x, &p, dv);
    } else {
        clear(x.dq, p.t * a->n);
        clear(x.dk, p.s * a->n);
        clear(x.dm, p.s * a->u);
        clear(dv, a->n);
    }
    scatter(a->t, p.i, x.dq, &r->din[Q]);
    scatter(a->s, p.j, x.dk, &r->din[K]);
    scatter(a->s, p.j, x.dm, &r->din[M]);
}

static void backward(const cpl_run_context *r)
{
    additive a;
    begin_run(&a, r, 1);
    int query_alone = r->din[Q].data && !r->din[K].data && !r->din[V].data && !r->din[M].data;
    if (single_step(&a) && query_alone)
        step_tasks(&a);
    else if (a.want_scores || r->din[M].data)
        cpl_run_tasks(r, a.t->batch, sentence_backward, &a);
    if (r->din[V].data)
        cpl_run_sum_rows(r, a.t->batch, a.n, a.dv, r->din[V].data);
    if (r->din[B].data)
        r->din[B].data[0] = 0;
    if (r->din[E].data)
        cpl_run_zero(r, r->din[E].data, r->din[E].rows * a.n);
}

/* A tanh counts as four operations. */
static double flops(const cpl_size_context *c)
{
    double pairs = (double)c->binding->pairs[c->in[Q]->dim[1].symbol][c->in[K]->dim[1].symbol];
    return pairs * (7.0 * (double)cpl_type_width(c->in[Q]) + 2.0 * (double)cpl_type_width(c->in[M]));
}

static const char *const tests[] = {
    "n=7 u=5 e=absent",
    "n=5 u=3 b=absent e=absent",
    "n=17 u=1 e=absent",
    "n=1 u=7 b=absent e=absent",
    "s=t n=3 u=4 e=absent",
    "n=5 u=3 e=absent attr.0=0.5",
    NULL
};

const cpl_op cpl_op_additive_attention = {
    .name = "additive_attention",
    .doc = "additive attention of projected queries and keys over the source steps that exist",
    .signature = "q[batch t n] k[batch s n] v[n 1] b[1]? m[batch s u] e[batch s n]? -> y[batch t u] weights[batch t s]",
    .keeps = CPL_KEEP_IN0 | CPL_KEEP_IN1 | CPL_KEEP_IN2 | CPL_KEEP_IN4 | CPL_KEEP_IN5 | CPL_KEEP_OUT1,
    .flags = CPL_OP_LOCAL,
    .attributes = sizeof(cpl_additive_attributes),
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .tests = tests,
};
