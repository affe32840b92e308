/* attributes.h: the attribute struct of each op that has one. Structs are compared bytewise (equal nodes are
 * shared), so every member is 4 bytes and set, `zero` members to 0: no padding bytes. An op that is not named
 * here takes none. */
#ifndef CPL_GRAPH_ATTRIBUTES_H
#define CPL_GRAPH_ATTRIBUTES_H

#include <stdint.h>

/* linear, activation: f of y = f(x·w + b), a cpl_activation. */
typedef struct cpl_activation_attributes {
    int32_t activation;
} cpl_activation_attributes;

/* scale: y = factor · x. */
typedef struct cpl_scale_attributes {
    float factor;
} cpl_scale_attributes;

/* dropout: share of elements that become 0 while training, 0 ≤ rate < 1; what is drawn, a cpl_drop. */
typedef enum cpl_drop {
    CPL_DROP_ELEMENTS, /* each element */
    CPL_DROP_STEADY,   /* each element of a sentence's step, the same ones in all its steps */
    CPL_DROP_ROWS      /* each row as a whole */
} cpl_drop;
typedef struct cpl_dropout_attributes {
    float rate;
    uint32_t what;
} cpl_dropout_attributes;

/* cross_entropy, linear_cross_entropy: share of each label that goes to all classes alike, while training. */
typedef struct cpl_loss_attributes {
    float smoothing;
    uint32_t zero;
} cpl_loss_attributes;

/* layer_norm: added to the variance. */
typedef struct cpl_layer_norm_attributes {
    float epsilon;
} cpl_layer_norm_attributes;

/* gru, gru_before, lstm: reverse 1 reads each sentence from its last step to its first. dropout: share of a state's
 * elements that the recurrent product misses while training, the same in all steps; call: with dropout, a number that
 * no other call has. */
typedef struct cpl_recurrent_attributes {
    int32_t reverse;
    float dropout;
    uint32_t call;
    uint32_t zero;
} cpl_recurrent_attributes;

/* previous: the loop whose state it carries. */
typedef struct cpl_previous_attributes {
    int32_t loop;
    int32_t zero;
} cpl_previous_attributes;

/* nest, nest_previous, nest_last: the symbols of the nest; the loop whose state is carried (nest_previous), and
 * whether x is over the outer time (nest). */
typedef struct cpl_nest_attributes {
    int32_t symbol;
    int32_t outer;
    int32_t inner;
    int32_t loop;
    int32_t over_outer;
    int32_t zero;
} cpl_nest_attributes;

/* attention: heads divides the width of q, k, v; scale multiplies q·k; causal 1: step i of q sees keys 0 … i only.
 * dropout: share of weights that become 0 while training; call: with dropout, a number that no other call has. */
typedef struct cpl_attention_attributes {
    int32_t heads;
    float scale;
    int32_t causal;
    float dropout;
    uint32_t call;
} cpl_attention_attributes;

/* additive_attention: as of attention. */
typedef struct cpl_additive_attributes {
    float dropout;
    uint32_t call;
} cpl_additive_attributes;

/* reorder: length orders, each a time symbol or CPL_ORDER_CALLER. */
typedef struct cpl_reorder_attributes {
    int32_t from;
    int32_t to;
} cpl_reorder_attributes;

/* pack: the ragged time symbol whose geometry chooses the rows, and its dimension word, 's' or 't'. */
typedef struct cpl_pack_attributes {
    int32_t symbol;
    int32_t word;
} cpl_pack_attributes;

/* take, take_ids: the step, counted from 0. */
typedef struct cpl_take_attributes {
    int32_t step;
    int32_t zero;
} cpl_take_attributes;

/* put: the ragged time symbol and its word, 's' or 't'; the step, and how many steps the whole chain of puts has. */
typedef struct cpl_put_attributes {
    int32_t symbol;
    int32_t word;
    int32_t step;
    int32_t steps;
} cpl_put_attributes;

/* zeros: the width. */
typedef struct cpl_zeros_attributes {
    int32_t units;
    int32_t zero;
} cpl_zeros_attributes;

/* to_now: the symbol of the time word `now`. */
typedef struct cpl_now_attributes {
    int32_t symbol;
    int32_t zero;
} cpl_now_attributes;

typedef enum cpl_fill { CPL_FILL_ZERO, CPL_FILL_REPEAT } cpl_fill;

/* unpack: the padded symbol of the rectangle, and a cpl_fill for the steps that do not exist: zeros, or the
 * output of the step before (zeros before the first). */
typedef struct cpl_unpack_attributes {
    int32_t padded_symbol;
    int32_t fill;
} cpl_unpack_attributes;

#endif
