/* fit.c: the loop.
 *
 * A checkpoint is written before each validation, with a note that the validation is due. So the state on disk is never
 * behind model.safetensors, and a run that is killed at any moment does again exactly what was lost. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "train/trainer.h"

/* ---- time and stopping ---- */

static double now(void)
{
    return 1e-9 * (double)cpl_clock_ns();
}

double cpl_trainer_elapsed(const cpl_trainer *t)
{
    return now() + t->clock_offset;
}

int cpl_trainer_stopping(const cpl_trainer *t)
{
    return t->options->stop && *t->options->stop;
}

/* Speed is measured from here on: what was not a step does not count. */
static void reset_window(cpl_trainer *t, double away)
{
    t->window.since = cpl_trainer_elapsed(t);
    t->window.tokens = 0;
    t->first_step_at += away;
}

/* ---- validation ---- */

/* The weights that were just validated are kept as the model when they are the best so far. */
static cpl_status judge(cpl_trainer *t, const cpl_history_entry *h, cpl_error *err)
{
    cpl_run_state *s = &t->state;
    double value = cpl_trainer_monitored(t, h);
    s->validated_step = s->step;
    if (isnan(value))
        cpl_log_warning(&t->log, "%s of epoch %lld is not a number: it counts as no improvement",
                        cpl_stopping_monitor(&t->training->stopping), (long long)h->epoch);
    int best = cpl_stopping_observe(&s->stopping, t->training, value, h->epoch, h->step);
    if (cpl_plateau_observe(&s->plateau, t->training, best))
        cpl_log_info(&t->log, "%s has not improved: the learning rate is multiplied by %g from step %lld on",
                     cpl_stopping_monitor(&t->training->stopping), t->training->schedule.factor,
                     (long long)s->step + 1);
    return best ? cpl_trainer_save_model(t, err) : CPL_OK;
}

static void end_epoch(cpl_trainer *t, const cpl_history_entry *h)
{
    cpl_run_state *s = &t->state;
    cpl_trainer_tell_epoch(t, h, &s->sums);
    s->epoch++;
    s->in_epoch = 0;
    s->sums = (cpl_sums){0};
    t->epoch_offset = cpl_trainer_elapsed(t);
}

static cpl_status score(cpl_trainer *t, int *whole, cpl_error *err)
{
    if (t->wanted == 0)
        return cpl_trainer_score(t, whole, err);
    cpl_meter begun = cpl_phase_begin(t->profile, CPL_PHASE_EXAMPLES);
    cpl_status status = cpl_trainer_score(t, whole, err);
    cpl_phase_end(t->profile, CPL_PHASE_EXAMPLES, &begun);
    return status;
}

static void show_examples(cpl_trainer *t)
{
    cpl_meter begun = cpl_phase_begin(t->profile, CPL_PHASE_EXAMPLES);
    cpl_trainer_show_examples(t);
    cpl_phase_end(t->profile, CPL_PHASE_EXAMPLES, &begun);
}

static cpl_status settle_now(cpl_trainer *t, cpl_error *err)
{
    cpl_run_state *s = &t->state;
    const double none = (double)NAN;
    cpl_history_entry h = {.epoch = s->epoch + 1, .step = s->step, .loss = cpl_sums_loss(&s->sums),
                           .accuracy = cpl_sums_accuracy(&s->sums), .val_loss = none, .val_accuracy = none};
    double begun = cpl_trainer_elapsed(t);
    int validate = t->valid && (s->due & CPL_DUE_VALIDATION);
    if (validate) {
        cpl_sums sums;
        int whole;
        CPL_TRY(cpl_trainer_validate(t, &sums, &whole, err), err, "cannot validate after step %lld",
                (long long)s->step);
        if (!whole)
            return CPL_OK;
        h.val_loss = cpl_sums_loss(&sums);
        h.val_accuracy = cpl_sums_accuracy(&sums);
        CPL_TRY(score(t, &whole, err), err, "cannot validate after step %lld", (long long)s->step);
        if (!whole)
            return CPL_OK;
    }
    if (validate || !t->valid)
        CPL_TRY(cpl_run_state_remember(s, &h, err), err, "cannot keep the history");
    if (validate) {
        CPL_TRY(judge(t, &h, err), err, "cannot keep the best model");
        cpl_trainer_tell_validation(t, &h);
    } else if (!t->valid) {
        CPL_TRY(cpl_trainer_save_model(t, err), err, "cannot save the model");
    }
    if (validate || !t->valid)
        CPL_TRY(cpl_trainer_keep_model(t, err), err, "cannot keep the model of step %lld", (long long)s->step);
    if (s->due & CPL_DUE_EPOCH)
        end_epoch(t, &h);
    s->due = 0;
    if (validate)
        show_examples(t);
    reset_window(t, cpl_trainer_elapsed(t) - begun);
    return CPL_OK;
}

/* Does what the state says is due, with the average of the weights where there is one. Asked to stop during a
 * validation, it leaves everything as it was. */
static cpl_status settle(cpl_trainer *t, cpl_error *err)
{
    cpl_trainer_use_average(t, 1);
    cpl_status status = settle_now(t, err);
    cpl_trainer_use_average(t, 0);
    return status;
}

/* ---- the loop ---- */

/* Why the run ends now, or NULL. */
static const char *ended(const cpl_trainer *t)
{
    const cpl_config_training *c = t->training;
    if (cpl_stopping_is_over(&t->state.stopping, c))
        return "early_stopping";
    if (t->state.epoch >= c->epochs)
        return "epochs";
    if (c->max_steps > 0 && t->state.step >= c->max_steps)
        return "max_steps";
    if (c->max_minutes > 0 && cpl_trainer_elapsed(t) >= c->max_minutes * 60)
        return "max_minutes";
    return NULL;
}

/* What the batch that was just run makes due. */
static int due_now(const cpl_trainer *t, const cpl_step_result *r)
{
    int64_t every = t->training->validate_every;
    int due = t->state.in_epoch >= t->steps_in_epoch ? CPL_DUE_EPOCH : 0;
    if (every > 0 ? r->updated && t->state.step % every == 0 : due)
        due |= CPL_DUE_VALIDATION;
    return t->valid ? due : due & CPL_DUE_EPOCH;
}

static cpl_status advance(cpl_trainer *t, cpl_error *err)
{
    cpl_step_result r;
    cpl_status status = cpl_trainer_step(t, &r, err);
    if (status != CPL_OK)
        return status;
    t->steps_here += r.updated;
    cpl_trainer_tell_step(t, &r);
    t->state.due = due_now(t, &r);
    if (t->state.due == 0 && !cpl_trainer_save_is_due(t, r.updated))
        return CPL_OK;
    double begun = cpl_trainer_elapsed(t);
    status = cpl_trainer_save(t, err);
    reset_window(t, cpl_trainer_elapsed(t) - begun);
    return status;
}

/* A limit that falls between two validations: the last steps are validated too. */
static cpl_status last_validation(cpl_trainer *t, cpl_error *err)
{
    cpl_run_state *s = &t->state;
    if (s->step == 0 || (t->valid ? s->validated_step == s->step : s->in_epoch == 0))
        return CPL_OK;
    s->due = t->valid ? CPL_DUE_VALIDATION : 0;
    CPL_TRY(cpl_trainer_save(t, err), err, "cannot save the state");
    return settle(t, err);
}

static cpl_status loop(cpl_trainer *t, const char **reason, cpl_error *err)
{
    cpl_status status = CPL_OK;
    while (status == CPL_OK) {
        if (t->log_status != CPL_OK) {
            if (err)
                *err = t->log_error;
            return t->log_status;
        }
        if (cpl_trainer_stopping(t)) {
            *reason = "signal";
            return CPL_OK;
        }
        if (t->state.due) {
            status = settle(t, err);
            continue; /* a stop during the validation ends the run above */
        }
        *reason = ended(t);
        if (*reason)
            return strcmp(*reason, "early_stopping") == 0 ? CPL_OK : last_validation(t, err);
        status = advance(t, err);
    }
    return status;
}

/* ---- the beginning and the end ---- */

/* All memory is taken and touched here, before the first step. The larger plan first: one block serves both. */
static cpl_status reserve(cpl_trainer *t, cpl_error *err)
{
    size_t bytes[CPL_MODES] = {0};
    cpl_binding largest = t->capacity[CPL_TRAIN];
    cpl_binding_grow(&largest, &t->capacity[CPL_EVALUATE]);
    CPL_TRY(cpl_program_reserve_inputs(t->program, &largest, err), err, "cannot make room for training");
    t->program->plan_user = t;
    t->program->plan_made = cpl_trainer_tell_plan;
    for (int m = 0; m < CPL_MODES; m++)
        if (m == CPL_TRAIN || t->valid)
            CPL_TRY(cpl_program_block_bytes(t->program, (cpl_mode)m, &t->capacity[m], &bytes[m], err), err,
                    "cannot plan the memory");
    int first = bytes[CPL_TRAIN] >= bytes[CPL_EVALUATE] ? CPL_TRAIN : CPL_EVALUATE;
    for (int i = 0; i < CPL_MODES; i++) {
        int m = i == 0 ? first : 1 - first;
        if (m == CPL_TRAIN || t->valid)
            CPL_TRY(cpl_program_reserve(t->program, (cpl_mode)m, &t->capacity[m], err), err,
                    "cannot make room for training");
    }
    return CPL_OK;
}

/* The optimizer's state stands in every checkpoint, as tensors named "optimizer.m.encoder.rnn.kernel", and so does the
 * average of the weights. */
static cpl_status make_optimizer(cpl_trainer *t, cpl_error *err)
{
    cpl_status status = cpl_optimizer_new(&t->optimizer, t->training, t->program->engine, t->program->gradients, err);
    const char *name;
    const real *block;
    for (int i = 0; status == CPL_OK && (block = cpl_optimizer_state(t->optimizer, i, &name)) != NULL; i++) {
        char prefix[40];
        snprintf(prefix, sizeof prefix, "optimizer.%s.", name);
        status = cpl_model_set_add_block(t->set, prefix, block, cpl_optimizer_changes, err);
    }
    if (status != CPL_OK || !(t->training->ema > 0))
        return status;
    status = cpl_average_new(&t->average, t->training, t->program->engine, err);
    if (status == CPL_OK)
        status = cpl_model_set_add_block(t->set, CPL_AVERAGE_PREFIX, cpl_average_block(t->average),
                                         cpl_optimizer_changes, err);
    return status;
}

static cpl_status begin(cpl_trainer *t, cpl_error *err)
{
    CPL_TRY(cpl_run_log_open(&t->run_log, t->options->folder->log, err), err, "cannot begin the run");
    CPL_TRY(make_optimizer(t, err), err, "cannot begin the run");
    cpl_run_state_start(&t->state, t->data->checksum);
    if (t->checkpoint) {
        cpl_status status = cpl_trainer_restore(t, err);
        if (status == CPL_OK)
            status = cpl_run_log_cut(t->run_log, t->options->at.log_bytes, err);
        if (status != CPL_OK)
            return status;
    }
    cpl_model_file_close(t->checkpoint); /* its pages would count as the run's memory */
    t->checkpoint = NULL;
    t->clock_offset = t->state.elapsed - now();
    t->epoch_offset = t->state.elapsed - t->state.epoch_seconds;
    t->log = (cpl_log){.sink = cpl_trainer_tell_message, .user = t};
    cpl_trainer_tell_start(t);
    CPL_TRY(reserve(t, err), err, "cannot begin the run");
    if (t->profiled)
        CPL_TRY(cpl_train_profile_new(&t->profile, t, err), err, "cannot begin the run");
    t->saved_at = t->first_step_at = t->window.since = cpl_trainer_elapsed(t);
    return CPL_OK;
}

/* model.safetensors at the end: the best weights when a validation gave a number and restore_best is on, which are
 * there already; the last ones otherwise (G01). */
static cpl_status final_model(cpl_trainer *t, int stopped, cpl_error *err)
{
    const cpl_stopping *s = &t->state.stopping;
    int keep_best = s->has_best && (t->training->stopping.restore_best || !t->training->early_stopping);
    if (stopped && t->model_step >= 0)
        return CPL_OK; /* the run is not over */
    if (!keep_best)
        return t->model_step == t->state.step ? CPL_OK : cpl_trainer_save_model(t, err);
    if (t->model_step != s->best_step)
        cpl_log_warning(&t->log, "'%s' holds the weights of step %lld, not of the best step %lld",
                        t->options->folder->model, (long long)t->model_step, (long long)s->best_step);
    return CPL_OK;
}

cpl_status cpl_trainer_run(cpl_trainer *t, const cpl_fit_options *options, cpl_error *err)
{
    const char *reason = "";
    t->options = options;
    t->checkpoint = options->checkpoint;
    t->resumed = t->checkpoint != NULL;
    CPL_TRY(begin(t, err), err, "cannot train in '%s'", options->folder->folder);
    CPL_TRY(loop(t, &reason, err), err, "training in '%s' failed", options->folder->folder);
    int stopped = strcmp(reason, "signal") == 0;
    CPL_TRY(cpl_trainer_save(t, err), err, "cannot save the state of the run");
    CPL_TRY(final_model(t, stopped, err), err, "cannot save the model");
    if (t->profile)
        CPL_TRY(cpl_train_profile_tell(t, err), err, "cannot write the profile");
    cpl_trainer_tell_end(t, reason);
    if (t->log_status != CPL_OK) {
        if (err)
            *err = t->log_error;
        return t->log_status;
    }
    if (stopped)
        CPL_FAIL(err, CPL_STOPPED, "stopped after step %lld; the state is saved, --resume goes on",
                 (long long)t->state.step);
    return CPL_OK;
}
