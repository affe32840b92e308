/* scan.c: bytes to lines. Only LF ends a line: U+2028, NEL, VT and FF are white space inside it (E05). */
#include "data/scan.h"

#include <string.h>

#include "base/error.h"
#include "text/unicode.h"

enum { PLACES_SHOWN = 4, PLACES_SIZE = 320 };

int cpl_scan_line(char **at, char *end, char **line, size_t *length)
{
    if (*at == end)
        return 0;
    char *stop = memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *at = stop ? stop + 1 : end;
    if (!stop)
        stop = end;
    if (stop > *line && stop[-1] == '\r')
        stop--;
    *length = (size_t)(stop - *line);
    return 1;
}

int64_t cpl_scan_count(const char *text, size_t length)
{
    int64_t n = 0;
    const char *p = text, *end = text + length;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        n++;
        p++;
    }
    return n + (length && end[-1] != '\n');
}

/* The lines with a bad byte: how many, and the first few written out. Valid stretches are skipped in one go, so that
 * looking costs one pass over the text. */
static int64_t bad_lines(const char *text, size_t length, char *places, size_t size)
{
    const char *line = text, *p = text, *end = text + length;
    int64_t number = 1, bad = 0;
    size_t used = 0;
    for (;;) {
        const char *hit = p + cpl_utf8_valid(p, (size_t)(end - p));
        if (hit == end)
            return bad;
        for (const char *lf; (lf = memchr(line, '\n', (size_t)(hit - line))) != NULL; line = lf + 1)
            number++;
        if (bad < PLACES_SHOWN && used < size) {
            int n = snprintf(places + used, size - used, "%sline %lld at byte %td (0x%02X)", bad ? ", " : "",
                             (long long)number, hit - line, (unsigned char)*hit);
            used += n > 0 ? (size_t)n : 0;
        }
        bad++;
        p = memchr(hit, '\n', (size_t)(end - hit));
        if (!p)
            return bad;
    }
}

cpl_status cpl_scan_utf8(const char *name, const char *text, size_t length, cpl_error *err)
{
    if (length > 1 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0))
        CPL_FAIL(err, CPL_USAGE, "'%s' is UTF-16, expected UTF-8" CPL_HINT "convert it: iconv -f UTF-16 -t UTF-8",
                 name);
    char places[PLACES_SIZE];
    int64_t bad = bad_lines(text, length, places, sizeof places);
    if (bad == 0)
        return CPL_OK;
    CPL_FAIL(err, CPL_USAGE,
             "'%s' is not UTF-8 in %lld %s: %s%s" CPL_HINT
             "convert the file (iconv -f LATIN1 -t UTF-8) or mend these lines",
             name, (long long)bad, bad == 1 ? "line" : "lines", places, bad > PLACES_SHOWN ? " …" : "");
}

int64_t cpl_scan_unmark(char *line, size_t *length)
{
    char *p = line, *end = line + *length;
    int64_t marks = 0;
    while (p < end && (p = memchr(p, 0xEF, (size_t)(end - p))) != NULL) {
        if (end - p < CPL_MARK_BYTES || memcmp(p, CPL_MARK, CPL_MARK_BYTES) != 0) {
            p++;
            continue;
        }
        memmove(p, p + CPL_MARK_BYTES, (size_t)(end - p) - CPL_MARK_BYTES);
        end -= CPL_MARK_BYTES;
        marks++;
    }
    *length = (size_t)(end - line);
    return marks;
}

int cpl_scan_blank(const char *text, size_t length)
{
    const char *end = text + length;
    for (size_t n; text < end; text += n)
        if ((n = cpl_space_at(text, end)) == 0)
            return 0;
    return 1;
}
