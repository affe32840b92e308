/* linear_loss.c: projection to the vocabulary and masked cross-entropy in one, in blocks of rows, so that the logits
 * [batch t vocab] never exist as a whole: what linear_cross_entropy.c and linear_tied_cross_entropy.c share.
 *
 *     logits = x·w + b, then as in cross_entropy.c, smoothing included; with g = d loss/d logits of a block:
 *     dx = g·wᵀ        dw = Σ over blocks of xᵀ·g        db = Σ rows of g
 *
 * All three gradients are computed while the block's logits are at hand (hidden outputs). Blocks are cut by the
 * number of rows alone: large enough that reading and writing dw once a block costs little beside the products,
 * small enough that the logits stay in the cache; smaller where memory is short (block_rows). */
#include <string.h>
#include "graph/attributes.h"
#include "ops/carve.h"
#include "ops/loss.h"
#include "ops/projection.h"

enum { COLUMNS = 256 };
enum { IN_X, IN_W, IN_B, IN_TARGET };
enum { OUT_PLAIN = 3, OUT_DX, OUT_DW, OUT_DB };

typedef struct projected_space {
    real *logits, *loss, *correct, *smoothed; /* [block vocab], [rows] three times */
} projected_space;

/* Of a loss that does not smooth, smoothed is loss. */
static projected_space space(cpl_carve *c, int64_t rows, int64_t block, int64_t vocab, const void *attributes)
{
    projected_space s;
    s.logits = cpl_carve_reals(c, (rows < block ? rows : block) * vocab);
    s.loss = cpl_carve_reals(c, rows);
    s.correct = cpl_carve_reals(c, rows);
    s.smoothed = ((const cpl_loss_attributes *)attributes)->smoothing > 0 ? cpl_carve_reals(c, rows) : s.loss;
    return s;
}

size_t cpl_linear_loss_workspace(const cpl_size_context *s, int tied)
{
    cpl_carve c = {0};
    if (!s->backward)
        space(&c, cpl_type_rows(s->in[IN_X], s->binding), cpl_loss_block_rows(s->block_rows),
              cpl_projection_vocab(s->in[IN_W], tied), s->attributes);
    return c.used;
}

/* Bias gradient of a block: columns are dealt out, rows added in order. */
typedef struct bias_sum {
    const cpl_kernels *kernels;
    int64_t rows, vocab;
    const real *g;
    real *db;
} bias_sum;

static void bias_task(void *arguments, int64_t task, int thread)
{
    const bias_sum *s = arguments;
    int64_t lo = task * COLUMNS, n = s->vocab - lo < COLUMNS ? s->vocab - lo : COLUMNS;
    (void)thread;
    s->kernels->add_rows(s->rows, n, s->g + lo, s->vocab, s->db + lo);
}

/* From the block's logit gradients g; beta 0 begins the sums. Of a part of a batch, dw and db are weighted. */
static void block_gradients(const cpl_projection *p, int64_t row, int64_t n, real beta, real *g)
{
    const cpl_run_context *r = p->r;
    int64_t in = p->in, vocab = p->vocab;

    if (r->out[OUT_DX].data)
        cpl_projection_input(p, n, g, r->out[OUT_DX].data + row * in);
    if (r->add)
        cpl_loss_scale(r, n * vocab, r->add_weight, g, g);
    if (r->out[OUT_DW].data)
        cpl_projection_weights(p, n, r->in[IN_X].data + row * in, g, beta, r->out[OUT_DW].data);
    if (r->out[OUT_DB].data && r->in[IN_B].data) {
        bias_sum s = {r->kernels, n, vocab, g, r->out[OUT_DB].data};
        cpl_run_tasks(r, (vocab + COLUMNS - 1) / COLUMNS, bias_task, &s);
    }
}

void cpl_linear_loss_forward(const cpl_run_context *r, int tied)
{
    cpl_carve c = {.base = r->workspace};
    cpl_projection p = cpl_projection_of(r, tied);
    int64_t rows = r->in[IN_X].rows, in = p.in, vocab = p.vocab;
    int64_t most = cpl_loss_block_rows(r->block_rows), count = cpl_loss_count(&r->in[IN_TARGET]);
    projected_space s = space(&c, rows, most, vocab, r->attributes);
    real smoothing = cpl_loss_smoothing(r);
    int64_t blocks = (rows + most - 1) / most, block = blocks ? (rows + blocks - 1) / blocks : 0;
    int gradient = r->out[OUT_DX].data || r->out[OUT_DW].data || r->out[OUT_DB].data;

    int begins = !r->add || r->add_first;
    if (r->out[OUT_DB].data && begins)
        memset(r->out[OUT_DB].data, 0, (size_t)vocab * sizeof(real));
    if (!rows && r->out[OUT_DW].data && begins)
        cpl_run_zero(r, r->out[OUT_DW].data, in * vocab);
    for (int64_t row = 0; row < rows; row += block) {
        int64_t n = rows - row < block ? rows - row : block;
        cpl_projection_forward(&p, n, r->in[IN_X].data + row * in, NULL, s.logits);
        cpl_loss_run(r, &(cpl_loss_rows){.rows = n, .width = vocab, .logits = s.logits, .bias = r->in[IN_B].data,
                                         .target = r->in[IN_TARGET].ids + row,
                                         .scale = count ? (real)1 / (real)count : 0, .gradient = gradient,
                                         .loss = s.loss + row, .correct = s.correct + row, .smoothing = smoothing,
                                         .smoothed = s.smoothed + row});
        if (gradient)
            block_gradients(&p, row, n, row || !begins ? 1 : 0, s.logits);
    }
    cpl_loss_finish(r, count, smoothing > 0 ? s.smoothed : s.loss, s.correct, rows);
    cpl_loss_mean(&r->out[OUT_PLAIN], count, s.loss, rows);
}
