/* trainer.c: making a trainer: compile the model, check the data against it, make batches, know the memory. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/limit.h"
#include "train/trainer.h"

/* ---- sizes ---- */

/* Validation needs the same layout as training, without gradients. */
static cpl_status capacity_of_mode(cpl_trainer *t, cpl_mode mode, cpl_error *err)
{
    const cpl_batcher *b = mode == CPL_TRAIN ? t->train : t->valid;
    int64_t pairs = t->training->batch_tokens > 0 ? cpl_batcher_capacity(b)->pairs : t->training->batch_size;
    return cpl_trainer_capacity(t, mode, pairs, &t->whole[mode], err);
}

static cpl_status capacities(cpl_trainer *t, cpl_error *err)
{
    CPL_TRY(capacity_of_mode(t, CPL_TRAIN, err), err, "cannot plan the training batches");
    if (t->valid)
        CPL_TRY(capacity_of_mode(t, CPL_EVALUATE, err), err, "cannot plan the validation batches");
    return CPL_OK;
}

/* ---- batches ---- */

/* How many batches of tokens a pass has must not depend on which pairs were drawn. */
static cpl_status check_weights(const cpl_trainer *t, cpl_error *err)
{
    const double *weights = t->data->train.weights;
    for (size_t i = 0; weights && t->training->batch_tokens > 0 && i < t->data->file_count; i++)
        if (weights[i] != floor(weights[i]))
            CPL_FAIL(err, CPL_USAGE, "'%s' has the weight %g, but with training.batch_tokens weights must be whole "
                     "numbers" CPL_HINT "use training.batch_size", t->data->files[i], weights[i]);
    return CPL_OK;
}

/* A pair of more tokens than a batch may have is a batch of its own. */
static void tell_large_pairs(const cpl_trainer *t)
{
    const cpl_rows *rows = &t->data->train;
    int64_t most = t->training->batch_tokens, count = 0, longest = 0;
    char place[300];
    for (int64_t i = 0; most > 0 && i < rows->count; i++) {
        count += rows->items[i].target - 1 > most;
        longest = rows->items[i].target > rows->items[longest].target ? i : longest;
    }
    if (count == 0)
        return;
    const cpl_row *row = &rows->items[longest];
    cpl_log_warning(&t->log, "%lld training pairs have more target tokens than training.batch_tokens, %lld: each is a "
                    "batch of its own; the longest, %s, has %lld", (long long)count, (long long)most,
                    cpl_dataset_place(t->data, row->file, row->line, place, sizeof place), (long long)row->target - 1);
}

static cpl_status make_batchers(cpl_trainer *t, cpl_error *err)
{
    const cpl_config_training *c = t->training;
    if (t->data->train.count == 0)
        CPL_FAIL(err, CPL_USAGE, "there is no training pair: every line was empty or dropped");
    cpl_batcher_options o = {.batch_size = c->batch_size, .batch_tokens = c->batch_tokens, .shuffle = 1,
                             .seed = (uint64_t)c->seed};
    cpl_status status = check_weights(t, err);
    if (status != CPL_OK)
        return status;
    tell_large_pairs(t);
    CPL_TRY(cpl_batcher_new(&t->train, &t->data->train, &o, err), err, "cannot make batches");
    int64_t batches = cpl_batcher_batches(t->train), steps = batches / c->accumulate + (batches % c->accumulate != 0);
    t->steps_in_epoch = c->steps_per_epoch > 0 ? c->steps_per_epoch : steps;
    if (t->data->valid.count == 0 && c->schedule.name == CPL_SCHEDULE_PLATEAU)
        CPL_FAIL(err, CPL_USAGE, "schedule plateau needs validation pairs, but there are none" CPL_HINT
                 "set data.valid, or choose another training.schedule.name");
    if (t->data->valid.count == 0) {
        cpl_log_warning(&t->log, "there are no validation pairs: the model of the last epoch is kept");
        return CPL_OK;
    }
    o = (cpl_batcher_options){.batch_size = c->batch_size, .batch_tokens = c->batch_tokens,
                              .most_batches = c->validation_steps, .no_thread = 1};
    CPL_TRY(cpl_batcher_new(&t->valid, &t->data->valid, &o, err), err, "cannot make validation batches");
    int64_t all = cpl_batcher_batches(t->valid);
    if (c->validation_steps > all)
        cpl_log_info(&t->log, "training.validation_steps is %lld but the validation pairs make %lld batches: all are "
                     "used every time", (long long)c->validation_steps, (long long)all);
    return CPL_OK;
}

/* ---- compiling ---- */

static cpl_status compile(cpl_trainer *t, cpl_error *err)
{
    t->kind = cpl_model_kind_of(t->config);
    t->sizes = (cpl_model_sizes){.config = t->config,
                                 .source_vocabulary = cpl_vocabulary_size(t->data->source),
                                 .target_vocabulary = cpl_vocabulary_size(t->data->target)};
    cpl_model_description parts;
    t->kind->describe(&t->sizes, &parts);
    t->mirrors = parts.mirrors;
    CPL_TRY(cpl_dataset_check_ids(t->data, t->sizes.source_vocabulary, t->sizes.target_vocabulary, err), err,
            "cannot train on these data");
    const cpl_data_report *report = &t->data->report;
    CPL_TRY(cpl_model_check_tie(t->config, (cpl_model_vocabulary){t->data->source, report->source.vocabulary_from},
                                (cpl_model_vocabulary){t->data->target, report->target.vocabulary_from}, err), err,
            "cannot share the embedding");
    cpl_compile_options o = {.name = t->kind->name, .seed = (uint64_t)t->training->seed,
                             .threads = (int)t->training->threads,
                             .freeze = t->training->freeze.items,
                             .freeze_count = (int)t->training->freeze.count,
                             .bfloat16 = t->training->precision == CPL_PRECISION_BFLOAT16,
                             .message = (cpl_message_sink)t->log.sink, .user = t->log.user};
    cpl_status status = cpl_compile(&t->program, t->kind->loss, &t->sizes, &o, err);
    cpl_memory_limit limit = cpl_memory_limit_now(0);
    char text[32];
    if (status == CPL_FAILED && limit.name)
        return cpl_error_context(err, status, "cannot build the model within %s of %s", limit.name,
                                 cpl_bytes_text(text, sizeof text, limit.limit));
    CPL_TRY(status, err, "cannot build the model");
    cpl_program_stage_gradients(t->program, t->training->accumulate > 1);
    if (cpl_trainer_trainable(t) == 0)
        CPL_FAIL(err, CPL_USAGE, "nothing is left to train: all parameters are frozen (training.freeze)");
    if (t->training->optimizer.sparse_embeddings && cpl_trainer_sparse(t) == 0)
        cpl_log_warning(&t->log, "'training.optimizer.sparse_embeddings' changes nothing: each embedding is frozen "
                        "(training.freeze) or is the projection too (model.tie), whose rows all have a gradient");
    return CPL_OK;
}

static cpl_status make_set(cpl_trainer *t, cpl_error *err)
{
    cpl_model_facts facts = {.config = t->config, .source = t->data->source, .target = t->data->target,
                             .parameters = t->program->engine->parameters,
                             .longest_target = t->data->report.target.longest};
    CPL_TRY(cpl_model_set_new(&t->set, &facts, err), err, "cannot prepare the model's file");
    return CPL_OK;
}

/* Under a limit of the process they may not fit; training may all the same. */
static cpl_status prepare_examples(cpl_trainer *t, cpl_error *err)
{
    cpl_error own = CPL_ERROR_INIT;
    cpl_status status = cpl_trainer_prepare_examples(t, &own);
    if (status == CPL_FAILED && cpl_memory_limit_now(0).name && t->wanted == 0) {
        cpl_trainer_free_examples(t);
        cpl_log_warning(&t->log, "no examples are shown: %s", own.line[0]);
        return CPL_OK;
    }
    if (err)
        *err = own;
    if (status != CPL_OK && t->wanted != 0)
        return cpl_error_context(err, status, "cannot translate validation pairs for training.metrics");
    return status;
}

cpl_status cpl_trainer_new(cpl_trainer **out, const cpl_trainer_options *options, cpl_error *err)
{
    cpl_trainer *t = cpl_alloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        CPL_FAIL(err, CPL_FAILED, "no memory for training");
    t->config = options->config;
    t->training = &options->config->training;
    t->data = options->data;
    t->model_step = -1;
    t->profiled = options->profile;
    if (options->log)
        t->log = *options->log;
    cpl_status status = make_batchers(t, err);
    if (status == CPL_OK)
        status = compile(t, err);
    if (status == CPL_OK)
        status = capacities(t, err);
    if (status == CPL_OK)
        status = cpl_trainer_prepare_noise(t, err);
    if (status == CPL_OK)
        status = cpl_trainer_prepare_sampling(t, err);
    if (status == CPL_OK)
        status = make_set(t, err);
    if (status == CPL_OK)
        status = cpl_trainer_prepare_figures(t, err);
    if (status == CPL_OK)
        status = prepare_examples(t, err);
    if (status == CPL_OK)
        status = cpl_trainer_plan_memory(t, options, err);
    if (status != CPL_OK) {
        cpl_trainer_free(t);
        return status;
    }
    *out = t;
    return CPL_OK;
}

void cpl_trainer_free(cpl_trainer *t)
{
    if (!t)
        return;
    cpl_trainer_free_examples(t);
    cpl_trainer_free_sampling(t);
    cpl_scorer_free(t->scorer);
    cpl_optimizer_free(t->optimizer);
    cpl_average_free(t->average);
    cpl_model_set_free(t->set);
    cpl_train_profile_free(t->profile); /* its trace names calls of the program */
    cpl_program_free(t->program);
    cpl_batcher_free(t->train);
    cpl_batcher_free(t->valid);
    cpl_run_state_free(&t->state);
    cpl_run_log_close(t->run_log);
    cpl_model_file_close(t->checkpoint);
    cpl_release(t->cut);
    cpl_release(t->noise_ids);
    cpl_release(t->noise_row);
    cpl_release(t->noise_length);
    cpl_release(t);
}

/* ---- asking ---- */

const cpl_program *cpl_trainer_program(const cpl_trainer *t)
{
    return t->program;
}

int64_t cpl_trainer_steps_in_epoch(const cpl_trainer *t)
{
    return t->steps_in_epoch;
}

int64_t cpl_trainer_trainable(const cpl_trainer *t)
{
    const cpl_parameters *p = t->program->engine->parameters;
    int64_t n = 0;
    for (size_t i = 0; i < cpl_parameters_count(p); i++)
        n += cpl_optimizer_changes(cpl_parameters_at(p, i)) ? cpl_parameters_at(p, i)->elements : 0;
    return n;
}

int64_t cpl_trainer_sparse(const cpl_trainer *t)
{
    const cpl_parameters *p = t->program->engine->parameters;
    int64_t n = 0;
    for (size_t i = 0; i < cpl_parameters_count(p); i++)
        n += cpl_optimizer_sparse(t->training, cpl_parameters_at(p, i)) ? cpl_parameters_at(p, i)->elements : 0;
    return n;
}

const char *cpl_trainer_precision(const cpl_trainer *t)
{
    return t->training->precision == CPL_PRECISION_BFLOAT16 ? "bfloat16" : "float32";
}

const cpl_memory_figures *cpl_trainer_memory(const cpl_trainer *t)
{
    return &t->memory;
}

cpl_binding cpl_trainer_average(const cpl_trainer *t)
{
    const cpl_rows *rows = &t->data->train;
    double source = 0, target = 0, products = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        double s = rows->items[i].source, g = rows->items[i].target - 1;
        double weight = rows->weights ? rows->weights[rows->items[i].file] : 1;
        source += weight * s, target += weight * g, products += weight * s * g;
    }
    cpl_binding b = t->whole[CPL_TRAIN];
    int64_t pairs = cpl_rows_in_pass(rows), batches = cpl_batcher_batches(t->train);
    if (t->training->batch_tokens > 0)
        b.batch = (pairs + batches / 2) / batches;
    double share = (double)b.batch / (double)pairs;
    int s = cpl_program_place(t->program, "s"), g = cpl_program_place(t->program, "t");
    b.rows[s] = (int64_t)(source * share + 0.5);
    b.rows[g] = (int64_t)(target * share + 0.5);
    b.pairs[s][g] = b.pairs[g][s] = (int64_t)(products * share + 0.5);
    return b;
}

double cpl_trainer_flops(const cpl_trainer *t)
{
    cpl_binding average = cpl_trainer_average(t);
    int64_t batches = cpl_batcher_batches(t->train), most = t->training->accumulate;
    return cpl_program_flops(t->program, CPL_TRAIN, &average) * (double)(most < batches ? most : batches);
}
