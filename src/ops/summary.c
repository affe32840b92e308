/* summary.c: one line about a tensor (see summary.h):
 *
 *   states 'encoder.rnn' [batch=4 s=5 units=6]: min -0.91 mean 0.02 max 0.88, 0 of 72 not finite, first 0.12 -0.3 … */
#include "ops/summary.h"

#include <math.h>
#include "base/log.h"
#include "base/str.h"
#include "ops/rows.h"

enum { FIRST = 6 }; /* values that are shown */

/* Time is as long as the longest sentence of the run. */
static void add_shape(const cpl_run_context *r, const cpl_type *type, cpl_str *text)
{
    for (int i = 0; i < type->rank; i++) {
        const cpl_dim *d = &type->dim[i];
        int64_t size = d->size;
        if (d->kind == CPL_DIM_BATCH)
            size = r->binding->batch;
        else if (d->kind == CPL_DIM_TIME)
            size = r->binding->longest[d->symbol];
        else if (d->kind == CPL_DIM_PADDED)
            size = r->binding->rows[d->symbol];
        cpl_str_printf(text, "%s%s=%lld", i ? " " : "", d->name, (long long)size);
    }
}

static double number(const cpl_tensor *x, int64_t i)
{
    return x->type->element == CPL_ELEMENT_ID ? (double)x->ids[i] : (double)x->data[i];
}

/* Minimum, mean and maximum are those of the finite numbers. */
static void add_numbers(const cpl_tensor *x, int64_t n, cpl_str *text)
{
    int64_t finite = 0;
    double sum = 0, least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        double v = number(x, i);
        if (!isfinite(v))
            continue;
        finite++;
        sum += v;
        least = fmin(least, v);
        most = fmax(most, v);
    }
    if (finite)
        cpl_str_printf(text, "min %.6g mean %.6g max %.6g, ", least, sum / (double)finite, most);
    cpl_str_printf(text, "%lld of %lld not finite", (long long)(n - finite), (long long)n);
    for (int64_t i = 0; i < n && i < FIRST; i++)
        cpl_str_printf(text, "%s%.6g", i ? " " : ", first ", number(x, i));
}

void cpl_summary_tell(const cpl_run_context *r)
{
    const cpl_tensor *x = &r->in[0];
    cpl_str text = {0};
    if (!r->log || !r->log->sink)
        return;
    add_shape(r, x->type, &text);
    cpl_str_add(&text, "]: ");
    add_numbers(x, cpl_tensor_elements(x), &text);
    if (!text.failed)
        cpl_log_info(r->log, "%s [%s", r->path ? r->path : "", text.data);
    cpl_str_free(&text);
}
