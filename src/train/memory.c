/* memory.c: what training will take, known before it is taken, and made to fit.
 *
 * The large parts are known exactly, from the plan of the graph and the sizes of the data. What is held already
 * (vocabularies, graphs, options) is what the library's allocations count, so nothing is forgotten by name.
 *
 * When whole batches do not fit into the budget, means.c finds how they can be run in less memory. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/memory.h"
#include "ops/loss.h"
#include "train/limit.h"
#include "train/trainer.h"

/* Of a thread's stack, what is ever touched: kernels keep a few rows there. Code and tables of the libraries that only
 * training touches. */
enum { STACK_TOUCHED = 48 * 1024, CODE_TOUCHED = 768 * 1024 };

uint64_t cpl_peak_rss(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static cpl_memory_part *add(cpl_memory_figures *m, const char *name, uint64_t bytes, int with_batch)
{
    m->part[m->count] = (cpl_memory_part){name, bytes, with_batch};
    m->peak += bytes;
    return &m->part[m->count++];
}

/* ---- whole logits (case B02) ---- */

uint64_t cpl_logits_bytes(int64_t longest, int64_t batch, int64_t vocabulary)
{
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)longest * sizeof(float), (uint64_t)vocabulary, &bytes) ||
        __builtin_mul_overflow(bytes, (uint64_t)batch, &bytes))
        return UINT64_MAX;
    return bytes;
}

int64_t cpl_logits_batch(uint64_t budget, int64_t longest, int64_t vocabulary)
{
    uint64_t one = cpl_logits_bytes(longest, 1, vocabulary);
    return one > 0 ? (int64_t)(budget / one) : 0;
}

/* What the loss takes in place of whole logits: the workspace of the call that computes it. */
static void find_logits(cpl_trainer *t)
{
    const cpl_graph *g = t->program->schedule[CPL_TRAIN].graph;
    cpl_memory_figures *m = &t->memory;
    int symbol = cpl_program_place(t->program, "t");
    m->longest_target = t->whole[CPL_TRAIN].longest[symbol];
    m->vocabulary = t->sizes.target_vocabulary;
    m->whole_logits = cpl_logits_bytes(m->longest_target, t->whole[CPL_TRAIN].batch, m->vocabulary);
    for (size_t i = 0; g && i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        if (c->dead || c->backward || !(c->op->flags & CPL_OP_BLOCKS))
            continue;
        cpl_size_context s;
        cpl_call_sizes(g, c, &t->capacity[CPL_TRAIN], t->program->engine->threads, &s);
        m->logits_block = c->op->workspace(&s);
    }
}

/* ---- what grows with the batch ---- */

/* One block serves both modes. */
cpl_status cpl_trainer_piece_bytes(const cpl_trainer *t, const cpl_binding *train, const cpl_binding *evaluate,
                                   uint64_t *block, uint64_t *inputs, cpl_error *err)
{
    size_t one = 0, other = 0;
    cpl_binding largest = *train;
    cpl_status status = cpl_program_block_bytes(t->program, CPL_TRAIN, train, &one, err);
    if (status == CPL_OK && evaluate) {
        status = cpl_program_block_bytes(t->program, CPL_EVALUATE, evaluate, &other, err);
        cpl_binding_grow(&largest, evaluate);
    }
    *block = one > other ? one : other;
    *inputs = cpl_program_input_bytes(t->program, &largest);
    return status;
}

/* ---- the budget ---- */

/* A little of a budget is kept for what no plan sees: the heap of the C library grows in steps. */
static uint64_t usable(uint64_t budget)
{
    uint64_t kept = (1u << 18) + budget / 256;
    return budget > kept ? budget - kept : 0;
}

/* The smaller of training.memory and what the limits of the process leave. taken: what of the plan is there already. */
static void find_budget(cpl_trainer *t, const cpl_trainer_options *options, uint64_t taken, uint64_t untouched)
{
    cpl_memory_figures *m = &t->memory;
    cpl_memory_limit limit = cpl_memory_limit_now(options->mapped_bytes);
    char text[32];
    m->budget = (uint64_t)t->training->memory;
    snprintf(m->budget_from, sizeof m->budget_from, "training.memory");
    if (!limit.name)
        return;
    uint64_t room = limit.room + (limit.mapped ? taken : taken - untouched);
    if (m->budget > 0 && m->budget <= room)
        return;
    m->budget = room > 0 ? room : 1;
    snprintf(m->budget_from, sizeof m->budget_from, "%s of %s", limit.name,
             cpl_bytes_text(text, sizeof text, limit.limit));
}

/* ---- parts ---- */

typedef struct fixed_parts {
    uint64_t weights, gradients, optimizer, average, data, batches, threads, files, writing, examples, sampling, graphs;
    uint64_t code, profile;
} fixed_parts;

static fixed_parts count_fixed(const cpl_trainer *t, const cpl_trainer_options *options)
{
    const cpl_engine *e = t->program->engine;
    uint64_t held = cpl_memory_live_bytes() - options->bytes_before, scratch;
    fixed_parts f = {.weights = cpl_parameters_bytes(e->parameters),
                     .gradients = cpl_parameters_gradient_bytes(e->parameters), .data = cpl_dataset_bytes(t->data),
                     .files = cpl_model_set_bytes(t->set), .examples = t->example_bytes,
                     .sampling = cpl_trainer_sampling_bytes(t), .code = CODE_TOUCHED};
    scratch = (uint64_t)e->threads * e->kernels->gemm_scratch;
    f.optimizer = cpl_optimizer_state_bytes(t->training, e->parameters);
    f.average = cpl_average_bytes(t->training, e->parameters);
    f.batches = cpl_batcher_bytes(t->train) + (t->valid ? cpl_batcher_bytes(t->valid) : 0);
    f.threads = scratch + (uint64_t)e->threads * STACK_TOUCHED;
    f.writing = cpl_model_set_write_bytes(t->set);
    f.profile = t->profiled ? cpl_train_profile_bytes(t->program) : 0;
    uint64_t named = f.weights + f.gradients + f.data + f.batches + f.files + scratch + f.examples + f.sampling;
    f.graphs = held > named ? held - named : 0;
    return f;
}

static uint64_t sum(const fixed_parts *f)
{
    return f->weights + f->gradients + f->optimizer + f->average + f->data + f->batches + f->threads + f->files +
           f->writing + f->examples + f->sampling + f->graphs + f->code + f->profile;
}

static cpl_status list_parts(cpl_trainer *t, const fixed_parts *f, uint64_t reading, cpl_error *err)
{
    cpl_memory_figures *m = &t->memory;
    uint64_t block, inputs;
    const cpl_binding *evaluate = t->valid ? &t->capacity[CPL_EVALUATE] : NULL;
    cpl_status status = cpl_trainer_piece_bytes(t, &t->capacity[CPL_TRAIN], evaluate, &block, &inputs, err);
    if (status != CPL_OK)
        return status;
    m->count = 0;
    m->peak = 0;
    add(m, "parameters", f->weights, 0);
    add(m, "gradients", f->gradients, 0);
    add(m, "optimizer", f->optimizer, 0);
    if (f->average > 0)
        add(m, "average", f->average, 0);
    add(m, "activations", block, 1);
    add(m, "inputs", inputs, 1);
    add(m, "data", f->data, 0);
    add(m, "batches", f->batches, 0);
    add(m, "threads", f->threads, 0);
    add(m, "files", f->files + f->writing, 0);
    if (f->examples > 0)
        add(m, "examples", f->examples, 0);
    if (f->sampling > 0)
        add(m, "sampling", f->sampling, 0);
    if (f->profile > 0)
        add(m, "profile", f->profile, 0);
    add(m, "graphs", f->graphs, 0);
    add(m, "code", f->code, 0);
    /* Reading a large file for a small model takes more than training does: that peak lies behind us. */
    if (reading > m->peak)
        add(m, "reading", reading - m->peak, 0);
    return CPL_OK;
}

/* ---- the plan ---- */

uint64_t cpl_trainer_room(const cpl_trainer *t, const cpl_trainer_options *options)
{
    fixed_parts f = count_fixed(t, options);
    uint64_t budget = usable(t->memory.budget), fixed = sum(&f);
    return budget > fixed ? budget - fixed : 0;
}

static int chosen(const cpl_trainer *t)
{
    return t->memory.micro_batch > 0 && (!t->valid || t->memory.valid_micro_batch > 0);
}

static cpl_status prepare(cpl_trainer *t, cpl_error *err)
{
    cpl_memory_figures *m = &t->memory;
    m->batch = m->micro_batch = t->whole[CPL_TRAIN].batch;
    m->loss_block = m->whole_loss_block = CPL_LOSS_BLOCK;
    m->valid_batch = m->valid_micro_batch = t->valid ? t->whole[CPL_EVALUATE].batch : 0;
    int64_t most = m->batch > m->valid_batch ? m->batch : m->valid_batch;
    t->cut = cpl_alloc((size_t)most + 1, sizeof *t->cut);
    if (!t->cut)
        CPL_FAIL(err, CPL_FAILED, "no memory to cut batches of %lld pairs", (long long)most);
    memcpy(t->capacity, t->whole, sizeof t->capacity);
    return CPL_OK;
}

/* Metrics were asked for: translating is not given up in silence, the message says what it takes. */
static cpl_status refuse(cpl_trainer *t, const cpl_trainer_options *options, const fixed_parts *f, cpl_error *err)
{
    char took[32];
    cpl_status status = cpl_trainer_refuse_memory(t, sum(f), cpl_trainer_room(t, options), err);
    if (t->wanted == 0 || status != CPL_USAGE)
        return status;
    return cpl_error_context(err, status, "translating validation pairs for training.metrics takes %s of the budget, "
                             "which without metrics would be given up", cpl_bytes_text(took, sizeof took, f->examples));
}

/* Makes the plan fit the budget. Showing examples is given up before training is. */
static cpl_status fit_budget(cpl_trainer *t, const cpl_trainer_options *options, fixed_parts *f, uint64_t reading,
                             cpl_error *err)
{
    cpl_memory_figures *m = &t->memory;
    cpl_status status = CPL_OK;
    char took[32], text[32];
    for (;;) {
        status = cpl_trainer_choose_means(t, options, err);
        if (status != CPL_OK || chosen(t) || !t->decoder || t->wanted != 0)
            break;
        cpl_trainer_free_examples(t);
        cpl_log_warning(&t->log, "no examples are shown: translating them does not fit into the budget");
    }
    *f = count_fixed(t, options);
    if (status == CPL_OK && !chosen(t))
        return refuse(t, options, f, err);
    if (status == CPL_OK && reading > m->budget && m->budget == (uint64_t)t->training->memory)
        CPL_FAIL(err, CPL_USAGE, "reading the data took %s, but the budget is %s (training.memory)" CPL_HINT
                 "a smaller data.train, or a larger training.memory", cpl_bytes_text(took, sizeof took, reading),
                 cpl_bytes_text(text, sizeof text, m->budget));
    return status == CPL_OK ? list_parts(t, f, reading, err) : status;
}

cpl_status cpl_trainer_plan_memory(cpl_trainer *t, const cpl_trainer_options *options, cpl_error *err)
{
    cpl_memory_figures *m = &t->memory;
    uint64_t reading = cpl_peak_rss() - options->peak_before;
    cpl_status status = prepare(t, err);
    if (status != CPL_OK)
        return status;
    fixed_parts f = count_fixed(t, options);
    status = list_parts(t, &f, reading, err);
    m->whole_peak = m->peak;
    find_budget(t, options, sum(&f) - f.optimizer - f.average - f.writing - f.profile, f.gradients);
    if (status == CPL_OK && m->budget > 0)
        status = fit_budget(t, options, &f, reading, err);
    if (status == CPL_OK)
        find_logits(t);
    return status;
}
