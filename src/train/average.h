/* average.h: training.ema: an exponential average of the weights that trains nothing itself. A validation, the examples
 * and model.safetensors use it in place of the weights; the checkpoint has both. Frozen parameters have none. */
#ifndef CPL_TRAIN_AVERAGE_H
#define CPL_TRAIN_AVERAGE_H

#include "config/config.h"
#include "graph/program.h"

typedef struct cpl_average cpl_average;

/* Of the average's tensors in a checkpoint: "optimizer.average.encoder.rnn.kernel". */
#define CPL_AVERAGE_PREFIX "optimizer.average."

/* Bytes of the average under these options: 0 without one. */
size_t cpl_average_bytes(const cpl_config_training *t, const cpl_parameters *p);
/* Begins at the weights as they are now. t and the engine must outlive it. */
cpl_status cpl_average_new(cpl_average **a, const cpl_config_training *t, cpl_engine *engine, cpl_error *err);
void cpl_average_free(cpl_average *a); /* NULL is fine */

/* After update number `step` (from 1). */
void cpl_average_update(cpl_average *a, int64_t step);
/* Weights and average change places; a second call brings them back, bit by bit. */
void cpl_average_swap(cpl_average *a);
/* The average, laid out by the parameters' slots: for the checkpoint. */
real *cpl_average_block(const cpl_average *a);

#endif
