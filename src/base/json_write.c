/* json_write.c: the tree as one line of text. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_tree.h"

/* Well-formed UTF-8 (Unicode's table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF. */
int cpl_json_is_utf8(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < length;) {
        unsigned char c = s[i++];
        if (c < 0x80)
            continue;
        size_t more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        unsigned char low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
        unsigned char high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
        if (c < 0xC2 || c > 0xF4 || more > length - i || s[i] < low || s[i] > high)
            return 0;
        for (size_t k = 1; k < more; k++)
            if ((s[i + k] & 0xC0) != 0x80)
                return 0;
        i += more;
    }
    return 1;
}

void cpl_json_write_text(cpl_str *to, const char *text, size_t length)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    size_t from = 0;
    cpl_str_add_char(to, '"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        cpl_str_add_bytes(to, text + from, i - from);
        from = i + 1;
        const char *n = named;
        while (*n && (unsigned char)*n != c)
            n += 2;
        if (*n)
            cpl_str_printf(to, "\\%c", n[1]);
        else
            cpl_str_printf(to, "\\u%04x", c);
    }
    cpl_str_add_bytes(to, text + from, length - from);
    cpl_str_add_char(to, '"');
}

/* Fewest digits that read back as the same number. 17 always do. */
static int digits_needed(double value)
{
    char number[40];
    int digits = 1;
    for (; digits < 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value) /* both follow the same locale */
            break;
    }
    return digits;
}

/* %g, then the locale's decimal point made a point, and ".0" so that a real stays a real. */
void cpl_json_write_real(cpl_str *to, double value, int digits)
{
    char number[48], out[48];
    size_t n = 0;
    int real = 0, odd = 0;
    if (!isfinite(value)) {
        cpl_str_add(to, "null");
        return;
    }
    snprintf(number, sizeof number - 3, "%.*g", digits > 0 ? digits : digits_needed(value), value);
    for (const char *c = number; *c; c++) {
        if (strchr("0123456789+-e", *c)) {
            real |= *c == 'e';
            out[n++] = *c;
            odd = 0;
        } else if (!odd) { /* a decimal point of several bytes becomes one */
            out[n++] = '.';
            real = odd = 1;
        }
    }
    out[n] = '\0';
    cpl_str_add(to, out);
    if (!real)
        cpl_str_add(to, ".0");
}

static cpl_status write_value(const cpl_json *v, cpl_str *to, int depth, cpl_error *err);

static cpl_status write_items(const cpl_json *v, cpl_str *to, int depth, cpl_error *err)
{
    int object = v->kind == CPL_JSON_OBJECT;
    if (depth >= CPL_JSON_DEPTH_MAX)
        CPL_FAIL(err, CPL_FAILED, "cannot write JSON: it is nested deeper than %d", CPL_JSON_DEPTH_MAX);
    cpl_str_add_char(to, object ? '{' : '[');
    for (size_t i = 0; i < v->size; i++) {
        const cpl_json_item *item = &v->items[i];
        if (i > 0)
            cpl_str_add(to, ", ");
        if (object) {
            cpl_json_write_text(to, item->key, strlen(item->key));
            cpl_str_add(to, ": ");
        }
        cpl_status status = write_value(item->value, to, depth + 1, err);
        if (status != CPL_OK)
            return object ? cpl_error_context(err, status, "cannot write the value of '%s'", item->key) : status;
    }
    cpl_str_add_char(to, object ? '}' : ']');
    return CPL_OK;
}

static cpl_status write_value(const cpl_json *v, cpl_str *to, int depth, cpl_error *err)
{
    static const char *const failures[] = {
        "", "no memory while it was built", "a value was put into something that cannot hold it",
        "a text is not valid UTF-8"};
    if (v->failure)
        CPL_FAIL(err, CPL_FAILED, "cannot write JSON: %s", failures[v->failure]);
    switch (v->kind) {
    case CPL_JSON_BOOL: cpl_str_add(to, v->integer ? "true" : "false"); break;
    case CPL_JSON_INT: cpl_str_printf(to, "%lld", (long long)v->integer); break;
    case CPL_JSON_REAL: cpl_json_write_real(to, v->real, v->digits); break;
    case CPL_JSON_TEXT: cpl_json_write_text(to, v->text, v->length); break;
    case CPL_JSON_ARRAY:
    case CPL_JSON_OBJECT: return write_items(v, to, depth, err);
    default: cpl_str_add(to, "null"); break;
    }
    return CPL_OK;
}

cpl_status cpl_json_write(const cpl_json *root, cpl_str *to, cpl_error *err)
{
    if (!root)
        CPL_FAIL(err, CPL_FAILED, "cannot write JSON: no memory while it was built");
    size_t before = to->length;
    cpl_status status = write_value(root, to, 0, err);
    if (status == CPL_OK && to->failed)
        status = cpl_error_set(err, CPL_FAILED, "no memory to write JSON");
    if (status != CPL_OK && to->data && !to->failed) { /* half a value is worse than none */
        to->length = before;
        to->data[before] = '\0';
    }
    return status;
}
