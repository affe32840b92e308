/* decoded.c: training.metrics: at each validation its pairs are translated as `generate` would and scored as `evaluate`
 * does, so that both give the same figures of the same weights. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/trainer.h"

/* The figure that is watched; −1 for the loss and the accuracy, which need no translation. */
static int figure_of_monitor(const cpl_trainer *t)
{
    int f = cpl_stopping_figure(&t->training->stopping);
    return cpl_figure_at(f)->needs == CPL_NEEDS_MODEL ? -1 : f;
}

double cpl_trainer_monitored(const cpl_trainer *t, const cpl_history_entry *h)
{
    int f = figure_of_monitor(t);
    if (f >= 0)
        return t->figure[f];
    return t->training->stopping.monitor == CPL_MONITOR_VAL_LOSS ? h->val_loss : h->val_accuracy;
}

static cpl_status parse(cpl_trainer *t, cpl_error *err)
{
    const cpl_config_paths *list = &t->training->metrics;
    for (size_t i = 0; i < list->count; i++) {
        uint32_t bits;
        CPL_TRY(cpl_figures_parse(list->items[i], &bits, err), err, "'training.metrics' cannot be used");
        if (bits & ~cpl_figures_that_need(CPL_NEEDS_OUTPUT))
            CPL_FAIL(err, CPL_USAGE, "'training.metrics' has '%s', expected figures of outputs alone" CPL_HINT
                     "bleu, chrf, rouge, exact, token_error_rate; loss and accuracy are always shown", list->items[i]);
        t->wanted |= bits;
    }
    return CPL_OK;
}

cpl_status cpl_trainer_prepare_figures(cpl_trainer *t, cpl_error *err)
{
    cpl_status status = parse(t, err);
    int monitored = figure_of_monitor(t);
    const char *name = monitored >= 0 ? cpl_figure_at(monitored)->name : "";
    for (int f = 0; f < CPL_FIGURES; f++)
        t->figure[f] = (double)NAN;
    if (status != CPL_OK)
        return status;
    if (monitored >= 0 && !(t->wanted & cpl_figure_bit(monitored)))
        CPL_FAIL(err, CPL_USAGE, "'training.early_stopping.monitor' is '%s', but 'training.metrics' has no '%s'"
                 CPL_HINT "training: {metrics: [%s]}", cpl_stopping_monitor(&t->training->stopping), name, name);
    if (t->wanted == 0)
        return CPL_OK;
    if (!t->valid)
        CPL_FAIL(err, CPL_USAGE, "'training.metrics' needs validation pairs, but there are none" CPL_HINT
                 "set data.valid");
    cpl_scorer_options o = {.wanted = t->wanted, .tokens = t->data->target_rules.tokens};
    CPL_TRY(cpl_scorer_new(&t->scorer, &o, err), err, "cannot score validations");
    return CPL_OK;
}

/* As many as a validation has: all, or those of training.validation_steps batches. */
cpl_status cpl_trainer_pairs_to_score(cpl_trainer *t, int64_t *pairs, cpl_error *err)
{
    *pairs = 0;
    if (t->wanted == 0)
        return CPL_OK;
    CPL_TRY(cpl_batcher_seek(t->valid, 0, 0, err), err, "cannot count the validation pairs");
    for (int64_t i = cpl_batcher_batches(t->valid); i > 0; i--)
        *pairs += cpl_batcher_next(t->valid)->pairs;
    return CPL_OK;
}

/* A reference goes the way of an output: the target's text rules, then joined as outputs are. */
static cpl_status add(cpl_trainer *t, int64_t i, const cpl_decoded *row, cpl_error *err)
{
    const cpl_slice *target = &t->data->texts[i].target;
    cpl_str output = {0}, reference = {0};
    int32_t *ids = NULL;
    size_t capacity = 0, count;
    cpl_str_add(&output, "");
    cpl_str_add(&reference, "");
    cpl_trainer_write_output(t, i, row, &output);
    for (size_t k = 0; k < output.length; k++) /* as generate writes it */
        if (output.data[k] == '\n')
            output.data[k] = ' ';
    cpl_status status = cpl_codec_encode(t->codec, target->text, target->length, &ids, &capacity, &count, NULL, err);
    if (status == CPL_OK) {
        const cpl_token *tokens = cpl_codec_tokens(t->codec, &count);
        cpl_codec_join(t->codec, tokens, count, &reference);
        cpl_metric_text one = {reference.data, reference.length};
        cpl_scored item = {.output = {output.data, output.length}, .references = &one, .n = 1};
        status = output.failed || reference.failed ? cpl_error_set(err, CPL_FAILED, "out of memory")
                                                   : cpl_scorer_add(t->scorer, &item, err);
    }
    cpl_release(ids);
    cpl_str_free(&output);
    cpl_str_free(&reference);
    return status;
}

cpl_status cpl_trainer_score(cpl_trainer *t, int *whole, cpl_error *err)
{
    int64_t pairs, at_once = t->examples_at_once;
    *whole = 1;
    for (int f = 0; f < CPL_FIGURES; f++)
        t->figure[f] = (double)NAN;
    cpl_status status = cpl_trainer_pairs_to_score(t, &pairs, err);
    if (status != CPL_OK || pairs == 0)
        return status;
    cpl_scorer_clear(t->scorer);
    for (int64_t i = 0; i < pairs; i += at_once) {
        const cpl_decoded *rows = NULL;
        cpl_error own = CPL_ERROR_INIT;
        int64_t n = pairs - i < at_once ? pairs - i : at_once;
        *whole = !cpl_trainer_stopping(t);
        if (!*whole)
            return CPL_OK;
        if (cpl_trainer_translate(t, i, n, &rows, &own) != CPL_OK) {
            cpl_log_warning(&t->log, "cannot translate the validation pairs: %s", own.line[0]);
            return CPL_OK; /* weights that are not numbers must not end a training */
        }
        for (int64_t k = 0; k < n; k++)
            CPL_TRY(add(t, i + k, &rows[k], err), err, "cannot score validation pair %lld", (long long)(i + k + 1));
    }
    for (int f = 0; f < CPL_FIGURES; f++)
        if (t->wanted & cpl_figure_bit(f))
            t->figure[f] = cpl_scorer_value(t->scorer, f);
    return CPL_OK;
}
