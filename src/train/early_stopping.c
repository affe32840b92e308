/* early_stopping.c: the rule of Keras's EarlyStopping and ModelCheckpoint(save_best_only) in one state. */
#include "train/early_stopping.h"

#include <math.h>
#include <string.h>

#include "metric/scorer.h"

#define MONITOR_NAME(id, text) text,
static const char *const monitors[] = {CPL_CHOICES_MONITOR(MONITOR_NAME)};

const char *cpl_stopping_monitor(const cpl_config_stopping *rules)
{
    return monitors[rules->monitor];
}

int cpl_stopping_figure(const cpl_config_stopping *rules)
{
    int f = 0;
    while (f < CPL_FIGURES - 1 && strcmp(monitors[rules->monitor] + strlen("val_"), cpl_figure_at(f)->name) != 0)
        f++;
    return f;
}

static int falls(const cpl_config_stopping *rules)
{
    if (rules->mode == CPL_MODE_AUTO)
        return cpl_figure_at(cpl_stopping_figure(rules))->smaller_is_better;
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
