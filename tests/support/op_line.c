/* op_line.c: the notation of op_harness.h. */
#include "support/op_line.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* What a word says: name, value. Returns the rest of the line, NULL at its end. */
static const char *next_word(const char *p, char *name, char *value, size_t size)
{
    while (*p == ' ')
        p++;
    if (!*p)
        return NULL;
    size_t length = strcspn(p, " "), equals = strcspn(p, "=");
    assert_true(equals < length && length < size);
    snprintf(name, size, "%.*s", (int)equals, p);
    snprintf(value, size, "%.*s", (int)(length - equals - 1), p + equals + 1);
    return p + length;
}

static cpl_dim dim_of(cpl_harness *h, const char *word, int64_t size)
{
    static const char *const symbols[] = {"s", "t", "padded", "now"};
    cpl_dim d = {.kind = cpl_dim_word(word, strlen(word)), .size = size, .symbol = CPL_NO_SYMBOL};
    d.name = cpl_arena_strndup(h->arena, word, strlen(word));
    for (int i = 0; i < 4; i++)
        if (strcmp(word, symbols[i]) == 0)
            d.symbol = i;
    assert_non_null(d.name);
    return d;
}

static void set_attribute(cpl_harness *h, int i, const char *value)
{
    assert_in_range(i, 0, CPL_HARNESS_ATTRIBUTES - 1);
    float number = strtof(value, NULL);
    if (strchr(value, '.'))
        memcpy(&h->attributes[i], &number, sizeof number);
    else
        h->attributes[i] = (int32_t)strtol(value, NULL, 10);
}

/* "batch,t,3" → the dimensions of the ellipsis. */
static void set_ellipsis(cpl_harness *h, cpl_bindings *b, const char *list)
{
    b->ellipsis_rank = 0;
    for (const char *p = list; *p;) {
        char word[32];
        size_t length = strcspn(p, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, p);
        int64_t size = strtoll(word, NULL, 10);
        if (size > 0 && h->tail > 0)
            size = h->tail;
        b->ellipsis[b->ellipsis_rank++] = size > 0 ? dim_of(h, "d", size) : dim_of(h, word, 0);
        p += length + (p[length] == ',');
    }
}

/* Whether `name` is an input of the op; its number in *i. */
static int is_input(const cpl_harness *h, const char *name, int *i)
{
    for (*i = 0; *i < h->signature.inputs; ++*i)
        if (strcmp(h->signature.in[*i].name, name) == 0)
            return 1;
    return 0;
}

static void read_word(cpl_harness *h, cpl_bindings *b, int *absent, const char *name, const char *value)
{
    int i;
    if (strncmp(name, "attr.", 5) == 0)
        return;
    if (strcmp(name, "...") == 0) {
        set_ellipsis(h, b, value);
    } else if (strcmp(value, "absent") == 0) {
        assert_true(is_input(h, name, &i));
        absent[i] = 1;
    } else if (cpl_dim_word(name, strlen(name)) != CPL_DIM_FEATURE) {
        cpl_bindings_set(b, name, dim_of(h, value, 0));
    } else {
        int64_t size = strtoll(value, NULL, 10);
        if (h->tail > 0)
            size = strcmp(name, "hd") == 0 ? h->tail * h->attributes[0] : h->tail;
        assert_true(size > 0);
        cpl_bindings_set(b, name, dim_of(h, name, size));
    }
}

static int64_t size_of(const cpl_bindings *b, const char *name, int64_t otherwise)
{
    for (int v = 0; v < b->count; v++)
        if (strcmp(b->variable[v].name, name) == 0)
            return b->variable[v].dim.size;
    return otherwise;
}

/* How many entries an id input counts in: the `=vocabulary` dimension of the call and `more`, else `size`. */
static int64_t entries_of(const cpl_harness *h, const cpl_bindings *b)
{
    const char *name = "size";
    for (int i = 0; i < h->signature.inputs; i++)
        for (int k = 0; k < h->signature.in[i].rank; k++)
            if (h->signature.in[i].dim[k].vocabulary)
                name = h->signature.in[i].dim[k].name;
    return size_of(b, name, 9) + size_of(b, "more", 0);
}

static void finish_type(cpl_harness *h, const cpl_bindings *b, cpl_type *type)
{
    int time = cpl_type_find(type, CPL_DIM_TIME);
    type->order = time >= 0 ? type->dim[time].symbol : CPL_ORDER_CALLER;
    if (strcmp(h->op->name, "reorder") == 0)
        type->order = h->attributes[0];
    if (type->element == CPL_ELEMENT_ID) {
        type->vocabulary = "target";
        type->entries = entries_of(h, b);
    }
}

void cpl_line_types(cpl_harness *h, const cpl_type **types)
{
    static const char *const symbols[] = {"batch", "s", "t", "padded", "now"};
    char name[64], value[64];
    cpl_bindings b = {.ellipsis_from = 0};
    cpl_error err = CPL_ERROR_INIT;
    int absent[CPL_MAX_INPUTS] = {0};
    for (int i = 0; i < 5; i++)
        cpl_bindings_set(&b, symbols[i], dim_of(h, symbols[i], 0));
    set_ellipsis(h, &b, h->signature.in[0].rank == 1 && !h->signature.in[0].id ? "batch,t,3" : "batch,t");
    for (const char *p = h->line; (p = next_word(p, name, value, sizeof name)) != NULL;)
        if (strncmp(name, "attr.", 5) == 0)
            set_attribute(h, atoi(name + 5), value);
    for (const char *p = h->line; (p = next_word(p, name, value, sizeof name)) != NULL;)
        read_word(h, &b, absent, name, value);
    for (int i = 0; i < h->signature.inputs; i++) {
        if (cpl_signature_type(&h->signature.in[i], &b, h->arena, &h->in_type[i], &err) != CPL_OK)
            fail_msg("%s '%s': %s", h->op->name, h->line, err.line[0]);
        finish_type(h, &b, &h->in_type[i]);
        types[i] = absent[i] ? NULL : &h->in_type[i];
    }
}
