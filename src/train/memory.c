/* memory.c: what training will take, known before it is taken.
 *
 * The large parts are known exactly, from the plan of the graph and the sizes of the data. What is held already
 * (vocabularies, graphs, options) is what the library's allocations count, so nothing is forgotten by name. */
#include <stdio.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "train/trainer.h"

/* Of a thread's stack, what is ever touched: kernels keep a few rows there. */
enum { STACK_TOUCHED = 48 * 1024 };

uint64_t cpl_peak_rss(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static void add(cpl_memory_figures *m, const char *name, uint64_t bytes, int with_batch)
{
    m->part[m->count++] = (cpl_memory_part){name, bytes, with_batch};
    m->peak += bytes;
}

/* One block serves both modes. */
static cpl_status block_bytes(const cpl_trainer *t, uint64_t *bytes, cpl_error *err)
{
    size_t train = 0, evaluate = 0;
    cpl_status status = cpl_program_block_bytes(t->program, CPL_TRAIN, &t->capacity[CPL_TRAIN], &train, err);
    if (status == CPL_OK && t->valid)
        status = cpl_program_block_bytes(t->program, CPL_EVALUATE, &t->capacity[CPL_EVALUATE], &evaluate, err);
    *bytes = train > evaluate ? train : evaluate;
    return status;
}

cpl_status cpl_trainer_count_memory(cpl_trainer *t, const cpl_trainer_options *options, cpl_error *err)
{
    cpl_memory_figures *m = &t->memory;
    const cpl_engine *e = t->program->engine;
    uint64_t weights = cpl_parameters_bytes(e->parameters), block;
    uint64_t held = cpl_memory_live_bytes() - options->bytes_before, peak = cpl_peak_rss() - options->peak_before;
    uint64_t threads = (uint64_t)e->threads, scratch = threads * e->kernels->gemm_scratch;
    uint64_t data = cpl_dataset_bytes(t->data), files = cpl_model_set_bytes(t->set);
    uint64_t batches = cpl_batcher_bytes(t->train) + (t->valid ? cpl_batcher_bytes(t->valid) : 0);
    cpl_binding largest = t->capacity[CPL_TRAIN];
    cpl_status status = block_bytes(t, &block, err);
    if (status != CPL_OK)
        return status;
    cpl_binding_grow(&largest, &t->capacity[CPL_EVALUATE]);
    uint64_t named = 2 * weights + data + batches + files + scratch;
    add(m, "parameters", weights, 0);
    add(m, "gradients", weights, 0);
    add(m, "optimizer", cpl_optimizer_state_bytes(t->training, e->parameters), 0);
    add(m, "activations", block, 1);
    add(m, "inputs", cpl_program_input_bytes(t->program, &largest), 1);
    add(m, "data", data, 0);
    add(m, "batches", batches, 0);
    add(m, "threads", scratch + threads * STACK_TOUCHED, 0);
    add(m, "files", files + cpl_model_set_write_bytes(t->set), 0);
    add(m, "graphs", held > named ? held - named : 0, 0);
    /* Reading a large file for a small model takes more than training does: that peak lies behind us. */
    if (peak > m->peak)
        add(m, "reading", peak - m->peak, 0);
    return CPL_OK;
}
