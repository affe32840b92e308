/* run_state.c: the state of a run as JSON and back. */
#include "train/run_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

void cpl_run_state_start(cpl_run_state *s, uint64_t data)
{
    memset(s, 0, sizeof *s);
    s->data = data;
    s->validated_step = -1;
}

void cpl_run_state_free(cpl_run_state *s)
{
    cpl_release(s->history);
    s->history = NULL;
    s->history_count = s->history_capacity = 0;
}

cpl_status cpl_run_state_remember(cpl_run_state *s, const cpl_history_entry *entry, cpl_error *err)
{
    if (cpl_grow(&s->history, &s->history_capacity, s->history_count + 1, sizeof *s->history))
        CPL_FAIL(err, CPL_FAILED, "no memory for the history");
    s->history[s->history_count++] = *entry;
    return CPL_OK;
}

double cpl_sums_loss(const cpl_sums *s)
{
    return s->tokens > 0 ? s->loss / s->tokens : (double)NAN;
}

double cpl_sums_accuracy(const cpl_sums *s)
{
    return s->tokens > 0 ? s->correct / s->tokens : (double)NAN;
}

/* ---- the fields, once for both ways ---- */

typedef struct field {
    const char *name;
    char kind; /* i: int64_t; o: the same, 0 in a state from before there was such a field; f: int; r: double */
    size_t offset;
} field;

#define INTEGER(name, member) {name, 'i', offsetof(cpl_run_state, member)}
#define OPTIONAL(name, member) {name, 'o', offsetof(cpl_run_state, member)}
#define FLAG(name, member) {name, 'f', offsetof(cpl_run_state, member)}
#define REAL(name, member) {name, 'r', offsetof(cpl_run_state, member)}

static const field fields[] = {
    INTEGER("step", step), INTEGER("epoch", epoch), INTEGER("in_epoch", in_epoch), INTEGER("pass", pass),
    INTEGER("index", index), INTEGER("validated_step", validated_step), INTEGER("empty_batches", empty),
    FLAG("due", due), REAL("elapsed_seconds", elapsed), REAL("epoch_seconds", epoch_seconds),
    REAL("loss_sum", sums.loss), REAL("correct_sum", sums.correct), REAL("tokens", sums.tokens),
    REAL("seen_tokens", sums.seen), REAL("computed_tokens", sums.computed),
    INTEGER("validations", stopping.seen), INTEGER("wait", stopping.wait), FLAG("has_best", stopping.has_best),
    REAL("best", stopping.best), INTEGER("best_epoch", stopping.best_epoch), INTEGER("best_step", stopping.best_step),
    OPTIONAL("rate_wait", plateau.wait), OPTIONAL("rate_cuts", plateau.cuts)};
enum { FIELDS = sizeof fields / sizeof *fields };

static cpl_json *state_json(const cpl_run_state *s)
{
    cpl_json *object = cpl_json_object();
    char data[24];
    snprintf(data, sizeof data, "%016" PRIx64, s->data);
    cpl_json_set_text(object, "data", data);
    for (int i = 0; i < FIELDS; i++) {
        const char *at = (const char *)s + fields[i].offset;
        if (fields[i].kind == 'i' || fields[i].kind == 'o')
            cpl_json_set_int(object, fields[i].name, *(const int64_t *)(const void *)at);
        else if (fields[i].kind == 'f')
            cpl_json_set_int(object, fields[i].name, *(const int *)(const void *)at);
        else
            cpl_json_set_real(object, fields[i].name, *(const double *)(const void *)at, 0);
    }
    return object;
}

static cpl_json *history_json(const cpl_run_state *s)
{
    cpl_json *array = cpl_json_array();
    for (size_t i = 0; i < s->history_count; i++) {
        const cpl_history_entry *h = &s->history[i];
        cpl_json *object = cpl_json_object();
        cpl_json_set_int(object, "epoch", h->epoch);
        cpl_json_set_int(object, "step", h->step);
        cpl_json_set_real(object, "loss", h->loss, 0);
        cpl_json_set_real(object, "accuracy", h->accuracy, 0);
        cpl_json_set_real(object, "val_loss", h->val_loss, 0);
        cpl_json_set_real(object, "val_accuracy", h->val_accuracy, 0);
        cpl_json_add(array, object);
    }
    return array;
}

static cpl_status write_one(cpl_json *root, cpl_str *to, cpl_error *err)
{
    if (!root)
        CPL_FAIL(err, CPL_FAILED, "no memory for the state of the run");
    cpl_status status = cpl_json_write(root, to, err);
    cpl_json_free(root);
    return status;
}

cpl_status cpl_run_state_write(const cpl_run_state *s, cpl_str *state, cpl_str *history, cpl_error *err)
{
    CPL_TRY(write_one(state_json(s), state, err), err, "cannot write the state of the run");
    CPL_TRY(write_one(history_json(s), history, err), err, "cannot write the history of the run");
    return CPL_OK;
}

static cpl_status read_state(cpl_run_state *s, const cpl_json *root, cpl_error *err)
{
    const char *data = cpl_json_text(cpl_json_get(root, "data"), NULL);
    if (!data)
        CPL_FAIL(err, CPL_FAILED, "the state of the run has no 'data'");
    s->data = strtoull(data, NULL, 16);
    for (int i = 0; i < FIELDS; i++) {
        const cpl_json *value = cpl_json_get(root, fields[i].name);
        char *at = (char *)s + fields[i].offset;
        cpl_json_kind what = cpl_json_what(value);
        if (what == CPL_JSON_NONE && fields[i].kind == 'o')
            continue;
        if (what == CPL_JSON_NONE || (fields[i].kind != 'r' && what != CPL_JSON_INT))
            CPL_FAIL(err, CPL_FAILED, "the state of the run has no '%s'", fields[i].name);
        if (fields[i].kind == 'i' || fields[i].kind == 'o')
            *(int64_t *)(void *)at = cpl_json_int(value, 0);
        else if (fields[i].kind == 'f')
            *(int *)(void *)at = (int)cpl_json_int(value, 0);
        else
            *(double *)(void *)at = cpl_json_real(value, (double)NAN); /* null: it was not a number */
    }
    return CPL_OK;
}

static cpl_status read_history(cpl_run_state *s, const cpl_json *root, cpl_error *err)
{
    const double none = (double)NAN;
    for (size_t i = 0; i < cpl_json_size(root); i++) {
        const cpl_json *item = cpl_json_at(root, i);
        cpl_history_entry h = {.epoch = cpl_json_int(cpl_json_get(item, "epoch"), 0),
                               .step = cpl_json_int(cpl_json_get(item, "step"), 0),
                               .loss = cpl_json_real(cpl_json_get(item, "loss"), none),
                               .accuracy = cpl_json_real(cpl_json_get(item, "accuracy"), none),
                               .val_loss = cpl_json_real(cpl_json_get(item, "val_loss"), none),
                               .val_accuracy = cpl_json_real(cpl_json_get(item, "val_accuracy"), none)};
        cpl_status status = cpl_run_state_remember(s, &h, err);
        if (status != CPL_OK)
            return status;
    }
    return CPL_OK;
}

cpl_status cpl_run_state_read(cpl_run_state *s, const char *state, size_t state_length, const char *history,
                              size_t history_length, cpl_error *err)
{
    cpl_json *root;
    cpl_run_state_start(s, 0);
    CPL_TRY(cpl_json_parse(&root, state, state_length, err), err, "cannot read the state of the run");
    cpl_status status = read_state(s, root, err);
    cpl_json_free(root);
    if (status != CPL_OK)
        return status;
    CPL_TRY(cpl_json_parse(&root, history, history_length, err), err, "cannot read the history of the run");
    status = read_history(s, root, err);
    cpl_json_free(root);
    return status;
}

/* ---- the end ---- */

/* Only what is not in use already, and may be used. */
static void add_help(const cpl_config *c, cpl_str *to)
{
    cpl_str_add(to, "; what helps: ");
    cpl_str_add(to, c->model.dropout.layer > 0 ? "more model.dropout" : "model.dropout=0.3");
    if (c->training.label_smoothing == 0 && !c->model.copy)
        cpl_str_add(to, ", training.label_smoothing=0.1");
    cpl_str_add(to, c->training.early_stopping ? "" : ", training.early_stopping");
    cpl_str_add(to, ", a smaller model.units, more data");
    if (c->training.early_stopping && c->training.stopping.monitor == CPL_MONITOR_VAL_LOSS)
        cpl_str_add(to, "; the loss turns before the outputs do: training.early_stopping.monitor=val_accuracy often "
                    "keeps a better model");
}

void cpl_run_state_parted(const cpl_run_state *s, const cpl_config *c, cpl_str *to)
{
    const cpl_history_entry *best = NULL, *last = NULL;
    for (size_t i = 0; i < s->history_count; i++) {
        const cpl_history_entry *h = &s->history[i];
        if (isnan(h->val_loss))
            continue;
        last = h;
        if (!best || h->val_loss < best->val_loss)
            best = h;
    }
    if (!best || last == best || !(last->val_loss > 1.1 * best->val_loss) || !(last->loss < best->loss))
        return;
    cpl_str_printf(to, "training and validation loss have parted: since epoch %" PRId64 " the training loss fell from "
                   "%.4f to %.4f while the validation loss rose from %.4f to %.4f", best->epoch, best->loss, last->loss,
                   best->val_loss, last->val_loss);
    add_help(c, to);
}
