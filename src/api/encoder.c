/* encoder.c: lines of text → source rows → one run of the encoder → vectors of each line (case H04).
 *
 * Only the encoder is compiled, so a file that holds nothing else will do. START and END are read, as in training (and
 * padding by a model without masking), but are no tokens of the line: the mean and the largest are over what stands
 * between them, of a blank line over both.
 * `last` is what the recurrent layer ended with, both directions merged; with a bottleneck its vector. Vectors are
 * read from the packed rows: a rectangle would be as wide as the longest line of the batch. */
#include "api/encoder.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/parts.h"

struct cpl_line_encoder {
    cpl_program *program;
    cpl_codec *codec;
    int bottleneck;
    int64_t pad_to;
    int time;         /* the symbol of the line's tokens */
    cpl_tensor y, last; /* of the last run */
    int32_t *line_ids; /* of one line */
    size_t line_ids_capacity;
    int32_t *ids;     /* source rows, one after the other */
    size_t ids_capacity;
    const int32_t **row; /* [lines_capacity], as is length */
    int64_t *length;
    size_t lines_capacity;
    float *vectors;   /* of one line */
    size_t vectors_capacity;
};

static void trace(cpl_graph *g, const void *user)
{
    const cpl_model_sizes *n = user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", n->source_vocabulary), "batch s");
    cpl_model_encoded e = cpl_model_encode(g, n, source, NULL, NULL);
    cpl_output(g, "y", e.y);
    cpl_output(g, "last", e.states.h[n->config->model.encoder.layers - 1]);
}

cpl_status cpl_line_encoder_new(cpl_line_encoder **out, const cpl_model_file *file, cpl_engine *engine,
                                cpl_codec *codec, cpl_error *err)
{
    cpl_program shared = {.engine = engine};
    cpl_compile_options o = {.name = "encoder", .share = &shared, .inference = 1};
    cpl_line_encoder *e = cpl_alloc(1, sizeof *e);
    *out = NULL;
    if (!e)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    e->codec = codec;
    e->bottleneck = file->config->model.bottleneck > 0;
    e->pad_to = file->config->text.source.pad_to;
    cpl_status status = cpl_compile(&e->program, trace, &file->sizes, &o, err);
    if (status != CPL_OK) {
        cpl_line_encoder_free(e);
        return status;
    }
    e->time = cpl_program_symbol(e->program, "s");
    *out = e;
    return CPL_OK;
}

void cpl_line_encoder_free(cpl_line_encoder *e)
{
    if (!e)
        return;
    cpl_program_free(e->program);
    cpl_release(e->line_ids);
    cpl_release(e->ids);
    cpl_release(e->row);
    cpl_release(e->length);
    cpl_release(e->vectors);
    cpl_release(e);
}

cpl_status cpl_line_encoder_check(const cpl_line_encoder *e, cpl_pool_kind pool, cpl_error *err)
{
    if (pool < CPL_POOL_MEAN || pool > CPL_POOL_MAX)
        CPL_FAIL(err, CPL_USAGE, "pool is %d, expected one of cpl_pool_kind", (int)pool);
    if (pool == CPL_POOL_NONE && e->bottleneck)
        CPL_FAIL(err, CPL_USAGE, "a model with a bottleneck has one vector for a line, none for a token");
    return CPL_OK;
}

/* ---- a batch ---- */

static cpl_status reserve(cpl_line_encoder *e, size_t count, cpl_error *err)
{
    size_t row = e->lines_capacity, length = row;
    if (count <= e->lines_capacity)
        return CPL_OK;
    if (cpl_grow(&e->row, &row, count, sizeof *e->row) | cpl_grow(&e->length, &length, count, sizeof *e->length))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %zu lines", count);
    e->lines_capacity = count;
    return CPL_OK;
}

/* Appends the line's source row at `at`. */
static cpl_status add_line(cpl_line_encoder *e, const cpl_line *line, size_t at, int64_t *length, cpl_error *err)
{
    size_t words;
    CPL_TRY(cpl_codec_encode(e->codec, line->text, line->length, &e->line_ids, &e->line_ids_capacity, &words, NULL,
                             err), err, "cannot read line %lld", (long long)line->number);
    if (cpl_grow(&e->ids, &e->ids_capacity, at + cpl_source_length(words, e->pad_to), sizeof *e->ids))
        CPL_FAIL(err, CPL_FAILED, "out of memory for line %lld of %zu tokens", (long long)line->number, words);
    if (words > 0)
        memcpy(e->ids + at + 1, e->line_ids, words * sizeof *e->ids);
    *length = (int64_t)cpl_source_close(e->ids + at, words, e->pad_to);
    return CPL_OK;
}

cpl_status cpl_line_encoder_run(cpl_line_encoder *e, const cpl_line *lines, size_t count, cpl_error *err)
{
    size_t at = 0;
    CPL_TRY(reserve(e, count, err), err, "cannot encode");
    for (size_t i = 0; i < count; at += (size_t)e->length[i++])
        CPL_TRY(add_line(e, &lines[i], at, &e->length[i], err), err, "cannot encode");
    at = 0;
    for (size_t i = 0; i < count; at += (size_t)e->length[i++])
        e->row[i] = e->ids + at;
    CPL_TRY(cpl_feed_ids(e->program, "source", e->row, e->length, (int64_t)count, err), err, "cannot encode");
    CPL_TRY(cpl_run(e->program, CPL_EVALUATE, err), err, "cannot encode");
    cpl_program_output(e->program, "y", &e->y);
    cpl_program_output(e->program, "last", &e->last);
    return CPL_OK;
}

/* ---- a line of it ---- */

/* One vector is all that there is, or all that is asked for. */
static int is_single(const cpl_line_encoder *e, cpl_pool_kind pool)
{
    return e->bottleneck || pool == CPL_POOL_LAST;
}

int64_t cpl_line_encoder_width(const cpl_line_encoder *e, cpl_pool_kind pool)
{
    const cpl_graph *g = e->program->traced;
    const char *name = is_single(e, pool) ? "last" : "y";
    for (size_t i = 0; i < g->output_count; i++)
        if (strcmp(g->outputs[i].name, name) == 0)
            return cpl_type_width(&g->values[g->outputs[i].value].type);
    return 0;
}

static const real *single(const cpl_line_encoder *e, size_t line)
{
    int order = e->last.type->order;
    int64_t row = order >= 0 ? e->program->geometry[order].position[line] : (int64_t)line;
    return e->last.data + row * e->last.width;
}

static const real *token(const cpl_line_encoder *e, size_t line, int64_t step)
{
    const cpl_geometry *g = &e->program->geometry[e->time];
    return e->y.data + (g->offset[step] + g->position[line]) * e->y.width;
}

/* Words of a line: START, END and padding are none. */
static int64_t words_of(const cpl_line_encoder *e, size_t line)
{
    return cpl_source_real(e->row[line], e->length[line]) - 2;
}

static void pool_tokens(cpl_line_encoder *e, size_t line, int most)
{
    int64_t words = words_of(e, line), first = words > 0, end = words > 0 ? words + 1 : 2;
    for (int64_t k = 0; k < e->y.width; k++) {
        double sum = 0;
        float largest = -INFINITY;
        for (int64_t step = first; step < end; step++) {
            float x = (float)token(e, line, step)[k];
            sum += (double)x;
            largest = fmaxf(largest, x);
        }
        e->vectors[k] = most ? largest : (float)(sum / (double)(end - first));
    }
}

int64_t cpl_line_encoder_rows(cpl_line_encoder *e, size_t line, cpl_pool_kind pool, const float **vectors)
{
    int64_t width = cpl_line_encoder_width(e, pool), rows = pool == CPL_POOL_NONE ? words_of(e, line) : 1;
    if (cpl_grow(&e->vectors, &e->vectors_capacity, (size_t)(rows * width) + 1, sizeof *e->vectors))
        return -1;
    *vectors = e->vectors;
    if (is_single(e, pool))
        memcpy(e->vectors, single(e, line), (size_t)width * sizeof *e->vectors);
    else if (pool != CPL_POOL_NONE)
        pool_tokens(e, line, pool == CPL_POOL_MAX);
    for (int64_t i = 0; pool == CPL_POOL_NONE && i < rows; i++)
        memcpy(e->vectors + i * width, token(e, line, i + 1), (size_t)width * sizeof *e->vectors);
    return rows;
}
