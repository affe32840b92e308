/* keras.h: where each of our parameters stands among Keras's weights. Our gates, kernels and biases have Keras's order;
 * what differs is the name, the shape (heads are a dimension of their own) and the GRU of decoder steps, whose two rows
 * of bias are two parameters here. */
#ifndef CPL_API_KERAS_H
#define CPL_API_KERAS_H

#include "config/config.h"
#include "graph/parameters.h"
#include "io/hdf5.h"

enum { CPL_KERAS_NAME = 200, CPL_KERAS_RANK = 3 };

typedef enum cpl_keras_gates { CPL_KERAS_NO_GATES, CPL_KERAS_ZRH, CPL_KERAS_IFCO } cpl_keras_gates;

typedef struct cpl_keras_tensor {
    char name[CPL_KERAS_NAME]; /* "decoder/rnn/cell/vars/2" */
    int rank;
    int64_t shape[CPL_KERAS_RANK];
    int row;                   /* −1: all of it; else the row of [2 gates] that our parameter is */
    int may_lack;              /* 1: zero where the file has none (biases of additive attention) */
    cpl_keras_gates gates;     /* what the last dimension is made of */
} cpl_keras_tensor;

/* Fills t with the place of parameter i by the choice-th row of the table that fits; returns 0 when there is none.
 * Row 0 is where export puts it; import looks at all. */
int cpl_keras_place(const cpl_config *config, const cpl_parameters *p, size_t i, int choice, cpl_keras_tensor *t);

/* ---- keras_map.c: the user's file of other names ---- */

typedef struct cpl_keras_map cpl_keras_map;

/* Lines "THEIRS OURS" (a path, or the start of one up to a '/', and what stands for it) and "gates PATH ORDER" (the
 * layer's gates stand in this order: a permutation of zrh, with n for h allowed, or of ifco). '#' begins a comment. */
cpl_status cpl_keras_map_read(cpl_keras_map **m, const char *path, cpl_error *err);
void cpl_keras_map_free(cpl_keras_map *m); /* NULL is fine */
/* The name that a tensor of the file goes by; valid until the next call. m may be NULL. */
const char *cpl_keras_map_name(cpl_keras_map *m, const char *theirs);
/* order[k]: which block of the file is gate k of ours; 0 when it is Keras's own. name: as renamed. */
int cpl_keras_map_gates(cpl_keras_map *m, const char *name, cpl_keras_gates gates, int order[4]);
/* CPL_USAGE when a line of the file was never used. */
cpl_status cpl_keras_map_check(const cpl_keras_map *m, cpl_error *err);

/* CPL_USAGE for what the reference classes do not have: a projection tied to an embedding, input feeding. */
cpl_status cpl_keras_check(const cpl_config *config, cpl_error *err);

#endif
