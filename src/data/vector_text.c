/* vector_text.c: the lines of a file of word vectors.
 *
 * A line is read from its end: the last `width` fields are the numbers, what stands before them is the token. So a
 * token may hold spaces (large files from the web have some), unless its last piece is a number: then the line has too
 * many. The form of every number is checked, also in lines that nobody wants; values are read of the others alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "data/scan.h"
#include "data/vectors.h"

enum { PIECE = 1 << 16, LONGEST_LINE = 1 << 24 };

struct cpl_vector_text {
    const cpl_vectors_options *o;
    cpl_stream *stream;
    char *text; /* [capacity]: a NUL follows `end` */
    size_t at, end, capacity;
    int ended;
    int64_t line, blank; /* the line read last; the first blank one (0: none) */
    int64_t promised;
};

cpl_status cpl_vector_text_open(cpl_vector_text **out, const cpl_vectors_options *options, cpl_error *err)
{
    cpl_vector_text *t = cpl_alloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        CPL_FAIL(err, CPL_FAILED, "no memory to read '%s'", options->name);
    t->o = options;
    t->promised = -1;
    cpl_status status = cpl_stream_open(&t->stream, options->path, err);
    if (status == CPL_OK)
        *out = t;
    else
        cpl_vector_text_close(t);
    return status;
}

void cpl_vector_text_close(cpl_vector_text *t)
{
    if (!t)
        return;
    cpl_stream_close(t->stream);
    cpl_release(t->text);
    cpl_release(t);
}

int64_t cpl_vector_text_promised(const cpl_vector_text *t)
{
    return t->promised;
}

/* ---- lines ---- */

static cpl_status fill(cpl_vector_text *t, cpl_error *err)
{
    size_t got, kept = t->end - t->at;
    if (kept > LONGEST_LINE)
        CPL_FAIL(err, CPL_USAGE, "'%s' line %lld has over %d bytes, expected a token and %lld numbers", t->o->name,
                 (long long)t->line + 1, LONGEST_LINE, (long long)t->o->width);
    if (t->at > 0)
        memmove(t->text, t->text + t->at, kept);
    t->at = 0;
    t->end = kept;
    if (cpl_grow(&t->text, &t->capacity, kept + PIECE + 1, 1))
        CPL_FAIL(err, CPL_FAILED, "no memory for line %lld of '%s'", (long long)t->line + 1, t->o->name);
    cpl_status status = cpl_stream_read(t->stream, t->text + kept, t->capacity - kept - 1, &got, err);
    t->end += status == CPL_OK ? got : 0;
    t->text[t->end] = '\0';
    t->ended = status == CPL_OK && got == 0;
    return status;
}

static int is_separator(char c)
{
    return c == ' ' || c == '\t';
}

/* The next line without its end and the space that some programs leave there. *line NULL: no more. */
static cpl_status next_line(cpl_vector_text *t, const char **line, size_t *length, cpl_error *err)
{
    size_t seen = 0;
    char *stop = NULL;
    *line = NULL;
    while (!(stop = t->end > t->at + seen ? memchr(t->text + t->at + seen, '\n', t->end - t->at - seen) : NULL)) {
        seen = t->end - t->at;
        if (t->ended)
            break;
        cpl_status status = fill(t, err);
        if (status != CPL_OK)
            return status;
    }
    if (!stop && seen == 0)
        return CPL_OK;
    const char *start = t->text + t->at, *end = stop ? stop : t->text + t->end;
    t->at = stop ? (size_t)(stop - t->text) + 1 : t->end;
    t->line++;
    while (end > start && (is_separator(end[-1]) || end[-1] == '\r'))
        end--;
    *line = start;
    *length = (size_t)(end - start);
    return CPL_OK;
}

/* ---- fields ---- */

/* The bytes of the decimal number at p; 0: none. */
static size_t number_at(const char *p, const char *end)
{
    const char *q = p + (p < end && (*p == '-' || *p == '+'));
    size_t digits = 0, exponent = 0;
    for (; q < end && *q >= '0' && *q <= '9'; q++)
        digits++;
    if (q < end && *q == '.')
        for (q++; q < end && *q >= '0' && *q <= '9'; q++)
            digits++;
    if (digits == 0)
        return 0;
    if (q < end && (*q == 'e' || *q == 'E')) {
        const char *e = q + 1;
        e += e < end && (*e == '-' || *e == '+');
        for (; e < end && *e >= '0' && *e <= '9'; e++)
            exponent++;
        q = exponent ? e : q;
    }
    return (size_t)(q - p);
}

static const char *field_end(const char *p, const char *end)
{
    while (p < end && !is_separator(*p))
        p++;
    return p;
}

static const char *next_field(const char *p, const char *end)
{
    p = field_end(p, end);
    while (p < end && is_separator(*p))
        p++;
    return p;
}

static int64_t count_fields(const char *p, const char *end)
{
    int64_t n = 0;
    for (; p < end; p = next_field(p, end))
        n++;
    return n;
}

/* Where the last `count` fields of [start, end) begin; start when they are not that many. */
static const char *last_fields(const char *start, const char *end, int64_t count)
{
    const char *p = end;
    for (int64_t i = 0; i < count && p > start; i++) {
        while (p > start && is_separator(p[-1]))
            p--;
        while (p > start && !is_separator(p[-1]))
            p--;
    }
    return p;
}

static cpl_status refuse_count(const cpl_vector_text *t, int64_t got, cpl_error *err)
{
    CPL_FAIL(err, CPL_USAGE, "'%s' line %lld has %lld number%s, expected %lld", t->o->name, (long long)t->line,
             (long long)got, got == 1 ? "" : "s", (long long)t->o->width);
}

static cpl_status refuse_width(const cpl_vector_text *t, int64_t got, cpl_error *err)
{
    const cpl_vectors_options *o = t->o;
    CPL_FAIL(err, CPL_USAGE, "'%s' has vectors of %lld numbers, but %s has %lld (%s)" CPL_HINT
             "set model.embedding to %lld, or take vectors of %lld numbers", o->name, (long long)got, o->layer,
             (long long)o->width, o->width_key, (long long)got, (long long)o->width);
}

static cpl_status check_numbers(const cpl_vector_text *t, const char *p, const char *end, cpl_error *err)
{
    char shown[80];
    for (int64_t i = 1; p < end; p = next_field(p, end), i++) {
        size_t length = (size_t)(field_end(p, end) - p);
        if (number_at(p, p + length) == length)
            continue;
        CPL_FAIL(err, CPL_USAGE, "'%s' line %lld: number %lld is '%s', expected a finite decimal number", t->o->name,
                 (long long)t->line, (long long)i, cpl_escape(shown, sizeof shown, p, length));
    }
    return CPL_OK;
}

/* `first`: no vector has been read, so that a wrong number of numbers is a matter of the whole file. */
static cpl_status take_fields(const cpl_vector_text *t, const char *text, size_t length, int first,
                              cpl_vector_line *line, cpl_error *err)
{
    const char *end = text + length, *values = last_fields(text, end, t->o->width), *stop = values;
    if (is_separator(*text))
        CPL_FAIL(err, CPL_USAGE, "'%s' line %lld begins with a space: it has no token", t->o->name,
                 (long long)t->line);
    while (stop > text && is_separator(stop[-1]))
        stop--;
    const char *piece = last_fields(text, stop, 1);
    int too_many = piece > text && number_at(piece, stop) == (size_t)(stop - piece);
    if (values == text || too_many) {
        int64_t got = count_fields(text, end) - 1;
        return first && got > 0 ? refuse_width(t, got, err) : refuse_count(t, got, err);
    }
    *line = (cpl_vector_line){text, values, (size_t)(stop - text), t->line};
    return check_numbers(t, values, end, err);
}

/* ---- the file ---- */

static cpl_status check_text(const cpl_vector_text *t, const char *line, size_t length, cpl_error *err)
{
    if (t->line == 1 && length > 1 && (memcmp(line, "\xFF\xFE", 2) == 0 || memcmp(line, "\xFE\xFF", 2) == 0))
        CPL_FAIL(err, CPL_USAGE, "'%s' is UTF-16, expected UTF-8" CPL_HINT "convert it: iconv -f UTF-16 -t UTF-8",
                 t->o->name);
    if (length > 0 && memchr(line, '\0', length))
        CPL_FAIL(err, CPL_USAGE, "'%s' line %lld is not text: a NUL byte is in it" CPL_HINT
                 "word vectors are read from text files: a token and its numbers on each line", t->o->name,
                 (long long)t->line);
    return CPL_OK;
}

static int whole_number(const char *p, const char *end, int64_t *n)
{
    *n = 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9' || *n > INT64_MAX / 16)
            return 0;
        *n = *n * 10 + (*p - '0');
    }
    return 1;
}

/* Two whole numbers on line 1 are a header. With one number a vector, "5 3" may be a word: the second must be 1. */
static int read_header(cpl_vector_text *t, const char *line, size_t length, int64_t *width)
{
    const char *end = line + length, *second = next_field(line, end);
    int64_t count;
    if (count_fields(line, end) != 2 || !whole_number(line, field_end(line, end), &count) ||
        !whole_number(second, end, width) || (t->o->width == 1 && *width != 1))
        return 0;
    t->promised = count;
    return 1;
}

/* Blank lines may stand at the end alone. */
cpl_status cpl_vector_text_next(cpl_vector_text *t, cpl_vector_line *line, cpl_error *err)
{
    const char *text;
    size_t length = 0;
    int64_t width;
    *line = (cpl_vector_line){0};
    for (;;) {
        cpl_status status = next_line(t, &text, &length, err);
        if (status == CPL_OK && text)
            status = check_text(t, text, length, err);
        if (status != CPL_OK || !text)
            return status;
        if (t->line == 1 && length >= CPL_MARK_BYTES && memcmp(text, CPL_MARK, CPL_MARK_BYTES) == 0)
            text += CPL_MARK_BYTES, length -= CPL_MARK_BYTES;
        if (t->line == 1 && read_header(t, text, length, &width)) {
            if (width != t->o->width)
                return refuse_width(t, width, err);
            continue;
        }
        if (length == 0) {
            t->blank = t->blank ? t->blank : t->line;
            continue;
        }
        if (t->blank)
            CPL_FAIL(err, CPL_USAGE, "'%s' line %lld is blank, expected a token and %lld numbers", t->o->name,
                     (long long)t->blank, (long long)t->o->width);
        return take_fields(t, text, length, t->line == 1, line, err);
    }
}

cpl_status cpl_vector_text_values(const cpl_vector_text *t, const cpl_vector_line *line, real *to, cpl_error *err)
{
    const char *p = line->values;
    for (int64_t i = 0; i < t->o->width; i++) {
        char *end, shown[80];
        size_t length = strcspn(p, " \t\r\n");
        float value = strtof(p, &end);
        int whole = end == p + length; /* strtof follows the locale: it may not know the point */
        if (!whole || !isfinite(value))
            CPL_FAIL(err, whole ? CPL_USAGE : CPL_FAILED, "'%s' line %lld: number %lld is '%s', %s", t->o->name,
                     (long long)line->number, (long long)i + 1, cpl_escape(shown, sizeof shown, p, length),
                     whole ? "too large for 32 bits" : "but the program's locale (LC_NUMERIC) has no decimal point");
        to[i] = value;
        for (p = end; is_separator(*p);)
            p++;
    }
    return CPL_OK;
}
