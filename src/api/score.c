/* score.c: cpl_score_pairs: what probability a model gives to the targets of a file.
 *
 * The score graph gives the logits of whole targets; the softmax of the labels is taken here, in double precision. A
 * model that copies mixes in what its attention points at, as its loss does (pointer_cross_entropy.c). Batches are
 * sorted by length, so the figures of all tokens are kept until the last batch and written in the order of the file. */
#include <math.h>
#include <string.h>

#include "api/alignment.h"
#include "api/model.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"

enum { SCORE_BATCH = 16, DIGITS = 9 };

/* An output of the program as a rectangle. */
typedef struct rectangle {
    float *data;
    size_t capacity;
    int64_t shape[6];
    int rank;
} rectangle;

typedef struct scoring {
    cpl_model *model;
    cpl_dataset *data;
    cpl_program *program;
    int mirrors, copies;   /* of the model's description */
    int64_t *start;        /* row i has the tokens start[i] … start[i + 1] − 1: [rows + 1] */
    double *values;        /* log-probability of each token */
    int32_t *looks;        /* which source word each token looked at most, or −1; NULL: not asked for */
    rectangle logits, gate, weights;
    float *mean;           /* scratch: one token's weights */
    size_t mean_capacity;
} scoring;

static void scoring_free(scoring *s)
{
    cpl_program_free(s->program);
    cpl_dataset_free(s->data);
    cpl_release(s->start);
    cpl_release(s->values);
    cpl_release(s->looks);
    cpl_release(s->mean);
    cpl_release(s->logits.data);
    cpl_release(s->gate.data);
    cpl_release(s->weights.data);
}

/* ---- probabilities ---- */

/* NaN where a logit is no number; −infinity for a word behind the vocabulary. */
static double log_softmax(const float *x, int64_t n, int32_t label)
{
    float most = -INFINITY;
    double sum = 0;
    if (label >= n)
        return -INFINITY;
    for (int64_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] - (double)most);
    return (double)x[label] - (double)most - log(sum);
}

static double log_sigmoid(double x)
{
    return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
}

/* log(σ(gate) · exp(made) + (1 − σ(gate)) · mass). */
static double log_mixture(double made, double gate, double mass)
{
    double a = made + log_sigmoid(gate), b = log(mass) + log_sigmoid(-gate);
    if (isnan(a) || isnan(b))
        return NAN;
    double most = a > b ? a : b;
    return isinf(most) ? most : most + log(exp(a - most) + exp(b - most));
}

/* Of label k of sentence j of the batch. Weights are [batch t s], or of one head: the same numbers. */
static double token_value(const scoring *s, const cpl_batch *b, int64_t j, int64_t k, int32_t label)
{
    int64_t steps = s->logits.shape[1], vocabulary = s->logits.shape[2], at = j * steps + k;
    double value = log_softmax(s->logits.data + at * vocabulary, vocabulary, label), mass = 0;
    if (!s->copies)
        return value;
    int64_t width = s->weights.shape[s->weights.rank - 1];
    for (int64_t i = 0; i < b->source_length[j]; i++)
        if (b->copy[j][i] == label)
            mass += (double)s->weights.data[at * width + i];
    return log_mixture(value, (double)s->gate.data[at], mass);
}

/* ---- batches ---- */

static cpl_status read_output(cpl_program *p, const char *name, rectangle *r, cpl_error *err)
{
    size_t n = 1;
    CPL_TRY(cpl_read(p, name, NULL, 0, r->shape, &r->rank, err), err, "cannot score");
    for (int i = 0; i < r->rank; i++)
        n *= (size_t)r->shape[i];
    if (cpl_grow(&r->data, &r->capacity, n, sizeof *r->data))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %zu numbers of '%s'" CPL_HINT "score fewer pairs at a time", n,
                 name);
    CPL_TRY(cpl_read(p, name, r->data, n, r->shape, &r->rank, err), err, "cannot score");
    return CPL_OK;
}

/* What label k of sentence j looked at: [batch t s] of one head or [heads batch t s], whose mean counts. */
static cpl_status look(scoring *s, const cpl_batch *b, int64_t j, int64_t k, int32_t *word, cpl_error *err)
{
    const int64_t *shape = s->weights.shape + s->weights.rank - 3; /* batch, t, s */
    int64_t heads = s->weights.rank == 4 ? s->weights.shape[0] : 1, length = b->source_length[j];
    if (cpl_grow(&s->mean, &s->mean_capacity, (size_t)length + 1, sizeof *s->mean))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld attention weights", (long long)length);
    for (int64_t i = 0; i < length; i++) {
        s->mean[i] = 0;
        for (int64_t h = 0; h < heads; h++)
            s->mean[i] += s->weights.data[((h * shape[0] + j) * shape[1] + k) * shape[2] + i];
    }
    *word = (int32_t)cpl_alignment_word(s->mean, length);
    return CPL_OK;
}

static cpl_status look_batch(scoring *s, const cpl_batch *b, cpl_error *err)
{
    cpl_status status = CPL_OK;
    for (int64_t j = 0; j < b->pairs && status == CPL_OK; j++) {
        int64_t at = s->start[b->pair[j]], n = s->start[b->pair[j] + 1] - at;
        for (int64_t k = 0; k < n && status == CPL_OK; k++)
            status = look(s, b, j, k, &s->looks[at + k], err);
    }
    return status;
}

static cpl_status score_batch(scoring *s, const cpl_batch *b, cpl_error *err)
{
    cpl_status status = cpl_model_feed(s->program, b, err);
    if (status == CPL_OK)
        status = cpl_run(s->program, CPL_EVALUATE, err);
    if (status == CPL_OK)
        status = read_output(s->program, "logits", &s->logits, err);
    if (status == CPL_OK && s->copies)
        status = read_output(s->program, "gate", &s->gate, err);
    if (status == CPL_OK && (s->copies || s->looks))
        status = read_output(s->program, "weights", &s->weights, err);
    if (status == CPL_OK && s->looks)
        status = look_batch(s, b, err);
    if (status != CPL_OK)
        return status;
    for (int64_t j = 0; j < b->pairs; j++) {
        const int32_t *labels = s->mirrors ? b->source[j] : b->target_out[j];
        int64_t at = s->start[b->pair[j]], n = s->start[b->pair[j] + 1] - at;
        for (int64_t k = 0; k < n; k++)
            s->values[at + k] = token_value(s, b, j, k, labels[k]);
    }
    return CPL_OK;
}

static cpl_status score_batches(scoring *s, int64_t batch_size, cpl_error *err)
{
    cpl_batcher *b;
    cpl_batcher_options o = {.batch_size = batch_size, .no_thread = 1};
    cpl_model *m = s->model;
    cpl_program shared = {.engine = m->engine};
    cpl_compile_options compile = {.name = "score", .share = &shared, .inference = 1};
    CPL_TRY(cpl_compile(&s->program, m->file->kind->score, &m->file->sizes, &compile, err), err, "cannot score");
    CPL_TRY(cpl_model_reserve(s->program, &s->data->valid, batch_size, err), err, "cannot score");
    CPL_TRY(cpl_batcher_new(&b, &s->data->valid, &o, err), err, "cannot score");
    cpl_status status = CPL_OK;
    for (int64_t i = 0; i < cpl_batcher_batches(b) && status == CPL_OK; i++)
        status = score_batch(s, cpl_batcher_next(b), err);
    cpl_batcher_free(b);
    return status;
}

/* ---- lines ---- */

static double sum_of(const scoring *s, int64_t row)
{
    double sum = 0;
    for (int64_t k = s->start[row]; k < s->start[row + 1]; k++)
        sum += s->values[k];
    return sum;
}

/* Plain ids of a row's labels. */
static const int32_t *labels_of(const scoring *s, int64_t row)
{
    const cpl_rows *rows = &s->data->valid;
    return s->mirrors ? cpl_row_source(rows, row) : cpl_row_target(rows, row) + 1;
}

/* The vocabulary's entries. A word that stands in the source alone is shown as the target's text has it. */
static cpl_status add_tokens(scoring *s, int64_t row, cpl_json *list, cpl_error *err)
{
    cpl_model *m = s->model;
    const cpl_rows *rows = &s->data->valid;
    const int32_t *labels = labels_of(s, row), *extended = NULL;
    const cpl_token *words = NULL;
    size_t count = 0, length;
    if (s->copies) {
        const cpl_slice *text = &s->data->texts[row].target;
        CPL_TRY(cpl_codec_encode(m->target, text->text, text->length, &m->line_ids, &m->line_ids_capacity, &count, NULL,
                                 err), err, "cannot read a target");
        words = cpl_codec_tokens(m->target, &count);
        extended = cpl_row_copy(rows, row) + rows->items[row].source + 1;
    }
    for (int64_t k = 0; k < s->start[row + 1] - s->start[row]; k++) {
        const char *token = cpl_vocabulary_token(m->file->target, labels[k], &length);
        if (extended && extended[k] >= cpl_vocabulary_size(m->file->target) && (size_t)k < count)
            token = words[k].text, length = words[k].length;
        cpl_json_add_text(list, token, length);
    }
    return CPL_OK;
}

/* The last token is END, which no word stands for. */
static void add_alignment(const scoring *s, int64_t row, cpl_str *to)
{
    const char *between = "";
    for (int64_t k = s->start[row]; k + 1 < s->start[row + 1]; k++)
        if (s->looks[k] >= 0) {
            cpl_str_printf(to, "%s%d-%lld", between, s->looks[k], (long long)(k - s->start[row]));
            between = " ";
        }
}

static void set_alignment(const scoring *s, int64_t row, cpl_json *to)
{
    cpl_str text = {0};
    cpl_str_add(&text, "");
    add_alignment(s, row, &text);
    cpl_json_set_text(to, "alignment", text.data ? text.data : "");
    cpl_str_free(&text);
}

static cpl_status write_json(scoring *s, int64_t row, cpl_str *to, cpl_error *err)
{
    cpl_json *root = cpl_json_object(), *tokens = cpl_json_array(), *values = cpl_json_array();
    double sum = sum_of(s, row);
    cpl_status status = add_tokens(s, row, tokens, err);
    for (int64_t k = s->start[row]; k < s->start[row + 1]; k++)
        cpl_json_add_real(values, s->values[k], DIGITS);
    cpl_json_set(root, "tokens", tokens);
    cpl_json_set(root, "token_log_probabilities", values);
    cpl_json_set_real(root, "log_probability", sum, DIGITS);
    if (!isfinite(sum))
        cpl_json_set_text(root, "reason", isnan(sum) ? "not a number" : "a token has probability 0");
    if (s->looks)
        set_alignment(s, row, root);
    if (status == CPL_OK)
        status = root ? cpl_json_write(root, to, err) : cpl_error_set(err, CPL_FAILED, "out of memory");
    cpl_json_free(root);
    return status;
}

static cpl_status write_alignments(const scoring *s, const char *path, cpl_error *err)
{
    cpl_str text = {0};
    for (int64_t row = 0; row < s->data->valid.count; row++) {
        add_alignment(s, row, &text);
        cpl_str_add_char(&text, '\n');
    }
    cpl_status status = text.failed ? cpl_error_set(err, CPL_FAILED, "out of memory for the alignments")
                                    : cpl_file_write(path, text.data ? text.data : "", text.length, err);
    cpl_str_free(&text);
    return status;
}

static cpl_status write_lines(scoring *s, int json, FILE *out, cpl_error *err)
{
    cpl_str line = {0};
    cpl_status status = CPL_OK;
    for (int64_t row = 0; row < s->data->valid.count && status == CPL_OK; row++) {
        cpl_str_clear(&line);
        if (json)
            status = write_json(s, row, &line, err);
        else
            cpl_str_printf(&line, "%.*g", DIGITS, sum_of(s, row));
        cpl_str_add(&line, "\n");
        if (status == CPL_OK && line.failed)
            status = cpl_error_set(err, CPL_FAILED, "out of memory");
        if (status == CPL_OK && fwrite(line.data, 1, line.length, out) != line.length)
            status = cpl_error_set(err, CPL_FAILED, "cannot write the output");
    }
    cpl_str_free(&line);
    if (status == CPL_OK && fflush(out) != 0)
        status = cpl_error_set(err, CPL_FAILED, "cannot write the output");
    return status;
}

/* ---- the command ---- */

/* Every line of the file is a row, blank ones too, so that line i of the output belongs to line i of the file. */
static cpl_status read_pairs(scoring *s, const char *pairs, cpl_error *err)
{
    const cpl_model_file *f = s->model->file;
    cpl_config_source source = {.pairs = pairs, .written_pairs = pairs};
    cpl_config_files files = {.items = &source, .count = 1};
    cpl_dataset_options options = {.config = f->config, .source = f->source, .target = f->target, .pairs = &files,
                                   .texts = s->copies ? -1 : 0, .copy = s->copies, .keep_empty = 1};
    CPL_TRY(cpl_dataset_new(&s->data, &options, err), err, "cannot read '%s'", pairs);
    const cpl_rows *rows = &s->data->valid;
    s->start = cpl_alloc((size_t)rows->count + 1, sizeof *s->start);
    for (int64_t i = 0; s->start && i < rows->count; i++)
        s->start[i + 1] = s->start[i] + (s->mirrors ? cpl_source_real(cpl_row_source(rows, i), rows->items[i].source)
                                                    : rows->items[i].target - 1);
    s->values = s->start ? cpl_alloc((size_t)s->start[rows->count] + 1, sizeof *s->values) : NULL;
    if (!s->values)
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld pairs", (long long)rows->count);
    return CPL_OK;
}

static cpl_status prepare_looks(scoring *s, cpl_error *err)
{
    const cpl_config *c = s->model->file->config;
    if (s->mirrors || c->model.decoder.attention.score == CPL_ATTEND_NONE)
        CPL_FAIL(err, CPL_USAGE, "this model has no attention, and no alignments");
    s->looks = cpl_alloc((size_t)s->start[s->data->valid.count] + 1, sizeof *s->looks);
    if (!s->looks)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the alignments");
    return CPL_OK;
}

cpl_status cpl_score_pairs(cpl_model *model, const cpl_score_options *o, FILE *out, cpl_error *err)
{
    cpl_model_description d;
    if (!o->pairs)
        CPL_FAIL(err, CPL_USAGE, "no file of pairs was given");
    if (o->batch_size < 0)
        CPL_FAIL(err, CPL_USAGE, "batch_size is %lld, expected 0 (%d) or more", (long long)o->batch_size, SCORE_BATCH);
    CPL_TRY(cpl_model_whole(model, err), err, "cannot score");
    CPL_TRY(cpl_model_alone(model, "probabilities of targets", err), err, "cannot score");
    model->file->kind->describe(&model->file->sizes, &d);
    scoring s = {.model = model, .mirrors = d.mirrors, .copies = d.copies};
    cpl_status status = read_pairs(&s, o->pairs, err);
    if (status == CPL_OK && o->alignments)
        status = prepare_looks(&s, err);
    if (status == CPL_OK)
        status = score_batches(&s, o->batch_size > 0 ? o->batch_size : SCORE_BATCH, err);
    if (status == CPL_OK)
        status = write_lines(&s, o->json, out, err);
    if (status == CPL_OK && o->alignments)
        status = write_alignments(&s, o->alignments, err);
    scoring_free(&s);
    return status;
}
