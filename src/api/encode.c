/* encode.c: cpl_encode and cpl_encode_lines: vectors of one text; of a stream of lines, batch by batch. */
#include <errno.h>
#include <string.h>

#include "api/encoder.h"
#include "api/model.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"

cpl_status cpl_encode(float **vectors, int64_t shape[2], cpl_model *model, const char *text, cpl_pool_kind pool,
                      cpl_error *err)
{
    size_t length = strlen(text), valid = cpl_utf8_valid(text, length);
    cpl_line line = {.text = text, .length = length, .number = 1};
    const float *rows;
    *vectors = NULL;
    if (valid < length)
        CPL_FAIL(err, CPL_USAGE, "byte %zu of the text is not UTF-8", valid + 1);
    CPL_TRY(cpl_model_encoder(model, err), err, "cannot encode");
    CPL_TRY(cpl_line_encoder_check(model->encoder, pool, err), err, "cannot encode");
    CPL_TRY(cpl_line_encoder_run(model->encoder, &line, 1, err), err, "cannot encode");
    shape[0] = cpl_line_encoder_rows(model->encoder, 0, pool, &rows);
    shape[1] = cpl_line_encoder_width(model->encoder, pool);
    size_t count = shape[0] > 0 ? (size_t)(shape[0] * shape[1]) : 0;
    *vectors = shape[0] < 0 ? NULL : cpl_alloc(count + 1, sizeof **vectors);
    if (!*vectors)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the vectors of %zu bytes of text", length);
    memcpy(*vectors, rows, count * sizeof **vectors);
    return CPL_OK;
}

/* ---- a stream ---- */

typedef struct stream {
    cpl_line_encoder *encoder;
    cpl_pool_kind pool;
    int64_t width;
    FILE *out;
    cpl_npy *vectors, *lengths; /* NULL: JSON lines to out; no file of lengths */
    cpl_str line;               /* scratch */
} stream;

static void add_row(cpl_str *to, const float *x, int64_t width)
{
    cpl_str_add_char(to, '[');
    for (int64_t k = 0; k < width; k++) {
        cpl_str_add(to, k ? ", " : "");
        cpl_json_write_real(to, (double)x[k], 9);
    }
    cpl_str_add_char(to, ']');
}

/* {"vector": […]}, or {"vectors": [[…], …]} of tokens. Written without a tree: that took most of the time. */
static cpl_status write_json(stream *s, const float *x, int64_t rows, cpl_error *err)
{
    int many = s->pool == CPL_POOL_NONE;
    cpl_str_clear(&s->line);
    cpl_str_add(&s->line, many ? "{\"vectors\": [" : "{\"vector\": ");
    for (int64_t i = 0; i < rows; i++) {
        cpl_str_add(&s->line, i ? ", " : "");
        add_row(&s->line, x + i * s->width, s->width);
    }
    cpl_str_add(&s->line, many ? "]}\n" : "}\n");
    if (s->line.failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory for an output");
    if (fwrite(s->line.data, 1, s->line.length, s->out) != s->line.length)
        CPL_FAIL(err, CPL_FAILED, "cannot write the output: %s", cpl_reason(errno));
    return CPL_OK;
}

static cpl_status write_line(stream *s, size_t i, cpl_error *err)
{
    const float *x;
    int64_t rows = cpl_line_encoder_rows(s->encoder, i, s->pool, &x);
    if (rows < 0)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the vectors of a line");
    if (!s->vectors)
        return write_json(s, x, rows, err);
    cpl_status status = cpl_npy_add(s->vectors, x, rows, err);
    return status == CPL_OK && s->lengths ? cpl_npy_add(s->lengths, &rows, 1, err) : status;
}

/* Answers what was read, and lets nothing wait in the buffer: the other side may send its next line only then. */
static cpl_status run(stream *s, cpl_lines *input, size_t most, cpl_error *err)
{
    const cpl_line *lines;
    size_t count;
    for (;;) {
        CPL_TRY(cpl_lines_read(input, most, &lines, &count, err), err, "cannot read the input");
        if (count == 0)
            return CPL_OK;
        CPL_TRY(cpl_line_encoder_run(s->encoder, lines, count, err), err, "cannot encode lines %lld to %lld",
                (long long)lines[0].number, (long long)lines[count - 1].number);
        cpl_status status = CPL_OK;
        for (size_t i = 0; i < count && status == CPL_OK; i++)
            status = write_line(s, i, err);
        if (status == CPL_OK && !s->vectors && fflush(s->out) != 0)
            CPL_FAIL(err, CPL_FAILED, "cannot write the output: %s", cpl_reason(errno));
        if (status != CPL_OK)
            return status;
    }
}

/* ---- .npy files ---- */

/* x.npy → x.lengths.npy */
static cpl_status open_files(stream *s, const char *path, cpl_error *err)
{
    cpl_status status = cpl_npy_open(&s->vectors, path, "<f4", s->width, err);
    if (status != CPL_OK || s->pool != CPL_POOL_NONE)
        return status;
    size_t n = strlen(path);
    cpl_str name = {0};
    cpl_str_printf(&name, "%.*s.lengths.npy", (int)(n > 4 && strcmp(path + n - 4, ".npy") == 0 ? n - 4 : n), path);
    status = name.failed ? cpl_error_set(err, CPL_FAILED, "out of memory")
                         : cpl_npy_open(&s->lengths, name.data, "<i8", 0, err);
    cpl_str_free(&name);
    return status;
}

static cpl_status close_files(stream *s, cpl_status status, cpl_error *err)
{
    cpl_npy *files[2] = {s->vectors, s->lengths};
    for (int i = 0; i < 2; i++) {
        if (status == CPL_OK && files[i])
            status = cpl_npy_commit(files[i], err);
        else
            cpl_npy_abandon(files[i]);
    }
    return status;
}

static cpl_status encode_lines(stream *s, const cpl_encode_options *o, cpl_error *err)
{
    cpl_lines *lines;
    size_t most = (size_t)(o->batch_size ? o->batch_size : CPL_GENERATE_BATCH);
    CPL_TRY(cpl_line_encoder_check(s->encoder, s->pool, err), err, "cannot encode");
    CPL_TRY(cpl_lines_open(&lines, o->input ? o->input : "-", err), err, "cannot encode");
    s->width = cpl_line_encoder_width(s->encoder, s->pool);
    cpl_status status = o->output ? open_files(s, o->output, err) : CPL_OK;
    if (status == CPL_OK)
        status = run(s, lines, most, err);
    cpl_lines_close(lines);
    return close_files(s, status, err);
}

cpl_status cpl_encode_lines(const char *model, const cpl_encode_options *options, FILE *out, cpl_error *err)
{
    cpl_model *m;
    if (options->batch_size < 0)
        CPL_FAIL(err, CPL_USAGE, "batch-size is %lld lines, expected at least 1, or 0 for %d",
                 (long long)options->batch_size, CPL_GENERATE_BATCH);
    cpl_status status = cpl_model_open_encoder(&m, model, options->threads, err);
    if (status != CPL_OK)
        return status;
    stream s = {.encoder = m->encoder, .pool = options->pool, .out = out};
    status = encode_lines(&s, options, err);
    cpl_str_free(&s.line);
    cpl_model_close(m);
    return status;
}
