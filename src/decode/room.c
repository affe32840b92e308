/* room.c: a decoder's memory. Sizes are rounded up to powers of two, so that many lengths make few plans. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "decode/internal.h"

static int64_t round_up(int64_t have, int64_t need)
{
    int64_t size = have > 0 ? have : 1;
    while (size < need)
        size *= 2;
    return size;
}

void cpl_decoder_free_rows(cpl_decoder *d)
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

static cpl_status reserve_rows(cpl_decoder *d, int64_t rows, cpl_error *err)
{
    size_t n = (size_t)rows;
    int ok = 1;
    cpl_decoder_free_rows(d);
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
        d->room_rows = 0;
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld rows", (long long)rows);
    }
    for (int64_t i = 0; i < rows; i++)
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
    if (d->description.mirrors)
        return CPL_OK;
    memset(&c, 0, sizeof c);
    c.batch = d->room_rows;
    int s = cpl_program_symbol(d->step, "s"), t = cpl_program_symbol(d->step, "t");
    c.rows[t] = d->room_rows;
    c.longest[t] = 1;
    if (s >= 0) {
        c.rows[s] = c.pairs[s][t] = c.pairs[t][s] = d->room_row_tokens;
        c.longest[s] = d->room_longest;
    }
    CPL_TRY(cpl_program_reserve(d->step, CPL_EVALUATE, &c, err), err, "cannot make room for the decoder");
    return CPL_OK;
}

static size_t scratch_row(const cpl_decoder *d)
{
    return (size_t)(d->vocabulary + d->room_longest);
}

real *cpl_decoder_scratch(const cpl_decoder *d, int thread, int which)
{
    return d->scratch + (size_t)(3 * thread + which) * scratch_row(d);
}

static cpl_status reserve_scratch(cpl_decoder *d, cpl_error *err)
{
    int threads = d->step->engine->threads;
    cpl_release(d->scratch);
    d->scratch = cpl_alloc(3 * (size_t)threads * scratch_row(d), sizeof *d->scratch);
    if (!d->scratch)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the logits of %d threads", threads);
    return cpl_decode_copy_reserve(&d->copy, threads, d->room_rows, d->room_longest, err);
}

cpl_status cpl_decoder_reserve_paths(cpl_decoder *d, int64_t length, cpl_error *err)
{
    if ((size_t)length <= d->path_room)
        return CPL_OK;
    int64_t room = round_up((int64_t)d->path_room, length);
    cpl_release(d->path);
    d->path_room = 0;
    d->path = cpl_alloc((size_t)room * (size_t)d->step->engine->threads, sizeof *d->path);
    if (!d->path)
        CPL_FAIL(err, CPL_FAILED, "out of memory for outputs of %lld tokens", (long long)room);
    d->path_room = (size_t)room;
    return CPL_OK;
}

cpl_status cpl_decoder_reserve(cpl_decoder *d, const cpl_decode_batch *b, int64_t width, cpl_error *err)
{
    int64_t tokens = 0, longest = 0;
    for (int64_t i = 0; i < b->count; i++) {
        tokens += b->length[i];
        longest = b->length[i] > longest ? b->length[i] : longest;
    }
    if (b->count <= d->room_batch && tokens <= d->room_tokens && longest <= d->room_longest &&
        b->count * width <= d->room_rows && tokens * width <= d->room_row_tokens)
        return CPL_OK;
    int64_t rows = round_up(d->room_rows, b->count * width);
    if (rows > d->room_rows)
        CPL_TRY(reserve_rows(d, rows, err), err, "cannot decode");
    d->room_rows = rows;
    d->room_batch = round_up(d->room_batch, b->count);
    d->room_tokens = round_up(d->room_tokens, tokens);
    d->room_row_tokens = round_up(d->room_row_tokens, tokens * width);
    d->room_longest = round_up(d->room_longest, longest);
    cpl_status status = reserve_plans(d, err);
    if (status == CPL_OK)
        status = reserve_scratch(d, err);
    if (status != CPL_OK)
        d->room_longest = 0; /* tries again next time */
    return status;
}
