/* attention.c: an answer's attention with the tokens that it belongs to. */
#include "api/attention.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"

/* The entry of the vocabulary, or a word that was copied; an id that neither has is unknown. */
static cpl_label entry(const cpl_vocabulary *v, cpl_more_words more, int64_t id)
{
    cpl_token word = cpl_word_of(v, more, id);
    cpl_label label = {.text = word.text, .length = word.length, .kind = CPL_LABEL_WORD};
    if (id < CPL_ID_WORDS && id != CPL_ID_UNKNOWN)
        label.kind = CPL_LABEL_MARK;
    return label;
}

/* [START] the line's own words [END]: a word that the vocabulary has not stays readable. Padding is one column. */
static void label_source(cpl_label *labels, const cpl_model *m, size_t words, int padded)
{
    size_t count;
    const cpl_more_words none = {NULL, 0};
    const cpl_token *tokens = cpl_codec_tokens(m->source, &count);
    labels[0] = entry(m->file->source, none, CPL_ID_START);
    for (size_t i = 0; i < words; i++)
        labels[i + 1] = (cpl_label){.text = tokens[i].text, .length = tokens[i].length,
                                    .kind = m->line_ids[i] == CPL_ID_UNKNOWN ? CPL_LABEL_UNKNOWN : CPL_LABEL_WORD};
    labels[words + 1] = entry(m->file->source, none, CPL_ID_END);
    if (padded)
        labels[words + 2] = entry(m->file->source, none, CPL_ID_PADDING);
}

/* What all of the padding got becomes the last column: a line's weights still sum to 1. */
static cpl_status join_padding(cpl_attention_view *view, const cpl_decoded *output, size_t rows, size_t columns,
                               cpl_error *err)
{
    if (cpl_grow(&view->weights, &view->weights_capacity, rows * columns, sizeof *view->weights))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %zu attention weights", rows * columns);
    for (size_t t = 0; t < rows; t++) {
        const float *from = output->attention + t * (size_t)output->source_length;
        float *to = view->weights + t * columns;
        memcpy(to, from, columns * sizeof *to);
        for (size_t s = columns; s < (size_t)output->source_length; s++)
            to[columns - 1] += from[s];
    }
    view->picture.weights = view->weights;
    return CPL_OK;
}

/* The line is split again: the codec keeps the tokens of its last line only, and most answers need none. */
cpl_status cpl_attention_see(cpl_attention_view *view, cpl_model *m, const cpl_line *line, const cpl_answer *answer,
                             cpl_error *err)
{
    const cpl_decoded *output = &answer->output;
    const cpl_config *c = m->file->config;
    size_t words = 0, rows = (size_t)(output->length + output->finished);
    view->picture = (cpl_picture){.source.tokens = (cpl_tokens)c->text.source.tokens,
                                  .target.tokens = (cpl_tokens)c->text.target.tokens};
    if (answer->blank || output->failed || !output->attention)
        return CPL_OK;
    CPL_TRY(cpl_codec_encode(m->source, line->text, line->length, &m->line_ids, &m->line_ids_capacity, &words, NULL,
                             err), err, "line %lld", (long long)line->number);
    int padded = (size_t)output->source_length > words + 2;
    size_t columns = words + 2 + (padded != 0);
    if (cpl_grow(&view->labels, &view->capacity, columns + rows, sizeof *view->labels))
        CPL_FAIL(err, CPL_FAILED, "out of memory for the attention of line %lld", (long long)line->number);
    label_source(view->labels, m, words, padded);
    for (size_t i = 0; i < rows; i++)
        view->labels[columns + i] =
            entry(m->file->target, answer->words, (int64_t)i < output->length ? output->ids[i] : CPL_ID_END);
    view->picture.source.labels = view->labels;
    view->picture.source.count = columns;
    view->picture.target.labels = view->labels + columns;
    view->picture.target.count = rows;
    view->picture.weights = output->attention;
    return padded ? join_padding(view, output, rows, columns, err) : CPL_OK;
}

static void add_labels(cpl_json *object, const char *key, const cpl_axis *axis)
{
    cpl_json *array = cpl_json_array();
    for (size_t i = 0; i < axis->count; i++)
        cpl_json_add_text(array, axis->labels[i].text, axis->labels[i].length);
    cpl_json_set(object, key, array);
}

cpl_json *cpl_attention_json(const cpl_attention_view *view)
{
    const cpl_picture *p = &view->picture;
    cpl_json *o = cpl_json_object(), *rows = cpl_json_array();
    add_labels(o, "source", &p->source);
    add_labels(o, "target", &p->target);
    for (size_t t = 0; t < p->target.count; t++) {
        cpl_json *row = cpl_json_array();
        for (size_t s = 0; s < p->source.count; s++)
            cpl_json_add_real(row, (double)p->weights[t * p->source.count + s], 4);
        cpl_json_add(rows, row);
    }
    cpl_json_set(o, "weights", rows);
    return o;
}

/* Plain writing: waiting for the disk after each picture would take ten times as long as the translation. */
static cpl_status write_file(const char *path, const cpl_str *text, cpl_error *err)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        CPL_FAIL(err, CPL_FAILED, "cannot write '%s': %s", path, cpl_reason(errno));
    int error = fwrite(text->data, 1, text->length, f) == text->length ? 0 : errno;
    if (fclose(f) != 0 && !error)
        error = errno;
    if (error)
        CPL_FAIL(err, CPL_FAILED, "cannot write '%s': %s", path, cpl_reason(error));
    return CPL_OK;
}

cpl_status cpl_attention_save(cpl_attention_view *view, const char *folder, int64_t number, cpl_error *err)
{
    char name[40], title[60];
    if (view->picture.target.count == 0)
        return CPL_OK;
    snprintf(name, sizeof name, "%06lld.svg", (long long)number);
    snprintf(title, sizeof title, "Where each output token of line %lld looked", (long long)number);
    view->picture.title = title;
    cpl_str_clear(&view->svg);
    cpl_picture_write(&view->picture, &view->svg);
    char *path = cpl_path_join(folder, name);
    cpl_status status = path && !view->svg.failed
                            ? write_file(path, &view->svg, err)
                            : cpl_error_set(err, CPL_FAILED, "out of memory for '%s' in '%s'", name, folder);
    view->picture.title = NULL;
    cpl_release(path);
    return status;
}

void cpl_attention_close(cpl_attention_view *view)
{
    cpl_release(view->labels);
    cpl_release(view->weights);
    cpl_str_free(&view->svg);
    *view = (cpl_attention_view){0};
}
