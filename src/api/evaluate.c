/* evaluate.c: which figures, and in what order they are counted, resampled and shown. */
#include "api/evaluate.h"

#include <string.h>
#include "base/error.h"

enum { RESAMPLES = 1000 }; /* with a baseline, unless --bootstrap says otherwise: sacreBLEU's number */

static cpl_status check_files(const cpl_model *model, const cpl_evaluate_options *o, cpl_error *err)
{
    if (!o->pairs)
        CPL_FAIL(err, CPL_USAGE, "no file of pairs was given");
    if (!model == !o->outputs)
        CPL_FAIL(err, CPL_USAGE, model ? "a model and a file of outputs were given, expected one of them"
                                       : "neither a model nor a file of outputs was given");
    if (o->baseline && model)
        CPL_FAIL(err, CPL_USAGE, "a baseline is compared with a file of outputs, not with a model" CPL_HINT
                 "write the model's outputs with 'couplet generate' and give both files");
    cpl_status whole = model ? cpl_model_whole(model, err) : CPL_OK;
    if (whole != CPL_OK)
        return whole;
    if (o->group && strcmp(o->group, "source") != 0) {
        char shown[80];
        CPL_FAIL(err, CPL_USAGE, "cannot group pairs by '%s', expected 'source'",
                 cpl_escape(shown, sizeof shown, o->group, strlen(o->group)));
    }
    return CPL_OK;
}

static cpl_status check(const cpl_model *model, const cpl_evaluate_options *o, uint32_t *wanted, cpl_error *err)
{
    uint32_t of_model = cpl_figures_that_need(CPL_NEEDS_MODEL);
    cpl_status status = check_files(model, o, err);
    *wanted = model && model->more_count == 0 ? cpl_figures_default() : cpl_figures_default() & ~of_model;
    if (status == CPL_OK && o->metrics)
        status = cpl_figures_parse(o->metrics, wanted, err);
    if (status != CPL_OK)
        return status;
    for (int i = 0; i < CPL_FIGURES; i++)
        if (!model && *wanted & of_model & cpl_figure_bit(i))
            CPL_FAIL(err, CPL_USAGE, "'%s' needs a model: a file of outputs has no probabilities",
                     cpl_figure_at(i)->name);
    if (model && *wanted & of_model)
        CPL_TRY(cpl_model_alone(model, "accuracy, loss and perplexity", err), err, "cannot count them");
    if (o->bootstrap < 0)
        CPL_FAIL(err, CPL_USAGE, "%lld resamples were asked for, expected at least 0", (long long)o->bootstrap);
    if (o->bootstrap && !(*wanted & ~of_model))
        CPL_FAIL(err, CPL_USAGE, "none of the metrics can be resampled: accuracy, loss and perplexity are not counted "
                 "by output" CPL_HINT "add one of outputs, such as bleu");
    return cpl_generate_check(&o->generate, err);
}

/* A model's tokens are those of its target; a file's stand between white space. */
static cpl_status make_scorers(cpl_figures *f, const cpl_model *model, const cpl_evaluate_options *o, cpl_error *err)
{
    cpl_scorer_options options = {.wanted = f->wanted, .split_all = o->tokenize != NULL,
                                  .tokens = CPL_TOKENS_SPACE, .keep = o->bootstrap || o->baseline};
    if (model)
        options.tokens = (cpl_tokens)model->file->config->text.target.tokens;
    cpl_status status = o->tokenize ? cpl_bleu_split_named(&options.split, o->tokenize, err) : CPL_OK;
    if (status == CPL_OK)
        status = cpl_scorer_new(&f->scorer, &options, err);
    if (status == CPL_OK && o->baseline)
        status = cpl_scorer_new(&f->baseline, &options, err);
    return status;
}

static cpl_status evaluate(cpl_figures *f, cpl_model *model, const cpl_evaluate_options *o, cpl_str *to,
                           cpl_error *err)
{
    cpl_bootstrap b = {.samples = o->bootstrap ? (size_t)o->bootstrap : RESAMPLES, .seed = o->generate.seed};
    int resampled = o->bootstrap || o->baseline;
    cpl_status status = make_scorers(f, model, o, err);
    if (status == CPL_OK)
        status = model ? cpl_figures_of_model(f, model, o, err) : cpl_figures_of_outputs(f, o, err);
    if (status == CPL_OK && resampled)
        status = cpl_bootstrap_run(&b, f->scorer, f->baseline, err);
    if (status != CPL_OK)
        return status;
    cpl_figures_shown shown = {.figures = f, .bootstrap = resampled ? &b : NULL, .grouped = o->group != NULL};
    if (o->json)
        return cpl_figures_show_json(&shown, to, err);
    cpl_figures_show(&shown, to);
    return CPL_OK;
}

cpl_status cpl_evaluate(cpl_model *model, const cpl_evaluate_options *o, char **text, cpl_error *err)
{
    cpl_figures f = {0};
    cpl_str out = {0};
    *text = NULL;
    CPL_TRY(check(model, o, &f.wanted, err), err, "cannot evaluate");
    cpl_status status = evaluate(&f, model, o, &out, err);
    cpl_scorer_free(f.scorer);
    cpl_scorer_free(f.baseline);
    if (status == CPL_OK && !(*text = cpl_str_take(&out)))
        status = cpl_error_set(err, CPL_FAILED, "out of memory for the result");
    cpl_str_free(&out);
    return status;
}
