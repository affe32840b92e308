/* events.c: what a run tells: a line of log.jsonl for programs, and a progress event for the caller. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "train/trainer.h"

enum { LOSS_DIGITS = 9, TIME_DIGITS = 6 };

/* ---- log.jsonl ---- */

static cpl_json *begin(const cpl_trainer *t, const char *event)
{
    cpl_json *line = cpl_json_object();
    cpl_json_set_text(line, "event", event);
    cpl_json_set_real(line, "elapsed_seconds", cpl_trainer_elapsed(t), TIME_DIGITS);
    return line;
}

/* Takes line over. The first failure is kept for the loop to return: a full disk must not go unnoticed. */
static void end(cpl_trainer *t, cpl_json *line)
{
    cpl_str text = {0};
    cpl_status status = CPL_OK;
    if (t->run_log && t->log_status == CPL_OK) {
        status = line ? cpl_json_write(line, &text, &t->log_error)
                      : cpl_error_set(&t->log_error, CPL_FAILED, "no memory for a line of the log");
        if (status == CPL_OK)
            status = cpl_run_log_line(t->run_log, text.data, text.length, &t->log_error);
        t->log_status = status;
    }
    cpl_str_free(&text);
    cpl_json_free(line);
}

static void figures(cpl_json *line, const char *loss, double loss_value, const char *accuracy, double accuracy_value)
{
    cpl_json_set_real(line, loss, loss_value, LOSS_DIGITS);
    cpl_json_set_real(line, accuracy, accuracy_value, LOSS_DIGITS);
}

/* What training.metrics asks for. */
static void decoded_figures(const cpl_trainer *t, cpl_json *line, const cpl_history_entry *h)
{
    char name[40];
    for (int f = 0; f < CPL_FIGURES && !isnan(h->val_accuracy); f++) {
        if (!(t->wanted & cpl_figure_bit(f)))
            continue;
        snprintf(name, sizeof name, "val_%s", cpl_figure_at(f)->name);
        cpl_json_set_real(line, name, t->figure[f], LOSS_DIGITS);
    }
}

/* The same for a person: "val_bleu 15.20  val_exact 0.3460". Returns buffer. */
static const char *decoded_text(const cpl_trainer *t, const cpl_history_entry *h, char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (int f = 0; f < CPL_FIGURES && !isnan(h->val_accuracy); f++) {
        size_t used = strlen(buffer);
        if (t->wanted & cpl_figure_bit(f))
            snprintf(buffer + used, size - used, "%sval_%s %.*f", used ? "  " : "", cpl_figure_at(f)->name,
                     cpl_figure_at(f)->percent ? 2 : 4, t->figure[f]);
    }
    return buffer;
}

/* ---- progress ---- */

/* Every event knows where the run stands. */
static cpl_progress_event event_of(const cpl_trainer *t, const char *kind)
{
    const double none = (double)NAN;
    int64_t limit = t->training->max_steps, planned = t->training->epochs;
    if (limit > 0 && (limit + t->steps_in_epoch - 1) / t->steps_in_epoch < planned)
        planned = (limit + t->steps_in_epoch - 1) / t->steps_in_epoch;
    return (cpl_progress_event){.kind = kind, .epoch = t->state.epoch + 1, .epochs = planned, .step = t->state.step,
                                .step_in_epoch = t->state.in_epoch, .steps_in_epoch = t->steps_in_epoch,
                                .loss = none, .accuracy = none, .val_loss = none, .val_accuracy = none,
                                .learning_rate = none, .tokens_per_second = none,
                                .elapsed_seconds = cpl_trainer_elapsed(t), .seconds_left = none};
}

static void send(const cpl_trainer *t, const cpl_progress_event *e)
{
    const cpl_fit_options *o = t->options;
    int validation = strcmp(e->kind, "validation") == 0 || strcmp(e->kind, "epoch") == 0;
    if (!o)
        return;
    cpl_progress_callback call = validation ? o->on_validation : o->on_event;
    if (strcmp(e->kind, "step") == 0)
        call = o->on_step;
    if (call)
        call(o->user, e);
}

/* At the speed so far, up to the nearest of all limits. */
static double seconds_left(const cpl_trainer *t, double elapsed)
{
    if (t->steps_here < 10)
        return (double)NAN;
    double pace = (elapsed - t->first_step_at) / (double)t->steps_here;
    double steps = (double)(t->training->epochs - t->state.epoch) * (double)t->steps_in_epoch -
                   (double)t->state.in_epoch;
    if (t->training->max_steps > 0)
        steps = fmin(steps, (double)(t->training->max_steps - t->state.step));
    double left = steps * pace;
    if (t->training->max_minutes > 0)
        left = fmin(left, t->training->max_minutes * 60 - elapsed);
    return left > 0 ? left : 0;
}

/* ---- events ---- */

void cpl_trainer_tell_message(void *trainer, cpl_log_level level, const char *text)
{
    cpl_trainer *t = trainer;
    if (level == CPL_LOG_WARNING) {
        cpl_json *line = begin(t, "warning");
        cpl_json_set_text(line, "message", text);
        end(t, line);
    }
    if (t->options && t->options->message)
        t->options->message(t->options->user, level == CPL_LOG_WARNING, text);
}

/* What trains and what does not, by layer. */
static void add_frozen(const cpl_parameters *p, cpl_json *line)
{
    cpl_json *lists[2] = {cpl_json_array(), cpl_json_array()};
    char last[2][200] = {"", ""};
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(p, i);
        const char *dot = strrchr(info->path, '.');
        int trains = cpl_optimizer_changes(info);
        char layer[200];
        snprintf(layer, sizeof layer, "%.*s", (int)(dot ? dot - info->path : (long)strlen(info->path)), info->path);
        if (strcmp(layer, last[trains]) != 0)
            cpl_json_add_text(lists[trains], layer, strlen(layer));
        memcpy(last[trains], layer, sizeof layer);
    }
    cpl_json_set(line, "trained", lists[1]);
    cpl_json_set(line, "frozen", lists[0]);
}

static void add_facts(cpl_trainer *t, cpl_json *line)
{
    const cpl_engine *e = t->program->engine;
    cpl_json *versions = cpl_json_object();
    cpl_json_set_text(versions, "couplet", CPL_VERSION_STRING);
    cpl_json_set_int(versions, "format", CPL_MODEL_FORMAT_VERSION);
    cpl_json_set(line, "versions", versions);
    cpl_json_set(line, "options", cpl_config_to_json(t->config));
    cpl_json_set(line, "data", cpl_dataset_report_json(t->data));
    cpl_json_set_int(line, "parameters", cpl_parameters_elements(e->parameters));
    cpl_json_set_int(line, "trainable_parameters", cpl_trainer_trainable(t));
    if (t->training->optimizer.sparse_embeddings)
        cpl_json_set_int(line, "sparse_parameters", cpl_trainer_sparse(t));
    add_frozen(e->parameters, line);
    cpl_json_set_int(line, "planned_peak_bytes", (int64_t)t->memory.peak);
    cpl_json_set_int(line, "micro_batch", t->memory.micro_batch);
    cpl_json_set_text(line, "recompute", cpl_recompute_name(t->memory.recompute));
    cpl_json_set_int(line, "recomputed_calls", t->memory.recomputed);
    cpl_json_set_int(line, "loss_block_rows", t->memory.loss_block);
    if (t->memory.budget > 0)
        cpl_json_set_int(line, "memory_budget_bytes", (int64_t)t->memory.budget);
    cpl_json_set_text(line, "kernels", e->kernels->name);
    cpl_json_set_text(line, "precision", cpl_trainer_precision(t));
    cpl_json_set_int(line, "threads", e->threads);
    cpl_json_set_int(line, "steps_per_epoch", t->steps_in_epoch);
}

void cpl_trainer_tell_start(cpl_trainer *t)
{
    int resumed = t->resumed;
    cpl_json *line = begin(t, resumed ? "resume" : "start");
    if (resumed) {
        cpl_json_set_int(line, "step", t->state.step);
        cpl_json_set_int(line, "epoch", t->state.epoch);
        cpl_json_set_int(line, "step_in_epoch", t->state.in_epoch);
    }
    add_facts(t, line);
    end(t, line);
    for (int i = 0; i < t->options->warning_count; i++) {
        line = begin(t, "warning");
        cpl_json_set_text(line, "message", t->options->warnings[i]);
        end(t, line);
    }
    char text[240], part[40] = "";
    if (cpl_trainer_trainable(t) < cpl_parameters_elements(t->program->engine->parameters))
        snprintf(part, sizeof part, "%" PRId64 " trainable of ", cpl_trainer_trainable(t));
    if (resumed)
        snprintf(text, sizeof text, "going on at epoch %" PRId64 ", step %" PRId64, t->state.epoch + 1, t->state.step);
    else
        snprintf(text, sizeof text, "%s%" PRId64 " parameters, %" PRId64 " steps an epoch, %d threads, kernels %s%s",
                 part, cpl_parameters_elements(t->program->engine->parameters), t->steps_in_epoch,
                 t->program->engine->threads, t->program->engine->kernels->name,
                 t->training->precision == CPL_PRECISION_BFLOAT16 ? ", precision bfloat16" : "");
    cpl_progress_event e = event_of(t, "start");
    e.text = text;
    send(t, &e);
}

/* Tokens per second since the last line of the log. For a bar, a window that is too short to tell shows the speed of
 * the one before. */
static double speed(cpl_trainer *t, double elapsed, double tokens, int for_log)
{
    cpl_window *w = &t->window;
    w->tokens += tokens;
    if (for_log || elapsed - w->since > 0.1 || !(w->rate > 0))
        w->rate = elapsed > w->since ? w->tokens / (elapsed - w->since) : w->rate;
    return w->rate;
}

void cpl_trainer_tell_step(cpl_trainer *t, const cpl_step_result *r)
{
    cpl_progress_event e = event_of(t, "step");
    int logged = r->updated && t->state.step % t->training->log_every == 0;
    e.tokens_per_second = speed(t, e.elapsed_seconds, r->tokens, logged);
    e.loss = cpl_sums_loss(&t->state.sums);
    e.accuracy = cpl_sums_accuracy(&t->state.sums);
    e.learning_rate = r->rate;
    e.seconds_left = seconds_left(t, e.elapsed_seconds);
    if (logged) {
        cpl_json *line = begin(t, "step");
        cpl_json_set_int(line, "step", t->state.step);
        cpl_json_set_int(line, "epoch", t->state.epoch + 1);
        figures(line, "loss", r->loss, "accuracy", r->accuracy);
        cpl_json_set_real(line, "learning_rate", r->rate, LOSS_DIGITS);
        cpl_json_set_real(line, "gradient_norm", r->norm, LOSS_DIGITS);
        cpl_json_set_real(line, "tokens_per_second", e.tokens_per_second, TIME_DIGITS);
        end(t, line);
        t->window.since = e.elapsed_seconds;
        t->window.tokens = 0;
    }
    send(t, &e);
}

void cpl_trainer_tell_validation(cpl_trainer *t, const cpl_history_entry *h)
{
    if (!(t->state.due & CPL_DUE_EPOCH) || t->training->validate_every > 0) {
        cpl_json *line = begin(t, "validation");
        cpl_json_set_int(line, "step", h->step);
        cpl_json_set_int(line, "epoch", h->epoch);
        figures(line, "val_loss", h->val_loss, "val_accuracy", h->val_accuracy);
        decoded_figures(t, line, h);
        end(t, line);
    }
    char text[400];
    cpl_progress_event e = event_of(t, "validation");
    e.val_figures = decoded_text(t, h, text, sizeof text);
    e.loss = h->loss, e.accuracy = h->accuracy;
    e.val_loss = h->val_loss, e.val_accuracy = h->val_accuracy;
    send(t, &e);
}

void cpl_trainer_tell_epoch(cpl_trainer *t, const cpl_history_entry *h, const cpl_sums *sums)
{
    cpl_json *line = begin(t, "epoch");
    cpl_json_set_int(line, "epoch", h->epoch);
    cpl_json_set_int(line, "step", h->step);
    figures(line, "loss", h->loss, "accuracy", h->accuracy);
    figures(line, "val_loss", h->val_loss, "val_accuracy", h->val_accuracy);
    decoded_figures(t, line, h);
    cpl_json_set_real(line, "seconds", cpl_trainer_elapsed(t) - t->epoch_offset, TIME_DIGITS);
    cpl_json_set_int(line, "traces", cpl_traces(t->program));
    cpl_json_set_int(line, "plans", cpl_plans(t->program));
    cpl_json_set_real(line, "valid_token_share", sums->computed > 0 ? sums->seen / sums->computed : (double)NAN,
                      TIME_DIGITS);
    end(t, line);
    char text[400];
    cpl_progress_event e = event_of(t, "epoch");
    e.val_figures = decoded_text(t, h, text, sizeof text);
    e.loss = h->loss, e.accuracy = h->accuracy;
    e.val_loss = h->val_loss, e.val_accuracy = h->val_accuracy;
    send(t, &e);
}

void cpl_trainer_tell_example(cpl_trainer *t, const char *source, const char *reference, const char *output)
{
    cpl_json *line = begin(t, "example");
    cpl_json_set_int(line, "step", t->state.step);
    cpl_json_set_text(line, "source", source);
    cpl_json_set_text(line, "reference", reference);
    cpl_json_set_text(line, "output", output);
    end(t, line);
    cpl_progress_event e = event_of(t, "example");
    e.source = source, e.reference = reference, e.output = output;
    send(t, &e);
}

void cpl_trainer_tell_checkpoint(cpl_trainer *t)
{
    cpl_json *line = begin(t, "checkpoint");
    cpl_json_set_int(line, "step", t->state.step);
    cpl_json_set_int(line, "epoch", t->state.epoch);
    end(t, line);
    cpl_progress_event e = event_of(t, "checkpoint");
    send(t, &e);
}

void cpl_trainer_tell_plan(void *trainer, const char *reason, const cpl_binding *capacity, size_t bytes)
{
    cpl_trainer *t = trainer;
    const cpl_graph *g = t->program->traced;
    cpl_json *line = begin(t, "plan"), *sizes = cpl_json_object();
    cpl_json_set_int(sizes, "batch", capacity->batch);
    for (int i = 0; i < g->symbol_count; i++) {
        char name[80];
        if (g->symbols[i].kind != CPL_DIM_TIME || g->symbols[i].nested)
            continue;
        snprintf(name, sizeof name, "tokens_%s", g->symbols[i].name);
        cpl_json_set_int(sizes, name, capacity->rows[i]);
        snprintf(name, sizeof name, "longest_%s", g->symbols[i].name);
        cpl_json_set_int(sizes, name, capacity->longest[i]);
    }
    cpl_json_set_text(line, "reason", reason);
    cpl_json_set(line, "capacity", sizes);
    cpl_json_set_int(line, "bytes", (int64_t)bytes);
    cpl_json_set_int(line, "micro_batch", t->memory.micro_batch);
    end(t, line);
}

void cpl_trainer_tell_profile(cpl_trainer *t, const char *text)
{
    cpl_json *line = begin(t, "profile");
    cpl_train_profile_facts(t, line);
    end(t, line);
    cpl_progress_event e = event_of(t, "profile");
    e.text = text;
    send(t, &e);
}

void cpl_trainer_tell_end(cpl_trainer *t, const char *reason)
{
    const cpl_stopping *s = &t->state.stopping;
    cpl_json *line = begin(t, "end");
    if (s->has_best)
        cpl_json_set_int(line, "best_epoch", s->best_epoch);
    else
        cpl_json_set_real(line, "best_epoch", (double)NAN, 0); /* null: no validation gave a number */
    cpl_json_set_text(line, "reason", reason);
    cpl_json_set_int(line, "step", t->state.step);
    cpl_json_set_int(line, "peak_rss_bytes", (int64_t)cpl_peak_rss());
    cpl_json_set_int(line, "planned_peak_bytes", (int64_t)t->memory.peak);
    cpl_str text = {0};
    cpl_str_printf(&text, "ended: %s, after %" PRId64 " steps", reason, t->state.step);
    if (s->has_best)
        cpl_str_printf(&text, "; best: epoch %" PRId64 ", step %" PRId64 ", %s %.6g", s->best_epoch, s->best_step,
                       cpl_stopping_monitor(&t->training->stopping), s->best);
    cpl_str parted = {0};
    cpl_run_state_parted(&t->state, t->config, &parted);
    if (parted.length > 0 && !parted.failed) {
        cpl_json_set_text(line, "advice", parted.data);
        cpl_str_printf(&text, "\n%s", parted.data);
    }
    end(t, line);
    cpl_progress_event e = event_of(t, "end");
    e.text = text.failed ? "" : text.data;
    send(t, &e);
    cpl_str_free(&text);
    cpl_str_free(&parted);
}
