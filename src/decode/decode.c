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
#include "decode/attention.h"
#include "decode/copy.h"
#include "text/text.h"

typedef struct row {
    double score;
    int64_t length, failed;
    int done, finished;
} row;

struct cpl_decoder {
    cpl_model_description description;
    cpl_program *encode; /* NULL: the kind has no memory and begins with zero states */
    cpl_program *step;
    int64_t room_batch, room_tokens, room_longest; /* the largest sizes that memory was reserved for */
    real *state[2][CPL_MODEL_PARTS];               /* [batch width], caller order: before and after a step */
    int now;                                       /* which of the two is before */
    row *rows;                                     /* the arrays below: [room_batch] */
    int32_t *token;
    const int32_t **token_row;
    int64_t *alive;
    cpl_decoded *results;
    int32_t *history; /* [steps batch]: what was chosen */
    size_t history_capacity;
    int32_t *ids; /* the same, row after row */
    size_t ids_capacity;
    cpl_attention_record attention;
    cpl_decode_copy copy;
    int64_t steps;
};

/* ---- making one ---- */

static cpl_status compile(cpl_decoder *d, const cpl_model_kind *kind, const cpl_model_sizes *n, cpl_engine *engine,
                          cpl_error *err)
{
    /* Of the program that is shared only the engine counts. */
    cpl_program shared = {.engine = engine};
    cpl_compile_options o = {.name = "encode", .share = &shared, .inference = 1};
    kind->describe(n, &d->description);
    d->copy.vocabulary = d->description.copies ? n->target_vocabulary : 0;
    if (d->description.memories > 0 || d->description.starts)
        CPL_TRY(cpl_compile(&d->encode, kind->encode, n, &o, err), err, "cannot decode with '%s'", kind->name);
    o.name = "step";
    CPL_TRY(cpl_compile(&d->step, kind->step, n, &o, err), err, "cannot decode with '%s'", kind->name);
    return CPL_OK;
}

cpl_status cpl_decoder_new(cpl_decoder **out, const cpl_model_kind *kind, const cpl_model_sizes *n, cpl_engine *engine,
                           cpl_error *err)
{
    *out = NULL;
    cpl_decoder *d = cpl_alloc(1, sizeof *d);
    if (!d)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    cpl_status status = compile(d, kind, n, engine, err);
    if (status != CPL_OK) {
        cpl_decoder_free(d);
        return status;
    }
    *out = d;
    return CPL_OK;
}

static void free_rows(cpl_decoder *d)
{
    for (int i = 0; i < CPL_MODEL_PARTS; i++) {
        cpl_release(d->state[0][i]);
        cpl_release(d->state[1][i]);
        d->state[0][i] = d->state[1][i] = NULL;
    }
    cpl_release(d->rows);
    cpl_release(d->token);
    cpl_release(d->token_row);
    cpl_release(d->alive);
    cpl_release(d->results);
    d->rows = NULL, d->token = NULL, d->token_row = NULL, d->alive = NULL, d->results = NULL;
}

void cpl_decoder_free(cpl_decoder *d)
{
    if (!d)
        return;
    cpl_program_free(d->encode);
    cpl_program_free(d->step);
    free_rows(d);
    cpl_release(d->history);
    cpl_release(d->ids);
    cpl_attention_free(&d->attention);
    cpl_decode_copy_free(&d->copy);
    cpl_release(d);
}

int64_t cpl_decoder_steps(const cpl_decoder *d)
{
    return d->steps;
}

int64_t cpl_decoder_plans(const cpl_decoder *d)
{
    return cpl_plans(d->step) + (d->encode ? cpl_plans(d->encode) : 0);
}

/* ---- memory: sizes are rounded up to powers of two, so that many lengths make few plans ---- */

static int64_t round_up(int64_t have, int64_t need)
{
    int64_t size = have > 0 ? have : 1;
    while (size < need)
        size *= 2;
    return size;
}

static cpl_status reserve_rows(cpl_decoder *d, int64_t batch, cpl_error *err)
{
    size_t n = (size_t)batch;
    int ok = 1;
    free_rows(d);
    for (int i = 0; i < d->description.states; i++)
        for (int k = 0; k < 2; k++) {
            d->state[k][i] = cpl_alloc(n * (size_t)d->description.state[i].width, sizeof(real));
            ok &= d->state[k][i] != NULL;
        }
    d->rows = cpl_alloc(n, sizeof *d->rows);
    d->token = cpl_alloc(n, sizeof *d->token);
    d->token_row = cpl_alloc(n, sizeof *d->token_row);
    d->alive = cpl_alloc(n, sizeof *d->alive);
    d->results = cpl_alloc(n, sizeof *d->results);
    if (!ok || !d->rows || !d->token || !d->token_row || !d->alive || !d->results) {
        d->room_batch = 0;
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld sentences", (long long)batch);
    }
    for (int64_t i = 0; i < batch; i++)
        d->token_row[i] = &d->token[i];
    return CPL_OK;
}

static cpl_status reserve_plans(cpl_decoder *d, cpl_error *err)
{
    cpl_binding c = {.batch = d->room_batch};
    if (d->encode) {
        int s = cpl_program_symbol(d->encode, "s");
        c.rows[s] = d->room_tokens;
        c.longest[s] = d->room_longest;
        CPL_TRY(cpl_program_reserve(d->encode, CPL_EVALUATE, &c, err), err, "cannot make room for the encoder");
    }
    memset(&c, 0, sizeof c);
    c.batch = d->room_batch;
    int s = cpl_program_symbol(d->step, "s"), t = cpl_program_symbol(d->step, "t");
    c.rows[t] = d->room_batch;
    c.longest[t] = 1;
    if (s >= 0) {
        c.rows[s] = c.pairs[s][t] = c.pairs[t][s] = d->room_tokens;
        c.longest[s] = d->room_longest;
    }
    CPL_TRY(cpl_program_reserve(d->step, CPL_EVALUATE, &c, err), err, "cannot make room for the decoder");
    return CPL_OK;
}

static cpl_status reserve(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    int64_t tokens = 0, longest = 0;
    for (int64_t i = 0; i < b->count; i++) {
        tokens += b->length[i];
        longest = b->length[i] > longest ? b->length[i] : longest;
    }
    if (b->count <= d->room_batch && tokens <= d->room_tokens && longest <= d->room_longest)
        return CPL_OK;
    int64_t batch = round_up(d->room_batch, b->count);
    if (batch > d->room_batch)
        CPL_TRY(reserve_rows(d, batch, err), err, "cannot decode");
    d->room_batch = batch;
    d->room_tokens = round_up(d->room_tokens, tokens);
    d->room_longest = round_up(d->room_longest, longest);
    cpl_status status = reserve_plans(d, err);
    if (status == CPL_OK)
        status = cpl_decode_copy_reserve(&d->copy, d->step->engine->threads, d->room_batch, d->room_longest, err);
    if (status != CPL_OK)
        d->room_longest = 0; /* tries again next time */
    return status;
}

/* ---- a step ---- */

static cpl_status feed_step(cpl_decoder *d, int64_t count, cpl_error *err)
{
    const cpl_model_description *m = &d->description;
    CPL_TRY(cpl_feed_ids(d->step, "token", d->token_row, d->alive, count, err), err, "cannot decode");
    if (m->memories > 0)
        CPL_TRY(cpl_program_share_time(d->step, "s", d->encode, err), err, "cannot decode");
    for (int i = 0; i < m->memories; i++) {
        cpl_tensor t;
        if (!cpl_program_output(d->encode, m->memory[i].name, &t))
            CPL_FAIL(err, CPL_FAILED, "the encode graph has no output '%s'", m->memory[i].name);
        CPL_TRY(cpl_program_bind(d->step, m->memory[i].name, t.data, err), err, "cannot decode");
    }
    for (int i = 0; i < m->states; i++)
        CPL_TRY(cpl_program_bind(d->step, m->state[i].name, d->state[d->now][i], err), err, "cannot decode");
    return CPL_OK;
}

static cpl_status run_step(cpl_decoder *d, int64_t count, cpl_error *err)
{
    const cpl_model_description *m = &d->description;
    CPL_TRY(feed_step(d, count, err), err, "step %lld", (long long)d->steps);
    CPL_TRY(cpl_run(d->step, CPL_EVALUATE, err), err, "step %lld", (long long)d->steps);
    for (int i = 0; i < m->states; i++)
        CPL_TRY(cpl_read(d->step, m->state[i].name, d->state[!d->now][i],
                         (size_t)(d->room_batch * m->state[i].width), NULL, NULL, err), err, "cannot decode");
    d->now = !d->now;
    d->steps++;
    return CPL_OK;
}

/* ---- choosing ---- */

typedef struct choosing {
    cpl_decoder *d;
    const cpl_decode_batch *batch;
    const int32_t *sentence; /* of each row of logits */
    cpl_tensor logits;
    int64_t step; /* from 0 */
} choosing;

/* 53 random bits. */
static double draw(const cpl_decode_batch *b, int64_t i, int64_t step)
{
    uint64_t key = cpl_random_key(b->seed, (uint64_t)(b->number ? b->number[i] : i), (uint64_t)step);
    return (double)(cpl_random_bits(key, 0) >> 11) * 0x1p-53;
}

/* One more step than `most` is made: END may still come then, anything else is cut. */
static void choose_row(void *arguments, int64_t task, int thread)
{
    const choosing *c = arguments;
    const cpl_decode_batch *b = c->batch;
    int64_t i = c->sentence[task], n = c->logits.width;
    const cpl_kernels *kernels = c->d->step->engine->kernels;
    const cpl_decode_copy *copy = &c->d->copy;
    real *logits = c->logits.data + task * n;
    row *r = &c->d->rows[i];
    if (copy->vocabulary)
        logits = cpl_decode_copy_mix(copy, kernels, thread, task, b, (int32_t)i, logits, &n);
    cpl_chosen x = cpl_decode_choose(kernels, logits, n, b->forbidden, b->temperature,
                                     b->temperature > 0 ? draw(b, i, c->step) : 0);
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
        c->d->token[i] = x.id < c->logits.width ? x.id : CPL_ID_UNKNOWN; /* what the decoder has no vector of */
        c->d->history[c->step * b->count + i] = x.id;
    }
    c->d->alive[i] = !r->done;
}

static cpl_status choose(cpl_decoder *d, const cpl_decode_batch *b, int64_t step, cpl_error *err)
{
    choosing c = {.d = d, .batch = b, .step = step};
    if (!cpl_program_output(d->step, "logits", &c.logits))
        CPL_FAIL(err, CPL_FAILED, "the step graph has no output 'logits'");
    c.sentence = d->step->geometry[cpl_program_symbol(d->step, "t")].sentence;
    if (cpl_grow(&d->history, &d->history_capacity, (size_t)((step + 1) * b->count), sizeof *d->history))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld tokens", (long long)((step + 1) * b->count));
    CPL_TRY(cpl_decode_copy_see(&d->copy, d->step, b, c.sentence, err), err, "cannot choose");
    cpl_pool_run(d->step->engine->pool, c.logits.rows, choose_row, &c);
    return CPL_OK;
}

/* ---- a batch ---- */

static cpl_status begin(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    CPL_TRY(cpl_decode_check_temperature(b->temperature, err), err, "cannot decode");
    CPL_TRY(reserve(d, b, err), err, "cannot decode %lld sentences", (long long)b->count);
    if (b->attention)
        CPL_TRY(cpl_attention_begin(&d->attention, b->count, err), err, "cannot decode");
    d->now = 0;
    for (int i = 0; i < d->description.states; i++)
        memset(d->state[0][i], 0, (size_t)(b->count * d->description.state[i].width) * sizeof(real));
    for (int64_t i = 0; i < b->count; i++) {
        d->rows[i] = (row){.score = 0};
        d->token[i] = CPL_ID_START;
        d->alive[i] = 1;
    }
    if (!d->encode)
        return CPL_OK;
    CPL_TRY(cpl_feed_ids(d->encode, "source", b->source, b->length, b->count, err), err, "cannot encode");
    CPL_TRY(cpl_run(d->encode, CPL_EVALUATE, err), err, "cannot encode");
    for (int i = 0; d->description.starts && i < d->description.states; i++) {
        const cpl_model_part *s = &d->description.state[i];
        cpl_tensor t;
        if (cpl_program_output(d->encode, s->name, &t))
            CPL_TRY(cpl_read(d->encode, s->name, d->state[0][i], (size_t)(d->room_batch * s->width), NULL, NULL, err),
                    err, "cannot decode");
    }
    return CPL_OK;
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
        const row *r = &d->rows[i];
        d->results[i] = (cpl_decoded){.ids = to, .length = r->length, .score = r->score, .finished = r->finished,
                                      .failed = r->failed, .source_length = b->length[i],
                                      .attention = b->attention ? d->attention.rows[i].weights : NULL};
        for (int64_t k = 0; k < r->length; k++)
            *to++ = d->history[k * b->count + i];
    }
    return CPL_OK;
}

/* A parameter that is not a number is the usual cause of logits that are none: names the first one. */
static cpl_status blame(const cpl_decoder *d, int64_t i, int64_t step, cpl_error *err)
{
    const cpl_parameters *p = d->step->engine->parameters;
    for (size_t k = 0; k < cpl_parameters_count(p); k++) {
        const cpl_parameter_info *info = cpl_parameters_at(p, k);
        const real *x = cpl_parameters_value(p, k);
        for (int64_t e = 0; e < info->elements; e++)
            if (!isfinite(x[e]))
                CPL_FAIL(err, CPL_FAILED, "row %lld, step %lld: the logits are not finite numbers; element %lld of "
                         "'%s' is %g", (long long)i, (long long)step, (long long)e, info->path, (double)x[e]);
    }
    CPL_FAIL(err, CPL_FAILED, "row %lld, step %lld: the logits are not finite numbers, though all parameters are",
             (long long)i, (long long)step);
}

cpl_status cpl_decode(cpl_decoder *d, const cpl_decode_batch *b, const cpl_decoded **rows, cpl_error *err)
{
    *rows = NULL;
    CPL_TRY(begin(d, b, err), err, "cannot decode");
    int64_t alive = b->count;
    for (int64_t step = 0; alive > 0; step++) {
        CPL_TRY(run_step(d, b->count, err), err, "cannot decode");
        if (b->attention)
            CPL_TRY(cpl_attention_keep(&d->attention, d->step, step, d->alive, b->length, err), err, "cannot decode");
        CPL_TRY(choose(d, b, step, err), err, "cannot decode");
        alive = 0;
        for (int64_t i = 0; i < b->count; i++)
            alive += d->alive[i];
    }
    CPL_TRY(collect(d, b, err), err, "cannot decode");
    *rows = d->results;
    for (int64_t i = 0; i < b->count; i++)
        if (d->rows[i].failed)
            return blame(d, i, d->rows[i].failed, err);
    return CPL_OK;
}
