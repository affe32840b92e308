/* standardize.c: the rules that text goes through before it is split.
 *
 * none        as it is
 * nfc, nfkc   Unicode normal forms
 * nfkc_lower  NFKC of the full lower case: all scripts; capital sigma becomes final sigma at the end of a word (after a
 *             cased letter, no cased letter following); capital I with dot becomes i and U+0307, in every language
 * tutorial    NFKD, lower case; only a-z, spaces and .?!,¿ stay, each mark becomes a word; runs of spaces collapse
 *
 * What counts as deleted (only `tutorial` deletes): a character of the text of which nothing is left. A combining mark
 * whose base stays counts neither way, so é (one character or two) is a kept e; so a tab is deleted, as it glues its
 * neighbours; spaces are never deleted, though runs collapse and the ends are trimmed. */
#include <string.h>
#include "base/error.h"
#include "text/text.h"
#include "text/unicode.h"

static void count(uint64_t *counter, uint64_t n)
{
    if (counter)
        *counter += n;
}

static char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* ---- tutorial ---- */

/* Where the output stands: a space is written only when a word follows, so that runs collapse and ends are bare. */
typedef struct tutorial {
    cpl_str *out;
    size_t start;
    int space;
} tutorial;

static void put(tutorial *t, const char *bytes, size_t n)
{
    if (t->space && t->out->length > t->start)
        cpl_str_add_char(t->out, ' ');
    t->space = 0;
    if (n == 1)
        cpl_str_add_char(t->out, *bytes);
    else
        cpl_str_add_bytes(t->out, bytes, n);
}

/* One decomposed character. Returns 1 when it stays. */
static int tutorial_put(tutorial *t, uint32_t code)
{
    char c = code < 0x80 ? ascii_lower((char)code) : 0;
    if (c >= 'a' && c <= 'z') {
        put(t, &c, 1);
        return 1;
    }
    if (c == ' ')
        return t->space = 1;
    if (c != '.' && c != '?' && c != '!' && c != ',' && code != 0xBF)
        return 0;
    t->space = 1;
    if (c)
        put(t, &c, 1);
    else
        put(t, "\xC2\xBF", 2);
    return t->space = 1;
}

static void tutorial_text(const char *text, size_t length, cpl_str *out, uint64_t *deleted, uint64_t *kept)
{
    tutorial t = {out, out->length, 0};
    int32_t parts[CPL_DECOMPOSED_MAX];
    int base_kept = 0;
    uint64_t stayed = 0, gone = 0;
    for (const char *p = text, *end = text + length; p < end;) {
        uint32_t code;
        p += cpl_utf8_next(p, end, &code);
        if (code < 0x80) {
            base_kept = tutorial_put(&t, code);
        } else {
            size_t n = cpl_decompose(code, parts);
            int any = 0;
            for (size_t i = 0; i < n; i++)
                any |= tutorial_put(&t, (uint32_t)parts[i]);
            if (!any && base_kept && cpl_is_mark(code))
                continue;
            base_kept = any;
        }
        stayed += base_kept != 0;
        gone += base_kept == 0;
    }
    count(kept, stayed);
    count(deleted, gone);
}

/* ---- normal forms ---- */

/* Space by space: ASCII words, the most, need no tables; U+0020 neither composes nor reorders, and ends a word for
 * final sigma, so the pieces join to the normal form of the whole. */
static cpl_status normal_form(cpl_standardize rule, const char *text, size_t length, cpl_str *out, cpl_error *err)
{
    int lower = rule == CPL_STANDARDIZE_NFKC_LOWER;
    for (size_t i = 0; i < length;) {
        const char *space = memchr(text + i + 1, ' ', length - i - 1);
        size_t n = space ? (size_t)(space - text) - i : length - i;
        if (!cpl_is_ascii(text + i, n))
            CPL_TRY(cpl_compose(text + i, n, rule != CPL_STANDARDIZE_NFC, lower, out, err), err,
                    "cannot standardise text");
        else if (!lower)
            cpl_str_add_bytes(out, text + i, n);
        else
            for (size_t k = i; k < i + n; k++)
                cpl_str_add_char(out, ascii_lower(text[k]));
        i += n;
    }
    return CPL_OK;
}

static cpl_status check_text(cpl_standardize rule, const char *text, size_t length, cpl_error *err)
{
    size_t valid = cpl_utf8_valid(text, length);
    if (valid < length)
        CPL_FAIL(err, CPL_USAGE, "text is not UTF-8: byte 0x%02X at offset %zu of %zu", (unsigned char)text[valid],
                 valid, length);
    if (rule != CPL_STANDARDIZE_NONE && !cpl_unicode_available() && !cpl_is_ascii(text, length))
        CPL_FAIL(err, CPL_USAGE,
                 "cannot apply '%s' to text beyond ASCII: this build has no Unicode tables (utf8proc was missing when "
                 "it was built)" CPL_HINT "use standardize: none, or build with utf8proc",
                 cpl_standardize_name(rule));
    return CPL_OK;
}

cpl_status cpl_standardize_text(cpl_standardize rule, const char *text, size_t length, cpl_str *out, uint64_t *deleted,
                                uint64_t *kept, cpl_error *err)
{
    cpl_status status = check_text(rule, text, length, err);
    if (status != CPL_OK)
        return status;
    if (rule == CPL_STANDARDIZE_TUTORIAL) {
        tutorial_text(text, length, out, deleted, kept);
    } else {
        int as_is = rule == CPL_STANDARDIZE_NONE || (rule != CPL_STANDARDIZE_NFKC_LOWER && cpl_is_ascii(text, length));
        if (as_is)
            cpl_str_add_bytes(out, text, length);
        else
            status = normal_form(rule, text, length, out, err);
        count(kept, cpl_utf8_count(text, length));
    }
    if (status == CPL_OK && out->failed)
        CPL_FAIL(err, CPL_FAILED, "no memory to standardise %zu bytes of text", length);
    return status;
}

cpl_status cpl_lower_text(const char *text, size_t length, cpl_str *out, cpl_error *err)
{
    if (!cpl_is_ascii(text, length) && cpl_unicode_available())
        return cpl_compose(text, length, 0, 1, out, err);
    for (size_t i = 0; i < length; i++)
        cpl_str_add_char(out, ascii_lower(text[i]));
    return CPL_OK;
}
