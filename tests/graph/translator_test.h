/* translator_test.h: the translator's graphs with random sentences, small enough for a test, large enough that every
 * product is cut into tiles and every kernel has its tail. */
#ifndef CPL_TESTS_TRANSLATOR_TEST_H
#define CPL_TESTS_TRANSLATOR_TEST_H

#include "graph/graph_test.h"
#include "model/model.h"

enum { VOCABULARY = 301, BATCH_MOST = 24, WIDTH_MOST = 20 };

typedef struct translator {
    cpl_config *config;
    cpl_model_sizes sizes;
} translator;

static inline translator translator_open(const char *units, const char *dropout)
{
    translator t = {NULL, {0}};
    MUST(cpl_config_default(&t.config, err));
    MUST(cpl_config_set(t.config, "model.units", units, err));
    MUST(cpl_config_set(t.config, "model.dropout", dropout, err));
    t.sizes = (cpl_model_sizes){t.config, VOCABULARY, VOCABULARY - 20};
    return t;
}

static inline void translator_close(translator *t)
{
    cpl_config_free(t->config);
}

/* Sentences of 1 … width ids each, by a fixed sequence. */
typedef struct sentences {
    int64_t batch, width;
    int64_t lengths[BATCH_MOST];
    int32_t id[BATCH_MOST * WIDTH_MOST];
} sentences;

static inline sentences sentences_make(int64_t batch, int64_t width, uint32_t seed)
{
    sentences s = {.batch = batch, .width = width};
    uint32_t state = seed * 2654435761u + 1;
    for (int64_t i = 0; i < batch; i++) {
        state = state * 1664525u + 1013904223u;
        s.lengths[i] = i == 0 ? width : 1 + (int64_t)(state >> 16) % width;
        for (int64_t k = 0; k < width; k++) {
            state = state * 1664525u + 1013904223u;
            s.id[i * width + k] = 1 + (int32_t)((state >> 12) % (VOCABULARY - 21));
        }
    }
    return s;
}

/* The batch of seed: sources, and targets of other lengths. */
static inline void translator_feed(cpl_program *p, int64_t batch, int64_t width, uint32_t seed)
{
    sentences s = sentences_make(batch, width, seed), t = sentences_make(batch, width - 1, seed + 1000);
    feed(p, "source", ids(s.id, batch, width, s.lengths));
    feed(p, "target_in", ids(t.id, batch, width - 1, t.lengths));
    feed(p, "target_out", ids(t.id, batch, width - 1, t.lengths));
}

#endif
