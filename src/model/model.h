/* model.h: what a model gives to the rooms that train and decode: functions that build its graphs over one set of
 * parameters, and the names of what travels between them. Decoding and training see nothing else of a model.
 *
 *   loss    inputs  source [batch s], target_in [batch t], target_out [batch t] (ids)
 *           outputs loss [], accuracy [], count []          minimizes loss
 *   score   the same inputs; output logits [batch t vocab]
 *   predict inputs  source, target_in; output next [batch t] (ids): argmax at each position
 *   encode  input   source [batch s]
 *           outputs one for each name in `memory` and, with `starts`, each state under its own name: [batch …] before
 *                   the first step
 *   step    inputs  the memory, each name in `states` [batch …], token [batch t]
 *           outputs logits [batch t vocab], weights [heads batch t s] or [batch t s] where there is attention, and
 *                   each state under its own name: the state after the token
 *   features (NULL: none) the step without its projection: features [batch t units] instead of logits, for who
 *           computes some entries' logits alone; `projection` names the dense layer that is left out
 * A model that copies (pointer-generator) has two more ids in loss and score, extended ones (data.h: cpl_row): an input
 * copy [batch s], and target_out. Its step outputs gate [batch t 1] too: the logit of writing a word of the vocabulary,
 * against pointing at the source by the weights (of one head).
 * In a step graph every sentence has t=1 (or 0: it is over, and keeps its state). A state that the encode graph does
 * not give (`starts` 0) is zero before the first step. */
#ifndef CPL_MODEL_MODEL_H
#define CPL_MODEL_MODEL_H

#include "config/config.h"
#include "couplet.h"
#include "text/text.h"

enum { CPL_MODEL_PARTS = 2 * CPL_LAYERS + 1 };

typedef struct cpl_model_sizes {
    const cpl_config *config;
    int64_t source_vocabulary; /* entries */
    int64_t target_vocabulary;
} cpl_model_sizes;

typedef struct cpl_model_part {
    const char *name;
    int64_t width; /* of the last dimension; filled by describe */
} cpl_model_part;

typedef struct cpl_model_description {
    int memories, states;
    int copies; /* 1: it copies words of the source, see above */
    const char *projection; /* path of the layer (kernel [units vocab], bias) behind `features` */
    const char *table;      /* path of the embedding whose kernel [vocab units] is the projection's; NULL: its own is */
    int mirrors; /* 1: no decoder: the encode graph gives "logits" [batch s vocab] of each source position, whose labels
                  * are the source itself (input "labels" of the loss and score graphs) */
    int starts; /* 1: the encode graph gives the states before the first step (those that it leaves out are zero) */
    cpl_model_part memory[CPL_MODEL_PARTS]; /* [batch s width] */
    cpl_model_part state[CPL_MODEL_PARTS];  /* [batch width] */
} cpl_model_description;

typedef struct cpl_model_kind {
    const char *name;
    void (*describe)(const cpl_model_sizes *n, cpl_model_description *d);
    /* Trace functions; user is a const cpl_model_sizes *. */
    cpl_model_function loss, score, predict, encode, step, features; /* predict and step: of kinds with a decoder */
} cpl_model_kind;

extern const cpl_model_kind cpl_translator, cpl_summarizer, cpl_autoencoder, cpl_bottleneck;

/* With model.tie all both vocabularies must be one, by content (case A08); CPL_USAGE if not. from: the file or model
 * that it is from; NULL: the training pairs. */
typedef struct cpl_model_vocabulary {
    const cpl_vocabulary *items;
    const char *from;
} cpl_model_vocabulary;
cpl_status cpl_model_check_tie(const cpl_config *c, cpl_model_vocabulary source, cpl_model_vocabulary target,
                               cpl_error *err);

/* The kind that config->model.type names. */
const cpl_model_kind *cpl_model_kind_of(const cpl_config *config);

#endif
