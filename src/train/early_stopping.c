/* early_stopping.c: the rule of Keras's EarlyStopping and ModelCheckpoint(save_best_only) in one state. */
#include "train/early_stopping.h"

#include <math.h>

/* mode auto: a loss and a rate of errors should fall, the others should rise. */
static int falls(const cpl_config_stopping *rules)
{
    if (rules->mode == CPL_MODE_AUTO)
        return rules->monitor == CPL_MONITOR_VAL_LOSS || rules->monitor == CPL_MONITOR_VAL_TOKEN_ERROR_RATE;
    return rules->mode == CPL_MODE_MIN;
}

static int improves(const cpl_stopping *s, const cpl_config_stopping *rules, double value)
{
    if (isnan(value))
        return 0;
    if (!s->has_best)
        return 1;
    return falls(rules) ? value + rules->min_delta < s->best : value - rules->min_delta > s->best;
}

int cpl_stopping_observe(cpl_stopping *s, const cpl_config_training *t, double value, int64_t epoch, int64_t step)
{
    s->seen++;
    s->wait++;
    if (!improves(s, &t->stopping, value))
        return 0;
    s->wait = 0;
    s->has_best = 1;
    s->best = value;
    s->best_epoch = epoch;
    s->best_step = step;
    return 1;
}

int cpl_stopping_is_over(const cpl_stopping *s, const cpl_config_training *t)
{
    int64_t patience = t->stopping.patience > 1 ? t->stopping.patience : 1;
    return t->early_stopping && s->seen > 1 && s->wait >= patience;
}
