/* decode.h: from source ids to target ids, one token a step. Knows no text and no concrete model: a kind gives the
 * graphs, an engine the parameters. Several models may decide together (an ensemble).
 *
 *   cpl_decoder *d;
 *   CPL_TRY(cpl_decoder_new(&d, kind, &sizes, engine, err), err, "cannot decode");
 *   const cpl_decoded *rows;
 *   CPL_TRY(cpl_decode(d, &batch, &rows, err), err, "…");       rows[0 … batch.count − 1], in the batch's order
 *   cpl_decoder_free(d);
 *
 * A row's result depends on that row alone: not on its batch, its place in it, or what was decoded before. One decoder
 * for one thread at a time; after the largest batch was seen nothing is allocated any more. */
#ifndef CPL_DECODE_DECODE_H
#define CPL_DECODE_DECODE_H

#include <stdint.h>
#include "decode/rules.h"
#include "graph/program.h"
#include "model/model.h"

typedef struct cpl_decoder cpl_decoder;

/* Compiles the kind's encode and step graphs over the engine's parameters: those that other programs made are shared,
 * missing ones get their first values. n is not kept. */
cpl_status cpl_decoder_new(cpl_decoder **d, const cpl_model_kind *kind, const cpl_model_sizes *n, cpl_engine *engine,
                           cpl_error *err);
/* The same with short lists: each batch says which entries have logits, the others' are not computed. A kind without
 * `features` is CPL_USAGE. */
cpl_status cpl_decoder_new_short(cpl_decoder **d, const cpl_model_kind *kind, const cpl_model_sizes *n,
                                 cpl_engine *engine, cpl_error *err);
void cpl_decoder_free(cpl_decoder *d); /* NULL is fine */

enum { CPL_DECODE_MODELS = 16 }; /* of an ensemble, at most */

/* Makes d an ensemble with other decoders, whose target vocabularies are the same: each step's probabilities are the
 * mean of all models'. The others stay the caller's, must live as long as d decodes, and are used by d alone. A model
 * that copies or has no decoder is CPL_USAGE. */
cpl_status cpl_decoder_join(cpl_decoder *d, cpl_decoder *const *others, int count, cpl_error *err);

/* The same sentences as another model of an ensemble reads them. */
typedef struct cpl_decode_source {
    const int32_t *const *source;
    const int64_t *length;
} cpl_decode_source;

/* Places in a short list. */
typedef struct cpl_decode_places {
    const int32_t *items;
    int64_t count;
} cpl_decode_places;

typedef struct cpl_decode_batch {
    int64_t count;
    const int32_t *const *source; /* [START] words [END], and padding where the model reads it: as in training */
    const int64_t *length;        /* of the source rows */
    const cpl_decode_source *more; /* an ensemble: of each other model */
    const int32_t *const *copy;   /* a model that copies: extended ids of the source rows (data.h: cpl_row) */
    const int64_t *most;          /* tokens of each output at most; END is not counted */
    const int64_t *number;        /* by row: what a sample is drawn by, such as the line number; NULL: 0, 1, 2 … */
    const int32_t *list;          /* of a decoder with short lists: the entries that have logits, ascending, 0 to 3
                                   * among them; probabilities are shares among these */
    int64_t list_count;
    const cpl_decode_places *left_out; /* by row: places in the list of what that row may not choose; NULL: none */
    double temperature;           /* 0: the most probable token; else samples from softmax(logits / temperature) */
    uint64_t forbidden;           /* bit i: id i < 64 is never chosen. 0: the argmax of all logits, as in Keras: a model
                                   * that learned little may choose padding or START, which text does not show */
    uint64_t seed;                /* a draw is a pure function of (seed, number, step) */
    int attention;                /* 1: keeps the attention weights; a model without any is CPL_USAGE. An ensemble's
                                   * sources must then be equally long */
    int no_scores;                /* 1: nobody reads the scores, which are NaN then and cost nothing. The ids are the
                                   * same. Beam search searches by them, and has them anyway */
    cpl_decode_rules rules;
    int64_t beam;                 /* 0: one path, token by token; else beam search over so many at a time, at
                                   * temperature 0: never chooses padding, START or what has no probability */
    int64_t nbest;                /* beam search: how many outputs of a row are wanted; 0: 1 */
    double length_penalty;        /* beam search: outputs are ranked by score / penalty of their length (ranking.c) */
    int plain_penalty;            /* 1: the penalty is length^A; 0: ((5 + length) / 6)^A */
    double coverage_penalty;      /* beam search: weight of the source words that were looked at too little */
} cpl_decode_batch;

typedef struct cpl_decoded {
    const int32_t *ids; /* what was chosen, without END; until the decoder's next call. Of a model that copies extended
                         * ids: from the vocabulary's size on words of the row's own source */
    int64_t length;
    double score;       /* sum of the natural log-probabilities of the ids and of END, all at temperature 1; with
                         * copying those of the mixture. NaN with no_scores */
    int finished;       /* 1: END came; 0: cut at `most` */
    int64_t failed;     /* not 0: the step (from 1) whose logits were not numbers; ids are those before it */
    const float *attention; /* [length + finished, source_length]: where each id, and END, looked, the mean over the
                             * heads; NULL unless it was asked for. Valid until the decoder's next call */
    int64_t source_length;  /* of the source row, START, END and padding counted */
    double ranked;          /* beam search: what outputs were ranked by; else the score */
    const struct cpl_decoded *nbest; /* beam search: the best outputs in order, this one first; else NULL */
    int64_t nbest_count;             /* at most the wanted number: fewer when there are no more */
} cpl_decoded;

/* The most tokens of an output that people expect without saying it: the larger of twice the source's words and 20, and
 * of the longest target that training saw. */
static inline int64_t cpl_decode_default_most(int64_t words, int64_t longest_target)
{
    int64_t by_source = 2 * words + 20;
    return by_source > longest_target ? by_source : longest_target;
}

/* Ends as soon as every row is done. *rows: `count` results, or NULL when nothing could be decoded. Logits that are
 * not numbers are CPL_FAILED, naming the first such row and its step; *rows then still has the other rows' results. */
cpl_status cpl_decode(cpl_decoder *d, const cpl_decode_batch *batch, const cpl_decoded **rows, cpl_error *err);

int64_t cpl_decoder_steps(const cpl_decoder *d); /* runs of the step program so far */
int64_t cpl_decoder_plans(const cpl_decoder *d); /* memory plans made so far */

/* What decoding costs: operations of the last batch's encoding, and of its last step, all rows; bytes of the blocks. */
typedef struct cpl_decoder_figures {
    double encode_operations, step_operations;
    uint64_t planned_bytes;
} cpl_decoder_figures;
cpl_decoder_figures cpl_decoder_figures_of(const cpl_decoder *d);

/* ---- ranking.c: complete outputs against each other ---- */

/* The higher, the better. length: tokens with END. covered: Σ log min(attention on a source word, 1), or 0. */
double cpl_decode_rank(const cpl_decode_batch *b, double score, int64_t length, double covered);
/* No output that goes on from a score can be ranked higher, when it has `most` tokens and END at most. */
double cpl_decode_rank_bound(const cpl_decode_batch *b, double score, int64_t most);

/* ---- choose.c: one token ---- */

/* Negative, NaN and infinite temperatures are CPL_USAGE, naming the option and the value. */
cpl_status cpl_decode_check_temperature(double temperature, cpl_error *err);

typedef struct cpl_choice {
    uint64_t forbidden; /* bit i: id i < 64 is never chosen */
    double temperature, unit; /* unit: a uniform number in [0, 1), used when temperature is not 0 */
    int no_probability; /* 1: nobody asks for log_probability, which takes most of the time: it is NaN */
} cpl_choice;

typedef struct cpl_chosen {
    int32_t id;             /* −1: the logits were not numbers, or nothing is allowed */
    double log_probability; /* in softmax(logits) */
} cpl_chosen;

/* Chooses from logits[n], which are afterwards what they were. A tie goes to the lowest id. */
cpl_chosen cpl_decode_choose(const cpl_kernels *kernels, real *logits, int64_t n, const cpl_choice *c);

#endif
