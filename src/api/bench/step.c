/* step.c: training steps: forward, loss, backward, update (Adam, if nothing else is set), and the loss read. */
#include <string.h>

#include "api/bench/bench.h"
#include "base/error.h"
#include "train/optimizer.h"

/* The reference summarizer's attention has one bias, that of the keys; these two add nothing to what it can learn. They
 * stay 0, so that the weights are those of the reference. */
static const char *const absent[] = {"decoder.attention.query.bias", "decoder.attention.score.bias"};

typedef struct training {
    cpl_program *program;
    const cpl_config_training *options;
    cpl_optimizer *optimizer; /* from the first step on, when it is known what trains */
    cpl_bench_work *work;
    cpl_bench_row *row;
    int mirrors; /* an autoencoder: its labels are its sources */
} training;

static cpl_status feed(training *x, int64_t number, double *tokens, cpl_error *err)
{
    cpl_bench_work *w = x->work;
    cpl_bench_fill(w, number);
    cpl_status s = cpl_feed_ids(x->program, "source", w->rows[0], w->length[0], w->batch, err);
    if (x->mirrors) {
        s = s ? s : cpl_feed_ids(x->program, "labels", w->rows[0], w->length[0], w->batch, err);
    } else {
        s = s ? s : cpl_feed_ids(x->program, "target_in", w->rows[1], w->length[1], w->batch, err);
        s = s ? s : cpl_feed_ids(x->program, "target_out", w->rows[2], w->length[1], w->batch, err);
    }
    *tokens = 0;
    for (int64_t i = 0; i < w->batch; i++)
        *tokens += (double)w->length[!x->mirrors][i];
    return s;
}

static cpl_status update(training *x, int64_t number, cpl_error *err)
{
    cpl_program *p = x->program;
    if (!x->optimizer)
        CPL_TRY(cpl_optimizer_new(&x->optimizer, x->options, p->engine, p->gradients, err), err,
                "cannot make the optimizer");
    cpl_optimizer_update(x->optimizer, number + 1, x->options->optimizer.learning_rate, 0);
    return CPL_OK;
}

static cpl_status train_step(void *user, int64_t number, cpl_bench_done *done, cpl_error *err)
{
    training *x = user;
    float loss;
    int64_t shape[6];
    int rank;
    cpl_status s = feed(x, number, &done->tokens, err);
    s = s ? s : cpl_run(x->program, CPL_TRAIN, err);
    s = s ? s : update(x, number, err);
    s = s ? s : cpl_read(x->program, "loss", &loss, 1, shape, &rank, err);
    if (s != CPL_OK)
        return s;
    done->operations = cpl_program_flops(x->program, CPL_TRAIN, &x->program->binding);
    if (number == 0)
        x->row->first_loss = (double)loss;
    x->row->last_loss = (double)loss;
    return CPL_OK;
}

static int is_summarizer(const cpl_bench_work *w)
{
    return strcmp(w->name, "summarizer") == 0;
}

static cpl_status freeze_absent(const cpl_bench_work *w, cpl_program *p, cpl_error *err)
{
    for (size_t i = 0; is_summarizer(w) && i < sizeof absent / sizeof *absent; i++)
        if (cpl_parameters_find(p->engine->parameters, absent[i]) >= 0)
            CPL_TRY(cpl_set_trainable(p, absent[i], 0, err), err, "cannot leave out a bias");
    return CPL_OK;
}

static void describe(const cpl_bench *b, const cpl_config *config, const cpl_program *p, cpl_bench_row *row)
{
    const cpl_parameters *all = p->engine->parameters;
    for (size_t i = 0; i < cpl_parameters_count(all); i++)
        row->parameters += cpl_parameters_at(all, i)->trainable ? cpl_parameters_at(all, i)->elements : 0;
    row->units = config->model.units;
    strcpy(row->precision, b->options->bfloat16 ? "bfloat16" : "float32");
    row->planned_bytes = p->block_bytes;
    row->state_bytes = cpl_parameters_bytes(all) + cpl_parameters_gradient_bytes(all) +
                       cpl_optimizer_state_bytes(&config->training, all);
}

/* The memory of the largest batches is taken before the first step, as `couplet train` does. */
static cpl_status measure(cpl_bench *b, const cpl_config *config, training *x, cpl_error *err)
{
    cpl_program *p = x->program;
    cpl_binding capacity = cpl_bench_capacity(x->work, p);
    CPL_TRY(freeze_absent(x->work, p, err), err, "cannot train");
    CPL_TRY(cpl_program_reserve(p, CPL_TRAIN, &capacity, err), err, "cannot plan the memory");
    CPL_TRY(cpl_bench_time(b, train_step, x, x->row, err), err, "cannot train");
    describe(b, config, p, x->row);
    return CPL_OK;
}

cpl_status cpl_bench_train(cpl_bench *b, cpl_bench_work *w, cpl_bench_row *row, cpl_error *err)
{
    const cpl_bench_options *o = b->options;
    cpl_config *config = NULL;
    cpl_status status = cpl_bench_config(b, w->name, &config, err);
    if (status != CPL_OK)
        return status;
    cpl_model_sizes n = {.config = config, .source_vocabulary = w->vocabulary, .target_vocabulary = w->vocabulary};
    const cpl_model_kind *kind = cpl_model_kind_of(config);
    cpl_model_description d;
    kind->describe(&n, &d);
    training x = {.options = &config->training, .work = w, .row = row, .mirrors = d.mirrors};
    cpl_compile_options options = {.name = w->name, .threads = o->threads, .seed = 1, .bfloat16 = o->bfloat16,
                                   .freeze = o->freeze, .freeze_count = o->freeze_count};
    row->batch = w->batch, row->vocabulary = w->vocabulary;
    b->started = cpl_bench_now();
    row->base_bytes = cpl_bench_forget_peak();
    if (d.copies)
        status = cpl_error_set(err, CPL_USAGE, "the sources of this benchmark have no words to copy");
    if (status == CPL_OK)
        status = cpl_compile(&x.program, kind->loss, &n, &options, err);
    if (status == CPL_OK)
        status = measure(b, config, &x, err);
    cpl_optimizer_free(x.optimizer);
    cpl_program_free(x.program);
    cpl_config_free(config);
    return status;
}
