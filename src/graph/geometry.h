/* geometry.h: where the rows of a ragged time axis stand.
 *
 * A tensor [batch t …] is stored as packed rows, time-major: first step 0 of every sentence, then step 1 of those
 * that have one, and so on. Sentences stand in order of length, longest first (equal lengths keep the caller's
 * order), so the sentences alive at a step are always the first `active` ones:
 *
 *     lengths 2 3 1 (caller order)  →  order: sentence 1, 0, 2
 *     rows:  1@0 0@0 2@0 | 1@1 0@1 | 1@2          offset: 0 3 5 6
 *
 * Row of sentence-position i at step k: offset[k] + i. Padding does not exist. Sentences of length 0 come last and
 * have no row. */
#ifndef CPL_GRAPH_GEOMETRY_H
#define CPL_GRAPH_GEOMETRY_H

#include <stdint.h>
#include "couplet.h"

typedef struct cpl_geometry {
    int bound;          /* 1 once lengths were given for the coming run */
    int64_t batch;
    int64_t longest;
    int64_t rows;       /* Σ lengths */
    int64_t width;      /* of the rectangle that the rows came from: ≥ longest */
    int32_t *length;    /* [batch] in length order, descending */
    int32_t *sentence;  /* [batch] the caller's index of the sentence at a position */
    int32_t *position;  /* [batch] its inverse: the position of the caller's sentence */
    int32_t *offset;    /* [longest + 1] first row of a step */
    int32_t *place;     /* [rows] time index of a row in the caller's rectangle (a mask may have gaps), by packed row */
    int64_t batch_capacity, longest_capacity, rows_capacity;
} cpl_geometry;

/* From lengths in caller order, each row a prefix of its rectangle row. width ≥ every length. */
cpl_status cpl_geometry_set_lengths(cpl_geometry *g, const int64_t *lengths, int64_t batch, int64_t width,
                                    cpl_error *err);
/* From a mask[batch width] (1: exists), any pattern. */
cpl_status cpl_geometry_set_mask(cpl_geometry *g, const uint8_t *mask, int64_t batch, int64_t width, cpl_error *err);
/* One step of every sentence, in the caller's order. */
cpl_status cpl_geometry_set_single(cpl_geometry *g, int64_t batch, cpl_error *err);
/* The same lengths and places as another's; allocates nothing once there is room for them. */
cpl_status cpl_geometry_copy(cpl_geometry *to, const cpl_geometry *from, cpl_error *err);
/* Grows the arrays ahead of time, so that later sets within these sizes allocate nothing. */
cpl_status cpl_geometry_reserve(cpl_geometry *g, int64_t batch, int64_t longest, int64_t rows, cpl_error *err);
void cpl_geometry_free(cpl_geometry *g);
size_t cpl_geometry_bytes(const cpl_geometry *g);

static inline int64_t cpl_geometry_active(const cpl_geometry *g, int64_t step)
{
    return g->offset[step + 1] - g->offset[step];
}

/* Σ over sentences of length in a · length in b. Both of the same batch. */
int64_t cpl_geometry_pairs(const cpl_geometry *a, const cpl_geometry *b);

/* A tensor [batch t s] holds, for each packed row of t in order, one number for each step of s that the row's sentence
 * has: row (step, i) begins at base[step] + prefix[i]. A step of t is one piece of memory, so a loop over t sees it as
 * a tensor of its own. */
typedef struct cpl_pair_index {
    const int64_t *prefix; /* [batch + 1] Σ lengths in s of the sentences at positions of t before i */
    const int64_t *base;   /* [longest of t + 1] */
} cpl_pair_index;

size_t cpl_pair_index_bytes(int64_t batch, int64_t longest);
cpl_pair_index cpl_pair_index_make(void *memory, const cpl_geometry *t, const cpl_geometry *s);

static inline int64_t cpl_pair_row(const cpl_pair_index *x, int64_t step, int64_t i)
{
    return x->base[step] + x->prefix[i];
}

#endif
