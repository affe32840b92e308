/* loop_model.h: a decoder written as a loop, with attention queried by the state before the step: for tests in float
 * and in double. user: an int of READER_… */
#ifndef CPL_TESTS_SUPPORT_LOOP_MODEL_H
#define CPL_TESTS_SUPPORT_LOOP_MODEL_H

#include "couplet.h"

enum { WORDS = 11, UNITS = 6, BATCH = 4 };

/* The encoder stands in the body of the loop; attention is additive instead of multi-head; its weights and the cell's
 * state are dropped. */
enum { READER_INSIDE = 1, READER_ADDITIVE = 2, READER_DROPS = 4, READERS = 8 };

typedef struct reader {
    cpl_node *source;
    int encoder_inside;
    cpl_attention_options attention;
    cpl_attention_memory memory;
} reader;

static cpl_attention_memory encode(cpl_graph *g, cpl_node *source, const cpl_attention_options *o)
{
    cpl_node *x = cpl_embedding(g, "source", source, &(cpl_embedding_options){.size = WORDS, .units = UNITS});
    x = cpl_bidirectional(g, "encoder", x, &(cpl_bidirectional_options){.units = UNITS}).y;
    return cpl_attention_project(g, "attention", x, o, UNITS);
}

/* The query is the state before the step: attention must run step by step; embedding, encoder and logits need not. */
static void reader_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    const reader *r = user;
    cpl_attention_memory memory = r->encoder_inside ? encode(g, r->source, &r->attention) : r->memory;
    cpl_node *h = cpl_loop_state(loop, "h"), *c = cpl_loop_state(loop, "c");
    cpl_node *x = cpl_embedding(g, "target", cpl_loop_slice(loop, "token"),
                                &(cpl_embedding_options){.size = WORDS, .units = UNITS});
    cpl_attention_result a = cpl_attention_query(g, "attention", h, memory, &r->attention);
    cpl_cell_step(g, "cell", cpl_concat(g, a.y, x), &h, &c, &(cpl_rnn_options){
        .cell = CPL_LSTM, .units = UNITS, .dropout = r->attention.dropout});
    h = cpl_layer_norm(g, "norm", h, 0);
    cpl_loop_next(loop, "h", h);
    cpl_loop_next(loop, "c", c);
    cpl_loop_emit(loop, "logits", cpl_dense(g, "output", h, &(cpl_dense_options){.units = WORDS, .dim = "vocab"}));
}

static void reader_model(cpl_graph *g, const void *user)
{
    int kind = *(const int *)user;
    reader r = {.source = cpl_input(g, "source", CPL_ID("source", WORDS), "batch s"),
                .encoder_inside = kind & READER_INSIDE,
                .attention = {.dropout = kind & READER_DROPS ? 0.4 : 0,
                              .score = kind & READER_ADDITIVE ? CPL_SCORE_ADDITIVE : CPL_SCORE_MULTIHEAD}};
    cpl_node *token = cpl_input(g, "token", CPL_ID("target", WORDS), "batch t");
    cpl_node *label = cpl_input(g, "label", CPL_ID("target", WORDS), "batch t");
    if (!r.encoder_inside)
        r.memory = encode(g, r.source, &r.attention);
    cpl_scan_options o = {.name = "decoder", .time = "t", .inputs = {{"token", token, 0}},
                          .states = {{"h", NULL, UNITS}, {"c", NULL, UNITS}}};
    cpl_loop *loop = cpl_scan(g, &o, reader_body, &r);
    cpl_loss_result loss = cpl_masked_cross_entropy(g, cpl_loop_output(loop, "logits"), label);
    cpl_output(g, "loss", loss.loss);
    cpl_minimize(g, loss.loss);
}

static cpl_status run_reader(cpl_program *p, cpl_error *err)
{
    static const int32_t ids[8] = {4, 5, 6, 7, 8, 9, 10, 4};
    const int32_t *rows[BATCH] = {ids, ids + 1, ids + 2, ids + 3};
    const int32_t *labels[BATCH] = {ids + 1, ids + 2, ids + 3, ids + 4};
    const int64_t source[BATCH] = {3, 5, 1, 2}, target[BATCH] = {2, 1, 4, 0};
    cpl_status s = cpl_feed_ids(p, "source", rows, source, BATCH, err);
    s = s ? s : cpl_feed_ids(p, "token", rows, target, BATCH, err);
    s = s ? s : cpl_feed_ids(p, "label", labels, target, BATCH, err);
    return s ? s : cpl_run(p, CPL_TRAIN, err);
}

#endif
