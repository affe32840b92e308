/* recurrent_kernel.c: the recurrent kernel as the steps of a walk read it, made once a walk.
 *
 * In float32 it is packed (kernel/packed.h): the bits are the same, and where a step has few rows, as steps have when
 * most sentences of a batch have ended, a product no longer spends its time on fetching rows that lie far apart (16
 * rows: 82 against 97 GFLOP/s of 103). Products in bfloat16 round what they read and take it plain. */
#include "kernel/packed.h"
#include "ops/recurrent.h"

/* Below, packing costs more than it saves; double precision is for checking gradients and not packed. */
enum { PACK_ROWS = 7, PACK_STEPS = 4 };

static int in_float32(const cpl_run_context *r)
{
    return sizeof(real) == sizeof(float) && r->kernels->gemm != r->kernels->gemm_bf16;
}

static int64_t packed_reals(int64_t columns, int64_t depth)
{
    return (int64_t)(cpl_packed_bytes(CPL_WEIGHT_FLOAT32, columns, depth) / sizeof(float));
}

int64_t cpl_recurrent_pack_reals(const cpl_recurrent_sizes *n)
{
    return n->batch >= PACK_ROWS ? packed_reals(n->gates, n->u) : 0;
}

int64_t cpl_recurrent_turn_reals(int64_t u, int64_t n)
{
    return packed_reals(u, n);
}

/* ---- making it ---- */

/* Number i of column k is from[i · step + k · next]. */
typedef struct making {
    cpl_packed packed;
    const real *from;
    int64_t step, next;
    int64_t n, u; /* plain: [n u] */
    real *plain;
} making;

static void pack_block(void *arguments, int64_t block, int thread)
{
    making *m = arguments;
    (void)thread;
    cpl_packed_set_block(&m->packed, block, m->from, m->step, m->next);
}

static void pack(const cpl_run_context *r, making *m, int64_t columns, int64_t depth, real *memory)
{
    cpl_packed_place_unset(&m->packed, CPL_WEIGHT_FLOAT32, columns, depth, memory);
    cpl_run_tasks(r, cpl_packed_blocks(&m->packed), pack_block, m);
}

enum { BLOCK = 32 };

/* 32 rows of the result, in squares that stay in the cache. */
static void turn_block(void *arguments, int64_t task, int thread)
{
    const making *m = arguments;
    int64_t lo = task * BLOCK, hi = lo + BLOCK < m->n ? lo + BLOCK : m->n;
    (void)thread;
    for (int64_t k0 = 0; k0 < m->u; k0 += BLOCK) {
        int64_t k1 = k0 + BLOCK < m->u ? k0 + BLOCK : m->u;
        for (int64_t i = lo; i < hi; i++)
            for (int64_t k = k0; k < k1; k++)
                m->plain[i * m->u + k] = m->from[i * m->step + k * m->next];
    }
}

void cpl_recurrent_pack(cpl_recurrent *w, const cpl_recurrent_sizes *n, real *memory)
{
    const cpl_run_context *r = w->r;
    if (!memory || r->in[2].packed || !in_float32(r) || n->batch < PACK_ROWS || w->g->longest < PACK_STEPS)
        return;
    making m = {.from = r->in[2].data, .step = w->gates, .next = 1};
    pack(r, &m, w->gates, w->u, memory);
    w->kernel = m.packed;
}

void cpl_recurrent_turn(const cpl_recurrent *w, int64_t from, int64_t n, real *memory, cpl_recurrent_kernel *turned)
{
    making m = {.from = w->r->in[2].data + from, .step = 1, .next = w->gates, .n = n, .u = w->u, .plain = memory};
    if (in_float32(w->r))
        pack(w->r, &m, w->u, n, memory);
    else
        cpl_run_tasks(w->r, (n + BLOCK - 1) / BLOCK, turn_block, &m);
    *turned = (cpl_recurrent_kernel){.packed = m.packed, .plain = memory};
}

/* ---- reading it ---- */

static void product(const cpl_recurrent *w, const cpl_gemm *g, const cpl_tensor *weights, int64_t from, int thread)
{
    if (w->dealt)
        cpl_run_weights(w->r, g, weights, from);
    else
        cpl_weights_product(w->r, g, weights, from, thread);
}

void cpl_recurrent_forward(const cpl_recurrent *w, const cpl_gemm *g, int64_t from, int thread)
{
    cpl_tensor packed = {.packed = &w->kernel};
    product(w, g, w->kernel.words ? &packed : &w->r->in[2], from, thread);
}

void cpl_recurrent_backward(const cpl_recurrent *w, const cpl_gemm *g, const cpl_recurrent_kernel *turned, int thread)
{
    cpl_tensor b = {.packed = turned->packed.words ? &turned->packed : NULL};
    if (!b.packed)
        b.data = (real *)(uintptr_t)turned->plain; /* which nobody writes */
    product(w, g, &b, 0, thread);
}
