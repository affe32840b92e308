/* sampling.c: training.scheduled_sampling: the decoder reads some of its own words in place of the true ones.
 *
 * Two passes instead of a loop (Mihaylova and Martins 2019): the model, as it stands and without dropout, reads the
 * true targets and says at each position which word it would write; then training reads that word, instead of the
 * true one, at the next position, by a draw for each. Draws are a pure function of (seed, step, pair, position), and a
 * sentence's words do not depend on what it is run with: pieces of a batch and resume change nothing.
 *
 * The first pass runs in pieces of its own, of a size that the data alone give: its logits exist whole. */
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "text/text.h"
#include "train/trainer.h"

enum { PIECE_ROWS = 256 }; /* target tokens that the first pass runs at once, or one sentence */

struct cpl_sampler {
    cpl_program *program;
    int64_t pairs; /* at once */
    int32_t *ids;  /* the rows of a batch */
    const int32_t **row;
    uint64_t bytes;
};

/* A binding of the trainer's program, in the symbols of the sampler's. */
static cpl_binding translated(const cpl_trainer *t, const cpl_program *p, const cpl_binding *b)
{
    cpl_binding to = {.batch = b->batch};
    int s = cpl_program_place(t->program, "s"), g = cpl_program_place(t->program, "t");
    int own_s = cpl_program_place(p, "s"), own_g = cpl_program_place(p, "t");
    to.rows[own_s] = b->rows[s], to.longest[own_s] = b->longest[s];
    to.rows[own_g] = b->rows[g], to.longest[own_g] = b->longest[g];
    to.pairs[own_s][own_g] = to.pairs[own_g][own_s] = b->pairs[s][g];
    return to;
}

static cpl_status compile(const cpl_trainer *t, cpl_sampler *s, cpl_error *err)
{
    cpl_program shared = {.engine = t->program->engine};
    cpl_compile_options o = {.name = t->kind->name, .share = &shared, .inference = 1};
    cpl_binding most;
    int64_t longest = t->whole[CPL_TRAIN].longest[cpl_program_place(t->program, "t")];
    s->pairs = longest < PIECE_ROWS ? PIECE_ROWS / longest : 1;
    s->pairs = s->pairs < t->whole[CPL_TRAIN].batch ? s->pairs : t->whole[CPL_TRAIN].batch;
    cpl_status status = cpl_compile(&s->program, t->kind->predict, &t->sizes, &o, err);
    if (status == CPL_OK)
        status = cpl_trainer_capacity(t, CPL_TRAIN, s->pairs, &most, err);
    if (status != CPL_OK)
        return status;
    most = translated(t, s->program, &most);
    status = cpl_program_reserve_inputs(s->program, &most, err);
    return status == CPL_OK ? cpl_program_reserve(s->program, CPL_EVALUATE, &most, err) : status;
}

cpl_status cpl_trainer_prepare_sampling(cpl_trainer *t, cpl_error *err)
{
    uint64_t before = cpl_memory_live_bytes();
    const cpl_binding *whole = &t->whole[CPL_TRAIN];
    if (t->training->scheduled_sampling == 0)
        return CPL_OK;
    cpl_sampler *s = t->sampler = cpl_alloc(1, sizeof *s);
    if (s) {
        s->ids = cpl_alloc((size_t)whole->rows[cpl_program_place(t->program, "t")] + 1, sizeof *s->ids);
        s->row = cpl_alloc((size_t)whole->batch + 1, sizeof *s->row);
    }
    if (!s || !s->ids || !s->row)
        CPL_FAIL(err, CPL_FAILED, "no memory for the sampled targets of %lld pairs", (long long)whole->batch);
    CPL_TRY(compile(t, s, err), err, "cannot prepare scheduled sampling");
    s->bytes = cpl_memory_live_bytes() - before;
    return CPL_OK;
}

void cpl_trainer_free_sampling(cpl_trainer *t)
{
    if (!t->sampler)
        return;
    cpl_program_free(t->sampler->program);
    cpl_release(t->sampler->ids);
    cpl_release(t->sampler->row);
    cpl_release(t->sampler);
    t->sampler = NULL;
}

uint64_t cpl_trainer_sampling_bytes(const cpl_trainer *t)
{
    return t->sampler ? t->sampler->bytes : 0;
}

/* The words of sentences first … first + pairs − 1 that the model would write. */
static cpl_status predict(cpl_trainer *t, const cpl_batch *b, int64_t first, int64_t pairs, cpl_error *err)
{
    cpl_program *p = t->sampler->program;
    const int64_t *length = b->source_length + first;
    const int32_t *const *rows = b->source + first;
    if (t->noise_ids)
        cpl_trainer_add_noise(t, b, CPL_TRAIN, first, pairs, &rows, &length);
    cpl_status status = cpl_feed_ids(p, "source", rows, length, pairs, err);
    if (status == CPL_OK)
        status = cpl_feed_ids(p, "target_in", b->target_in + first, b->target_length + first, pairs, err);
    return status == CPL_OK ? cpl_run(p, CPL_EVALUATE, err) : status;
}

/* Rows of the piece that has just run, `to` on: a true word, or the one that the step before would have written.
 * Decoding never writes padding or START: where they would be the likeliest, the true word stays. */
static int32_t *mix(cpl_trainer *t, const cpl_batch *b, int64_t first, int64_t pairs, int32_t *to)
{
    cpl_program *p = t->sampler->program;
    const cpl_geometry *g = &p->geometry[cpl_program_symbol(p, "t")];
    double share = t->training->scheduled_sampling;
    uint64_t seed = (uint64_t)t->training->seed ^ 0x73616d706c65, step = (uint64_t)t->state.step + 1;
    cpl_tensor next;
    cpl_program_output(p, "next", &next);
    for (int64_t i = first; i < first + pairs; i++) {
        int64_t n = b->target_length[i], at = g->position[i - first];
        uint64_t key = cpl_random_key(seed, step, (uint64_t)b->pair[i]);
        t->sampler->row[i] = to;
        for (int64_t k = 0; k < n; k++) {
            int32_t own = k > 0 ? next.ids[g->offset[k - 1] + at] : CPL_ID_PADDING;
            int usable = own != CPL_ID_PADDING && own != CPL_ID_START;
            to[k] = usable && cpl_random_unit(key, (uint64_t)k) < share ? own : b->target_in[i][k];
        }
        to += n;
    }
    return to;
}

cpl_status cpl_trainer_sample(cpl_trainer *t, const cpl_batch *b, cpl_error *err)
{
    int32_t *to = t->sampler ? t->sampler->ids : NULL;
    for (int64_t first = 0; to && first < b->pairs; first += t->sampler->pairs) {
        int64_t pairs = b->pairs - first < t->sampler->pairs ? b->pairs - first : t->sampler->pairs;
        CPL_TRY(predict(t, b, first, pairs, err), err, "cannot sample targets");
        to = mix(t, b, first, pairs, to);
    }
    return CPL_OK;
}

const int32_t *const *cpl_trainer_target_in(const cpl_trainer *t, const cpl_batch *b, cpl_mode mode)
{
    return t->sampler && mode == CPL_TRAIN ? t->sampler->row : b->target_in;
}
