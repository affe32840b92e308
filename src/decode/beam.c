/* beam.c: beam search over a model's step. Each step, the `width` best continuations of an input's paths are taken:
 * those that are END are outputs, the others are the next paths. Before the last step (`most` tokens) END alone goes
 * on; a path whose best continuation is something else is cut there.
 *
 * An input is done when no path is left, or when none can be ranked above the outputs that are wanted any more: a score
 * only falls, so a path's bound is its score as it is, over the penalty of the greatest length. Rows of what is done
 * have t=0, and cost nothing.
 *
 * Ties: the path that was better so far, then the lowest id; between outputs the one that ended first. */
#include "decode/beam.h"

#include <math.h>
#include <string.h>
#include "base/error.h"
#include "data/data.h"

typedef struct proposing {
    cpl_decoder *d;
    const cpl_decode_batch *batch;
    const int32_t *slot; /* of each row of logits */
    cpl_tensor logits;
    int64_t step; /* from 0 */
    int ruled;
} proposing;

/* The k largest of x[n], the first of equals first. Returns how many there are. */
static int64_t largest(const real *x, int64_t n, int64_t k, cpl_beam_candidate *best)
{
    int64_t count = 0;
    real least = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (!(x[i] > least))
            continue;
        int64_t at = count < k ? count++ : k - 1;
        for (; at > 0 && best[at - 1].score < (double)x[i]; at--)
            best[at] = best[at - 1];
        best[at] = (cpl_beam_candidate){.id = (int32_t)i, .score = (double)x[i]};
        if (count == k)
            least = (real)best[k - 1].score;
    }
    return count;
}

/* The candidates of one path: logits → rules → the best, with the scores that the path would have. e^−700 is as good as
 * no probability; only what is forced may have so little. */
static void propose(void *arguments, int64_t task, int thread)
{
    enum { NOTHING = -700 };
    const proposing *p = arguments;
    const cpl_decode_batch *b = p->batch;
    cpl_decoder *d = p->d;
    cpl_beam *s = d->beam;
    const cpl_kernels *kernels = d->step->engine->kernels;
    int64_t slot = p->slot[task], i = slot / s->width, n = p->logits.width, count = 0;
    real *logits = p->logits.data + task * n;
    const int32_t *list = b->list;
    if (list && (p->ruled || d->copy.vocabulary || b->forbidden >> CPL_ID_WORDS)) { /* which go by ids */
        logits = cpl_shortlist_expand(d, b, thread, logits);
        n = d->vocabulary;
        list = NULL;
    }
    if (d->copy.vocabulary)
        logits = cpl_decode_copy_mix(&d->copy, kernels, thread, task, b, (int32_t)i, logits, &n);
    int32_t top = -1;
    real sum = 0;
    kernels->argmax_sum_exp(1, n, logits, n, &top, &sum);
    s->proposed[slot] = -1;
    if (top < 0 || !isfinite(logits[top]))
        return;
    double z = (double)logits[top] + log((double)sum);
    cpl_decode_path path = {.ids = d->path + (size_t)thread * d->path_room, .length = p->step, .most = b->most[i],
                            .forbidden = b->forbidden | 1u << CPL_ID_PADDING | 1u << CPL_ID_START,
                            .scratch = cpl_decoder_scratch(d, thread, 0)};
    if (p->ruled)
        cpl_beam_path(s, i, (int32_t)(slot % s->width), p->step, d->path + (size_t)thread * d->path_room);
    cpl_decode_rules_apply(&b->rules, &path, logits, n);
    cpl_beam_candidate *best = s->candidates + slot * s->width;
    count = largest(logits, n, s->width, best);
    while (count > 1 && best[count - 1].score - z < NOTHING)
        count--;
    for (int64_t k = 0; k < count; k++) {
        best[k].parent = (int32_t)(slot % s->width);
        best[k].id = list ? list[best[k].id] : best[k].id;
        best[k].score = s->score[slot] + best[k].score - z;
    }
    s->proposed[slot] = (int32_t)count;
}

/* ---- one input ---- */

/* The best candidate that was not taken yet; each path's stand in order. taken[path]: how many of them are gone. */
static const cpl_beam_candidate *take(const cpl_beam *s, int64_t i, int32_t *taken)
{
    const cpl_beam_candidate *best = NULL;
    for (int64_t k = 0; k < s->live[i]; k++) {
        int64_t slot = i * s->width + k;
        const cpl_beam_candidate *c = &s->candidates[slot * s->width + taken[k]];
        if (taken[k] < s->proposed[slot] && (!best || c->score > best->score))
            best = c;
    }
    if (best)
        taken[best->parent]++;
    return best;
}

/* A path ended by END, or, `finished` 0, was cut: its score is then that of its tokens. */
static void end(cpl_beam *s, const cpl_decode_batch *b, int64_t i, const cpl_beam_candidate *c, int64_t step,
                int finished)
{
    double score = finished ? c->score : s->score[i * s->width + c->parent];
    double covered = 0;
    if (b->coverage_penalty > 0) /* padding need not be looked at */
        covered = cpl_beam_covered(s, i, c->parent, step, cpl_source_real(b->source[i], b->length[i]));
    cpl_beam_ending e = {.score = score, .length = step, .slot = c->parent, .finished = finished,
                         .ranked = cpl_decode_rank(b, score, step + finished, covered)};
    for (int64_t k = 0; !finished && k < s->ended[i]; k++) { /* its second continuation cuts it no second time */
        const cpl_beam_ending *other = &s->endings[i * s->width + k];
        if (!other->finished && other->slot == e.slot)
            return;
    }
    cpl_beam_end(s, i, &e);
}

static int is_done(const cpl_beam *s, const cpl_decode_batch *b, int64_t i, int64_t paths)
{
    int64_t wanted = b->nbest > 0 ? b->nbest : 1;
    if (paths == 0)
        return 1;
    if (s->ended[i] < wanted)
        return 0;
    const cpl_beam_ending *last = &s->endings[i * s->width + wanted - 1];
    return last->finished && cpl_decode_rank_bound(b, s->chosen[0].score, b->most[i]) <= last->ranked;
}

/* The chosen candidates become the input's paths. */
static void go_on(cpl_decoder *d, int64_t i, int64_t paths, int64_t step)
{
    cpl_beam *s = d->beam;
    for (int64_t k = 0; k < s->width; k++) {
        int64_t slot = i * s->width + k;
        d->alive[slot] = k < paths;
        if (k >= paths)
            continue;
        const cpl_beam_candidate *c = &s->chosen[k];
        s->score[slot] = c->score;
        s->nodes[step * s->rows + slot] = (cpl_beam_node){.token = c->id, .parent = c->parent};
        d->token[slot] = c->id < d->vocabulary ? c->id : CPL_ID_UNKNOWN; /* what the decoder has no vector of */
    }
    s->live[i] = paths;
}

static void advance(cpl_decoder *d, const cpl_decode_batch *b, int64_t i, int64_t step)
{
    cpl_beam *s = d->beam;
    int64_t paths = 0;
    for (int64_t k = 0; k < s->live[i]; k++)
        if (s->proposed[i * s->width + k] < 0)
            d->rows[i].failed = step + 1;
    if (d->rows[i].failed) {
        s->ended[i] = 0; /* half a search is no answer */
        go_on(d, i, 0, step);
        return;
    }
    int32_t *taken = s->input + i * s->width; /* free between two steps */
    memset(taken, 0, (size_t)s->width * sizeof *taken);
    for (int64_t k = 0; k < s->width; k++) {
        const cpl_beam_candidate *c = take(s, i, taken);
        if (!c)
            break;
        if (c->id == CPL_ID_END || step >= b->most[i])
            end(s, b, i, c, step, c->id == CPL_ID_END);
        else
            s->chosen[paths++] = *c;
    }
    go_on(d, i, is_done(s, b, i, paths) ? 0 : paths, step);
}

/* ---- a step ---- */

/* Where each path looked. */
static cpl_status look(cpl_decoder *d, const cpl_decode_batch *b, int64_t step, cpl_error *err)
{
    cpl_beam *s = d->beam;
    cpl_attention_shape a;
    if (!b->attention && !(b->coverage_penalty > 0))
        return CPL_OK;
    CPL_TRY(cpl_decoder_look(d, &a, err), err, "cannot search");
    for (int64_t r = 0; r < s->rows; r++)
        if (d->alive[r])
            memcpy(s->looks + step * s->tokens + s->look_at[r], d->attention.step + r * a.width,
                   (size_t)s->length[r] * sizeof *s->looks);
    return CPL_OK;
}

/* The states of a model go from the slots that paths stood in to those of the next step. */
static void follow_states(cpl_decoder *of, const cpl_decoder *d, int64_t step)
{
    const cpl_beam *s = d->beam;
    for (int p = 0; p < of->description.states; p++) {
        int64_t n = of->description.state[p].width;
        const real *before = of->state[of->now][p];
        real *next = of->state[!of->now][p];
        for (int64_t r = 0; r < s->rows; r++)
            if (d->alive[r]) {
                int64_t from = r / s->width * s->width + s->nodes[step * s->rows + r].parent;
                memcpy(next + r * n, before + from * n, (size_t)n * sizeof(real));
            }
    }
    of->now = !of->now;
}

/* States, and what was looked at, follow their paths to the slots of the next step. */
static void follow(cpl_decoder *d, const cpl_decode_batch *b, int64_t step)
{
    cpl_beam *s = d->beam;
    follow_states(d, d, step);
    for (int k = 0; k < d->more_count; k++)
        follow_states(d->more[k], d, step);
    for (int64_t r = 0; b->coverage_penalty > 0 && r < s->rows; r++) {
        if (!d->alive[r])
            continue;
        int64_t from = r / s->width * s->width + s->nodes[step * s->rows + r].parent;
        const float *now = s->looks + step * s->tokens + s->look_at[from], *seen = s->seen[step & 1] + s->look_at[from];
        float *next = s->seen[!(step & 1)] + s->look_at[r];
        for (int64_t k = 0; k < s->length[r]; k++)
            next[k] = seen[k] + now[k];
    }
}

static cpl_status search(cpl_decoder *d, const cpl_decode_batch *b, int64_t step, cpl_error *err)
{
    cpl_beam *s = d->beam;
    proposing p = {.d = d, .batch = b, .step = step, .ruled = cpl_decode_rules_any(&b->rules)};
    CPL_TRY(cpl_decoder_logits(d, b, s->width, &p.logits, err), err, "cannot search");
    p.slot = d->step->geometry[cpl_program_symbol(d->step, "t")].sentence;
    CPL_TRY(cpl_beam_reserve_step(s, b, step, err), err, "cannot search");
    CPL_TRY(cpl_decoder_reserve_paths(d, step + 1, err), err, "cannot search");
    CPL_TRY(look(d, b, step, err), err, "cannot search");
    for (int64_t k = 0; k < p.logits.rows; k++)
        s->input[k] = (int32_t)(p.slot[k] / s->width);
    CPL_TRY(cpl_decode_copy_see(&d->copy, d->step, b, s->input, err), err, "cannot search");
    cpl_pool_run(d->step->engine->pool, p.logits.rows, propose, &p);
    for (int64_t i = 0; i < b->count; i++)
        if (s->live[i] > 0)
            advance(d, b, i, step);
    follow(d, b, step);
    return CPL_OK;
}

/* ---- a batch ---- */

static cpl_status encode(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    CPL_TRY(cpl_beam_reserve(d, b, err), err, "cannot search");
    CPL_TRY(cpl_shortlist_begin(d, b, err), err, "cannot search");
    CPL_TRY(cpl_decoder_encode(d, b, err), err, "cannot search");
    CPL_TRY(cpl_beam_fan_out(d, b, err), err, "cannot search");
    return CPL_OK;
}

/* One path: END-less, in the first slot. */
static cpl_status begin(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    CPL_TRY(encode(d, b, err), err, "cannot decode");
    for (int k = 0; k < d->more_count; k++) {
        cpl_decode_batch its = cpl_ensemble_batch(b, k);
        CPL_TRY(encode(d->more[k], &its, err), err, "model %d", k + 2);
    }
    cpl_beam *s = d->beam;
    for (int64_t r = 0; r < s->rows; r++) {
        d->token[r] = CPL_ID_START;
        d->alive[r] = r % s->width == 0;
        s->score[r] = 0;
    }
    for (int64_t i = 0; i < b->count; i++) {
        d->rows[i] = (cpl_decode_row){.score = 0};
        s->live[i] = 1;
        s->ended[i] = 0;
    }
    memset(s->seen[0], 0, (size_t)s->tokens * sizeof *s->seen[0]);
    return CPL_OK;
}

cpl_status cpl_beam_decode(cpl_decoder *d, const cpl_decode_batch *b, const cpl_decoded **rows, cpl_error *err)
{
    int64_t alive = b->count;
    CPL_TRY(begin(d, b, err), err, "cannot decode");
    for (int64_t step = 0; alive > 0; step++) {
        CPL_TRY(cpl_decoder_step(d, d->beam->rows, err), err, "cannot decode");
        CPL_TRY(search(d, b, step, err), err, "cannot decode");
        alive = 0;
        for (int64_t r = 0; r < d->beam->rows; r++)
            alive += d->alive[r];
    }
    CPL_TRY(cpl_beam_collect(d, b, err), err, "cannot decode");
    *rows = d->results;
    return cpl_decoder_verdict(d, b->count, err);
}
