/* unicode.c: what the Unicode tables know. The only file that knows utf8proc; without it, ASCII only. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "text/unicode.h"
#ifdef CPL_HAVE_UTF8PROC
#include <utf8proc.h>
#endif

static cpl_char_kind ascii_kind(unsigned char c)
{
    if (c == ' ' || (c >= 9 && c <= 13))
        return CPL_CHAR_SPACE;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return CPL_CHAR_LETTER;
    return c >= '0' && c <= '9' ? CPL_CHAR_DIGIT : CPL_CHAR_OTHER;
}

#ifdef CPL_HAVE_UTF8PROC

int cpl_unicode_available(void)
{
    return 1;
}

static cpl_char_kind wide_kind(uint32_t code)
{
    if (code >= CPL_BAD_BYTE)
        return CPL_CHAR_OTHER;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    if (c == UTF8PROC_CATEGORY_ND)
        return CPL_CHAR_DIGIT;
    if ((c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) || c == UTF8PROC_CATEGORY_NL ||
        c == UTF8PROC_CATEGORY_NO || c == UTF8PROC_CATEGORY_PC)
        return CPL_CHAR_LETTER;
    /* Skin tones are symbols by category, but change the emoji before them. */
    if (cpl_is_mark(code) || c == UTF8PROC_CATEGORY_CF || (code >= 0x1F3FB && code <= 0x1F3FF))
        return CPL_CHAR_EXTEND;
    return CPL_CHAR_OTHER;
}

int cpl_is_mark(uint32_t code)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

char cpl_char_class(uint32_t code)
{
    return code >= CPL_BAD_BYTE ? 'C' : utf8proc_category_string((utf8proc_int32_t)code)[0];
}

size_t cpl_decompose(uint32_t code, int32_t to[CPL_DECOMPOSED_MAX])
{
    int unused = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)code, to, CPL_DECOMPOSED_MAX,
                                                 UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &unused);
    return n < 0 || n > CPL_DECOMPOSED_MAX ? 0 : (size_t)n;
}

/* Unicode's Cased, on decomposed text: a letter with a case. */
static int is_cased(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT;
}

/* Unicode's Case_Ignorable: what may stand between a letter and the end of its word. */
static int is_case_ignorable(int32_t c)
{
    static const int32_t inner[] = {'\'', '.', ':', 0xB7, 0x55F, 0x5F4, 0x2018, 0x2019, 0x2027};
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        if (c == inner[i])
            return 1;
    utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK;
}

/* Unicode's Final_Sigma: a cased letter before, none after. The text still has its capitals from i on. */
static int is_final(const int32_t *c, size_t n, size_t i)
{
    size_t before = i;
    while (before > 0 && is_case_ignorable(c[before - 1]))
        before--;
    size_t after = i + 1;
    while (after < n && is_case_ignorable(c[after]))
        after++;
    return before > 0 && is_cased(c[before - 1]) && !(after < n && is_cased(c[after]));
}

/* Lower case of decomposed text. The one mapping to two characters, capital I with dot (to i and U+0307), needs no
 * care here: decomposition has already parted the dot. */
static void lower_decomposed(int32_t *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        c[i] = c[i] == 0x3A3 ? (is_final(c, n, i) ? 0x3C2 : 0x3C3) : utf8proc_tolower(c[i]);
}

/* Decompose, lower, compose: composing last keeps the result a normal form (H with line below has no composed
 * capital, but a composed small letter). */
cpl_status cpl_compose(const char *text, size_t length, int compatible, int lower, cpl_str *out, cpl_error *err)
{
    int32_t small[256];
    int32_t *codes = small;
    utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text;
    utf8proc_ssize_t n = utf8proc_decompose(bytes, (utf8proc_ssize_t)length, small, 255, options);
    if (n > 255) {
        codes = cpl_alloc((size_t)n + 1, sizeof *codes); /* one more: re-encoding ends with a NUL */
        if (!codes)
            CPL_FAIL(err, CPL_FAILED, "no memory to normalise %zu bytes of text", length);
        n = utf8proc_decompose(bytes, (utf8proc_ssize_t)length, codes, n, options);
    }
    if (n >= 0 && lower)
        lower_decomposed(codes, (size_t)n);
    if (n >= 0)
        n = utf8proc_reencode(codes, n, options);
    if (n >= 0)
        cpl_str_add_bytes(out, (const char *)codes, (size_t)n);
    if (codes != small)
        cpl_release(codes);
    if (n < 0)
        CPL_FAIL(err, CPL_FAILED, "cannot normalise %zu bytes of text: %s", length, utf8proc_errmsg(n));
    return CPL_OK;
}

#else

int cpl_unicode_available(void)
{
    return 0;
}

/* Callers ask cpl_unicode_available first; these keep the build whole. */
static cpl_char_kind wide_kind(uint32_t code)
{
    return code >= CPL_BAD_BYTE ? CPL_CHAR_OTHER : CPL_CHAR_LETTER;
}

int cpl_is_mark(uint32_t code)
{
    return code >= 0x300 && code <= 0x36F;
}

char cpl_char_class(uint32_t code)
{
    if (code >= CPL_BAD_BYTE || code < 32 || code == 127)
        return 'C';
    if (code == ' ')
        return 'Z';
    if (code >= '0' && code <= '9')
        return 'N';
    if (code > 127 || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z'))
        return 'L';
    return strchr("$+<=>^`|~", (int)code) ? 'S' : 'P';
}

size_t cpl_decompose(uint32_t code, int32_t to[CPL_DECOMPOSED_MAX])
{
    to[0] = (int32_t)code;
    return 1;
}

cpl_status cpl_compose(const char *text, size_t length, int compatible, int lower, cpl_str *out, cpl_error *err)
{
    (void)text, (void)compatible, (void)lower, (void)out;
    CPL_FAIL(err, CPL_FAILED, "cannot normalise %zu bytes of text: this build has no Unicode tables", length);
}

#endif

cpl_char_kind cpl_char_at(const char *p, const char *end, uint32_t *code, size_t *bytes)
{
    unsigned char c = (unsigned char)*p;
    if (c < 0x80) {
        *code = c;
        *bytes = 1;
        return ascii_kind(c);
    }
    size_t space = cpl_space_at(p, end);
    *bytes = cpl_utf8_next(p, end, code);
    return space ? CPL_CHAR_SPACE : wide_kind(*code);
}
