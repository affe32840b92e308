/* coverage.c: the loss of an attention that looks at the same source words again (See et al. 2017).
 *
 *     c_t = Σ of the weights a of all steps before t     loss = 1/count · Σ over t with target ≠ 0, Σ over s, min(a, c)
 *
 * count is the number of targets that are not 0, as in the cross-entropies, so both losses may be added. With [·] 1 or
 * 0, and only targets ≠ 0 counting, all times 1/count:
 *
 *     da_t = [a_t ≤ c_t] + number of later steps u with c_u < a_u
 *
 * The gradient falls out of the forward pass: hidden output d first takes c, step by step, and is then walked back. */
#include "ops/carve.h"
#include "ops/loss.h"

typedef struct coverage {
    const cpl_run_context *r;
    const cpl_geometry *t, *s;
    cpl_pair_index index;
    double *loss; /* by sentence, at its position of t */
    real *sums;   /* each thread's [longest s] */
    real scale;   /* 1 / count */
} coverage;

enum { IN_WEIGHTS, IN_TARGET };

static void *carve(coverage *a, cpl_carve *c, int64_t batch, int64_t longest_t, int64_t longest_s, int threads)
{
    void *index = cpl_carve_bytes(c, cpl_pair_index_bytes(batch, longest_t));
    a->loss = cpl_carve_bytes(c, (size_t)batch * sizeof *a->loss);
    a->sums = cpl_carve_reals(c, threads * longest_s);
    return index;
}

/* The last two dimensions of the weights are t and s. */
static int symbol_of(const cpl_type *weights, int last)
{
    return weights->dim[weights->rank - 1 - last].symbol;
}

static size_t workspace(const cpl_size_context *c)
{
    coverage a;
    cpl_carve carved = {0};
    const int64_t *longest = c->binding->longest;
    if (!c->backward)
        carve(&a, &carved, c->binding->batch, longest[symbol_of(c->in[IN_WEIGHTS], 1)],
              longest[symbol_of(c->in[IN_WEIGHTS], 0)], c->threads);
    return carved.used;
}

static int counts(const coverage *a, int64_t step, int64_t i)
{
    return a->r->in[IN_TARGET].ids[a->t->offset[step] + i] != 0;
}

/* From the last step to the first, where sums[s] counts the later steps whose c was the smaller. */
static void walk_back(const coverage *a, int64_t i, int64_t n, real *sums)
{
    for (int64_t s = 0; s < n; s++)
        sums[s] = 0;
    for (int64_t step = a->t->length[i]; step-- > 0;) {
        int64_t at = cpl_pair_row(&a->index, step, i);
        const real *weights = a->r->in[IN_WEIGHTS].data + at;
        real *d = a->r->out[1].data + at; /* c */
        real one = counts(a, step, i) ? a->scale : 0;
        for (int64_t s = 0; s < n; s++) {
            int first = weights[s] <= d[s];
            d[s] = sums[s] + (first ? one : 0);
            sums[s] += first ? 0 : one;
        }
    }
}

static void sentence_task(void *arguments, int64_t i, int thread)
{
    const coverage *a = arguments;
    int64_t n = a->index.prefix[i + 1] - a->index.prefix[i];
    real *sums = a->sums + thread * a->s->longest, *d = a->r->out[1].data;
    double loss = 0;
    for (int64_t s = 0; s < n; s++)
        sums[s] = 0;
    for (int64_t step = 0; step < a->t->length[i]; step++) {
        int64_t at = cpl_pair_row(&a->index, step, i);
        const real *weights = a->r->in[IN_WEIGHTS].data + at;
        int counted = counts(a, step, i);
        for (int64_t s = 0; s < n; s++) {
            if (counted)
                loss += (double)(weights[s] <= sums[s] ? weights[s] : sums[s]);
            if (d)
                d[at + s] = sums[s];
            sums[s] += weights[s];
        }
    }
    a->loss[i] = loss;
    if (d)
        walk_back(a, i, n, sums);
}

static void forward(const cpl_run_context *r)
{
    cpl_carve c = {.base = r->workspace};
    const cpl_type *type = r->in[IN_WEIGHTS].type;
    int64_t count = cpl_loss_count(&r->in[IN_TARGET]);
    coverage a = {.r = r, .t = &r->geometry[symbol_of(type, 1)], .s = &r->geometry[symbol_of(type, 0)],
                  .scale = count ? (real)1 / (real)count : 0};
    void *index = carve(&a, &c, a.t->batch, a.t->longest, a.s->longest, cpl_pool_threads(r->pool));
    a.index = cpl_pair_index_make(index, a.t, a.s);
    cpl_run_tasks(r, a.t->batch, sentence_task, &a);
    double total = 0;
    for (int64_t i = 0; i < a.t->batch; i++)
        total += a.loss[i];
    r->out[0].data[0] = (real)(count ? total / (double)count : 0);
}

/* It is added to another loss, with a weight. */
static void backward(const cpl_run_context *r)
{
    cpl_loss_backward(r, 1, 1);
}

static cpl_status check(const cpl_shape_context *s, cpl_error *err)
{
    return cpl_one_head_check(s, IN_WEIGHTS, "coverage", err);
}

static double flops(const cpl_size_context *s)
{
    return 3.0 * (double)cpl_type_elements(s->in[IN_WEIGHTS], s->binding);
}

static const char *const tests[] = {"...= size=2", "...= size=5", NULL};

const cpl_op cpl_op_coverage = {
    .name = "coverage",
    .doc = "loss of attention weights that return to the same source words, over targets that are not padding",
    .signature = "weights[... batch t s] id target[batch t] -> loss[] ; d[... batch t s]",
    .flags = CPL_OP_READY,
    .check = check,
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .tests = tests,
};
