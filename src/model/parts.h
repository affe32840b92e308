/* parts.h: the two halves that the models of this room are built from, as the configuration describes them.
 *
 *   source ─ encoder ─► outputs ─► memory ───────────────┐
 *                  └──► last states ─► first states ─► decoder ─► logits, weights, states
 *
 * The decoder is the same for a whole target (training) and for one token (a step of decoding). Parameters stand
 * under "encoder" and "decoder"; layer k > 1 of a stack is "rnn_k". */
#ifndef CPL_MODEL_PARTS_H
#define CPL_MODEL_PARTS_H

#include "model/model.h"

/* Of each layer: [batch width]. c: LSTM only. feed: with model.decoder.input_feed alone, the attentional vector of the
 * step before. NULL: zero, where a first state is asked for. */
typedef struct cpl_model_states {
    cpl_node *h[CPL_LAYERS], *c[CPL_LAYERS];
    cpl_node *feed;
} cpl_model_states;

typedef struct cpl_model_encoded {
    cpl_node *y;             /* [batch s width] */
    cpl_model_states states; /* after the last step, two directions merged like the outputs; with a bottleneck the last
                              * layer's h is its vector [batch N], tanh, and there is no c */
} cpl_model_encoded;

typedef struct cpl_model_decoded {
    cpl_node *features; /* [batch t units]: what the projection to the vocabulary reads */
    cpl_node *logits;   /* [batch t vocab] */
    cpl_node *weights; /* [batch t s] or, multihead, [heads batch t s]; NULL without attention */
    cpl_node *context; /* [batch t width]: what the attention found */
    cpl_node *y;       /* [batch t units]: of the last cell */
    cpl_node *gate;    /* [batch t 1]: the logit of not copying; NULL: the model does not copy */
    cpl_model_states states;
} cpl_model_decoded;

/* source: ids [batch s]; h, c: where the first layer begins, [batch units], for each direction; NULL: zero. */
cpl_model_encoded cpl_model_encode(cpl_graph *g, const cpl_model_sizes *n, cpl_node *source, cpl_node *h, cpl_node *c);
int64_t cpl_model_encoder_width(const cpl_config *c); /* of its outputs */
int64_t cpl_model_context_width(const cpl_config *c); /* of what the attention finds */
int64_t cpl_model_feed_width(const cpl_config *c);    /* of states.feed */

/* tie.c: ids of the source or target as vectors of their embedding; call it outside of encoder and decoder. The table
 * that is the projection too; NULL: the projection has weights of its own. */
cpl_node *cpl_model_embed(cpl_graph *g, const cpl_model_sizes *n, cpl_node *ids, int target);
cpl_node *cpl_model_tied(cpl_graph *g, const cpl_model_sizes *n);
const char *cpl_model_table(const cpl_model_sizes *n); /* path of that embedding */

/* What the attention reads, projected once; both NULL without attention. */
cpl_attention_memory cpl_model_memory(cpl_graph *g, const cpl_model_sizes *n, cpl_node *encoded);
/* The decoder's first states: zero, handed over or bridged. */
cpl_model_states cpl_model_begin(cpl_graph *g, const cpl_model_sizes *n, const cpl_model_encoded *e);
/* tokens: ids [batch t]. */
cpl_model_decoded cpl_model_decode(cpl_graph *g, const cpl_model_sizes *n, cpl_node *tokens,
                                   cpl_attention_memory memory, const cpl_model_states *before);

/* From the configuration's choices to those of couplet.h. */
cpl_cell cpl_model_cell(int choice);
cpl_initializer cpl_model_recurrent(const cpl_config *c);
const char *cpl_model_layer(int64_t layer); /* "rnn", "rnn_2" … */

/* Names of the states of each layer, in graphs and descriptions: "h", "h_2" …, "c", "c_2" … */
extern const char *const cpl_model_h[CPL_LAYERS], *const cpl_model_c[CPL_LAYERS];

/* The functions of a kind that is an encoder with a decoder (seq2seq.c). */
void cpl_seq2seq_describe(const cpl_model_sizes *n, cpl_model_description *d);
void cpl_seq2seq_loss(cpl_graph *g, const void *user);
void cpl_seq2seq_score(cpl_graph *g, const void *user);
void cpl_seq2seq_predict(cpl_graph *g, const void *user);
void cpl_seq2seq_encode(cpl_graph *g, const void *user);
void cpl_seq2seq_step(cpl_graph *g, const void *user);
void cpl_seq2seq_features(cpl_graph *g, const void *user);

#endif
