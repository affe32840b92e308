/* json.c: a tree of our own, filled by Jansson's strict parser, written by us.
 *
 * Jansson prints every real with 17 digits or one number of digits for all; a log wants 9 here and 4
 * there. A tree that remembers its digits is small, and building and writing then need no library. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_tree.h"
#include "base/map.h"
#include "base/memory.h"

enum { INDEX_FROM = 16 };

static cpl_json *new_value(cpl_json_kind kind)
{
    cpl_json *v = cpl_alloc(1, sizeof *v);
    if (v)
        v->kind = kind;
    return v;
}

cpl_json *cpl_json_object(void)
{
    return new_value(CPL_JSON_OBJECT);
}

cpl_json *cpl_json_array(void)
{
    return new_value(CPL_JSON_ARRAY);
}

void cpl_json_free(cpl_json *root)
{
    if (!root)
        return;
    for (size_t i = 0; i < root->size; i++) {
        cpl_release(root->items[i].key);
        cpl_json_free(root->items[i].value);
    }
    cpl_map_free(root->index);
    cpl_release(root->items);
    cpl_release(root->text);
    cpl_release(root);
}

/* Place of a key, or size. Small objects are searched; large ones have an index. */
static size_t find(const cpl_json *object, const char *key)
{
    if (object->index) {
        const int64_t *at = cpl_map_find(object->index, key, strlen(key));
        return at ? (size_t)*at : object->size;
    }
    size_t i = 0;
    while (i < object->size && strcmp(object->items[i].key, key) != 0)
        i++;
    return i;
}

/* Enters items from `from` on into the index, which is made when the object gets large. Without memory
 * for it, searching goes on. */
static void keep_index(cpl_json *object)
{
    size_t from = object->size - 1;
    if (!object->index && object->size == INDEX_FROM) {
        object->index = cpl_map_new();
        from = 0;
    }
    for (size_t i = from; object->index && i < object->size; i++) {
        const char *key = object->items[i].key;
        int64_t *at = cpl_map_insert(object->index, key, strlen(key), NULL);
        if (at) {
            *at = (int64_t)i;
        } else {
            cpl_map_free(object->index);
            object->index = NULL;
        }
    }
}

static void fail(cpl_json *v, cpl_json_failure failure)
{
    if (!v->failure)
        v->failure = failure;
}

void cpl_json_append(cpl_json *parent, const char *key, cpl_json *child)
{
    if (!child || cpl_grow(&parent->items, &parent->capacity, parent->size + 1, sizeof *parent->items) != 0) {
        fail(parent, CPL_JSON_NO_MEMORY);
        cpl_json_free(child);
        return;
    }
    char *copy = key ? cpl_strdup(key) : NULL;
    if (key && !copy) {
        fail(parent, CPL_JSON_NO_MEMORY);
        cpl_json_free(child);
        return;
    }
    parent->items[parent->size++] = (cpl_json_item){.key = copy, .value = child};
    if (key)
        keep_index(parent);
}

void cpl_json_set(cpl_json *object, const char *key, cpl_json *child)
{
    if (!object || object->kind != CPL_JSON_OBJECT || !cpl_json_is_utf8(key, strlen(key))) {
        if (object)
            fail(object, object->kind == CPL_JSON_OBJECT ? CPL_JSON_BAD_TEXT : CPL_JSON_WRONG_KIND);
        cpl_json_free(child);
        return;
    }
    size_t at = find(object, key);
    if (at == object->size || !child) {
        cpl_json_append(object, key, child);
        return;
    }
    cpl_json_free(object->items[at].value);
    object->items[at].value = child;
}

void cpl_json_add(cpl_json *array, cpl_json *child)
{
    if (array && array->kind == CPL_JSON_ARRAY) {
        cpl_json_append(array, NULL, child);
        return;
    }
    if (array)
        fail(array, CPL_JSON_WRONG_KIND);
    cpl_json_free(child);
}

cpl_json *cpl_json_new_text(const char *text, size_t length)
{
    cpl_json *v = new_value(CPL_JSON_TEXT);
    if (!v)
        return NULL;
    v->text = cpl_strndup(text, length);
    v->length = length;
    if (!v->text)
        fail(v, CPL_JSON_NO_MEMORY);
    else if (!cpl_json_is_utf8(text, length))
        fail(v, CPL_JSON_BAD_TEXT);
    return v;
}

cpl_json *cpl_json_new_int(cpl_json_kind kind, int64_t value)
{
    cpl_json *v = new_value(kind);
    if (v)
        v->integer = value;
    return v;
}

cpl_json *cpl_json_new_real(double value, int digits)
{
    cpl_json *v = new_value(isfinite(value) ? CPL_JSON_REAL : CPL_JSON_NULL);
    if (v) {
        v->real = value;
        v->digits = digits < 0 ? 0 : digits > 17 ? 17 : digits;
    }
    return v;
}

void cpl_json_set_text(cpl_json *object, const char *key, const char *text)
{
    cpl_json_set(object, key, text ? cpl_json_new_text(text, strlen(text)) : new_value(CPL_JSON_NULL));
}

void cpl_json_set_bytes(cpl_json *object, const char *key, const char *text, size_t length)
{
    cpl_json_set(object, key, cpl_json_new_text(text, length));
}

void cpl_json_set_int(cpl_json *object, const char *key, int64_t value)
{
    cpl_json_set(object, key, cpl_json_new_int(CPL_JSON_INT, value));
}

void cpl_json_set_real(cpl_json *object, const char *key, double value, int digits)
{
    cpl_json_set(object, key, cpl_json_new_real(value, digits));
}

void cpl_json_set_bool(cpl_json *object, const char *key, int value)
{
    cpl_json_set(object, key, cpl_json_new_int(CPL_JSON_BOOL, value != 0));
}

void cpl_json_add_text(cpl_json *array, const char *text, size_t length)
{
    cpl_json_add(array, cpl_json_new_text(text, length));
}

void cpl_json_add_int(cpl_json *array, int64_t value)
{
    cpl_json_add(array, cpl_json_new_int(CPL_JSON_INT, value));
}

void cpl_json_add_real(cpl_json *array, double value, int digits)
{
    cpl_json_add(array, cpl_json_new_real(value, digits));
}

cpl_json_kind cpl_json_what(const cpl_json *value)
{
    return value ? value->kind : CPL_JSON_NONE;
}

const cpl_json *cpl_json_get(const cpl_json *object, const char *key)
{
    if (cpl_json_what(object) != CPL_JSON_OBJECT)
        return NULL;
    size_t at = find(object, key);
    return at < object->size ? object->items[at].value : NULL;
}

size_t cpl_json_size(const cpl_json *array_or_object)
{
    return array_or_object ? array_or_object->size : 0;
}

const cpl_json *cpl_json_at(const cpl_json *array, size_t i)
{
    return cpl_json_what(array) == CPL_JSON_ARRAY && i < array->size ? array->items[i].value : NULL;
}

const char *cpl_json_key(const cpl_json *object, size_t i, const cpl_json **value)
{
    int there = cpl_json_what(object) == CPL_JSON_OBJECT && i < object->size;
    if (value)
        *value = there ? object->items[i].value : NULL;
    return there ? object->items[i].key : NULL;
}

const char *cpl_json_text(const cpl_json *value, size_t *length)
{
    int text = cpl_json_what(value) == CPL_JSON_TEXT;
    if (length)
        *length = text ? value->length : 0;
    return text ? value->text : NULL;
}

int64_t cpl_json_int(const cpl_json *value, int64_t fallback)
{
    return cpl_json_what(value) == CPL_JSON_INT ? value->integer : fallback;
}

double cpl_json_real(const cpl_json *value, double fallback)
{
    if (cpl_json_what(value) == CPL_JSON_INT)
        return (double)value->integer;
    return cpl_json_what(value) == CPL_JSON_REAL ? value->real : fallback;
}

int cpl_json_bool(const cpl_json *value, int fallback)
{
    return cpl_json_what(value) == CPL_JSON_BOOL ? value->integer != 0 : fallback;
}
