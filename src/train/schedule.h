/* schedule.h: the learning rate of an update: a pure function of its number, so that a resumed run goes on with the
 * right one (case G08), and of what the validations said (plateau), which travels in the checkpoint. */
#ifndef CPL_TRAIN_SCHEDULE_H
#define CPL_TRAIN_SCHEDULE_H

#include "config/config.h"

/* Of schedule plateau: validations since the last improvement or cut, and cuts so far. */
typedef struct cpl_plateau {
    int64_t wait, cuts;
} cpl_plateau;

/* step counts from 1. Without the cuts of plateau. */
double cpl_schedule_rate(const cpl_config_training *t, int64_t step);

/* One validation. improved: what cpl_stopping_observe said of it. Returns 1 when the rate is cut now: after `patience`
 * validations without improvement, 0 and 1 both at the first, as Keras's ReduceLROnPlateau. */
int cpl_plateau_observe(cpl_plateau *p, const cpl_config_training *t, int improved);
/* What the cuts leave of the rate: 1 with any other schedule. */
double cpl_plateau_share(const cpl_plateau *p, const cpl_config_training *t);

#endif
