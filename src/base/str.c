/* str.c: a growing byte string and small text helpers. */
#include "base/str.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* Room for n more bytes and the NUL; 0 when there is none. */
static int room(cpl_str *s, size_t n)
{
    size_t needed;
    if (s->failed)
        return 0;
    if (__builtin_add_overflow(s->length, n, &needed) || needed == SIZE_MAX ||
        cpl_grow(&s->data, &s->capacity, needed + 1, 1) != 0) {
        s->failed = 1;
        return 0;
    }
    return 1;
}

void cpl_str_add_bytes(cpl_str *s, const char *bytes, size_t n)
{
    if (!room(s, n))
        return;
    if (n > 0)
        memcpy(s->data + s->length, bytes, n);
    s->length += n;
    s->data[s->length] = '\0';
}

void cpl_str_add(cpl_str *s, const char *text)
{
    cpl_str_add_bytes(s, text, strlen(text));
}

void cpl_str_add_char(cpl_str *s, char c)
{
    cpl_str_add_bytes(s, &c, 1);
}

void cpl_str_printf(cpl_str *s, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (n < 0) {
        s->failed = 1;
    } else if (room(s, (size_t)n)) {
        vsnprintf(s->data + s->length, (size_t)n + 1, format, again);
        s->length += (size_t)n;
    }
    va_end(again);
}

void cpl_str_clear(cpl_str *s)
{
    s->length = 0;
    if (s->data)
        s->data[0] = '\0';
}

void cpl_str_free(cpl_str *s)
{
    cpl_release(s->data);
    *s = (cpl_str){0};
}

char *cpl_str_take(cpl_str *s)
{
    cpl_str_add_bytes(s, "", 0); /* something to hand over even when nothing was added */
    char *data = s->data;
    if (s->failed) {
        cpl_release(data);
        data = NULL;
    }
    *s = (cpl_str){0};
    return data;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

enum { DISTANCE_BYTES = 255 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment in three rows. Names are short: what is longer than DISTANCE_BYTES counts
 * as entirely different, which spares an allocation. */
static size_t distance(const char *a, const char *b, char (*fold)(char))
{
    size_t la = strlen(a), lb = strlen(b);
    if (la > DISTANCE_BYTES || lb > DISTANCE_BYTES)
        return strcmp(a, b) == 0 ? 0 : (la > lb ? la : lb);
    size_t rows[3][DISTANCE_BYTES + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= lb; j++)
        row[j] = before[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            int same = fold(a[i - 1]) == fold(b[j - 1]);
            size_t best = least(above[j], row[j - 1]) + 1;
            best = least(best, above[j - 1] + (same ? 0 : 1));
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]))
                best = least(best, before[j - 2] + 1);
            row[j] = best;
        }
    }
    return row[lb];
}

static char as_is(char c)
{
    return c;
}

size_t cpl_edit_distance(const char *a, const char *b)
{
    return distance(a, b, as_is);
}

/* Near enough: at most one edit for each three bytes of the longer name, and less than all of the
 * name. Case is ignored, since 'GRU' for 'gru' is the same slip as a wrong letter. */
const char *cpl_nearest(const char *name, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    size_t shortest = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t la = strlen(name), lb = strlen(names[i]), longer = la > lb ? la : lb;
        size_t limit = longer < 6 ? 1 : longer / 3;
        size_t d = distance(name, names[i], lower);
        if (d <= limit && (d == 0 || d < la) && d < shortest) {
            shortest = d;
            nearest = names[i];
        }
    }
    return nearest;
}
