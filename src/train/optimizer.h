/* optimizer.h: adam, adamw and sgd over all parameters of an engine that a gradient reaches. Parameters that none
 * reaches are never touched, not even by weight decay (cases A09, H03). */
#ifndef CPL_TRAIN_OPTIMIZER_H
#define CPL_TRAIN_OPTIMIZER_H

#include "config/config.h"
#include "graph/program.h"

typedef struct cpl_optimizer cpl_optimizer;

/* Bytes of state that the optimizer of these options keeps for parameters of this size. */
size_t cpl_optimizer_state_bytes(const cpl_config_training *t, const cpl_parameters *p);
/* Allocates and touches the state. t, the engine and gradients (laid out by the parameters' slots) must outlive it. */
cpl_status cpl_optimizer_new(cpl_optimizer **o, const cpl_config_training *t, cpl_engine *engine,
                             real *gradients, cpl_error *err);
/* After parts were frozen or thawed: the new block of gradients, and state moved to the new slots. */
cpl_status cpl_optimizer_follow(cpl_optimizer *o, real *gradients, cpl_error *err);
void cpl_optimizer_free(cpl_optimizer *o); /* NULL is fine */

/* Global norm of the gradient, all parameters together; sums of fixed pieces in fixed order, so that it does not
 * depend on the threads. */
double cpl_optimizer_norm(cpl_optimizer *o);
/* 1: clipping needs the norm before an update. */
int cpl_optimizer_needs_norm(const cpl_config_training *t);
/* Update number `step` (from 1) at this rate. norm: what cpl_optimizer_norm gave for this gradient; not read unless it
 * is needed. training.clip_value cuts the gradients where they stand. */
void cpl_optimizer_update(cpl_optimizer *o, int64_t step, double rate, double norm);

/* State tensors for the checkpoint: i = 0 … until NULL. *name receives "m", "v" or "momentum". */
real *cpl_optimizer_state(const cpl_optimizer *o, int i, const char **name);
/* Which parameters it changes. */
int cpl_optimizer_changes(const cpl_parameter_info *info);
/* 1: training.optimizer.sparse_embeddings is set, and this is the table of an embedding and of nothing else: its rows
 * whose gradient is zero keep weights and state in an update. */
int cpl_optimizer_sparse(const cpl_config_training *t, const cpl_parameter_info *info);

#endif
