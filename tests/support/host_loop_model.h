/* host_loop_model.h: the decoder of loop_model.h as a program writes it that unrolls it: a `for` over the target's
 * steps that calls the decoder and, in its literal form, the encoder too. */
#ifndef CPL_TESTS_SUPPORT_HOST_LOOP_MODEL_H
#define CPL_TESTS_SUPPORT_HOST_LOOP_MODEL_H

#include "support/loop_model.h"

enum { HOST_STEPS_MOST = 64 };

typedef struct host_form {
    int encoder_inside;
    int steps;
    int rectangle;     /* 1: tokens come as [batch padded] */
    cpl_score score;
} host_form;

static void host_model(cpl_graph *g, const void *user)
{
    const host_form *f = user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", WORDS), "batch s");
    cpl_node *token = cpl_input(g, "token", CPL_ID("target", WORDS), f->rectangle ? "batch padded" : "batch t");
    cpl_node *label = cpl_input(g, "label", CPL_ID("target", WORDS), "batch t");
    cpl_node *logits[HOST_STEPS_MOST], *h = NULL, *c = NULL;
    cpl_attention_memory memory = {.keys = NULL};
    cpl_attention_options o = {.score = f->score};
    if (!f->encoder_inside)
        memory = encode(g, source, &o);
    for (int step = 0; step < f->steps; step++) {
        if (f->encoder_inside)
            memory = encode(g, source, &o);
        if (!h)
            h = c = cpl_zeros(g, memory.keys, UNITS);
        cpl_node *x = cpl_embedding(g, "target", cpl_take(g, token, step),
                                    &(cpl_embedding_options){.size = WORDS, .units = UNITS});
        cpl_attention_result a = cpl_attention_query(g, "attention", h, memory, &o);
        cpl_lstm_step(g, "cell", cpl_concat(g, a.y, x), &h, &c, UNITS);
        h = cpl_layer_norm(g, "norm", h, 0);
        logits[step] = cpl_dense(g, "output", h, &(cpl_dense_options){.units = WORDS, .dim = "vocab"});
    }
    cpl_loss_result loss = cpl_masked_cross_entropy(g, cpl_stack(g, logits, f->steps, "t"), label);
    cpl_output(g, "loss", loss.loss);
    cpl_output(g, "count", loss.count);
    cpl_minimize(g, loss.loss);
}

#endif
