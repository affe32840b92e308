/* noise.c: the noise of data.noise on the sources of batches. Training meets new damage in every pass; validation the
 * same each time, so that its loss says how well damage is mended: on sound sentences it would say how well they are
 * copied, which a few passes teach, and training would stop there.
 * Padding takes no noise: it is put behind what the noise leaves. */
#include "base/error.h"
#include "base/memory.h"
#include "train/trainer.h"

/* Stands for the number of a pass that training never reaches. */
enum { VALIDATION = -1 };

cpl_status cpl_trainer_prepare_noise(cpl_trainer *t, cpl_error *err)
{
    const cpl_config_noise *n = &t->config->data.noise;
    const cpl_binding *train = &t->whole[CPL_TRAIN], *valid = &t->whole[CPL_EVALUATE];
    int place = cpl_program_place(t->program, "s");
    int64_t ids = train->rows[place] > valid->rows[place] ? train->rows[place] : valid->rows[place];
    int64_t pairs = train->batch > valid->batch ? train->batch : valid->batch;
    if (n->drop == 0 && n->mask == 0 && n->swap == 0)
        return CPL_OK;
    t->noise_ids = cpl_alloc((size_t)ids + 1, sizeof *t->noise_ids);
    t->noise_row = cpl_alloc((size_t)pairs + 1, sizeof *t->noise_row);
    t->noise_length = cpl_alloc((size_t)pairs + 1, sizeof *t->noise_length);
    if (!t->noise_ids || !t->noise_row || !t->noise_length)
        CPL_FAIL(err, CPL_FAILED, "no memory for the noise of %lld pairs", (long long)pairs);
    return CPL_OK;
}

void cpl_trainer_add_noise(cpl_trainer *t, const cpl_batch *b, cpl_mode mode, int64_t first, int64_t pairs,
                           const int32_t *const **rows, const int64_t **lengths)
{
    int64_t pass = mode == CPL_TRAIN ? b->pass : VALIDATION;
    int32_t *to = t->noise_ids;
    for (int64_t i = 0; i < pairs; i++) {
        const int32_t *row = b->source[first + i];
        int64_t length = cpl_source_real(row, b->source_length[first + i]);
        length = cpl_noise_row(&t->config->data.noise, (uint64_t)t->training->seed, pass, b->pair[first + i], row,
                               length, to);
        t->noise_row[i] = to;
        t->noise_length[i] = (int64_t)cpl_source_pad(to, (size_t)length, t->config->text.source.pad_to);
        to += t->noise_length[i];
    }
    *rows = t->noise_row;
    *lengths = t->noise_length;
}
