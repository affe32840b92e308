/* recurrent.h: what gru, gru_before and lstm share: the walk over the steps in parts of the batch, the product of
 * the input for all steps at once, the matrix of previous states, and the gradients that need no walk.
 *
 * Rows of x whose ids are equal are equal themselves (an embedding; pass share_rows says so with one more input, ids):
 * their product with W is made once, and the gradients of W and x from the sum of their gates' gradients. dx is then
 * the sum for all rows of an id, in its first row, with zeros in the others: right for whoever adds them up by id.
 *
 * A part is a range of sentence positions that one task takes through all of its steps; parts never wait for each
 * other. Rows are independent in bits (kernel.h), so where the batch is cut changes nothing but the time. */
#ifndef CPL_OPS_RECURRENT_H
#define CPL_OPS_RECURRENT_H

#include <string.h>
#include "graph/op.h"
#include "ops/carve.h"

enum { CPL_RECURRENT_PARTS = 64 };

/* Columns of the recurrent kernel turned, as the products of the steps backward read them. */
typedef struct cpl_recurrent_kernel {
    cpl_packed packed; /* words NULL: plain */
    const real *plain;
} cpl_recurrent_kernel;

typedef struct cpl_recurrent {
    const cpl_run_context *r;
    const cpl_geometry *g;
    int reverse;
    int64_t in, u, gates; /* width of x, of a state, and of all gates together */
    int64_t distinct;     /* rows of x that are multiplied */
    real *x;              /* [distinct in] */
    int32_t *which;       /* [rows] the one of these that a row equals; NULL: x is taken as it is */
    int32_t *first;       /* [distinct] the first row that equals it */
    real *mask, *masked;  /* recurrent dropout: [batch u] twice; NULL: nothing is dropped */
    cpl_packed kernel; /* forward: see cpl_recurrent_pack; words NULL: it is read where it stands */
    int dealt; /* one part, whose products are dealt to the pool step by step: few rows with much to read */
    int64_t parts;
    int64_t cut[CPL_RECURRENT_PARTS + 1]; /* part p: positions cut[p] … cut[p + 1] − 1 */
} cpl_recurrent;

/* Sizes of a call for `workspace`. */
typedef struct cpl_recurrent_sizes {
    int64_t rows, batch, u, in, gates;
    int64_t entries;  /* of the ids; 0: none were given */
    int drops;        /* 1: the recurrent product misses elements of the state */
    int64_t distinct; /* rows of x that are multiplied, at most */
} cpl_recurrent_sizes;

/* ids: the number of that input. */
cpl_recurrent_sizes cpl_recurrent_call_sizes(const cpl_size_context *s, int ids);
/* The first part of a call's workspace, which cpl_recurrent_begin uses. */
void cpl_recurrent_carve(cpl_carve *c, const cpl_recurrent_sizes *n);
/* 2 · rows · gates · (in + u) */
double cpl_recurrent_flops(const cpl_size_context *s);

/* From inputs 0 … 2 (x, w, r), the ids and the attributes. Cuts the batch so that the costliest part costs the least.
 * Gives the sizes of this run; c: the beginning of the workspace, which moves on. */
cpl_recurrent_sizes cpl_recurrent_begin(cpl_recurrent *w, const cpl_run_context *r, int ids, cpl_carve *c);

/* The time index at walk position i = 0 … longest − 1, in the order of the forward pass. */
static inline int64_t cpl_recurrent_time(const cpl_recurrent *w, int64_t i)
{
    return w->reverse ? w->g->longest - 1 - i : i;
}

/* How many sentences of the part exist at time k. */
static inline int64_t cpl_recurrent_alive(const cpl_recurrent *w, int64_t part, int64_t k)
{
    int64_t active = cpl_geometry_active(w->g, k), lo = w->cut[part], hi = w->cut[part + 1];
    return active <= lo ? 0 : (active < hi ? active : hi) - lo;
}

/* xg[distinct gates] = x·W for all steps. */
void cpl_recurrent_input(const cpl_recurrent *w, real *xg);

/* The n rows of x·W from packed row `row` on, of sentence position lo on, to be changed by the caller: where they do
 * not stand side by side, in their rows of `rows` [batch gates]. */
real *cpl_recurrent_projected(const cpl_recurrent *w, real *xg, int64_t row, int64_t lo, int64_t n, real *rows);

/* to[n width] = rows of a state that stood before time k for the first n sentences of a part: rows of `states`
 * [batch t width] at the time before, or of `first` [batch width] (NULL: zeros) at the beginning. */
void cpl_recurrent_previous(const cpl_recurrent *w, int64_t part, int64_t k, const real *states, const real *first,
                            real *to);

/* Copies the part's rows of `from` [batch u] (NULL: zeros) to the same rows of `to`. */
void cpl_recurrent_set(const cpl_recurrent *w, int64_t part, const real *from, real *to);

/* ---- recurrent dropout (recurrent_drop.c): h·m in place of h in the recurrent product, m the same in all steps of a
 * sentence. Without dropout these do nothing and give back what they got. ---- */

/* Draws the masks of this run; from cpl_recurrent_begin. */
void cpl_recurrent_draw(cpl_recurrent *w);
/* h·m of n rows from sentence position lo on: in rows of w->masked, or in place. */
const real *cpl_recurrent_masked(const cpl_recurrent *w, int64_t lo, int64_t n, const real *h);
void cpl_recurrent_mask(const cpl_recurrent *w, int64_t lo, int64_t n, real *h);
/* The product g, whose result [n u] is the gradient of h·m: added, times m, to to[n u], or put there (beta 0). */
void cpl_recurrent_unmasked(const cpl_recurrent *w, int64_t lo, const cpl_gemm *g, const cpl_recurrent_kernel *turned,
                            int thread);

/* ---- the recurrent kernel in the steps (recurrent_kernel.c) ---- */

/* Reals for it, forward (0: it is read where it stands), and for n of its columns, turned. */
int64_t cpl_recurrent_pack_reals(const cpl_recurrent_sizes *n);
int64_t cpl_recurrent_turn_reals(int64_t u, int64_t n);
/* Before a walk forward, into so many reals: packs it where that pays and it is not packed anyway. NULL: never. */
void cpl_recurrent_pack(cpl_recurrent *w, const cpl_recurrent_sizes *n, real *memory);
/* Before a walk backward: n columns of it from `from` on, turned, [n u]. */
void cpl_recurrent_turn(const cpl_recurrent *w, int64_t from, int64_t n, real *memory, cpl_recurrent_kernel *turned);

/* In a step forward: the product of a part's rows, all of g but b, with g->n columns of the kernel from `from` on. */
void cpl_recurrent_forward(const cpl_recurrent *w, const cpl_gemm *g, int64_t from, int thread);
/* In a step backward: with what was turned. */
void cpl_recurrent_backward(const cpl_recurrent *w, const cpl_gemm *g, const cpl_recurrent_kernel *turned, int thread);

/* op(A)·op(B) of contiguous or strided matrices over the pool; k = 0 gives zeros. */
void cpl_recurrent_product(const cpl_recurrent *w, const cpl_gemm *g);

/* After the walk, from dxg[rows gates], which may be changed: dx, dw, and the first row of db. */
void cpl_recurrent_gradients(const cpl_recurrent *w, real *dxg);

#endif
