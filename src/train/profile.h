/* profile.h: where the time of a training goes: phases of the steps and of what comes between them, nodes of the
 * program, and a trace. Inside of the room alone. */
#ifndef CPL_TRAIN_PROFILE_H
#define CPL_TRAIN_PROFILE_H

#include "base/json.h"
#include "graph/profile.h"
#include "train/train.h"

/* No moment is in two phases: what happens inside of one counts for that one alone, so that batches of a validation are
 * time of the validation. */
typedef enum cpl_phase {
    CPL_PHASE_DATA,       /* a step wants its next batch */
    CPL_PHASE_SAMPLING,   /* training.scheduled_sampling: making the decoder's input */
    CPL_PHASE_FEED,       /* ids into the program's packed inputs */
    CPL_PHASE_FORWARD,    /* these two are the program's own (cpl_profile_side) */
    CPL_PHASE_BACKWARD,
    CPL_PHASE_OPTIMIZER,  /* norm of the gradients, update, average */
    CPL_PHASE_VALIDATION,
    CPL_PHASE_EXAMPLES,   /* validation pairs translated, to be shown or scored */
    CPL_PHASE_SAVING,     /* checkpoints and models */
    CPL_PHASES
} cpl_phase;

/* The trace has so many steps and batches of validation in full, and the phases that are none of a step, as long as
 * there is room. */
enum { CPL_TRACED_STEPS = 10, CPL_TRACED_BATCHES = 10, CPL_TRACE_ROOM = 1 << 16 };

typedef struct cpl_train_profile {
    cpl_trace *trace;
    cpl_profile *calls;        /* of the program */
    cpl_batcher *batcher;      /* whose thread is watched */
    int threads;               /* rows of the trace: the pool's, 0 the training itself; behind them the batcher's */
    int depth;                 /* phases that are open */
    int in_step, tracing;
    int64_t batches;           /* of validation */
    int64_t begun, ended;      /* cpl_clock_ns; ended 0: not yet */
    double processor_begun;    /* seconds of the process */
    /* once it has ended */
    double processors;         /* of the time in which threads would have computed: with a processor, 0 … 1 */
    double peak;               /* operations a second */
    cpl_meter steps;           /* as wholes */
    cpl_meter phase[CPL_PHASES];
} cpl_train_profile;

cpl_status cpl_train_profile_new(cpl_train_profile **f, cpl_trainer *t, cpl_error *err); /* time begins to count */
void cpl_train_profile_free(cpl_train_profile *f);
uint64_t cpl_train_profile_bytes(const cpl_program *p); /* what _new will take */

/* cpl_meter begun = cpl_phase_begin(f, phase); … cpl_phase_end(f, phase, &begun); they may nest. f NULL, here and in
 * the three below: nothing is measured. */
cpl_meter cpl_phase_begin(cpl_train_profile *f, cpl_phase phase);
void cpl_phase_end(cpl_train_profile *f, cpl_phase phase, const cpl_meter *begun);
cpl_meter cpl_profile_step_begin(cpl_train_profile *f);
void cpl_profile_step_end(cpl_train_profile *f, const cpl_meter *begun, int64_t step);
void cpl_profile_validation_batch(cpl_train_profile *f); /* another one begins */

void cpl_train_profile_end(cpl_train_profile *f); /* time no longer counts */

/* What a phase took. CPL_PHASES: all that was in none. */
cpl_meter cpl_train_profile_phase(const cpl_train_profile *f, cpl_phase phase);
const char *cpl_phase_name(cpl_phase phase);
int cpl_phase_computes(cpl_phase phase); /* 0: the pool's threads have nothing to do in it */

/* profile_nodes.c: the calls of one layer, op and pass together. */
typedef struct cpl_profile_node {
    const char *path, *op, *pass;
    cpl_mode mode;
    cpl_profile_row row;
} cpl_profile_node;
/* Training's, then validation's, the slowest first. The caller frees; NULL: no memory. */
cpl_profile_node *cpl_train_profile_nodes(const cpl_trainer *t, size_t *count);
double cpl_train_profile_flops(const cpl_trainer *t); /* of all training runs */

/* profile_table.c: for a person. */
void cpl_train_profile_table(const cpl_trainer *t, cpl_str *to);

/* profile_report.c: ends it, measures the peak, tells the tables and writes the run's profile.json. */
cpl_status cpl_train_profile_tell(cpl_trainer *t, cpl_error *err);
/* The same as keys of a JSON object. */
void cpl_train_profile_facts(const cpl_trainer *t, cpl_json *to);

#endif
