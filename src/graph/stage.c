/* stage.c: one gradient from the runs of several parts of a batch, without a second block of gradients.
 *
 * A call that writes the gradient of a parameter writes to a stage beside its workspace; from there it is added to the
 * gradient block at once, weighted. The stage lives as long as the call, so its cost is that of the largest gradient
 * (the plan knows), and mostly none: at the end of a backward run most activations are gone. A loss, which runs when
 * all of them are there, adds to the gradient block itself. */
#include "graph/program.h"

enum { ALIGNMENT = 64 };

uint32_t cpl_call_adds(const cpl_graph *g, const cpl_call *c)
{
    uint32_t adds = c->backward || !c->differentiated ? 0 : c->op->adds;
    for (int k = 0; k < c->outputs; k++)
        if ((adds >> k & 1) && c->out[k] >= 0 && g->values[c->out[k]].storage != CPL_STORE_GRADIENT)
            return 0; /* summed with others first, or wanted for itself */
    return adds;
}

/* Gradients that a call writes and does not add itself: values into list. */
static int written(const cpl_graph *g, const cpl_call *c, int list[CPL_MAX_INPUTS + CPL_MAX_OUTPUTS])
{
    uint32_t adds = cpl_call_adds(g, c);
    int n = 0;
    for (int k = 0; k < c->outputs; k++)
        if (c->out[k] >= 0 && !(adds >> k & 1) && cpl_call_writes_output(c, k) &&
            g->values[c->out[k]].storage == CPL_STORE_GRADIENT)
            list[n++] = c->out[k];
    for (int k = 0; k < c->inputs && c->backward; k++)
        if (c->din[k] >= 0 && g->values[c->din[k]].storage == CPL_STORE_GRADIENT)
            list[n++] = c->din[k];
    return n;
}

static size_t bytes_of(const cpl_graph *g, int value)
{
    const cpl_parameter_info *info = cpl_parameters_at(g->parameters, (size_t)g->values[value].parameter);
    return ((size_t)info->elements * sizeof(real) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t cpl_call_stage_bytes(const cpl_graph *g, const cpl_call *c)
{
    int list[CPL_MAX_INPUTS + CPL_MAX_OUTPUTS], n = g->staged && !c->dead ? written(g, c, list) : 0;
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += bytes_of(g, list[i]);
    return bytes;
}

/* Points every tensor of the value at data. */
static void redirect(cpl_run_context *r, const cpl_call *c, int value, real *data)
{
    for (int k = 0; k < c->outputs; k++)
        if (c->out[k] == value)
            r->out[k].data = data;
    for (int k = 0; k < c->inputs && c->backward; k++)
        if (c->din[k] == value)
            r->din[k].data = data;
}

void cpl_program_stage(cpl_program *p, const cpl_graph *g, const cpl_call *c, uint8_t *stage)
{
    int list[CPL_MAX_INPUTS + CPL_MAX_OUTPUTS], n = written(g, c, list);
    for (int i = 0; i < n; i++) {
        redirect(&p->context, c, list[i], (real *)(void *)stage);
        stage += bytes_of(g, list[i]);
    }
}

typedef struct adding {
    const cpl_kernels *kernels;
    const real *from;
    real *to;
    int64_t n;
    real by;
    int first;
} adding;

static void add_chunk(void *arguments, int64_t task, int thread)
{
    const adding *a = arguments;
    int64_t at = task * CPL_CHUNK, n = a->n - at < CPL_CHUNK ? a->n - at : CPL_CHUNK;
    (void)thread;
    if (a->first)
        a->kernels->scale(n, a->by, a->from + at, a->to + at);
    else
        a->kernels->axpy(n, a->by, a->from + at, a->to + at);
}

void cpl_program_unstage(cpl_program *p, const cpl_graph *g, const cpl_call *c, const uint8_t *stage)
{
    int list[CPL_MAX_INPUTS + CPL_MAX_OUTPUTS], n = written(g, c, list);
    for (int i = 0; i < n; i++) {
        const cpl_parameter_info *info = cpl_parameters_at(g->parameters, (size_t)g->values[list[i]].parameter);
        adding a = {.kernels = p->engine->kernels, .from = (const real *)(const void *)stage,
                    .to = p->gradients + info->slot, .n = info->elements, .by = (real)p->part.weight,
                    .first = p->part.first};
        cpl_run_tasks(&p->context, cpl_chunks(a.n), add_chunk, &a);
        stage += bytes_of(g, list[i]);
    }
}

void cpl_program_stage_gradients(cpl_program *p, int on)
{
    if (p->schedule[CPL_TRAIN].graph)
        p->schedule[CPL_TRAIN].graph->staged = on;
}
