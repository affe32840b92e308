/* profile.c: the phases of a training run, and its trace. */
#include "train/profile.h"

#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "train/trainer.h"

static const struct {
    const char *name;
    int computes;
} phases[CPL_PHASES + 1] = {
    [CPL_PHASE_DATA] = {"data", 0},           [CPL_PHASE_SAMPLING] = {"sampling", 1},
    [CPL_PHASE_FEED] = {"feed", 0},           [CPL_PHASE_FORWARD] = {"forward", 1},
    [CPL_PHASE_BACKWARD] = {"backward", 1},   [CPL_PHASE_OPTIMIZER] = {"optimizer", 1},
    [CPL_PHASE_VALIDATION] = {"validation", 1}, [CPL_PHASE_EXAMPLES] = {"examples", 1},
    [CPL_PHASE_SAVING] = {"saving", 0},       [CPL_PHASES] = {"other", 0}};

const char *cpl_phase_name(cpl_phase phase)
{
    return phases[phase].name;
}

int cpl_phase_computes(cpl_phase phase)
{
    return phases[phase].computes;
}

/* Of all threads of the process. */
static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- making ---- */

/* Called by the batcher's thread. */
static void watch_batcher(void *user, int64_t pass, int64_t from, int64_t to)
{
    const cpl_train_profile *f = user;
    cpl_trace_add(f->trace, &(cpl_span){.name = "order of pass", .kind = "data", .number = pass, .begun = from,
                                        .ended = to, .thread = f->threads});
}

cpl_status cpl_train_profile_new(cpl_train_profile **out, cpl_trainer *t, cpl_error *err)
{
    cpl_train_profile *f = cpl_alloc(1, sizeof *f);
    cpl_status status = f ? CPL_OK : cpl_error_set(err, CPL_FAILED, "no memory for a profile");
    *out = NULL;
    if (status == CPL_OK)
        status = cpl_trace_new(&f->trace, CPL_TRACE_ROOM, err);
    if (status == CPL_OK)
        status = cpl_profile_new(&f->calls, t->program, f->trace, err);
    if (status != CPL_OK) {
        cpl_train_profile_free(f);
        return status;
    }
    f->threads = t->program->engine->threads;
    f->batcher = t->train;
    cpl_batcher_watch(f->batcher, watch_batcher, f);
    f->processor_begun = processor_seconds();
    f->begun = cpl_clock_ns();
    *out = f;
    return CPL_OK;
}

void cpl_train_profile_free(cpl_train_profile *f)
{
    if (!f)
        return;
    if (f->batcher)
        cpl_batcher_watch(f->batcher, NULL, NULL);
    cpl_profile_free(f->calls);
    cpl_trace_free(f->trace);
    cpl_release(f);
}

uint64_t cpl_train_profile_bytes(const cpl_program *p)
{
    return sizeof(cpl_train_profile) + cpl_trace_bytes(CPL_TRACE_ROOM) + cpl_profile_bytes(p);
}

/* ---- measuring ---- */

static void set_tracing(cpl_train_profile *f, int on)
{
    f->tracing = on;
    cpl_profile_set_tracing(f->calls, on);
}

cpl_meter cpl_phase_begin(cpl_train_profile *f, cpl_phase phase)
{
    if (!f)
        return (cpl_meter){0};
    if (f->depth++ == 0)
        cpl_profile_set_work(f->calls, phases[phase].name);
    return cpl_profile_now(f->calls);
}

void cpl_phase_end(cpl_train_profile *f, cpl_phase phase, const cpl_meter *begun)
{
    if (!f)
        return;
    cpl_meter now = cpl_profile_now(f->calls);
    int outermost = --f->depth == 0;
    if (f->tracing || (outermost && !f->in_step))
        cpl_trace_add(f->trace, &(cpl_span){.name = phases[phase].name, .kind = "phase", .number = -1,
                                            .begun = begun->ns, .ended = now.ns});
    if (!outermost)
        return;
    cpl_meter_add(&f->phase[phase], begun, &now);
    cpl_profile_set_work(f->calls, NULL);
    if (!f->in_step)
        set_tracing(f, 0);
}

cpl_meter cpl_profile_step_begin(cpl_train_profile *f)
{
    if (!f)
        return (cpl_meter){0};
    f->in_step = 1;
    set_tracing(f, f->steps.count < CPL_TRACED_STEPS);
    return cpl_profile_now(f->calls);
}

void cpl_profile_step_end(cpl_train_profile *f, const cpl_meter *begun, int64_t step)
{
    if (!f)
        return;
    cpl_meter now = cpl_profile_now(f->calls);
    cpl_meter_add(&f->steps, begun, &now);
    if (f->tracing)
        cpl_trace_add(f->trace, &(cpl_span){.name = "step", .kind = "step", .number = step, .begun = begun->ns,
                                            .ended = now.ns});
    f->in_step = 0;
    set_tracing(f, 0);
}

void cpl_profile_validation_batch(cpl_train_profile *f)
{
    if (f)
        set_tracing(f, f->batches++ < CPL_TRACED_BATCHES);
}

/* ---- what was measured ---- */

cpl_meter cpl_train_profile_phase(const cpl_train_profile *f, cpl_phase phase)
{
    if (phase == CPL_PHASE_FORWARD || phase == CPL_PHASE_BACKWARD)
        return *cpl_profile_side(f->calls, CPL_TRAIN, phase == CPL_PHASE_BACKWARD);
    if (phase != CPL_PHASES)
        return f->phase[phase];
    cpl_meter rest = {.ns = (f->ended ? f->ended : cpl_clock_ns()) - f->begun};
    for (int i = 0; i < CPL_PHASES; i++)
        rest.ns -= cpl_train_profile_phase(f, (cpl_phase)i).ns;
    return rest;
}

/* Threads that spin while they wait have a processor as well: it may come to a little more than they wanted. */
void cpl_train_profile_end(cpl_train_profile *f)
{
    cpl_meter now = cpl_profile_now(f->calls);
    double had = processor_seconds() - f->processor_begun;
    f->ended = now.ns;
    int64_t wanted = f->ended - f->begun + now.helped - now.waited;
    wanted -= f->phase[CPL_PHASE_DATA].ns + f->phase[CPL_PHASE_SAVING].ns; /* the system's time, and the disk's */
    f->processors = wanted > 0 && had < 1e-9 * (double)wanted ? 1e9 * had / (double)wanted : 1;
}
