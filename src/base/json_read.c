/* json_read.c: the only file that knows Jansson. */
#include <string.h>

#include "base/error.h"
#include "base/json_tree.h"

#ifdef CPL_HAVE_JANSSON
#include <jansson.h>

int cpl_json_available(void)
{
    return 1;
}

/* Finds nesting deeper than ours before Jansson recurses. Only brackets outside strings count; whether
 * the text is JSON at all is Jansson's to say. */
static cpl_status check_depth(const char *text, size_t length, cpl_error *err)
{
    int depth = 0, in_string = 0, line = 1, column = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        column += ((unsigned char)c & 0xC0) != 0x80;
        if (c == '\n') {
            line++;
            column = 0;
        } else if (in_string) {
            if (c == '\\' && i + 1 < length) {
                i++;
                column++;
            } else if (c == '"') {
                in_string = 0;
            }
        } else if (c == '"') {
            in_string = 1;
        } else if (c == '[' || c == '{') {
            if (++depth > CPL_JSON_DEPTH_MAX)
                CPL_FAIL(err, CPL_USAGE, "line %d, column %d: JSON is nested deeper than %d", line, column,
                         CPL_JSON_DEPTH_MAX);
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return CPL_OK;
}

static cpl_json *convert(const json_t *from);

static cpl_json *convert_object(const json_t *from)
{
    cpl_json *object = cpl_json_object();
    /* Iterating changes nothing, but Jansson's iterator asks for a pointer without const. */
    union {
        const json_t *is;
        json_t *wanted;
    } of = {from};
    for (void *at = json_object_iter(of.wanted); object && at; at = json_object_iter_next(of.wanted, at))
        cpl_json_append(object, json_object_iter_key(at), convert(json_object_iter_value(at)));
    return object;
}

static cpl_json *convert(const json_t *from)
{
    cpl_json *array;
    switch (json_typeof(from)) {
    case JSON_OBJECT: return convert_object(from);
    case JSON_ARRAY:
        array = cpl_json_array();
        for (size_t i = 0; array && i < json_array_size(from); i++)
            cpl_json_append(array, NULL, convert(json_array_get(from, i)));
        return array;
    case JSON_STRING: return cpl_json_new_text(json_string_value(from), json_string_length(from));
    case JSON_INTEGER: return cpl_json_new_int(CPL_JSON_INT, json_integer_value(from));
    case JSON_REAL: return cpl_json_new_real(json_real_value(from), 0);
    case JSON_TRUE: return cpl_json_new_int(CPL_JSON_BOOL, 1);
    case JSON_FALSE: return cpl_json_new_int(CPL_JSON_BOOL, 0);
    default: return cpl_json_new_int(CPL_JSON_NULL, 0);
    }
}

/* A value that could not be had leaves its mark on its parent: one look at each tells. */
static int is_whole(const cpl_json *v)
{
    if (!v || v->failure)
        return 0;
    for (size_t i = 0; i < v->size; i++)
        if (!is_whole(v->items[i].value))
            return 0;
    return 1;
}

cpl_status cpl_json_parse(cpl_json **root, const char *text, size_t length, cpl_error *err)
{
    *root = NULL;
    cpl_status status = check_depth(text, length, err);
    if (status != CPL_OK)
        return status;
    json_error_t error;
    json_t *read = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!read && json_error_code(&error) == json_error_out_of_memory)
        CPL_FAIL(err, CPL_FAILED, "no memory to read %zu bytes of JSON", length);
    if (!read)
        CPL_FAIL(err, CPL_USAGE, "line %d, column %d: not valid JSON: %s", error.line, error.column, error.text);
    *root = convert(read);
    json_decref(read);
    if (!is_whole(*root)) {
        cpl_json_free(*root);
        *root = NULL;
        CPL_FAIL(err, CPL_FAILED, "no memory to read %zu bytes of JSON", length);
    }
    return CPL_OK;
}

#else

int cpl_json_available(void)
{
    return 0;
}

cpl_status cpl_json_parse(cpl_json **root, const char *text, size_t length, cpl_error *err)
{
    (void)text;
    (void)length;
    *root = NULL;
    CPL_FAIL(err, CPL_FAILED, "this build has no JSON reader (Jansson was missing when it was built)");
}
#endif
