/* run_data.h: what train and plan share: the configuration with all that was set, the data, and the warnings that
 * came before there was a log. */
#ifndef CPL_API_RUN_DATA_H
#define CPL_API_RUN_DATA_H

#include "train/train.h"

typedef struct cpl_run_data {
    cpl_config *config;
    cpl_dataset *data;
    cpl_trainer *trainer;
    cpl_log log;             /* collects warnings and hands all messages on */
    cpl_message_sink message;
    void *user;
    char **warnings;
    size_t warning_count, warning_capacity;
    cpl_model_file **init;   /* of training.init, until the weights are loaded and the run is over */
    size_t init_count;
    const cpl_vocabulary *source, *target; /* theirs, or of a file; NULL: built from the data */
    const char *source_from, *target_from; /* which file or model, as the user wrote it */
    cpl_vocabulary *own_source, *own_target; /* of files */
    int profile; /* 1: the trainer measures where its time goes */
    int resumed; /* 1: weights come from a checkpoint, so no vectors are read */
    uint64_t bytes_before, peak_before;
    uint64_t mapped_bytes; /* of a checkpoint that is open: see cpl_trainer_options */
} cpl_run_data;

/* Reads and checks the configuration. Zero-initialise r; cpl_run_data_free in either case. */
cpl_status cpl_run_data_config(cpl_run_data *r, const cpl_train_options *options, cpl_error *err);
/* Reads the data and makes the trainer. */
cpl_status cpl_run_data_open(cpl_run_data *r, cpl_error *err);
/* Makes r->trainer anew, of the configuration as it is now, and says nothing. */
cpl_status cpl_run_data_trainer(cpl_run_data *r, cpl_error *err);
/* init.c: before the data are read; after the trainer was made. */
cpl_status cpl_run_data_open_init(cpl_run_data *r, cpl_error *err);
cpl_status cpl_run_data_load_init(cpl_run_data *r, cpl_error *err);
/* CPL_USAGE with the first entry in which a model's ("its") vocabulary differs from another one ("the run's"). */
cpl_status cpl_refuse_vocabulary(const cpl_vocabulary *a, const cpl_vocabulary *b, const char *side, cpl_error *err);
/* given.c: reads text.*.vocabulary, once the text rules are known. */
cpl_status cpl_run_data_read_vocabularies(cpl_run_data *r, cpl_error *err);
/* Compares those that were read with a checkpoint's. */
cpl_status cpl_run_data_check_vocabularies(const cpl_run_data *r, const cpl_model_file *f, cpl_error *err);
/* Takes a checkpoint's subwords over, where no file gave any. */
cpl_status cpl_run_data_keep_subwords(cpl_run_data *r, const cpl_model_file *f, cpl_error *err);
/* Reads text.*.vectors into the embeddings, once the trainer was made. */
cpl_status cpl_run_data_load_vectors(cpl_run_data *r, cpl_error *err);
void cpl_run_data_free(cpl_run_data *r);

#endif
