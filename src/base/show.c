/* show.c: text and sizes made fit to be shown, and sizes read back. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Length of the UTF-8 character at s that is safe to show as it is, or 0: malformed, overlong, a surrogate, a C1
 * control, white space other than U+0020, or a mark that turns the direction of writing. */
static size_t shown_length(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0x20 || s[0] == 0x7F || (s[0] >= 0x80 && s[0] < 0xC2) || s[0] > 0xF4 || n > left)
        return 0;
    uint32_t c = n == 1 ? s[0] : (uint32_t)s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        c = (c << 6) | (s[i] & 0x3Fu);
    }
    if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10FFFF)) || (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    if ((c >= 0x80 && c <= 0xA0) || (c >= 0x2028 && c <= 0x202F) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF)
        return 0;
    if (c == 0x1680 || (c >= 0x2000 && c <= 0x200B) || c == 0x205F || c == 0x3000) /* a space, to the eye */
        return 0;
    return n;
}

/* Writes how one character is shown; returns how many bytes of text it took. */
static size_t show_one(char piece[8], const unsigned char *s, size_t left)
{
    static const char escapes[] = "\tt\nn\rr''\\\\";
    for (const char *e = escapes; *e; e += 2)
        if (*s == (unsigned char)e[0]) {
            snprintf(piece, 8, "\\%c", e[1]);
            return 1;
        }
    size_t n = shown_length(s, left);
    if (n == 0) {
        snprintf(piece, 8, "\\x%02X", *s);
        return 1;
    }
    memcpy(piece, s, n);
    piece[n] = '\0';
    return n;
}

/* `safe` is the last place where "…" still fits: the cut, should the text turn out too long. */
char *cpl_escape(char *buffer, size_t size, const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    const size_t mark = sizeof "…"; /* with its NUL */
    size_t at = 0, safe = 0;
    if (size == 0)
        return buffer;
    for (size_t i = 0; i < length;) {
        char piece[8];
        size_t took = show_one(piece, s + i, length - i), n = strlen(piece);
        if (at + n + 1 > size) {
            if (safe + mark > size)
                break; /* too small a buffer for the mark */
            memcpy(buffer + safe, "…", mark);
            return buffer;
        }
        memcpy(buffer + at, piece, n);
        at += n;
        i += took;
        if (at + mark <= size)
            safe = at;
    }
    buffer[at] = '\0';
    return buffer;
}

char *cpl_bytes_text(char *buffer, size_t size, unsigned long long bytes)
{
    const double b = (double)bytes;
    if (bytes >= 1ull << 40)
        snprintf(buffer, size, "%.2f TiB", b / 1099511627776.0);
    else if (bytes >= 1ull << 30)
        snprintf(buffer, size, "%.2f GiB", b / 1073741824.0);
    else if (bytes >= 1ull << 20)
        snprintf(buffer, size, "%.1f MiB", b / 1048576.0);
    else if (bytes >= 1ull << 10)
        snprintf(buffer, size, "%.1f KiB", b / 1024.0);
    else
        snprintf(buffer, size, "%llu byte%s", bytes, bytes == 1 ? "" : "s");
    return buffer;
}

/* "" and "b" are bytes; k, m, g, t alone or with "ib" powers of 1024; "kb", "mb", … powers of 1000. */
static int unit_of(const char *text, unsigned long long *unit)
{
    static const char letters[] = "kmgt";
    char u[8] = "";
    size_t n = strlen(text);
    if (n >= sizeof u)
        return -1;
    for (size_t i = 0; i < n; i++)
        u[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    *unit = 1;
    if (n == 0 || strcmp(u, "b") == 0 || strcmp(u, "byte") == 0 || strcmp(u, "bytes") == 0)
        return 0;
    const char *letter = strchr(letters, u[0]);
    if (!letter || (n > 1 && strcmp(u + 1, "b") != 0 && strcmp(u + 1, "ib") != 0))
        return -1;
    for (const char *l = letters; l <= letter; l++)
        *unit *= n == 2 ? 1000 : 1024;
    return 0;
}

/* Read by hand: strtod would follow the locale and accept "inf", "0x10" and signs. */
int cpl_bytes_parse(const char *text, unsigned long long *bytes)
{
    unsigned long long whole = 0, fraction = 0, parts = 1, unit;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(whole, 10ull, &whole) ||
            __builtin_add_overflow(whole, (unsigned long long)(*c - '0'), &whole))
            return -1;
    if (c == text)
        return -1;
    int point = *c == '.';
    if (point) {
        const char *first = ++c;
        for (; *c >= '0' && *c <= '9'; c++)
            if (parts < 1000000) { /* further digits would not move a size by a byte in a million */
                fraction = fraction * 10 + (unsigned long long)(*c - '0');
                parts *= 10;
            }
        if (c == first)
            return -1;
    }
    while (*c == ' ')
        c++;
    if (unit_of(c, &unit) != 0 || (point && unit == 1))
        return -1;
    if (__builtin_mul_overflow(whole, unit, &whole))
        return -1;
    /* fraction * unit fits: below 2^20 times 2^40 */
    return __builtin_add_overflow(whole, fraction * unit / parts, bytes) ? -1 : 0;
}
