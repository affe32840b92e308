/* profile.c: meters around the calls of a program.
 *
 * The caller's thread owns all of it but what the pool's threads did. Each of those adds to a counter of its own before
 * it reports its tasks, so when a run of the pool is over, the caller sees what belongs to it. The same order lets
 * them read which call they worked for. */
#include "graph/profile.h"

#include <math.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

/* A line of the cache for each thread: they count at the same time. */
typedef struct counter {
    _Alignas(64) int64_t ns;
} counter;

/* What the pool's threads work for. */
typedef struct work {
    const char *name, *kind, *op;
} work;

struct cpl_profile {
    cpl_program *program;
    cpl_trace *trace;
    int threads, tracing;
    counter *counters;          /* by thread; 0: what the caller waited */
    cpl_profile_row *rows[CPL_MODES];
    size_t row_count[CPL_MODES];
    size_t turns[CPL_MODES];    /* the call with which the backward pass begins, or row_count */
    cpl_meter side[CPL_MODES][2];
    work work;
    /* the run */
    cpl_mode mode;
    cpl_meter run, turn, call;  /* when it began, turned backward, and began its present call */
    int turned;
};

static const char *const side_name[CPL_MODES][2] = {
    [CPL_EVALUATE] = {"forward", "forward"}, [CPL_TRAIN] = {"forward", "backward"}};

/* ---- making ---- */

static void watch(void *user, int thread, int64_t from, int64_t to)
{
    cpl_profile *f = user;
    f->counters[thread].ns += to - from;
    if (thread == 0 || !f->work.name || !f->tracing || !f->trace)
        return;
    cpl_trace_add(f->trace, &(cpl_span){.name = f->work.name, .kind = f->work.kind, .op = f->work.op, .number = -1,
                                        .begun = from, .ended = to, .thread = thread});
}

static size_t calls_of(const cpl_program *p, int mode)
{
    return p->schedule[mode].graph ? p->schedule[mode].graph->call_count : 0;
}

static size_t turn_of(const cpl_program *p, int mode)
{
    const cpl_graph *g = p->schedule[mode].graph;
    size_t i = 0;
    while (i < calls_of(p, mode) && (g->calls[i].dead || !(g->calls[i].backward || g->calls[i].again)))
        i++;
    return i;
}

cpl_status cpl_profile_new(cpl_profile **out, cpl_program *p, cpl_trace *trace, cpl_error *err)
{
    cpl_profile *f = cpl_alloc(1, sizeof *f);
    int ok = f != NULL;
    *out = NULL;
    if (ok) {
        f->program = p;
        f->trace = trace;
        f->threads = p->engine->threads;
        f->counters = cpl_alloc_aligned((size_t)f->threads * sizeof *f->counters, 64);
        ok = f->counters != NULL;
    }
    for (int m = 0; ok && m < CPL_MODES; m++) {
        f->row_count[m] = calls_of(p, m);
        f->turns[m] = turn_of(p, m);
        f->rows[m] = cpl_alloc(f->row_count[m] + 1, sizeof *f->rows[m]);
        ok = f->rows[m] != NULL;
    }
    if (!ok) {
        cpl_profile_free(f);
        CPL_FAIL(err, CPL_FAILED, "no memory for a profile of '%s'", p->name);
    }
    p->profile = f;
    cpl_pool_watch(p->engine->pool, watch, f);
    *out = f;
    return CPL_OK;
}

void cpl_profile_free(cpl_profile *f)
{
    if (!f)
        return;
    if (f->program->profile == f) {
        cpl_pool_watch(f->program->engine->pool, NULL, NULL);
        f->program->profile = NULL;
    }
    for (int m = 0; m < CPL_MODES; m++)
        cpl_release(f->rows[m]);
    cpl_release(f->counters);
    cpl_release(f);
}

size_t cpl_profile_bytes(const cpl_program *p)
{
    size_t rows = 0;
    for (int m = 0; m < CPL_MODES; m++)
        rows += calls_of(p, m) + 1;
    return sizeof(cpl_profile) + rows * sizeof(cpl_profile_row) + (size_t)p->engine->threads * sizeof(counter);
}

void cpl_profile_set_tracing(cpl_profile *f, int on)
{
    f->tracing = on;
}

void cpl_profile_set_work(cpl_profile *f, const char *name)
{
    f->work = (work){.name = name, .kind = "phase"};
}

/* ---- meters ---- */

cpl_meter cpl_profile_now(const cpl_profile *f)
{
    cpl_meter m = {.ns = cpl_clock_ns(), .waited = f->counters[0].ns};
    for (int i = 1; i < f->threads; i++)
        m.helped += f->counters[i].ns;
    return m;
}

void cpl_meter_add(cpl_meter *m, const cpl_meter *begun, const cpl_meter *ended)
{
    m->count++;
    m->ns += ended->ns - begun->ns;
    m->helped += ended->helped - begun->helped;
    m->waited += ended->waited - begun->waited;
}

void cpl_profile_row_add(cpl_profile_row *to, const cpl_profile_row *row)
{
    to->meter.count += row->meter.count;
    to->meter.ns += row->meter.ns;
    to->meter.helped += row->meter.helped;
    to->meter.waited += row->meter.waited;
    to->flops += row->flops;
}

double cpl_meter_busy(const cpl_meter *m, int threads)
{
    if (m->ns <= 0)
        return (double)NAN;
    double share = (double)(m->ns - m->waited + m->helped) / ((double)m->ns * threads);
    return share > 1 ? 1 : share;
}

const cpl_profile_row *cpl_profile_row_at(const cpl_profile *f, cpl_mode mode, size_t i)
{
    return i < f->row_count[mode] ? &f->rows[mode][i] : NULL;
}

/* What sums gradients up is a call in forward form, behind the first backward one. */
const char *cpl_profile_pass(const cpl_profile *f, cpl_mode mode, size_t i)
{
    if (f->program->schedule[mode].graph->calls[i].again)
        return "again";
    return i >= f->turns[mode] ? "backward" : "forward";
}

const cpl_meter *cpl_profile_side(const cpl_profile *f, cpl_mode mode, int backward)
{
    return &f->side[mode][backward];
}

/* ---- a run ---- */

static void add_span(const cpl_profile *f, const work *w, int64_t begun, int64_t ended)
{
    if (f->tracing && f->trace)
        cpl_trace_add(f->trace, &(cpl_span){.name = w->name, .kind = w->kind, .op = w->op, .number = -1,
                                            .begun = begun, .ended = ended});
}

void cpl_profile_run_begin(cpl_profile *f, cpl_mode mode)
{
    f->mode = mode;
    f->turned = 0;
    f->run = cpl_profile_now(f);
}

static void add_side(cpl_profile *f, int backward, const cpl_meter *begun, const cpl_meter *ended)
{
    work w = {.name = side_name[f->mode][backward], .kind = "phase"};
    cpl_meter_add(&f->side[f->mode][backward], begun, ended);
    add_span(f, &w, begun->ns, ended->ns);
}

void cpl_profile_run_end(cpl_profile *f)
{
    cpl_meter now = cpl_profile_now(f);
    add_side(f, 0, &f->run, f->turned ? &f->turn : &now);
    if (f->turned)
        add_side(f, 1, &f->turn, &now);
}

void cpl_profile_call_begin(cpl_profile *f, size_t index)
{
    const cpl_call *c = &f->program->schedule[f->mode].graph->calls[index];
    f->call = cpl_profile_now(f);
    if (!f->turned && index >= f->turns[f->mode]) {
        f->turned = 1;
        f->turn = f->call;
    }
    f->work = (work){.name = c->path ? c->path : c->op->name, .kind = cpl_profile_pass(f, f->mode, index),
                     .op = c->op->name};
}

void cpl_profile_call_end(cpl_profile *f, size_t index)
{
    const cpl_program *p = f->program;
    const cpl_graph *g = p->schedule[f->mode].graph;
    cpl_profile_row *row = &f->rows[f->mode][index];
    cpl_meter now = cpl_profile_now(f);
    cpl_meter_add(&row->meter, &f->call, &now);
    row->flops += cpl_call_flops(g, &g->calls[index], &p->binding, f->threads);
    add_span(f, &f->work, f->call.ns, now.ns);
    f->work = (work){0};
}
