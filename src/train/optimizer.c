/* optimizer.c: one update of all parameters, dealt to the threads in pieces of a fixed size.
 *
 * Adam (Kingma and Ba 2015, in Keras's form with epsilon outside):
 *   m = b1 m + (1−b1) g;  v = b2 v + (1−b2) g²;  w −= lr √(1−b2ᵗ)/(1−b1ᵗ) m / (√v + ε)
 * AdamW (Loshchilov and Hutter 2019) also takes lr · weight_decay · w. Momentum: m = µ m − lr g; w += m.
 *
 * A gradient is clipped in one of three ways (case G06): all tensors by the same factor (clip_norm), each tensor by its
 * own (clip_tensor_norm), or each element (clip_value).
 *
 * With sparse_embeddings a row of an embedding whose gradient is zero keeps weights and state (LazyAdam of TensorFlow
 * Addons, torch's SparseAdam): most rows of a large vocabulary, so that of 28 bytes an element 4 are read. */
#include "train/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* A piece of one parameter: where it stands in the block of values, and in those of gradients and state. */
typedef struct piece {
    int64_t offset, slot, n;
    size_t tensor;  /* the parameter's number */
    int64_t row;    /* of a sparse table: elements of a row; else 0 */
    int64_t begin, end; /* what it updates, from its offset: the piece, or the rows that begin in it, whole */
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

int cpl_optimizer_sparse(const cpl_config_training *t, const cpl_parameter_info *info)
{
    return t->optimizer.sparse_embeddings && cpl_optimizer_changes(info) && info->rank == 2 &&
           info->read_as == CPL_READ_ROWS && !info->projects;
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

/* The first border of rows at or after `at`. */
static int64_t next_row(int64_t at, int64_t row)
{
    return (at + row - 1) / row * row;
}

/* The pieces, and so the bits of the norm, are the same with sparse tables. There each updates the rows that begin in
 * it: none where a row is longer than a piece. */
static piece make_piece(const cpl_config_training *t, const cpl_parameter_info *info, int64_t from)
{
    int64_t n = info->elements - from < CPL_CHUNK ? info->elements - from : CPL_CHUNK;
    piece c = {.offset = info->offset + from, .slot = info->slot + from, .n = n, .end = n};
    if (cpl_optimizer_sparse(t, info)) {
        c.row = info->size[1];
        c.begin = next_row(from, c.row) - from;
        c.end = next_row(from + n, c.row) - from;
    }
    return c;
}

static int64_t cut(const cpl_config_training *t, const cpl_parameters *p, piece *pieces)
{
    int64_t count = 0;
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(p, i);
        if (!cpl_optimizer_changes(info))
            continue;
        for (int64_t from = 0; from < info->elements; from += CPL_CHUNK, count++) {
            if (!pieces)
                continue;
            pieces[count] = make_piece(t, info, from);
            pieces[count].tensor = i;
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
    o->count = cut(o->t, p, NULL);
    o->pieces = cpl_alloc((size_t)o->count + 1, sizeof *o->pieces);
    o->slots = cpl_alloc(o->parameters + 1, sizeof *o->slots);
    o->first = kept > 0 ? state_block(bytes) : NULL;
    o->second = kept > 1 ? state_block(bytes) : NULL;
    if (!o->pieces || !o->slots || (kept > 0 && !o->first) || (kept > 1 && !o->second))
        CPL_FAIL(err, CPL_FAILED, "no memory for the optimizer's state of %zu bytes",
                 cpl_optimizer_state_bytes(o->t, p));
    cut(o->t, p, o->pieces);
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
static void cut_values(const cpl_optimizer *o, int64_t n, real *g)
{
    real most = (real)o->t->clip_value;
    for (int64_t i = 0; i < n && most > 0; i++)
        g[i] = g[i] > most ? most : g[i] < -most ? -most : g[i];
}

/* ---- the update ---- */

/* n elements of a piece, from its element `from` on. */
static void update_span(const cpl_optimizer *o, const piece *c, int64_t from, int64_t n)
{
    const cpl_config_optimizer *options = &o->t->optimizer;
    const cpl_kernels *k = o->engine->kernels;
    int64_t slot = c->slot + from;
    real *w = o->values + c->offset + from, *g = o->gradients + slot, step = -o->rate * c->scale;
    cut_values(o, n, g);
    if (options->name != CPL_OPTIMIZER_SGD) {
        k->adam(n, g, c->scale, o->rate, (real)options->beta_1, (real)options->beta_2, (real)options->epsilon,
                o->decay, w, o->first + slot, o->second + slot);
        return;
    }
    if (!o->first) {
        k->axpy(n, step, g, w);
        return;
    }
    k->scale(n, (real)options->momentum, o->first + slot, o->first + slot);
    k->axpy(n, step, g, o->first + slot);
    k->axpy(n, 1, o->first + slot, w);
}

/* NaN counts: it must reach the weights as it does in a dense update. Stretches of 32 are looked at without a branch,
 * which the compiler turns into vectors; a row with a gradient mostly shows it in the first. */
static int has_gradient(const real *g, int64_t n)
{
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        int any = 0;
        for (int k = 0; k < 32; k++)
            any |= g[i + k] != 0;
        if (any)
            return 1;
    }
    for (; i < n; i++)
        if (g[i] != 0)
            return 1;
    return 0;
}

/* Rows with a gradient that stand side by side are updated together. */
static void update_rows(const cpl_optimizer *o, const piece *c)
{
    const real *g = o->gradients + c->slot;
    for (int64_t from = c->begin, to; from < c->end; from = to + c->row) {
        for (to = from; to < c->end && has_gradient(g + to, c->row);)
            to += c->row;
        if (to > from)
            update_span(o, c, from, to - from);
    }
}

static void update_piece(void *arguments, int64_t task, int thread)
{
    (void)thread;
    const cpl_optimizer *o = arguments;
    const piece *c = &o->pieces[task];
    if (c->row > 0)
        update_rows(o, c);
    else
        update_span(o, c, c->begin, c->end - c->begin);
}

void cpl_optimizer_update(cpl_optimizer *o, int64_t step, double rate, double norm)
{
    const cpl_config_optimizer *c = &o->t->optimizer;
    double t = (double)step;
    find_scales(o, norm);
    o->decay = c->name == CPL_OPTIMIZER_ADAMW ? (real)(rate * c->weight_decay) : 0;
    o->rate = c->name == CPL_OPTIMIZER_SGD ? (real)rate
                                           : (real)(rate * sqrt(1 - pow(c->beta_2, t)) / (1 - pow(c->beta_1, t)));
    cpl_pool_run(o->engine->pool, o->count, update_piece, o);
}

real *cpl_optimizer_state(const cpl_optimizer *o, int i, const char **name)
{
    *name = i == 1 ? "v" : o->t->optimizer.name == CPL_OPTIMIZER_SGD ? "momentum" : "m";
    return i == 0 ? o->first : i == 1 ? o->second : NULL;
}
