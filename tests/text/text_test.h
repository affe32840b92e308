/* text_test.h: what the tests of text share: case files, and tokens shown as one string "a|b|c". */
#ifndef CPL_TESTS_TEXT_TEXT_TEST_H
#define CPL_TESTS_TEXT_TEXT_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/str.h"
#include "text/text.h"
#include "text/unicode.h"

#define NEEDS_UNICODE()                                                                                                \
    do {                                                                                                               \
        if (!cpl_unicode_available())                                                                                  \
            skip();                                                                                                    \
    } while (0)

/* Field `field` (at tabs) of line `line` (from 1, at LF alone) of a file of tests/cases. The caller frees. */
static inline char *case_field(const char *file, int line, int field, size_t *length)
{
    char *data;
    size_t size;
    cpl_str path = {0};
    cpl_str_printf(&path, "%s/cases/%s", CPL_TEST_DATA, file);
    assert_int_equal(cpl_file_read(path.data, &data, &size, NULL), CPL_OK);
    cpl_str_free(&path);
    const char *p = data, *end = data + size;
    for (; line > 1; line--) {
        p = memchr(p, '\n', (size_t)(end - p));
        assert_non_null(p);
        p++;
    }
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    end = stop ? stop : end;
    for (; field > 0; field--) {
        p = memchr(p, '\t', (size_t)(end - p));
        assert_non_null(p);
        p++;
    }
    stop = memchr(p, '\t', (size_t)(end - p));
    *length = (size_t)((stop ? stop : end) - p);
    char *copy = cpl_strndup(p, *length);
    memcpy(copy, p, *length); /* a NUL inside the field counts */
    cpl_release(data);
    return copy;
}

/* The standardised text of `length` bytes. The caller frees. */
static inline char *standard(cpl_standardize rule, const char *text, size_t length)
{
    cpl_str out = {0};
    assert_int_equal(cpl_standardize_text(rule, text, length, &out, NULL, NULL, NULL), CPL_OK);
    if (!out.data)
        return cpl_strdup("");
    return cpl_str_take(&out);
}

/* The tokens with '|' between them. The caller frees. */
static inline char *shown(cpl_tokens kind, const char *text, size_t length)
{
    cpl_token_list list = {0};
    cpl_str out = {0};
    assert_int_equal(cpl_split(kind, text, length, &list, NULL), CPL_OK);
    for (size_t i = 0; i < list.count; i++) {
        if (i)
            cpl_str_add_char(&out, '|');
        cpl_str_add_bytes(&out, list.items[i].text, list.items[i].length);
    }
    cpl_token_list_free(&list);
    return out.data ? cpl_str_take(&out) : cpl_strdup("");
}

static inline void assert_tokens(cpl_tokens kind, const char *text, const char *expected)
{
    char *got = shown(kind, text, strlen(text));
    assert_string_equal(got, expected);
    cpl_release(got);
}

static inline void assert_standard(cpl_standardize rule, const char *text, const char *expected)
{
    char *got = standard(rule, text, strlen(text));
    assert_string_equal(got, expected);
    cpl_release(got);
}

/* Parses tests/golden/NAME; free with cpl_json_free. */
static inline cpl_json *golden(const char *name)
{
    char *data;
    size_t length;
    cpl_json *root;
    cpl_str path = {0};
    cpl_str_printf(&path, "%s/golden/%s", CPL_TEST_DATA, name);
    assert_int_equal(cpl_file_read(path.data, &data, &length, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, data, length, NULL), CPL_OK);
    cpl_str_free(&path);
    cpl_release(data);
    return root;
}

#endif
