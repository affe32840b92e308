/* lcs.h: longest common subsequences of two sequences of numbers: how long, and which elements.
 *
 *   cpl_lcs l = {0};
 *   cpl_lcs_length(&l, a, b, &length);
 *   cpl_lcs_clear(&l, a.count); cpl_lcs_mark(&l, a, b); cpl_lcs_mark(&l, a, c); ... l.marks[i] ...
 *   cpl_lcs_free(&l);
 *
 * All return 0, or -1 without memory. */
#ifndef CPL_METRIC_LCS_H
#define CPL_METRIC_LCS_H

#include <stddef.h>
#include <stdint.h>

typedef struct cpl_lcs_side {
    const int32_t *ids;
    size_t count;
} cpl_lcs_side;

/* Zero-initialise. Memory grows to the largest pair and stays. */
typedef struct cpl_lcs {
    unsigned char *marks; /* by element of a: 1 when it lies on a marked subsequence */
    size_t mark_capacity;
    uint32_t *row; /* from here on private */
    size_t row_capacity;
    unsigned char *turns;
    size_t turn_capacity;
} cpl_lcs;

void cpl_lcs_free(cpl_lcs *l);
int cpl_lcs_length(cpl_lcs *l, cpl_lcs_side a, cpl_lcs_side b, size_t *length);
int cpl_lcs_clear(cpl_lcs *l, size_t count); /* no marks, for an a of count elements */
/* Marks one longest common subsequence of a and b, keeping older marks. Of several, the one that rouge-score takes:
 * from the ends, equal elements go together, else b steps back only where that keeps strictly more. */
int cpl_lcs_mark(cpl_lcs *l, cpl_lcs_side a, cpl_lcs_side b);

#endif
