/* figures.c: counting what evaluate shows. */
#include "api/evaluate.h"
#include "base/error.h"

static cpl_config_source one_file(const char *path)
{
    return (cpl_config_source){.pairs = path, .written_pairs = path};
}

/* ---- outputs of a model ---- */

/* A reference goes the way of an output: the target's text rules, then joined as outputs are. */
static cpl_status reference_of(cpl_model *m, const cpl_slice *text, int raw, cpl_str *to, cpl_error *err)
{
    size_t count;
    cpl_str_clear(to);
    cpl_str_add(to, "");
    if (raw) {
        cpl_str_add_bytes(to, text->text, text->length);
        return CPL_OK;
    }
    CPL_TRY(cpl_codec_encode(m->target, text->text, text->length, &m->line_ids, &m->line_ids_capacity, &count, NULL,
                             err), err, "cannot read a reference");
    const cpl_token *tokens = cpl_codec_tokens(m->target, &count);
    cpl_join((cpl_tokens)m->file->config->text.target.tokens, tokens, count, to);
    return CPL_OK;
}

typedef struct scratch {
    int raw; /* references as they are in the file */
    cpl_str output, reference;
} scratch;

static cpl_status score_output(cpl_figures *f, cpl_model *m, const cpl_answer *answer, const cpl_pair *pair,
                               scratch *s, cpl_error *err)
{
    cpl_str_clear(&s->output);
    cpl_str_add(&s->output, "");
    cpl_model_write(m, answer, 0, &s->output);
    cpl_status status = reference_of(m, &pair->target, s->raw, &s->reference, err);
    if (status != CPL_OK)
        return status;
    if (s->output.failed || s->reference.failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    f->cut += !answer->output.finished;
    cpl_metric_text reference = {s->reference.data, s->reference.length};
    return cpl_metric_add(f->metric, (cpl_metric_text){s->output.data, s->output.length}, &reference, 1, err);
}

static cpl_status score_outputs(cpl_figures *f, cpl_model *m, const cpl_dataset *d, const cpl_evaluate_options *o,
                                scratch *s, cpl_error *err)
{
    cpl_line lines[CPL_GENERATE_BATCH];
    int64_t size = o->generate.batch_size > 0 && o->generate.batch_size < CPL_GENERATE_BATCH ? o->generate.batch_size
                                                                                             : CPL_GENERATE_BATCH;
    for (int64_t at = 0; at < d->text_count; at += size) {
        size_t count = (size_t)(d->text_count - at < size ? d->text_count - at : size);
        for (size_t i = 0; i < count; i++) {
            const cpl_slice *source = &d->texts[at + (int64_t)i].source;
            lines[i] = (cpl_line){.text = source->text, .length = source->length, .number = at + (int64_t)i + 1};
        }
        const cpl_answer *answers;
        CPL_TRY(cpl_model_answer(m, lines, count, &o->generate, &answers, err), err, "pairs %lld to %lld",
                (long long)(at + 1), (long long)(at + (int64_t)count));
        for (size_t i = 0; i < count; i++)
            CPL_TRY(score_output(f, m, &answers[i], &d->texts[at + (int64_t)i], s, err), err,
                    "cannot score pair %lld", (long long)(at + (int64_t)i + 1));
    }
    return CPL_OK;
}

/* ---- probabilities of the references ---- */

static cpl_status reserve(cpl_program *p, const cpl_rows *rows, int64_t batch_size, cpl_error *err)
{
    cpl_batch_capacity c;
    CPL_TRY(cpl_rows_capacity(rows, batch_size, 0, &c, err), err, "cannot evaluate");
    int s = cpl_program_symbol(p, "s"), t = cpl_program_symbol(p, "t");
    cpl_binding b = {.batch = c.pairs};
    b.rows[s] = c.source_tokens, b.longest[s] = c.longest_source;
    b.rows[t] = c.target_tokens, b.longest[t] = c.longest_target;
    b.pairs[s][t] = b.pairs[t][s] = c.products;
    return cpl_program_reserve(p, CPL_EVALUATE, &b, err);
}

static cpl_status add_batch(cpl_figures *f, cpl_program *p, const cpl_batch *b, cpl_error *err)
{
    CPL_TRY(cpl_feed_ids(p, "source", b->source, b->source_length, b->pairs, err), err, "cannot evaluate");
    CPL_TRY(cpl_feed_ids(p, "target_in", b->target_in, b->target_length, b->pairs, err), err, "cannot evaluate");
    CPL_TRY(cpl_feed_ids(p, "target_out", b->target_out, b->target_length, b->pairs, err), err, "cannot evaluate");
    CPL_TRY(cpl_run(p, CPL_EVALUATE, err), err, "cannot evaluate");
    double count = cpl_scalar(p, "count");
    f->loss += cpl_scalar(p, "loss") * count;
    f->accuracy += cpl_scalar(p, "accuracy") * count;
    f->tokens += count;
    return CPL_OK;
}

static cpl_status score_batches(cpl_figures *f, cpl_program *p, const cpl_rows *rows, int64_t batch_size,
                                cpl_error *err)
{
    cpl_batcher *b;
    cpl_batcher_options o = {.batch_size = batch_size, .no_thread = 1};
    CPL_TRY(reserve(p, rows, batch_size, err), err, "cannot evaluate");
    CPL_TRY(cpl_batcher_new(&b, rows, &o, err), err, "cannot evaluate");
    cpl_status status = CPL_OK;
    for (int64_t i = 0; i < cpl_batcher_batches(b) && status == CPL_OK; i++)
        status = add_batch(f, p, cpl_batcher_next(b), err);
    cpl_batcher_free(b);
    return status;
}

static cpl_status score_references(cpl_figures *f, cpl_model *m, const cpl_dataset *d, const cpl_evaluate_options *o,
                                   cpl_error *err)
{
    cpl_program shared = {.engine = m->engine}, *p;
    cpl_compile_options compile = {.name = "loss", .share = &shared, .inference = 1};
    CPL_TRY(cpl_compile(&p, m->file->kind->loss, &m->file->sizes, &compile, err), err, "cannot evaluate");
    int64_t batch_size = o->generate.batch_size > 0 ? o->generate.batch_size : CPL_GENERATE_BATCH;
    cpl_status status = score_batches(f, p, &d->valid, batch_size, err);
    cpl_program_free(p);
    return status;
}

/* ---- both ---- */

static cpl_status count_all(cpl_figures *f, cpl_model *m, const cpl_dataset *d, const cpl_evaluate_options *o,
                            cpl_error *err)
{
    if (d->valid.count == 0)
        CPL_FAIL(err, CPL_USAGE, "'%s' holds no pairs", o->pairs);
    f->pairs = d->valid.count;
    if (f->wanted & CPL_FIGURES_OF_TEXT) {
        scratch s = {.raw = o->raw};
        cpl_status status = score_outputs(f, m, d, o, &s, err);
        cpl_str_free(&s.output);
        cpl_str_free(&s.reference);
        if (status != CPL_OK)
            return status;
    }
    return f->wanted & ~CPL_FIGURES_OF_TEXT ? score_references(f, m, d, o, err) : CPL_OK;
}

cpl_status cpl_figures_of_model(cpl_figures *f, cpl_model *m, const cpl_evaluate_options *o, cpl_error *err)
{
    cpl_config_source source = one_file(o->pairs);
    cpl_config_files files = {.items = &source, .count = 1};
    cpl_dataset_options options = {.config = m->file->config, .source = m->file->source, .target = m->file->target,
                                   .pairs = &files, .texts = -1};
    cpl_dataset *d;
    CPL_TRY(cpl_dataset_new(&d, &options, err), err, "cannot read '%s'", o->pairs);
    cpl_status status = count_all(f, m, d, o, err);
    cpl_dataset_free(d);
    return status;
}

/* ---- outputs in a file ---- */

static cpl_status score_lines(cpl_figures *f, const cpl_pairs *pairs, cpl_lines *input, const cpl_evaluate_options *o,
                              cpl_error *err)
{
    const cpl_line *lines;
    size_t count, at = 0;
    int64_t first;
    do {
        CPL_TRY(cpl_lines_read(input, 1024, &lines, &count, err), err, "cannot read '%s'", o->outputs);
        for (size_t i = 0; i < count; i++, at++) {
            if (at >= pairs->count)
                continue;
            cpl_metric_text reference = {pairs->items[at].target.text, pairs->items[at].target.length};
            CPL_TRY(cpl_metric_add(f->metric, (cpl_metric_text){lines[i].text, lines[i].length}, &reference, 1, err),
                    err, "line %zu of '%s'", at + 1, o->outputs);
        }
    } while (count > 0);
    if (cpl_lines_replaced(input, &first) > 0)
        CPL_FAIL(err, CPL_USAGE, "line %lld of '%s' is not UTF-8", (long long)first, o->outputs);
    if (at != pairs->count)
        CPL_FAIL(err, CPL_USAGE, "'%s' has %zu lines but '%s' has %zu pairs" CPL_HINT
                 "line i of the outputs is compared with line i of the pairs, blank lines included", o->outputs, at,
                 o->pairs, pairs->count);
    return CPL_OK;
}

cpl_status cpl_figures_of_outputs(cpl_figures *f, const cpl_evaluate_options *o, cpl_error *err)
{
    cpl_config_source source = one_file(o->pairs);
    cpl_config_files files = {.items = &source, .count = 1};
    cpl_pairs_options options = {.keep_empty = 1};
    cpl_pairs *pairs;
    cpl_lines *lines = NULL;
    CPL_TRY(cpl_pairs_read(&pairs, &files, &options, err), err, "cannot read '%s'", o->pairs);
    f->pairs = (int64_t)pairs->count;
    cpl_status status = cpl_lines_open(&lines, o->outputs, err);
    if (status == CPL_OK && pairs->count == 0)
        status = cpl_error_set(err, CPL_USAGE, "'%s' holds no pairs", o->pairs);
    if (status == CPL_OK)
        status = score_lines(f, pairs, lines, o, err);
    cpl_lines_close(lines);
    cpl_pairs_free(pairs);
    return status;
}
