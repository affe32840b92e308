/* examples.c: a few validation pairs translated at each validation, as `generate` would. */
#include "base/error.h"
#include "base/memory.h"
#include "train/trainer.h"

static cpl_status translate(cpl_trainer *t, const cpl_decoded **rows, cpl_error *err)
{
    cpl_decode_batch batch = {.count = t->example_count, .source = t->example_source, .length = t->example_length,
                              .most = t->example_most};
    return cpl_decode(t->decoder, &batch, rows, err);
}

/* The default length limit of `generate`: the larger of 2 · source tokens + 20 and the longest training target. */
static void fill(cpl_trainer *t)
{
    int64_t longest = t->data->report.target.longest;
    for (int64_t i = 0; i < t->example_count; i++) {
        t->example_source[i] = cpl_row_source(&t->data->valid, i);
        t->example_length[i] = t->data->valid.items[i].source;
        int64_t most = 2 * (t->example_length[i] - 2) + 20;
        t->example_most[i] = most > longest ? most : longest;
    }
}

/* Decoding once before the first step takes all the memory that decoding will ever take. */
cpl_status cpl_trainer_prepare_examples(cpl_trainer *t, cpl_error *err)
{
    int64_t n = t->training->show_examples < t->data->text_count ? t->training->show_examples : t->data->text_count;
    if (n <= 0 || !t->valid)
        return CPL_OK;
    t->example_count = n;
    t->example_source = cpl_alloc((size_t)n, sizeof *t->example_source);
    t->example_length = cpl_alloc((size_t)n, sizeof *t->example_length);
    t->example_most = cpl_alloc((size_t)n, sizeof *t->example_most);
    if (!t->example_source || !t->example_length || !t->example_most)
        CPL_FAIL(err, CPL_FAILED, "no memory for %lld examples", (long long)n);
    fill(t);
    CPL_TRY(cpl_codec_new(&t->codec, t->data->target_rules, t->data->target, err), err, "cannot show examples");
    CPL_TRY(cpl_decoder_new(&t->decoder, t->kind, &t->sizes, t->program->engine, err), err, "cannot show examples");
    const cpl_decoded *rows;
    CPL_TRY(translate(t, &rows, err), err, "cannot show examples");
    return CPL_OK;
}

void cpl_trainer_free_examples(cpl_trainer *t)
{
    cpl_decoder_free(t->decoder);
    cpl_codec_free(t->codec);
    cpl_release(t->example_source);
    cpl_release(t->example_length);
    cpl_release(t->example_most);
}

/* Weights that are not numbers translate nothing; that must not end a training. */
void cpl_trainer_show_examples(cpl_trainer *t)
{
    const cpl_decoded *rows = NULL;
    cpl_error err = CPL_ERROR_INIT;
    if (!t->decoder)
        return;
    if (translate(t, &rows, &err) != CPL_OK)
        cpl_log_warning(&t->log, "cannot translate the examples: %s", err.line[0]);
    for (int64_t i = 0; rows && i < t->example_count; i++) {
        cpl_str output = {0}, source = {0}, reference = {0};
        const cpl_pair *pair = &t->data->texts[i];
        cpl_codec_decode(t->codec, rows[i].ids, (size_t)rows[i].length, 0, &output);
        cpl_str_add_bytes(&source, pair->source.text, pair->source.length);
        cpl_str_add_bytes(&reference, pair->target.text, pair->target.length);
        if (!output.failed && !source.failed && !reference.failed)
            cpl_trainer_tell_example(t, source.data ? source.data : "", reference.data ? reference.data : "",
                                     output.data ? output.data : "");
        cpl_str_free(&output);
        cpl_str_free(&source);
        cpl_str_free(&reference);
    }
}
