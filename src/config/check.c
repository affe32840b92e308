/* check.c: what no single key can tell: keys that need or exclude each other. One function for each group; the model's
 * is in check_model.c, the text's in check_text.c. */
#include "config/table.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"

int64_t cpl_config_embedding(const cpl_config *c)
{
    return c->model.embedding > 0 ? c->model.embedding : c->model.units;
}

int cpl_config_is_set(const cpl_config *c, int key)
{
    return c->origin[key] != 0;
}

const char *cpl_option_where(const cpl_config *c, const char *key, char *buffer)
{
    int line = c->origin[cpl_config_find(key)];
    buffer[0] = '\0';
    if (line > 0 && c->path != NULL)
        snprintf(buffer, CPL_ERROR_WIDTH, "%.300s:%d: ", c->path, line);
    return buffer;
}

static cpl_status check_optimizer(const cpl_config *c, cpl_error *err)
{
    const cpl_config_optimizer *o = &c->training.optimizer;
    char at[CPL_ERROR_WIDTH];
    if (o->weight_decay != 0 && o->name != CPL_OPTIMIZER_ADAMW)
        CPL_FAIL(err, CPL_USAGE, "%s'training.optimizer.weight_decay' is %g, but only adamw decays weights" CPL_HINT
                 "set training.optimizer.name to adamw, or leave weight_decay out",
                 cpl_option_where(c, "training.optimizer.weight_decay", at), o->weight_decay);
    if (o->momentum != 0 && o->name != CPL_OPTIMIZER_SGD)
        CPL_FAIL(err, CPL_USAGE, "%s'training.optimizer.momentum' is %g, but only sgd has a momentum" CPL_HINT
                 "set training.optimizer.name to sgd, or leave momentum out (beta_1 is the momentum of adam)",
                 cpl_option_where(c, "training.optimizer.momentum", at), o->momentum);
    if (o->sparse_embeddings && c->model.tie == CPL_TIE_ALL)
        CPL_FAIL(err, CPL_USAGE, "%s'training.optimizer.sparse_embeddings' is true, but 'model.tie' is all: the only "
                 "embedding is the projection too, and every row of it has a gradient" CPL_HINT
                 "leave sparse_embeddings out, or set model.tie to none or target",
                 cpl_option_where(c, "training.optimizer.sparse_embeddings", at));
    return CPL_OK;
}

/* A key that the chosen schedule does not read must not look as if it did something. */
static cpl_status check_schedule(const cpl_config *c, cpl_error *err)
{
    const cpl_config_schedule *s = &c->training.schedule;
    char at[CPL_ERROR_WIDTH];
    if (s->name == CPL_SCHEDULE_COSINE && s->total_steps <= s->warmup_steps)
        CPL_FAIL(err, CPL_USAGE,
                 "%sschedule cosine needs 'training.schedule.total_steps' above warmup_steps, got %" PRId64
                 " with warmup_steps %" PRId64,
                 cpl_option_where(c, "training.schedule.name", at), s->total_steps, s->warmup_steps);
    if (s->name == CPL_SCHEDULE_STEP && s->every == 0)
        CPL_FAIL(err, CPL_USAGE, "%sschedule step needs 'training.schedule.every', the steps between two cuts",
                 cpl_option_where(c, "training.schedule.name", at));
    if (s->name == CPL_SCHEDULE_INVERSE_SQRT && s->warmup_steps == 0)
        CPL_FAIL(err, CPL_USAGE, "%sschedule inverse_sqrt needs 'training.schedule.warmup_steps' of at least 1",
                 cpl_option_where(c, "training.schedule.name", at));
    if (s->total_steps != 0 && s->name != CPL_SCHEDULE_COSINE)
        CPL_FAIL(err, CPL_USAGE,
                 "%s'training.schedule.total_steps' is %" PRId64 ", but only schedule cosine reads it" CPL_HINT
                 "training.max_steps ends a run after a number of steps",
                 cpl_option_where(c, "training.schedule.total_steps", at), s->total_steps);
    if (s->every != 0 && s->name != CPL_SCHEDULE_STEP)
        CPL_FAIL(err, CPL_USAGE, "%s'training.schedule.every' is %" PRId64 ", but only schedule step reads it",
                 cpl_option_where(c, "training.schedule.every", at), s->every);
    if (s->patience != 2 && s->name != CPL_SCHEDULE_PLATEAU) /* every model's options have the default, 2 */
        CPL_FAIL(err, CPL_USAGE, "%s'training.schedule.patience' is %" PRId64 ", but only schedule plateau reads it"
                 CPL_HINT "training.early_stopping.patience ends a run that no longer improves",
                 cpl_option_where(c, "training.schedule.patience", at), s->patience);
    return CPL_OK;
}

static cpl_status check_loss(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    if (c->training.label_smoothing > 0 && c->model.copy)
        CPL_FAIL(err, CPL_USAGE, "%s'training.label_smoothing' is %g, but 'model.copy' is true: a share for every "
                 "class is not defined for words that are copied" CPL_HINT "leave one of the two out",
                 cpl_option_where(c, "training.label_smoothing", at), c->training.label_smoothing);
    return CPL_OK;
}

/* Only of what the user wrote: the options in a model's file have every key. */
static cpl_status check_batches(const cpl_config *c, int for_training, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    if (for_training && c->training.batch_tokens > 0 && cpl_config_is_set(c, cpl_config_find("training.batch_size")))
        CPL_FAIL(err, CPL_USAGE, "%s'training.batch_size' and 'training.batch_tokens' are both set, expected one"
                 CPL_HINT "batch_tokens takes the place of batch_size; 0 turns it off",
                 cpl_option_where(c, "training.batch_tokens", at));
    return CPL_OK;
}

/* One way to clip: of two it would not be clear which comes first. */
static cpl_status check_clipping(const cpl_config *c, cpl_error *err)
{
    const struct { const char *key; double limit; } kinds[] = {{"training.clip_norm", c->training.clip_norm},
                                                               {"training.clip_tensor_norm",
                                                                c->training.clip_tensor_norm},
                                                               {"training.clip_value", c->training.clip_value}};
    const char *first = NULL;
    char at[CPL_ERROR_WIDTH];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!(kinds[i].limit > 0))
            continue;
        if (first)
            CPL_FAIL(err, CPL_USAGE, "%s'%s' and '%s' are both set, expected one kind of clipping" CPL_HINT
                     "set one of them to 0", cpl_option_where(c, kinds[i].key, at), first, kinds[i].key);
        first = kinds[i].key;
    }
    return CPL_OK;
}

static cpl_status check_sampling(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    double share = c->training.scheduled_sampling;
    if (share == 0)
        return CPL_OK;
    cpl_option_where(c, "training.scheduled_sampling", at);
    if (c->model.type == CPL_MODEL_AUTOENCODER && c->model.bottleneck == 0)
        CPL_FAIL(err, CPL_USAGE, "%s'training.scheduled_sampling' is %g, but an autoencoder without a bottleneck has "
                 "no decoder that reads words" CPL_HINT "leave it out, or set model.bottleneck", at, share);
    if (c->model.copy)
        CPL_FAIL(err, CPL_USAGE, "%s'training.scheduled_sampling' is %g, but the words of a model that copies come "
                 "from two sides" CPL_HINT "leave it out, or set model.copy to false", at, share);
    return CPL_OK;
}

static cpl_status check_stopping(const cpl_config *c, cpl_error *err)
{
    static const char *const keys[] = {"training.early_stopping.monitor", "training.early_stopping.mode",
                                       "training.early_stopping.min_delta", "training.early_stopping.patience",
                                       "training.early_stopping.restore_best"};
    char at[CPL_ERROR_WIDTH];
    for (size_t i = 0; !c->training.early_stopping && i < sizeof keys / sizeof keys[0]; i++)
        if (cpl_config_is_set(c, cpl_config_find(keys[i])))
            CPL_FAIL(err, CPL_USAGE, "%s'%s' is set, but 'training.early_stopping' is false",
                     cpl_option_where(c, keys[i], at), keys[i]);
    return CPL_OK;
}

static cpl_status check_data(const cpl_config *c, int for_training, cpl_error *err)
{
    if (for_training && c->data.train.count == 0)
        CPL_FAIL(err, CPL_USAGE, "%s%s'data.train' is missing: the training pairs" CPL_HINT
                 "data: {train: pairs.tsv}, or --set data.train=pairs.tsv; relative to the configuration's folder",
                 c->path == NULL ? "" : c->path, c->path == NULL ? "" : ": ");
    return CPL_OK;
}

cpl_status cpl_config_check(const cpl_config *c, int for_training, cpl_error *err)
{
    cpl_status status = cpl_config_check_autoencoder(c, err);
    if (status == CPL_OK)
        status = cpl_config_check_model(c, err);
    if (status == CPL_OK)
        status = cpl_config_check_text(c, err);
    if (status == CPL_OK)
        status = cpl_config_check_files(c, for_training, err);
    if (status == CPL_OK)
        status = check_optimizer(c, err);
    if (status == CPL_OK)
        status = check_schedule(c, err);
    if (status == CPL_OK)
        status = check_loss(c, err);
    if (status == CPL_OK)
        status = check_batches(c, for_training, err);
    if (status == CPL_OK)
        status = check_clipping(c, err);
    if (status == CPL_OK)
        status = check_sampling(c, err);
    if (status == CPL_OK)
        status = check_stopping(c, err);
    return status == CPL_OK ? check_data(c, for_training, err) : status;
}
