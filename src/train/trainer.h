/* trainer.h: the inside of a training run, shared by the files of this room alone. */
#ifndef CPL_TRAIN_TRAINER_H
#define CPL_TRAIN_TRAINER_H

#include "decode/decode.h"
#include "train/optimizer.h"
#include "train/run_state.h"
#include "train/schedule.h"
#include "train/train.h"

/* Speed over the steps since the last line of the log; validation and saving do not count. */
typedef struct cpl_window {
    double since, tokens, rate;
} cpl_window;

struct cpl_trainer {
    const cpl_config *config;
    const cpl_config_training *training;
    const cpl_dataset *data;
    cpl_log log;
    cpl_model_sizes sizes;
    const cpl_model_kind *kind;
    cpl_program *program;
    cpl_batcher *train, *valid;      /* valid NULL: no validation data */
    int64_t steps_in_epoch;
    cpl_binding capacity[CPL_MODES];
    cpl_memory_figures memory;
    cpl_model_set *set;
    cpl_optimizer *optimizer;        /* made when the run begins */
    /* examples.c: decoder NULL: none are shown */
    cpl_decoder *decoder;
    cpl_codec *codec;
    int64_t example_count;
    const int32_t **example_source;
    int64_t *example_length, *example_most;
    /* of the run */
    cpl_run_state state;
    const cpl_fit_options *options;
    cpl_model_file *checkpoint;      /* until it was read */
    int resumed;
    cpl_run_log *run_log;
    cpl_status log_status;           /* the first failure of the log: told at the next step */
    cpl_error log_error;
    double clock_offset;             /* now + this = elapsed seconds */
    double epoch_offset;             /* elapsed − this = seconds of the epoch */
    double saved_at;                 /* elapsed, of the last checkpoint */
    double first_step_at;            /* elapsed, when this process began to step */
    int64_t steps_here;              /* updates of this process */
    int64_t model_step;              /* whose weights model.safetensors has; −1: there is none, or unknown */
    int warned_nan;
    cpl_window window;
};

/* One batch's result. */
typedef struct cpl_step_result {
    double loss, accuracy, tokens, rate, norm;
    int updated; /* 0: there was no target token, nothing changed */
} cpl_step_result;

double cpl_trainer_elapsed(const cpl_trainer *t);
int cpl_trainer_stopping(const cpl_trainer *t); /* 1: the caller wants it to end */

/* steps.c */
cpl_status cpl_trainer_step(cpl_trainer *t, cpl_step_result *r, cpl_error *err);
/* Over the same first batches every time (G05). *whole is 0 when a stop was asked for before it was done. */
cpl_status cpl_trainer_validate(cpl_trainer *t, cpl_sums *sums, int *whole, cpl_error *err);

/* memory.c: fills t->memory. */
cpl_status cpl_trainer_count_memory(cpl_trainer *t, const cpl_trainer_options *options, cpl_error *err);

/* checkpoint.c */
cpl_status cpl_trainer_save(cpl_trainer *t, cpl_error *err);       /* a checkpoint */
cpl_status cpl_trainer_save_model(cpl_trainer *t, cpl_error *err); /* the current weights as model.safetensors */
cpl_status cpl_trainer_restore(cpl_trainer *t, cpl_error *err);    /* from t->checkpoint */
int cpl_trainer_save_is_due(const cpl_trainer *t, int64_t updates_since);

/* examples.c */
cpl_status cpl_trainer_prepare_examples(cpl_trainer *t, cpl_error *err);
void cpl_trainer_show_examples(cpl_trainer *t);
void cpl_trainer_free_examples(cpl_trainer *t);

/* events.c: log.jsonl and the caller's progress. A failure to write the log sticks to t->log_status. */
void cpl_trainer_tell_start(cpl_trainer *t);
void cpl_trainer_tell_step(cpl_trainer *t, const cpl_step_result *r);
void cpl_trainer_tell_validation(cpl_trainer *t, const cpl_history_entry *h);
void cpl_trainer_tell_epoch(cpl_trainer *t, const cpl_history_entry *h, const cpl_sums *sums);
void cpl_trainer_tell_example(cpl_trainer *t, const char *source, const char *reference, const char *output);
void cpl_trainer_tell_checkpoint(cpl_trainer *t);
void cpl_trainer_tell_plan(void *trainer, const char *reason, const cpl_binding *capacity, size_t bytes);
void cpl_trainer_tell_end(cpl_trainer *t, const char *reason);
/* A cpl_log_sink: to the log and to the caller. */
void cpl_trainer_tell_message(void *trainer, cpl_log_level level, const char *text);

#endif
