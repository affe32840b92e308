/* encode.c: cpl_encode_lines: the encoder alone (case H04): a vector for each line, or for each of its tokens.
 *
 * Only the encoder is compiled, so a file that holds nothing else will do. START and END are read, as in training, but
 * are no tokens of the line: the mean and the largest are over what stands between them, of a blank line over both.
 * `last` is what the recurrent layer ended with, both directions merged; with a bottleneck its vector. */
#include <math.h>
#include <string.h>

#include "api/model.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "model/parts.h"

static void trace(cpl_graph *g, const void *user)
{
    const cpl_model_sizes *n = user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", n->source_vocabulary), "batch s");
    cpl_model_encoded e = cpl_model_encode(g, n, source, NULL, NULL);
    cpl_output(g, "y", e.y);
    cpl_output(g, "last", e.states.h[n->config->model.encoder.layers - 1]);
}

typedef struct encoding {
    cpl_model_file *file;
    cpl_engine *engine;
    cpl_program *program;
    cpl_codec *codec;
    cpl_pool_kind pool;
    int32_t *ids;
    size_t ids_capacity;
    float *y; /* of a line: [tokens width] */
    size_t y_capacity;
    float *all; /* for a file: [rows width] */
    size_t all_count, all_capacity;
    int64_t *lengths;
    size_t length_count, length_capacity;
    int64_t width;
} encoding;

static void encoding_free(encoding *e)
{
    cpl_program_free(e->program);
    cpl_engine_release(e->engine);
    cpl_codec_free(e->codec);
    cpl_model_file_close(e->file);
    cpl_release(e->ids);
    cpl_release(e->y);
    cpl_release(e->all);
    cpl_release(e->lengths);
}

static cpl_status open_encoder(encoding *e, const char *model, int threads, cpl_error *err)
{
    char *path = cpl_model_path(model);
    cpl_status status = path ? cpl_model_file_open(&e->file, path, err)
                             : cpl_error_set(err, CPL_FAILED, "out of memory");
    cpl_release(path);
    if (status != CPL_OK)
        return status;
    const cpl_config_side *side = &e->file->config->text.source;
    cpl_text_rules rules = {.tokens = (cpl_tokens)side->tokens, .standardize = (cpl_standardize)side->standardize};
    cpl_str table = {0};
    CPL_TRY(cpl_codec_new(&e->codec, rules, e->file->source, err), err, "cannot use '%s'", model);
    CPL_TRY(cpl_engine_new(&e->engine, threads, 0, err), err, "cannot use '%s'", model);
    cpl_program shared = {.engine = e->engine};
    cpl_compile_options o = {.name = "encoder", .share = &shared, .inference = 1};
    CPL_TRY(cpl_compile(&e->program, trace, &e->file->sizes, &o, err), err, "cannot use '%s'", model);
    status = cpl_model_file_load_part(e->file, "encoder", e->engine->parameters, &table, err);
    cpl_str_free(&table);
    CPL_TRY(status, err, "cannot use '%s' as an encoder", model);
    return CPL_OK;
}

/* e->y: of a line's tokens, START and END included; or one row, its last states. */
static cpl_status run_line(encoding *e, const char *text, size_t length, int64_t *rows, cpl_error *err)
{
    size_t count;
    CPL_TRY(cpl_codec_encode(e->codec, text, length, &e->ids, &e->ids_capacity, &count, NULL, err), err,
            "cannot read a line");
    if (cpl_grow(&e->ids, &e->ids_capacity, count + 2, sizeof *e->ids))
        CPL_FAIL(err, CPL_FAILED, "out of memory for a line of %zu tokens", count);
    memmove(e->ids + 1, e->ids, count * sizeof *e->ids);
    e->ids[0] = CPL_ID_START;
    e->ids[count + 1] = CPL_ID_END;
    count += 2;
    const int32_t *row = e->ids;
    int64_t n = (int64_t)count, shape[6];
    int rank, last = e->pool == CPL_POOL_LAST;
    const char *name = last || e->file->config->model.bottleneck > 0 ? "last" : "y";
    CPL_TRY(cpl_feed_ids(e->program, "source", &row, &n, 1, err), err, "cannot encode");
    CPL_TRY(cpl_run(e->program, CPL_EVALUATE, err), err, "cannot encode");
    CPL_TRY(cpl_read(e->program, name, NULL, 0, shape, &rank, err), err, "cannot encode");
    e->width = shape[rank - 1];
    *rows = rank == 3 ? shape[1] : 1;
    size_t need = (size_t)(*rows * e->width);
    if (cpl_grow(&e->y, &e->y_capacity, need, sizeof *e->y))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %zu numbers", need);
    CPL_TRY(cpl_read(e->program, name, e->y, need, NULL, NULL, err), err, "cannot encode");
    return CPL_OK;
}

/* Leaves in e->y what the line's result is: one row, or (none) a row for each token. Returns the rows. */
static int64_t pool_line(encoding *e, int64_t rows)
{
    int64_t first = rows > 2 ? 1 : 0, end = rows > 2 ? rows - 1 : rows;
    if (rows < 2)
        return rows;
    if (e->pool == CPL_POOL_NONE) {
        memmove(e->y, e->y + e->width, (size_t)((rows - 2) * e->width) * sizeof *e->y);
        return rows - 2;
    }
    for (int64_t k = 0; k < e->width; k++) {
        double sum = 0;
        float most = -INFINITY;
        for (int64_t i = first; i < end; i++) {
            sum += (double)e->y[i * e->width + k];
            most = fmaxf(most, e->y[i * e->width + k]);
        }
        e->y[k] = e->pool == CPL_POOL_MAX ? most : (float)(sum / (double)(end - first));
    }
    return 1;
}

static cpl_status write_json(encoding *e, int64_t rows, FILE *out, cpl_error *err)
{
    cpl_json *root = cpl_json_object(), *list = cpl_json_array();
    cpl_str line = {0};
    for (int64_t i = 0; i < rows; i++) {
        cpl_json *row = e->pool == CPL_POOL_NONE ? cpl_json_array() : list;
        for (int64_t k = 0; k < e->width; k++)
            cpl_json_add_real(row, (double)e->y[i * e->width + k], 9);
        if (row != list)
            cpl_json_add(list, row);
    }
    cpl_json_set(root, e->pool == CPL_POOL_NONE ? "vectors" : "vector", list);
    cpl_status status = root ? cpl_json_write(root, &line, err) : cpl_error_set(err, CPL_FAILED, "out of memory");
    cpl_json_free(root);
    cpl_str_add(&line, "\n");
    if (status == CPL_OK && (fwrite(line.data, 1, line.length, out) != line.length || fflush(out) != 0))
        status = cpl_error_set(err, CPL_FAILED, "cannot write the output");
    cpl_str_free(&line);
    return status;
}

static cpl_status keep(encoding *e, int64_t rows, cpl_error *err)
{
    size_t n = (size_t)(rows * e->width);
    if (cpl_grow(&e->all, &e->all_capacity, e->all_count + n + 1, sizeof *e->all) ||
        cpl_grow(&e->lengths, &e->length_capacity, e->length_count + 1, sizeof *e->lengths))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %zu numbers", e->all_count + n);
    memcpy(e->all + e->all_count, e->y, n * sizeof *e->all);
    e->all_count += n;
    e->lengths[e->length_count++] = rows;
    return CPL_OK;
}

static cpl_status write_file(encoding *e, const char *path, cpl_error *err)
{
    int64_t lines = (int64_t)e->length_count, width = e->width;
    int64_t shape[2] = {width > 0 ? (int64_t)e->all_count / width : 0, width};
    cpl_status status = cpl_npy_write(path, "<f4", shape, 2, e->all, err);
    if (status != CPL_OK || e->pool != CPL_POOL_NONE)
        return status;
    size_t n = strlen(path);
    cpl_str name = {0};
    cpl_str_printf(&name, "%.*s.lengths.npy", (int)(n > 4 && strcmp(path + n - 4, ".npy") == 0 ? n - 4 : n), path);
    status = name.failed ? cpl_error_set(err, CPL_FAILED, "out of memory")
                         : cpl_npy_write(name.data, "<i8", &lines, 1, e->lengths, err);
    cpl_str_free(&name);
    return status;
}

static cpl_status run_all(encoding *e, const cpl_encode_options *o, FILE *out, cpl_error *err)
{
    cpl_lines *lines;
    const cpl_line *line;
    size_t count = 0;
    CPL_TRY(cpl_lines_open(&lines, o->input ? o->input : "-", err), err, "cannot encode");
    cpl_status status = CPL_OK;
    do {
        status = cpl_lines_read(lines, 64, &line, &count, err);
        for (size_t i = 0; i < count && status == CPL_OK; i++) {
            int64_t rows = 0;
            status = run_line(e, line[i].text, line[i].length, &rows, err);
            if (status != CPL_OK)
                status = cpl_error_context(err, status, "line %lld", (long long)line[i].number);
            else
                rows = pool_line(e, rows);
            if (status == CPL_OK)
                status = o->output ? keep(e, rows, err) : write_json(e, rows, out, err);
        }
    } while (status == CPL_OK && count > 0);
    cpl_lines_close(lines);
    return status == CPL_OK && o->output ? write_file(e, o->output, err) : status;
}

cpl_status cpl_encode_lines(const char *model, const cpl_encode_options *options, FILE *out, cpl_error *err)
{
    encoding e = {.pool = options->pool};
    cpl_status status = open_encoder(&e, model, options->threads, err);
    if (status == CPL_OK && e.pool == CPL_POOL_NONE && e.file->config->model.bottleneck > 0)
        status = cpl_error_set(err, CPL_USAGE, "a model with a bottleneck has one vector for a line, none for a token");
    if (status == CPL_OK)
        status = run_all(&e, options, out, err);
    encoding_free(&e);
    return status;
}
