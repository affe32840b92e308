/* means.c: how training fits into a budget, in as little time as can be.
 *
 * Where a whole batch does not fit as it is, there are three means, and each costs time:
 *   pieces         the batch is run a few pairs at a time: each piece walks all steps of the sentences again, with less
 *                  to do in each of them
 *   recomputation  what is kept for the backward run is made again: its operations are run twice (passes/recompute.c)
 *   loss blocks    fewer rows of logits at once: the projection's gradient is read and written more often
 * Every level of recomputation is tried with every size of block; for each pair of them the largest piece is searched
 * that always fits, whichever pairs are in it. The estimated time decides. */
#include <string.h>

#include "base/error.h"
#include "ops/loss.h"
#include "train/trainer.h"

/* Measured (bench/LOG.md): a piece costs the time of so many pairs more, a block of the loss that of so many rows. */
static const double PIECE_COST = 2, BLOCK_COST = 18;

static const int blocks[] = {0, 192, 96, 48}; /* 0: the loss's own choice */
enum { BLOCKS = sizeof blocks / sizeof blocks[0] };

/* ---- the largest piece ---- */

/* A search for the largest piece of a mode that leaves the rest of the memory enough. */
typedef struct search {
    cpl_trainer *t;
    cpl_mode mode;
    uint64_t room; /* for block and inputs */
} search;

static cpl_status fits(const search *s, const cpl_binding *piece, int *yes, cpl_error *err)
{
    uint64_t block, inputs;
    const cpl_binding *train = s->mode == CPL_TRAIN ? piece : &s->t->capacity[CPL_TRAIN];
    cpl_status status = cpl_trainer_piece_bytes(s->t, train, s->mode == CPL_TRAIN ? NULL : piece, &block, &inputs, err);
    *yes = status == CPL_OK && block + inputs <= s->room;
    return status;
}

/* Most pairs that fit, whichever they are: t->capacity of the mode. 0: not even one does. */
static cpl_status largest_piece(const search *s, int64_t *pairs, cpl_error *err)
{
    cpl_binding piece, *best = &s->t->capacity[s->mode];
    int64_t low = 0, high = s->t->whole[s->mode].batch + 1, at = high - 1; /* low fits, high does not */
    int yes = 0;
    while (high - low > 1) {
        cpl_status status = cpl_trainer_capacity(s->t, s->mode, at, &piece, err);
        if (status == CPL_OK)
            status = fits(s, &piece, &yes, err);
        if (status != CPL_OK)
            return status;
        if (yes)
            low = at, *best = piece;
        else
            high = at;
        at = (low + high) / 2;
    }
    *pairs = low;
    return CPL_OK;
}

/* Short sentences: more of them hold no more tokens than the longest do, so a piece may have more pairs. */
static cpl_status allow_more_pairs(const search *s, int64_t pairs, cpl_error *err)
{
    cpl_binding piece = s->t->capacity[s->mode];
    int yes = 0;
    for (int64_t more = s->t->whole[s->mode].batch; more > pairs && !yes; more = (more + pairs) / 2) {
        piece.batch = more;
        cpl_status status = fits(s, &piece, &yes, err);
        if (status != CPL_OK)
            return status;
    }
    if (yes)
        s->t->capacity[s->mode] = piece;
    return CPL_OK;
}

/* Pieces of one mode. *pairs 0: it does not fit. */
static cpl_status choose_mode(cpl_trainer *t, cpl_mode mode, uint64_t room, int64_t *pairs, cpl_error *err)
{
    search s = {t, mode, room};
    cpl_status status = largest_piece(&s, pairs, err);
    if (status == CPL_OK && *pairs > 0 && *pairs < t->whole[mode].batch)
        status = allow_more_pairs(&s, *pairs, err);
    return status;
}

/* ---- the means ---- */

/* What a choice of recomputation and block leads to. pairs 0: not even one fits. */
typedef struct means {
    cpl_recompute recompute;
    int block, staged;
    int64_t pairs;
    cpl_binding piece;
    double time;
} means;

static cpl_status use(cpl_trainer *t, cpl_recompute recompute, int block, cpl_error *err)
{
    cpl_program_block_rows(t->program, CPL_TRAIN, block);
    cpl_program_block_rows(t->program, CPL_EVALUATE, block);
    if (t->program->recompute == recompute)
        return CPL_OK;
    return cpl_program_recompute(t->program, recompute, &t->whole[CPL_TRAIN], err);
}

/* How many pieces an average batch is cut into. */
static double pieces_of(const cpl_trainer *t, const cpl_binding *average, const cpl_binding *piece)
{
    double most = (double)average->batch / (double)piece->batch;
    for (int i = 0; i < t->program->traced->symbol_count; i++)
        if (piece->rows[i] > 0 && (double)average->rows[i] / (double)piece->rows[i] > most)
            most = (double)average->rows[i] / (double)piece->rows[i];
    int64_t whole = (int64_t)most;
    return (double)(whole + ((double)whole < most));
}

/* In operations, of an average batch: those of the model, and what the means cost in the time of operations. */
static double time_of(const cpl_trainer *t, const means *m)
{
    cpl_binding average = cpl_trainer_average(t);
    double flops = cpl_program_flops(t->program, CPL_TRAIN, &average) + cpl_program_walk_flops(t->program, &average);
    double rows = m->block ? m->block : CPL_LOSS_BLOCK;
    return flops * (1 + PIECE_COST * pieces_of(t, &average, &m->piece) / (double)average.batch) +
           cpl_program_block_flops(t->program, &average) * BLOCK_COST / rows;
}

/* The largest piece with the means that are in use. Pieces add up their gradients, so they need a stage for them. */
static cpl_status largest(cpl_trainer *t, uint64_t room, means *m, cpl_error *err)
{
    search s = {t, CPL_TRAIN, room};
    int yes;
    int grouped = t->training->accumulate > 1;
    cpl_program_stage_gradients(t->program, grouped);
    cpl_status status = fits(&s, &t->whole[CPL_TRAIN], &yes, err);
    m->pairs = yes ? t->memory.batch : 0;
    m->staged = grouped || (!yes && t->memory.batch > 1);
    m->piece = t->whole[CPL_TRAIN];
    cpl_program_stage_gradients(t->program, m->staged);
    if (status == CPL_OK && !yes)
        status = choose_mode(t, CPL_TRAIN, room, &m->pairs, err);
    if (!yes)
        m->piece = t->capacity[CPL_TRAIN];
    return status;
}

/* All blocks with one level of recomputation; a smaller block is of no use once the whole batch fits. */
static cpl_status try_blocks(cpl_trainer *t, const cpl_trainer_options *options, cpl_recompute level, means *best,
                             cpl_error *err)
{
    int has_blocks = 1;
    means m = {.recompute = level};
    for (int i = 0; i < BLOCKS && has_blocks && m.pairs < t->memory.batch; i++) {
        cpl_status status = use(t, level, m.block = blocks[i], err);
        if (status == CPL_OK)
            status = largest(t, cpl_trainer_room(t, options), &m, err);
        if (status != CPL_OK)
            return status;
        has_blocks = cpl_program_block_flops(t->program, &t->whole[CPL_TRAIN]) > 0;
        m.time = m.pairs > 0 ? time_of(t, &m) : 0;
        if (m.pairs > 0 && (best->pairs == 0 || m.time < best->time))
            *best = m;
    }
    return CPL_OK;
}

/* Validation reads no gradients: small blocks cost it little, so it takes the smallest where the others do not do. */
static cpl_status choose_validation(cpl_trainer *t, uint64_t room, int block, cpl_error *err)
{
    cpl_status status = CPL_OK;
    for (int i = 0; i < BLOCKS && status == CPL_OK && t->memory.valid_micro_batch == 0; i++) {
        if (i > 0 && blocks[i] > block && block > 0)
            continue;
        cpl_program_block_rows(t->program, CPL_EVALUATE, i > 0 ? blocks[i] : block);
        status = choose_mode(t, CPL_EVALUATE, room, &t->memory.valid_micro_batch, err);
    }
    return status;
}

/* What recomputation saves of the block that the chosen pieces need. */
static cpl_status find_saved(cpl_trainer *t, const means *m, cpl_error *err)
{
    size_t with, without;
    cpl_memory_figures *f = &t->memory;
    f->recompute = m->recompute, f->recomputed = t->program->recomputed, f->recompute_saved = 0;
    f->loss_block = m->block ? m->block : f->whole_loss_block;
    if (m->recompute == CPL_RECOMPUTE_NONE)
        return CPL_OK;
    cpl_status status = cpl_program_block_bytes(t->program, CPL_TRAIN, &m->piece, &with, err);
    if (status == CPL_OK)
        status = use(t, CPL_RECOMPUTE_NONE, m->block, err);
    if (status == CPL_OK)
        status = cpl_program_block_bytes(t->program, CPL_TRAIN, &m->piece, &without, err);
    if (status == CPL_OK)
        f->recompute_saved = without > with ? without - with : 0;
    return status == CPL_OK ? use(t, m->recompute, m->block, err) : status;
}

/* Nothing fits. A refusal speaks of the least that one pair needs by any means. */
static cpl_status use_least(cpl_trainer *t, cpl_error *err)
{
    cpl_binding one;
    size_t bytes, least = SIZE_MAX;
    int best = 0, smallest = blocks[BLOCKS - 1];
    cpl_status status = cpl_trainer_capacity(t, CPL_TRAIN, 1, &one, err);
    for (int level = 0; level < CPL_RECOMPUTES && status == CPL_OK; level++) {
        status = use(t, (cpl_recompute)level, smallest, err);
        if (status == CPL_OK)
            status = cpl_program_block_bytes(t->program, CPL_TRAIN, &one, &bytes, err);
        if (status == CPL_OK && bytes < least)
            least = bytes, best = level;
    }
    return status == CPL_OK ? use(t, (cpl_recompute)best, smallest, err) : status;
}

cpl_status cpl_trainer_choose_means(cpl_trainer *t, const cpl_trainer_options *options, cpl_error *err)
{
    means best = {.pairs = 0};
    cpl_status status = CPL_OK;
    t->memory.micro_batch = t->memory.valid_micro_batch = 0;
    for (int level = 0; level < CPL_RECOMPUTES && status == CPL_OK; level++)
        if (level == 0 || best.recompute != 0 || best.block != 0 || best.pairs < t->memory.batch)
            status = try_blocks(t, options, (cpl_recompute)level, &best, err);
    if (status != CPL_OK || best.pairs == 0)
        return status == CPL_OK ? use_least(t, err) : status;
    status = use(t, best.recompute, best.block, err);
    cpl_program_stage_gradients(t->program, best.staged);
    t->memory.micro_batch = best.pairs;
    t->capacity[CPL_TRAIN] = best.piece;
    if (status == CPL_OK)
        status = find_saved(t, &best, err);
    if (status == CPL_OK && t->valid)
        status = choose_validation(t, cpl_trainer_room(t, options), best.block, err);
    return status;
}
