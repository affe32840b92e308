/* nest_model.h: a loop over the source in each step of a loop over the target. For tests in float and
 * in double. */
#ifndef CPL_TESTS_SUPPORT_NEST_MODEL_H
#define CPL_TESTS_SUPPORT_NEST_MODEL_H

#include "couplet.h"

enum { WORDS = 9, UNITS = 4, BATCH = 5, LONGEST = 5 };

/* What differs: where the inner state begins, and what depends on what. */
enum {
    NEST_STATE,  /* begins with the outer state; its end is part of the next one */
    NEST_ZERO,   /* begins with zeros */
    NEST_GIVEN,  /* begins with one state for all outer steps */
    NEST_AFTER,  /* reads the outer state, which does not depend on it: runs after the outer loop */
    NEST_BEFORE, /* reads the outer loop's input alone: runs before it */
    NEST_TWO,    /* a second inner loop goes over what the first one emits, which is part of the loss too */
    NESTS
};

typedef struct nest {
    int kind;
    cpl_node *source, *first; /* [batch s units], [batch units] */
    cpl_node *total;          /* NEST_TWO: sum of what was emitted */
} nest;

static cpl_node *word(cpl_graph *g, const char *name, cpl_node *ids)
{
    return cpl_embedding(g, name, ids, &(cpl_embedding_options){.size = WORDS, .units = UNITS});
}

static cpl_node *query_of(int kind, cpl_node *x, cpl_node *h)
{
    return kind == NEST_BEFORE ? x : h;
}

/* One inner step. */
static void inner_step(cpl_graph *g, const char *name, cpl_node *source, cpl_node *query, cpl_node **h, cpl_node **c)
{
    cpl_lstm_step(g, name, cpl_concat(g, source, query), h, c, UNITS);
}

/* The rest of an outer step: the next state, and logits. */
static cpl_node *outer_step(cpl_graph *g, int kind, cpl_node *x, cpl_node *found, cpl_node **h)
{
    cpl_gru_step(g, "outer", kind == NEST_AFTER ? x : cpl_concat(g, x, found), h, UNITS);
    return cpl_dense(g, "output", cpl_concat(g, *h, found), &(cpl_dense_options){.units = WORDS, .dim = "vocab"});
}

/* ---- as loops of the graph ---- */

static void inner_body(cpl_graph *g, cpl_loop *loop, const void *name)
{
    cpl_node *h = cpl_loop_state(loop, "h"), *c = cpl_loop_state(loop, "c");
    inner_step(g, name, cpl_loop_slice(loop, "source"), cpl_loop_slice(loop, "query"), &h, &c);
    cpl_loop_next(loop, "h", h);
    cpl_loop_next(loop, "c", c);
    cpl_loop_emit(loop, "y", h);
}

static void outer_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    nest *n = *(nest *const *)user;
    cpl_node *h = cpl_loop_state(loop, "h"), *x = word(g, "target", cpl_loop_slice(loop, "token"));
    cpl_node *query = query_of(n->kind, x, h);
    cpl_node *begin = n->kind == NEST_STATE ? h : n->kind == NEST_GIVEN ? n->first : NULL;
    cpl_scan_options o = {.name = "inner", .time = "s", .inputs = {{"source", n->source, 0}, {"query", query, 0}},
                          .states = {{"h", begin, UNITS}, {"c", NULL, UNITS}}};
    cpl_loop *inner = cpl_scan(g, &o, inner_body, "inner");
    if (n->kind == NEST_TWO) {
        o.inputs[0].x = cpl_loop_output(inner, "y");
        n->total = cpl_sum(g, cpl_multiply(g, o.inputs[0].x, o.inputs[0].x));
        cpl_scan_options again = o;
        again.name = "again";
        inner = cpl_scan(g, &again, inner_body, "again");
        cpl_loop_emit(loop, "logits", outer_step(g, n->kind, x, cpl_loop_final(inner, "h"), &h));
    } else
        cpl_loop_emit(loop, "logits", outer_step(g, n->kind, x, cpl_loop_final(inner, "h"), &h));
    cpl_loop_next(loop, "h", h);
}

static cpl_node *encode(cpl_graph *g, cpl_node *source, cpl_node **last)
{
    cpl_rnn_result r = cpl_rnn(g, "encoder", word(g, "source", source), &(cpl_rnn_options){.units = UNITS});
    *last = r.h;
    return r.y;
}

/* user: an int, NEST_… */
static void nest_model(cpl_graph *g, const void *user)
{
    nest n = {.kind = *(const int *)user}, *at = &n;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", WORDS), "batch s");
    cpl_node *token = cpl_input(g, "token", CPL_ID("target", WORDS), "batch t");
    cpl_node *label = cpl_input(g, "label", CPL_ID("target", WORDS), "batch t");
    n.source = encode(g, source, &n.first);
    cpl_scan_options o = {.name = "outer", .time = "t", .inputs = {{"token", token, 0}},
                          .states = {{"h", n.first, 0}}};
    cpl_loop *loop = cpl_scan(g, &o, outer_body, &at);
    cpl_node *logits = cpl_loop_output(loop, "logits");
    cpl_loss_result loss = cpl_masked_cross_entropy(g, logits, label);
    cpl_node *total = n.total ? cpl_add(g, loss.loss, cpl_scale(g, n.total, 0.5)) : loss.loss;
    cpl_output(g, "logits", logits);
    cpl_output(g, "loss", total);
    cpl_minimize(g, total);
}

/* ---- data ---- */

static const int64_t source_length[BATCH] = {3, 5, 0, 2, 4}, target_length[BATCH] = {2, 1, 3, 4, 0};
static const int32_t nest_ids[12] = {4, 5, 6, 7, 8, 3, 4, 2, 6, 5, 8, 7};

static cpl_status run_nest_model(cpl_program *p, cpl_mode mode, cpl_error *err)
{
    const int32_t *rows[BATCH], *labels[BATCH];
    for (int i = 0; i < BATCH; i++)
        rows[i] = nest_ids + i, labels[i] = nest_ids + i + 1;
    cpl_status s = cpl_feed_ids(p, "source", rows, source_length, BATCH, err);
    s = s ? s : cpl_feed_ids(p, "token", rows, target_length, BATCH, err);
    s = s ? s : cpl_feed_ids(p, "label", labels, target_length, BATCH, err);
    return s ? s : cpl_run(p, mode, err);
}

#endif
