/* attention.h: keeps the attention weights of a decoding, one matrix a row of the batch. Zero-initialise a record; it
 * is reused from batch to batch, and allocates only when a row needs more room than it ever did. */
#ifndef CPL_DECODE_ATTENTION_H
#define CPL_DECODE_ATTENTION_H

#include <stdint.h>
#include "graph/program.h"

typedef struct cpl_attention_row {
    float *weights; /* [steps length]: each step's mean over the heads */
    size_t capacity;
} cpl_attention_row;

typedef struct cpl_attention_record {
    float *step; /* [batch t s] of the last step, t=1: the mean over the heads */
    size_t step_capacity;
    cpl_attention_row *rows; /* the first `count` are initialised */
    size_t count, capacity;
} cpl_attention_record;

/* Of what `step` holds: width elements for each row of the batch. */
typedef struct cpl_attention_shape {
    int64_t batch, width;
} cpl_attention_shape;

/* Reads what the step program's last run looked at into `step`. A model without attention is CPL_USAGE. */
cpl_status cpl_attention_read(cpl_attention_record *a, cpl_program *program, cpl_attention_shape *of, cpl_error *err);
/* Room for a batch of `count` rows. */
cpl_status cpl_attention_begin(cpl_attention_record *a, int64_t count, cpl_error *err);
/* Keeps what `step` holds. number: of the step, from 0; alive: which rows it had; length: of the sources. */
cpl_status cpl_attention_keep(cpl_attention_record *a, const cpl_attention_shape *of, int64_t number,
                              const int64_t *alive, const int64_t *length, cpl_error *err);
void cpl_attention_free(cpl_attention_record *a);

#endif
