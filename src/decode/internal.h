/* internal.h: a decoder from inside: what decode.c (one path a row) and beam.c (several) share. */
#ifndef CPL_DECODE_INTERNAL_H
#define CPL_DECODE_INTERNAL_H

#include "decode/attention.h"
#include "decode/copy.h"
#include "decode/decode.h"
#include "graph/geometry.h"

typedef struct cpl_decode_row {
    double score;
    int64_t length, failed;
    int done, finished;
} cpl_decode_row;

typedef struct cpl_beam cpl_beam;

/* Of shortlist.c. */
typedef struct cpl_decode_shortlist {
    int on;                         /* the step program ends at the features */
    cpl_tensor kernel;              /* of the projection: [in vocabulary], packed or not */
    const real *whole_bias;         /* [vocabulary], or NULL */
    int tied;                       /* the kernel is an embedding's: [vocabulary in], and columns [list − first in] */
    int64_t in, first;              /* first: entries of this batch's list that stand side by side in the kernel */
    real *columns;                  /* [in list − first]: of the others … */
    cpl_packed packed;              /* … or, packed, in memory that `columns` is then */
    real *bias;                     /* [list] */
    real *logits;                   /* [rows list] of the last step */
    size_t columns_capacity, bias_capacity, logits_capacity;
} cpl_decode_shortlist;

/* The step program has `width` rows for each row of the batch, one after the other: 1 without beam search. */
struct cpl_decoder {
    cpl_model_description description;
    int64_t vocabulary;  /* the target's entries */
    cpl_program *encode; /* NULL: the kind has no memory and begins with zero states */
    cpl_program *step;   /* a kind without a decoder: encode, whose logits are all steps at once */
    int64_t room_batch, room_tokens, room_longest; /* the largest sizes that memory was reserved for */
    int64_t room_rows, room_row_tokens;            /* the same of the step program */
    real *state[2][CPL_MODEL_PARTS];               /* [rows width], caller order: before and after a step */
    int now;                                       /* which of the two is before */
    const cpl_geometry *fan; /* lengths of the memories by row, and those; NULL: they are the encode program's */
    real *const *memory;
    cpl_decode_row *rows;                          /* [room_batch] */
    int32_t *token;                                /* this array and those below: [room_rows] */
    const int32_t **token_row;
    int64_t *alive;
    cpl_decoded *results;
    int32_t *history; /* [steps batch]: what was chosen */
    size_t history_capacity;
    int32_t *ids; /* the same, row after row */
    size_t ids_capacity;
    real *scratch; /* for each thread three rows of logits */
    int32_t *path; /* for each thread an output */
    size_t path_room;
    cpl_attention_record attention;
    cpl_decode_copy copy;
    cpl_decode_shortlist shortlist;
    cpl_beam *beam; /* NULL: never searched */
    cpl_decoder **more; /* of an ensemble: the other models' decoders, which take the tokens that this one chose */
    int more_count;
    int64_t steps;
};

/* room.c: memory for a batch whose rows are `width` rows of the step program each. */
cpl_status cpl_decoder_reserve(cpl_decoder *d, const cpl_decode_batch *b, int64_t width, cpl_error *err);
cpl_status cpl_decoder_reserve_paths(cpl_decoder *d, int64_t length, cpl_error *err);
void cpl_decoder_free_rows(cpl_decoder *d);
/* Scratch of a thread, [vocabulary + longest]; which: 0 to 2. */
real *cpl_decoder_scratch(const cpl_decoder *d, int thread, int which);

/* decode.c: runs the encode program; its states go to state[0], and its memories stay where they are. */
cpl_status cpl_decoder_encode(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err);
/* Runs the step program on `token` and state[now]; the states after it are then state[now]. Of an ensemble all models'
 * step programs: the first one's logits are then the mean. */
cpl_status cpl_decoder_step(cpl_decoder *d, int64_t rows, cpl_error *err);
/* What decoding a batch came to: the error of its first row that failed. */
cpl_status cpl_decoder_verdict(const cpl_decoder *d, int64_t count, cpl_error *err);

/* shortlist.c: gathers the projection of the batch's list. Without short lists it does nothing. */
cpl_status cpl_shortlist_begin(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err);
/* Logits of the last step: [rows vocabulary], or [rows list]. width: rows of the step for each row of the batch. */
cpl_status cpl_decoder_logits(cpl_decoder *d, const cpl_decode_batch *b, int64_t width, cpl_tensor *logits,
                              cpl_error *err);
/* A row of logits of the list → of the vocabulary, in the thread's third row of scratch: −∞ for what is not listed. */
real *cpl_shortlist_expand(const cpl_decoder *d, const cpl_decode_batch *b, int thread, const real *logits);
void cpl_shortlist_free(cpl_decode_shortlist *s);

/* ensemble.c: the batch as the ensemble's model 1 + k reads it. */
cpl_decode_batch cpl_ensemble_batch(const cpl_decode_batch *b, int k);
/* Refuses what an ensemble cannot do with the batch. */
cpl_status cpl_ensemble_check(const cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err);
/* After the step of each model: their mean becomes the logits of this one. */
cpl_status cpl_ensemble_mix(cpl_decoder *d, cpl_error *err);
/* Where each row of the last step looked, into d->attention.step: the mean over the models. */
cpl_status cpl_decoder_look(cpl_decoder *d, cpl_attention_shape *of, cpl_error *err);

/* beam.c */
cpl_status cpl_beam_decode(cpl_decoder *d, const cpl_decode_batch *b, const cpl_decoded **rows, cpl_error *err);
void cpl_beam_free(cpl_beam *s); /* NULL is fine */

#endif
