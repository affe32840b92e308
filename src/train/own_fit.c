/* own_fit.c: cpl_fit: the epochs, the validation and the early stopping of a training, for a model and data of the
 * user's own. The rules are those of the commands (early_stopping.h); the updates are cpl_adam's. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "train/early_stopping.h"
#include "train/trainer.h"

typedef struct own_fit {
    cpl_program *program;
    const cpl_batches *train, *valid; /* valid NULL: none */
    const cpl_fit_rules *rules;
    cpl_config *config;               /* for the rules of stopping */
    cpl_stopping stopping;
    real *best;                       /* the parameters of the best epoch */
    int64_t steps;
    int warned_nan;
} own_fit;

/* Sums over batches, each weighted by its targets. */
typedef struct own_sums {
    double loss, accuracy, weight;
} own_sums;

static int stopping(const own_fit *f)
{
    return f->rules->stop && *f->rules->stop;
}

static void tell(const own_fit *f, const cpl_progress_event *e)
{
    cpl_progress_callback call = e->kind[0] == 's' ? f->rules->on_step : f->rules->on_validation;
    if (call)
        call(f->rules->user, e);
}

static int has_output(const cpl_program *p, const char *name)
{
    for (size_t i = 0; i < p->traced->output_count; i++)
        if (strcmp(p->traced->outputs[i].name, name) == 0)
            return 1;
    return 0;
}

static cpl_status run_batch(own_fit *f, const cpl_batches *data, int64_t epoch, int64_t batch, own_sums *sums,
                            cpl_error *err)
{
    cpl_program *p = f->program;
    cpl_mode mode = data == f->train ? CPL_TRAIN : CPL_EVALUATE;
    CPL_TRY(data->feed(p, epoch, batch, data->user, err), err, "cannot feed batch %lld of epoch %lld",
            (long long)batch, (long long)epoch);
    CPL_TRY(cpl_run(p, mode, err), err, "cannot run batch %lld of epoch %lld", (long long)batch, (long long)epoch);
    double weight = has_output(p, "count") ? cpl_scalar(p, "count") : 1, loss = cpl_scalar(p, "loss");
    sums->weight += weight;
    sums->loss += weight * loss;
    sums->accuracy += weight * cpl_scalar(p, "accuracy"); /* NaN without such an output */
    if (isnan(loss) && !f->warned_nan++)
        cpl_log_warning(&p->log, "the loss of batch %lld in epoch %lld is not a number", (long long)batch,
                        (long long)epoch);
    return CPL_OK;
}

static double mean(double sum, const own_sums *s)
{
    return s->weight > 0 ? sum / s->weight : (double)NAN;
}

static cpl_status train_epoch(own_fit *f, int64_t epoch, own_sums *sums, cpl_error *err)
{
    double rate = f->rules->learning_rate > 0 ? f->rules->learning_rate : 1e-3;
    for (int64_t batch = 0; batch < f->train->count && !stopping(f); batch++) {
        own_sums one = {0};
        cpl_status status = run_batch(f, f->train, epoch, batch, &one, err);
        if (status == CPL_OK)
            status = cpl_adam(f->program, rate, err);
        if (status != CPL_OK)
            return status;
        sums->loss += one.loss, sums->accuracy += one.accuracy, sums->weight += one.weight;
        tell(f, &(cpl_progress_event){.kind = "step", .epoch = epoch, .epochs = f->rules->epochs, .step = ++f->steps,
                                      .step_in_epoch = batch + 1, .steps_in_epoch = f->train->count,
                                      .loss = mean(one.loss, &one), .accuracy = mean(one.accuracy, &one),
                                      .learning_rate = rate, .val_loss = (double)NAN, .val_accuracy = (double)NAN});
    }
    return CPL_OK;
}

/* Keeps the weights of the best epoch in memory and, when asked, in a file. */
static cpl_status keep(own_fit *f, cpl_error *err)
{
    const cpl_parameters *store = f->program->engine->parameters;
    memcpy(f->best, cpl_parameters_values(store), cpl_parameters_bytes(store));
    return f->rules->weights_path ? cpl_save_weights(f->program, f->rules->weights_path, err) : CPL_OK;
}

static cpl_status run_epoch(own_fit *f, int64_t epoch, cpl_error *err)
{
    own_sums train = {0}, valid = {0};
    cpl_status status = cpl_carry_reset(f->program, NULL, 0, err);
    if (status == CPL_OK)
        status = train_epoch(f, epoch, &train, err);
    if (status == CPL_OK)
        status = cpl_carry_reset(f->program, NULL, 0, err); /* a document of one set is none of the other */
    for (int64_t batch = 0; status == CPL_OK && f->valid && batch < f->valid->count && !stopping(f); batch++)
        status = run_batch(f, f->valid, epoch, batch, &valid, err);
    if (status != CPL_OK || stopping(f))
        return status;
    double loss = mean(train.loss, &train), val_loss = mean(valid.loss, &valid);
    if (cpl_stopping_observe(&f->stopping, &f->config->training, f->valid ? val_loss : loss, epoch, f->steps))
        CPL_TRY(keep(f, err), err, "cannot keep the best weights");
    tell(f, &(cpl_progress_event){.kind = "epoch", .epoch = epoch, .epochs = f->rules->epochs, .step = f->steps,
                                  .step_in_epoch = f->train->count, .steps_in_epoch = f->train->count, .loss = loss,
                                  .accuracy = mean(train.accuracy, &train), .val_loss = val_loss,
                                  .val_accuracy = mean(valid.accuracy, &valid)});
    return CPL_OK;
}

static cpl_status begin(own_fit *f, cpl_error *err)
{
    const cpl_program *p = f->program;
    if (!has_output(p, "loss"))
        CPL_FAIL(err, CPL_USAGE, "'%s' has no output 'loss'" CPL_HINT "end the model with cpl_output(g, \"loss\", "
                 "loss) and cpl_minimize(g, loss)", p->name);
    if (f->train->count < 1 || f->rules->epochs < 1)
        CPL_FAIL(err, CPL_USAGE, "nothing to train on: %lld batches, %lld epochs", (long long)f->train->count,
                 (long long)f->rules->epochs);
    f->best = cpl_alloc_aligned(cpl_parameters_bytes(p->engine->parameters) + 64, 64);
    if (!f->best)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the best weights");
    CPL_TRY(cpl_config_default(&f->config, err), err, "cannot begin");
    f->config->training.early_stopping = f->rules->patience > 0;
    f->config->training.stopping.patience = f->rules->patience;
    f->config->training.stopping.min_delta = f->rules->min_delta;
    return CPL_OK;
}

static cpl_status epochs(own_fit *f, cpl_fit_result *result, cpl_error *err)
{
    for (int64_t epoch = 1; epoch <= f->rules->epochs && !stopping(f); epoch++) {
        cpl_status status = run_epoch(f, epoch, err);
        if (status != CPL_OK)
            return status;
        result->epochs += !stopping(f);
        result->stopped_early = cpl_stopping_is_over(&f->stopping, &f->config->training);
        if (result->stopped_early)
            break;
    }
    return CPL_OK;
}

cpl_status cpl_fit(cpl_program *p, const cpl_batches *train, const cpl_batches *valid, const cpl_fit_rules *rules,
                   cpl_fit_result *result, cpl_error *err)
{
    own_fit f = {.program = p, .train = train, .valid = valid && valid->count > 0 ? valid : NULL, .rules = rules};
    cpl_fit_result unasked, *r = result ? result : &unasked;
    memset(r, 0, sizeof *r);
    cpl_status status = begin(&f, err);
    if (status == CPL_OK)
        status = epochs(&f, r, err);
    if (status == CPL_OK && f.stopping.has_best) {
        const cpl_parameters *store = p->engine->parameters;
        memcpy(cpl_parameters_values(store), f.best, cpl_parameters_bytes(store));
    }
    r->steps = f.steps, r->best_epoch = f.stopping.best_epoch;
    r->best_loss = f.stopping.has_best ? f.stopping.best : (double)NAN;
    cpl_config_free(f.config);
    cpl_release(f.best);
    CPL_TRY(status, err, "cannot fit '%s'", p->name);
    if (stopping(&f))
        CPL_FAIL(err, CPL_STOPPED, "stopped after step %lld", (long long)f.steps);
    return CPL_OK;
}
