/* beam.h: what the files of beam search share: beam.c searches, beam_room.c has its memory, beam_end.c keeps and
 * writes out what ended. */
#ifndef CPL_DECODE_BEAM_H
#define CPL_DECODE_BEAM_H

#include "decode/internal.h"

/* A token and the path before it, which stood in the slot `parent` of its input a step earlier. */
typedef struct cpl_beam_node {
    int32_t token, parent;
} cpl_beam_node;

typedef struct cpl_beam_candidate {
    int32_t id, parent;
    double score; /* of the path with it */
} cpl_beam_candidate;

/* An output: the path of `length` tokens that stood in a slot before step `length`. */
typedef struct cpl_beam_ending {
    double ranked, score;
    int64_t length;
    int32_t slot;
    int finished;
} cpl_beam_ending;

/* Input i has the slots i · width … (i + 1) · width − 1, its live paths first, best first. Its sentence stands in each
 * of them. */
struct cpl_beam {
    int64_t width, rows;                        /* of this batch; rows = inputs · width */
    int64_t room_width, room_rows, room_tokens; /* what there is memory for */
    cpl_geometry fan;                           /* the lengths of the sources, by slot */
    real *memory[CPL_MODEL_PARTS];              /* the encoder's, by slot: [room_tokens width] */
    int64_t *length, *live, *ended; /* [room_rows]: of the source, by slot; by input: paths; outputs that are kept */
    int32_t *input, *proposed;      /* [room_rows]: by row of a step; by slot: candidates, −1 for no numbers */
    double *score;                  /* [room_rows] */
    cpl_beam_candidate *candidates; /* [room_rows room_width], best first */
    cpl_beam_candidate *chosen;     /* [room_width]: the next paths of one input */
    cpl_beam_ending *endings;       /* [room_rows]: by input, best first */
    cpl_decoded *outputs;           /* [room_rows] */
    cpl_beam_node *nodes;           /* [steps rows] */
    int64_t *look_at;               /* [room_rows]: where a slot's weights begin in a step */
    float *seen[2];                 /* [room_tokens]: sums of weights up to now, by slot */
    float *looks;                   /* [steps tokens] */
    float *weights;                 /* of the outputs */
    int32_t *ids;
    size_t nodes_capacity, looks_capacity, weights_capacity, ids_capacity;
    int64_t tokens; /* Σ lengths of the sources, by slot */
};

/* beam_room.c: memory for a batch, and for one more step. */
cpl_status cpl_beam_reserve(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err);
cpl_status cpl_beam_reserve_step(cpl_beam *s, const cpl_decode_batch *b, int64_t step, cpl_error *err);
/* After the encoder: its memories and states for each slot. */
cpl_status cpl_beam_fan_out(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err);

/* beam_end.c: keeps an output of input i, if it is among the `width` best. */
void cpl_beam_end(cpl_beam *s, int64_t i, const cpl_beam_ending *ending);
/* Σ log min(attention on a source word, 1) of the path in a slot, after the weights of `step`; over the first `words`
 * positions of the source. */
double cpl_beam_covered(const cpl_beam *s, int64_t i, int32_t slot, int64_t step, int64_t words);
/* The tokens of a path: to[length]. */
void cpl_beam_path(const cpl_beam *s, int64_t i, int32_t slot, int64_t length, int32_t *to);
/* All outputs of the batch, into d->results. */
cpl_status cpl_beam_collect(cpl_decoder *d, const cpl_decode_batch *b, cpl_error *err);

#endif
