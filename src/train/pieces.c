/* pieces.c: a batch in pieces that fit the memory.
 *
 * A batch is sorted by length, so a piece is a run of sentences of like length. Most batches are short ones and stay
 * whole: a batch is cut by what it holds, not by a fixed number of pairs. */
#include <string.h>

#include "base/error.h"
#include "data/order.h"
#include "train/trainer.h"

/* The rows that the batches of a mode are made of: validation_steps may leave some out. */
static cpl_rows rows_of(const cpl_trainer *t, cpl_mode mode)
{
    cpl_rows rows = mode == CPL_TRAIN ? t->data->train : t->data->valid;
    int64_t steps = t->training->validation_steps, size = t->training->batch_size;
    if (mode == CPL_EVALUATE && t->training->batch_tokens > 0)
        rows.count = cpl_order_token_count(&rows, t->training->batch_tokens, steps);
    else if (mode == CPL_EVALUATE && steps > 0 && steps < rows.count / size + 1 && steps * size < rows.count)
        rows.count = steps * size;
    return rows;
}

/* A piece of a batch of tokens holds no more than that batch, whichever its pairs are. */
static void narrow(cpl_batch_capacity *c, const cpl_batch_capacity *whole)
{
    int64_t *const own[] = {&c->pairs, &c->source_tokens, &c->target_tokens, &c->products};
    const int64_t most[] = {whole->pairs, whole->source_tokens, whole->target_tokens, whole->products};
    for (int i = 0; i < 4; i++)
        *own[i] = *own[i] < most[i] ? *own[i] : most[i];
}

cpl_status cpl_trainer_capacity(const cpl_trainer *t, cpl_mode mode, int64_t pairs, cpl_binding *b, cpl_error *err)
{
    cpl_batch_capacity c;
    cpl_rows rows = rows_of(t, mode);
    cpl_status status = cpl_rows_capacity(&rows, pairs, 0, &c, err);
    if (status != CPL_OK)
        return status;
    if (t->training->batch_tokens > 0)
        narrow(&c, cpl_batcher_capacity(mode == CPL_TRAIN ? t->train : t->valid));
    int s = cpl_program_place(t->program, "s"), g = cpl_program_place(t->program, "t");
    memset(b, 0, sizeof *b);
    b->batch = c.pairs;
    b->rows[s] = c.source_tokens;
    b->longest[s] = c.longest_source;
    b->rows[g] = c.target_tokens;
    b->longest[g] = c.longest_target;
    b->pairs[s][g] = b->pairs[g][s] = c.products;
    return CPL_OK;
}

/* ---- cutting ---- */

/* What a piece holds, and what it may hold. */
typedef struct load {
    double pairs, source, target, products;
} load;

static load load_of(const cpl_batch *b, int64_t i)
{
    double source = (double)b->source_length[i], target = (double)b->target_length[i];
    return (load){1, source, target, source * target};
}

static load most_of(const cpl_trainer *t, cpl_mode mode)
{
    const cpl_binding *c = &t->capacity[mode];
    int s = cpl_program_place(t->program, "s"), g = cpl_program_place(t->program, "t");
    return (load){(double)c->batch, (double)c->rows[s], (double)c->rows[g], (double)c->pairs[s][g]};
}

/* Adds one to a piece, unless the piece then holds more than a share of the most. */
static int take(load *piece, load one, const load *most, double share)
{
    load sum = {piece->pairs + 1, piece->source + one.source, piece->target + one.target,
                piece->products + one.products};
    if (piece->pairs > 0 && (sum.pairs > most->pairs * share || sum.source > most->source * share ||
                             sum.target > most->target * share || sum.products > most->products * share))
        return 0;
    *piece = sum;
    return 1;
}

static int64_t cut(int64_t *at, const cpl_batch *b, const load *most, double share)
{
    int64_t pieces = 0;
    load piece = {0};
    for (int64_t i = 0; i < b->pairs; i++) {
        load one = load_of(b, i);
        if (i == 0 || !take(&piece, one, most, share)) {
            at[pieces++] = i;
            piece = one;
        }
    }
    at[pieces] = b->pairs;
    return pieces;
}

/* First the fewest pieces, then the smallest share at which there are no more: so the pieces are even, and the last one
 * is no remainder of two sentences. */
int64_t cpl_trainer_cut(cpl_trainer *t, cpl_mode mode, const cpl_batch *b)
{
    load most = most_of(t, mode);
    int64_t pieces = cut(t->cut, b, &most, 1);
    double low = 0, high = 1;
    for (int i = 0; i < 10 && pieces > 1; i++) {
        double middle = (low + high) / 2;
        if (cut(t->cut, b, &most, middle) > pieces)
            low = middle;
        else
            high = middle;
    }
    return pieces > 1 ? cut(t->cut, b, &most, high) : pieces;
}
