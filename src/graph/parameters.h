/* parameters.h: the trainable tensors of a model, by path. One store serves all graphs of the model (training,
 * encode, step), so what one trains the others use. */
#ifndef CPL_GRAPH_PARAMETERS_H
#define CPL_GRAPH_PARAMETERS_H

#include <stdint.h>
#include "base/map.h"
#include "base/memory.h"
#include "couplet.h"
#include "kernel/packed.h"

enum { CPL_PARAMETER_RANK = 3 };

/* How compiled programs read a parameter, besides as plain floats: by a call that knows packed weights. */
enum {
    CPL_READ_COLUMNS = 1 << 0, /* a right operand of products, [depth columns] */
    CPL_READ_ROWS = 1 << 1,    /* a table, [columns depth]: rows are taken, or are the columns of a product */
    CPL_READ_PLAIN = 1 << 2    /* any other way */
};

typedef struct cpl_parameter_info {
    const char *path; /* "decoder.rnn.kernel" */
    int rank;
    int64_t size[CPL_PARAMETER_RANK];
    const char *dim[CPL_PARAMETER_RANK]; /* names */
    int64_t elements;
    int64_t offset;   /* in elements, in the block of values (64-byte steps) */
    int64_t slot;     /* the same in blocks of gradients and of optimizer state, where what is frozen has no place */
    cpl_initializer initializer;
    const char *where; /* "file.c:12": who made it first */
    int reached;       /* a gradient reaches it (set by differentiation) */
    int trainable;     /* 0: frozen. Set by cpl_parameters_set_trainable */
    int read_as;       /* CPL_READ_… of all programs that were compiled */
    int projects;      /* a table that is read as the columns of a product: every row has a gradient (tied) */
    const cpl_packed *packed; /* as products read them; there are no plain floats then. Set by cpl_parameters_pack */
} cpl_parameter_info;

typedef struct cpl_parameters cpl_parameters;

cpl_parameters *cpl_parameters_new(void);
void cpl_parameters_free(cpl_parameters *p);
size_t cpl_parameters_count(const cpl_parameters *p);
cpl_parameter_info *cpl_parameters_at(const cpl_parameters *p, size_t i);
int cpl_parameters_find(const cpl_parameters *p, const char *path); /* index or −1 */
/* Index of the parameter; made when new. −1 and err when the path exists with another shape or memory is short. */
int cpl_parameters_add(cpl_parameters *p, const cpl_parameter_info *wanted, cpl_error *err);

/* Forgets the parameters from index count on (a compile that failed). */
void cpl_parameters_truncate(cpl_parameters *p, size_t count);

int64_t cpl_parameters_elements(const cpl_parameters *p); /* Σ elements, without alignment gaps */
size_t cpl_parameters_bytes(const cpl_parameters *p);     /* of one block of all of them */
/* Blocks of gradients and of optimizer state hold what is trainable alone. Each change of that moves the slots and
 * counts in `layout`: what was laid out before is laid out anew by who owns it. */
size_t cpl_parameters_gradient_bytes(const cpl_parameters *p);
int64_t cpl_parameters_layout(const cpl_parameters *p);

/* Which paths a path or pattern names: the path itself, all that lies under it ("encoder"), or, with * and ?, any path
 * or part of a path from its start to a dot ("*.embedding"). */
int cpl_path_matches(const char *pattern, const char *path);
/* Freezes (0) or thaws (1) what the pattern names. A pattern that names nothing is CPL_USAGE with the nearest name. */
cpl_status cpl_parameters_set_trainable(cpl_parameters *p, const char *pattern, int trainable, cpl_error *err);
/* The nearest name to a path that names nothing, parameter or layer, as a hint; see cpl_error. */
cpl_status cpl_parameters_no_match(const cpl_parameters *p, const char *pattern, cpl_error *err);

/* Allocates values for what is new since the last call; new ones are initialised from (seed, path). Pointers from
 * before a call that added parameters are stale. */
cpl_status cpl_parameters_allocate(cpl_parameters *p, uint64_t seed, cpl_error *err);
real *cpl_parameters_value(const cpl_parameters *p, size_t i); /* NULL when packed */
real *cpl_parameters_values(const cpl_parameters *p); /* the whole block */
/* The first element of parameter i that is no finite number, and that; −1: there is none. */
int64_t cpl_parameters_not_finite(const cpl_parameters *p, size_t i, double *element);

/* ---- for inference: packed weights (kernel/packed.h) ---- */

/* Until cpl_parameters_settle no values are allocated: a file gives them, and what can be packed never exists twice. */
void cpl_parameters_defer(cpl_parameters *p);
int cpl_parameters_deferred(const cpl_parameters *p);
/* Gives parameter i packed memory, all 0, in place of floats; it must be read in one way, as columns or as rows. Values
 * of others are lost: pack before anything is loaded. For inference alone. */
cpl_status cpl_parameters_pack(cpl_parameters *p, size_t i, cpl_weight_type type, cpl_packed **packed, cpl_error *err);
/* 1 when the parameter is read in one way, and so may be packed; of float32 only columns gain by that: a table's rows
 * would be torn apart. */
int cpl_parameters_packable(const cpl_parameter_info *info, cpl_weight_type type);
/* Packs all allocated values that may be, as float32. After CPL_FAILED nothing may be computed with them. */
cpl_status cpl_parameters_pack_values(cpl_parameters *p, cpl_error *err);
cpl_status cpl_parameters_settle(cpl_parameters *p, cpl_error *err);

/* Fills x by the initialiser (initialize.c), a pure function of (seed, path). */
void cpl_initialize(const cpl_parameter_info *info, uint64_t seed, real *x);

#endif
