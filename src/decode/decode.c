/* decode.c: encode once, then step after step until every row is done.
 *
 * Rows that are done stay in the batch with t=0: they cost nothing, and nothing has to move. The encoder's outputs
 * are never copied: the step program reads them where the encode program wrote them. */
#include "decode/decode.h"

#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "decode/internal.h"
#include "text/text.h"

/* ---- making one ---- */

static cpl_status compile(cpl_decoder *d, const cpl_model_kind *kind, const cpl_model_sizes *n, cpl_engine *engine,
                          cpl_error *err)
{
    /* Of the program that is shared only the engine counts. */
    cpl_program shared = {.engine = engine};
    cpl_compile_options o = {.name = "encode", .share = &shared, .inference = 1};
    kind->describe(n, &d->description);
    d->vocabulary = n->target_vocabulary;
    d->copy.vocabulary = d->description.copies ? n->target_vocabulary : 0;
    if (d->description.memories > 0 || d->description.starts || d->description.mirrors)
        CPL_TRY(cpl_compile(&d->encode, kind->encode, n, &o, err), err, "cannot decode with '%s'", kind->name);
    d->step = d->encode;
    if (d->description.mirrors)
        return CPL_OK;
    o.name = "step";
    cpl_model_function step = d->shortlist.on ? kind->features : kind->step;
    CPL_TRY(cpl_compile(&d->step, step, n, &o, err), err, "cannot decode with '%s'", kind->name);
    return CPL_OK;
}

static cpl_status make(cpl_decoder **out, const cpl_model_kind *kind, const cpl_model_sizes *n, cpl_engine *engine,
                       int listed, cpl_error *err)
{
    *out = NULL;
    cpl_decoder *d = cpl_alloc(1, sizeof *d);
    if (!d)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    d->shortlist.on = listed;
    cpl_status status = compile(d, kind, n, engine, err);
    if (status != CPL_OK) {
        cpl_decoder_free(d);
        return status;
    }
    *out = d;
    return CPL_OK;
}

cpl_status cpl_decoder_new(cpl_decoder **d, const cpl_model_kind *kind, const cpl_model_sizes *n, cpl_engine *engine,
                           cpl_error *err)
{
    return make(d, kind, n, engine, 0, err);
}

cpl_status cpl_decoder_new_short(cpl_decoder **d, const cpl_model_kind *kind, const cpl_model_sizes *n,
                                 cpl_engine *engine, cpl_error *err)
{
    *d = NULL;
    if (!kind->features)
        CPL_FAIL(err, CPL_USAGE, "'%s' has no projection from a decoder's state: there is nothing to shorten",
                 kind->name);
    return make(d, kind, n, engine, 1, err);
}

void cpl_decoder_free(cpl_decoder *d)
{
    if (!d)
        return;
    if (d->step != d->encode)
        cpl_program_free(d->step);
    cpl_program_free(d->encode);
    cpl_decoder_free_rows(d);
    cpl_release(d->history);
    cpl_release(d->ids);
    cpl_attention_free(&d->attention);
    cpl_release(d->scratch);
    cpl_release(d->path);
    cpl_decode_copy_free(&d->copy);
    cpl_shortlist_free(&d->shortlist);
    cpl_beam_free(d->beam);
    cpl_release(d->more);
    cpl_release(d);
}

int64_t cpl_decoder_steps(const cpl_decoder *d)
{
    return d->steps;
}

int64_t cpl_decoder_plans(const cpl_decoder *d)
{
    return (d->step != d->encode ? cpl_plans(d->step) : 0) + (d->encode ? cpl_plans(d->encode) : 0);
}

cpl_decoder_figures cpl_decoder_figures_of(const cpl_decoder *d)
{
    const cpl_program *encode = d->encode, *step = d->step != d->encode ? d->step : NULL;
    cpl_decoder_figures f = {0};
    if (encode) {
        f.encode_operations = cpl_program_flops(encode, CPL_EVALUATE, &encode->binding);
        f.planned_bytes += encode->block_bytes;
    }
    if (step) {
        f.step_operations = cpl_program_flops(step, CPL_EVALUATE, &step->binding);
        f.planned_bytes += step->block_bytes;
    }
    return f;
}

/* ---- a step ---- */

/* The lengths of the memories are the encode program's, or those of a geometry that repeats its sentences. */
static cpl_status share_lengths(cpl_decoder *d, int64_t rows, cpl_error *err)
{
    const cpl_geometry *fan = d->fan;
    int s = cpl_program_symbol(d->step, "s");
    if (!fan)
        return cpl_program_share_time(d->step, "s", d->encode, err);
    CPL_TRY(cpl_program_batch(d->step, "s", rows, err), err, "cannot share the lengths");
    CPL_TRY(cpl_geometry_copy(&d->step->geometry[s], fan, err), err, "cannot share the lengths");
    d->step->geometry_from[s] = "s";
    return CPL_OK;
}

/* The other models of an ensemble go on with the same tokens, each from its own states. */
static cpl_status step_others(cpl_decoder *d, int64_t rows, cpl_error *err)
{
    for (int k = 0; k < d->more_count; k++) {
        cpl_decoder *other = d->more[k];
        memcpy(other->token, d->token, (size_t)rows * sizeof *d->token);
        memcpy(other->alive, d->alive, (size_t)rows * sizeof *d->alive);
        CPL_TRY(cpl_decoder_step(other, rows, err), err, "model %d", k + 2);
    }
    return d->more_count > 0 ? cpl_ensemble_mix(d, err) : CPL_OK;
}

static cpl_status feed_step(cpl_decoder *d, int64_t rows, cpl_error *err)
{
    const cpl_model_description *m = &d->description;
    CPL_TRY(cpl_feed_ids(d->step, "token", d->token_row, d->alive, rows, err), err, "cannot decode");
    if (m->memories > 0)
        CPL_TRY(share_lengths(d, rows, err), err, "cannot decode");
    for (int i = 0; i < m->memories; i++) {
        cpl_tensor t;
        if (!d->fan && !cpl_program_output(d->encode, m->memory[i].name, &t))
            CPL_FAIL(err, CPL_FAILED, "the encode graph has no output '%s'", m->memory[i].name);
        real *memory = d->fan ? d->memory[i] : t.data;
        CPL_TRY(cpl_program_bind(d->step, m->memory[i].name, memory, err), err, "cannot decode");
    }
    for (int i = 0; i < m->states; i++)
        CPL_TRY(cpl_program_bind(d->step, m->state[i].name, d->state[d->now][i], err), err, "cannot decode");
    return CPL_OK;
}

cpl_status cpl_decoder_step(cpl_decoder *d, int64_t rows, cpl_error *err)
{
    const cpl_model_description *m = &d->description;
    if (m->mirrors) {
        d->steps++;
        return CPL_OK;
    }
    CPL_TRY(feed_step(d, rows, err), err, "step %lld", (long long)d->steps);
    CPL_TRY(cpl_run(d->step, CPL_EVALUATE, err), err, "step %lld", (long long)d->steps);
    for (int i = 0; i < m->states; i++)
        CPL_TRY(cpl_read(d->step, m->state[i].name, d->state[!d->now][i],
                         (size_t)(d->room_rows * m->state[i].width), NULL, NULL, err), err, "cannot decode");
    d->now = !d->now;
    d->steps++;
    return step_others(d, rows, err);
}

/* ---- choosing ---- */

typedef struct choosing {
    cpl_decoder *d;
    const cpl_decode_batch *batch;
    const int32_t *sentence; /* of each row of logits */
    cpl_tensor logits;
    int64_t step; /* from 0 */
    int ruled;    /* 1: there are rules */
} choosing;

/* 53 random bits. */
static double draw(const cpl_decode_batch *b, int64_t i, int64_t step)
{
    uint64_t key = cpl_random_key(b->seed, (uint64_t)(b->number ? b->number[i] : i), (uint64_t)step);
    return (double)(cpl_random_bits(key, 0) >> 11) * 0x1p-53;
}

static cpl_choice choice_of(const choosing *c, int64_t i)
{
    const cpl_decode_batch *b = c->batch;
    return (cpl_choice){.forbidden = b->forbidden, .temperature = b->temperature, .no_probability = b->no_scores,
                        .unit = b->temperature > 0 ? draw(b, i, c->step) : 0};
}

/* The rules see the output so far, and mask what may not come; the probability stays the model's: what all logits sum
 * up to is taken before. */
static cpl_chosen choose_ruled(const choosing *c, int thread, int64_t i, real *logits, int64_t n)
{
    const cpl_decode_batch *b = c->batch;
    cpl_decoder *d = c->d;
    const cpl_kernels *kernels = d->step->engine->kernels;
    cpl_choice choice = choice_of(c, i), first = {.no_probability = b->no_scores};
    int32_t *ids = d->path + (size_t)thread * d->path_room;
    cpl_chosen top = cpl_decode_choose(kernels, logits, n, &first);
    if (top.id < 0)
        return top;
    double z = (double)logits[top.id] - top.log_probability;
    for (int64_t k = 0; k < d->rows[i].length; k++)
        ids[k] = d->history[k * b->count + i];
    cpl_decode_path path = {.ids = ids, .length = d->rows[i].length, .most = b->most[i], .forbidden = b->forbidden,
                            .temperature = b->temperature, .scratch = cpl_decoder_scratch(d, thread, 0)};
    cpl_decode_rules_apply(&b->rules, &path, logits, n);
    choice.forbidden = 0, choice.no_probability = 1;
    cpl_chosen x = cpl_decode_choose(kernels, logits, n, &choice);
    if (x.id >= 0)
        x.log_probability = (double)logits[x.id] - z;
    return x;
}

/* One more step than `most` is made: END may still come then, anything else is cut. */
static void choose_row(void *arguments, int64_t task, int thread)
{
    const choosing *c = arguments;
    const cpl_decode_batch *b = c->batch;
    int64_t i = c->sentence[task], n = c->logits.width;
    const cpl_kernels *kernels = c->d->step->engine->kernels;
    const cpl_decode_copy *copy = &c->d->copy;
    const int32_t *list = b->list;
    real *logits = c->logits.data + task * n;
    cpl_decode_row *r = &c->d->rows[i];
    if (r->done) /* of a kind without a decoder: positions behind END */
        return;
    if (list && (c->ruled || copy->vocabulary || b->forbidden >> CPL_ID_WORDS)) { /* which go by ids */
        logits = cpl_shortlist_expand(c->d, b, thread, logits);
        n = c->d->vocabulary;
        list = NULL;
    }
    if (copy->vocabulary)
        logits = cpl_decode_copy_mix(copy, kernels, thread, task, b, (int32_t)i, logits, &n);
    cpl_choice choice = choice_of(c, i);
    cpl_chosen x = c->ruled ? choose_ruled(c, thread, i, logits, n) : cpl_decode_choose(kernels, logits, n, &choice);
    if (list && x.id >= 0)
        x.id = list[x.id];
    if (x.id < 0) {
        r->failed = c->step + 1;
        r->done = 1;
    } else if (x.id == CPL_ID_END) {
        r->score += x.log_probability;
        r->finished = r->done = 1;
    } else if (r->length >= b->most[i]) {
        r->done = 1;
    } else {
        r->score += x.log_probability;
        r->length++;
        c->d->token[i] = x.id < c->d->vocabulary ? x.id : CPL_ID_UNKNOWN; /* what the decoder has no vector of */
        c->d->history[c->step * b->count + i] = x.id;
    }
    c->d->alive[i] = !r->done;
}

/* Step k of a kind without a decoder is position k + 1 of the source: behind START. */
static cpl_status choose_position(cpl_decoder *d, const cpl_decode_batch *b, choosing *c, cpl_error *err)
{
    const cpl_geometry *g = &d->encode->geometry[cpl_program_symbol(d->encode, "s")];
    int64_t at = c->step + 1, n = at < g->longest ? cpl_geometry_active(g, at) : 0;
    c->sentence = g->sentence;
    c->logits.data += n > 0 ? g->offset[at] * c->logits.width : 0;
    if (cpl_grow(&d->history, &d->history_capacity, (size_t)(at * b->count), sizeof *d->history))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld tokens", (long long)(at * b->count));
    cpl_pool_run(d->step->engine->pool, n, choose_row, c);
    for (int64_t i = 0; i < b->count; i++)
        if (b->length[i] <= at + 1 || b->source[i][at + 1] == CPL_ID_PADDING) {
            d->rows[i].done = 1;
            d->alive[i] = 0;
        }
    return CPL_OK;
}

static cpl_status choose(cpl_decoder *d, const cpl_decode_batch *b, int64_t step, cpl_error *err)
{
    choosing c = {.d = d, .batch = b, .step = step, .ruled = cpl_decode_rules_any(&b->rules)};
    if (c.ruled)
        CPL_TRY(cpl_decoder_reserve_paths(d, step + 1, err), err, "cannot choose");
    CPL_TRY(cpl_decoder_logits(d, b, 1, &c.logits, err), err, "cannot choose");
    if (d->description.mirrors)
        return choose_position(d, b, &c, err);
    c.sentence = d->step->geometry[cpl_program_symbol(d->step, "t")].sentence;
    if (cpl_grow(&d->history, &d->history_capacity, (size_t)((step + 1) * b->count), sizeof *d->history))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld tokens", (long long)((step + 1) * b->count));
    CPL_TRY(cpl_decode_copy_see(&d->copy, d->step, b, c.sentence, err), err, "cannot choose");
    cpl_pool_run(d->step->engine->pool, c.logits.rows, choose_row, &c);
    return CPL_OK;
}

/* ---- a batch ---- */

cpl_status cpl_decoder_encode(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    d->now = 0;
    d->fan = NULL;
    for (int i = 0; i < d->description.states; i++)
        memset(d->state[0][i], 0, (size_t)(b->count * d->description.state[i].width) * sizeof(real));
    if (!d->encode)
        return CPL_OK;
    CPL_TRY(cpl_feed_ids(d->encode, "source", b->source, b->length, b->count, err), err, "cannot encode");
    CPL_TRY(cpl_run(d->encode, CPL_EVALUATE, err), err, "cannot encode");
    for (int i = 0; d->description.starts && i < d->description.states; i++) {
        const cpl_model_part *s = &d->description.state[i];
        cpl_tensor t;
        if (cpl_program_output(d->encode, s->name, &t))
            CPL_TRY(cpl_read(d->encode, s->name, d->state[0][i], (size_t)(d->room_rows * s->width), NULL, NULL, err),
                    err, "cannot decode");
    }
    return CPL_OK;
}

/* One path for each row, of every model. */
static cpl_status begin_others(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    for (int k = 0; k < d->more_count; k++) {
        cpl_decode_batch its = cpl_ensemble_batch(b, k);
        CPL_TRY(cpl_decoder_reserve(d->more[k], &its, 1, err), err, "model %d", k + 2);
        CPL_TRY(cpl_decoder_encode(d->more[k], &its, err), err, "model %d", k + 2);
    }
    return CPL_OK;
}

static cpl_status begin(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    CPL_TRY(cpl_decoder_reserve(d, b, 1, err), err, "cannot decode %lld sentences", (long long)b->count);
    if (b->attention)
        CPL_TRY(cpl_attention_begin(&d->attention, b->count, err), err, "cannot decode");
    for (int64_t i = 0; i < b->count; i++) {
        d->rows[i] = (cpl_decode_row){.score = 0};
        d->token[i] = CPL_ID_START;
        d->alive[i] = 1;
    }
    CPL_TRY(cpl_shortlist_begin(d, b, err), err, "cannot decode");
    CPL_TRY(cpl_decoder_encode(d, b, err), err, "cannot decode");
    return begin_others(d, b, err);
}

/* From what was chosen step by step to one list for each row. */
static cpl_status collect(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    size_t total = 0;
    for (int64_t i = 0; i < b->count; i++)
        total += (size_t)d->rows[i].length;
    if (cpl_grow(&d->ids, &d->ids_capacity, total + 1, sizeof *d->ids))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %zu tokens", total);
    int32_t *to = d->ids;
    for (int64_t i = 0; i < b->count; i++) {
        const cpl_decode_row *r = &d->rows[i];
        double score = b->no_scores ? (double)NAN : r->score;
        d->results[i] = (cpl_decoded){.ids = to, .length = r->length, .score = score, .ranked = score,
                                      .finished = r->finished, .failed = r->failed, .source_length = b->length[i],
                                      .attention = b->attention ? d->attention.rows[i].weights : NULL};
        for (int64_t k = 0; k < r->length; k++)
            *to++ = d->history[k * b->count + i];
    }
    return CPL_OK;
}

/* A parameter that is not a number is the usual cause of logits that are none: names the first one. Of the models of an
 * ensemble the first that has such a parameter is to blame. */
static cpl_status blame(const cpl_decoder *d, int64_t i, int64_t step, int model, cpl_error *err)
{
    const cpl_parameters *p = (model > 0 ? d->more[model - 1] : d)->step->engine->parameters;
    for (size_t k = 0; k < cpl_parameters_count(p); k++) {
        double element;
        int64_t at = cpl_parameters_not_finite(p, k, &element);
        if (at >= 0)
            CPL_FAIL(err, CPL_FAILED, "row %lld, step %lld: the logits are not finite numbers; element %lld of '%s' is "
                     "%g%s", (long long)i, (long long)step, (long long)at, cpl_parameters_at(p, k)->path, element,
                     model > 0 ? " in another model of the ensemble" : "");
    }
    if (model < d->more_count)
        return blame(d, i, step, model + 1, err);
    CPL_FAIL(err, CPL_FAILED, "row %lld, step %lld: the logits are not finite numbers, though all parameters are",
             (long long)i, (long long)step);
}

cpl_status cpl_decoder_verdict(const cpl_decoder *d, int64_t count, cpl_error *err)
{
    for (int64_t i = 0; i < count; i++)
        if (d->rows[i].failed)
            return blame(d, i, d->rows[i].failed, 0, err);
    return CPL_OK;
}

static cpl_status keep_attention(cpl_decoder *d, const cpl_decode_batch *b, int64_t step, cpl_error *err)
{
    cpl_attention_shape of;
    cpl_status status = cpl_decoder_look(d, &of, err);
    return status == CPL_OK ? cpl_attention_keep(&d->attention, &of, step, d->alive, b->length, err) : status;
}

/* One path for each row. */
static cpl_status decode(cpl_decoder *d, const cpl_decode_batch *b, const cpl_decoded **rows, cpl_error *err)
{
    CPL_TRY(begin(d, b, err), err, "cannot decode");
    int64_t alive = b->count;
    for (int64_t step = 0; alive > 0; step++) {
        CPL_TRY(cpl_decoder_step(d, b->count, err), err, "cannot decode");
        if (b->attention)
            CPL_TRY(keep_attention(d, b, step, err), err, "cannot decode");
        CPL_TRY(choose(d, b, step, err), err, "cannot decode");
        alive = 0;
        for (int64_t i = 0; i < b->count; i++)
            alive += d->alive[i];
    }
    CPL_TRY(collect(d, b, err), err, "cannot decode");
    *rows = d->results;
    return cpl_decoder_verdict(d, b->count, err);
}

cpl_status cpl_decode(cpl_decoder *d, const cpl_decode_batch *b, const cpl_decoded **rows, cpl_error *err)
{
    *rows = NULL;
    CPL_TRY(cpl_decode_check_temperature(b->temperature, err), err, "cannot decode");
    CPL_TRY(cpl_ensemble_check(d, b, err), err, "cannot decode");
    if (b->beam == 0)
        return decode(d, b, rows, err);
    if (d->description.mirrors)
        CPL_FAIL(err, CPL_USAGE, "this model has no decoder: each output token stands for one source token, and "
                 "there is nothing to search");
    return cpl_beam_decode(d, b, rows, err);
}
