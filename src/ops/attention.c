/* attention.c: scaled dot-product attention with heads, over the source steps that exist.
 *
 *     for every sentence and head (q [t d], k, v [s d]):
 *     p = softmax over s of scale · q·kᵀ        y = (p ⊙ m)·v        weights = p
 *
 * where m is 1, or while training the mask of weight_drop.h (0 or 1/(1 − rate)): weights are reported undropped.
 * Backward, from dy and (if anything reads the weights) dp:
 *     dv = (p ⊙ m)ᵀ·dy   ds = softmax'(dy·vᵀ ⊙ m + dp)   dq = scale · ds·k   dk = scale · dsᵀ·q
 *
 * A sentence's rows do not stand together in packed rows, so each task gathers one sentence into scratch, works
 * on plain matrices and scatters the result. The forward run of a single query, as in a step of decoding, reads keys
 * and values where they stand: the kernel attention_step gives the same bits. A sentence without source steps has no
 * weights and y = 0. Weights are stored head by head, each in packed rows of t (cpl_pair_index). */
#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"
#include "graph/op.h"
#include "ops/carve.h"
#include "ops/weight_drop.h"

/* Of one thread: a sentence's rows of q, k, v and y, and the same of their gradients. */
typedef struct sentence_space {
    real *q, *k, *v, *y;
    real *dq, *dk, *dv;
    real *scores, *ds; /* p; its gradient in the backward pass */
} sentence_space;

typedef struct attention {
    const cpl_run_context *r;
    const cpl_geometry *t, *s;
    int64_t heads, width, head; /* width = heads · head */
    real scale;
    int causal;
    cpl_weight_drop drop;
    cpl_pair_index rows;        /* of the weights */
    int64_t pairs;              /* weights of one head */
    char *threads;              /* each thread's space of `bytes` */
    size_t bytes;
} attention;

static sentence_space thread_space(cpl_carve *c, int64_t t, int64_t s, int64_t width, int backward)
{
    sentence_space p = {0};
    p.q = cpl_carve_reals(c, t * width);
    p.y = cpl_carve_reals(c, t * width);
    p.k = cpl_carve_reals(c, s * width);
    p.v = cpl_carve_reals(c, s * width);
    p.scores = cpl_carve_reals(c, t * s);
    if (backward) {
        p.ds = cpl_carve_reals(c, t * s);
        p.dq = cpl_carve_reals(c, t * width);
        p.dk = cpl_carve_reals(c, s * width);
        p.dv = cpl_carve_reals(c, s * width);
    }
    return p;
}

static int64_t longest(const cpl_type *type, const cpl_binding *b)
{
    return b->longest[type->dim[cpl_type_find(type, CPL_DIM_TIME)].symbol];
}

static size_t workspace(const cpl_size_context *s)
{
    cpl_carve begin = {0}, one = {0};
    cpl_carve_bytes(&begin, cpl_pair_index_bytes(s->binding->batch, longest(s->in[0], s->binding)));
    thread_space(&one, longest(s->in[0], s->binding), longest(s->in[1], s->binding), cpl_type_width(s->in[0]),
                 s->backward);
    return begin.used + (size_t)s->threads * one.used;
}

static void begin_run(attention *a, const cpl_run_context *r, int backward)
{
    const cpl_attention_attributes *attributes = r->attributes;
    cpl_carve c = {.base = r->workspace}, one = {0};
    a->r = r;
    a->t = cpl_tensor_geometry(r, &r->in[0]);
    a->s = cpl_tensor_geometry(r, &r->in[1]);
    a->heads = attributes->heads;
    a->width = r->in[0].width;
    a->head = a->width / a->heads;
    a->scale = (real)attributes->scale;
    a->causal = attributes->causal;
    a->drop = cpl_weight_drop_of(r, a->t, attributes->dropout);
    void *index = cpl_carve_bytes(&c, cpl_pair_index_bytes(a->t->batch, a->t->longest));
    a->rows = cpl_pair_index_make(index, a->t, a->s);
    a->pairs = a->rows.base[a->t->longest];
    thread_space(&one, a->t->longest, a->s->longest, a->width, backward);
    a->bytes = one.used;
    a->threads = a->r->workspace;
    a->threads += c.used;
}

/* ---- rows of one sentence ---- */

static void gather(const cpl_geometry *g, int64_t position, int64_t width, const real *x, real *rows)
{
    for (int64_t k = 0; k < g->length[position]; k++)
        memcpy(rows + k * width, x + (g->offset[k] + position) * width, (size_t)width * sizeof *x);
}

static void scatter(const cpl_geometry *g, int64_t position, int64_t width, const real *rows, real *x)
{
    for (int64_t k = 0; k < g->length[position]; k++)
        memcpy(x + (g->offset[k] + position) * width, rows + k * width, (size_t)width * sizeof *x);
}

static void clear(real *rows, int64_t n)
{
    if (n)
        memset(rows, 0, (size_t)n * sizeof *rows);
}

/* The task's sentence: positions in both orders and lengths. */
typedef struct pair {
    int64_t i, j, t, s;
} pair;

static pair pair_at(const attention *a, int64_t i)
{
    pair p = {.i = i, .j = a->s->position[a->t->sentence[i]]};
    p.t = a->t->length[p.i];
    p.s = a->s->length[p.j];
    return p;
}

static sentence_space space_of(const attention *a, int thread, int backward)
{
    cpl_carve c = {.base = a->threads + (size_t)thread * a->bytes};
    return thread_space(&c, a->t->longest, a->s->longest, a->width, backward);
}

/* A sentence's weights of one head, as a plain matrix [steps of t, steps of s]; and back. */
static void gather_weights(const attention *a, int64_t head, const pair *p, const real *weights, real *rows)
{
    for (int64_t k = 0; k < p->t; k++)
        memcpy(rows + k * p->s, weights + head * a->pairs + cpl_pair_row(&a->rows, k, p->i),
               (size_t)p->s * sizeof *rows);
}

static void scatter_weights(const attention *a, int64_t head, const pair *p, const real *rows, real *weights)
{
    for (int64_t k = 0; k < p->t; k++)
        memcpy(weights + head * a->pairs + cpl_pair_row(&a->rows, k, p->i), rows + k * p->s,
               (size_t)p->s * sizeof *rows);
}

/* Weights, or their gradients, of one head: those that the mask takes become 0. */
static void drop(const attention *a, int64_t head, const pair *p, real *rows)
{
    for (int64_t k = 0; a->drop.limit && k < p->t; k++)
        cpl_weight_drop_row(&a->drop, (cpl_weight_place){p->i, k, head}, p->s, rows + k * p->s);
}

/* ---- forward ---- */

/* Row by row where a query sees only the keys up to its own step. */
static void normalise(const attention *a, const pair *p, real *scores)
{
    const cpl_kernels *f = a->r->kernels;
    f->scale(p->t * p->s, a->scale, scores, scores);
    if (!a->causal) {
        f->softmax(p->t, p->s, scores, p->s);
        return;
    }
    for (int64_t i = 0; i < p->t; i++) {
        int64_t seen = i + 1 < p->s ? i + 1 : p->s;
        f->softmax(1, seen, scores + i * p->s, p->s);
        clear(scores + i * p->s + seen, p->s - seen);
    }
}

/* A row of a single step is the one at the sentence's position. */
static void step_forward(const attention *a, const pair *p, const sentence_space *m)
{
    const cpl_run_context *r = a->r;
    real *weights = r->out[1].data ? r->out[1].data + cpl_pair_row(&a->rows, 0, p->i) : NULL;
    cpl_attention_step step = {.s = p->s, .heads = a->heads, .width = a->head, .at = a->s->offset, .scale = a->scale,
                               .q = r->in[0].data + p->i * a->width, .k = r->in[1].data + p->j * a->width,
                               .v = r->in[2].data + p->j * a->width, .weights = weights ? weights : m->scores,
                               .ld = weights ? a->pairs : 0,
                               .y = r->out[0].data ? r->out[0].data + p->i * a->width : m->y};
    r->kernels->attention_step(&step);
}

static void sentence_forward(void *arguments, int64_t task, int thread)
{
    const attention *a = arguments;
    const cpl_run_context *r = a->r;
    sentence_space m = space_of(a, thread, 0);
    pair p = pair_at(a, task);
    int64_t w = a->width, d = a->head;

    if (!p.t)
        return;
    if (p.t == 1 && p.s && r->kernels->attention_step && !a->drop.limit) {
        step_forward(a, &p, &m);
        return;
    }
    gather(a->t, p.i, w, r->in[0].data, m.q);
    gather(a->s, p.j, w, r->in[1].data, m.k);
    gather(a->s, p.j, w, r->in[2].data, m.v);
    if (!p.s)
        clear(m.y, p.t * w);
    for (int64_t h = 0; p.s && h < a->heads; h++) {
        real *scores = m.scores;
        r->kernels->gemm(&(cpl_gemm){.transpose_b = 1, .m = p.t, .n = p.s, .k = d, .a = m.q + h * d, .lda = w,
                                     .b = m.k + h * d, .ldb = w, .c = scores, .ldc = p.s}, r->scratch[thread]);
        normalise(a, &p, scores);
        if (r->out[1].data)
            scatter_weights(a, h, &p, scores, r->out[1].data);
        drop(a, h, &p, scores);
        r->kernels->gemm(&(cpl_gemm){.m = p.t, .n = d, .k = p.s, .a = scores, .lda = p.s, .b = m.v + h * d, .ldb = w,
                                     .c = m.y + h * d, .ldc = w}, r->scratch[thread]);
    }
    if (r->out[0].data)
        scatter(a->t, p.i, w, m.y, r->out[0].data);
}

static void forward(const cpl_run_context *r)
{
    attention a;
    begin_run(&a, r, 0);
    cpl_run_tasks(r, a.t->batch, sentence_forward, &a);
}

/* ---- backward ---- */

/* rows += the gradient that readers of the weights gave. */
static void add_weights(const attention *a, int64_t head, const pair *p, const real *dweights, real *rows)
{
    for (int64_t k = 0; k < p->t; k++)
        a->r->kernels->add(p->s, rows + k * p->s, dweights + head * a->pairs + cpl_pair_row(&a->rows, k, p->i),
                           rows + k * p->s);
}

/* m.y holds dy. */
static void head_backward(const attention *a, const sentence_space *m, const pair *p, int64_t h, void *scratch)
{
    const cpl_run_context *r = a->r;
    const cpl_kernels *f = r->kernels;
    const real *weights = m->scores;
    int64_t w = a->width, d = a->head, at = h * d, n = p->t * p->s;

    gather_weights(a, h, p, r->out[1].data, m->scores);
    drop(a, h, p, m->scores);
    f->gemm(&(cpl_gemm){.transpose_a = 1, .m = p->s, .n = d, .k = p->t, .a = weights, .lda = p->s, .b = m->y + at,
                        .ldb = w, .c = m->dv + at, .ldc = w}, scratch);
    f->gemm(&(cpl_gemm){.transpose_b = 1, .m = p->t, .n = p->s, .k = d, .a = m->y + at, .lda = w, .b = m->v + at,
                        .ldb = w, .c = m->ds, .ldc = p->s}, scratch);
    if (a->drop.limit)
        gather_weights(a, h, p, r->out[1].data, m->scores);
    drop(a, h, p, m->ds);
    if (r->dout[1].data)
        add_weights(a, h, p, r->dout[1].data, m->ds);
    f->softmax_backward(p->t, p->s, weights, m->ds, m->ds, p->s);
    f->scale(n, a->scale, m->ds, m->ds);
    f->gemm(&(cpl_gemm){.m = p->t, .n = d, .k = p->s, .a = m->ds, .lda = p->s, .b = m->k + at, .ldb = w,
                        .c = m->dq + at, .ldc = w}, scratch);
    f->gemm(&(cpl_gemm){.transpose_a = 1, .m = p->s, .n = d, .k = p->t, .a = m->ds, .lda = p->s, .b = m->q + at,
                        .ldb = w, .c = m->dk + at, .ldc = w}, scratch);
}

static void sentence_backward(void *arguments, int64_t task, int thread)
{
    const attention *a = arguments;
    const cpl_run_context *r = a->r;
    sentence_space m = space_of(a, thread, 1);
    pair p = pair_at(a, task);
    int64_t w = a->width;

    if (p.t && p.s) {
        gather(a->t, p.i, w, r->in[0].data, m.q);
        gather(a->s, p.j, w, r->in[1].data, m.k);
        gather(a->s, p.j, w, r->in[2].data, m.v);
        clear(m.y, p.t * w);
        if (r->dout[0].data)
            gather(a->t, p.i, w, r->dout[0].data, m.y);
        for (int64_t h = 0; h < a->heads; h++)
            head_backward(a, &m, &p, h, r->scratch[thread]);
    } else {
        clear(m.dq, p.t * w);
        clear(m.dk, p.s * w);
        clear(m.dv, p.s * w);
    }
    if (r->din[0].data)
        scatter(a->t, p.i, w, m.dq, r->din[0].data);
    if (r->din[1].data)
        scatter(a->s, p.j, w, m.dk, r->din[1].data);
    if (r->din[2].data)
        scatter(a->s, p.j, w, m.dv, r->din[2].data);
}

static void backward(const cpl_run_context *r)
{
    attention a;
    begin_run(&a, r, 1);
    cpl_run_tasks(r, a.t->batch, sentence_backward, &a);
}

/* ---- shape and cost ---- */

/* The notation cannot say where `h` comes from: weights [heads batch t s] are made here. */
static cpl_status shape(cpl_shape_context *c, cpl_error *err)
{
    const cpl_attention_attributes *attributes = c->attributes;
    const cpl_type *q = c->in[0], *k = c->in[1];
    int64_t width = cpl_type_width(q);
    if (attributes->heads < 1 || width % attributes->heads)
        CPL_FAIL(err, CPL_USAGE, "attention: the width %lld of q '%s' cannot be split into %d heads",
                 (long long)width, c->in_path[0], (int)attributes->heads);
    if (attributes->causal && q->dim[1].symbol != k->dim[1].symbol)
        CPL_FAIL(err, CPL_USAGE, "attention: causal needs one time axis, but q '%s' is over '%s' and k '%s' over '%s'",
                 c->in_path[0], q->dim[1].name, c->in_path[1], k->dim[1].name);
    cpl_type *weights = &c->out[1];
    memset(weights, 0, sizeof *weights);
    weights->element = CPL_ELEMENT_REAL;
    weights->rank = 4;
    weights->dim[0] = (cpl_dim){.name = "heads", .size = attributes->heads, .symbol = CPL_NO_SYMBOL,
                                .kind = CPL_DIM_FEATURE};
    weights->dim[1] = q->dim[0];
    weights->dim[2] = q->dim[1];
    weights->dim[3] = k->dim[1];
    weights->order = q->order;
    return CPL_OK;
}

static double flops(const cpl_size_context *s)
{
    int t = s->in[0]->dim[1].symbol, k = s->in[1]->dim[1].symbol;
    return 4.0 * (double)s->binding->pairs[t][k] * (double)cpl_type_width(s->in[0]);
}

static const char *const tests[] = {
    "hd=6 attr.0=2 attr.1=0.5",
    "hd=5 attr.0=1 attr.1=1.0",
    "hd=21 attr.0=3 attr.1=0.25",
    "hd=1 attr.0=1 attr.1=1.0",
    "s=t hd=6 attr.0=2 attr.1=0.5 attr.2=1",
    "hd=6 attr.0=2 attr.1=0.5 attr.3=0.5",
    "s=t hd=5 attr.0=1 attr.1=1.0 attr.2=1 attr.3=0.25",
    NULL
};

const cpl_op cpl_op_attention = {
    .name = "attention",
    .doc = "scaled dot-product attention with heads over the source steps that exist",
    .signature = "q[batch t hd] k[batch s hd] v[batch s hd] -> y[batch t hd] weights[h batch t s]",
    .flags = CPL_OP_LOCAL,
    .keeps = CPL_KEEP_IN0 | CPL_KEEP_IN1 | CPL_KEEP_IN2 | CPL_KEEP_OUT1,
    .attributes = sizeof(cpl_attention_attributes),
    .shape = shape,
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .tests = tests,
};
