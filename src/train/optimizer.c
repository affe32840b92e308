/* optimizer.c: one update of all parameters, dealt to the threads in pieces of a fixed size.
 *
 * Adam (Kingma and Ba 2015, in Keras's form with epsilon outside):
 *   m = b1 m + (1−b1) g;  v = b2 v + (1−b2) g²;  w −= lr √(1−b2ᵗ)/(1−b1ᵗ) m / (√v + ε)
 * AdamW (Loshchilov and Hutter 2019) also takes lr · weight_decay · w. Momentum: m = µ m − lr g; w += m.
 *
 * A gradient is clipped in one of three ways (case G06): all tensors by the same factor (clip_norm), each tensor by its
 * own (clip_tensor_norm), or each element (clip_value). */
#include "train/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* A piece of one parameter: where it stands in the block of values, and in those of gradients and state. */
typedef struct piece {
    int64_t offset, slot, n;
    size_t tensor;  /* the parameter's number */
    double squares; /* Σ g² of the piece, for the norm */
    real scale;     /* of its gradient in the update that runs */
} piece;

struct cpl_optimizer {
    const cpl_config_training *t;
    cpl_engine *engine;
    real *values;
    real *gradients;
    real *first, *second; /* m or momentum; v */
    piece *pieces;
    int64_t count;
    int64_t *slots; /* by parameter, of the layout that the state has; −1: no state */
    size_t parameters;
    int64_t layout;
    /* Of the update that runs. */
    real rate, decay;
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
    return (size_t)states(t) * cpl_parameters_gradient_bytes(p);
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
                pieces[count] = (piece){.offset = info->offset + from, .slot = info->slot + from, .n = n, .tensor = i};
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

/* What is laid out by the parameters' slots as they are now: pieces, and state of zeros. */
static cpl_status lay_out(cpl_optimizer *o, cpl_error *err)
{
    const cpl_parameters *p = o->engine->parameters;
    size_t bytes = cpl_parameters_gradient_bytes(p);
    int kept = states(o->t);
    o->parameters = cpl_parameters_count(p);
    o->layout = cpl_parameters_layout(p);
    o->values = cpl_parameters_values(p);
    o->count = cut(p, NULL);
    o->pieces = cpl_alloc((size_t)o->count + 1, sizeof *o->pieces);
    o->slots = cpl_alloc(o->parameters + 1, sizeof *o->slots);
    o->first = kept > 0 ? state_block(bytes) : NULL;
    o->second = kept > 1 ? state_block(bytes) : NULL;
    if (!o->pieces || !o->slots || (kept > 0 && !o->first) || (kept > 1 && !o->second))
        CPL_FAIL(err, CPL_FAILED, "no memory for the optimizer's state of %zu bytes",
                 cpl_optimizer_state_bytes(o->t, p));
    cut(p, o->pieces);
    for (size_t i = 0; i < o->parameters; i++)
        o->slots[i] = cpl_parameters_at(p, i)->slot;
    return CPL_OK;
}

static void free_layout(cpl_optimizer *o)
{
    cpl_release(o->pieces);
    cpl_release(o->slots);
    cpl_release(o->first);
    cpl_release(o->second);
}

cpl_status cpl_optimizer_new(cpl_optimizer **out, const cpl_config_training *t, cpl_engine *engine,
                             real *gradients, cpl_error *err)
{
    cpl_optimizer *o = cpl_alloc(1, sizeof *o);
    *out = NULL;
    if (!o)
        CPL_FAIL(err, CPL_FAILED, "no memory for the optimizer");
    o->t = t;
    o->engine = engine;
    o->gradients = gradients;
    cpl_status status = lay_out(o, err);
    if (status != CPL_OK) {
        cpl_optimizer_free(o);
        return status;
    }
    *out = o;
    return CPL_OK;
}

/* State follows what stays trainable; the state of what is frozen is gone, that of what is thawed begins at zero. */
cpl_status cpl_optimizer_follow(cpl_optimizer *o, real *gradients, cpl_error *err)
{
    const cpl_parameters *p = o->engine->parameters;
    cpl_optimizer old = *o;
    o->gradients = gradients;
    if (o->layout == cpl_parameters_layout(p) && o->parameters == cpl_parameters_count(p))
        return CPL_OK;
    cpl_status status = lay_out(o, err);
    if (status != CPL_OK) {
        free_layout(o);
        *o = old;
        return status;
    }
    for (size_t i = 0; i < old.parameters && i < o->parameters; i++) {
        size_t bytes = (size_t)cpl_parameters_at(p, i)->elements * sizeof(real);
        if (old.slots[i] < 0 || o->slots[i] < 0)
            continue;
        if (o->first)
            memcpy(o->first + o->slots[i], old.first + old.slots[i], bytes);
        if (o->second)
            memcpy(o->second + o->slots[i], old.second + old.slots[i], bytes);
    }
    free_layout(&old);
    return CPL_OK;
}

void cpl_optimizer_free(cpl_optimizer *o)
{
    if (!o)
        return;
    free_layout(o);
    cpl_release(o);
}

/* Four running sums: a fixed order that the processor can still overlap. */
static void square_piece(void *arguments, int64_t task, int thread)
{
    (void)thread;
    cpl_optimizer *o = arguments;
    piece *c = &o->pieces[task];
    const real *g = o->gradients + c->slot;
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

/* ---- clipping ---- */

int cpl_optimizer_needs_norm(const cpl_config_training *t)
{
    return t->clip_norm > 0 || t->clip_tensor_norm > 0;
}

static double factor(double limit, double norm)
{
    return limit > 0 && norm > limit ? limit / norm : 1;
}

/* The pieces of a tensor stand side by side. */
static void scale_tensors(cpl_optimizer *o)
{
    for (int64_t from = 0, to; from < o->count; from = to) {
        double squares = 0;
        for (to = from; to < o->count && o->pieces[to].tensor == o->pieces[from].tensor; to++)
            squares += o->pieces[to].squares;
        real scale = (real)factor(o->t->clip_tensor_norm, sqrt(squares));
        for (int64_t i = from; i < to; i++)
            o->pieces[i].scale = scale;
    }
}

static void find_scales(cpl_optimizer *o, double norm)
{
    real scale = (real)factor(o->t->clip_norm, norm);
    for (int64_t i = 0; i < o->count; i++)
        o->pieces[i].scale = scale;
    if (o->t->clip_tensor_norm > 0)
        scale_tensors(o);
}

/* A NaN stays one. */
static void cut_values(const cpl_optimizer *o, const piece *c)
{
    real most = (real)o->t->clip_value, *g = o->gradients + c->slot;
    for (int64_t i = 0; i < c->n && most > 0; i++)
        g[i] = g[i] > most ? most : g[i] < -most ? -most : g[i];
}

/* ---- the update ---- */

static void adam_piece(void *arguments, int64_t task, int thread)
{
    (void)thread;
    const cpl_optimizer *o = arguments;
    const cpl_config_optimizer *c = &o->t->optimizer;
    int64_t at = o->pieces[task].offset, slot = o->pieces[task].slot;
    cut_values(o, &o->pieces[task]);
    o->engine->kernels->adam(o->pieces[task].n, o->gradients + slot, o->pieces[task].scale, o->rate, (real)c->beta_1,
                             (real)c->beta_2, (real)c->epsilon, o->decay, o->values + at, o->first + slot,
                             o->second + slot);
}

static void sgd_piece(void *arguments, int64_t task, int thread)
{
    (void)thread;
    const cpl_optimizer *o = arguments;
    const cpl_kernels *k = o->engine->kernels;
    int64_t at = o->pieces[task].offset, slot = o->pieces[task].slot, n = o->pieces[task].n;
    real step = -o->rate * o->pieces[task].scale;
    cut_values(o, &o->pieces[task]);
    if (!o->first) {
        k->axpy(n, step, o->gradients + slot, o->values + at);
        return;
    }
    k->scale(n, (real)o->t->optimizer.momentum, o->first + slot, o->first + slot);
    k->axpy(n, step, o->gradients + slot, o->first + slot);
    k->axpy(n, 1, o->first + slot, o->values + at);
}

void cpl_optimizer_update(cpl_optimizer *o, int64_t step, double rate, double norm)
{
    const cpl_config_optimizer *c = &o->t->optimizer;
    double t = (double)step;
    find_scales(o, norm);
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
