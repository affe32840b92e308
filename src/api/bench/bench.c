/* bench.c: cpl_bench_run: the works one after the other, then the peak that they are compared with. */
#include "api/bench/bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"

enum { LENGTH_MOST = 100000 };
static const double SECONDS = 3;

/* ---- what the works share ---- */

cpl_bench_row *cpl_bench_add(cpl_bench *b, const char *work, cpl_error *err)
{
    if (cpl_grow(&b->rows, &b->capacity, b->count + 1, sizeof *b->rows)) {
        cpl_error_set(err, CPL_FAILED, "out of memory for %zu results", b->count + 1);
        return NULL;
    }
    cpl_bench_row *row = &b->rows[b->count++];
    memset(row, 0, sizeof *row);
    strncpy(row->work, work, sizeof row->work - 1);
    return row;
}

void cpl_bench_tell(const cpl_bench *b, const char *format, ...)
{
    char text[200];
    va_list arguments;
    if (!b->options->message)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    b->options->message(b->options->user, 0, text);
}

/* The reference summarizer asks after the cell, which is faster where whole sequences are known. */
static cpl_status set_type(cpl_config *c, const char *type, cpl_error *err)
{
    cpl_status status = cpl_config_set(c, "model.type", type, err);
    if (status == CPL_OK && strcmp(type, "summarizer") == 0)
        status = cpl_config_set(c, "model.decoder.attention.position", "after", err);
    return status;
}

/* Only the model and the update are the user's: all else is the same for all, so that figures can be compared. */
static cpl_status set_keys(const cpl_bench *b, cpl_config *c, cpl_error *err)
{
    for (int i = 0; i < b->options->set_count; i++) {
        const char *pair = b->options->set[i];
        int model = strncmp(pair, "model.", 6) == 0 && strncmp(pair, "model.type=", 11) != 0;
        if (!model && strncmp(pair, "training.optimizer.", 19) != 0)
            CPL_FAIL(err, CPL_USAGE, "a benchmark sets keys of its model and of training.optimizer alone, such as "
                     "model.units=512, got '%s'" CPL_HINT
                     "the work says what type it is; batch, vocabulary, precision and threads are options", pair);
        CPL_TRY(cpl_config_set_pair(c, pair, err), err, "cannot set '%s'", pair);
    }
    return CPL_OK;
}

cpl_status cpl_bench_config(const cpl_bench *b, const char *type, cpl_config **config, cpl_error *err)
{
    *config = NULL;
    cpl_status status = cpl_config_default(config, err);
    if (status == CPL_OK)
        status = set_type(*config, type, err);
    if (status == CPL_OK)
        status = set_keys(b, *config, err);
    if (status == CPL_OK)
        status = cpl_config_check(*config, 0, err);
    if (status != CPL_OK) {
        cpl_config_free(*config);
        *config = NULL;
        return cpl_error_context(err, status, "cannot measure the %s", type);
    }
    return CPL_OK;
}

/* ---- the list of works ---- */

static cpl_status train_one(cpl_bench *b, const char *name, cpl_error *err)
{
    cpl_bench_work *w = NULL;
    cpl_bench_row *row = cpl_bench_add(b, name, err);
    if (!row)
        return CPL_FAILED;
    cpl_bench_tell(b, "training steps of the %s …", name);
    cpl_status status = cpl_bench_work_new(&w, b, name, 0, NULL, err);
    if (status == CPL_OK)
        status = cpl_bench_train(b, w, row, err);
    cpl_bench_work_free(w);
    return status;
}

static cpl_status translator(cpl_bench *b, cpl_error *err)
{
    return train_one(b, "translator", err);
}

static cpl_status autoencoder(cpl_bench *b, cpl_error *err)
{
    return train_one(b, "autoencoder", err);
}

static cpl_status summarizer(cpl_bench *b, cpl_error *err)
{
    return train_one(b, "summarizer", err);
}

typedef struct work {
    const char *name;
    cpl_status (*run)(cpl_bench *b, cpl_error *err);
    int always; /* part of a call that names none */
} work;

static const work works[] = {
    {"translator", translator, 1}, {"autoencoder", autoencoder, 1},   {"summarizer", summarizer, 1},
    {"decode", cpl_bench_decode, 1}, {"kernels", cpl_bench_kernels, 1}, {"growth", cpl_bench_growth, 0},
};
enum { WORKS = sizeof works / sizeof *works };

static const work *find_work(const char *name)
{
    for (int i = 0; i < WORKS; i++)
        if (strcmp(works[i].name, name) == 0)
            return &works[i];
    return NULL;
}

/* ---- options ---- */

static cpl_status check_works(const cpl_bench_options *o, cpl_error *err)
{
    const char *names[WORKS];
    int decodes = o->work_count == 0;
    for (int i = 0; i < WORKS; i++)
        names[i] = works[i].name;
    for (int i = 0; i < o->work_count; i++) {
        const char *name = o->works[i], *near = cpl_nearest(name, names, WORKS);
        decodes |= strcmp(name, "decode") == 0;
        if (!find_work(name) && near)
            CPL_FAIL(err, CPL_USAGE, "unknown work '%s'" CPL_HINT "did you mean '%s'?", name, near);
        if (!find_work(name))
            CPL_FAIL(err, CPL_USAGE, "unknown work '%s', expected translator, autoencoder, summarizer, decode, kernels "
                     "or growth", name);
    }
    if ((o->model || o->keep_model) && !decodes)
        CPL_FAIL(err, CPL_USAGE, "a model file is for the work 'decode', which is not asked for");
    if (o->model && o->keep_model)
        CPL_FAIL(err, CPL_USAGE, "a model is either read or written, got '%s' and '%s'", o->model, o->keep_model);
    if (o->model && o->set_count)
        CPL_FAIL(err, CPL_USAGE, "'%s' has its own configuration: nothing can be set in it", o->model);
    if (o->model && o->vocabulary)
        CPL_FAIL(err, CPL_USAGE, "'%s' has its own vocabulary, of no other size", o->model);
    return CPL_OK;
}

static cpl_status in_range(const char *name, int64_t value, int64_t least, int64_t most, cpl_error *err)
{
    if (value != 0 && (value < least || value > most))
        CPL_FAIL(err, CPL_USAGE, "%s is %lld, expected %lld to %lld, or 0 for the default", name, (long long)value,
                 (long long)least, (long long)most);
    return CPL_OK;
}

static cpl_status check(const cpl_bench_options *o, cpl_error *err)
{
    cpl_status s = check_works(o, err);
    s = s ? s : in_range("threads", o->threads, 1, 1024, err);
    s = s ? s : in_range("steps", o->steps, 1, 1000000, err);
    s = s ? s : in_range("batch", o->batch, 1, 65536, err);
    s = s ? s : in_range("vocabulary", o->vocabulary, 5, 10000000, err);
    s = s ? s : in_range("tokens", o->tokens, 1, 10000, err);
    if (s == CPL_OK && !(o->seconds >= 0 && o->seconds <= 3600))
        CPL_FAIL(err, CPL_USAGE, "seconds is %g, expected 0 (the default) to 3600", o->seconds);
    return s;
}

/* ---- lengths of a file ---- */

static cpl_status add_length(cpl_bench *b, const char *line, int64_t number, size_t *capacity, cpl_error *err)
{
    char *end;
    long long source = strtoll(line, &end, 10), target = 0;
    int ok = end != line && (*end == ' ' || *end == '\t');
    if (ok)
        target = strtoll(line = end, &end, 10);
    ok = ok && end != line && end[strspn(end, " \t\r")] == '\0';
    if (!ok || source < 1 || target < 1 || source > LENGTH_MOST || target > LENGTH_MOST)
        CPL_FAIL(err, CPL_USAGE, "line %lld is not two lengths from 1 to %d, of a source and of a target",
                 (long long)number, LENGTH_MOST);
    if (cpl_grow(&b->lengths, capacity, (size_t)(2 * b->length_count + 2), sizeof *b->lengths))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld lengths", (long long)number);
    b->lengths[2 * b->length_count] = source;
    b->lengths[2 * b->length_count++ + 1] = target;
    return CPL_OK;
}

static cpl_status read_lengths(cpl_bench *b, cpl_error *err)
{
    const char *path = b->options->lengths;
    char *text = NULL, *rest = NULL;
    size_t length, capacity = 0;
    int64_t number = 0;
    if (!path)
        return CPL_OK;
    CPL_TRY(cpl_file_read(path, &text, &length, err), err, "cannot read the lengths");
    cpl_status status = CPL_OK;
    for (char *line = strtok_r(text, "\n", &rest); line && status == CPL_OK; line = strtok_r(NULL, "\n", &rest))
        status = add_length(b, line, ++number, &capacity, err);
    cpl_release(text);
    if (status == CPL_OK && number == 0)
        status = cpl_error_set(err, CPL_USAGE, "the file is empty");
    return status == CPL_OK ? CPL_OK : cpl_error_context(err, status, "cannot use the lengths of '%s'", path);
}

/* ---- all of it ---- */

/* A model file alone asks for decoding alone. */
static int wanted(const cpl_bench_options *o, int i)
{
    for (int k = 0; k < o->work_count; k++)
        if (strcmp(o->works[k], works[i].name) == 0)
            return 1;
    if (o->work_count > 0)
        return 0;
    return o->model || o->keep_model ? works[i].run == cpl_bench_decode : works[i].always;
}

/* The peak comes last: a work's first step is then as near to the start of the process as it can be. */
static cpl_status run_works(cpl_bench *b, cpl_error *err)
{
    CPL_TRY(read_lengths(b, err), err, "cannot measure");
    for (int i = 0; i < WORKS; i++) {
        cpl_status status = wanted(b->options, i) ? works[i].run(b, err) : CPL_OK;
        if (status != CPL_OK)
            return status;
    }
    return cpl_bench_measure_peak(b, err);
}

cpl_status cpl_bench_run(const cpl_bench_options *options, char **text, cpl_error *err)
{
    cpl_bench b = {.options = options, .seconds = options->seconds > 0 ? options->seconds : SECONDS};
    cpl_str out = {0};
    *text = NULL;
    cpl_status status = check(options, err);
    if (status == CPL_OK)
        status = cpl_engine_new(&b.engine, options->threads, 0, err);
    if (status == CPL_OK)
        status = run_works(&b, err);
    if (status == CPL_OK && options->json)
        status = cpl_bench_write_json(&b, &out, err);
    else if (status == CPL_OK)
        cpl_bench_show(&b, &out);
    if (status == CPL_OK && out.failed)
        status = cpl_error_set(err, CPL_FAILED, "out of memory for the results");
    if (status == CPL_OK)
        *text = cpl_str_take(&out);
    cpl_str_free(&out);
    cpl_release(b.rows);
    cpl_release(b.lengths);
    cpl_engine_release(b.engine);
    return status;
}
