/* noise.c: the noise of data.noise on the sources of training batches; validation reads them as they are. */
#include "base/error.h"
#include "base/memory.h"
#include "train/trainer.h"

cpl_status cpl_trainer_prepare_noise(cpl_trainer *t, cpl_error *err)
{
    const cpl_config_noise *n = &t->config->data.noise;
    const cpl_binding *most = &t->whole[CPL_TRAIN];
    if (n->drop == 0 && n->mask == 0 && n->swap == 0)
        return CPL_OK;
    t->noise_ids = cpl_alloc((size_t)most->rows[cpl_program_place(t->program, "s")] + 1, sizeof *t->noise_ids);
    t->noise_row = cpl_alloc((size_t)most->batch + 1, sizeof *t->noise_row);
    t->noise_length = cpl_alloc((size_t)most->batch + 1, sizeof *t->noise_length);
    if (!t->noise_ids || !t->noise_row || !t->noise_length)
        CPL_FAIL(err, CPL_FAILED, "no memory for the noise of %lld pairs", (long long)most->batch);
    return CPL_OK;
}

void cpl_trainer_add_noise(cpl_trainer *t, const cpl_batch *b, int64_t first, int64_t pairs,
                           const int32_t *const **rows, const int64_t **lengths)
{
    int32_t *to = t->noise_ids;
    for (int64_t i = 0; i < pairs; i++) {
        t->noise_row[i] = to;
        t->noise_length[i] = cpl_noise_row(&t->config->data.noise, (uint64_t)t->training->seed, b->pass,
                                           b->pair[first + i], b->source[first + i], b->source_length[first + i], to);
        to += t->noise_length[i];
    }
    *rows = t->noise_row;
    *lengths = t->noise_length;
}
