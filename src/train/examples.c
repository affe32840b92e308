/* examples.c: a few validation pairs translated at each validation, as `generate` would. */
#include "base/error.h"
#include "base/memory.h"
#include "train/limit.h"
#include "train/trainer.h"

/* count examples from first on. A row's result does not depend on its batch. */
static cpl_status translate(cpl_trainer *t, int64_t first, int64_t count, const cpl_decoded **rows, cpl_error *err)
{
    cpl_decode_batch batch = {.count = count, .source = t->example_source + first, .copy = t->example_copy + first,
                              .length = t->example_length + first, .most = t->example_most + first};
    return cpl_decode(t->decoder, &batch, rows, err);
}

/* With a budget for the memory, examples are translated one at a time. */
static int64_t at_once(const cpl_trainer *t)
{
    return t->training->memory > 0 || cpl_memory_limit_now(0).name ? 1 : t->example_count;
}

/* The default length limit of `generate`: the larger of 2 · source tokens + 20 and the longest training target. */
static void fill(cpl_trainer *t)
{
    int64_t longest = t->data->report.target.longest;
    for (int64_t i = 0; i < t->example_count; i++) {
        t->example_source[i] = cpl_row_source(&t->data->valid, i);
        t->example_copy[i] = t->data->valid.copy ? cpl_row_copy(&t->data->valid, i) : NULL;
        t->example_length[i] = t->data->valid.items[i].source;
        int64_t most = 2 * (cpl_source_real(t->example_source[i], t->example_length[i]) - 2) + 20;
        t->example_most[i] = most > longest ? most : longest;
    }
}

/* Decoding once before the first step takes all the memory that decoding will ever take. */
cpl_status cpl_trainer_prepare_examples(cpl_trainer *t, cpl_error *err)
{
    int64_t n = t->training->show_examples < t->data->text_count ? t->training->show_examples : t->data->text_count;
    uint64_t before = cpl_memory_live_bytes();
    if (n <= 0 || !t->valid)
        return CPL_OK;
    t->example_count = n;
    t->example_source = cpl_alloc((size_t)n, sizeof *t->example_source);
    t->example_copy = cpl_alloc((size_t)n, sizeof *t->example_copy);
    t->example_length = cpl_alloc((size_t)n, sizeof *t->example_length);
    t->example_most = cpl_alloc((size_t)n, sizeof *t->example_most);
    if (!t->example_source || !t->example_copy || !t->example_length || !t->example_most)
        CPL_FAIL(err, CPL_FAILED, "no memory for %lld examples", (long long)n);
    fill(t);
    CPL_TRY(cpl_codec_new(&t->codec, t->data->target_rules, t->data->target, err), err, "cannot show examples");
    if (t->data->valid.copy)
        CPL_TRY(cpl_codec_new(&t->source_codec, t->data->source_rules, t->data->source, err), err,
                "cannot show examples");
    CPL_TRY(cpl_decoder_new(&t->decoder, t->kind, &t->sizes, t->program->engine, err), err, "cannot show examples");
    const cpl_decoded *rows;
    t->examples_at_once = at_once(t);
    for (int64_t i = 0; i < n; i += t->examples_at_once)
        CPL_TRY(translate(t, i, t->examples_at_once, &rows, err), err, "cannot show examples");
    t->example_bytes = cpl_memory_live_bytes() - before;
    return CPL_OK;
}

void cpl_trainer_free_examples(cpl_trainer *t)
{
    cpl_decoder_free(t->decoder);
    cpl_codec_free(t->codec);
    cpl_codec_free(t->source_codec);
    cpl_copy_free(&t->example_words);
    cpl_release(t->example_source);
    cpl_release(t->example_copy);
    cpl_release(t->example_length);
    cpl_release(t->example_most);
    t->decoder = NULL, t->codec = NULL, t->source_codec = NULL;
    t->example_source = NULL, t->example_copy = NULL, t->example_length = NULL, t->example_most = NULL;
    t->example_count = 0;
    t->example_bytes = 0;
}

/* The words of the example's source that the target vocabulary lacks, as `generate` finds them: none without memory,
 * and what was copied shows as [UNK]. */
static cpl_more_words words_of(cpl_trainer *t, const cpl_pair *pair)
{
    int32_t *ids = NULL;
    size_t capacity = 0, count;
    cpl_copy_clear(&t->example_words);
    if (t->source_codec && cpl_codec_encode(t->source_codec, pair->source.text, pair->source.length, &ids, &capacity,
                                            &count, NULL, NULL) == CPL_OK) {
        const cpl_token *tokens = cpl_codec_tokens(t->source_codec, &count);
        if (cpl_copy_add(&t->example_words, t->data->target, tokens, count, NULL) != CPL_OK)
            cpl_copy_clear(&t->example_words);
    }
    cpl_release(ids);
    return (cpl_more_words){t->example_words.words, t->example_words.word_count};
}

static void show(cpl_trainer *t, int64_t example, const cpl_decoded *row)
{
    cpl_str output = {0}, source = {0}, reference = {0};
    const cpl_pair *pair = &t->data->texts[example];
    cpl_codec_decode_more(t->codec, row->ids, (size_t)row->length, words_of(t, pair), 0, &output);
    cpl_str_add_bytes(&source, pair->source.text, pair->source.length);
    cpl_str_add_bytes(&reference, pair->target.text, pair->target.length);
    if (!output.failed && !source.failed && !reference.failed)
        cpl_trainer_tell_example(t, source.data ? source.data : "", reference.data ? reference.data : "",
                                 output.data ? output.data : "");
    cpl_str_free(&output);
    cpl_str_free(&source);
    cpl_str_free(&reference);
}

/* Weights that are not numbers translate nothing; that must not end a training. */
void cpl_trainer_show_examples(cpl_trainer *t)
{
    for (int64_t i = 0; t->decoder && i < t->example_count; i += t->examples_at_once) {
        const cpl_decoded *rows = NULL;
        cpl_error err = CPL_ERROR_INIT;
        if (translate(t, i, t->examples_at_once, &rows, &err) != CPL_OK)
            cpl_log_warning(&t->log, "cannot translate the examples: %s", err.line[0]);
        for (int64_t k = 0; rows && k < t->examples_at_once; k++)
            show(t, i + k, &rows[k]);
    }
}
