/* base64.c: three bytes are four characters of six bits. */
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void cpl_base64_encode(const char *bytes, size_t length, cpl_str *out)
{
    const unsigned char *b = (const unsigned char *)bytes;
    for (size_t i = 0; i < length; i += 3) {
        size_t n = length - i < 3 ? length - i : 3;
        unsigned v = (unsigned)b[i] << 16 | (n > 1 ? (unsigned)b[i + 1] << 8 : 0) | (n > 2 ? b[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], '=', '='};
        if (n > 1)
            four[2] = digits[v >> 6 & 63];
        if (n > 2)
            four[3] = digits[v & 63];
        cpl_str_add_bytes(out, four, 4);
    }
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int cpl_base64_decode(const char *text, size_t length, cpl_str *out)
{
    if (length % 4 != 0)
        return -1;
    for (size_t i = 0; i < length; i += 4) {
        unsigned v = 0;
        size_t n = i + 4 < length || text[i + 3] != '=' ? 3 : text[i + 2] != '=' ? 2 : 1;
        for (size_t k = 0; k < 4; k++) {
            int d = k <= n ? value_of(text[i + k]) : 0;
            if (d < 0)
                return -1;
            v = v << 6 | (unsigned)d;
        }
        char three[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        cpl_str_add_bytes(out, three, n);
    }
    return 0;
}
