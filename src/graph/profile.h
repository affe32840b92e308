/* profile.h: where the time of a program's runs goes, call by call.
 *
 *   cpl_profile_new(&f, program, trace, err);   the program measures itself from now on
 *   … cpl_run …
 *   cpl_profile_row_at(f, CPL_TRAIN, i): of call i of the training schedule
 *   cpl_profile_free(f);                        and no longer
 *
 * A program without a profile pays one look at a pointer for each call. With one, it computes the same bits; its
 * training schedule must not change (what trains, what is recomputed). */
#ifndef CPL_GRAPH_PROFILE_H
#define CPL_GRAPH_PROFILE_H

#include "base/trace.h"
#include "graph/program.h"

/* Time that was measured `count` times. The caller's thread computed for ns − waited of it, the pool's other threads
 * for `helped`, all together. */
typedef struct cpl_meter {
    int64_t count, ns, helped, waited;
} cpl_meter;

typedef struct cpl_profile_row {
    cpl_meter meter;
    double flops;
} cpl_profile_row;
void cpl_profile_row_add(cpl_profile_row *to, const cpl_profile_row *row);

typedef struct cpl_profile cpl_profile;

/* Makes room for the schedules as they are, watches the engine's pool, and begins. trace may be NULL. */
cpl_status cpl_profile_new(cpl_profile **f, cpl_program *p, cpl_trace *trace, cpl_error *err);
void cpl_profile_free(cpl_profile *f); /* NULL is fine */
size_t cpl_profile_bytes(const cpl_program *p);

/* Whether calls and the pool's threads go to the trace as well: off at first. */
void cpl_profile_set_tracing(cpl_profile *f, int on);
/* What the pool's threads do between calls, as their spans in the trace say it; NULL: nothing worth a span. */
void cpl_profile_set_work(cpl_profile *f, const char *name);

/* The counters now: a stretch of time is what lies between two of them. */
cpl_meter cpl_profile_now(const cpl_profile *f);
void cpl_meter_add(cpl_meter *m, const cpl_meter *begun, const cpl_meter *ended);
/* The share of the time of so many threads in which they computed, 0 … 1; NaN of no time at all. */
double cpl_meter_busy(const cpl_meter *m, int threads);

/* Of call i of a mode's schedule. NULL: there is no such call. */
const cpl_profile_row *cpl_profile_row_at(const cpl_profile *f, cpl_mode mode, size_t i);
/* "forward", "backward" (sums of gradients too), "again": recomputed for the backward pass. */
const char *cpl_profile_pass(const cpl_profile *f, cpl_mode mode, size_t i);
/* Of all runs of a mode: up to the first backward call or one that is computed again, and from there on. */
const cpl_meter *cpl_profile_side(const cpl_profile *f, cpl_mode mode, int backward);

/* Called by a running program. */
void cpl_profile_run_begin(cpl_profile *f, cpl_mode mode);
void cpl_profile_run_end(cpl_profile *f);
void cpl_profile_call_begin(cpl_profile *f, size_t index);
void cpl_profile_call_end(cpl_profile *f, size_t index);

#endif
