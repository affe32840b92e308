/* evaluate.c: which figures, and how they are shown. */
#include "api/evaluate.h"

#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/json.h"

/* ---- names ---- */

/* Those that are shown, in this order, then names for several at once. */
static const struct {
    const char *name;
    int figure;
} figures[] = {{"bleu", CPL_FIGURE_BLEU},
               {"exact", CPL_FIGURE_EXACT},
               {"rouge1", CPL_FIGURE_ROUGE << CPL_ROUGE_1},
               {"rouge2", CPL_FIGURE_ROUGE << CPL_ROUGE_2},
               {"rougeL", CPL_FIGURE_ROUGE << CPL_ROUGE_L},
               {"rougeLsum", CPL_FIGURE_ROUGE << CPL_ROUGE_LSUM},
               {"repeated_trigrams", CPL_FIGURE_REPEATED_TRIGRAMS},
               {"copy_rate", CPL_FIGURE_COPY_RATE},
               {"accuracy", CPL_FIGURE_ACCURACY},
               {"loss", CPL_FIGURE_LOSS},
               {"perplexity", CPL_FIGURE_PERPLEXITY},
               {"rouge", CPL_FIGURES_OF_ROUGE}};
enum { NAMES = sizeof figures / sizeof figures[0], FIGURES = NAMES - 1 };

static cpl_status unknown(const char *name, size_t length, cpl_error *err)
{
    const char *names[NAMES];
    char text[64], shown[80], hint[128];
    for (int i = 0; i < NAMES; i++)
        names[i] = figures[i].name;
    snprintf(text, sizeof text, "%.*s", (int)(length < 60 ? length : 60), name);
    const char *near = cpl_nearest(text, names, NAMES);
    snprintf(hint, sizeof hint, "%s%s%s",
             near ? "did you mean '"
                  : "there are bleu, exact, rouge, repeated_trigrams, copy_rate, accuracy, loss, perplexity",
             near ? near : "", near ? "'?" : "");
    CPL_FAIL(err, CPL_USAGE, "unknown metric '%s'" CPL_HINT "%s", cpl_escape(shown, sizeof shown, text, strlen(text)),
             hint);
}

static cpl_status parse(const char *list, int *wanted, cpl_error *err)
{
    *wanted = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        int found = 0;
        for (int i = 0; i < NAMES; i++)
            if (strlen(figures[i].name) == length && strncmp(figures[i].name, at, length) == 0)
                found = figures[i].figure;
        if (!found)
            return unknown(at, length, err);
        *wanted |= found;
        at += length;
        if (!*at)
            return CPL_OK;
    }
}

/* ---- showing ---- */

/* The kind of ROUGE, or -1. */
static int rouge_kind(int figure)
{
    int kind = 0;
    if (!(figure & CPL_FIGURES_OF_ROUGE))
        return -1;
    while (figure != CPL_FIGURE_ROUGE << kind)
        kind++;
    return kind;
}

static double value_of(const cpl_figures *f, int figure)
{
    switch (figure) {
    case CPL_FIGURE_BLEU:
        return cpl_metric_bleu(f->metric, NULL);
    case CPL_FIGURE_EXACT:
        return cpl_metric_exact(f->metric);
    case CPL_FIGURE_REPEATED_TRIGRAMS:
        return cpl_repeated_trigrams(&f->repetition);
    case CPL_FIGURE_COPY_RATE:
        return cpl_copy_rate(&f->repetition);
    case CPL_FIGURE_ACCURACY:
        return f->accuracy / f->tokens;
    case CPL_FIGURE_LOSS:
        return f->loss / f->tokens;
    case CPL_FIGURE_PERPLEXITY:
        return cpl_perplexity(f->loss / f->tokens);
    default:
        return cpl_rouge_score(f->rouge, rouge_kind(figure));
    }
}

/* NULL for a figure that means the same whoever counts it. */
static const char *signature_of(const cpl_figures *f, int figure, char buffer[CPL_SIGNATURE_SIZE])
{
    if (figure == CPL_FIGURE_BLEU)
        return cpl_metric_signature(f->metric, buffer, CPL_SIGNATURE_SIZE);
    if (figure & CPL_FIGURES_OF_ROUGE)
        return cpl_rouge_signature(f->rouge, rouge_kind(figure), buffer, CPL_SIGNATURE_SIZE);
    if (figure & CPL_FIGURES_OF_REPETITION)
        return cpl_repetition_signature(f->split, buffer, CPL_SIGNATURE_SIZE);
    return NULL;
}

static void show_text(const cpl_figures *f, const cpl_evaluate_options *o, cpl_str *to)
{
    char buffer[CPL_SIGNATURE_SIZE];
    int width = f->wanted & CPL_FIGURE_REPEATED_TRIGRAMS ? 17 : 10;
    for (int i = 0; i < FIGURES; i++) {
        int figure = figures[i].figure;
        if (!(f->wanted & figure))
            continue;
        int percent = (figure & (CPL_FIGURE_BLEU | CPL_FIGURES_OF_ROUGE)) != 0;
        const char *signature = signature_of(f, figure, buffer);
        cpl_str_printf(to, "%-*s %.*f", width, figures[i].name, percent ? 2 : 4, value_of(f, figure));
        cpl_str_printf(to, "%s%s\n", signature ? "  " : "", signature ? signature : "");
    }
    cpl_str_printf(to, "%-*s %lld\n", width, "pairs", (long long)f->pairs);
    if (o->group && f->items)
        cpl_str_printf(to, "%-*s %lld\n", width, "sources", (long long)f->items);
    if (f->cut)
        cpl_str_printf(to, "%-*s %lld outputs reached their maximum length\n", width, "cut", (long long)f->cut);
}

static cpl_status show_json(const cpl_figures *f, cpl_str *to, cpl_error *err)
{
    char buffer[CPL_SIGNATURE_SIZE];
    cpl_json *root = cpl_json_object();
    for (int i = 0; root && i < FIGURES; i++) {
        if (!(f->wanted & figures[i].figure))
            continue;
        cpl_json *one = cpl_json_object();
        double value = value_of(f, figures[i].figure);
        const char *signature = signature_of(f, figures[i].figure, buffer);
        cpl_json_set_real(one, "score", value, 0);
        if (!isfinite(value))
            cpl_json_set_text(one, "reason", isnan(value) ? "not a number" : "larger than any number");
        if (signature)
            cpl_json_set_text(one, "signature", signature);
        cpl_json_set(root, figures[i].name, one);
    }
    cpl_status status = root ? cpl_json_write(root, to, err) : cpl_error_set(err, CPL_FAILED, "out of memory");
    cpl_json_free(root);
    cpl_str_add_char(to, '\n');
    return status;
}

/* ---- the command ---- */

static cpl_status check(const cpl_model *model, const cpl_evaluate_options *o, int *wanted, cpl_error *err)
{
    if (!o->pairs)
        CPL_FAIL(err, CPL_USAGE, "no file of pairs was given");
    if (!model == !o->outputs)
        CPL_FAIL(err, CPL_USAGE, model ? "a model and a file of outputs were given, expected one of them"
                                       : "neither a model nor a file of outputs was given");
    *wanted = model ? CPL_FIGURES_DEFAULT : CPL_FIGURES_DEFAULT & CPL_FIGURES_OF_TEXT;
    if (o->metrics) {
        cpl_status status = parse(o->metrics, wanted, err);
        if (status != CPL_OK)
            return status;
    }
    for (int i = 0; i < FIGURES; i++)
        if (!model && *wanted & figures[i].figure & ~CPL_FIGURES_OF_TEXT)
            CPL_FAIL(err, CPL_USAGE, "'%s' needs a model: a file of outputs has no probabilities", figures[i].name);
    if (o->group && strcmp(o->group, "source") != 0) {
        char shown[80];
        CPL_FAIL(err, CPL_USAGE, "cannot group pairs by '%s', expected 'source'",
                 cpl_escape(shown, sizeof shown, o->group, strlen(o->group)));
    }
    return cpl_generate_check(&o->generate, err);
}

static cpl_status evaluate(cpl_figures *f, cpl_model *model, const cpl_evaluate_options *o, cpl_str *to,
                           cpl_error *err)
{
    cpl_status status = o->tokenize ? cpl_bleu_split_named(&f->split, o->tokenize, err) : CPL_OK;
    if (status == CPL_OK)
        status = cpl_metric_new(&f->metric, f->split, err);
    if (status == CPL_OK)
        status = cpl_rouge_new(&f->rouge, err);
    if (status == CPL_OK && o->tokenize && (f->wanted & CPL_FIGURES_OF_ROUGE))
        status = cpl_rouge_split(f->rouge, f->split, err);
    if (status == CPL_OK)
        status = model ? cpl_figures_of_model(f, model, o, err) : cpl_figures_of_outputs(f, o, err);
    if (status != CPL_OK)
        return status;
    if (o->json)
        return show_json(f, to, err);
    show_text(f, o, to);
    return CPL_OK;
}

cpl_status cpl_evaluate(cpl_model *model, const cpl_evaluate_options *o, char **text, cpl_error *err)
{
    cpl_figures f = {.split = CPL_BLEU_13A};
    cpl_str out = {0};
    *text = NULL;
    CPL_TRY(check(model, o, &f.wanted, err), err, "cannot evaluate");
    cpl_status status = evaluate(&f, model, o, &out, err);
    cpl_metric_free(f.metric);
    cpl_rouge_free(f.rouge);
    if (status == CPL_OK && !(*text = cpl_str_take(&out)))
        status = cpl_error_set(err, CPL_FAILED, "out of memory for the result");
    cpl_str_free(&out);
    return status;
}
