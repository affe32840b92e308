/* signature.h: reading op signatures (see op.h for the notation), matching a call against one, and making types
 * from one for tests. */
#ifndef CPL_GRAPH_SIGNATURE_H
#define CPL_GRAPH_SIGNATURE_H

#include "base/memory.h"
#include "couplet.h"
#include "graph/op.h"
#include "graph/type.h"

enum { CPL_SIGNATURE_NAME = 24, CPL_SIGNATURE_VARIABLES = 16 };

/* One dimension: `...`, or factor·name (+ factor2·name2), or a number (name empty). */
typedef struct cpl_signature_dim {
    int ellipsis;
    int vocabulary; /* =name */
    int64_t factor, factor2;
    char name[CPL_SIGNATURE_NAME], name2[CPL_SIGNATURE_NAME];
} cpl_signature_dim;

typedef struct cpl_signature_argument {
    char name[CPL_SIGNATURE_NAME];
    int id, optional, hidden;
    int rank;
    cpl_signature_dim dim[CPL_MAX_RANK];
} cpl_signature_argument;

typedef struct cpl_signature {
    int inputs, outputs, visible; /* outputs counts hidden ones too */
    cpl_signature_argument in[CPL_MAX_INPUTS], out[CPL_MAX_OUTPUTS];
} cpl_signature;

/* What the variables came to. An ellipsis is kept as its list of dimensions. */
typedef struct cpl_bindings {
    int count;
    struct {
        char name[CPL_SIGNATURE_NAME];
        cpl_dim dim;
        int from;     /* input that bound it */
        int composed; /* bound as a multiple of it, by a dimension of another name */
    } variable[CPL_SIGNATURE_VARIABLES];
    int ellipsis_rank, ellipsis_from;
    cpl_dim ellipsis[CPL_MAX_RANK];
} cpl_bindings;

/* A malformed signature is a bug of the op's author: CPL_FAILED with the place. */
cpl_status cpl_signature_parse(cpl_signature *s, const char *text, cpl_error *err);

/* Binds the variables by the inputs' types (NULL: left out). Errors name op, dimension, both sizes and both shapes:
 *   dense: dimension 'in' is 12 in x 'state' [batch t in=12] but 16 in w 'decoder.query.kernel' [in=16 out=8] */
cpl_status cpl_signature_match(const cpl_op *op, const cpl_signature *s, const cpl_type *const *types,
                               const char *const *paths, cpl_bindings *b, cpl_error *err);

/* The type of an argument under bindings; name arena for composed names ("4u"). */
cpl_status cpl_signature_type(const cpl_signature_argument *a, const cpl_bindings *b, cpl_arena *names, cpl_type *type,
                              cpl_error *err);

/* For tests: binds a variable by hand: a feature of a size, or a symbol (index in the geometry array of the run). */
void cpl_bindings_set(cpl_bindings *b, const char *name, cpl_dim dim);

#endif
