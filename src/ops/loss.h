/* loss.h: what the losses share: cross_entropy, linear_cross_entropy, pointer_cross_entropy, coverage. */
#ifndef CPL_OPS_LOSS_H
#define CPL_OPS_LOSS_H

#include "graph/op.h"

/* Refuses what is not logits over the target's vocabulary: input `logits` must end in a dimension that is NAMED
 * vocab (sizes that happen to agree do not pass) and has as many entries as the ids of input `target`. */
cpl_status cpl_loss_check(const cpl_shape_context *s, int logits, int target, cpl_error *err);

/* Refuses attention weights of several heads: of those it is not known which one points. what: "copying". */
cpl_status cpl_one_head_check(const cpl_shape_context *s, int weights, const char *what, cpl_error *err);

/* Rows whose logits are made at once, at most: the loss's own choice, or `limit` where that is smaller and not 0. */
enum { CPL_LOSS_BLOCK = 384 };
static inline int64_t cpl_loss_block_rows(int64_t limit)
{
    return limit > 0 && limit < CPL_LOSS_BLOCK ? limit : CPL_LOSS_BLOCK;
}

/* Labels that are not 0. */
int64_t cpl_loss_count(const cpl_tensor *target);

/* Outputs 0 … 2, loss, correct and count, from rows of losses and hits; all 0 where nothing counts. */
void cpl_loss_finish(const cpl_run_context *r, int64_t count, const real *loss, const real *correct, int64_t rows);
/* The mean of rows of losses into any output. */
void cpl_loss_mean(const cpl_tensor *out, int64_t count, const real *loss, int64_t rows);

/* cpl_loss_attributes: the smoothing of a run, 0 outside of training. */
real cpl_loss_smoothing(const cpl_run_context *r);

/* The rows of a block over the pool: the kernel of the same name, rows dealt out. bias may be NULL. */
typedef struct cpl_loss_rows {
    int64_t rows, width;
    real *logits;
    const real *bias;
    const int32_t *target;
    real scale;
    int gradient;
    real *loss, *correct; /* loss: without smoothing */
    real smoothing;       /* 0: smoothed is not used */
    real *smoothed;       /* the loss with it, of which the gradient is */
    const cpl_kernels *kernels;
} cpl_loss_rows;
void cpl_loss_run(const cpl_run_context *r, const cpl_loss_rows *l);

/* The hidden outputs from `first` on are the gradients of the first `inputs` inputs already; this scales them, and is
 * only of use where the loss is not what is minimised itself. */
void cpl_loss_backward(const cpl_run_context *r, int inputs, int first);

/* Of a loss that projects x [rows in] by w, inputs 0 and 1, with the gradients as outputs first and first + 1. tied: w
 * is the table of an embedding [vocab in], not [in vocab]. */
double cpl_loss_flops(const cpl_size_context *s, int first, int tied);
/* Refuses a table (input w [vocab in]) of another vocabulary than the ids of input `target`. */
cpl_status cpl_table_check(const cpl_shape_context *s, int w, int target, cpl_error *err);

/* linear_loss.c */
size_t cpl_linear_loss_workspace(const cpl_size_context *s, int tied);
void cpl_linear_loss_forward(const cpl_run_context *r, int tied);
/* pointer_loss.c */
size_t cpl_pointer_loss_workspace(const cpl_size_context *c, int tied);
void cpl_pointer_loss_forward(const cpl_run_context *r, int tied);

/* to = by · from over the pool. */
void cpl_loss_scale(const cpl_run_context *r, int64_t n, real by, const real *from, real *to);

#endif
