/* op_harness.h: makes a call of any op from its signature and one line of its `tests`, and runs it outside of a
 * graph. The walks over the op table (tests/double/test_gradients.c, tests/ops/test_tables.c) are built on it.
 *
 * A line is words separated by spaces:
 *     u=5              size of a feature variable of the signature
 *     ...=batch,t,3    what the ellipsis stands for: symbols and sizes (default "batch,t", or "batch,t,3" when
 *                      nothing follows the ellipsis); empty: nothing
 *     s=t              makes two time variables of the signature the same symbol (self-attention)
 *     h0=absent        leaves an optional input out
 *     attr.1=2         sets the second 4-byte attribute, an integer, or with a point in it ("0.5") a float
 * Symbols: `s` is 0, `t` is 1, `padded` is 2, `now` (one step of every sentence) is 3. Ids are drawn below the size of
 * the `=vocabulary` dimension, else of the variable `size`; `more=3` adds three (words of the source that the
 * vocabulary lacks). An input named `weights` holds shares: it is drawn in 0 … 1. The variable `hd` counts in
 * multiples of attribute 0, the heads. */
#ifndef CPL_TESTS_SUPPORT_OP_HARNESS_H
#define CPL_TESTS_SUPPORT_OP_HARNESS_H

#include "base/memory.h"
#include "graph/op.h"
#include "graph/signature.h"

enum { CPL_HARNESS_S, CPL_HARNESS_T, CPL_HARNESS_PADDED, CPL_HARNESS_NOW };
enum { CPL_HARNESS_ATTRIBUTES = 16, CPL_HARNESS_THREADS = 8 };

/* Lengths of each sentence over s and t; width of the rectangle; gaps: the steps that exist are spread over it. */
typedef struct cpl_harness_batch {
    const char *name;
    int64_t batch, width;
    const int64_t *s, *t;
    int gaps;
} cpl_harness_batch;

typedef struct cpl_harness {
    const cpl_op *op;
    const char *line;
    const cpl_harness_batch *batch;
    int64_t tail; /* above 0: every feature has this size instead of the line's */
    cpl_signature signature;
    int32_t attributes[CPL_HARNESS_ATTRIBUTES];
    cpl_geometry geometry[CPL_MAX_SYMBOLS];
    cpl_binding binding;
    cpl_arena *arena;
    cpl_type in_type[CPL_MAX_INPUTS], out_type[CPL_MAX_OUTPUTS];
    /* Every tensor has memory of its own with a guard behind it; data NULL: left out, or no gradient (ids). */
    cpl_tensor in[CPL_MAX_INPUTS], out[CPL_MAX_OUTPUTS], dout[CPL_MAX_OUTPUTS], din[CPL_MAX_INPUTS];
    const cpl_kernels *kernels;
    cpl_pool *pool;
    void *scratch[CPL_HARNESS_THREADS];
    int training;
    int64_t block_rows; /* as in cpl_run_context; 0 after opening */
    uint64_t random_key;
} cpl_harness;

/* Opens on the reference kernels with one thread; inputs and output gradients are drawn from `seed`. Fails the
 * running test on any error. Close in any case. */
void cpl_harness_open(cpl_harness *h, const cpl_op *op, const char *line, const cpl_harness_batch *batch, int64_t tail);
void cpl_harness_close(cpl_harness *h);
void cpl_harness_draw(cpl_harness *h, uint64_t seed);
/* Runs on these kernels and threads from now on. */
void cpl_harness_use(cpl_harness *h, const cpl_kernels *kernels, int threads);

/* Both first fill what the op must write, and its workspace, with NaN, and check all guards afterwards.
 * Masks leave tensors out: bit i of no_dout, no_din is gradient i. */
void cpl_harness_forward(cpl_harness *h, int differentiated);
void cpl_harness_backward(cpl_harness *h, unsigned no_dout, unsigned no_din);
/* Forward with out[0] in the memory of in[0]; leaves the result in out[0] and in[0] as it was. */
void cpl_harness_forward_in_place(cpl_harness *h);

static inline int64_t cpl_harness_elements(const cpl_tensor *x)
{
    return x->data ? x->rows * x->width : 0;
}

/* Fails the test unless all elements are numbers. */
void cpl_harness_filled(const cpl_harness *h, const cpl_tensor *x, const char *what, int i);
/* "gru 'u=5 in=3' on batch 'mixed'" in a static buffer, for messages. */
const char *cpl_harness_name(const cpl_harness *h);

/* All outputs and input gradients one after another (ids as numbers); end[k]: where the k-th of them ends. */
typedef struct cpl_harness_results {
    real *data;
    int segments;
    int64_t end[CPL_MAX_OUTPUTS + CPL_MAX_INPUTS];
} cpl_harness_results;
void cpl_harness_collect(const cpl_harness *h, cpl_harness_results *results);

/* Batches that every gradient walk covers: mixed lengths with 0 and 1 and two orders, one sentence, nothing at all,
 * masks with gaps. NULL past the end. */
const cpl_harness_batch *cpl_harness_batch_at(size_t i);

#endif
