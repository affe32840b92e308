/* refuse.c: the sentence for a training that does not fit, not even one pair at a time: need and budget, which pair it
 * is (case B03), what does not depend on the batch (B06), and what would fit (B02). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "train/trainer.h"

typedef struct refusal {
    const cpl_trainer *t;
    cpl_mode mode;           /* whose pair does not fit */
    uint64_t fixed, room;    /* what every batch takes; what the budget leaves for the rest */
    uint64_t block, inputs;  /* of one pair */
    cpl_binding one;         /* the most that one pair can hold */
    const cpl_row *longest;
} refusal;

static const char *size(char text[32], uint64_t bytes)
{
    return cpl_bytes_text(text, 32, bytes);
}

/* ---- what would fit ---- */

static int pair_fits(const refusal *r, const cpl_binding *b)
{
    uint64_t block, inputs;
    const cpl_binding *train = b, *evaluate = NULL;
    if (r->mode == CPL_EVALUATE)
        train = &r->t->capacity[CPL_TRAIN], evaluate = b;
    return cpl_trainer_piece_bytes(r->t, train, evaluate, &block, &inputs, NULL) == CPL_OK && block + inputs <= r->room;
}

static cpl_binding pairs_of(const refusal *r, int64_t pairs, int64_t source, int64_t target)
{
    int s = cpl_program_place(r->t->program, "s"), g = cpl_program_place(r->t->program, "t");
    cpl_binding b = {.batch = pairs};
    b.rows[s] = pairs * source, b.longest[s] = source;
    b.rows[g] = pairs * target, b.longest[g] = target;
    b.pairs[s][g] = b.pairs[g][s] = pairs * source * target;
    return b;
}

/* Rows have START and END: a limit of n tokens leaves n + 2 ids of a source, or what padding makes of them, and n + 1
 * steps of a target. */
static cpl_binding limited(const refusal *r, int64_t limit)
{
    int64_t most = (int64_t)cpl_source_length((size_t)limit, r->t->config->text.source.pad_to);
    int s = cpl_program_place(r->t->program, "s"), g = cpl_program_place(r->t->program, "t");
    int64_t source = r->one.longest[s], target = r->one.longest[g];
    return pairs_of(r, 1, source < most ? source : most, target < limit + 1 ? target : limit + 1);
}

/* The largest text.*.max_length, the same on both sides, with which one pair fits. 0: none. */
static int64_t largest_limit(const refusal *r)
{
    int s = cpl_program_place(r->t->program, "s"), g = cpl_program_place(r->t->program, "t");
    int64_t low = 0, high = r->one.longest[s] > r->one.longest[g] ? r->one.longest[s] : r->one.longest[g];
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        cpl_binding b = limited(r, middle);
        if (pair_fits(r, &b))
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int64_t count_over(const cpl_rows *rows, int64_t limit)
{
    int64_t n = 0;
    for (int64_t i = 0; i < rows->count; i++)
        n += cpl_source_real(cpl_row_source(rows, i), rows->items[i].source) > limit + 2 ||
             rows->items[i].target > limit + 2;
    return n;
}

/* Most pairs of average length that fit. */
static int64_t largest_batch(const refusal *r, int64_t *source, int64_t *target)
{
    const cpl_rows *rows = r->mode == CPL_TRAIN ? &r->t->data->train : &r->t->data->valid;
    int64_t low = 0, high = r->t->whole[r->mode].batch + 1;
    *source = *target = 0;
    for (int64_t i = 0; i < rows->count; i++)
        *source += rows->items[i].source, *target += rows->items[i].target - 1;
    *source = (*source + rows->count - 1) / rows->count;
    *target = (*target + rows->count - 1) / rows->count;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        cpl_binding b = pairs_of(r, middle, *source, *target);
        if (pair_fits(r, &b))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- the sentences ---- */

static const cpl_memory_part *largest_part(const refusal *r)
{
    const cpl_memory_figures *m = &r->t->memory;
    const cpl_memory_part *best = &m->part[0];
    for (int i = 0; i < m->count; i++)
        if (m->part[i].bytes > best->bytes && strcmp(m->part[i].name, "reading") != 0)
            best = &m->part[i];
    return best;
}

/* Parameters, gradients and optimizer: figures of t->memory that no batch size changes. */
static uint64_t model_bytes(const cpl_memory_figures *m)
{
    uint64_t bytes = 0;
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->part[i].name, "parameters") == 0 || strcmp(m->part[i].name, "gradients") == 0 ||
            strcmp(m->part[i].name, "optimizer") == 0 || strcmp(m->part[i].name, "average") == 0)
            bytes += m->part[i].bytes;
    return bytes;
}

/* What follows the number of a row's words where it has padding. */
static const char *padded(char text[48], const cpl_row *row, int64_t words)
{
    text[0] = '\0';
    if (words + 2 < row->source)
        snprintf(text, 48, " (filled up to %d, text.source.pad_to)", row->source);
    return text;
}

/* The cause where a shorter pair would do: which pair it is, and with what limit the rest fits. */
static void say_pair(const refusal *r, int64_t limit, cpl_error *err)
{
    char place[200], need[32], with[48];
    const cpl_rows *rows = r->mode == CPL_TRAIN ? &r->t->data->train : &r->t->data->valid;
    int64_t words = cpl_source_real(cpl_row_source(rows, r->longest - rows->items), r->longest->source) - 2;
    int64_t source, target, batch = largest_batch(r, &source, &target);
    int64_t over = count_over(&r->t->data->train, limit) + count_over(&r->t->data->valid, limit);
    int cuts = r->t->config->text.source.too_long == CPL_TOO_LONG_CUT;
    cpl_error_set(err, CPL_USAGE, "the longest %s pair, %s, has %" PRId64 " source%s and %d target tokens and needs %s "
                  "of activations alone; what fits: one pair of up to %" PRId64 " tokens a side, or batches of up to %"
                  PRId64 " pairs of average length (%" PRId64 " and %" PRId64 " tokens)" CPL_HINT
                  "in order of effect: text.source.max_length and text.target.max_length of %" PRId64 " %s %" PRId64
                  " %s; a smaller text.target.vocabulary_size or model.units; a larger training.memory",
                  r->mode == CPL_TRAIN ? "training" : "validation",
                  cpl_dataset_place(r->t->data, r->longest->file, r->longest->line, place, sizeof place),
                  words, padded(with, r->longest, words), r->longest->target - 2, size(need, r->block), limit, batch,
                  source, target, limit, cuts ? "cut" : "drop", over, over == 1 ? "pair" : "pairs");
}

/* The cause where the model itself is too large. */
static void say_model(const refusal *r, cpl_error *err)
{
    const cpl_memory_figures *m = &r->t->memory;
    char model[32], fixed[32];
    uint64_t bytes = model_bytes(m);
    int adam = cpl_optimizer_state_bytes(r->t->training, r->t->program->engine->parameters) > 0;
    cpl_error_set(err, CPL_USAGE, "parameters, gradients and optimizer take %s, which does not depend on the batch "
                  "size%s; with data and program %s are taken before the first pair: no batch, no source and no "
                  "target length fits" CPL_HINT "in order of effect: a smaller text.*.vocabulary_size, a smaller "
                  "model.units%s%s, a larger training.memory; a smaller batch_size does not help", size(model, bytes),
                  bytes > m->budget ? " and exceeds the budget alone" : "", size(fixed, r->fixed),
                  adam ? ", training.optimizer.name: sgd (no state)" : "",
                  r->t->config->text.source.pad_to > 0 ? ", a smaller text.source.pad_to" : "");
}

static cpl_status measure(refusal *r, cpl_error *err)
{
    const cpl_trainer *t = r->t;
    cpl_batch_capacity c;
    const cpl_rows *rows = r->mode == CPL_TRAIN ? &t->data->train : &t->data->valid;
    cpl_status status = cpl_trainer_capacity(t, r->mode, 1, &r->one, err);
    if (status == CPL_OK)
        status = cpl_rows_capacity(rows, 1, 0, &c, err);
    if (status == CPL_OK)
        status = cpl_trainer_piece_bytes(t, r->mode == CPL_TRAIN ? &r->one : &t->capacity[CPL_TRAIN],
                                         r->mode == CPL_TRAIN ? NULL : &r->one, &r->block, &r->inputs, err);
    if (status == CPL_OK)
        r->longest = &rows->items[c.largest];
    return status;
}

cpl_status cpl_trainer_refuse_memory(const cpl_trainer *t, uint64_t fixed, uint64_t room, cpl_error *err)
{
    const cpl_memory_figures *m = &t->memory;
    refusal r = {.t = t, .mode = m->micro_batch > 0 ? CPL_EVALUATE : CPL_TRAIN, .fixed = fixed, .room = room};
    char need[32], budget[32], whole[32], part[32];
    cpl_status status = measure(&r, err);
    if (status != CPL_OK)
        return status;
    const cpl_memory_part *largest = largest_part(&r);
    int64_t limit = largest_limit(&r);
    if (limit > 0)
        say_pair(&r, limit, err);
    else
        say_model(&r, err);
    return cpl_error_context(err, CPL_USAGE, "training needs %s even with one pair at a time (%s with batches of %"
                             PRId64 "; largest part: %s, %s), but the budget is %s (%s)",
                             size(need, fixed + r.block + r.inputs), size(whole, m->whole_peak), m->batch,
                             largest->name, size(part, largest->bytes), size(budget, m->budget), m->budget_from);
}
