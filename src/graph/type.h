/* type.h: named dimensions, and what a tensor is in terms of them.
 *
 * A dimension is a word with a size, or a symbol whose size the data gives. Symbols are of three kinds:
 * `batch`; ragged time (`s`, `t`: lengths differ by sentence; tensors over them are stored as packed rows,
 * see geometry.h); and `padded`, the time axis of a rectangle at the borders of the engine. */
#ifndef CPL_GRAPH_TYPE_H
#define CPL_GRAPH_TYPE_H

#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include "couplet.h"

enum { CPL_MAX_RANK = 6, CPL_MAX_SYMBOLS = 8, CPL_NO_SYMBOL = -1, CPL_ORDER_CALLER = -1 };

typedef enum cpl_dim_kind { CPL_DIM_FEATURE, CPL_DIM_BATCH, CPL_DIM_TIME, CPL_DIM_PADDED } cpl_dim_kind;
typedef enum cpl_element { CPL_ELEMENT_REAL, CPL_ELEMENT_ID } cpl_element;

typedef struct cpl_dim {
    const char *name; /* lives as long as the graph */
    int64_t size;     /* of a feature; 0 for a symbol */
    int symbol;       /* index into the graph's symbols, or CPL_NO_SYMBOL */
    cpl_dim_kind kind;
} cpl_dim;

typedef struct cpl_type {
    cpl_element element;
    int rank;
    cpl_dim dim[CPL_MAX_RANK];
    int order;              /* whose length order the batch stands in: a time symbol, or CPL_ORDER_CALLER */
    const char *vocabulary; /* ids: the vocabulary they count in */
    int64_t entries;        /* ids: its size */
} cpl_type;

/* Sizes of the symbols: of one batch, or upper bounds of many (a capacity). */
typedef struct cpl_binding {
    int64_t batch;
    int64_t rows[CPL_MAX_SYMBOLS];                   /* time: Σ lengths; padded: the width */
    int64_t longest[CPL_MAX_SYMBOLS];                /* time: the longest sentence */
    int64_t pairs[CPL_MAX_SYMBOLS][CPL_MAX_SYMBOLS]; /* Σ over sentences of length a · length b */
} cpl_binding;

/* The one table of dimension words: what kind a word is. */
cpl_dim_kind cpl_dim_word(const char *word, size_t length);

int cpl_type_find(const cpl_type *type, cpl_dim_kind kind);  /* index of the first such dimension, or −1 */
int cpl_type_times(const cpl_type *type);                    /* how many ragged time dimensions */
/* Product of the feature sizes behind the last symbol: the width of a row. */
int64_t cpl_type_width(const cpl_type *type);
/* Rows: product of everything else under the binding (packed rows for ragged time). */
int64_t cpl_type_rows(const cpl_type *type, const cpl_binding *b);
int64_t cpl_type_elements(const cpl_type *type, const cpl_binding *b);
size_t cpl_type_bytes(const cpl_type *type, const cpl_binding *b);

/* "[batch t units=256]" appended to out. */
void cpl_type_print(const cpl_type *type, cpl_str *out);
/* The same into a buffer, for errors; returns buffer. */
char *cpl_type_text(const cpl_type *type, char *buffer, size_t size);

/* Does `binding` fit into `capacity` in every size? */
int cpl_binding_fits(const cpl_binding *binding, const cpl_binding *capacity);
/* capacity = the larger of both in every size. */
void cpl_binding_grow(cpl_binding *capacity, const cpl_binding *binding);

#endif
