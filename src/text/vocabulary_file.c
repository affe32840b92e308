/* vocabulary_file.c: a vocabulary as a file: of subwords a SentencePiece model, otherwise a text. There a token is the
 * bytes of its line, so a line that only looks wrong (a space at its end, a carriage return, a count after a space)
 * would become a token that no text ever has, or shift the ids behind it against the rows of a trained matrix: every
 * such line is an error, and all are told at once. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/map.h"
#include "base/memory.h"
#include "text/text.h"
#include "text/unicode.h"

enum { PROBLEMS_SHOWN = 8 };

typedef struct reading {
    const char *path;
    cpl_tokens kind;
    cpl_map *lines;   /* token → its line */
    cpl_json *tokens; /* for cpl_vocabulary_from_json, which knows the special entries' places */
    cpl_str problems;
    int count;
} reading;

__attribute__((format(printf, 2, 3))) static void problem(reading *r, const char *format, ...)
{
    char text[240];
    va_list arguments;
    if (++r->count > PROBLEMS_SHOWN)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cpl_str_printf(&r->problems, "%s%s", r->count > 1 ? "; " : "", text);
}

/* "token TAB count": the token's length; a tab that no count follows belongs to the token. */
static size_t without_count(const char *line, size_t length)
{
    size_t digits = 0;
    while (digits < length && line[length - 1 - digits] >= '0' && line[length - 1 - digits] <= '9')
        digits++;
    int counted = digits > 0 && digits < length - 1 && line[length - 1 - digits] == '\t';
    return counted ? length - 1 - digits : length;
}

/* 1: white space or a control character stands at p. */
static int is_odd(const char *p, const char *end)
{
    unsigned char c = (unsigned char)*p;
    return c <= ' ' || c == 0x7f || cpl_space_at(p, end) > 0;
}

/* What is wrong with a token's bytes; NULL: nothing. */
static const char *fault_of(const reading *r, const char *token, size_t length)
{
    if (cpl_utf8_valid(token, length) != length)
        return "is not UTF-8";
    if (r->kind == CPL_TOKENS_CHAR)
        return cpl_utf8_count(token, length) == 1 ? NULL : "is not one character";
    if (token[length - 1] == '\r')
        return "ends in a carriage return";
    for (size_t at = 0; at < length; at++)
        if (is_odd(token + at, token + length))
            return "holds white space or a control character: tokens cannot (a count follows a tab)";
    return NULL;
}

/* Where the special entries stand is checked first: text that shifts them shifts everything. */
static const char *special_at(int64_t line)
{
    static const char *const names[] = {"", "[UNK]", "[START]", "[END]"};
    return line <= CPL_ID_WORDS ? names[line - 1] : NULL;
}

static int is(const char *token, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(token, text, length) == 0;
}

static cpl_status special(reading *r, int64_t line, const char *token, size_t length, cpl_error *err)
{
    char shown[80];
    const char *want = special_at(line);
    if (is(token, length, want) || (line == 1 && is(token, length, "[PAD]")))
        return CPL_OK;
    cpl_escape(shown, sizeof shown, token, length);
    if (line == 1)
        CPL_FAIL(err, CPL_USAGE, "'%s' line 1 is '%s': id 0 must be the padding entry (an empty line, or [PAD])"
                 CPL_HINT "shift by one: put padding before it ([UNK], [START], [END] on lines 2 to 4), and the rows "
                 "of the weights in the same order; if another line is the padding, move it and its row to the front",
                 r->path, shown);
    CPL_FAIL(err, CPL_USAGE, "'%s' line %lld is '%s', expected %s" CPL_HINT
             "put padding, [UNK], [START], [END] on lines 1 to 4, and the rows of the weights in the same order",
             r->path, (long long)line, shown, want);
}

static cpl_status take_line(reading *r, int64_t line, const char *text, size_t length, cpl_error *err)
{
    char shown[80];
    size_t token = without_count(text, length);
    const char *name = special_at(line), *fault = NULL;
    if (name) {
        cpl_status status = special(r, line, text, token, err);
        if (status != CPL_OK)
            return status;
        cpl_json_add_text(r->tokens, name, strlen(name));
    } else if (length == 0) {
        problem(r, "line %lld is blank", (long long)line);
        return CPL_OK;
    } else if ((fault = fault_of(r, text, token)) != NULL) {
        problem(r, "line %lld '%s' %s", (long long)line, cpl_escape(shown, sizeof shown, text, length), fault);
        return CPL_OK;
    } else {
        cpl_json_add_text(r->tokens, text, token);
    }
    int is_new;
    int64_t *first = cpl_map_insert(r->lines, name ? name : text, name ? strlen(name) : token, &is_new);
    if (!first)
        CPL_FAIL(err, CPL_FAILED, "no memory for the vocabulary of '%s'", r->path);
    if (is_new)
        *first = line;
    else
        problem(r, "'%s' stands on lines %lld and %lld, as ids %lld and %lld",
                cpl_escape(shown, sizeof shown, text, token), (long long)*first, (long long)line,
                (long long)*first - 1, (long long)line - 1);
    return CPL_OK;
}

static cpl_status take_lines(reading *r, const char *text, size_t length, cpl_error *err)
{
    cpl_status status = CPL_OK;
    size_t at = 0;
    for (int64_t line = 1; at < length && status == CPL_OK; line++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t n = end ? (size_t)(end - text) - at : length - at;
        status = take_line(r, line, text + at, n, err);
        at += n + 1;
    }
    if (status == CPL_OK && r->count > 0)
        status = cpl_error_set(err, CPL_USAGE, "'%s' has %d line%s that cannot be tokens: %s%s", r->path, r->count,
                               r->count > 1 ? "s" : "", r->problems.data ? r->problems.data : "",
                               r->count > PROBLEMS_SHOWN ? "; …" : "");
    return status;
}

static cpl_status read_model(cpl_vocabulary **v, const char *path, const char *text, size_t length, cpl_tokens kind,
                             cpl_error *err)
{
    cpl_status status = cpl_vocabulary_from_model(v, text, length, path, err);
    if (status == CPL_OK && (status = cpl_vocabulary_check_kind(*v, kind, err)) != CPL_OK) {
        cpl_error_context(err, status, "'%s' cannot be used as a vocabulary", path);
        cpl_vocabulary_free(*v);
        *v = NULL;
    }
    return status;
}

cpl_status cpl_vocabulary_read(cpl_vocabulary **v, const char *path, cpl_tokens kind, cpl_error *err)
{
    char *text;
    size_t length;
    *v = NULL;
    cpl_status status = cpl_file_read(path, &text, &length, err);
    if (status != CPL_OK)
        return status;
    if (cpl_is_subword_model(text, length)) {
        status = read_model(v, path, text, length, kind, err);
        cpl_release(text);
        return status;
    }
    if (cpl_tokens_are_subwords(kind)) {
        cpl_release(text);
        CPL_FAIL(err, CPL_USAGE, "'%s' is not a SentencePiece model, which tokens: %s needs" CPL_HINT
                 "a word list goes with tokens: word, space or char", path, cpl_tokens_name(kind));
    }
    reading r = {.path = path, .kind = kind, .lines = cpl_map_new(), .tokens = cpl_json_array()};
    if (!r.lines || !r.tokens)
        status = cpl_error_set(err, CPL_FAILED, "no memory for the vocabulary of '%s'", path);
    if (status == CPL_OK)
        status = take_lines(&r, text, length, err);
    if (status == CPL_OK) {
        status = cpl_vocabulary_from_json(v, r.tokens, err);
        if (status != CPL_OK)
            cpl_error_context(err, status, "'%s' cannot be used as a vocabulary", path);
    }
    cpl_map_free(r.lines);
    cpl_json_free(r.tokens);
    cpl_str_free(&r.problems);
    cpl_release(text);
    return status;
}

cpl_status cpl_vocabulary_write(const cpl_vocabulary *v, const char *path, cpl_error *err)
{
    size_t bytes;
    const char *model = cpl_vocabulary_model(v, &bytes);
    if (model)
        return cpl_file_write(path, model, bytes, err);
    cpl_str text = {0};
    for (int64_t id = 0; id < cpl_vocabulary_size(v); id++) {
        size_t length;
        const char *token = cpl_vocabulary_token(v, id, &length);
        cpl_str_add_bytes(&text, token, length);
        cpl_str_add_char(&text, '\n');
    }
    cpl_status status = text.failed ? cpl_error_set(err, CPL_FAILED, "no memory for the file '%s'", path)
                                    : cpl_file_write(path, text.data, text.length, err);
    cpl_str_free(&text);
    return status;
}
