/* utf8.c: UTF-8 by hand: validity, decoding, white space. Lengths are explicit everywhere: NUL is a character. */
#include <string.h>
#include "text/text.h"
#include "text/unicode.h"

static int is_tail(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* The second byte carries all the special limits: overlong forms (after E0, F0), surrogates (ED), > U+10FFFF (F4). */
static int second_fits(unsigned char lead, unsigned char c)
{
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    return c >= low && c <= high;
}

size_t cpl_utf8_next(const char *p, const char *end, uint32_t *code)
{
    const unsigned char *u = (const unsigned char *)p;
    size_t left = (size_t)(end - p);
    if (u[0] < 0x80) {
        *code = u[0];
        return 1;
    }
    size_t n = u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2;
    *code = CPL_BAD_BYTE;
    if (u[0] < 0xC2 || u[0] > 0xF4 || left < n || !second_fits(u[0], u[1]))
        return 1;
    uint32_t value = u[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (!is_tail(u[i]))
            return 1;
        value = value << 6 | (u[i] & 0x3Fu);
    }
    *code = value;
    return n;
}

/* Bytes of the ASCII prefix, eight at a time: most text is ASCII or nearly so. */
static size_t ascii_prefix(const char *text, size_t length)
{
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t eight;
        memcpy(&eight, text + i, 8);
        if (eight & 0x8080808080808080u)
            break;
    }
    while (i < length && (unsigned char)text[i] < 0x80)
        i++;
    return i;
}

int cpl_is_ascii(const char *text, size_t length)
{
    return ascii_prefix(text, length) == length;
}

size_t cpl_utf8_valid(const char *text, size_t length)
{
    size_t i = ascii_prefix(text, length);
    while (i < length) {
        uint32_t code;
        size_t n = cpl_utf8_next(text + i, text + length, &code);
        if (code == CPL_BAD_BYTE)
            return i;
        i += n;
    }
    return length;
}

size_t cpl_utf8_count(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += !is_tail((unsigned char)text[i]);
    return count;
}

void cpl_utf8_repair(const char *text, size_t length, cpl_str *out)
{
    for (size_t i = 0; i < length;) {
        uint32_t code;
        size_t n = cpl_utf8_next(text + i, text + length, &code);
        if (code == CPL_BAD_BYTE || code == '\n')
            cpl_str_add(out, "\xEF\xBF\xBD");
        else
            cpl_str_add_bytes(out, text + i, n);
        i += n;
    }
}

static int is_wide_space(uint32_t c)
{
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200B) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t cpl_space_at(const char *p, const char *end)
{
    unsigned char c = (unsigned char)*p;
    if (c < 0x80)
        return c == ' ' || (c >= 9 && c <= 13);
    if (c != 0xC2 && c != 0xE1 && c != 0xE2 && c != 0xE3) /* the only lead bytes of white space */
        return 0;
    uint32_t code;
    size_t n = cpl_utf8_next(p, end, &code);
    return is_wide_space(code) ? n : 0;
}
