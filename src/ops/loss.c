/* loss.c: the shared parts of the losses (see loss.h). */
#include "ops/loss.h"

#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"

/* What the loss needs, such as "[batch t vocab]", over the target's own time axis. */
static void wanted(const cpl_type *target, int with_size, char *text, size_t size)
{
    cpl_type type = *target;
    if (type.rank == CPL_MAX_RANK)
        type.rank--;
    type.dim[type.rank++] = (cpl_dim){.name = "vocab", .size = target->entries, .symbol = CPL_NO_SYMBOL,
                                      .kind = with_size ? CPL_DIM_FEATURE : CPL_DIM_PADDED};
    cpl_type_text(&type, text, size); /* of a dimension that is no feature only the name is printed */
}

cpl_status cpl_loss_check(const cpl_shape_context *s, int logits, int target, cpl_error *err)
{
    const cpl_type *x = s->in[logits], *y = s->in[target];
    char want[120], got[160];
    if (!x || !y || y->element != CPL_ELEMENT_ID)
        return CPL_OK; /* the signature's own check says what is wrong */
    const cpl_dim *last = x->rank ? &x->dim[x->rank - 1] : NULL;
    int named = last && last->kind == CPL_DIM_FEATURE && strcmp(last->name, "vocab") == 0;
    if (named && last->size == y->entries)
        return CPL_OK;
    wanted(y, named, want, sizeof want);
    cpl_type_text(x, got, sizeof got);
    CPL_FAIL(err, CPL_USAGE,
             "loss 'masked_cross_entropy' needs logits %s but '%s' gives %s" CPL_HINT
             "return the decoder's logits, or add a projection to the vocabulary (vocab=%lld) after '%s'",
             want, s->in_path[logits], got, (long long)y->entries, s->in_path[logits]);
}

cpl_status cpl_table_check(const cpl_shape_context *s, int w, int target, cpl_error *err)
{
    const cpl_type *table = s->in[w], *y = s->in[target];
    if (table && y && y->element == CPL_ELEMENT_ID && table->rank == 2 && table->dim[0].size != y->entries)
        CPL_FAIL(err, CPL_USAGE, "the loss needs a table of the labels' %lld entries but '%s' has %lld",
                 (long long)y->entries, s->in_path[w], (long long)table->dim[0].size);
    return CPL_OK;
}

cpl_status cpl_one_head_check(const cpl_shape_context *s, int weights, const char *what, cpl_error *err)
{
    const cpl_type *type = s->in[weights];
    for (int i = 0; type && i < type->rank && type->dim[i].kind == CPL_DIM_FEATURE; i++)
        if (type->dim[i].size != 1)
            CPL_FAIL(err, CPL_USAGE, "%s needs one set of attention weights but '%s' has %lld heads" CPL_HINT
                     "use one head", what, s->in_path[weights], (long long)type->dim[i].size);
    return CPL_OK;
}

int64_t cpl_loss_count(const cpl_tensor *target)
{
    int64_t count = 0;
    for (int64_t i = 0; i < target->rows; i++)
        count += target->ids[i] != 0;
    return count;
}

/* In row order and in double, whatever `real` is: a mean over thousands of tokens keeps its digits. */
void cpl_loss_mean(const cpl_tensor *out, int64_t count, const real *loss, int64_t rows)
{
    double total = 0.0;
    for (int64_t i = 0; i < rows; i++)
        total += (double)loss[i];
    if (out->data)
        out->data[0] = (real)(count ? total / (double)count : 0.0);
}

void cpl_loss_finish(const cpl_run_context *r, int64_t count, const real *loss, const real *correct, int64_t rows)
{
    cpl_loss_mean(&r->out[0], count, loss, rows);
    cpl_loss_mean(&r->out[1], count, correct, rows);
    if (r->out[2].data)
        r->out[2].data[0] = (real)count;
}

/* ---- smoothing ----
 *
 * Of each label the share e goes to all n classes alike (Szegedy et al. 2016; Keras, PyTorch):
 *     loss = (1 − e) · (log Σ exp(x) − x[y]) + e · (log Σ exp(x) − mean of x) = plain loss + e · (x[y] − mean of x)
 *     d loss/d x = softmax − (1 − e) · onehot(y) − e/n */

enum { LANES = 16, SPAN = 256 };

real cpl_loss_smoothing(const cpl_run_context *r)
{
    return r->training ? (real)((const cpl_loss_attributes *)r->attributes)->smoothing : 0;
}

/* Short sums side by side, added in double: fast, and exact enough for the widest vocabulary. */
static double sum_of(const real *x, int64_t n)
{
    double total = 0;
    int64_t at = 0;
    for (; at + SPAN <= n; at += SPAN) {
        real lane[LANES] = {0};
        for (int64_t i = 0; i < SPAN; i += LANES)
            for (int k = 0; k < LANES; k++)
                lane[k] += x[at + i + k];
        for (int k = 0; k < LANES; k++)
            total += (double)lane[k];
    }
    for (; at < n; at++)
        total += (double)x[at];
    return total;
}

/* What smoothing adds to the rows' losses; before the kernel, which writes its gradient over the logits. */
static void begin_smoothing(const cpl_loss_rows *l, int64_t lo, int64_t n)
{
    double bias = l->bias ? sum_of(l->bias, l->width) : 0;
    for (int64_t row = lo; row < lo + n; row++) {
        const real *x = l->logits + row * l->width;
        int32_t y = l->target[row];
        double own = y ? (double)x[y] + (l->bias ? (double)l->bias[y] : 0) : 0;
        l->smoothed[row] = y ? l->smoothing * (real)(own - (sum_of(x, l->width) + bias) / (double)l->width) : 0;
    }
}

static void end_smoothing(const cpl_loss_rows *l, int64_t lo, int64_t n)
{
    real whole = l->scale * l->smoothing, share = whole / (real)l->width;
    for (int64_t row = lo; row < lo + n; row++) {
        real *g = l->logits + row * l->width;
        l->smoothed[row] += l->loss[row];
        if (!l->gradient || !l->target[row])
            continue;
        for (int64_t i = 0; i < l->width; i++)
            g[i] -= share;
        g[l->target[row]] += whole;
    }
}

/* ---- rows ---- */

enum { ROWS = 8 }; /* of a task */

static void rows_task(void *arguments, int64_t task, int thread)
{
    const cpl_loss_rows *l = arguments;
    int64_t lo = task * ROWS, n = l->rows - lo < ROWS ? l->rows - lo : ROWS;
    (void)thread;
    if (l->smoothing > 0)
        begin_smoothing(l, lo, n);
    l->kernels->cross_entropy(n, l->width, l->logits + lo * l->width, l->width, l->bias, l->target + lo, l->scale,
                              l->gradient, l->loss + lo, l->correct + lo);
    if (l->smoothing > 0)
        end_smoothing(l, lo, n);
}

void cpl_loss_run(const cpl_run_context *r, const cpl_loss_rows *l)
{
    cpl_loss_rows copy = *l;
    copy.kernels = r->kernels;
    cpl_run_tasks(r, (l->rows + ROWS - 1) / ROWS, rows_task, &copy);
}

typedef struct scaling {
    const cpl_kernels *kernels;
    int64_t n;
    real by;
    const real *from;
    real *to;
} scaling;

static void scale_task(void *arguments, int64_t task, int thread)
{
    const scaling *s = arguments;
    int64_t lo = task * CPL_CHUNK, n = s->n - lo < CPL_CHUNK ? s->n - lo : CPL_CHUNK;
    (void)thread;
    s->kernels->scale(n, s->by, s->from + lo, s->to + lo);
}

void cpl_loss_scale(const cpl_run_context *r, int64_t n, real by, const real *from, real *to)
{
    scaling s = {r->kernels, n, by, from, to};
    cpl_run_tasks(r, cpl_chunks(n), scale_task, &s);
}

void cpl_loss_backward(const cpl_run_context *r, int inputs, int first)
{
    real by = r->dout[0].data ? r->dout[0].data[0] : 0;
    for (int i = 0; i < inputs; i++)
        if (r->din[i].data)
            cpl_loss_scale(r, r->in[i].rows * r->in[i].width, by, r->out[first + i].data, r->din[i].data);
}

double cpl_loss_flops(const cpl_size_context *s, int first, int tied)
{
    double products = 2.0 + (s->differentiated ? 2.0 * (s->out[first] != NULL) + 2.0 * (s->out[first + 1] != NULL) : 0);
    return products * (double)cpl_type_elements(s->in[0], s->binding) * (double)s->in[1]->dim[tied ? 0 : 1].size;
}
