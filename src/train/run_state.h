/* run_state.h: all that a run needs, besides weights and optimizer, to go on as if nothing had happened (case G07).
 * It is written into each checkpoint as JSON; real numbers are written so that they read back as the same bits. */
#ifndef CPL_TRAIN_RUN_STATE_H
#define CPL_TRAIN_RUN_STATE_H

#include "base/json.h"
#include "base/str.h"
#include "train/early_stopping.h"
#include "train/schedule.h"

/* What is due once a checkpoint has been written: it is part of the state, so that a run that was killed during a
 * validation does that validation again. */
enum { CPL_DUE_VALIDATION = 1, CPL_DUE_EPOCH = 2 };

/* Sums over batches, divided once (case C02). */
typedef struct cpl_sums {
    double loss, correct, tokens; /* Σ loss · tokens, Σ accuracy · tokens, target tokens */
    double seen, computed;        /* tokens of both sides that exist, and rows that the engine computed for them */
} cpl_sums;

/* What one validation, or one epoch without validation data, gave. */
typedef struct cpl_history_entry {
    int64_t epoch, step;
    double loss, accuracy, val_loss, val_accuracy; /* NaN: not known */
} cpl_history_entry;

typedef struct cpl_run_state {
    int64_t step;           /* updates */
    int64_t epoch;          /* complete epochs */
    int64_t in_epoch;       /* steps of the running epoch, those that changed nothing too */
    int64_t pass, index;    /* of the next batch */
    int64_t validated_step; /* the step of the last validation; −1: none yet */
    int64_t empty;          /* batches without a target token: no update was made (case C04) */
    int due;
    double elapsed;         /* seconds of training, over all resumes */
    double epoch_seconds;   /* of the running epoch, until this process took over or the checkpoint was made */
    uint64_t data;          /* checksum of the data set */
    cpl_sums sums;          /* of the running epoch */
    cpl_stopping stopping;
    cpl_plateau plateau;
    cpl_history_entry *history;
    size_t history_count, history_capacity;
} cpl_run_state;

void cpl_run_state_start(cpl_run_state *s, uint64_t data);
void cpl_run_state_free(cpl_run_state *s);
cpl_status cpl_run_state_remember(cpl_run_state *s, const cpl_history_entry *entry, cpl_error *err);

/* The two texts of the checkpoint, appended. */
cpl_status cpl_run_state_write(const cpl_run_state *s, cpl_str *state, cpl_str *history, cpl_error *err);
cpl_status cpl_run_state_read(cpl_run_state *s, const char *state, size_t state_length, const char *history,
                              size_t history_length, cpl_error *err);

/* Means of sums; NaN without tokens. */
double cpl_sums_loss(const cpl_sums *s);
double cpl_sums_accuracy(const cpl_sums *s);

/* Appends a line when training and validation loss have parted, with the keys that help: the validation loss ended a
 * tenth above its best while the training loss fell. Appends nothing otherwise. */
void cpl_run_state_parted(const cpl_run_state *s, const cpl_config *c, cpl_str *to);

#endif
