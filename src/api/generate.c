/* generate.c: one line out for each line in, as soon as it is known. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include "api/alignment.h"
#include "api/attention.h"
#include "api/shortlist.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"

/* The folder is made before anything is decoded: a wrong name is told at once. */
static cpl_status check(cpl_model *m, const cpl_generate_options *o, cpl_error *err)
{
    cpl_status status = cpl_model_whole(m, err);
    if (status == CPL_OK)
        status = cpl_generate_check(o, err);
    if (status == CPL_OK)
        status = cpl_replacer_open(m, o, err);
    if (status == CPL_OK)
        status = cpl_shortlist_open(m, o, err);
    if (status == CPL_OK && o->attention_folder)
        status = cpl_folder_make(o->attention_folder, err);
    return status;
}

/* ---- one line ---- */

static cpl_status draw(cpl_model *model, const cpl_line *line, const cpl_answer *answer, const char *folder,
                       cpl_error *err)
{
    cpl_attention_view view = {0};
    cpl_status status = cpl_attention_see(&view, model, line, answer, err);
    if (status == CPL_OK)
        status = cpl_attention_save(&view, folder, line->number, err);
    cpl_attention_close(&view);
    return status;
}

cpl_status cpl_generate(char **output, cpl_model *model, const char *text, const cpl_generate_options *options,
                        cpl_error *err)
{
    static const cpl_generate_options defaults;
    const cpl_generate_options *o = options ? options : &defaults;
    *output = NULL;
    CPL_TRY(check(model, o, err), err, "cannot generate");
    if (o->alignments)
        CPL_FAIL(err, CPL_USAGE, "alignments are written for streams of lines alone (cpl_generate_lines)");
    size_t length = strlen(text), valid = cpl_utf8_valid(text, length);
    if (valid < length)
        CPL_FAIL(err, CPL_USAGE, "byte %zu of the text is not UTF-8", valid + 1);
    cpl_line line = {.text = text, .length = length, .number = 1};
    const cpl_answer *answer;
    CPL_TRY(cpl_model_answer(model, &line, 1, o, &answer, err), err, "cannot generate");
    if (o->attention_folder)
        CPL_TRY(draw(model, &line, answer, o->attention_folder, err), err, "cannot draw the attention");
    cpl_str out = {0};
    cpl_str_add(&out, "");
    cpl_model_write(model, answer, o->tokens, &out);
    *output = cpl_str_take(&out);
    if (!*output)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the output");
    return CPL_OK;
}

/* ---- a stream ---- */

typedef struct stream {
    cpl_model *model;
    const cpl_generate_options *options;
    FILE *out;
    FILE *alignments; /* NULL: none are wanted */
    cpl_log log;
    cpl_str line, text; /* scratch */
    cpl_attention_view view;
    int64_t outputs, cut;
} stream;

/* ---- alignments ---- */

static void add_alignment(stream *s, const cpl_decoded *output, cpl_json *to)
{
    if (!s->alignments)
        return;
    cpl_str_clear(&s->text);
    cpl_str_add(&s->text, "");
    cpl_alignment_write(output, &s->text);
    cpl_json_set_text(to, "alignment", s->text.data ? s->text.data : "");
}

/* A line for each line that was written: of each output of an n-best list, or of the best. */
static cpl_status write_alignments(stream *s, const cpl_answer *a, cpl_error *err)
{
    int listed = s->options->nbest > 0 && !s->options->json && a->output.nbest && a->output.nbest_count > 0;
    cpl_str_clear(&s->text);
    for (int64_t k = 0; k < (listed ? a->output.nbest_count : 1); k++) {
        if (!a->blank && !a->output.failed)
            cpl_alignment_write(listed ? &a->output.nbest[k] : &a->output, &s->text);
        cpl_str_add_char(&s->text, '\n');
    }
    if (s->text.failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory for an alignment");
    if (fwrite(s->text.data, 1, s->text.length, s->alignments) != s->text.length)
        CPL_FAIL(err, CPL_FAILED, "cannot write '%s': %s", s->options->alignments, cpl_reason(errno));
    return CPL_OK;
}

/* ---- JSON and n-best lists ---- */

/* What an output of a beam is: its score, and what it was ranked by. */
static cpl_json *output_json(stream *s, const cpl_answer *a, const cpl_decoded *output)
{
    cpl_json *o = cpl_json_object();
    cpl_str_clear(&s->text);
    cpl_model_write_output(s->model, a, output, s->options->tokens, &s->text);
    cpl_json_set_bytes(o, "text", s->text.data ? s->text.data : "", s->text.length);
    cpl_json_set_real(o, "score", output->score, 9);
    cpl_json_set_real(o, "normalized_score", output->ranked, 9);
    cpl_json_set_bool(o, "finished", output->finished);
    add_alignment(s, output, o);
    return o;
}

/* {"text": …, "score": …, "finished": …} and what was asked for: no number is there when the model gave none, but a
 * reason. */
static cpl_status add_json(stream *s, const cpl_answer *a, cpl_error *err)
{
    cpl_json *o = cpl_json_object();
    if (!o || s->text.failed)
        s->line.failed = 1;
    cpl_json_set_bytes(o, "text", s->text.data ? s->text.data : "", s->text.length);
    cpl_json_set_real(o, "score", a->output.failed ? (double)NAN : a->output.score, 9);
    cpl_json_set_bool(o, "finished", a->output.finished);
    if (a->output.failed) {
        char reason[80];
        snprintf(reason, sizeof reason, "the logits of step %lld are not finite numbers", (long long)a->output.failed);
        cpl_json_set_text(o, "reason", reason);
    }
    if (a->output.nbest && !a->output.failed)
        cpl_json_set_real(o, "normalized_score", a->output.ranked, 9);
    if (s->options->nbest > 0) {
        cpl_json *list = cpl_json_array();
        for (int64_t k = 0; k < a->output.nbest_count; k++)
            cpl_json_add(list, output_json(s, a, &a->output.nbest[k]));
        if (!a->output.nbest && !a->blank && !a->output.failed)
            cpl_json_add(list, output_json(s, a, &a->output));
        cpl_json_set(o, "nbest", list);
    }
    if (s->alignments && !a->output.failed)
        add_alignment(s, &a->output, o);
    if (s->options->attention_folder)
        cpl_json_set(o, "attention", cpl_attention_json(&s->view));
    cpl_status status = cpl_json_write(o, &s->line, err);
    cpl_json_free(o);
    return status;
}

/* "index ||| text ||| score", as Moses and Marian write it: a line's index counts from 0, the score is the one that
 * ranked it. A blank or failed line has one such line, so that every index is there. */
static void add_nbest(stream *s, const cpl_line *line, const cpl_answer *a)
{
    const cpl_decoded *outputs = a->output.nbest && a->output.nbest_count ? a->output.nbest : &a->output;
    int64_t count = a->output.nbest_count ? a->output.nbest_count : 1;
    for (int64_t k = 0; k < count; k++) {
        cpl_str_printf(&s->line, "%s%lld ||| ", k ? "\n" : "", (long long)line->number - 1);
        if (!a->output.failed)
            cpl_model_write_output(s->model, a, &outputs[k], s->options->tokens, &s->line);
        cpl_str_printf(&s->line, " ||| %.6f", a->output.nbest ? outputs[k].ranked : outputs[k].score);
    }
}

static cpl_status write_answer(stream *s, const cpl_line *line, const cpl_answer *a, cpl_error *err)
{
    cpl_str_clear(&s->line);
    cpl_str_clear(&s->text);
    if (s->options->attention_folder) {
        CPL_TRY(cpl_attention_see(&s->view, s->model, line, a, err), err, "cannot show the attention");
        CPL_TRY(cpl_attention_save(&s->view, s->options->attention_folder, line->number, err), err,
                "cannot draw the attention of line %lld", (long long)line->number);
    }
    if (!a->output.failed) /* half an output is not an answer */
        cpl_model_write(s->model, a, s->options->tokens, &s->text);
    if (s->options->json)
        CPL_TRY(add_json(s, a, err), err, "cannot write the output");
    else if (s->options->nbest > 0)
        add_nbest(s, line, a);
    else if (s->text.length)
        cpl_str_add_bytes(&s->line, s->text.data, s->text.length);
    cpl_str_add_char(&s->line, '\n');
    if (s->line.failed || s->text.failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory for an output");
    if (fwrite(s->line.data, 1, s->line.length, s->out) != s->line.length)
        CPL_FAIL(err, CPL_FAILED, "cannot write the output: %s", cpl_reason(errno));
    if (s->alignments)
        CPL_TRY(write_alignments(s, a, err), err, "cannot write the alignment of line %lld", (long long)line->number);
    s->outputs += !a->blank;
    s->cut += !a->output.finished && !a->output.failed;
    return CPL_OK;
}

/* Answers what was read, and lets nothing wait in the buffer: the other side may send its next line only then. A line
 * without an answer stays blank, so that lines keep their places, and ends the stream after its batch. */
static cpl_status answer_lines(stream *s, const cpl_line *lines, size_t count, cpl_error *err)
{
    const cpl_answer *answers;
    cpl_status answered = cpl_model_answer(s->model, lines, count, s->options, &answers, err);
    for (size_t i = 0; answers && i < count; i++) {
        cpl_status status = write_answer(s, &lines[i], &answers[i], answered == CPL_OK ? err : NULL);
        if (status != CPL_OK)
            return answered == CPL_OK ? status : answered;
    }
    if (s->alignments && fflush(s->alignments) != 0 && answered == CPL_OK)
        CPL_FAIL(err, CPL_FAILED, "cannot write '%s': %s", s->options->alignments, cpl_reason(errno));
    if (fflush(s->out) != 0 && answered == CPL_OK)
        CPL_FAIL(err, CPL_FAILED, "cannot write the output: %s", cpl_reason(errno));
    for (size_t i = 0; answers && i < count && answered != CPL_OK; i++)
        if (answers[i].output.failed)
            return cpl_error_context(err, answered, "line %lld has no output", (long long)lines[i].number);
    return answered;
}

static void tell(const stream *s, const cpl_lines *lines)
{
    int64_t first, replaced = cpl_lines_replaced(lines, &first);
    if (replaced > 0)
        cpl_log_warning(&s->log, "%lld bytes of the input are not UTF-8 and were read as U+FFFD, first on line "
                        "%lld", (long long)replaced, (long long)first);
    if (s->cut > 0)
        cpl_log_warning(&s->log, "%lld of %lld outputs were cut at their maximum length", (long long)s->cut,
                        (long long)s->outputs);
}

static cpl_status run(stream *s, cpl_lines *input, cpl_error *err)
{
    size_t most = (size_t)(s->options->batch_size ? s->options->batch_size : CPL_GENERATE_BATCH), count;
    const cpl_line *lines;
    for (;;) {
        CPL_TRY(cpl_lines_read(input, most, &lines, &count, err), err, "cannot read the input");
        if (count == 0)
            return CPL_OK;
        CPL_TRY(answer_lines(s, lines, count, err), err, "cannot generate");
    }
}

static cpl_status open_alignments(stream *s, cpl_error *err)
{
    const char *path = s->options->alignments;
    if (path && !(s->alignments = fopen(path, "w")))
        CPL_FAIL(err, CPL_FAILED, "cannot write '%s': %s", path, cpl_reason(errno));
    return CPL_OK;
}

cpl_status cpl_generate_lines(cpl_model *model, FILE *in, FILE *out, const cpl_generate_options *options,
                              cpl_message_sink message, void *user, cpl_error *err)
{
    static const cpl_generate_options defaults;
    stream s = {.model = model, .options = options ? options : &defaults, .out = out,
                .log = {.sink = (cpl_log_sink)message, .user = user}};
    cpl_lines *lines;
    CPL_TRY(check(model, s.options, err), err, "cannot generate");
    CPL_TRY(cpl_lines_open_fd(&lines, fileno(in), err), err, "cannot generate");
    cpl_status status = open_alignments(&s, err);
    if (status == CPL_OK)
        status = run(&s, lines, err);
    tell(&s, lines);
    cpl_lines_close(lines);
    if (s.alignments && fclose(s.alignments) != 0 && status == CPL_OK)
        status = cpl_error_set(err, CPL_FAILED, "cannot write '%s': %s", s.options->alignments, cpl_reason(errno));
    cpl_str_free(&s.line);
    cpl_str_free(&s.text);
    cpl_attention_close(&s.view);
    return status;
}
