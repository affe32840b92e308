/* steps.c: one update of training, of one batch or several, and a validation. */
#include "train/trainer.h"

#include <math.h>

#include "base/error.h"

/* The labels of a model without a decoder are the source rows themselves, without noise. */
static cpl_status feed(cpl_trainer *t, const cpl_batch *b, cpl_mode mode, int64_t first, int64_t pairs, cpl_error *err)
{
    cpl_program *p = t->program;
    const int64_t *source = b->source_length + first, *target = b->target_length + first, *length = source;
    const int32_t *const *rows = b->source + first;
    if (t->noise_ids)
        cpl_trainer_add_noise(t, b, mode, first, pairs, &rows, &length);
    cpl_status status = cpl_feed_ids(p, "source", rows, length, pairs, err);
    if (status == CPL_OK && t->mirrors)
        return cpl_feed_ids(p, "labels", b->source + first, source, pairs, err);
    if (status == CPL_OK)
        status = cpl_feed_ids(p, "target_in", cpl_trainer_target_in(t, b, mode) + first, target, pairs, err);
    if (status == CPL_OK)
        status = cpl_feed_ids(p, "target_out", b->target_out + first, target, pairs, err);
    if (status == CPL_OK && b->copy)
        status = cpl_feed_ids(p, "copy", b->copy + first, source, pairs, err);
    return status;
}

/* Tokens of the sources of sentences first … end − 1: all but padding. */
static int64_t count_sources(const cpl_batch *b, int64_t first, int64_t end)
{
    int64_t n = 0;
    for (int64_t i = first; i < end; i++)
        n += cpl_source_real(b->source[i], b->source_length[i]);
    return n;
}

/* Labels of sentences first … end − 1: all but padding. */
static double count_labels(const cpl_trainer *t, const cpl_batch *b, int64_t first, int64_t end)
{
    int64_t n = 0;
    if (t->mirrors)
        return (double)count_sources(b, first, end);
    for (int64_t i = first; i < end; i++)
        for (int64_t k = 0; k < b->target_length[i]; k++)
            n += b->target_out[i][k] != 0;
    return (double)n;
}

/* What is run as one: a batch of validation, or all batches of an update. */
typedef struct unit {
    cpl_mode mode;
    int grouped;       /* 1: several batches; labels is known from the start */
    double labels;     /* of all of it */
    int64_t sentences; /* that have run */
    int64_t runs;
    cpl_sums sums;
} unit;

/* Piece i of the t->cut of a batch. Its gradient is a mean over its labels, so it weighs as much as its share of all
 * labels: never as one of so many pieces, or a token of a short piece would weigh more (case C03). */
static cpl_status run_piece(cpl_trainer *t, const cpl_batch *b, unit *w, int64_t i, cpl_error *err)
{
    cpl_program *p = t->program;
    int64_t first = t->cut[i], pairs = t->cut[i + 1] - first;
    int part = w->grouped || pairs < b->pairs;
    double share = part && w->labels > 0 ? count_labels(t, b, first, first + pairs) / w->labels : !part;
    p->step = (uint64_t)(t->state.step + 1); /* dropout is a function of it and of the sentence's place in the whole */
    p->part = (cpl_batch_part){.active = part, .first = w->runs == 0, .first_sentence = w->sentences, .weight = share};
    w->sentences += pairs;
    w->runs++;
    cpl_meter begun = cpl_phase_begin(t->profile, CPL_PHASE_FEED);
    cpl_status status = feed(t, b, w->mode, first, pairs, err);
    cpl_phase_end(t->profile, CPL_PHASE_FEED, &begun);
    return status == CPL_OK ? cpl_run(p, w->mode, err) : status;
}

/* Adds the figures of the piece that has just run, which are means over its tokens. */
static void add_piece(const cpl_program *p, cpl_sums *batch)
{
    double tokens = cpl_scalar(p, "count");
    for (int i = 0; i < p->traced->symbol_count; i++)
        if (p->traced->symbols[i].kind == CPL_DIM_TIME && !p->traced->symbols[i].nested)
            batch->computed += (double)p->binding.rows[i];
    if (!(tokens > 0))
        return;
    batch->loss += cpl_scalar(p, "loss") * tokens;
    batch->correct += cpl_scalar(p, "accuracy") * tokens;
    batch->tokens += tokens;
}

/* Runs a batch, in pieces where it does not fit as a whole. */
static cpl_status run_batch(cpl_trainer *t, const cpl_batch *b, unit *w, cpl_error *err)
{
    w->sums.seen += (double)(count_sources(b, 0, b->pairs) + (t->mirrors ? 0 : b->target_tokens));
    int64_t pieces = cpl_trainer_cut(t, w->mode, b);
    if (!w->grouped && pieces > 1)
        w->labels = count_labels(t, b, 0, b->pairs);
    for (int64_t i = 0; i < pieces; i++) {
        cpl_status status = run_piece(t, b, w, i, err);
        if (status != CPL_OK)
            return status;
        add_piece(t->program, &w->sums);
    }
    return CPL_OK;
}

/* Each batch weighs as much as it has target tokens. */
static void add_sums(cpl_sums *to, const cpl_sums *s)
{
    to->loss += s->loss, to->correct += s->correct, to->tokens += s->tokens;
    to->seen += s->seen, to->computed += s->computed;
}

static const cpl_batch *next_batch(cpl_trainer *t, cpl_batcher *from)
{
    cpl_meter begun = cpl_phase_begin(t->profile, CPL_PHASE_DATA);
    const cpl_batch *b = cpl_batcher_next(from);
    cpl_phase_end(t->profile, CPL_PHASE_DATA, &begun);
    return b;
}

/* How many batches the next update has: training.accumulate, or what is left of the pass, so that an end of a pass
 * always lies between two updates. Their labels, which weigh the parts, are counted ahead. */
static cpl_status look_ahead(cpl_trainer *t, unit *w, int64_t *batches, cpl_error *err)
{
    int64_t pass, index, all = cpl_batcher_batches(t->train);
    cpl_batcher_position(t->train, &pass, &index);
    if (index == all)
        pass++, index = 0;
    *batches = t->training->accumulate < all - index ? t->training->accumulate : all - index;
    w->grouped = *batches > 1;
    for (int64_t i = 0; w->grouped && i < *batches; i++) {
        const cpl_batch *b = next_batch(t, t->train);
        w->labels += count_labels(t, b, 0, b->pairs);
    }
    return w->grouped ? cpl_batcher_seek(t->train, pass, index, err) : CPL_OK;
}

/* A batch in which no target token exists has no loss: nothing is updated and no step is counted (case C04). */
static void warn_empty(cpl_trainer *t, const cpl_batch *b)
{
    char place[300];
    const cpl_row *row = &t->data->train.items[b->pair[0]];
    if (t->state.empty++ == 0)
        cpl_log_warning(&t->log, "a batch of %lld pairs, the first from %s, has no target token: it changes nothing "
                        "(further ones are not told)", (long long)b->pairs,
                        cpl_dataset_place(t->data, row->file, row->line, place, sizeof place));
}

static void warn_nan(cpl_trainer *t, const cpl_step_result *r)
{
    if (t->warned_nan || isfinite(r->loss))
        return;
    t->warned_nan = 1;
    cpl_log_warning(&t->log, "the loss of step %lld is not a number: a smaller learning_rate or clip_norm: 1 helps",
                    (long long)t->state.step + 1);
}

/* The norm costs a pass over the gradients: it is made when somebody reads it. */
static double norm_if_needed(const cpl_trainer *t, int64_t step)
{
    int wanted = cpl_optimizer_needs_norm(t->training) || step % t->training->log_every == 0;
    return wanted ? cpl_optimizer_norm(t->optimizer) : (double)NAN;
}

static cpl_status sample(cpl_trainer *t, const cpl_batch *b, cpl_error *err)
{
    if (!t->sampler)
        return CPL_OK;
    cpl_meter begun = cpl_phase_begin(t->profile, CPL_PHASE_SAMPLING);
    cpl_status status = cpl_trainer_sample(t, b, err);
    cpl_phase_end(t->profile, CPL_PHASE_SAMPLING, &begun);
    return status;
}

static void update(cpl_trainer *t, int64_t step, cpl_step_result *r)
{
    cpl_meter begun = cpl_phase_begin(t->profile, CPL_PHASE_OPTIMIZER);
    r->rate = cpl_schedule_rate(t->training, step) * cpl_plateau_share(&t->state.plateau, t->training);
    r->norm = norm_if_needed(t, step);
    cpl_optimizer_update(t->optimizer, step, r->rate, r->norm);
    if (t->average)
        cpl_average_update(t->average, step);
    cpl_phase_end(t->profile, CPL_PHASE_OPTIMIZER, &begun);
}

static cpl_status run_step(cpl_trainer *t, cpl_step_result *r, cpl_error *err)
{
    cpl_run_state *s = &t->state;
    const cpl_batch *b = NULL;
    unit w = {.mode = CPL_TRAIN};
    int64_t step = s->step + 1, batches;
    CPL_TRY(look_ahead(t, &w, &batches, err), err, "step %lld failed", (long long)step);
    for (int64_t i = 0; i < batches; i++) {
        b = next_batch(t, t->train);
        CPL_TRY(sample(t, b, err), err, "step %lld failed", (long long)step);
        CPL_TRY(run_batch(t, b, &w, err), err, "step %lld failed", (long long)step);
    }
    *r = (cpl_step_result){.tokens = w.sums.tokens};
    r->loss = w.runs == 1 ? cpl_scalar(t->program, "loss") : cpl_sums_loss(&w.sums);
    r->accuracy = w.runs == 1 ? cpl_scalar(t->program, "accuracy") : cpl_sums_accuracy(&w.sums);
    add_sums(&s->sums, &w.sums);
    cpl_batcher_position(t->train, &s->pass, &s->index);
    s->in_epoch++;
    if (!(r->tokens > 0)) {
        warn_empty(t, b);
        return CPL_OK;
    }
    warn_nan(t, r);
    update(t, step, r);
    s->step = step;
    r->updated = 1;
    return CPL_OK;
}

cpl_status cpl_trainer_step(cpl_trainer *t, cpl_step_result *r, cpl_error *err)
{
    cpl_meter begun = cpl_profile_step_begin(t->profile);
    cpl_status status = run_step(t, r, err);
    cpl_profile_step_end(t->profile, &begun, t->state.step);
    return status;
}

static cpl_status run_validation(cpl_trainer *t, cpl_sums *sums, int *whole, cpl_error *err)
{
    int64_t batches = cpl_batcher_batches(t->valid);
    *sums = (cpl_sums){0};
    *whole = 0;
    CPL_TRY(cpl_batcher_seek(t->valid, 0, 0, err), err, "cannot start the validation over");
    for (int64_t i = 0; i < batches; i++) {
        unit w = {.mode = CPL_EVALUATE};
        if (cpl_trainer_stopping(t))
            return CPL_OK;
        cpl_profile_validation_batch(t->profile);
        CPL_TRY(run_batch(t, next_batch(t, t->valid), &w, err), err, "validation batch %lld failed",
                (long long)i + 1);
        add_sums(sums, &w.sums);
    }
    *whole = 1;
    return CPL_OK;
}

cpl_status cpl_trainer_validate(cpl_trainer *t, cpl_sums *sums, int *whole, cpl_error *err)
{
    cpl_meter begun = cpl_phase_begin(t->profile, CPL_PHASE_VALIDATION);
    cpl_status status = run_validation(t, sums, whole, err);
    cpl_phase_end(t->profile, CPL_PHASE_VALIDATION, &begun);
    return status;
}
