/* op.h: what an op is. ONE FILE in ops/ = ONE OP: forward, backward, one descriptor; one line in ops.def.
 *
 * The signature is documentation, check, shape rule and generator of test inputs at once:
 *
 *     "x[batch t in] w[in 3u] r[u 3u] b[2 3u]? h0[batch u]? -> y[batch t u] h[batch u] ; keep[batch t 4u]"
 *
 * Names are variables of this op; `3u` is three times u, `a+b` a sum, `?` optional, `...` any leading dimensions,
 * `=vocab` the dimension of the vocabulary that the op's id input counts in; `id` in front makes it an id tensor.
 * Outputs behind `;` are hidden: they exist only when the call is differentiated (`keep` for the backward pass). */
#ifndef CPL_GRAPH_OP_H
#define CPL_GRAPH_OP_H

#include <stddef.h>
#include <stdint.h>
#include "base/log.h"
#include "base/threads.h"
#include "couplet.h"
#include "graph/geometry.h"
#include "graph/type.h"
#include "kernel/packed.h"

enum { CPL_MAX_INPUTS = 8, CPL_MAX_OUTPUTS = 8 };

/* A tensor while it runs. data is NULL for an input that was left out, a hidden output that is not kept, a gradient
 * that nobody needs, or packed weights (only inputs that are the op's `weights` or `tables` can be such). */
typedef struct cpl_tensor {
    const cpl_type *type;
    union {
        real *data;
        int32_t *ids;
    };
    int64_t rows;  /* of this batch (cpl_type_rows) */
    int64_t width; /* elements of a row (cpl_type_width) */
    const cpl_packed *packed; /* weights as products read them; NULL: plain floats */
} cpl_tensor;

/* All that an op sees while it runs. */
typedef struct cpl_run_context {
    const cpl_kernels *kernels;
    cpl_pool *pool;
    void *const *scratch;          /* gemm scratch of each thread */
    const cpl_geometry *geometry;  /* by symbol */
    const cpl_binding *binding;
    const cpl_log *log;            /* the program's messages */
    const char *path;              /* of the call: layer path */
    const void *attributes;
    void *workspace;               /* as many bytes as the op's `workspace` asked for, 64-byte aligned */
    int training;                  /* dropout and the like are active */
    uint64_t random_key;           /* of (seed, step, node): stable when nodes move */
    int64_t block_rows;            /* ops that work in blocks take no more rows at once; 0: their own choice */
    uint32_t add;                  /* outputs, of the op's `adds`, that are gradients to add to: += add_weight · d … */
    int add_first;                 /* … or = add_weight · d, in the first part of a batch */
    real add_weight;
    int64_t first_sentence;        /* of this run in its batch: random numbers go by the place in the batch */
    int64_t loop_step;             /* CPL_OP_CARRY in a loop: the step; backward begins with one call for the longest */
    const cpl_geometry *loop_whole;/* CPL_OP_CARRY: the geometry of the loop's time as a whole */
    cpl_tensor in[CPL_MAX_INPUTS];
    cpl_tensor out[CPL_MAX_OUTPUTS];  /* hidden ones behind the visible ones */
    cpl_tensor dout[CPL_MAX_OUTPUTS]; /* backward: gradients of the visible outputs; data NULL: zero */
    cpl_tensor din[CPL_MAX_INPUTS];   /* backward: where to write; data NULL: not needed. Overwritten, not added to. */
} cpl_run_context;

/* What `workspace` may ask: types of the call, the largest sizes, and the number of threads. */
typedef struct cpl_size_context {
    const cpl_binding *binding;
    const cpl_type *in[CPL_MAX_INPUTS]; /* NULL: left out */
    const cpl_type *out[CPL_MAX_OUTPUTS];
    const void *attributes;
    int64_t block_rows; /* as in cpl_run_context */
    int threads;
    int backward;
    int differentiated; /* hidden outputs exist */
} cpl_size_context;

/* What a `check` sees before and a `shape` sees after the generic match: the call's types, to refuse or to amend. */
typedef struct cpl_shape_context {
    const void *attributes;
    const char *path;                    /* of the layer being built */
    const cpl_type *in[CPL_MAX_INPUTS];  /* NULL: left out */
    const char *in_path[CPL_MAX_INPUTS]; /* who made it */
    cpl_type out[CPL_MAX_OUTPUTS];       /* shape only */
} cpl_shape_context;

enum {
    CPL_KEEP_IN0 = 1 << 0, CPL_KEEP_IN1 = 1 << 1, CPL_KEEP_IN2 = 1 << 2, CPL_KEEP_IN3 = 1 << 3,
    CPL_KEEP_IN4 = 1 << 4, CPL_KEEP_IN5 = 1 << 5, CPL_KEEP_IN6 = 1 << 6, CPL_KEEP_IN7 = 1 << 7,
    CPL_KEEP_OUT0 = 1 << 8, CPL_KEEP_OUT1 = 1 << 9, CPL_KEEP_OUT2 = 1 << 10, CPL_KEEP_OUT3 = 1 << 11,
    CPL_KEEP_OUT4 = 1 << 12, CPL_KEEP_OUT5 = 1 << 13
};

enum {
    CPL_OP_EFFECT = 1 << 0,     /* runs even when nothing reads its outputs (print) */
    CPL_OP_RANDOM = 1 << 1,     /* two calls are never equal */
    CPL_OP_READY = 1 << 2,      /* hidden outputs 0 … are already the gradients of inputs 0 … for dout[0] = 1 */
    CPL_OP_IN_PLACE = 1 << 3,   /* out[0] may be the memory of in[0] */
    CPL_OP_NO_GRADIENT = 1 << 4,/* no gradient flows through it (argmax) */
    CPL_OP_PASS = 1 << 5,       /* the gradient of every input is the gradient of the output itself (add) */
    CPL_OP_LOCAL = 1 << 6,      /* a row of its outputs over t needs that step of t alone: may stand in a loop over t */
    CPL_OP_CARRY = 1 << 7,      /* carries a state from step to step of a loop; sees whole tensors there (previous) */
    CPL_OP_PASS_FIRST = 1 << 8, /* the gradient of input 0 is the gradient of the output itself (put) */
    CPL_OP_CHEAP = 1 << 9,      /* a walk over its elements: may be run again where its outputs are not kept */
    CPL_OP_BLOCKS = 1 << 10     /* works in blocks of rows: takes block_rows at once */
};

typedef struct cpl_op {
    const char *name;
    const char *doc;       /* one line */
    const char *signature;
    uint32_t keeps;        /* what the backward pass reads: CPL_KEEP_… (hidden outputs are always kept) */
    uint32_t for_weights;  /* of keeps: what is read for the gradient of input 1 alone, the weights (may be frozen) */
    uint32_t (*keeps_of)(const void *attributes); /* instead of keeps, where it depends on attributes; NULL: keeps */
    uint32_t flags;
    uint32_t adds;         /* hidden outputs (1 << index) that it can add to, as the run context says */
    uint32_t weights;      /* inputs (1 << index) that may be packed: right operands of products, as columns */
    uint32_t tables;       /* the same, a table whose rows are taken, or are the columns of a product */
    uint32_t reports;      /* visible outputs (1 << index) that are to read: a gradient that arrives there is refused */
    int ids;               /* above 0: the optional input of ids by which rows of input 0 are equal (share_rows.c) */
    size_t attributes;     /* bytes of the attribute struct, compared bytewise for equal nodes: no padding bytes */
    cpl_status (*check)(const cpl_shape_context *s, cpl_error *err); /* before the generic match; may be NULL */
    cpl_status (*shape)(cpl_shape_context *s, cpl_error *err);       /* after it; may be NULL */
    size_t (*workspace)(const cpl_size_context *s);                  /* bytes; NULL: none */
    void (*forward)(const cpl_run_context *r);
    void (*backward)(const cpl_run_context *r);                      /* NULL with CPL_OP_NO_GRADIENT */
    double (*flops)(const cpl_size_context *s);                      /* of the forward pass; NULL: negligible */
    const char *const *tests; /* NULL-terminated: sizes for the generic tests, "u=5 in=3 b=absent" (see tests/ops) */
} cpl_op;

/* What the backward pass of the op with these attributes reads. */
uint32_t cpl_op_keeps(const cpl_op *op, const void *attributes);

/* ---- helpers for op files ---- */

/* C = op(A) op(B) + beta C over the pool: cut into tiles by shape, never by the number of threads. */
void cpl_run_gemm(const cpl_run_context *r, const cpl_gemm *g);
/* The same where B is w, or n of its columns from `from` on, packed or not: THE place that chooses the
 * product. g has all but b; transpose_b: w is a table, whose rows are the columns. */
void cpl_run_weights(const cpl_run_context *r, const cpl_gemm *g, const cpl_tensor *w, int64_t from);
/* f(A · w + bias), the whole of w; bias NULL: none. */
void cpl_run_dense(const cpl_run_context *r, const cpl_gemm *g, const cpl_tensor *w, const real *bias,
                   cpl_activation f);
/* A product with w by the calling thread alone, which is `thread`. */
void cpl_weights_product(const cpl_run_context *r, const cpl_gemm *g, const cpl_tensor *w, int64_t from, int thread);
/* to[n] = row i of a table. */
void cpl_table_row(const cpl_tensor *w, int64_t i, int64_t n, real *to);
/* Deals tasks to the pool. */
void cpl_run_tasks(const cpl_run_context *r, int64_t tasks, cpl_task task, void *arguments);
/* y[n] = Σ rows of x[rows n], in row order (columns are dealt to threads). */
void cpl_run_sum_rows(const cpl_run_context *r, int64_t rows, int64_t n, const real *x, real *y);
/* Elementwise work in chunks of a fixed size: task is called with (chunk index); see cpl_chunk. */
enum { CPL_CHUNK = 16384 };
static inline int64_t cpl_chunks(int64_t n) { return (n + CPL_CHUNK - 1) / CPL_CHUNK; }
void cpl_run_zero(const cpl_run_context *r, real *x, int64_t n);
void cpl_run_copy(const cpl_run_context *r, const real *x, real *y, int64_t n);

/* The geometry of the first time axis of a tensor. */
static inline const cpl_geometry *cpl_tensor_geometry(const cpl_run_context *r, const cpl_tensor *x)
{
    for (int i = 0; i < x->type->rank; i++)
        if (x->type->dim[i].kind == CPL_DIM_TIME)
            return &r->geometry[x->type->dim[i].symbol];
    return NULL;
}

/* ---- the table ---- */

const cpl_op *cpl_op_named(const char *name);
const cpl_op *cpl_op_at(size_t i); /* NULL past the end */

#endif
