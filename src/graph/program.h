/* program.h: a compiled model: two schedules of one traced graph (evaluate; train with gradients), their memory
 * plans, one block of memory, and the inputs of the coming run. */
#ifndef CPL_GRAPH_PROGRAM_H
#define CPL_GRAPH_PROGRAM_H

#include "base/log.h"
#include "base/threads.h"
#include "couplet.h"
#include "graph/graph.h"
#include "graph/plan.h"

/* What the programs of one model share: kernels, threads, parameters. */
typedef struct cpl_engine {
    const cpl_kernels *kernels;
    cpl_pool *pool;
    void **scratch; /* gemm scratch of each thread */
    int threads;
    cpl_parameters *parameters;
    uint64_t seed;
    int references;
} cpl_engine;

cpl_status cpl_engine_new(cpl_engine **e, int threads, uint64_t seed, cpl_error *err);
cpl_engine *cpl_engine_hold(cpl_engine *e);
void cpl_engine_release(cpl_engine *e);

/* While a loop runs, tensors over its time are seen one step at a time. */
typedef struct cpl_loop_step {
    int active;
    int symbol;
    int64_t step;
    int64_t row;                     /* packed rows of the time before this step */
    int64_t pairs[CPL_MAX_SYMBOLS];  /* elements of [batch time symbol] before this step */
    cpl_geometry whole;
    int nest_active;                 /* a loop in the steps of it runs: tensors over its time are seen by its steps */
    int nest_symbol;
    int64_t nest_row;                /* rows of the nest before this inner step, in this outer step */
    cpl_geometry nest;               /* the inner time of this outer step */
    int32_t *length;                 /* [batch] 1 for the sentences that have the step, else 0 */
    int64_t length_capacity;
    int32_t offset[2];
} cpl_loop_step;

/* A state that goes from a run to the next: carry.c. */
typedef struct cpl_carried {
    const char *output;
    int input;
    int fresh;                       /* no row has a state yet: all begin with zeros */
    int64_t units, batch, capacity;  /* rows, in the caller's order */
    float *rows;
} cpl_carried;

/* A run of a part of a batch: its gradients are multiplied by weight and added to those of the parts before. */
typedef struct cpl_batch_part {
    int active;
    int first;              /* 1: no part was before */
    int64_t first_sentence; /* its place in the batch */
    double weight;          /* its share of the batch's tokens */
} cpl_batch_part;

enum { CPL_MODES = 2 };

typedef struct cpl_schedule {
    cpl_graph *graph; /* NULL: this mode does not exist */
    cpl_memory_plan *plans;
    size_t plan_count, plan_capacity;
} cpl_schedule;

typedef struct cpl_input_slot {
    void *data;       /* own buffer, or bound from outside */
    void *buffer;
    size_t capacity;  /* bytes of buffer */
    int fed;
} cpl_input_slot;

struct cpl_program {
    const char *name;
    cpl_engine *engine;
    cpl_kernels training;          /* the engine's kernels, with the products that CPL_TRAIN uses */
    cpl_graph *traced;             /* keeps names and attributes alive */
    cpl_schedule schedule[CPL_MODES];
    cpl_recompute recompute;       /* what the training schedule was made with */
    cpl_binding recompute_for;
    int recomputed;                /* how many of its calls run again */
    cpl_geometry geometry[CPL_MAX_SYMBOLS];
    const char *geometry_from[CPL_MAX_SYMBOLS]; /* the input that gave the lengths */
    cpl_binding binding;           /* of the coming run, then of the last one */
    const char *batch_from;
    cpl_input_slot *inputs;
    uint8_t *block;
    size_t block_bytes;
    real *gradients;               /* by the slots of the parameters; NULL for inference */
    int looked;                    /* cpl_program_warn_leak was called */
    int64_t layout;                /* cpl_parameters_layout when the training schedule was made */
    int passes;                    /* CPL_PASS_… that schedules are made with */
    int has_borders;               /* pack, unpack or put occur: sizes to check before a run */
    int ran;                       /* the next feed starts a new round */
    cpl_mode last_mode;
    cpl_memory_plan last_plan;     /* a borrowed copy: its arrays belong to the schedule */
    uint64_t step;                 /* training runs so far, for random numbers; a caller may set it */
    cpl_batch_part part;           /* what the coming run holds; zero: a whole batch */
    int64_t traces, plans;
    cpl_log log;
    cpl_run_context context;       /* reused for every call */
    cpl_loop_step loop;            /* the step that runs now */
    cpl_carried *carried;
    size_t carried_count, carried_capacity;
    struct cpl_profile *profile;   /* profile.h; NULL: nothing is measured */
    void *optimizer;               /* of cpl_adam, which this room does not know */
    void (*free_optimizer)(void *optimizer);
    void *plan_user;
    void (*plan_made)(void *user, const char *reason, const cpl_binding *capacity, size_t bytes);
};

/* loop_run.c: runs the calls first … last of a schedule, which stand in one loop, step by step. */
void cpl_program_run_loop(cpl_program *p, const cpl_graph *g, const cpl_memory_plan *plan, size_t first, size_t last);
/* program.c: one call, with the tensors of the current step when a loop runs. */
void cpl_program_run_call(cpl_program *p, const cpl_graph *g, const cpl_memory_plan *plan, size_t index);

/* leak.c: a warning when what was fed holds the labels among the other inputs. */
void cpl_program_warn_leak(const cpl_program *p);

/* compile.c: makes the training schedule again. */
cpl_status cpl_program_remake(cpl_program *p, cpl_error *err);
/* The same when parts were frozen or thawed since. */
cpl_status cpl_program_follow_layout(cpl_program *p, cpl_error *err);

/* carry.c: around a run: feeds carried states that were not fed, and keeps what they came to. */
cpl_status cpl_program_carry_in(cpl_program *p, cpl_error *err);
cpl_status cpl_program_carry_out(cpl_program *p, cpl_error *err);
void cpl_program_carry_free(cpl_program *p);

/* tell.c: messages about loops and merged calls of a compiled program; about a plan that a run had to make. */
void cpl_program_tell_graph(const cpl_program *p);
void cpl_program_tell_plan(const cpl_program *p, cpl_mode mode, const char *reason, size_t bytes);

/* Largest sizes that will come: plans, allocates and touches memory for them ahead of the first run. */
cpl_status cpl_program_reserve(cpl_program *p, cpl_mode mode, const cpl_binding *capacity, cpl_error *err);
/* Bytes of the block that a capacity needs, without allocating anything. */
cpl_status cpl_program_block_bytes(const cpl_program *p, cpl_mode mode, const cpl_binding *capacity, size_t *bytes,
                                   cpl_error *err);
/* stage.c: whether plans that are made from now on have room for training runs of parts of a batch. */
void cpl_program_stage_gradients(cpl_program *p, int on);
/* program.c calls them around a call whose gradients go to the stage first. */
void cpl_program_stage(cpl_program *p, const cpl_graph *g, const cpl_call *c, uint8_t *stage);
void cpl_program_unstage(cpl_program *p, const cpl_graph *g, const cpl_call *c, const uint8_t *stage);

/* saving.c: less memory for more time; plans that were made are forgotten. `capacity`: what the batches are like. */
cpl_status cpl_program_recompute(cpl_program *p, cpl_recompute level, const cpl_binding *capacity, cpl_error *err);
const char *cpl_recompute_name(cpl_recompute level); /* "none", "cheap", "all" */
/* Ops that work in blocks of rows take no more than these at once; 0: their own choice. */
void cpl_program_block_rows(cpl_program *p, cpl_mode mode, int rows);
/* Walks over elements that recomputation adds to a run of these sizes, in operations of products that take as long.
 * Products that run again are in cpl_program_flops. */
double cpl_program_walk_flops(const cpl_program *p, const cpl_binding *b);
/* Operations in calls that work in blocks of rows, of a training run; 0: there is none. */
double cpl_program_block_flops(const cpl_program *p, const cpl_binding *b);

/* Makes room in the input slots and row tables, so that feeding batches within a capacity allocates nothing. */
cpl_status cpl_program_reserve_inputs(cpl_program *p, const cpl_binding *capacity, cpl_error *err);
/* Bytes of the input slots and row tables for a capacity. */
size_t cpl_program_input_bytes(const cpl_program *p, const cpl_binding *capacity);
int cpl_program_symbol(const cpl_program *p, const char *word); /* index, or −1 */
/* The same for bindings of pairs: a model that has only one of "s" and "t" gets a place that no tensor of it has. */
int cpl_program_place(const cpl_program *p, const char *word);
double cpl_program_flops(const cpl_program *p, cpl_mode mode, const cpl_binding *b); /* of one run */

/* For the decode room: an input that stays where it is (same element type and packed layout), and an output's place.
 * The geometry of a time word can be taken from another program's last run. */
cpl_status cpl_program_bind(cpl_program *p, const char *input, void *data, cpl_error *err);
const cpl_tensor *cpl_program_output(cpl_program *p, const char *output, cpl_tensor *t); /* NULL: no such output */
cpl_status cpl_program_share_time(cpl_program *p, const char *time, const cpl_program *from, cpl_error *err);

/* Starts a round when the last run is over (called by every feed). */
void cpl_program_begin(cpl_program *p);
cpl_status cpl_program_batch(cpl_program *p, const char *input, int64_t batch, cpl_error *err);

#endif
