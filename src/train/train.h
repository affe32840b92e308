/* train.h: fitting a model to a data set.
 *
 *   cpl_trainer *t;
 *   CPL_TRY(cpl_trainer_new(&t, &(cpl_trainer_options){.config = config, .data = data}, err), err, "…");
 *   … cpl_trainer_memory(t): what it will take, before it is taken …
 *   status = cpl_trainer_run(t, &options, err);
 *   cpl_trainer_free(t);
 *
 * The run's folder must exist; deciding whether it may be written to is the caller's. */
#ifndef CPL_TRAIN_TRAIN_H
#define CPL_TRAIN_TRAIN_H

#include "base/log.h"
#include "config/config.h"
#include "data/data.h"
#include "graph/program.h"
#include "io/io.h"
#include "model/model_file.h"

typedef struct cpl_trainer cpl_trainer;

typedef struct cpl_trainer_options {
    const cpl_config *config;
    const cpl_dataset *data;
    const cpl_log *log;    /* of warnings while it is built; NULL: silent */
    uint64_t bytes_before; /* cpl_memory_live_bytes() before the data were read: what is not the run's */
    uint64_t peak_before;  /* cpl_peak_rss() at the same time */
    uint64_t mapped_bytes; /* of files that are mapped now and will be closed before the first step */
    int profile;           /* 1: measures where the time goes, and tells it at the end */
} cpl_trainer_options;

/* Traces and compiles the model, checks every id of the data against it (A03), makes batches, plans the memory. What
 * cannot fit into training.memory or the limits of the process is CPL_USAGE, saying what would (B02, B03, B06). */
cpl_status cpl_trainer_new(cpl_trainer **t, const cpl_trainer_options *options, cpl_error *err);
void cpl_trainer_free(cpl_trainer *t); /* NULL is fine */

const cpl_program *cpl_trainer_program(const cpl_trainer *t);
int64_t cpl_trainer_trainable(const cpl_trainer *t); /* elements that an update changes */
int64_t cpl_trainer_sparse(const cpl_trainer *t);    /* of them, those of tables that sparse_embeddings is for */
int64_t cpl_trainer_steps_in_epoch(const cpl_trainer *t);
double cpl_trainer_flops(const cpl_trainer *t);      /* of a step with average batches */

/* ---- memory.c ---- */

enum { CPL_MEMORY_PARTS = 16 };

typedef struct cpl_memory_part {
    const char *name;
    uint64_t bytes;
    int with_batch; /* 1: grows with the batch and the length of its sentences */
} cpl_memory_part;

/* What training adds to the bare program, and what the budget for it leads to. */
typedef struct cpl_memory_figures {
    cpl_memory_part part[CPL_MEMORY_PARTS];
    int count;
    uint64_t peak;         /* their sum */
    uint64_t budget;       /* 0: none */
    char budget_from[120]; /* "training.memory", or the limit of the process, as the end of a sentence */
    uint64_t whole_peak;   /* the peak if no batch was cut */
    int64_t batch;         /* pairs of a whole training batch */
    int64_t micro_batch;   /* any so many training pairs are run in one piece; batch: none is ever cut */
    cpl_recompute recompute;
    int recomputed;           /* calls that run again */
    uint64_t recompute_saved; /* bytes, of the activations of the micro-batches as they are */
    int64_t loss_block;       /* rows of logits that are made at once */
    int64_t whole_loss_block; /* the same without a budget */
    int64_t valid_batch, valid_micro_batch; /* the same of validation; 0: there is none */
    /* Logits, had the loss not worked in blocks of rows: of a rectangle [longest batch vocab]. */
    int64_t longest_target, vocabulary;
    uint64_t whole_logits, logits_block;
} cpl_memory_figures;

const char *cpl_trainer_precision(const cpl_trainer *t); /* "float32", "bfloat16" */
const cpl_memory_figures *cpl_trainer_memory(const cpl_trainer *t);
uint64_t cpl_peak_rss(void); /* the most that this process ever held, in bytes */

/* Bytes of whole logits [t batch vocab]; the largest batch whose logits alone fit into a budget. */
uint64_t cpl_logits_bytes(int64_t longest, int64_t batch, int64_t vocabulary);
int64_t cpl_logits_batch(uint64_t budget, int64_t longest, int64_t vocabulary);

/* ---- fit.c ---- */

typedef struct cpl_fit_options {
    cpl_rundir *folder;
    cpl_model_file *checkpoint;       /* where the run goes on; NULL: it starts. Taken over. */
    cpl_run_position at;              /* of the checkpoint */
    const char *const *warnings;      /* told before the log was open: written into it now */
    int warning_count;
    cpl_progress_callback on_step, on_validation, on_event; /* NULL: not called */
    cpl_message_sink message;
    void *user;
    const volatile int *stop;
} cpl_fit_options;

/* Trains to the end, or until *stop. CPL_STOPPED then, with the state saved. */
cpl_status cpl_trainer_run(cpl_trainer *t, const cpl_fit_options *options, cpl_error *err);

#endif
