/* lstm_cell.c: the gates of an LSTM for rows whose products are made already: for cells inside loops.
 *
 *   a = xg + hg (order i f c o);  c' = σ(f)·c + σ(i)·tanh(c̃);  h' = σ(o)·tanh(c')
 *   da as in lstm.c; dxg = dhg = da; dc = dc'·σ(f) + …
 */
#include <string.h>
#include "ops/rows.h"

static void forward_rows(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    int64_t u = r->in[2].width;
    cpl_span s = cpl_span_of(task, cpl_chunk_rows(4 * u), r->in[2].rows);
    real *workspace = r->workspace;
    real *keep = r->out[2].data ? r->out[2].data + s.from * 4 * u : workspace + thread * cpl_chunk_rows(4 * u) * 4 * u;
    r->kernels->lstm_forward(s.to - s.from, u, r->in[0].data + s.from * 4 * u, r->in[1].data + s.from * 4 * u,
                             r->in[2].data + s.from * u, keep, r->out[1].data + s.from * u,
                             r->out[0].data + s.from * u);
}

static void forward(const cpl_run_context *r)
{
    cpl_run_tasks(r, cpl_row_chunks(r->in[2].rows, 4 * r->in[2].width), forward_rows, &r);
}

/* Where a gradient is missing, zeros stand in; where one is not wanted, scratch. */
typedef struct pieces {
    real *zeros, *da, *dc;
} pieces;

static pieces pieces_of(const cpl_run_context *r, int thread)
{
    int64_t u = r->in[2].width, rows = cpl_chunk_rows(4 * u);
    real *workspace = r->workspace;
    workspace += thread * rows * 6 * u;
    return (pieces){.zeros = workspace, .dc = workspace + rows * u, .da = workspace + rows * 2 * u};
}

static void backward_rows(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    int64_t u = r->in[2].width;
    cpl_span s = cpl_span_of(task, cpl_chunk_rows(4 * u), r->in[2].rows);
    int64_t rows = s.to - s.from;
    pieces p = pieces_of(r, thread);
    memset(p.zeros, 0, (size_t)(rows * u) * sizeof(real));
    const real *dh = r->dout[0].data ? r->dout[0].data + s.from * u : p.zeros;
    const real *dc = r->dout[1].data ? r->dout[1].data + s.from * u : p.zeros;
    real *da = r->din[0].data ? r->din[0].data + s.from * 4 * u : p.da;
    real *dc_prev = r->din[2].data ? r->din[2].data + s.from * u : p.dc;
    r->kernels->lstm_backward(rows, u, r->out[2].data + s.from * 4 * u, r->in[2].data + s.from * u,
                              r->out[1].data + s.from * u, dh, dc, da, dc_prev);
    if (r->din[1].data)
        memcpy(r->din[1].data + s.from * 4 * u, da, (size_t)(rows * 4 * u) * sizeof(real));
}

static void backward(const cpl_run_context *r)
{
    cpl_run_tasks(r, cpl_row_chunks(r->in[2].rows, 4 * r->in[2].width), backward_rows, &r);
}

static size_t workspace(const cpl_size_context *s)
{
    int64_t u = cpl_type_width(s->in[2]);
    return sizeof(real) * (size_t)(s->threads * cpl_chunk_rows(4 * u) * (s->backward ? 6 : 4) * u);
}

static const char *const tests[] = {"u=3 ...=batch,t", "u=1 ...=batch", "u=17 ...=batch,t", NULL};

const cpl_op cpl_op_lstm_cell = {
    .name = "lstm_cell",
    .doc = "gates of one LSTM step",
    .signature = "xg[... 4u] hg[... 4u] c[... u] -> h[... u] c1[... u] ; keep[... 4u]",
    .keeps = CPL_KEEP_IN2 | CPL_KEEP_OUT1,
    .flags = CPL_OP_LOCAL | CPL_OP_CHEAP,
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
