/* figures.c: the table of figures, and names into bits. What each is counted from and how stands in scorer.c. */
#include <string.h>

#include "base/error.h"
#include "metric/scorer.h"

static const cpl_figure_row rows[CPL_FIGURES] = {
    [CPL_FIGURE_BLEU] = {"bleu", CPL_NEEDS_OUTPUT, .percent = 1, .by_default = 1},
    [CPL_FIGURE_CHRF] = {"chrf", CPL_NEEDS_OUTPUT, .percent = 1},
    [CPL_FIGURE_CHRF_WORDS] = {"chrf++", CPL_NEEDS_OUTPUT, .percent = 1},
    [CPL_FIGURE_EXACT] = {"exact", CPL_NEEDS_OUTPUT, .by_default = 1},
    [CPL_FIGURE_TOKEN_ERROR_RATE] = {"token_error_rate", CPL_NEEDS_OUTPUT, .smaller_is_better = 1},
    [CPL_FIGURE_ROUGE] = {"rouge1", CPL_NEEDS_OUTPUT, .percent = 1},
    [CPL_FIGURE_ROUGE + 1] = {"rouge2", CPL_NEEDS_OUTPUT, .percent = 1},
    [CPL_FIGURE_ROUGE + 2] = {"rougeL", CPL_NEEDS_OUTPUT, .percent = 1},
    [CPL_FIGURE_ROUGE + 3] = {"rougeLsum", CPL_NEEDS_OUTPUT, .percent = 1},
    [CPL_FIGURE_REPEATED_TRIGRAMS] = {"repeated_trigrams", CPL_NEEDS_OUTPUT, .smaller_is_better = 1},
    [CPL_FIGURE_COPY_RATE] = {"copy_rate", CPL_NEEDS_SOURCE, .percent = 0},
    [CPL_FIGURE_ACCURACY] = {"accuracy", CPL_NEEDS_MODEL, .by_default = 1},
    [CPL_FIGURE_LOSS] = {"loss", CPL_NEEDS_MODEL, .by_default = 1, .smaller_is_better = 1},
    [CPL_FIGURE_PERPLEXITY] = {"perplexity", CPL_NEEDS_MODEL, .smaller_is_better = 1},
};

static const char several[] = "rouge"; /* the one name for several figures */

const cpl_figure_row *cpl_figure_at(int figure)
{
    return &rows[figure];
}

uint32_t cpl_figures_that_need(cpl_figure_needs needs)
{
    uint32_t bits = 0;
    for (int f = 0; f < CPL_FIGURES; f++)
        bits |= rows[f].needs == needs ? cpl_figure_bit(f) : 0;
    return bits;
}

uint32_t cpl_figures_default(void)
{
    uint32_t bits = 0;
    for (int f = 0; f < CPL_FIGURES; f++)
        bits |= rows[f].by_default ? cpl_figure_bit(f) : 0;
    return bits;
}

static cpl_status unknown(const char *name, size_t length, cpl_error *err)
{
    const char *names[CPL_FIGURES + 1];
    char text[64], shown[80], hint[300] = "there are ";
    snprintf(text, sizeof text, "%.*s", (int)(length < 60 ? length : 60), name);
    for (int f = 0; f < CPL_FIGURES; f++) {
        size_t used = strlen(hint);
        names[f] = rows[f].name;
        snprintf(hint + used, sizeof hint - used, "%s%s", f ? ", " : "", rows[f].name);
    }
    names[CPL_FIGURES] = several;
    const char *near = cpl_nearest(text, names, CPL_FIGURES + 1);
    if (near)
        snprintf(hint, sizeof hint, "did you mean '%s'?", near);
    CPL_FAIL(err, CPL_USAGE, "unknown metric '%s'" CPL_HINT "%s", cpl_escape(shown, sizeof shown, text, strlen(text)),
             hint);
}

static int is_name(const char *name, const char *at, size_t length)
{
    return strlen(name) == length && strncmp(name, at, length) == 0;
}

cpl_status cpl_figures_parse(const char *list, uint32_t *wanted, cpl_error *err)
{
    *wanted = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        uint32_t found = is_name(several, at, length) ? UINT32_C(15) << CPL_FIGURE_ROUGE : 0;
        for (int f = 0; f < CPL_FIGURES; f++)
            found |= is_name(rows[f].name, at, length) ? cpl_figure_bit(f) : 0;
        if (!found)
            return unknown(at, length, err);
        *wanted |= found;
        at += length;
        if (!*at)
            return CPL_OK;
    }
}
