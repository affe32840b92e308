/* pointer_loss.c: projection to the vocabulary, copying from the source, and masked cross-entropy of the
 * mixture, in blocks of rows, so that neither logits nor mixtures [batch t vocab] ever exist as a whole (See et al.
 * 2017, pointer-generator): what pointer_cross_entropy.c and pointer_tied_cross_entropy.c share.
 *
 *     g = σ(gate)      p = softmax(x·w + b)      m(y) = Σ of the weights a_s whose copy_s is y
 *     P(y) = g · p(y) + (1 − g) · m(y)           loss = mean of −log P(target) over rows with target ≠ 0
 *
 * Ids from 0 to vocab − 1 are the vocabulary's; larger ones stand for words of the row's own source line that the
 * vocabulary lacks: p is 0 for them. With r = g · p(y) / P(y), the share of the label that the vocabulary made, of each
 * row, all times 1/count:
 *
 *     dlogits = r · (p − onehot(y))     dgate = g − r     da_s = −(1 − g) / P(y) where copy_s = y, else 0
 *
 * and from dlogits as in linear_loss.c. A label that neither side can give has the loss −log of TINY and no
 * gradient. correct counts rows in which the first largest P is the label's. Per sentence it is found out once which
 * places of the source hold the same word (`first`), so that a row costs one walk over its weights. */
#include <math.h>
#include <string.h>
#include "ops/carve.h"
#include "ops/loss.h"
#include "ops/projection.h"

enum { COLUMNS = 256, TASK_ROWS = 8 };
enum { IN_X, IN_W, IN_B, IN_GATE, IN_WEIGHTS, IN_COPY, IN_TARGET };
enum { OUT_DX = 3, OUT_DW, OUT_DB, OUT_DGATE, OUT_DWEIGHTS };

static const double TINY = 1e-30;

typedef struct pointer {
    const cpl_run_context *r;
    cpl_projection projection;
    const cpl_geometry *t, *s;
    cpl_pair_index index; /* of the weights */
    int64_t vocab, tokens, slots;
    real *logits, *loss, *correct;
    int32_t *ids, *first; /* source words of the sentence at position i of t: at index.prefix[i] … */
    int32_t *table;       /* each thread's hash table of `slots` places in a source line */
    real *mass;           /* each thread's [longest s] */
    int64_t row, rows;    /* the block */
    real scale;           /* 1 / count */
    int logit_gradient;
} pointer;

/* ---- memory ---- */

/* Twice as many as the longest line has words, a power of two. */
static int64_t table_slots(int64_t longest)
{
    int64_t slots = 4;
    while (slots < 2 * longest)
        slots *= 2;
    return slots;
}

typedef struct sizes {
    int64_t rows, block, tokens, batch, longest_t, longest_s, vocab;
    int threads;
} sizes;

static void *carve(pointer *p, cpl_carve *c, const sizes *n)
{
    void *index = cpl_carve_bytes(c, cpl_pair_index_bytes(n->batch, n->longest_t));
    p->slots = table_slots(n->longest_s);
    p->logits = cpl_carve_reals(c, (n->rows < n->block ? n->rows : n->block) * n->vocab);
    p->loss = cpl_carve_reals(c, n->rows);
    p->correct = cpl_carve_reals(c, n->rows);
    p->ids = cpl_carve_bytes(c, (size_t)n->tokens * sizeof *p->ids);
    p->first = cpl_carve_bytes(c, (size_t)n->tokens * sizeof *p->first);
    p->table = cpl_carve_bytes(c, (size_t)(n->threads * p->slots) * sizeof *p->table);
    p->mass = cpl_carve_reals(c, n->threads * n->longest_s);
    return index;
}

size_t cpl_pointer_loss_workspace(const cpl_size_context *c, int tied)
{
    pointer p;
    cpl_carve carved = {0};
    const cpl_binding *b = c->binding;
    sizes n = {.rows = cpl_type_rows(c->in[IN_X], b), .block = cpl_loss_block_rows(c->block_rows),
               .tokens = cpl_type_rows(c->in[IN_COPY], b), .batch = b->batch,
               .longest_t = b->longest[c->in[IN_TARGET]->dim[1].symbol],
               .longest_s = b->longest[c->in[IN_COPY]->dim[1].symbol],
               .vocab = cpl_projection_vocab(c->in[IN_W], tied), .threads = c->threads};
    if (!c->backward)
        carve(&p, &carved, &n);
    return carved.used;
}

/* ---- words that stand in a source line more than once ---- */

static void find_first(const pointer *p, int64_t i, int32_t *table)
{
    int64_t at = p->index.prefix[i], n = p->index.prefix[i + 1] - at;
    const int32_t *ids = p->ids + at;
    int32_t *first = p->first + at;
    uint32_t mask = (uint32_t)p->slots - 1;
    memset(table, 0xFF, (size_t)p->slots * sizeof *table);
    for (int32_t k = 0; k < n; k++) {
        uint32_t slot = (uint32_t)ids[k] * 2654435769u;
        for (slot = (slot ^ slot >> 16) & mask; table[slot] >= 0 && ids[table[slot]] != ids[k];)
            slot = (slot + 1) & mask;
        if (table[slot] < 0)
            table[slot] = k;
        first[k] = table[slot];
    }
}

static void sentence_task(void *arguments, int64_t i, int thread)
{
    const pointer *p = arguments;
    int64_t at = p->index.prefix[i], n = p->index.prefix[i + 1] - at, j = p->s->position[p->t->sentence[i]];
    for (int64_t k = 0; k < n; k++)
        p->ids[at + k] = p->r->in[IN_COPY].ids[p->s->offset[k] + j];
    find_first(p, i, p->table + thread * p->slots);
}

/* ---- one row ---- */

/* Where a row stands: its words and weights. */
typedef struct source_line {
    const int32_t *ids, *first;
    int64_t n, weights; /* weights: offset of the row's in the tensor */
} source_line;

static source_line line_of(const pointer *p, int64_t row)
{
    int64_t low = 0, high = p->t->longest; /* the last step that begins at or before row */
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (p->t->offset[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    int64_t i = row - p->t->offset[low], at = p->index.prefix[i];
    return (source_line){.ids = p->ids + at, .first = p->first + at, .n = p->index.prefix[i + 1] - at,
                         .weights = cpl_pair_row(&p->index, low, i)};
}

/* mass[k] = Σ weights of all places with the word of place k, where first[k] is k. */
static void gather_mass(const source_line *l, const real *a, real *mass)
{
    for (int64_t k = 0; k < l->n; k++) {
        if (l->first[k] == k)
            mass[k] = a[k];
        else
            mass[l->first[k]] += a[k];
    }
}

static double mass_of(const source_line *l, const real *mass, int32_t id)
{
    for (int64_t k = 0; k < l->n; k++)
        if (l->ids[k] == id)
            return (double)mass[k];
    return 0;
}

/* The first largest of the mixture: the vocabulary's own best, `top`, unless a word of the source has more. */
static int32_t best_of(const pointer *p, const source_line *l, const real *mass, const real *share, int32_t top,
                       double g)
{
    double most = g * (double)share[top];
    int32_t best = top;
    for (int64_t k = 0; k < l->n; k++) {
        if (l->first[k] != k)
            continue;
        double all = (1 - g) * (double)mass[k];
        if (l->ids[k] < p->vocab)
            all += g * (double)share[l->ids[k]];
        if (all > most || (all == most && l->ids[k] < best)) {
            most = all;
            best = l->ids[k];
        }
    }
    return best;
}

/* What a row came to: posterior of the vocabulary, and what each copying weight's gradient is; both times 1/count. */
typedef struct slopes {
    double made, gate, weight;
} slopes;

static void write_gradients(const pointer *p, const source_line *l, int64_t row, int32_t target, const slopes *d,
                            real *share)
{
    const cpl_run_context *r = p->r;
    if (p->logit_gradient) {
        if (d->made == 0)
            memset(share, 0, (size_t)p->vocab * sizeof *share);
        else
            r->kernels->scale(p->vocab, (real)d->made, share, share);
        if (target < p->vocab)
            share[target] -= (real)d->made;
    }
    if (r->out[OUT_DGATE].data)
        r->out[OUT_DGATE].data[row] = (real)d->gate;
    for (int64_t k = 0; r->out[OUT_DWEIGHTS].data && k < l->n; k++)
        r->out[OUT_DWEIGHTS].data[l->weights + k] = (real)(target && l->ids[k] == target ? d->weight : 0);
}

/* The label's share is taken from the logits, not from the softmax, where it may be too small for a float. */
static void run_row(const pointer *p, int64_t row, real *logits, real *mass)
{
    const cpl_run_context *r = p->r;
    source_line l = line_of(p, row);
    int32_t target = r->in[IN_TARGET].ids[row], top = -1;
    slopes d = {0};
    p->loss[row] = p->correct[row] = 0;
    if (target) {
        if (r->in[IN_B].data)
            r->kernels->add(p->vocab, logits, r->in[IN_B].data, logits);
        r->kernels->argmax(1, p->vocab, logits, p->vocab, &top);
        double below = top >= 0 && target < p->vocab ? (double)logits[target] - (double)logits[top] : -INFINITY;
        r->kernels->softmax(1, p->vocab, logits, p->vocab);
        gather_mass(&l, r->in[IN_WEIGHTS].data + l.weights, mass);
        double g = 1 / (1 + exp(-(double)r->in[IN_GATE].data[row])), copied = mass_of(&l, mass, target);
        double made = top >= 0 ? g * exp(below) * (double)logits[top] : (double)NAN;
        double all = made + (1 - g) * copied;
        p->loss[row] = (real)-log(all <= 0 ? TINY : all);
        p->correct[row] = top >= 0 && best_of(p, &l, mass, logits, top, g) == target;
        if (!(all <= 0))
            d = (slopes){(double)p->scale * made / all, (double)p->scale * (g - made / all),
                         -(double)p->scale * (1 - g) / (all < TINY ? TINY : all)};
    }
    write_gradients(p, &l, row, target, &d, logits);
}

static void rows_task(void *arguments, int64_t task, int thread)
{
    const pointer *p = arguments;
    for (int64_t k = task * TASK_ROWS; k < p->rows && k < (task + 1) * TASK_ROWS; k++)
        run_row(p, p->row + k, p->logits + k * p->vocab, p->mass + thread * p->s->longest);
}

/* ---- blocks ---- */

/* Bias gradient of a block: columns are dealt out, rows added in order. */
static void bias_task(void *arguments, int64_t task, int thread)
{
    const pointer *p = arguments;
    int64_t lo = task * COLUMNS, n = p->vocab - lo < COLUMNS ? p->vocab - lo : COLUMNS;
    (void)thread;
    p->r->kernels->add_rows(p->rows, n, p->logits + lo, p->vocab, p->r->out[OUT_DB].data + lo);
}

/* From the block's logit gradients; beta 0 begins the sums. Of a part of a batch, dw and db are weighted. */
static void block_gradients(pointer *p, real beta)
{
    const cpl_run_context *r = p->r;
    int64_t in = r->in[IN_X].width, vocab = p->vocab;
    const real *x = r->in[IN_X].data + p->row * in;
    if (r->out[OUT_DX].data)
        cpl_projection_input(&p->projection, p->rows, p->logits, r->out[OUT_DX].data + p->row * in);
    if (r->add)
        cpl_loss_scale(r, p->rows * vocab, r->add_weight, p->logits, p->logits);
    if (r->out[OUT_DW].data)
        cpl_projection_weights(&p->projection, p->rows, x, p->logits, beta, r->out[OUT_DW].data);
    if (r->out[OUT_DB].data && r->in[IN_B].data)
        cpl_run_tasks(r, (vocab + COLUMNS - 1) / COLUMNS, bias_task, p);
}

static void begin_run(pointer *p, const cpl_run_context *r, int tied)
{
    cpl_carve c = {.base = r->workspace};
    const cpl_tensor *x = &r->in[IN_X];
    *p = (pointer){.r = r, .t = cpl_tensor_geometry(r, &r->in[IN_TARGET]), .s = cpl_tensor_geometry(r, &r->in[IN_COPY]),
                   .projection = cpl_projection_of(r, tied), .vocab = cpl_projection_vocab(r->in[IN_W].type, tied),
                   .logit_gradient = r->out[OUT_DX].data || r->out[OUT_DW].data || r->out[OUT_DB].data};
    sizes n = {.rows = x->rows, .block = cpl_loss_block_rows(r->block_rows), .tokens = p->s->rows,
               .batch = p->t->batch, .longest_t = p->t->longest, .longest_s = p->s->longest, .vocab = p->vocab,
               .threads = cpl_pool_threads(r->pool)};
    void *index = carve(p, &c, &n);
    p->index = cpl_pair_index_make(index, p->t, p->s);
}

void cpl_pointer_loss_forward(const cpl_run_context *r, int tied)
{
    pointer p;
    begin_run(&p, r, tied);
    int64_t rows = r->in[IN_X].rows, in = r->in[IN_X].width, count = cpl_loss_count(&r->in[IN_TARGET]);
    int64_t most = cpl_loss_block_rows(r->block_rows), blocks = (rows + most - 1) / most;
    int64_t block = blocks ? (rows + blocks - 1) / blocks : 0;
    p.scale = count ? (real)1 / (real)count : 0;
    cpl_run_tasks(r, p.t->batch, sentence_task, &p);
    int begins = !r->add || r->add_first;
    if (r->out[OUT_DB].data && begins)
        memset(r->out[OUT_DB].data, 0, (size_t)p.vocab * sizeof(real));
    if (!rows && r->out[OUT_DW].data && begins)
        cpl_run_zero(r, r->out[OUT_DW].data, in * p.vocab);
    for (int64_t row = 0; row < rows; row += block) {
        p.row = row;
        p.rows = rows - row < block ? rows - row : block;
        cpl_projection_forward(&p.projection, p.rows, r->in[IN_X].data + row * in, NULL, p.logits);
        cpl_run_tasks(r, (p.rows + TASK_ROWS - 1) / TASK_ROWS, rows_task, &p);
        if (p.logit_gradient)
            block_gradients(&p, row || !begins ? 1 : 0);
    }
    cpl_loss_finish(r, count, p.loss, p.correct, rows);
}
