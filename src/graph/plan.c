/* plan.c: life spans → offsets. Greedy by size: the largest piece first, each at the lowest place that is free
 * during its life (Pisarchyk and Lee 2020, "greedy by size"). */
#include "graph/plan.h"

#include <stdlib.h>
#include <string.h>
#include "base/error.h"

enum { ALIGNMENT = 64 };

typedef struct piece {
    size_t bytes, offset;
    int64_t first, last; /* calls; first > last: nothing */
} piece;

typedef struct planner {
    const cpl_graph *g;
    cpl_memory_plan *plan;
    piece *pieces;   /* values, then one workspace a call */
    int *buffer;     /* by value: the value whose piece it lives in (in-place chains) */
    size_t count;
} planner;

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int in_block(const cpl_graph *g, int value)
{
    return value >= 0 && g->values[value].storage == CPL_STORE_BLOCK;
}

static void live(planner *p, int value, int64_t at)
{
    if (!in_block(p->g, value))
        return;
    piece *x = &p->pieces[p->buffer[value]];
    x->first = at < x->first ? at : x->first;
    x->last = at > x->last ? at : x->last;
}

/* May the call write its first output over its first input? Only when nobody reads the input afterwards. */
static int can_share(const planner *p, size_t call, const int64_t *last_read)
{
    const cpl_graph *g = p->g;
    const cpl_call *c = &g->calls[call];
    if (c->backward || c->loop || !(c->op->flags & CPL_OP_IN_PLACE) || !in_block(g, c->in[0]) ||
        !in_block(g, c->out[0]))
        return 0;
    if (g->values[c->in[0]].input >= 0 || c->in[0] == g->seed || last_read[c->in[0]] > (int64_t)call)
        return 0;
    for (int k = 1; k < c->inputs; k++)
        if (c->in[k] == c->in[0])
            return 0;
    const cpl_type *a = &g->values[c->in[0]].type, *b = &g->values[c->out[0]].type;
    return cpl_type_bytes(a, &p->plan->capacity) == cpl_type_bytes(b, &p->plan->capacity);
}

static void reads(const cpl_call *c, int64_t at, int64_t *last_read)
{
    for (int k = 0; k < c->inputs; k++)
        if (cpl_call_reads_input(c, k))
            last_read[c->in[k]] = at;
    for (int k = 0; k < c->outputs; k++) {
        if (cpl_call_reads_output(c, k))
            last_read[c->out[k]] = at;
        if (c->backward && c->dout[k] >= 0)
            last_read[c->dout[k]] = at;
    }
}

/* A value lives from the call that writes it to the last that reads it. In a loop every step writes its part, so it
 * lives from the loop's first call to its last at least. */
static void written(planner *p, int value, size_t call, const int64_t *last_read)
{
    const cpl_graph *g = p->g;
    size_t first = call, last = call;
    if (g->calls[call].loop) {
        last = cpl_graph_loop_end(g, call);
        while (first > 0 && cpl_graph_loop_end(g, first - 1) == last && g->calls[first - 1].loop)
            first--;
    }
    live(p, value, (int64_t)first);
    live(p, value, (int64_t)last);
    if (last_read[value] > (int64_t)last)
        live(p, value, last_read[value]);
}

static cpl_status life_spans(planner *p, cpl_error *err)
{
    const cpl_graph *g = p->g;
    int64_t end = (int64_t)g->call_count;
    int64_t *last_read = cpl_alloc(g->value_count + 1, sizeof *last_read);
    if (!last_read)
        CPL_FAIL(err, CPL_FAILED, "out of memory while planning");
    for (size_t i = 0; i < g->call_count; i++)
        if (!g->calls[i].dead)
            reads(&g->calls[i], (int64_t)(g->calls[i].loop ? cpl_graph_loop_end(g, i) : i), last_read);
    for (size_t i = 0; i < g->output_count; i++)
        if (g->outputs[i].value >= 0)
            last_read[g->outputs[i].value] = end;
    if (g->loss >= 0)
        last_read[g->loss] = end;
    for (size_t v = 0; v < g->value_count; v++)
        p->buffer[v] = (int)v;
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        if (c->dead)
            continue;
        if (can_share(p, i, last_read))
            p->buffer[c->out[0]] = p->buffer[c->in[0]];
        for (int k = 0; k < c->outputs; k++)
            if (cpl_call_writes_output(c, k))
                written(p, c->out[k], i, last_read);
        for (int k = 0; k < c->inputs && c->backward; k++)
            if (c->din[k] >= 0)
                written(p, c->din[k], i, last_read);
    }
    if (g->seed >= 0) { /* written before the first call; inputs have buffers of their own */
        live(p, g->seed, -1);
        live(p, g->seed, last_read[g->seed]);
    }
    cpl_release(last_read);
    return CPL_OK;
}

static void sizes(planner *p, int threads)
{
    const cpl_graph *g = p->g;
    for (size_t v = 0; v < g->value_count; v++)
        p->pieces[v].bytes = aligned(cpl_type_bytes(&g->values[v].type, &p->plan->capacity));
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        piece *x = &p->pieces[g->value_count + i];
        if (c->dead)
            continue;
        cpl_size_context s;
        cpl_call_sizes(g, c, &p->plan->capacity, threads, &s);
        x->bytes = cpl_call_stage_bytes(g, c) + (c->op->workspace ? aligned(c->op->workspace(&s)) : 0);
        x->first = x->last = (int64_t)i;
    }
}

static int by_size(const void *a, const void *b)
{
    const piece *x = *(piece *const *)a, *y = *(piece *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y; /* a fixed order */
}

static int by_offset(const void *a, const void *b)
{
    const piece *x = *(piece *const *)a, *y = *(piece *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Places each piece at the lowest offset free of the placed ones whose lives meet its own. */
static size_t place(piece **order, size_t n, piece **meeting)
{
    size_t peak = 0;
    for (size_t i = 0; i < n; i++) {
        piece *x = order[i];
        size_t m = 0, at = 0;
        for (size_t j = 0; j < i; j++)
            if (order[j]->first <= x->last && x->first <= order[j]->last)
                meeting[m++] = order[j];
        qsort(meeting, m, sizeof *meeting, by_offset);
        for (size_t j = 0; j < m && meeting[j]->offset < at + x->bytes; j++)
            if (meeting[j]->offset + meeting[j]->bytes > at)
                at = meeting[j]->offset + meeting[j]->bytes;
        x->offset = at;
        peak = at + x->bytes > peak ? at + x->bytes : peak;
    }
    return peak;
}

static cpl_status lay_out(planner *p, cpl_error *err)
{
    piece **order = cpl_alloc(2 * p->count + 1, sizeof *order);
    if (!order)
        CPL_FAIL(err, CPL_FAILED, "out of memory while planning");
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->pieces[i].first <= p->pieces[i].last && p->pieces[i].bytes)
            order[n++] = &p->pieces[i];
    qsort(order, n, sizeof *order, by_size);
    p->plan->bytes = place(order, n, order + p->count);
    cpl_release(order);
    return CPL_OK;
}

static cpl_status make(planner *p, int threads, cpl_error *err)
{
    for (size_t i = 0; i < p->count; i++)
        p->pieces[i].first = INT64_MAX, p->pieces[i].last = INT64_MIN;
    sizes(p, threads);
    cpl_status status = life_spans(p, err);
    if (status == CPL_OK)
        status = lay_out(p, err);
    for (size_t v = 0; status == CPL_OK && v < p->g->value_count; v++)
        p->plan->offset[v] = p->pieces[p->buffer[v]].offset;
    for (size_t i = 0; status == CPL_OK && i < p->g->call_count; i++)
        p->plan->workspace[i] = p->pieces[p->g->value_count + i].offset;
    return status;
}

cpl_status cpl_plan_make(cpl_memory_plan *plan, const cpl_graph *g, const cpl_binding *capacity, int threads,
                         cpl_error *err)
{
    memset(plan, 0, sizeof *plan);
    plan->capacity = *capacity;
    planner p = {.g = g, .plan = plan, .count = g->value_count + g->call_count};
    p.pieces = cpl_alloc(p.count + 1, sizeof *p.pieces);
    p.buffer = cpl_alloc(g->value_count + 1, sizeof *p.buffer);
    plan->offset = cpl_alloc(g->value_count + 1, sizeof *plan->offset);
    plan->workspace = cpl_alloc(g->call_count + 1, sizeof *plan->workspace);
    cpl_status status = CPL_FAILED;
    if (p.pieces && p.buffer && plan->offset && plan->workspace)
        status = make(&p, threads, err);
    else
        cpl_error_set(err, CPL_FAILED, "out of memory while planning");
    cpl_release(p.pieces);
    cpl_release(p.buffer);
    if (status != CPL_OK)
        cpl_plan_free(plan);
    return status;
}

void cpl_plan_free(cpl_memory_plan *plan)
{
    cpl_release(plan->offset);
    cpl_release(plan->workspace);
    memset(plan, 0, sizeof *plan);
}
