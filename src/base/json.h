/* json.h: JSON in and out. json_read.c is the only file that knows the library (Jansson).
 *
 * Values form a tree owned by its root. Building and writing need no library. Getters on a wrong kind or
 * NULL give NULL/0/fallback, so a path of getters needs one check at its end. Numbers that are NaN or
 * infinite are written as null. */
#ifndef CPL_BASE_JSON_H
#define CPL_BASE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include "couplet.h"
#include "base/str.h"

typedef struct cpl_json cpl_json;

int cpl_json_available(void); /* 0: this build was made without a JSON library */

/* Strict: invalid UTF-8, duplicate keys, trailing text and depth over 64 are errors with line and column. */
cpl_status cpl_json_parse(cpl_json **root, const char *text, size_t length, cpl_error *err);
cpl_json *cpl_json_object(void); /* new root; NULL without memory */
cpl_json *cpl_json_array(void);
void cpl_json_free(cpl_json *root);

/* Setters: object is an object. A child passed in belongs to the parent from then on, even on failure.
 * Setting a key again replaces its value. Failures (memory, a parent of the wrong kind, text that is not
 * UTF-8) stick to the value; cpl_json_write of the root then reports them. A NULL parent frees the child. */
void cpl_json_set_text(cpl_json *object, const char *key, const char *text);
void cpl_json_set_bytes(cpl_json *object, const char *key, const char *text, size_t length); /* may hold NUL */
void cpl_json_set_int(cpl_json *object, const char *key, int64_t value);
/* digits: significant digits to write, at most 17; 0: the fewest that read back as the same number. */
void cpl_json_set_real(cpl_json *object, const char *key, double value, int digits);
void cpl_json_set_bool(cpl_json *object, const char *key, int value);
void cpl_json_set(cpl_json *object, const char *key, cpl_json *child);
void cpl_json_add_text(cpl_json *array, const char *text, size_t length);
void cpl_json_add_int(cpl_json *array, int64_t value);
void cpl_json_add_real(cpl_json *array, double value, int digits);
void cpl_json_add(cpl_json *array, cpl_json *child);

const cpl_json *cpl_json_get(const cpl_json *object, const char *key); /* NULL when missing */
size_t cpl_json_size(const cpl_json *array_or_object);
const cpl_json *cpl_json_at(const cpl_json *array, size_t i);
const char *cpl_json_key(const cpl_json *object, size_t i, const cpl_json **value); /* insertion order */
const char *cpl_json_text(const cpl_json *value, size_t *length);      /* NULL unless a string; length may be NULL */
int64_t cpl_json_int(const cpl_json *value, int64_t fallback);
double cpl_json_real(const cpl_json *value, double fallback);          /* integers count as reals */
int cpl_json_bool(const cpl_json *value, int fallback);
typedef enum cpl_json_kind {
    CPL_JSON_NONE, /* no value at all: a missing key */
    CPL_JSON_NULL,
    CPL_JSON_BOOL,
    CPL_JSON_INT,
    CPL_JSON_REAL,
    CPL_JSON_TEXT,
    CPL_JSON_ARRAY,
    CPL_JSON_OBJECT
} cpl_json_kind;
cpl_json_kind cpl_json_what(const cpl_json *value);

/* One line, no spaces after separators beyond ", " and ": ", keys in insertion order, UTF-8 as it is. */
cpl_status cpl_json_write(const cpl_json *root, cpl_str *to, cpl_error *err);
/* A number as it stands there (null unless finite), for long rows that need no tree. */
void cpl_json_write_real(cpl_str *to, double value, int digits);
/* The same of text, in quotes, which must be UTF-8. */
void cpl_json_write_text(cpl_str *to, const char *text, size_t length);

#endif
