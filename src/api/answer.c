/* answer.c: lines of text → source rows → decoded rows → lines of text. */
#include <math.h>
#include <string.h>
#include "api/shortlist.h"
#include "base/error.h"
#include "base/memory.h"

/* Sampling follows one path, and a beam takes the best: they do not go together. */
static cpl_status check_beam(const cpl_generate_options *o, cpl_error *err)
{
    const char *kind = o->length_penalty_kind;
    if (o->beam < 0 || o->beam > 256)
        CPL_FAIL(err, CPL_USAGE, "beam is %lld, expected 1 to 256", (long long)o->beam);
    if (o->nbest < 0 || o->nbest > (o->beam > 1 ? o->beam : 1))
        CPL_FAIL(err, CPL_USAGE, "nbest is %lld, but beam is %lld: a beam has no more outputs than paths",
                 (long long)o->nbest, (long long)(o->beam > 1 ? o->beam : 1));
    if (o->beam > 1 && o->temperature > 0)
        CPL_FAIL(err, CPL_USAGE, "beam is %lld and temperature %g: a beam looks for the best output, expected one of "
                 "them", (long long)o->beam, o->temperature);
    if (!(o->length_penalty >= 0 && isfinite(o->length_penalty)))
        CPL_FAIL(err, CPL_USAGE, "length-penalty is %g, expected 0 or a positive number", o->length_penalty);
    if (!(o->coverage_penalty >= 0 && isfinite(o->coverage_penalty)))
        CPL_FAIL(err, CPL_USAGE, "coverage-penalty is %g, expected 0 or a positive number", o->coverage_penalty);
    if (kind && strcmp(kind, "gnmt") != 0 && strcmp(kind, "plain") != 0)
        CPL_FAIL(err, CPL_USAGE, "length-penalty-kind is '%s', expected gnmt or plain", kind);
    return CPL_OK;
}

static cpl_status check_rules(const cpl_generate_options *o, cpl_error *err)
{
    if (!(o->top_p >= 0 && o->top_p <= 1))
        CPL_FAIL(err, CPL_USAGE, "top-p is %g, expected 0 to 1", o->top_p);
    if (o->top_k < 0)
        CPL_FAIL(err, CPL_USAGE, "top-k is %lld, expected at least 1, or 0 for all", (long long)o->top_k);
    if ((o->top_k > 0 || (o->top_p > 0 && o->top_p < 1)) && o->temperature == 0)
        CPL_FAIL(err, CPL_USAGE, "%s is given, but temperature is 0: nothing is sampled" CPL_HINT
                 "--temperature 1 samples as the model believes", o->top_k > 0 ? "top-k" : "top-p");
    if (o->no_repeat < 0)
        CPL_FAIL(err, CPL_USAGE, "no-repeat is %lld tokens, expected at least 1, or 0 for off",
                 (long long)o->no_repeat);
    if (o->min_length < 0)
        CPL_FAIL(err, CPL_USAGE, "min-length is %lld tokens, expected at least 0", (long long)o->min_length);
    if (o->max_length > 0 && o->min_length > o->max_length)
        CPL_FAIL(err, CPL_USAGE, "min-length is %lld tokens, but max-length is %lld", (long long)o->min_length,
                 (long long)o->max_length);
    return CPL_OK;
}

cpl_status cpl_generate_check(const cpl_generate_options *o, cpl_error *err)
{
    cpl_status status = cpl_decode_check_temperature(o->temperature, err);
    if (status == CPL_OK)
        status = check_beam(o, err);
    if (status == CPL_OK)
        status = check_rules(o, err);
    if (status != CPL_OK)
        return status;
    if (o->max_length < 0)
        CPL_FAIL(err, CPL_USAGE, "max-length is %lld tokens, expected at least 1, or 0 for a limit by the source",
                 (long long)o->max_length);
    if (o->shortlist < 0)
        CPL_FAIL(err, CPL_USAGE, "shortlist is %lld entries, expected at least 1, or 0 for off",
                 (long long)o->shortlist);
    if (o->lexicon && o->shortlist == 0)
        CPL_FAIL(err, CPL_USAGE, "lexicon is '%s', but shortlist is not given: every entry is looked at anyway",
                 o->lexicon);
    if (o->dictionary && !o->replace_unknown)
        CPL_FAIL(err, CPL_USAGE, "dictionary is '%s', but replace-unknown is not given: nothing is looked up",
                 o->dictionary);
    if (o->batch_size < 0)
        CPL_FAIL(err, CPL_USAGE, "batch-size is %lld lines, expected at least 1, or 0 for %d", (long long)o->batch_size,
                 CPL_GENERATE_BATCH);
    return CPL_OK;
}

static cpl_status reserve(cpl_model *m, size_t count, cpl_error *err)
{
    if (count <= m->lines_capacity)
        return CPL_OK;
    size_t row = m->lines_capacity, copy = row, length = row, most = row, number = row, answers = row;
    int failed = cpl_grow(&m->row, &row, count, sizeof *m->row) |
                 cpl_grow(&m->copy_row, &copy, count, sizeof *m->copy_row) |
                 cpl_grow(&m->length, &length, count, sizeof *m->length) |
                 cpl_grow(&m->most, &most, count, sizeof *m->most) |
                 cpl_grow(&m->number, &number, count, sizeof *m->number) |
                 cpl_grow(&m->answers, &answers, count, sizeof *m->answers);
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory for %zu lines", count);
    m->lines_capacity = count;
    return CPL_OK;
}

/* White space alone is a blank line, also for a model that counts spaces as characters. */
static int is_blank(const cpl_line *line)
{
    size_t i = 0;
    while (i < line->length && (line->text[i] == ' ' || (line->text[i] >= '\t' && line->text[i] <= '\r')))
        i++;
    return i == line->length;
}

/* Appends the source row of the line that was encoded last at *at. */
static cpl_status append(cpl_model *m, const cpl_line *line, size_t words, size_t *at, cpl_error *err)
{
    int64_t pad_to = m->file->config->text.source.pad_to;
    if (cpl_grow(&m->ids, &m->ids_capacity, *at + cpl_source_length(words, pad_to), sizeof *m->ids))
        CPL_FAIL(err, CPL_FAILED, "out of memory for line %lld of %zu tokens", (long long)line->number, words);
    if (words > 0)
        memcpy(m->ids + *at + 1, m->line_ids, words * sizeof *m->ids);
    *at += cpl_source_close(m->ids + *at, words, pad_to);
    return CPL_OK;
}

/* Appends a line that is not blank at *at. *words: 0 for a blank line, which appends nothing. */
static cpl_status encode(cpl_model *m, const cpl_line *line, size_t *at, size_t *words, cpl_error *err)
{
    *words = 0;
    if (is_blank(line))
        return CPL_OK;
    CPL_TRY(cpl_codec_encode(m->source, line->text, line->length, &m->line_ids, &m->line_ids_capacity, words, NULL,
                             err), err, "line %lld", (long long)line->number);
    return *words > 0 ? append(m, line, *words, at, err) : CPL_OK;
}

/* What a model that copies needs besides, of the line that was encoded last. Only how many words the answer has is
 * known now: they may move until all lines are read. */
static cpl_status encode_copy(cpl_model *m, cpl_answer *answer, cpl_error *err)
{
    size_t count, first = m->copy.word_count;
    const cpl_token *tokens = cpl_codec_tokens(m->source, &count);
    if (!m->file->config->model.copy)
        return CPL_OK;
    cpl_status status = cpl_copy_add(&m->copy, m->file->target, tokens, count, err);
    answer->words.count = m->copy.word_count - first;
    return status;
}

/* Where each row begins, and each answer's words. */
static void point_at_rows(cpl_model *m, size_t count, int64_t rows)
{
    int copies = m->file->config->model.copy;
    const cpl_token *words = m->copy.words;
    for (int64_t r = 0, at = 0; r < rows; at += m->length[r++]) {
        m->row[r] = m->ids + at;
        m->copy_row[r] = copies ? m->copy.ids + at : NULL;
    }
    for (size_t i = 0; i < count; i++) {
        m->answers[i].words.items = words;
        if (words)
            words += m->answers[i].words.count;
    }
}

/* The same lines as the other models of an ensemble read them, each by its own rules. What one of them finds nothing in
 * is [START] [END] for it. */
static cpl_status encode_others(cpl_model *m, const cpl_line *lines, size_t count, cpl_error *err)
{
    for (int k = 0; k < m->more_count; k++) {
        cpl_model *other = m->more[k];
        size_t at = 0, words;
        int64_t rows = 0;
        CPL_TRY(reserve(other, count, err), err, "cannot answer");
        for (size_t i = 0; i < count; i++) {
            if (m->answers[i].blank)
                continue;
            CPL_TRY(cpl_codec_encode(other->source, lines[i].text, lines[i].length, &other->line_ids,
                                     &other->line_ids_capacity, &words, NULL, err), err, "model %d", k + 2);
            CPL_TRY(append(other, &lines[i], words, &at, err), err, "model %d", k + 2);
            other->length[rows++] = (int64_t)cpl_source_length(words, other->file->config->text.source.pad_to);
        }
        point_at_rows(other, 0, rows);
        m->more_sources[k] = (cpl_decode_source){.source = other->row, .length = other->length};
    }
    return CPL_OK;
}

/* Of an ensemble, never less than one of its models saw. */
static int64_t limit_of(const cpl_model *m, const cpl_generate_options *o, size_t words)
{
    int64_t most = cpl_decode_default_most((int64_t)words, m->file->longest_target);
    if (o->max_length > 0)
        return o->max_length;
    for (int k = 0; k < m->more_count; k++)
        if (most < m->more[k]->file->longest_target)
            most = m->more[k]->file->longest_target;
    return most > o->min_length ? most : o->min_length;
}

/* The mean of several models' attention is over the same words. */
static cpl_status check_same_source(const cpl_model *m, cpl_error *err)
{
    const cpl_config_side *a = &m->file->config->text.source;
    for (int k = 0; k < m->more_count; k++) {
        const cpl_config_side *b = &m->more[k]->file->config->text.source;
        if (a->tokens != b->tokens || a->standardize != b->standardize)
            CPL_FAIL(err, CPL_USAGE, "the attention of an ensemble is the mean of its models', but the first reads its "
                     "source as '%s' tokens of '%s' text, model %d as '%s' of '%s'",
                     cpl_tokens_name((cpl_tokens)a->tokens), cpl_standardize_name((cpl_standardize)a->standardize),
                     k + 2, cpl_tokens_name((cpl_tokens)b->tokens),
                     cpl_standardize_name((cpl_standardize)b->standardize));
    }
    return CPL_OK;
}

cpl_status cpl_model_answer(cpl_model *m, const cpl_line *lines, size_t count, const cpl_generate_options *o,
                            const cpl_answer **answers, cpl_error *err)
{
    *answers = NULL;
    CPL_TRY(reserve(m, count, err), err, "cannot answer");
    CPL_TRY(cpl_replacer_open(m, o, err), err, "cannot replace unknown words");
    CPL_TRY(cpl_shortlist_open(m, o, err), err, "cannot answer");
    cpl_shortlist_clear(m);
    cpl_copy_clear(&m->copy);
    cpl_status status;
    size_t at = 0;
    int64_t rows = 0;
    for (size_t i = 0; i < count; i++) {
        size_t words, begin = at;
        CPL_TRY(encode(m, &lines[i], &at, &words, err), err, "cannot read the source");
        m->answers[i] = (cpl_answer){.blank = words == 0, .output = {.finished = 1}};
        if (words == 0)
            continue;
        CPL_TRY(encode_copy(m, &m->answers[i], err), err, "cannot read the source");
        if (o->shortlist > 0)
            CPL_TRY(cpl_shortlist_add(m, err), err, "cannot read the source");
        m->length[rows] = (int64_t)(at - begin);
        m->most[rows] = limit_of(m, o, words);
        m->number[rows++] = lines[i].number;
    }
    point_at_rows(m, count, rows);
    CPL_TRY(encode_others(m, lines, count, err), err, "cannot read the source");
    cpl_decode_batch batch = {.count = rows, .source = m->row, .copy = m->copy_row, .length = m->length,
                              .most = m->most, .number = m->number, .temperature = o->temperature, .seed = o->seed,
                              .attention = o->attention_folder || o->alignments || o->replace_unknown,
                              .more = m->more_sources, .no_scores = !o->json && o->nbest == 0};
    if (batch.attention || o->coverage_penalty > 0)
        CPL_TRY(check_same_source(m, err), err, "cannot see the attention");
    status = cpl_model_rules(m, o, &batch.rules, err);
    if (status != CPL_OK)
        return status;
    if (o->shortlist > 0 && rows > 0)
        CPL_TRY(cpl_shortlist_finish(m, o, &batch, err), err, "cannot answer");
    if (o->beam > 1) {
        batch.beam = o->beam, batch.nbest = o->nbest;
        batch.length_penalty = o->length_penalty, batch.coverage_penalty = o->coverage_penalty;
        batch.plain_penalty = o->length_penalty_kind && strcmp(o->length_penalty_kind, "plain") == 0;
    }
    /* The most probable token is never changed: greedy without rules is what the reference is. */
    if (o->temperature > 0 || cpl_decode_rules_any(&batch.rules))
        batch.forbidden = 1u << CPL_ID_PADDING | 1u << CPL_ID_START;
    const cpl_decoded *decoded = NULL;
    cpl_decoder *decoder = o->shortlist > 0 ? cpl_shortlist_decoder(m) : m->decoder;
    status = rows ? cpl_decode(decoder, &batch, &decoded, err) : CPL_OK;
    for (size_t i = 0; decoded && i < count; i++)
        if (!m->answers[i].blank)
            m->answers[i].output = *decoded++;
    if (decoded && o->replace_unknown) {
        cpl_status replaced = cpl_replacer_apply(m, lines, count, status == CPL_OK ? err : NULL);
        if (replaced != CPL_OK)
            return status == CPL_OK ? replaced : status;
    }
    *answers = status == CPL_OK || decoded ? m->answers : NULL;
    return status;
}

void cpl_model_write(const cpl_model *m, const cpl_answer *answer, int tokens, cpl_str *out)
{
    cpl_model_write_output(m, answer, &answer->output, tokens, out);
}

void cpl_model_write_output(const cpl_model *m, const cpl_answer *answer, const cpl_decoded *output, int tokens,
                            cpl_str *out)
{
    size_t from = out->length;
    if (!answer->blank)
        cpl_codec_decode_more(m->target, output->ids, (size_t)output->length, answer->words, tokens, out);
    for (size_t i = from; i < out->length; i++) /* a token may hold anything, a line holds no line feed */
        if (out->data[i] == '\n')
            out->data[i] = ' ';
}
