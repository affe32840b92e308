/* schedule.h: the learning rate of an update: a pure function of its number, so that a resumed run goes on with the
 * right one (case G08). */
#ifndef CPL_TRAIN_SCHEDULE_H
#define CPL_TRAIN_SCHEDULE_H

#include "config/config.h"

/* step counts from 1. */
double cpl_schedule_rate(const cpl_config_training *t, int64_t step);

#endif
