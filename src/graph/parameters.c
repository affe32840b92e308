/* parameters.c: the store of trainable tensors. Values live in one block, each tensor on a cache line. */
#include "graph/parameters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"

enum { ALIGN_ELEMENTS = 64 / sizeof(real) };

struct cpl_parameters {
    cpl_arena *arena;
    cpl_map *by_path;
    cpl_parameter_info **items;
    size_t count, capacity;
    int64_t block_elements; /* with alignment gaps */
    int64_t slot_elements;  /* of what is trainable, with gaps */
    int64_t layout;
    real *values;
    size_t allocated;       /* items that have values */
    int64_t allocated_elements;
    int deferred;           /* no values yet: a file has them */
    int loaded;             /* values come from a file and need no initialiser */
};

cpl_parameters *cpl_parameters_new(void)
{
    cpl_parameters *p = cpl_alloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->arena = cpl_arena_new(1 << 14);
    p->by_path = cpl_map_new();
    if (!p->arena || !p->by_path) {
        cpl_parameters_free(p);
        return NULL;
    }
    return p;
}

void cpl_parameters_free(cpl_parameters *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i]->packed)
            cpl_release(p->items[i]->packed->words);
    cpl_arena_free(p->arena);
    cpl_map_free(p->by_path);
    cpl_release(p->items);
    cpl_release(p->values);
    cpl_release(p);
}

size_t cpl_parameters_count(const cpl_parameters *p)
{
    return p->count;
}

cpl_parameter_info *cpl_parameters_at(const cpl_parameters *p, size_t i)
{
    return p->items[i];
}

int cpl_parameters_find(const cpl_parameters *p, const char *path)
{
    const int64_t *found = cpl_map_find(p->by_path, path, strlen(path));
    return found && *found < (int64_t)p->count ? (int)*found : -1; /* the map keeps names that were forgotten */
}

static void shape_text(const cpl_parameter_info *info, char *buffer, size_t size)
{
    size_t n = (size_t)snprintf(buffer, size, "[");
    for (int i = 0; i < info->rank && n < size; i++)
        n += (size_t)snprintf(buffer + n, size - n, "%s%s=%lld", i ? " " : "", info->dim[i], (long long)info->size[i]);
    if (n < size)
        snprintf(buffer + n, size - n, "]");
}

static const char *const initializers[] = {"zeros", "ones", "Glorot-uniform", "orthogonal", "uniform", "LSTM bias"};

static int same_parameter(const cpl_parameter_info *a, const cpl_parameter_info *b)
{
    if (a->rank != b->rank || a->initializer != b->initializer)
        return 0;
    for (int i = 0; i < a->rank; i++)
        if (a->size[i] != b->size[i])
            return 0;
    return 1;
}

static cpl_parameter_info *copy_info(cpl_parameters *p, const cpl_parameter_info *wanted)
{
    cpl_parameter_info *info = cpl_arena_alloc(p->arena, sizeof *info);
    if (!info)
        return NULL;
    *info = *wanted;
    info->path = cpl_arena_strndup(p->arena, wanted->path, strlen(wanted->path));
    info->where = cpl_arena_strndup(p->arena, wanted->where, strlen(wanted->where));
    int ok = info->path && info->where;
    info->elements = 1;
    for (int i = 0; i < info->rank; i++) {
        info->dim[i] = cpl_arena_strndup(p->arena, wanted->dim[i], strlen(wanted->dim[i]));
        ok = ok && info->dim[i];
        info->elements *= info->size[i];
    }
    return ok ? info : NULL;
}

static int64_t aligned(int64_t elements)
{
    return (elements + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
}

int cpl_parameters_add(cpl_parameters *p, const cpl_parameter_info *wanted, cpl_error *err)
{
    int known = cpl_parameters_find(p, wanted->path);
    if (known >= 0) {
        const cpl_parameter_info *have = p->items[known];
        if (same_parameter(have, wanted))
            return known;
        char a[160], b[160];
        shape_text(have, a, sizeof a);
        shape_text(wanted, b, sizeof b);
        cpl_error_set(err, CPL_USAGE, "parameter '%s' is %s (%s) at %s but %s (%s) at %s" CPL_HINT
                      "give the second layer another name, or the same options to share the weights",
                      wanted->path, a, initializers[have->initializer], have->where, b,
                      initializers[wanted->initializer], wanted->where);
        return -1;
    }
    cpl_parameter_info *info = copy_info(p, wanted);
    int64_t *slot = info ? cpl_map_insert(p->by_path, info->path, strlen(info->path), NULL) : NULL;
    if (!slot || cpl_grow(&p->items, &p->capacity, p->count + 1, sizeof *p->items)) {
        cpl_error_set(err, CPL_FAILED, "out of memory for parameter '%s'", wanted->path);
        return -1;
    }
    *slot = (int64_t)p->count;
    info->offset = p->block_elements;
    info->trainable = 1;
    info->slot = p->slot_elements;
    p->block_elements += aligned(info->elements);
    p->slot_elements += aligned(info->elements);
    p->items[p->count] = info;
    return (int)p->count++;
}

/* Gives what is trainable its slots, and what is not packed its place among the values. */
static void lay_out(cpl_parameters *p)
{
    p->slot_elements = p->block_elements = 0;
    for (size_t i = 0; i < p->count; i++) {
        cpl_parameter_info *info = p->items[i];
        info->offset = p->block_elements;
        p->block_elements += info->packed ? 0 : aligned(info->elements);
        info->slot = info->trainable ? p->slot_elements : -1;
        p->slot_elements += info->trainable ? aligned(info->elements) : 0;
    }
}

cpl_status cpl_parameters_set_trainable(cpl_parameters *p, const char *pattern, int trainable, cpl_error *err)
{
    int found = 0, changed = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (!cpl_path_matches(pattern, p->items[i]->path))
            continue;
        found = 1;
        changed |= p->items[i]->trainable != (trainable != 0);
        p->items[i]->trainable = trainable != 0;
    }
    if (!found)
        return cpl_parameters_no_match(p, pattern, err);
    if (changed) {
        lay_out(p);
        p->layout++;
    }
    return CPL_OK;
}

size_t cpl_parameters_gradient_bytes(const cpl_parameters *p)
{
    return (size_t)p->slot_elements * sizeof(real);
}

int64_t cpl_parameters_layout(const cpl_parameters *p)
{
    return p->layout;
}

void cpl_parameters_truncate(cpl_parameters *p, size_t count)
{
    if (count >= p->count)
        return;
    p->count = count;
    lay_out(p);
    if (p->allocated > count) {
        p->allocated = count;
        p->allocated_elements = p->block_elements;
    }
}

int64_t cpl_parameters_elements(const cpl_parameters *p)
{
    int64_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        n += p->items[i]->elements;
    return n;
}

size_t cpl_parameters_bytes(const cpl_parameters *p)
{
    return (size_t)p->block_elements * sizeof(real);
}

cpl_status cpl_parameters_allocate(cpl_parameters *p, uint64_t seed, cpl_error *err)
{
    if (p->deferred || (p->allocated == p->count && p->values))
        return CPL_OK;
    real *values = cpl_alloc_aligned(cpl_parameters_bytes(p) + 64, 64);
    if (!values)
        CPL_FAIL(err, CPL_FAILED, "out of memory for %zu bytes of parameters", cpl_parameters_bytes(p));
    if (p->values)
        memcpy(values, p->values, (size_t)p->allocated_elements * sizeof(real));
    cpl_release(p->values);
    p->values = values;
    for (size_t i = p->allocated; i < p->count && !p->loaded; i++)
        cpl_initialize(p->items[i], seed, values + p->items[i]->offset);
    p->allocated = p->count;
    p->allocated_elements = p->block_elements;
    return CPL_OK;
}

real *cpl_parameters_value(const cpl_parameters *p, size_t i)
{
    return p->items[i]->packed ? NULL : p->values + p->items[i]->offset;
}

real *cpl_parameters_values(const cpl_parameters *p)
{
    return p->values;
}

static int64_t first_not_finite(const real *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return i;
    return -1;
}

/* Packed ones, a column at a time; bytes were made of finite numbers. */
static int64_t packed_not_finite(const cpl_packed *packed, int64_t next, int64_t step, double *element)
{
    real *column = cpl_alloc((size_t)packed->depth + 1, sizeof *column);
    int64_t first = -1;
    for (int64_t k = 0; column && k < packed->columns; k++) {
        cpl_packed_get(packed, k, column);
        int64_t i = first_not_finite(column, packed->depth), at = k * next + i * step;
        if (i < 0 || (first >= 0 && at > first))
            continue;
        first = at;
        *element = (double)column[i];
    }
    cpl_release(column);
    return first;
}

int64_t cpl_parameters_not_finite(const cpl_parameters *p, size_t i, double *element)
{
    const cpl_parameter_info *info = p->items[i];
    int rows = info->read_as == CPL_READ_ROWS;
    if (info->packed)
        return packed_not_finite(info->packed, rows ? info->size[1] : 1, rows ? 1 : info->size[1], element);
    const real *x = cpl_parameters_value(p, i);
    int64_t at = first_not_finite(x, info->elements);
    *element = at >= 0 ? (double)x[at] : 0;
    return at;
}

/* ---- packed weights ---- */

void cpl_parameters_defer(cpl_parameters *p)
{
    p->deferred = p->loaded = 1;
}

int cpl_parameters_deferred(const cpl_parameters *p)
{
    return p->deferred;
}

cpl_status cpl_parameters_settle(cpl_parameters *p, cpl_error *err)
{
    p->deferred = 0;
    return cpl_parameters_allocate(p, 0, err);
}

int cpl_parameters_packable(const cpl_parameter_info *info, cpl_weight_type type)
{
    if (info->rank != 2 || (info->read_as != CPL_READ_COLUMNS && info->read_as != CPL_READ_ROWS))
        return 0;
    if (type == CPL_WEIGHT_FLOAT32)
        return info->read_as == CPL_READ_COLUMNS;
    return type != CPL_WEIGHT_INT8 || info->size[info->read_as == CPL_READ_ROWS] <= CPL_PACKED_DEPTH;
}

static cpl_status make_packed(cpl_parameters *p, const cpl_parameter_info *info, cpl_weight_type type,
                              cpl_packed **packed, cpl_error *err)
{
    int rows = info->read_as == CPL_READ_ROWS;
    if (!cpl_parameters_packable(info, type))
        CPL_FAIL(err, CPL_FAILED, "'%s' is read as plain numbers and has to be float32", info->path);
    int64_t columns = info->size[!rows], depth = info->size[rows];
    *packed = cpl_arena_alloc(p->arena, sizeof **packed);
    void *memory = *packed ? cpl_alloc_aligned(cpl_packed_bytes(type, columns, depth) + 64, 64) : NULL;
    if (!memory)
        CPL_FAIL(err, CPL_FAILED, "out of memory for '%s'", info->path);
    cpl_packed_place_unset(*packed, type, columns, depth, memory); /* new memory is zeros */
    return CPL_OK;
}

cpl_status cpl_parameters_pack(cpl_parameters *p, size_t i, cpl_weight_type type, cpl_packed **packed, cpl_error *err)
{
    cpl_status status = make_packed(p, p->items[i], type, packed, err);
    if (status != CPL_OK)
        return status;
    p->items[i]->packed = *packed;
    cpl_release(p->values);
    p->values = NULL;
    p->allocated = 0;
    p->allocated_elements = 0;
    p->loaded = 1;
    lay_out(p);
    return CPL_OK;
}

/* What is not packed moves to a block of its own. */
static cpl_status move_plain(cpl_parameters *p, cpl_error *err)
{
    int64_t elements = 0;
    for (size_t i = 0; i < p->count; i++)
        elements += p->items[i]->packed ? 0 : aligned(p->items[i]->elements);
    real *values = cpl_alloc_aligned((size_t)elements * sizeof *values + 64, 64), *to = values;
    if (!values)
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld parameters", (long long)elements);
    for (size_t i = 0; i < p->count; i++) {
        const cpl_parameter_info *info = p->items[i];
        if (info->packed)
            continue;
        memcpy(to, p->values + info->offset, (size_t)info->elements * sizeof *to);
        to += aligned(info->elements);
    }
    cpl_release(p->values);
    p->values = values;
    lay_out(p);
    p->allocated_elements = p->block_elements;
    return CPL_OK;
}

cpl_status cpl_parameters_pack_values(cpl_parameters *p, cpl_error *err)
{
    cpl_packed *packed;
    for (size_t i = 0; i < p->count; i++) {
        cpl_parameter_info *info = p->items[i];
        if (info->packed || !cpl_parameters_packable(info, CPL_WEIGHT_FLOAT32))
            continue;
        cpl_status status = make_packed(p, info, CPL_WEIGHT_FLOAT32, &packed, err);
        if (status != CPL_OK)
            return status;
        cpl_packed_set_whole(packed, p->values + info->offset);
        info->packed = packed;
    }
    return move_plain(p, err);
}
