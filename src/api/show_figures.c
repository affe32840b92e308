/* show_figures.c: what evaluate prints. */
#include <math.h>
#include <string.h>

#include "api/evaluate.h"
#include "base/error.h"
#include "base/json.h"

static double value_of(const cpl_figures *f, int figure)
{
    switch (figure) {
    case CPL_FIGURE_ACCURACY:
        return f->accuracy / f->tokens;
    case CPL_FIGURE_LOSS:
        return f->loss / f->tokens;
    case CPL_FIGURE_PERPLEXITY:
        return cpl_perplexity(f->loss / f->tokens);
    default:
        return cpl_scorer_value(f->scorer, figure);
    }
}

/* The resamples, NULL for a figure that has none. */
static const cpl_bootstrap *resamples_of(const cpl_figures_shown *s, int figure)
{
    return cpl_figure_at(figure)->needs == CPL_NEEDS_MODEL ? NULL : s->bootstrap;
}

static const char *signature_of(const cpl_figures_shown *s, int figure, char buffer[CPL_SIGNATURE_SIZE])
{
    const cpl_bootstrap *b = resamples_of(s, figure);
    return cpl_scorer_signature(s->figures->scorer, figure, b ? b->samples : 0, b ? b->seed : 0, buffer);
}

/* ---- lines ---- */

static void show_resamples(const cpl_figures_shown *s, int figure, int width, cpl_str *to)
{
    const cpl_bootstrap *b = s->bootstrap;
    int digits = cpl_figure_at(figure)->percent ? 2 : 4;
    cpl_str_printf(to, "%-*s 95 %% of %zu resamples: %.*f to %.*f\n", width, "", b->samples, digits, b->of[figure].low,
                   digits, b->of[figure].high);
    if (!s->figures->baseline)
        return;
    double score = value_of(s->figures, figure), other = cpl_scorer_value(s->figures->baseline, figure);
    cpl_str_printf(to, "%-*s baseline %.*f (%.*f to %.*f), difference %+.*f, p = %.4f\n", width, "", digits, other,
                   digits, b->of_baseline[figure].low, digits, b->of_baseline[figure].high, digits, score - other,
                   b->p[figure]);
}

void cpl_figures_show(const cpl_figures_shown *s, cpl_str *to)
{
    const cpl_figures *f = s->figures;
    char buffer[CPL_SIGNATURE_SIZE];
    int width = 10;
    for (int i = 0; i < CPL_FIGURES; i++)
        if (f->wanted & cpl_figure_bit(i) && (int)strlen(cpl_figure_at(i)->name) > width)
            width = (int)strlen(cpl_figure_at(i)->name);
    for (int i = 0; i < CPL_FIGURES; i++) {
        const cpl_figure_row *row = cpl_figure_at(i);
        if (!(f->wanted & cpl_figure_bit(i)))
            continue;
        const char *signature = signature_of(s, i, buffer);
        cpl_str_printf(to, "%-*s %.*f%s%s\n", width, row->name, row->percent ? 2 : 4, value_of(f, i),
                       signature ? "  " : "", signature ? signature : "");
        if (resamples_of(s, i))
            show_resamples(s, i, width, to);
    }
    cpl_str_printf(to, "%-*s %lld\n", width, "pairs", (long long)f->pairs);
    if (s->grouped && f->items)
        cpl_str_printf(to, "%-*s %lld\n", width, "sources", (long long)f->items);
    if (f->cut)
        cpl_str_printf(to, "%-*s %lld outputs reached their maximum length\n", width, "cut", (long long)f->cut);
}

/* ---- JSON ---- */

static void set_score(cpl_json *to, double value)
{
    cpl_json_set_real(to, "score", value, 0);
    if (!isfinite(value))
        cpl_json_set_text(to, "reason", isnan(value) ? "not a number" : "larger than any number");
}

static void set_interval(cpl_json *to, const cpl_interval *v)
{
    cpl_json *both = cpl_json_array();
    cpl_json_add_real(both, v->low, 0);
    cpl_json_add_real(both, v->high, 0);
    cpl_json_set(to, "confidence", both);
    cpl_json_set_real(to, "mean", v->mean, 0);
    if (!isfinite(v->high) || !isfinite(v->mean))
        cpl_json_set_text(to, "reason", "a resample is larger than any number");
}

static void set_resamples(const cpl_figures_shown *s, int figure, cpl_json *to)
{
    const cpl_bootstrap *b = s->bootstrap;
    set_interval(to, &b->of[figure]);
    cpl_json_set_int(to, "resamples", (int64_t)b->samples);
    if (!s->figures->baseline)
        return;
    double score = value_of(s->figures, figure), other = cpl_scorer_value(s->figures->baseline, figure);
    cpl_json *baseline = cpl_json_object();
    set_score(baseline, other);
    set_interval(baseline, &b->of_baseline[figure]);
    cpl_json_set(to, "baseline", baseline);
    cpl_json_set_real(to, "difference", score - other, 0);
    cpl_json_set_real(to, "p_value", b->p[figure], 0);
}

cpl_status cpl_figures_show_json(const cpl_figures_shown *s, cpl_str *to, cpl_error *err)
{
    char buffer[CPL_SIGNATURE_SIZE];
    cpl_json *root = cpl_json_object();
    for (int i = 0; root && i < CPL_FIGURES; i++) {
        if (!(s->figures->wanted & cpl_figure_bit(i)))
            continue;
        cpl_json *one = cpl_json_object();
        const char *signature = signature_of(s, i, buffer);
        set_score(one, value_of(s->figures, i));
        if (resamples_of(s, i))
            set_resamples(s, i, one);
        if (signature)
            cpl_json_set_text(one, "signature", signature);
        cpl_json_set(root, cpl_figure_at(i)->name, one);
    }
    cpl_status status = root ? cpl_json_write(root, to, err) : cpl_error_set(err, CPL_FAILED, "out of memory");
    cpl_json_free(root);
    cpl_str_add_char(to, '\n');
    return status;
}
