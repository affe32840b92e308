/* schedule.c: constant, inverse_sqrt, cosine, step and plateau, each after a linear warm-up.
 *
 * With n the update, w warmup_steps and p learning_rate: n ≤ w gives p · n/w. Afterwards
 *   constant      p
 *   inverse_sqrt  p · √(w/n): meets the warm-up at its peak (Vaswani et al. 2017, scaled to a peak of p)
 *   cosine        p · (1 + cos(π (n−w)/(total−w))) / 2, and 0 from total_steps on (Loshchilov and Hutter 2017)
 *   step          p · factor^⌊(n−1)/every⌋, also during the warm-up
 *   plateau       p · factor^(cuts so far), also during the warm-up */
#include "train/schedule.h"

#include <math.h>

double cpl_schedule_rate(const cpl_config_training *t, int64_t step)
{
    const cpl_config_schedule *s = &t->schedule;
    const double pi = 3.14159265358979323846;
    double n = (double)step, w = (double)s->warmup_steps, rate = t->optimizer.learning_rate;
    int warming = step < s->warmup_steps;
    if (warming)
        rate *= n / w;
    switch (s->name) {
    case CPL_SCHEDULE_INVERSE_SQRT:
        if (!warming && step > 0)
            rate *= sqrt((w > 0 ? w : 1) / n);
        break;
    case CPL_SCHEDULE_COSINE:
        if (step >= s->total_steps)
            rate = 0;
        else if (!warming)
            rate *= 0.5 * (1 + cos(pi * (n - w) / ((double)s->total_steps - w)));
        break;
    case CPL_SCHEDULE_STEP:
        if (s->every > 0)
            rate *= pow(s->factor, (double)((step - 1) / s->every));
        break;
    default: /* constant, plateau */
        break;
    }
    return rate;
}

int cpl_plateau_observe(cpl_plateau *p, const cpl_config_training *t, int improved)
{
    const cpl_config_schedule *s = &t->schedule;
    if (s->name != CPL_SCHEDULE_PLATEAU)
        return 0;
    p->wait = improved ? 0 : p->wait + 1;
    if (improved || p->wait < s->patience)
        return 0;
    p->wait = 0;
    p->cuts++;
    return 1;
}

double cpl_plateau_share(const cpl_plateau *p, const cpl_config_training *t)
{
    return t->schedule.name == CPL_SCHEDULE_PLATEAU ? pow(t->schedule.factor, (double)p->cuts) : 1;
}
