/* recurrent.c: the shared parts of the recurrent ops (see recurrent.h). */
#include "ops/recurrent.h"

#include "graph/attributes.h"

static int drops(const cpl_recurrent_attributes *a)
{
    return a->dropout > 0;
}

static cpl_recurrent_sizes with_distinct(cpl_recurrent_sizes n)
{
    n.distinct = n.entries && n.entries < n.rows ? n.entries + 1 : n.rows; /* 1 for all ids out of range */
    return n;
}

cpl_recurrent_sizes cpl_recurrent_call_sizes(const cpl_size_context *s, int ids)
{
    return with_distinct((cpl_recurrent_sizes){.rows = cpl_type_rows(s->in[0], s->binding),
                                               .batch = s->binding->batch,
                                               .u = s->in[2]->dim[0].size,
                                               .in = s->in[1]->dim[0].size,
                                               .gates = s->in[2]->dim[1].size,
                                               .entries = s->in[ids] ? s->in[ids]->entries : 0,
                                               .drops = drops(s->attributes)});
}

double cpl_recurrent_flops(const cpl_size_context *s)
{
    double in = (double)s->in[1]->dim[0].size, u = (double)s->in[2]->dim[0].size;
    return 2.0 * (double)cpl_type_rows(s->in[0], s->binding) * (double)s->in[2]->dim[1].size * (in + u);
}

/* ---- cutting the batch ---- */

/* A step costs its rows and about four rows more, for reading the recurrent kernel. */
enum { STEP_COST = 4 };

/* Cuts greedily into parts that cost at most `limit` each. Returns the number of parts, or `most` + 1 when they
 * do not do. Sentences stand longest first, so a part runs as many steps as its first sentence has. */
static int64_t cut_within(const cpl_geometry *g, int64_t limit, int64_t most, int64_t *cut)
{
    int64_t parts = 0, cost = 0;
    cut[0] = 0;
    for (int64_t i = 0; i < g->batch; i++) {
        if (i == 0 || cost + g->length[i] > limit) {
            if (parts == most)
                return most + 1;
            cut[parts++] = i;
            cost = (int64_t)STEP_COST * g->length[i];
        }
        cost += g->length[i];
    }
    cut[parts] = g->batch;
    return parts;
}

/* Up to so many rows a step's time is that of reading the recurrent kernel, which threads then do together. */
enum { DEALT_ROWS = 6, DEALT_NUMBERS = 32768 };

/* Bisects for the smallest limit. One part for each thread: larger products are the faster ones. */
static void cut_batch(cpl_recurrent *w, int threads)
{
    const cpl_geometry *g = w->g;
    w->dealt = threads > 1 && g->batch <= DEALT_ROWS && w->u * w->gates >= DEALT_NUMBERS;
    int64_t most = w->dealt ? 1 : threads < CPL_RECURRENT_PARTS ? threads : CPL_RECURRENT_PARTS;
    int64_t low = 0, high = g->rows + (int64_t)STEP_COST * g->longest;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (cut_within(g, middle, most, w->cut) <= most)
            high = middle;
        else
            low = middle + 1;
    }
    w->parts = cut_within(g, high, most, w->cut);
}

/* ---- rows of x that are equal ---- */

typedef struct equal_space {
    int32_t *which, *first, *slot; /* [rows], [distinct], [slots]: 1 + a number of distinct, or 0 */
    int64_t slots;                 /* a power of two, half of them empty at least */
    real *x;                       /* [distinct in] */
} equal_space;

static equal_space carve_equal(cpl_carve *c, const cpl_recurrent_sizes *n)
{
    equal_space e = {NULL};
    if (!n->entries)
        return e;
    e.which = cpl_carve_bytes(c, (size_t)n->rows * sizeof *e.which);
    e.first = cpl_carve_bytes(c, (size_t)n->distinct * sizeof *e.first);
    for (e.slots = 2; e.slots < 2 * n->distinct; e.slots *= 2)
        ;
    e.slot = cpl_carve_bytes(c, (size_t)e.slots * sizeof *e.slot);
    e.x = cpl_carve_reals(c, n->distinct * n->in);
    return e;
}

static void carve_masks(cpl_carve *c, const cpl_recurrent_sizes *n, cpl_recurrent *w)
{
    w->mask = n->drops ? cpl_carve_reals(c, n->batch * n->u) : NULL;
    w->masked = n->drops ? cpl_carve_reals(c, n->batch * n->u) : NULL;
}

void cpl_recurrent_carve(cpl_carve *c, const cpl_recurrent_sizes *n)
{
    cpl_recurrent unused;
    carve_equal(c, n);
    carve_masks(c, n, &unused);
}

enum { GATHER_ROWS = 64 };

static void gather(void *arguments, int64_t task, int thread)
{
    const cpl_recurrent *w = arguments;
    int64_t lo = task * GATHER_ROWS, hi = lo + GATHER_ROWS < w->distinct ? lo + GATHER_ROWS : w->distinct;
    (void)thread;
    for (int64_t i = lo; i < hi; i++)
        memcpy(w->x + i * w->in, w->r->in[0].data + w->first[i] * w->in, (size_t)w->in * sizeof *w->x);
}

/* The slot of an id: where it stands, or the empty one where it belongs. Ids out of range have rows of the same NaNs,
 * so they are one. */
static int32_t *slot_of(const equal_space *e, const int32_t *ids, int64_t entries, int32_t id)
{
    int known = id >= 0 && id < entries;
    for (uint32_t at = known ? (uint32_t)id * 2654435769u >> 7 : 0;; at++) {
        int32_t *slot = &e->slot[at & (uint64_t)(e->slots - 1)];
        int32_t other = *slot ? ids[e->first[*slot - 1]] : 0;
        if (!*slot || other == id || (!known && (other < 0 || other >= entries)))
            return slot;
    }
}

/* Where nearly all rows differ they are taken as they are. */
static void find_equal(cpl_recurrent *w, const int32_t *ids, const cpl_recurrent_sizes *n, equal_space e)
{
    int64_t distinct = 0;
    memset(e.slot, 0, (size_t)e.slots * sizeof *e.slot);
    for (int64_t row = 0; row < n->rows; row++) {
        int32_t *slot = slot_of(&e, ids, n->entries, ids[row]);
        if (!*slot) {
            e.first[distinct] = (int32_t)row;
            *slot = (int32_t)++distinct;
        }
        e.which[row] = *slot - 1;
    }
    if (n->distinct == n->rows && distinct > n->rows - n->rows / 8)
        return;
    w->distinct = distinct;
    w->which = e.which, w->first = e.first;
    if (w->x) {
        w->x = e.x;
        cpl_run_tasks(w->r, (distinct + GATHER_ROWS - 1) / GATHER_ROWS, gather, w);
    }
}

cpl_recurrent_sizes cpl_recurrent_begin(cpl_recurrent *w, const cpl_run_context *r, int ids, cpl_carve *c)
{
    const cpl_recurrent_attributes *attributes = r->attributes;
    *w = (cpl_recurrent){.x = r->in[0].data};
    w->r = r;
    w->g = cpl_tensor_geometry(r, &r->in[0]);
    w->reverse = attributes->reverse;
    w->in = r->in[1].type->dim[0].size;
    w->u = r->in[2].type->dim[0].size;
    w->gates = r->in[2].type->dim[1].size;
    cut_batch(w, cpl_pool_threads(r->pool));
    cpl_recurrent_sizes n = with_distinct((cpl_recurrent_sizes){
        .rows = w->g->rows, .batch = w->g->batch, .u = w->u, .in = w->in, .gates = w->gates,
        .entries = r->in[ids].ids ? r->in[ids].type->entries : 0, .drops = drops(attributes)});
    w->distinct = n.rows;
    equal_space e = carve_equal(c, &n);
    carve_masks(c, &n, w);
    if (n.entries)
        find_equal(w, r->in[ids].ids, &n, e);
    cpl_recurrent_draw(w);
    return n;
}

/* ---- rows of states ---- */

static void copy_or_zero(real *to, const real *from, int64_t n)
{
    if (n <= 0)
        return;
    if (from)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        memset(to, 0, (size_t)n * sizeof *to);
}

/* Forward in time the row before step k is the sentence's row at k − 1. In reverse it is the row at k + 1 for the
 * sentences that have one; they come first, and the others begin at k. */
void cpl_recurrent_previous(const cpl_recurrent *w, int64_t part, int64_t k, const real *states, const real *first,
                            real *to)
{
    int64_t u = w->u, lo = w->cut[part], n = cpl_recurrent_alive(w, part, k);
    int64_t before = w->reverse ? k + 1 : k - 1, old = 0;
    if (before >= 0 && before < w->g->longest) {
        old = cpl_recurrent_alive(w, part, before);
        old = old < n ? old : n;
        if (old)
            copy_or_zero(to, states + (w->g->offset[before] + lo) * u, old * u);
    }
    copy_or_zero(to + old * u, first ? first + (lo + old) * u : NULL, (n - old) * u);
}

void cpl_recurrent_set(const cpl_recurrent *w, int64_t part, const real *from, real *to)
{
    int64_t lo = w->cut[part], n = w->cut[part + 1] - lo;
    copy_or_zero(to + lo * w->u, from ? from + lo * w->u : NULL, n * w->u);
}

/* ---- products outside the walk ---- */

void cpl_recurrent_product(const cpl_recurrent *w, const cpl_gemm *g)
{
    if (g->k > 0) {
        cpl_run_gemm(w->r, g);
        return;
    }
    for (int64_t i = 0; i < g->m; i++)
        memset(g->c + i * g->ldc, 0, (size_t)g->n * sizeof(real));
}

void cpl_recurrent_input(const cpl_recurrent *w, real *xg)
{
    cpl_run_weights(w->r, &(cpl_gemm){.m = w->distinct, .n = w->gates, .k = w->in, .a = w->x, .lda = w->in,
                                      .ldb = w->gates, .c = xg, .ldc = w->gates}, &w->r->in[1], 0);
}

real *cpl_recurrent_projected(const cpl_recurrent *w, real *xg, int64_t row, int64_t lo, int64_t n, real *rows)
{
    if (!w->which)
        return xg + row * w->gates;
    rows += lo * w->gates;
    for (int64_t i = 0; i < n; i++)
        memcpy(rows + i * w->gates, xg + w->which[row + i] * w->gates, (size_t)w->gates * sizeof *xg);
    return rows;
}

/* Rows [rows n] of gradients, worked on in place, columns dealt out. */
typedef struct equal_rows {
    const cpl_recurrent *w;
    int64_t n;
    real *x;
} equal_rows;

enum { EQUAL_COLUMNS = 128 };

/* The rows of each id added up, in their order, in the first places: place i is never behind the row that is read. */
static void add_equal(void *arguments, int64_t task, int thread)
{
    const equal_rows *e = arguments;
    const cpl_recurrent *w = e->w;
    int64_t from = task * EQUAL_COLUMNS, n = e->n - from < EQUAL_COLUMNS ? e->n - from : EQUAL_COLUMNS;
    (void)thread;
    for (int64_t row = 0; row < w->g->rows; row++) {
        int32_t i = w->which[row];
        real *x = e->x + row * e->n + from, *sum = e->x + i * e->n + from;
        if (w->first[i] != row)
            w->r->kernels->add(n, sum, x, sum);
        else if (i != row)
            memcpy(sum, x, (size_t)n * sizeof *x);
    }
}

/* Back from the first places to the first row of each id, zeros elsewhere. */
static void spread(void *arguments, int64_t task, int thread)
{
    const equal_rows *e = arguments;
    const cpl_recurrent *w = e->w;
    int64_t from = task * EQUAL_COLUMNS, n = e->n - from < EQUAL_COLUMNS ? e->n - from : EQUAL_COLUMNS;
    (void)thread;
    for (int64_t row = w->g->rows; row-- > 0;) {
        int32_t i = w->which[row];
        real *x = e->x + row * e->n + from;
        if (w->first[i] != row)
            memset(x, 0, (size_t)n * sizeof *x);
        else if (i != row)
            memcpy(x, e->x + i * e->n + from, (size_t)n * sizeof *x);
    }
}

static void on_equal_rows(const cpl_recurrent *w, cpl_task task, int64_t n, real *x)
{
    equal_rows e = {w, n, x};
    if (w->which)
        cpl_run_tasks(w->r, (n + EQUAL_COLUMNS - 1) / EQUAL_COLUMNS, task, &e);
}

void cpl_recurrent_gradients(const cpl_recurrent *w, real *dxg)
{
    const cpl_run_context *r = w->r;
    int64_t in = w->in, gates = w->gates;
    if (r->din[3].data)
        cpl_run_sum_rows(r, w->g->rows, gates, dxg, r->din[3].data);
    if (r->din[0].data || r->din[1].data)
        on_equal_rows(w, add_equal, gates, dxg);
    if (r->din[0].data) {
        cpl_recurrent_product(w, &(cpl_gemm){.transpose_b = 1, .m = w->distinct, .n = in, .k = gates, .a = dxg,
                                             .lda = gates, .b = r->in[1].data, .ldb = gates, .c = r->din[0].data,
                                             .ldc = in});
        on_equal_rows(w, spread, in, r->din[0].data);
    }
    if (r->din[1].data)
        cpl_recurrent_product(w, &(cpl_gemm){.transpose_a = 1, .m = in, .n = gates, .k = w->distinct, .a = w->x,
                                             .lda = in, .b = dxg, .ldb = gates, .c = r->din[1].data, .ldc = gates});
}
