/* gru_cell.c: the gates of a GRU (reset after) for rows whose products are made already: for cells inside loops.
 *
 *   z = σ(xz + hz);  r = σ(xr + hr);  n = tanh(xh + r·hh);  h' = z·h + (1 − z)·n      order z r h
 *   dxg = (dz, dr, dn) before the activations; dhg = (dz, dr, dn·r); dh = dh'·z
 */
#include "ops/rows.h"

enum { PIECES = 8 }; /* u-wide scratch of a row: zeros and what is not wanted */

static real *scratch_of(const cpl_run_context *r, int thread)
{
    real *workspace = r->workspace;
    int64_t u = r->in[2].width;
    return workspace + thread * cpl_chunk_rows(4 * u) * PIECES * u;
}

static void forward_rows(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    int64_t u = r->in[2].width;
    cpl_span s = cpl_span_of(task, cpl_chunk_rows(4 * u), r->in[2].rows);
    real *keep = r->out[1].data ? r->out[1].data + s.from * 4 * u : scratch_of(r, thread);
    r->kernels->gru_forward(s.to - s.from, u, r->in[0].data + s.from * 3 * u, r->in[1].data + s.from * 3 * u,
                            r->in[2].data + s.from * u, keep, r->out[0].data + s.from * u);
}

static void run(const cpl_run_context *r, cpl_task task)
{
    cpl_run_tasks(r, cpl_row_chunks(r->in[2].rows, 4 * r->in[2].width), task, &r);
}

static void forward(const cpl_run_context *r)
{
    run(r, forward_rows);
}

static void backward_rows(void *arguments, int64_t task, int thread)
{
    const cpl_run_context *r = *(const cpl_run_context *const *)arguments;
    int64_t u = r->in[2].width;
    cpl_span s = cpl_span_of(task, cpl_chunk_rows(4 * u), r->in[2].rows);
    real *scratch = scratch_of(r, thread);
    int64_t chunk = cpl_chunk_rows(4 * u) * u;
    real *dxg = r->din[0].data ? r->din[0].data + s.from * 3 * u : scratch;
    real *dhg = r->din[1].data ? r->din[1].data + s.from * 3 * u : scratch + 3 * chunk;
    real *dh = r->din[2].data ? r->din[2].data + s.from * u : scratch + 6 * chunk;
    r->kernels->gru_backward(s.to - s.from, u, r->out[1].data + s.from * 4 * u, r->in[2].data + s.from * u,
                             r->dout[0].data + s.from * u, dxg, dhg, dh);
}

static void backward(const cpl_run_context *r)
{
    if (r->dout[0].data) {
        run(r, backward_rows);
        return;
    }
    for (int k = 0; k < 3; k++)
        if (r->din[k].data)
            cpl_run_zero(r, r->din[k].data, cpl_tensor_elements(&r->din[k]));
}

static size_t workspace(const cpl_size_context *s)
{
    int64_t u = cpl_type_width(s->in[2]);
    return sizeof(real) * (size_t)(s->threads * cpl_chunk_rows(4 * u) * PIECES * u);
}

static const char *const tests[] = {"u=3 ...=batch,t", "u=1 ...=batch", "u=17 ...=batch,t", NULL};

const cpl_op cpl_op_gru_cell = {
    .name = "gru_cell",
    .doc = "gates of one GRU step, reset after",
    .signature = "xg[... 3u] hg[... 3u] h[... u] -> y[... u] ; keep[... 4u]",
    .keeps = CPL_KEEP_IN2,
    .flags = CPL_OP_LOCAL | CPL_OP_CHEAP,
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .tests = tests,
};
