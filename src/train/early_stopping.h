/* early_stopping.h: which validation was the best, and whether the run has waited long enough for a better one. A
 * plain state and pure functions: the state travels in the checkpoint. The best model is tracked whether or not
 * early stopping is on. */
#ifndef CPL_TRAIN_EARLY_STOPPING_H
#define CPL_TRAIN_EARLY_STOPPING_H

#include "config/config.h"

typedef struct cpl_stopping {
    int64_t seen;  /* validations so far */
    int64_t wait;  /* of them since the last improvement */
    int has_best;  /* 0: none was a number yet */
    double best;
    int64_t best_epoch, best_step;
} cpl_stopping;

/* What is watched: "val_bleu", and its figure in the table of metric/scorer.h, as every monitor has one. */
const char *cpl_stopping_monitor(const cpl_config_stopping *rules);
int cpl_stopping_figure(const cpl_config_stopping *rules);

/* One validation's monitored figure. Returns 1 when it is the best so far. NaN never is (case G02). An improvement is
 * more than min_delta better than the best (G03). */
int cpl_stopping_observe(cpl_stopping *s, const cpl_config_training *t, double value, int64_t epoch, int64_t step);

/* 1: patience has run out. patience 0 and 1 both end at the first validation without improvement, as in Keras; the
 * first validation never ends a run. Always 0 with early_stopping: false. */
int cpl_stopping_is_over(const cpl_stopping *s, const cpl_config_training *t);

#endif
