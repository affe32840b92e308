/* error.c: the chain of sentences that every failure is told with. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/memory.h"

/* Cuts text to a line at a character's boundary and marks the cut, so that a long name can neither
 * overflow nor leave half a character behind. Control characters become spaces: a line stays a line. */
static void put_line(char *line, const char *text, size_t length)
{
    size_t keep = length;
    if (keep >= CPL_ERROR_WIDTH) {
        keep = CPL_ERROR_WIDTH - sizeof "…";
        while (keep > 0 && ((unsigned char)text[keep] & 0xC0) == 0x80)
            keep--;
    }
    for (size_t i = 0; i < keep; i++)
        line[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7F ? ' ' : text[i];
    line[keep] = '\0';
    if (keep < length)
        memcpy(line + keep, "…", sizeof "…");
}

/* Formats into a line and, when the format itself holds the hint's mark, a hint. A newline that came
 * in through an argument is no mark, hence the look at the format. */
static void format_line(char *line, char *hint, const char *format, va_list list)
{
    char text[2 * CPL_ERROR_WIDTH + 2];
    int n = vsnprintf(text, sizeof text, format, list);
    if (n < 0) {
        text[0] = '\0';
        n = 0;
    }
    size_t length = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    const char *mark = strchr(format, '\n') ? strrchr(text, '\n') : NULL;
    if (mark) {
        put_line(hint, mark + 1, length - (size_t)(mark + 1 - text));
        length = (size_t)(mark - text);
    }
    put_line(line, text, length);
}

cpl_status cpl_error_set(cpl_error *err, cpl_status status, const char *format, ...)
{
    if (!err)
        return status;
    /* Into copies first: an argument may point into err itself. */
    char line[CPL_ERROR_WIDTH] = "", hint[CPL_ERROR_WIDTH] = "";
    va_list list;
    va_start(list, format);
    format_line(line, hint, format, list);
    va_end(list);
    err->status = status;
    err->lines = 1;
    memcpy(err->line[0], line, sizeof line);
    memcpy(err->hint, hint, sizeof hint);
    return status;
}

cpl_status cpl_error_context(cpl_error *err, cpl_status status, const char *format, ...)
{
    if (!err)
        return status;
    char line[CPL_ERROR_WIDTH] = "", hint[CPL_ERROR_WIDTH] = "";
    va_list list;
    va_start(list, format);
    format_line(line, hint, format, list);
    va_end(list);
    if (err->lines <= 0 || err->status == CPL_OK) {
        err->status = status;
        err->lines = 0;
        err->hint[0] = '\0';
    }
    int at = err->lines < CPL_ERROR_LINES ? err->lines : CPL_ERROR_LINES - 1;
    memcpy(err->line[at], line, sizeof line);
    err->lines = at + 1;
    if (hint[0] && !err->hint[0])
        memcpy(err->hint, hint, sizeof hint);
    return err->status;
}

/* The usual ones by hand: lower case, and about files and folders as we call them. */
const char *cpl_reason(int error)
{
    switch (error) {
    case ENOENT: return "no such file or folder";
    case ENOTDIR: return "a part of the path is not a folder";
    case EISDIR: return "it is a folder";
    case EACCES: return "permission denied";
    case EEXIST: return "it exists and is not a folder";
    case ENOSPC: return "no space left on the device";
    case EROFS: return "the file system is read-only";
    case ENAMETOOLONG: return "the name is too long";
    case ENOMEM: return "no memory";
    default: return strerror(error);
    }
}

void cpl_error_print(const cpl_error *err, FILE *to)
{
    if (!err || err->lines <= 0)
        return;
    fprintf(to, "error: %s\n", err->line[err->lines - 1]);
    for (int i = err->lines - 2; i >= 0; i--)
        fprintf(to, "  because: %s\n", err->line[i]);
    if (err->hint[0])
        fprintf(to, "  hint: %s\n", err->hint);
}

void cpl_free(void *p)
{
    cpl_release(p);
}
