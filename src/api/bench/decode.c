/* decode.c: greedy decoding: sources are encoded, and each gets exactly the wanted number of tokens.
 *
 * END is never chosen because its bias is lowered; nothing else of what generates is changed. A decoder runs one more
 * step than the most tokens of an output, for END, so that step counts as a token here. */
#include <stdlib.h>
#include <string.h>

#include "api/bench/bench.h"
#include "api/model.h"
#include "base/error.h"
#include "base/memory.h"
#include "model/stored.h"

enum { TOKENS = 16, PAIRS = 5 };

/* A model that is open: of a file, or with random weights. */
typedef struct decoded_model {
    cpl_model *file; /* NULL: the three below are its own */
    cpl_config *config;
    cpl_engine *engine;
    cpl_decoder *decoder;
    cpl_model_sizes sizes;
    const cpl_model_kind *kind;
    double weight_bytes; /* of one weight, on average */
    char precision[CPL_BENCH_NAME];
} decoded_model;

static void close_model(decoded_model *m)
{
    if (m->file) {
        cpl_model_close(m->file);
        return;
    }
    cpl_decoder_free(m->decoder);
    cpl_engine_release(m->engine);
    cpl_config_free(m->config);
}

/* ---- a model of a file ---- */

/* Bytes of all weights by their number. */
static double mean_bytes(const cpl_tensor_file *t)
{
    double bytes = 0, elements = 0;
    for (size_t i = 0; i < cpl_tensor_file_count(t); i++) {
        const cpl_tensor_entry *e = cpl_tensor_file_at(t, i);
        double n = (double)cpl_tensor_elements(e);
        bytes += n * (double)cpl_dtype_bytes(e->dtype);
        elements += n;
    }
    return elements > 0 ? bytes / elements : sizeof(float);
}

static cpl_status open_file(decoded_model *m, const cpl_bench *b, cpl_error *err)
{
    const char *path = b->options->model;
    cpl_model_description d;
    CPL_TRY(cpl_model_open(&m->file, path, b->options->threads, err), err, "cannot measure '%s'", path);
    CPL_TRY(cpl_model_whole(m->file, err), err, "cannot measure '%s'", path);
    m->engine = m->file->engine, m->decoder = m->file->decoder;
    m->sizes = m->file->file->sizes, m->kind = m->file->file->kind;
    m->kind->describe(&m->sizes, &d);
    if (d.mirrors || d.copies)
        CPL_FAIL(err, CPL_USAGE, "'%s' is a model %s: 'couplet bench decode' measures models with a decoder that "
                 "write words of their vocabulary", path, d.mirrors ? "without a decoder" : "that copies words");
    m->weight_bytes = mean_bytes(m->file->file->tensors);
    strcpy(m->precision, cpl_weight_type_name(m->file->file->weights));
    return CPL_OK;
}

/* ---- a model with random weights ---- */

static cpl_status open_random(decoded_model *m, const cpl_bench *b, int64_t vocabulary, cpl_error *err)
{
    cpl_status status = cpl_bench_config(b, "translator", &m->config, err);
    if (status != CPL_OK)
        return status;
    m->sizes = (cpl_model_sizes){m->config, vocabulary, vocabulary};
    m->kind = cpl_model_kind_of(m->config);
    m->weight_bytes = sizeof(real);
    strcpy(m->precision, "float32");
    CPL_TRY(cpl_engine_new(&m->engine, b->options->threads, 1, err), err, "cannot decode");
    return cpl_decoder_new(&m->decoder, m->kind, &m->sizes, m->engine, err);
}

/* '', [UNK], [START], [END], w4, w5 … */
static cpl_status make_vocabulary(cpl_vocabulary **v, int64_t size, cpl_error *err)
{
    static const char *const special[] = {"", "[UNK]", "[START]", "[END]"};
    cpl_json *list = cpl_json_array();
    char text[32];
    if (!list)
        CPL_FAIL(err, CPL_FAILED, "out of memory for a vocabulary");
    for (int64_t i = 0; i < size; i++) {
        if (i >= CPL_ID_WORDS)
            snprintf(text, sizeof text, "w%lld", (long long)i);
        const char *token = i < CPL_ID_WORDS ? special[i] : text;
        cpl_json_add_text(list, token, strlen(token));
    }
    cpl_status status = cpl_vocabulary_from_json(v, list, err);
    cpl_json_free(list);
    return status;
}

static cpl_status keep_model(const decoded_model *m, const char *path, cpl_error *err)
{
    cpl_vocabulary *v = NULL;
    cpl_model_set *set = NULL;
    cpl_status status = make_vocabulary(&v, m->sizes.target_vocabulary, err);
    cpl_model_facts facts = {.config = m->config, .source = v, .target = v, .parameters = m->engine->parameters,
                             .longest_target = TOKENS};
    if (status == CPL_OK)
        status = cpl_model_set_new(&set, &facts, err);
    if (status == CPL_OK) {
        cpl_tensor_set view = cpl_model_set_view(set, 0, 0, "[]", NULL);
        status = cpl_tensor_file_write(path, &view, err);
    }
    cpl_model_set_free(set);
    cpl_vocabulary_free(v);
    return status;
}

/* ---- measuring ---- */

typedef struct decoding {
    decoded_model *model;
    cpl_bench_work *work;
    int64_t *most;
    int64_t tokens;
    uint64_t forbidden;
} decoding;

static cpl_status decode_once(decoding *x, int64_t number, int64_t tokens, cpl_error *err)
{
    cpl_bench_work *w = x->work;
    const cpl_decoded *rows;
    for (int64_t i = 0; i < w->batch; i++)
        x->most[i] = tokens - 1;
    cpl_bench_fill(w, number);
    cpl_decode_batch batch = {.count = w->batch, .source = w->rows[0], .length = w->length[0], .most = x->most,
                              .forbidden = x->forbidden, .no_scores = 1}; /* as plain `couplet generate` */
    cpl_status status = cpl_decode(x->model->decoder, &batch, &rows, err);
    for (int64_t i = 0; status == CPL_OK && i < w->batch; i++)
        if (rows[i].length != tokens - 1)
            CPL_FAIL(err, CPL_FAILED, "an output has %lld tokens, expected %lld", (long long)rows[i].length + 1,
                     (long long)tokens);
    return status;
}

static cpl_status decode_step(void *user, int64_t number, cpl_bench_done *done, cpl_error *err)
{
    decoding *x = user;
    cpl_status status = decode_once(x, number, x->tokens, err);
    cpl_decoder_figures f = cpl_decoder_figures_of(x->model->decoder);
    done->tokens = (double)(x->work->batch * x->tokens);
    done->operations = f.encode_operations + (double)x->tokens * f.step_operations;
    return status;
}

/* Lowers the logit of END below all others; a projection without a bias has END forbidden. */
static void never_end(decoding *x)
{
    const cpl_parameters *p = x->model->engine->parameters;
    cpl_model_description d;
    char path[256];
    x->model->kind->describe(&x->model->sizes, &d);
    snprintf(path, sizeof path, "%s.bias", d.projection);
    int i = cpl_parameters_find(p, path);
    real *bias = i >= 0 ? cpl_parameters_value(p, (size_t)i) : NULL;
    if (bias)
        bias[CPL_ID_END] = (real)-1e9;
    else
        x->forbidden = 1u << CPL_ID_END;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of one sentence, what a token costs without its share of encoding: outputs twice as long against outputs, in turn. */
static cpl_status measure_step(const cpl_bench *b, decoding *x, cpl_bench_row *row, cpl_error *err)
{
    double seconds[2][PAIRS] = {{0}};
    int64_t repeats = (int64_t)(b->seconds / 4 / PAIRS / (row->ms / 1e3)) + 1;
    for (int i = -1; i < PAIRS; i++) /* the first is not counted */
        for (int twice = 0; twice < 2; twice++) {
            double start = cpl_bench_now();
            for (int64_t k = 0; k < repeats; k++)
                CPL_TRY(decode_once(x, k, (1 + twice) * x->tokens, err), err, "cannot decode");
            if (i >= 0)
                seconds[twice][i] = (cpl_bench_now() - start) / (double)repeats;
        }
    qsort(seconds[0], PAIRS, sizeof **seconds, by_value);
    qsort(seconds[1], PAIRS, sizeof **seconds, by_value);
    row->step_us = 1e6 * (seconds[1][PAIRS / 2] - seconds[0][PAIRS / 2]) / (double)x->tokens;
    /* A product with one row has two operations for each weight, and reads it once. */
    row->step_bytes = cpl_decoder_figures_of(x->model->decoder).step_operations / 2 * x->model->weight_bytes;
    row->read_rate = cpl_bench_read_rate(b, (int64_t)row->step_bytes, x->model->engine->threads);
    return CPL_OK;
}

static cpl_status measure(cpl_bench *b, decoded_model *m, int64_t batch, uint64_t base, cpl_error *err)
{
    decoding x = {.model = m, .tokens = b->options->tokens > 0 ? b->options->tokens : TOKENS};
    cpl_bench_row *row = cpl_bench_add(b, "decode", err);
    cpl_status status = row ? cpl_bench_work_new(&x.work, b, "translator", batch, NULL, err) : CPL_FAILED;
    if (status == CPL_OK && !(x.most = cpl_alloc((size_t)batch, sizeof *x.most)))
        status = cpl_error_set(err, CPL_FAILED, "out of memory for %lld rows", (long long)batch);
    if (status == CPL_OK) {
        x.work->vocabulary = m->sizes.source_vocabulary;
        row->batch = batch, row->tokens = x.tokens, row->base_bytes = base;
        row->units = m->sizes.config->model.units, row->vocabulary = m->sizes.target_vocabulary;
        row->parameters = cpl_parameters_elements(m->engine->parameters);
        strcpy(row->precision, m->precision);
        cpl_bench_tell(b, "decoding %lld sentence%s at a time …", (long long)batch, batch > 1 ? "s" : "");
        never_end(&x);
        status = cpl_bench_time(b, decode_step, &x, row, err);
    }
    if (status == CPL_OK && batch == 1)
        status = measure_step(b, &x, row, err);
    if (status == CPL_OK)
        row->planned_bytes = cpl_decoder_figures_of(m->decoder).planned_bytes;
    cpl_bench_work_free(x.work);
    cpl_release(x.most);
    return status;
}

cpl_status cpl_bench_decode(cpl_bench *b, cpl_error *err)
{
    const cpl_bench_options *o = b->options;
    decoded_model m = {0};
    b->started = cpl_bench_now();
    uint64_t base = cpl_bench_forget_peak();
    cpl_status status =
        o->model ? open_file(&m, b, err) : open_random(&m, b, o->vocabulary ? o->vocabulary : 5000, err);
    if (status == CPL_OK && o->keep_model)
        status = keep_model(&m, o->keep_model, err);
    if (status == CPL_OK && !m.file) /* as a model is when it is opened */
        status = cpl_parameters_pack_values(m.engine->parameters, err);
    if (status == CPL_OK)
        status = measure(b, &m, o->batch > 0 ? o->batch : 1, base, err);
    if (status == CPL_OK && o->batch == 0)
        status = measure(b, &m, 64, base, err);
    close_model(&m);
    return status;
}
