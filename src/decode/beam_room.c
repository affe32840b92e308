/* beam_room.c: memory of beam search. What a batch needs is there before its first step; only what grows with the
 * outputs grows later. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "decode/beam.h"

static void free_arrays(cpl_beam *s)
{
    void *const all[] = {s->length, s->live,      s->ended,   s->input,   s->proposed, s->score,   s->candidates,
                         s->chosen, s->endings,   s->outputs, s->look_at, s->seen[0],  s->seen[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        cpl_release(all[i]);
    for (int i = 0; i < CPL_MODEL_PARTS; i++) {
        cpl_release(s->memory[i]);
        s->memory[i] = NULL;
    }
    s->length = NULL, s->live = NULL, s->ended = NULL, s->input = NULL, s->proposed = NULL, s->score = NULL;
    s->candidates = NULL, s->chosen = NULL, s->endings = NULL, s->outputs = NULL, s->look_at = NULL;
    s->seen[0] = s->seen[1] = NULL;
    s->room_rows = s->room_tokens = s->room_width = 0;
}

void cpl_beam_free(cpl_beam *s)
{
    if (!s)
        return;
    free_arrays(s);
    cpl_geometry_free(&s->fan);
    cpl_release(s->nodes);
    cpl_release(s->looks);
    cpl_release(s->weights);
    cpl_release(s->ids);
    cpl_release(s);
}

/* The decoder's room is rounded up already. Returns 0 without memory. */
static int reserve_arrays(cpl_decoder *d, int64_t width)
{
    cpl_beam *s = d->beam;
    size_t rows = (size_t)d->room_rows, tokens = (size_t)d->room_row_tokens, k = (size_t)width;
    int ok = 1;
    free_arrays(s);
    for (int i = 0; i < d->description.memories; i++) {
        s->memory[i] = cpl_alloc_aligned(tokens * (size_t)d->description.memory[i].width * sizeof(real) + 64, 64);
        ok &= s->memory[i] != NULL;
    }
    s->length = cpl_alloc(rows, sizeof *s->length);
    s->live = cpl_alloc(rows, sizeof *s->live);
    s->ended = cpl_alloc(rows, sizeof *s->ended);
    s->input = cpl_alloc(rows, sizeof *s->input);
    s->proposed = cpl_alloc(rows, sizeof *s->proposed);
    s->score = cpl_alloc(rows, sizeof *s->score);
    s->candidates = cpl_alloc(rows * k, sizeof *s->candidates);
    s->chosen = cpl_alloc(k, sizeof *s->chosen);
    s->endings = cpl_alloc(rows, sizeof *s->endings);
    s->outputs = cpl_alloc(rows, sizeof *s->outputs);
    s->look_at = cpl_alloc(rows, sizeof *s->look_at);
    for (int i = 0; i < 2; i++)
        s->seen[i] = cpl_alloc(tokens, sizeof *s->seen[i]);
    s->room_rows = d->room_rows;
    s->room_tokens = d->room_row_tokens;
    s->room_width = width;
    return ok && s->length && s->live && s->ended && s->input && s->proposed && s->score && s->candidates &&
           s->chosen && s->endings && s->outputs && s->look_at && s->seen[0] && s->seen[1];
}

cpl_status cpl_beam_reserve(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    if (!d->beam)
        d->beam = cpl_alloc(1, sizeof *d->beam);
    cpl_beam *s = d->beam;
    if (!s)
        CPL_FAIL(err, CPL_FAILED, "out of memory for a beam");
    CPL_TRY(cpl_decoder_reserve(d, b, b->beam, err), err, "cannot decode %lld sentences with a beam of %lld",
            (long long)b->count, (long long)b->beam);
    if (d->room_rows > s->room_rows || d->room_row_tokens > s->room_tokens || b->beam > s->room_width)
        if (!reserve_arrays(d, b->beam > s->room_width ? b->beam : s->room_width)) {
            free_arrays(s);
            CPL_FAIL(err, CPL_FAILED, "out of memory for %lld sentences with a beam of %lld", (long long)b->count,
                     (long long)b->beam);
        }
    s->width = b->beam;
    s->rows = b->count * b->beam;
    CPL_TRY(cpl_geometry_reserve(&s->fan, d->room_rows, d->room_longest, d->room_row_tokens, err), err,
            "cannot decode with a beam");
    return CPL_OK;
}

cpl_status cpl_beam_reserve_step(cpl_beam *s, const cpl_decode_batch *b, int64_t step, cpl_error *err)
{
    int failed = cpl_grow(&s->nodes, &s->nodes_capacity, (size_t)((step + 1) * s->rows), sizeof *s->nodes);
    if (b->attention || b->coverage_penalty > 0)
        failed |= cpl_grow(&s->looks, &s->looks_capacity, (size_t)((step + 1) * s->tokens), sizeof *s->looks);
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory for outputs of %lld tokens", (long long)step + 1);
    return CPL_OK;
}

/* Packed rows of the encoder → packed rows in which each sentence stands `width` times. */
static void repeat_rows(const cpl_beam *s, const cpl_geometry *from, const real *x, int64_t n, real *to)
{
    for (int64_t k = 0; k < s->fan.longest; k++)
        for (int64_t i = 0; i < cpl_geometry_active(&s->fan, k); i++) {
            int64_t row = from->offset[k] + from->position[s->fan.sentence[i] / s->width];
            memcpy(to + (s->fan.offset[k] + i) * n, x + row * n, (size_t)n * sizeof *to);
        }
}

/* From the last input on, so that no state is overwritten before it was copied. */
static void repeat_states(cpl_decoder *d, int64_t inputs)
{
    for (int p = 0; p < d->description.states; p++) {
        size_t n = (size_t)d->description.state[p].width;
        real *x = d->state[0][p];
        for (int64_t i = inputs - 1; i >= 0; i--)
            memmove(x + (size_t)(i * d->beam->width) * n, x + (size_t)i * n, n * sizeof *x);
    }
}

cpl_status cpl_beam_fan_out(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err)
{
    cpl_beam *s = d->beam;
    s->tokens = 0;
    int64_t longest = 0;
    for (int64_t r = 0; r < s->rows; r++) {
        s->length[r] = b->length[r / s->width];
        s->look_at[r] = s->tokens;
        s->tokens += s->length[r];
        longest = s->length[r] > longest ? s->length[r] : longest;
    }
    repeat_states(d, b->count);
    CPL_TRY(cpl_geometry_set_lengths(&s->fan, s->length, s->rows, longest, err), err, "cannot decode with a beam");
    for (int i = 0; i < d->description.memories; i++) {
        const cpl_model_part *m = &d->description.memory[i];
        cpl_tensor t;
        if (!cpl_program_output(d->encode, m->name, &t))
            CPL_FAIL(err, CPL_FAILED, "the encode graph has no output '%s'", m->name);
        const cpl_geometry *from = &d->encode->geometry[cpl_program_symbol(d->encode, "s")];
        repeat_rows(s, from, t.data, t.width, s->memory[i]);
    }
    d->fan = d->description.memories > 0 ? &s->fan : NULL;
    d->memory = s->memory;
    return CPL_OK;
}
