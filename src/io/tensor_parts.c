/* tensor_parts.c: element types, sizes and the checksum that reader and writer share. */
#include <string.h>

#include "base/hash.h"
#include "io/io.h"
#include "io/tensor_parts.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [CPL_DTYPE_F32] = {"F32", 4},   [CPL_DTYPE_F64] = {"F64", 8},   [CPL_DTYPE_I32] = {"I32", 4},
    [CPL_DTYPE_I64] = {"I64", 8},   [CPL_DTYPE_BOOL] = {"BOOL", 1}, [CPL_DTYPE_U8] = {"U8", 1},
    [CPL_DTYPE_BF16] = {"BF16", 2}, [CPL_DTYPE_I8] = {"I8", 1},
};

size_t cpl_dtype_bytes(cpl_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *cpl_dtype_name(cpl_dtype dtype)
{
    return dtypes[dtype].name;
}

int cpl_dtype_named(cpl_dtype *dtype, const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = (cpl_dtype)i;
            return 1;
        }
    }
    return 0;
}

uint64_t cpl_tensor_elements(const cpl_tensor_entry *t)
{
    uint64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= (uint64_t)t->shape[i];
    return n;
}

/* The element size comes first, so that a shape with a 0 in it still fails when its other sizes overflow. */
int cpl_tensor_bytes(const cpl_tensor_entry *t, uint64_t *bytes)
{
    uint64_t n = cpl_dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++)
        if (t->shape[i] < 0 || __builtin_mul_overflow(n, (uint64_t)t->shape[i], &n))
            return -1;
    *bytes = n;
    return 0;
}

/* Tensors without bytes are left out: two of them may share a place, and their order would be chance. */
uint64_t cpl_tensor_checksum(const uint8_t *head, size_t head_length, const cpl_tensor_entry *const *order,
                             size_t count)
{
    uint64_t hash = cpl_hash64(0, head, head_length);
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        if (cpl_tensor_bytes(order[i], &bytes) == 0 && bytes > 0)
            hash = cpl_hash64(hash, order[i]->data, (size_t)bytes);
    }
    return hash;
}

uint8_t *cpl_checksum_place(uint8_t *head, size_t head_length, const char *digits)
{
    enum { QUOTED = CPL_CHECKSUM_DIGITS + 2 };
    for (size_t i = 0; i + QUOTED <= head_length; i++) {
        if (head[i] == '"' && head[i + QUOTED - 1] == '"' && memcmp(head + i + 1, digits, CPL_CHECKSUM_DIGITS) == 0)
            return head + i + 1;
    }
    return NULL;
}
