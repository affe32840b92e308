/* examples.c: a few validation pairs translated at each validation, as `generate` would. */
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/limit.h"
#include "train/trainer.h"

enum { MOST_AT_ONCE = 64 }; /* as in generate */

/* count examples from first on. A row's result does not depend on its batch. */
cpl_status cpl_trainer_translate(cpl_trainer *t, int64_t first, int64_t count, const cpl_decoded **rows,
                                 cpl_error *err)
{
    cpl_decode_batch batch = {.count = count, .source = t->example_source + first, .copy = t->example_copy + first,
                              .length = t->example_length + first, .most = t->example_most + first,
                              .no_scores = 1};
    return cpl_decode(t->decoder, &batch, rows, err);
}

/* With a budget for the memory, examples are translated one at a time. */
static int64_t at_once(const cpl_trainer *t)
{
    if (t->training->memory > 0 || cpl_memory_limit_now(0).name)
        return 1;
    return t->example_count < MOST_AT_ONCE || t->wanted == 0 ? t->example_count : MOST_AT_ONCE;
}

static void fill(cpl_trainer *t)
{
    for (int64_t i = 0; i < t->example_count; i++) {
        t->example_source[i] = cpl_row_source(&t->data->valid, i);
        t->example_copy[i] = t->data->valid.copy ? cpl_row_copy(&t->data->valid, i) : NULL;
        t->example_length[i] = t->data->valid.items[i].source;
        int64_t words = cpl_source_real(t->example_source[i], t->example_length[i]) - 2;
        t->example_most[i] = cpl_decode_default_most(words, t->data->report.target.longest);
    }
}

static int longer_first(const void *a, const void *b)
{
    const int64_t *x = a, *y = b; /* length, index */
    return x[0] != y[0] ? (x[0] < y[0] ? 1 : -1) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* The longest sources in one batch take all the memory that decoding will ever take: no batch has more of anything. */
static cpl_status translate_longest(cpl_trainer *t, cpl_error *err)
{
    int64_t n = t->example_count, k = t->examples_at_once;
    int64_t (*order)[2] = cpl_alloc((size_t)n, sizeof *order), *length = cpl_alloc((size_t)k, sizeof *length);
    int64_t *most = cpl_alloc((size_t)k, sizeof *most);
    const int32_t **source = cpl_alloc((size_t)k, sizeof *source), **copy = cpl_alloc((size_t)k, sizeof *copy);
    const cpl_decoded *rows;
    cpl_status status = CPL_OK;
    if (!order || !length || !most || !source || !copy)
        status = cpl_error_set(err, CPL_FAILED, "no memory for %lld examples", (long long)n);
    for (int64_t i = 0; i < n && status == CPL_OK; i++)
        order[i][0] = t->example_length[i], order[i][1] = i;
    if (status == CPL_OK)
        qsort(order, (size_t)n, sizeof *order, longer_first);
    for (int64_t i = 0; i < k && status == CPL_OK; i++) {
        int64_t at = order[i][1];
        source[i] = t->example_source[at], copy[i] = t->example_copy[at];
        length[i] = t->example_length[at], most[i] = t->example_most[at];
    }
    if (status == CPL_OK)
        status = cpl_decode(t->decoder, &(cpl_decode_batch){.count = k, .source = source, .copy = copy,
                            .length = length, .most = most, .no_scores = 1}, &rows, err);
    cpl_release(order);
    cpl_release(length);
    cpl_release(most);
    cpl_release(source);
    cpl_release(copy);
    return status;
}

static cpl_status make_room(cpl_trainer *t, int64_t n, cpl_error *err)
{
    t->example_count = n;
    t->example_source = cpl_alloc((size_t)n, sizeof *t->example_source);
    t->example_copy = cpl_alloc((size_t)n, sizeof *t->example_copy);
    t->example_length = cpl_alloc((size_t)n, sizeof *t->example_length);
    t->example_most = cpl_alloc((size_t)n, sizeof *t->example_most);
    if (!t->example_source || !t->example_copy || !t->example_length || !t->example_most)
        CPL_FAIL(err, CPL_FAILED, "no memory for %lld examples", (long long)n);
    return CPL_OK;
}

cpl_status cpl_trainer_prepare_examples(cpl_trainer *t, cpl_error *err)
{
    int64_t all = t->data->text_count, n = 0, scored = 0;
    uint64_t before = cpl_memory_live_bytes();
    cpl_status status = cpl_trainer_pairs_to_score(t, &scored, err);
    t->shown = t->training->show_examples < all ? t->training->show_examples : all;
    n = scored > t->shown ? scored : t->shown;
    if (status != CPL_OK || n <= 0 || !t->valid)
        return status;
    CPL_TRY(make_room(t, n, err), err, "cannot show examples");
    fill(t);
    CPL_TRY(cpl_codec_new(&t->codec, t->data->target_rules, t->data->target, err), err, "cannot show examples");
    if (t->data->valid.copy)
        CPL_TRY(cpl_codec_new(&t->source_codec, t->data->source_rules, t->data->source, err), err,
                "cannot show examples");
    CPL_TRY(cpl_decoder_new(&t->decoder, t->kind, &t->sizes, t->program->engine, err), err, "cannot show examples");
    t->examples_at_once = at_once(t);
    CPL_TRY(translate_longest(t, err), err, "cannot show examples");
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

void cpl_trainer_write_output(cpl_trainer *t, int64_t example, const cpl_decoded *row, cpl_str *output)
{
    const cpl_pair *pair = &t->data->texts[example];
    cpl_codec_decode_more(t->codec, row->ids, (size_t)row->length, words_of(t, pair), 0, output);
}

static void show(cpl_trainer *t, int64_t example, const cpl_decoded *row)
{
    cpl_str output = {0}, source = {0}, reference = {0};
    const cpl_pair *pair = &t->data->texts[example];
    cpl_trainer_write_output(t, example, row, &output);
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
    for (int64_t i = 0; t->decoder && i < t->shown; i += t->examples_at_once) {
        const cpl_decoded *rows = NULL;
        cpl_error err = CPL_ERROR_INIT;
        int64_t n = t->shown - i < t->examples_at_once ? t->shown - i : t->examples_at_once;
        if (cpl_trainer_translate(t, i, n, &rows, &err) != CPL_OK)
            cpl_log_warning(&t->log, "cannot translate the examples: %s", err.line[0]);
        for (int64_t k = 0; rows && k < n; k++)
            show(t, i + k, &rows[k]);
    }
}
