/* type.c: sizes and printing of named dimensions. */
#include "graph/type.h"

#include <stdio.h>
#include <string.h>
#include "kernel/kernel.h"

/* Words that stand for symbols; every other word is a feature of fixed size. */
static const struct {
    const char *word;
    cpl_dim_kind kind;
} dim_words[] = {
    {"batch", CPL_DIM_BATCH},
    {"s", CPL_DIM_TIME},       /* source time */
    {"t", CPL_DIM_TIME},       /* target time */
    {"now", CPL_DIM_TIME},     /* one step of every sentence (nn/now.h) */
    {"padded", CPL_DIM_PADDED} /* time axis of a rectangle */
};

cpl_dim_kind cpl_dim_word(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof dim_words / sizeof dim_words[0]; i++)
        if (strlen(dim_words[i].word) == length && memcmp(dim_words[i].word, word, length) == 0)
            return dim_words[i].kind;
    return CPL_DIM_FEATURE;
}

int cpl_type_find(const cpl_type *type, cpl_dim_kind kind)
{
    for (int i = 0; i < type->rank; i++)
        if (type->dim[i].kind == kind)
            return i;
    return -1;
}

int cpl_type_times(const cpl_type *type)
{
    int n = 0;
    for (int i = 0; i < type->rank; i++)
        n += type->dim[i].kind == CPL_DIM_TIME;
    return n;
}

int64_t cpl_type_width(const cpl_type *type)
{
    int64_t width = 1;
    for (int i = type->rank - 1; i >= 0 && type->dim[i].kind == CPL_DIM_FEATURE; i--)
        width *= type->dim[i].size;
    return width;
}

/* Batch and ragged time together are packed rows: Σ lengths for one time axis, Σ products for two. */
int64_t cpl_type_rows(const cpl_type *type, const cpl_binding *b)
{
    int last = type->rank - 1;
    while (last >= 0 && type->dim[last].kind == CPL_DIM_FEATURE)
        last--;
    int64_t rows = 1;
    int time[2] = {-1, -1}, times = 0, has_batch = 0;
    for (int i = 0; i <= last; i++) {
        const cpl_dim *d = &type->dim[i];
        if (d->kind == CPL_DIM_FEATURE)
            rows *= d->size;
        else if (d->kind == CPL_DIM_PADDED)
            rows *= b->rows[d->symbol];
        else if (d->kind == CPL_DIM_BATCH)
            has_batch = 1;
        else if (times < 2)
            time[times++] = d->symbol;
    }
    if (times == 2)
        return rows * b->pairs[time[0]][time[1]];
    if (times == 1)
        return rows * b->rows[time[0]];
    return has_batch ? rows * b->batch : rows;
}

int64_t cpl_type_elements(const cpl_type *type, const cpl_binding *b)
{
    return cpl_type_rows(type, b) * cpl_type_width(type);
}

size_t cpl_type_bytes(const cpl_type *type, const cpl_binding *b)
{
    size_t element = type->element == CPL_ELEMENT_ID ? sizeof(int32_t) : sizeof(real);
    return (size_t)cpl_type_elements(type, b) * element;
}

void cpl_type_print(const cpl_type *type, cpl_str *out)
{
    cpl_str_add_char(out, '[');
    for (int i = 0; i < type->rank; i++) {
        const cpl_dim *d = &type->dim[i];
        cpl_str_printf(out, "%s%s", i ? " " : "", d->name);
        if (d->kind == CPL_DIM_FEATURE)
            cpl_str_printf(out, "=%lld", (long long)d->size);
    }
    cpl_str_add_char(out, ']');
}

char *cpl_type_text(const cpl_type *type, char *buffer, size_t size)
{
    cpl_str s = {0};
    cpl_type_print(type, &s);
    snprintf(buffer, size, "%s", s.failed || !s.data ? "[…]" : s.data);
    cpl_str_free(&s);
    return buffer;
}

int cpl_binding_fits(const cpl_binding *binding, const cpl_binding *capacity)
{
    if (binding->batch > capacity->batch)
        return 0;
    for (int i = 0; i < CPL_MAX_SYMBOLS; i++) {
        if (binding->rows[i] > capacity->rows[i] || binding->longest[i] > capacity->longest[i])
            return 0;
        for (int j = 0; j < CPL_MAX_SYMBOLS; j++)
            if (binding->pairs[i][j] > capacity->pairs[i][j])
                return 0;
    }
    return 1;
}

void cpl_binding_grow(cpl_binding *capacity, const cpl_binding *binding)
{
#define GROW(field)                                                                                \
    if (binding->field > capacity->field)                                                          \
    capacity->field = binding->field
    GROW(batch);
    for (int i = 0; i < CPL_MAX_SYMBOLS; i++) {
        GROW(rows[i]);
        GROW(longest[i]);
        for (int j = 0; j < CPL_MAX_SYMBOLS; j++)
            GROW(pairs[i][j]);
    }
#undef GROW
}
