/* average.c: a = d·a + (1−d)·w after each update, with d = min(ema, (1+t)/(10+t)) in update t.
 *
 * The ramp is TensorFlow's (num_updates): with a fixed decay of 0.999 the average of a short run would be mostly the
 * random weights of the start. */
#include "train/average.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/optimizer.h"

struct cpl_average {
    const cpl_config_training *t;
    cpl_engine *engine;
    real *block;
};

size_t cpl_average_bytes(const cpl_config_training *t, const cpl_parameters *p)
{
    return t->ema > 0 ? cpl_parameters_gradient_bytes(p) : 0;
}

/* One parameter at a time, in chunks over the pool. */
typedef struct work {
    real *weights, *average;
    int64_t n;
    real share; /* of the weights in the average */
} work;

static void each_parameter(const cpl_average *a, cpl_task task, real share)
{
    const cpl_parameters *p = a->engine->parameters;
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(p, i);
        if (!cpl_optimizer_changes(info))
            continue;
        work w = {cpl_parameters_values(p) + info->offset, a->block + info->slot, info->elements, share};
        cpl_pool_run(a->engine->pool, cpl_chunks(w.n), task, &w);
    }
}

static void mix_chunk(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    int64_t end = (task + 1) * CPL_CHUNK < w->n ? (task + 1) * CPL_CHUNK : w->n;
    (void)thread;
    for (int64_t i = task * CPL_CHUNK; i < end; i++)
        w->average[i] += w->share * (w->weights[i] - w->average[i]);
}

static void swap_chunk(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    int64_t end = (task + 1) * CPL_CHUNK < w->n ? (task + 1) * CPL_CHUNK : w->n;
    (void)thread;
    for (int64_t i = task * CPL_CHUNK; i < end; i++) {
        real weight = w->weights[i];
        w->weights[i] = w->average[i];
        w->average[i] = weight;
    }
}

static void copy_chunk(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    int64_t from = task * CPL_CHUNK, n = w->n - from < CPL_CHUNK ? w->n - from : CPL_CHUNK;
    (void)thread;
    memcpy(w->average + from, w->weights + from, (size_t)n * sizeof(real));
}

cpl_status cpl_average_new(cpl_average **out, const cpl_config_training *t, cpl_engine *engine, cpl_error *err)
{
    cpl_average *a = cpl_alloc(1, sizeof *a);
    size_t bytes = cpl_parameters_gradient_bytes(engine->parameters);
    *out = NULL;
    if (a)
        a->block = cpl_alloc_aligned(bytes + 64, 64);
    if (!a || !a->block) {
        cpl_average_free(a);
        CPL_FAIL(err, CPL_FAILED, "no memory for the average of the weights, %zu bytes", bytes);
    }
    a->t = t;
    a->engine = engine;
    memset(a->block, 0, bytes); /* the gaps between parameters too */
    each_parameter(a, copy_chunk, 0);
    *out = a;
    return CPL_OK;
}

void cpl_average_free(cpl_average *a)
{
    if (!a)
        return;
    cpl_release(a->block);
    cpl_release(a);
}

void cpl_average_update(cpl_average *a, int64_t step)
{
    double t = (double)step, decay = fmin(a->t->ema, (1 + t) / (10 + t));
    each_parameter(a, mix_chunk, (real)(1 - decay));
}

void cpl_average_swap(cpl_average *a)
{
    each_parameter(a, swap_chunk, 0);
}

real *cpl_average_block(const cpl_average *a)
{
    return a->block;
}
