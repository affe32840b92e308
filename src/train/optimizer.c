/* optimizer.c: one update of all parameters, dealt to the threads in pieces of a fixed size.
 *
 * Adam (Kingma and Ba 2015, in Keras's form with epsilon outside):
 *   m = b1 m + (1−b1) g;  v = b2 v + (1−b2) g²;  w −= lr √(1−b2ᵗ)/(1−b1ᵗ) m / (√v + ε)
 * AdamW (Loshchilov and Hutter 2019) also takes lr · weight_decay · w. Momentum: m = µ m − lr g; w += m. */
#include "train/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* A piece of one parameter: offsets count in the blocks of values, gradients and state. */
typedef struct piece {
    int64_t offset, n;
    double squares; /* Σ g² of the piece, for the norm */
} piece;

struct cpl_optimizer {
    const cpl_config_training *t;
    cpl_engine *engine;
    real *values;
    const real *gradients;
    real *first, *second; /* m or momentum; v */
    piece *pieces;
    int64_t count;
    /* Of the update that runs. */
    real scale, rate, decay;
};

int cpl_optimizer_changes(const cpl_parameter_info *info)
{
    return info->reached && info->trainable;
}

static int states(const cpl_config_training *t)
{
    if (t->optimizer.name == CPL_OPTIMIZER_SGD)
        return t->optimizer.momentum > 0 ? 1 : 0;
    return 2;
}

size_t cpl_optimizer_state_bytes(const cpl_config_training *t, const cpl_parameters *p)
{
    return (size_t)states(t) * cpl_parameters_bytes(p);
}

static int64_t cut(const cpl_parameters *p, piece *pieces)
{
    int64_t count = 0;
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(p, i);
        if (!cpl_optimizer_changes(info))
            continue;
        for (int64_t from = 0; from < info->elements; from += CPL_CHUNK, count++) {
            int64_t n = info->elements - from < CPL_CHUNK ? info->elements - from : CPL_CHUNK;
            if (pieces)
                pieces[count] = (piece){.offset = info->offset + from, .n = n};
        }
    }
    return count;
}

static real *state_block(size_t bytes)
{
    real *block = cpl_alloc_aligned(bytes + 64, 64);
    if (block)
        memset(block, 0, bytes); /* touched now, so that it cannot fail later */
    return block;
}

cpl_status cpl_optimizer_new(cpl_optimizer **out, const cpl_config_training *t, cpl_engine *engine,
                             const real *gradients, cpl_error *err)
{
    cpl_optimizer *o = cpl_alloc(1, sizeof *o);
    *out = NULL;
    if (!o)
        CPL_FAIL(err, CPL_FAILED, "no memory for the optimizer");
    const cpl_parameters *p = engine->parameters;
    size_t bytes = cpl_parameters_bytes(p);
    o->t = t;
    o->engine = engine;
    o->values = cpl_parameters_values(p);
    o->gradients = gradients;
    o->count = cut(p, NULL);
    o->pieces = cpl_alloc((size_t)o->count, sizeof *o->pieces);
    if (states(t) > 0)
        o->first = state_block(bytes);
    if (states(t) > 1)
        o->second = state_block(bytes);
    if (!o->pieces || (states(t) > 0 && !o->first) || (states(t) > 1 && !o->second)) {
        cpl_optimizer_free(o);
        CPL_FAIL(err, CPL_FAILED, "no memory for the optimizer's state of %zu bytes", cpl_optimizer_state_bytes(t, p));
    }
    cut(p, o->pieces);
    *out = o;
    return CPL_OK;
}

void cpl_optimizer_free(cpl_optimizer *o)
{
    if (!o)
        return;
    cpl_release(o->pieces);
    cpl_release(o->first);
    cpl_release(o->second);
    cpl_release(o);
}

/* Four running sums: a fixed order that the processor can still overlap. */
static void square_piece(void *arguments, int64_t task, int thread)
{
    (void)thread;
    cpl_optimizer *o = arguments;
    piece *c = &o->pieces[task];
    const real *g = o->gradients + c->offset;
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= c->n; i += 4)
        for (int k = 0; k < 4; k++)
            sum[k] += (double)g[i + k] * (double)g[i + k];
    for (; i < c->n; i++)
        sum[0] += (double)g[i] * (double)g[i];
    c->squares = (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double cpl_optimizer_norm(cpl_optimizer *o)
{
    cpl_pool_run(o->engine->pool, o->count, square_piece, o);
    double sum = 0;
    for (int64_t i = 0; i < o->count; i++)
        sum += o->pieces[i].squares;
    return sqrt(sum);
}

static void adam_piece(void *arguments, int64_t task, int thread)
{
    (void)thread;
    const cpl_optimizer *o = arguments;
    const cpl_config_optimizer *c = &o->t->optimizer;
    int64_t at = o->pieces[task].offset;
    o->engine->kernels->adam(o->pieces[task].n, o->gradients + at, o->scale, o->rate, (real)c->beta_1,
                             (real)c->beta_2, (real)c->epsilon, o->decay, o->values + at, o->first + at,
                             o->second + at);
}

static void sgd_piece(void *arguments, int64_t task, int thread)
{
    (void)thread;
    const cpl_optimizer *o = arguments;
    const cpl_kernels *k = o->engine->kernels;
    int64_t at = o->pieces[task].offset, n = o->pieces[task].n;
    real step = -o->rate * o->scale;
    if (!o->first) {
        k->axpy(n, step, o->gradients + at, o->values + at);
        return;
    }
    k->scale(n, (real)o->t->optimizer.momentum, o->first + at, o->first + at);
    k->axpy(n, step, o->gradients + at, o->first + at);
    k->axpy(n, 1, o->first + at, o->values + at);
}

void cpl_optimizer_update(cpl_optimizer *o, int64_t step, double rate, double norm)
{
    const cpl_config_optimizer *c = &o->t->optimizer;
    double limit = o->t->clip_norm, t = (double)step;
    o->scale = limit > 0 && norm > limit ? (real)(limit / norm) : 1;
    o->decay = c->name == CPL_OPTIMIZER_ADAMW ? (real)(rate * c->weight_decay) : 0;
    if (c->name == CPL_OPTIMIZER_SGD) {
        o->rate = (real)rate;
        cpl_pool_run(o->engine->pool, o->count, sgd_piece, o);
        return;
    }
    o->rate = (real)(rate * sqrt(1 - pow(c->beta_2, t)) / (1 - pow(c->beta_1, t)));
    cpl_pool_run(o->engine->pool, o->count, adam_piece, o);
}

real *cpl_optimizer_state(const cpl_optimizer *o, int i, const char **name)
{
    *name = i == 1 ? "v" : o->t->optimizer.name == CPL_OPTIMIZER_SGD ? "momentum" : "m";
    return i == 0 ? o->first : i == 1 ? o->second : NULL;
}
