/* trainer.h: the inside of a training run, shared by the files of this room alone. */
#ifndef CPL_TRAIN_TRAINER_H
#define CPL_TRAIN_TRAINER_H

#include "decode/decode.h"
#include "metric/scorer.h"
#include "train/average.h"
#include "train/optimizer.h"
#include "train/profile.h"
#include "train/run_state.h"
#include "train/schedule.h"
#include "train/train.h"

/* Speed over the steps since the last line of the log; validation and saving do not count. */
typedef struct cpl_window {
    double since, tokens, rate;
} cpl_window;

typedef struct cpl_sampler cpl_sampler;

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
    cpl_binding whole[CPL_MODES];    /* the most that a batch can hold */
    cpl_binding capacity[CPL_MODES]; /* the most that is run at once: a batch, or a piece of one */
    int64_t *cut;                    /* pieces.c: where the pieces of a batch begin [largest batch + 1] */
    int mirrors;                     /* the model's labels are its source rows (cpl_model_description) */
    int32_t *noise_ids;              /* noise.c: the source rows of a batch with noise; NULL: there is none */
    const int32_t **noise_row;
    int64_t *noise_length;
    cpl_sampler *sampler;            /* sampling.c; NULL: the decoder reads true targets alone */
    cpl_memory_figures memory;
    cpl_model_set *set;
    cpl_optimizer *optimizer;        /* made when the run begins */
    cpl_average *average;            /* NULL: training.ema is 0 */
    int averaged;                    /* 1: the average stands in the place of the weights */
    /* examples.c: decoder NULL: none are shown */
    cpl_decoder *decoder;
    cpl_codec *codec;
    int64_t example_count, examples_at_once;
    int64_t shown;                   /* of them; the others are only scored */
    const int32_t **example_source, **example_copy;
    cpl_codec *source_codec;         /* of a model that copies, as are example_copy and the words of the line shown */
    cpl_copy_lines example_words;
    int64_t *example_length, *example_most;
    uint64_t example_bytes;          /* what translating them has taken */
    /* decoded.c: training.metrics, as bits of cpl_figure; 0: none */
    uint32_t wanted;
    cpl_scorer *scorer;
    double figure[CPL_FIGURES];      /* of the last validation */
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
    int profiled;                    /* 1: cpl_trainer_options.profile */
    cpl_train_profile *profile;      /* from the first step on, if profiled; else NULL */
};

/* One update's result, over all its batches. */
typedef struct cpl_step_result {
    double loss, accuracy, tokens, rate, norm;
    int updated; /* 0: there was no target token, nothing changed */
} cpl_step_result;

cpl_binding cpl_trainer_average(const cpl_trainer *t); /* a whole training batch with its share of all tokens */
double cpl_trainer_elapsed(const cpl_trainer *t);
int cpl_trainer_stopping(const cpl_trainer *t); /* 1: the caller wants it to end */

/* steps.c */
cpl_status cpl_trainer_step(cpl_trainer *t, cpl_step_result *r, cpl_error *err);
/* Over the same first batches every time (G05). *whole is 0 when a stop was asked for before it was done. */
cpl_status cpl_trainer_validate(cpl_trainer *t, cpl_sums *sums, int *whole, cpl_error *err);

/* memory.c: fills t->memory and t->capacity, or refuses. */
cpl_status cpl_trainer_plan_memory(cpl_trainer *t, const cpl_trainer_options *options, cpl_error *err);
/* Bytes that grow with the batch, for pieces of these sizes. evaluate NULL: there is no validation. */
cpl_status cpl_trainer_piece_bytes(const cpl_trainer *t, const cpl_binding *train, const cpl_binding *evaluate,
                                   uint64_t *block, uint64_t *inputs, cpl_error *err);

/* What the budget leaves for them, with the program as it stands. */
uint64_t cpl_trainer_room(const cpl_trainer *t, const cpl_trainer_options *options);

/* means.c: the micro-batches, recomputation and loss blocks that fit t->memory.budget and cost least time: the program
 * is set to them, t->capacity and t->memory say which. A micro-batch of 0: nothing fits; the program is set to what
 * needs least. */
cpl_status cpl_trainer_choose_means(cpl_trainer *t, const cpl_trainer_options *options, cpl_error *err);

/* refuse.c: CPL_USAGE with need, budget, and what would fit. fixed: what every batch size takes; room: what the budget
 * leaves for a batch. */
cpl_status cpl_trainer_refuse_memory(const cpl_trainer *t, uint64_t fixed, uint64_t room, cpl_error *err);

/* pieces.c. The most that any `pairs` of a mode's rows can hold. */
cpl_status cpl_trainer_capacity(const cpl_trainer *t, cpl_mode mode, int64_t pairs, cpl_binding *b, cpl_error *err);
/* Cuts a batch into the fewest pieces that t->capacity holds, as even as they can be. Piece i has the sentences
 * t->cut[i] … t->cut[i + 1] − 1. Returns how many there are. */
int64_t cpl_trainer_cut(cpl_trainer *t, cpl_mode mode, const cpl_batch *b);

/* noise.c: room for the largest batch where data.noise is set; the source rows of sentences first … first + pairs − 1
 * with noise (training: of this pass; validation: the same each time), in place of rows and lengths. */
cpl_status cpl_trainer_prepare_noise(cpl_trainer *t, cpl_error *err);
void cpl_trainer_add_noise(cpl_trainer *t, const cpl_batch *b, cpl_mode mode, int64_t first, int64_t pairs,
                           const int32_t *const **rows, const int64_t **lengths);

/* sampling.c: takes all the memory it needs; then, before each training batch, makes its rows of target_in; and those
 * that a mode reads. */
cpl_status cpl_trainer_prepare_sampling(cpl_trainer *t, cpl_error *err);
void cpl_trainer_free_sampling(cpl_trainer *t);
uint64_t cpl_trainer_sampling_bytes(const cpl_trainer *t);
cpl_status cpl_trainer_sample(cpl_trainer *t, const cpl_batch *b, cpl_error *err);
const int32_t *const *cpl_trainer_target_in(const cpl_trainer *t, const cpl_batch *b, cpl_mode mode);

/* checkpoint.c. The average of the weights takes their place (on), or gives it back; nothing without one. */
void cpl_trainer_use_average(cpl_trainer *t, int on);
cpl_status cpl_trainer_save(cpl_trainer *t, cpl_error *err);       /* a checkpoint */
cpl_status cpl_trainer_save_model(cpl_trainer *t, cpl_error *err); /* the current weights as model.safetensors */
cpl_status cpl_trainer_keep_model(cpl_trainer *t, cpl_error *err); /* the same as one of the last training.keep */
cpl_status cpl_trainer_restore(cpl_trainer *t, cpl_error *err);    /* from t->checkpoint */
int cpl_trainer_save_is_due(const cpl_trainer *t, int64_t updates_since);

/* decoded.c: training.metrics and training.early_stopping.monitor, checked; pairs that a validation translates. */
cpl_status cpl_trainer_prepare_figures(cpl_trainer *t, cpl_error *err);
cpl_status cpl_trainer_pairs_to_score(cpl_trainer *t, int64_t *pairs, cpl_error *err);
/* Translates and scores them into t->figure; NaN where the weights translate nothing. *whole as in validate. */
cpl_status cpl_trainer_score(cpl_trainer *t, int *whole, cpl_error *err);
double cpl_trainer_monitored(const cpl_trainer *t, const cpl_history_entry *h);

/* examples.c. Examples first … first + count − 1, all in one batch. */
cpl_status cpl_trainer_translate(cpl_trainer *t, int64_t first, int64_t count, const cpl_decoded **rows,
                                 cpl_error *err);
void cpl_trainer_write_output(cpl_trainer *t, int64_t example, const cpl_decoded *row, cpl_str *output);
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
void cpl_trainer_tell_profile(cpl_trainer *t, const char *text); /* text: the tables, for a person */
void cpl_trainer_tell_end(cpl_trainer *t, const char *reason);
/* A cpl_log_sink: to the log and to the caller. */
void cpl_trainer_tell_message(void *trainer, cpl_log_level level, const char *text);

#endif
