/* linear.c: y = f(x·w + b), the dense layer; f by attribute.
 *
 *   da = dy · f'(.) written through y
 *   dx = da·wᵀ     dw = xᵀ·da     db = Σ rows of da
 */
#include "graph/attributes.h"
#include "ops/rows.h"

typedef struct work {
    const cpl_run_context *r;
    cpl_activation f;
    int64_t rows, out;
    real *da; /* backward */
} work;

static work work_of(const cpl_run_context *r)
{
    const cpl_activation_attributes *a = r->attributes;
    const cpl_dim *w = r->in[1].type->dim;
    return (work){.r = r, .f = (cpl_activation)a->activation, .out = w[1].size,
                  .rows = cpl_rows_of(cpl_tensor_elements(&r->in[0]), w[0].size)};
}

static void forward(const cpl_run_context *r)
{
    work w = work_of(r);
    int64_t in = r->in[1].type->dim[0].size;
    cpl_run_dense(r, &(cpl_gemm){.m = w.rows, .n = w.out, .k = in, .a = r->in[0].data, .lda = in, .ldb = w.out,
                                 .c = r->out[0].data, .ldc = w.out}, &r->in[1], r->in[2].data, w.f);
}

static void deactivate(void *arguments, int64_t task, int thread)
{
    const work *w = arguments;
    const cpl_run_context *r = w->r;
    cpl_span s = cpl_span_of(task, CPL_CHUNK, w->rows * w->out);
    (void)thread;
    r->kernels->activation_backward(s.to - s.from, w->f, r->out[0].data + s.from, r->dout[0].data + s.from,
                                    w->da + s.from);
}

static void zero_gradients(const cpl_run_context *r)
{
    for (int i = 0; i < 3; i++)
        if (r->din[i].data)
            cpl_run_zero(r, r->din[i].data, cpl_tensor_elements(&r->din[i]));
}

static void backward(const cpl_run_context *r)
{
    work w = work_of(r);
    int64_t in = r->in[1].type->dim[0].size;
    const real *da = r->dout[0].data;
    if (!da) {
        zero_gradients(r);
        return;
    }
    if (w.f != CPL_LINEAR) {
        w.da = r->workspace;
        cpl_run_tasks(r, cpl_chunks(w.rows * w.out), deactivate, &w);
        da = w.da;
    }
    if (r->din[0].data)
        cpl_run_gemm(r, &(cpl_gemm){.transpose_b = 1, .m = w.rows, .n = in, .k = w.out, .a = da, .lda = w.out,
                                    .b = r->in[1].data, .ldb = w.out, .c = r->din[0].data, .ldc = in});
    if (r->din[1].data)
        cpl_run_gemm(r, &(cpl_gemm){.transpose_a = 1, .m = in, .n = w.out, .k = w.rows, .a = r->in[0].data, .lda = in,
                                    .b = da, .ldb = w.out, .c = r->din[1].data, .ldc = w.out});
    if (r->din[2].data)
        cpl_run_sum_rows(r, w.rows, w.out, da, r->din[2].data);
}

/* The backward pass through f needs da beside dy: dy may have other readers. */
static size_t workspace(const cpl_size_context *s)
{
    const cpl_activation_attributes *a = s->attributes;
    if (!s->backward || a->activation == CPL_LINEAR)
        return 0;
    return cpl_type_bytes(s->out[0], s->binding);
}

/* y is read again only where there is an activation to go back through. */
static uint32_t keeps_of(const void *attributes)
{
    const cpl_activation_attributes *a = attributes;
    return CPL_KEEP_IN0 | CPL_KEEP_IN1 | (a->activation == CPL_LINEAR ? 0 : CPL_KEEP_OUT0);
}

static double flops(const cpl_size_context *s)
{
    return 2.0 * (double)cpl_type_elements(s->out[0], s->binding) * (double)s->in[1]->dim[0].size;
}

static const char *const tests[] = {
    "in=3 out=5 attr.0=0", "in=5 out=3 attr.0=1 ...=batch", "in=1 out=7 b=absent attr.0=2",
    "in=7 out=1 attr.0=3 ...=batch,s", "in=3 out=2 b=absent attr.0=0 ...=4", NULL};

const cpl_op cpl_op_linear = {
    .name = "linear",
    .doc = "dense layer: f(x·w + b)",
    .signature = "x[... in] w[in out] b[out]? -> y[... out]",
    .flags = CPL_OP_LOCAL,
    .weights = 1 << 1,
    .for_weights = CPL_KEEP_IN0,
    .keeps_of = keeps_of,
    .attributes = sizeof(cpl_activation_attributes),
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .tests = tests,
};
