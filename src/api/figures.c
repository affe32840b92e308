/* figures.c: counting what evaluate shows of a model. */
#include "api/evaluate.h"
#include "base/error.h"
#include "base/memory.h"

/* ---- outputs of a model ---- */

typedef struct scratch {
    const cpl_pair *pairs;
    int raw; /* sources and references as they are in the file */
    cpl_items items;
    cpl_str output, text;        /* text: the source, then the references */
    size_t *ends;                /* of each of them: [items.most + 1] */
    cpl_metric_text *references; /* [items.most] */
} scratch;

static void scratch_free(scratch *s)
{
    cpl_items_free(&s->items);
    cpl_str_free(&s->output);
    cpl_str_free(&s->text);
    cpl_release(s->ends);
    cpl_release(s->references);
}

/* A source or a reference goes the way of an output: its side's text rules, then joined as outputs are. */
static cpl_status write_side(cpl_model *m, int target, const cpl_slice *text, int raw, cpl_str *to, cpl_error *err)
{
    size_t count;
    cpl_codec *codec = target ? m->target : m->source;
    if (raw) {
        cpl_str_add_bytes(to, text->text, text->length);
        return CPL_OK;
    }
    CPL_TRY(cpl_codec_encode(codec, text->text, text->length, &m->line_ids, &m->line_ids_capacity, &count, NULL, err),
            err, "cannot read a %s", target ? "reference" : "source");
    const cpl_token *tokens = cpl_codec_tokens(codec, &count);
    cpl_codec_join(codec, tokens, count, to);
    return CPL_OK;
}

/* Item i with the answer to its source. */
static cpl_status score_output(cpl_figures *f, cpl_model *m, const cpl_answer *answer, scratch *s, int64_t i,
                               cpl_error *err)
{
    const int64_t *order = s->items.order + s->items.starts[i];
    size_t n = (size_t)(s->items.starts[i + 1] - s->items.starts[i]);
    cpl_str_clear(&s->output);
    cpl_str_clear(&s->text);
    cpl_str_add(&s->output, "");
    cpl_str_add(&s->text, "");
    cpl_model_write(m, answer, 0, &s->output);
    cpl_status status = write_side(m, 0, &s->pairs[order[0]].source, s->raw, &s->text, err);
    s->ends[0] = s->text.length;
    for (size_t k = 0; k < n && status == CPL_OK; k++) {
        status = write_side(m, 1, &s->pairs[order[k]].target, s->raw, &s->text, err);
        s->ends[k + 1] = s->text.length;
    }
    if (status != CPL_OK)
        return status;
    if (s->output.failed || s->text.failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    for (size_t k = 0; k < n; k++)
        s->references[k] = (cpl_metric_text){s->text.data + s->ends[k], s->ends[k + 1] - s->ends[k]};
    f->cut += !answer->output.finished;
    f->items++;
    cpl_scored item = {{s->output.data, s->output.length}, {s->text.data, s->ends[0]}, s->references, n};
    return cpl_scorer_add(f->scorer, &item, err);
}

/* One output for each item, from the source of its first pair. */
static cpl_status score_outputs(cpl_figures *f, cpl_model *m, const cpl_evaluate_options *o, scratch *s,
                                cpl_error *err)
{
    cpl_line lines[CPL_GENERATE_BATCH];
    const cpl_items *items = &s->items;
    int64_t size = o->generate.batch_size > 0 && o->generate.batch_size < CPL_GENERATE_BATCH ? o->generate.batch_size
                                                                                             : CPL_GENERATE_BATCH;
    for (int64_t at = 0; at < items->count; at += size) {
        size_t count = (size_t)(items->count - at < size ? items->count - at : size);
        for (size_t i = 0; i < count; i++) {
            int64_t pair = items->order[items->starts[at + (int64_t)i]];
            const cpl_slice *source = &s->pairs[pair].source;
            lines[i] = (cpl_line){.text = source->text, .length = source->length, .number = pair + 1};
        }
        const cpl_answer *answers;
        CPL_TRY(cpl_model_answer(m, lines, count, &o->generate, &answers, err), err, "pairs %lld to %lld",
                (long long)lines[0].number, (long long)lines[count - 1].number);
        for (size_t i = 0; i < count; i++)
            CPL_TRY(score_output(f, m, &answers[i], s, at + (int64_t)i, err), err,
                    "cannot score pair %lld", (long long)lines[i].number);
    }
    return CPL_OK;
}

static cpl_status score_texts(cpl_figures *f, cpl_model *m, const cpl_dataset *d, const cpl_evaluate_options *o,
                              cpl_error *err)
{
    scratch s = {.pairs = d->texts, .raw = o->raw};
    cpl_status status = cpl_items_make(&s.items, d->texts, d->text_count, o->group != NULL, err);
    if (status == CPL_OK) {
        size_t most = (size_t)s.items.most;
        s.references = cpl_alloc(most, sizeof *s.references);
        s.ends = cpl_alloc(most + 1, sizeof *s.ends);
        if (!s.references || !s.ends)
            status = cpl_error_set(err, CPL_FAILED, "out of memory for %zu references", most);
    }
    if (status == CPL_OK)
        status = score_outputs(f, m, o, &s, err);
    scratch_free(&s);
    return status;
}

/* ---- probabilities of the references ---- */

cpl_status cpl_model_reserve(cpl_program *p, const cpl_rows *rows, int64_t batch_size, cpl_error *err)
{
    cpl_batch_capacity c;
    CPL_TRY(cpl_rows_capacity(rows, batch_size, 0, &c, err), err, "cannot evaluate");
    int s = cpl_program_place(p, "s"), t = cpl_program_place(p, "t");
    cpl_binding b = {.batch = c.pairs};
    b.rows[s] = c.source_tokens, b.longest[s] = c.longest_source;
    b.rows[t] = c.target_tokens, b.longest[t] = c.longest_target;
    b.pairs[s][t] = b.pairs[t][s] = c.products;
    return cpl_program_reserve(p, CPL_EVALUATE, &b, err);
}

cpl_status cpl_model_feed(cpl_program *p, const cpl_batch *b, cpl_error *err)
{
    CPL_TRY(cpl_feed_ids(p, "source", b->source, b->source_length, b->pairs, err), err, "cannot evaluate");
    if (cpl_program_symbol(p, "t") < 0) { /* no decoder: the labels are the source */
        CPL_TRY(cpl_feed_ids(p, "labels", b->source, b->source_length, b->pairs, err), err, "cannot evaluate");
        return CPL_OK;
    }
    CPL_TRY(cpl_feed_ids(p, "target_in", b->target_in, b->target_length, b->pairs, err), err, "cannot evaluate");
    CPL_TRY(cpl_feed_ids(p, "target_out", b->target_out, b->target_length, b->pairs, err), err, "cannot evaluate");
    if (b->copy)
        CPL_TRY(cpl_feed_ids(p, "copy", b->copy, b->source_length, b->pairs, err), err, "cannot evaluate");
    return CPL_OK;
}

static cpl_status add_batch(cpl_figures *f, cpl_program *p, const cpl_batch *b, cpl_error *err)
{
    cpl_status status = cpl_model_feed(p, b, err);
    if (status != CPL_OK)
        return status;
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
    CPL_TRY(cpl_model_reserve(p, rows, batch_size, err), err, "cannot evaluate");
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
    if (f->wanted & ~cpl_figures_that_need(CPL_NEEDS_MODEL)) {
        cpl_status status = score_texts(f, m, d, o, err);
        if (status != CPL_OK)
            return status;
    }
    return f->wanted & cpl_figures_that_need(CPL_NEEDS_MODEL) ? score_references(f, m, d, o, err) : CPL_OK;
}

cpl_status cpl_figures_of_model(cpl_figures *f, cpl_model *m, const cpl_evaluate_options *o, cpl_error *err)
{
    cpl_config_source source = {.pairs = o->pairs, .written_pairs = o->pairs};
    cpl_config_files files = {.items = &source, .count = 1};
    cpl_dataset_options options = {.config = m->file->config, .source = m->file->source, .target = m->file->target,
                                   .pairs = &files, .texts = -1, .copy = m->file->config->model.copy};
    cpl_dataset *d;
    CPL_TRY(cpl_dataset_new(&d, &options, err), err, "cannot read '%s'", o->pairs);
    cpl_status status = count_all(f, m, d, o, err);
    cpl_dataset_free(d);
    return status;
}
