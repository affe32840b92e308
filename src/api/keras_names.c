/* keras_names.c: the table of places. Left our layer, right Keras's attribute path in the reference classes; '*' is one
 * word, the same on both sides ("rnn", "rnn_2"). The first row that fits is the one that export writes. */
#include <stdio.h>
#include <string.h>

#include "api/keras.h"
#include "base/error.h"

typedef enum when { ALWAYS, MULTIHEAD, OTHER_SCORE, STEPPED } when;

typedef struct row {
    const char *ours, *theirs;
    when when;
    int is_cell; /* kernel, recurrent kernel, bias; otherwise kernel, bias */
} row;

static const row rows[] = {
    {"encoder.embedding", "encoder/embedding", ALWAYS, 0},
    {"encoder.bottleneck", "encoder/bottleneck", ALWAYS, 0},
    {"encoder.*.forward", "encoder/*/forward_layer/cell", ALWAYS, 1},
    {"encoder.*.backward", "encoder/*/backward_layer/cell", ALWAYS, 1},
    {"encoder.*", "encoder/*/cell", ALWAYS, 1},
    {"decoder.embedding", "decoder/embedding", ALWAYS, 0},
    {"decoder.attention.query", "decoder/attention/mha/query_dense", MULTIHEAD, 0},
    {"decoder.attention.key", "decoder/attention/mha/key_dense", MULTIHEAD, 0},
    {"decoder.attention.value", "decoder/attention/mha/value_dense", MULTIHEAD, 0},
    {"decoder.attention.output", "decoder/attention/mha/output_dense", MULTIHEAD, 0},
    {"decoder.attention.query", "decoder/attention/wq", OTHER_SCORE, 0},
    {"decoder.attention.key", "decoder/attention/wk", OTHER_SCORE, 0},
    {"decoder.attention.score", "decoder/attention/v", OTHER_SCORE, 0},
    {"decoder.norm", "decoder/attention/layernorm", ALWAYS, 0},
    {"decoder.combine", "decoder/combine", ALWAYS, 0},
    {"decoder.copy", "decoder/copy", ALWAYS, 0},
    {"decoder.bridge.*", "decoder/bridge/*", ALWAYS, 0},
    {"decoder.output", "decoder/output_layer", ALWAYS, 0},
    {"decoder.rnn", "decoder/cell", STEPPED, 1},
    {"decoder.*", "decoder/*/cell", ALWAYS, 1},
    /* The autoencoder's projection: an attribute whose name comes after "layers" is found as one of those. */
    {"output", "layers/dense", ALWAYS, 0},
    {"output", "output_layer", ALWAYS, 0},
    {"output", "head", ALWAYS, 0},
};

static int holds(when w, const cpl_config *c)
{
    const cpl_config_attention *a = &c->model.decoder.attention;
    switch (w) {
    case MULTIHEAD:
        return a->score == CPL_ATTEND_MULTIHEAD;
    case OTHER_SCORE:
        return a->score != CPL_ATTEND_MULTIHEAD;
    case STEPPED:
        return a->score != CPL_ATTEND_NONE && a->position == CPL_POSITION_BEFORE;
    default:
        return 1;
    }
}

/* 1: pattern stands for the layer [0, length); the star's part is set. */
static int fits(const char *pattern, const char *layer, size_t length, const char **word, size_t *word_length)
{
    const char *star = strchr(pattern, '*');
    size_t before = star ? (size_t)(star - pattern) : strlen(pattern), after = star ? strlen(star + 1) : 0;
    *word = layer + before;
    *word_length = 0;
    if (!star)
        return before == length && memcmp(pattern, layer, length) == 0;
    if (length <= before + after || memcmp(pattern, layer, before) != 0 ||
        memcmp(star + 1, layer + length - after, after) != 0)
        return 0;
    *word_length = length - before - after;
    return memchr(*word, '.', *word_length) == NULL;
}

static const row *row_of(const cpl_config *c, const char *layer, size_t length, int choice, char name[CPL_KERAS_NAME])
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *word;
        size_t n;
        if (!holds(rows[i].when, c) || !fits(rows[i].ours, layer, length, &word, &n) || choice-- > 0)
            continue;
        const char *star = strchr(rows[i].theirs, '*');
        int before = star ? (int)(star - rows[i].theirs) : (int)strlen(rows[i].theirs);
        snprintf(name, CPL_KERAS_NAME, "%.*s%.*s%s", before, rows[i].theirs, star ? (int)n : 0, word,
                 star ? star + 1 : "");
        return &rows[i];
    }
    return NULL;
}

/* Keras numbers a layer's variables in the order in which they are made. */
static int number_of(const char *leaf, int is_cell)
{
    if (strcmp(leaf, "kernel") == 0 || strcmp(leaf, "gamma") == 0)
        return 0;
    if (strcmp(leaf, "recurrent_kernel") == 0 || strcmp(leaf, "beta") == 0)
        return 1;
    return is_cell ? 2 : 1;
}

/* Keras's attention has the heads as a dimension: [in heads width], [heads width], and the output [heads width out]. */
static void split_heads(const cpl_config *c, const char *layer, cpl_keras_tensor *t)
{
    int64_t heads = c->model.decoder.attention.heads, *s = t->shape;
    int is_kernel = t->rank == 2;
    if (strncmp(layer, "decoder.attention.output", 24) == 0) {
        if (is_kernel)
            t->rank = 3, s[2] = s[1], s[1] = s[0] / heads, s[0] = heads;
    } else {
        t->rank++;
        s[is_kernel + 1] = s[is_kernel] / heads;
        s[is_kernel] = heads;
    }
}

cpl_status cpl_keras_check(const cpl_config *config, cpl_error *err)
{
    if (config->model.tie != CPL_TIE_NONE)
        CPL_FAIL(err, CPL_USAGE, "'model.tie' is %s, but Keras's reference classes have a projection of their own",
                 config->model.tie == CPL_TIE_ALL ? "all" : "target");
    if (config->model.decoder.input_feed)
        CPL_FAIL(err, CPL_USAGE, "'model.decoder.input_feed' is true, which Keras's reference classes do not have");
    return CPL_OK;
}

int cpl_keras_place(const cpl_config *config, const cpl_parameters *p, size_t i, int choice, cpl_keras_tensor *t)
{
    const cpl_parameter_info *info = cpl_parameters_at(p, i);
    const char *dot = strrchr(info->path, '.');
    if (!dot)
        return 0;
    size_t length = (size_t)(dot - info->path);
    const row *r = row_of(config, info->path, length, choice, t->name);
    if (!r)
        return 0;
    size_t n = strlen(t->name);
    snprintf(t->name + n, sizeof t->name - n, "/vars/%d", number_of(dot + 1, r->is_cell));
    t->rank = info->rank;
    memcpy(t->shape, info->size, sizeof t->shape);
    t->row = -1;
    t->may_lack = r->when == OTHER_SCORE && strcmp(dot, ".bias") == 0;
    t->gates = CPL_KERAS_NO_GATES;
    if (r->when == MULTIHEAD)
        split_heads(config, info->path, t);
    if (!r->is_cell)
        return 1;
    const char *side = strncmp(info->path, "encoder", 7) == 0 ? "encoder" : "decoder";
    int cell = side[0] == 'e' ? config->model.encoder.cell : config->model.decoder.cell;
    t->gates = cell == CPL_CELL_LSTM ? CPL_KERAS_IFCO : CPL_KERAS_ZRH;
    char other[CPL_KERAS_NAME];
    snprintf(other, sizeof other, "%.*s.recurrent_bias", (int)length, info->path);
    int is_second = strcmp(dot, ".recurrent_bias") == 0;
    if (is_second || (strcmp(dot, ".bias") == 0 && cpl_parameters_find(p, other) >= 0)) {
        t->row = is_second;
        t->rank = 2, t->shape[1] = info->size[0], t->shape[0] = 2;
    }
    return 1;
}
