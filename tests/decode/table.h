/* table.h: a model whose next token depends on the last one alone, so that every output and score is known by hand. */
#ifndef CPL_TESTS_DECODE_TABLE_H
#define CPL_TESTS_DECODE_TABLE_H

#include <math.h>
#include <string.h>
#include "decode/decode.h"

enum { PAD, UNK, START, END, A, B, C, D, WORDS };

/* logits = table[token] + begin[source's only token]; begin only has a say where the table leaves it one. */
static void table_describe(const cpl_model_sizes *n, cpl_model_description *d)
{
    (void)n;
    memset(d, 0, sizeof *d);
    d->memory[d->memories++] = (cpl_model_part){"keys", WORDS};
}

static void table_encode(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", WORDS), "batch s");
    cpl_output(g, "keys", cpl_embedding(g, "begin", source, &(cpl_embedding_options){.size = WORDS, .units = WORDS}));
}

static void table_step(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *keys = cpl_input(g, "keys", CPL_REALS(WORDS), "batch s keys");
    cpl_node *token = cpl_input(g, "token", CPL_ID("target", WORDS), "batch t");
    cpl_node *table = cpl_embedding(g, "table", token, &(cpl_embedding_options){
        .size = WORDS, .units = WORDS, .dim = "vocab"});
    cpl_attention_options o = {.heads = 1};
    cpl_attention_memory memory = {.keys = keys, .values = keys};
    cpl_attention_result a = cpl_attention_query(g, "look", table, memory, &o);
    cpl_output(g, "logits", cpl_add(g, table, a.y));
    cpl_output(g, "weights", a.weights);
}

static const cpl_model_kind table_kind = {.name = "table", .describe = table_describe, .encode = table_encode,
                                          .step = table_step};

typedef struct fixture {
    cpl_engine *engine;
    cpl_decoder *decoder;
} fixture;

static real *parameter(cpl_engine *e, const char *path)
{
    int i = cpl_parameters_find(e->parameters, path);
    assert_true(i >= 0);
    return cpl_parameters_value(e->parameters, (size_t)i);
}

/* The look's output is the source's row of `begin`, unchanged. */
static fixture make(const double table[WORDS][WORDS])
{
    fixture f;
    cpl_model_sizes n = {.source_vocabulary = WORDS, .target_vocabulary = WORDS};
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_engine_new(&f.engine, 2, 1, NULL), CPL_OK);
    if (cpl_decoder_new(&f.decoder, &table_kind, &n, f.engine, &err) != CPL_OK) {
        cpl_error_print(&err, stderr);
        fail();
    }
    real *to = parameter(f.engine, "table.kernel"), *out = parameter(f.engine, "look.output.kernel");
    memset(parameter(f.engine, "begin.kernel"), 0, sizeof(real) * WORDS * WORDS);
    memset(out, 0, sizeof(real) * WORDS * WORDS);
    for (int i = 0; i < WORDS; i++) {
        out[i * WORDS + i] = 1;
        for (int k = 0; k < WORDS; k++)
            to[i * WORDS + k] = table[i][k] > 0 ? (real)log(table[i][k]) : (real)-1e9;
    }
    return f;
}

static void release(fixture *f)
{
    cpl_decoder_free(f->decoder);
    cpl_engine_release(f->engine);
}

#endif
