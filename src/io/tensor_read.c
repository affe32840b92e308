/* tensor_read.c: reads the header of a safetensors file and believes nothing that it says.
 *
 * A file is accepted when: its header length fits the file and the format's limit; the header is strict JSON;
 * each tensor has a known type, a shape of whole sizes and offsets whose distance is exactly the shape's bytes;
 * the tensors cover the data without gap or overlap and end with the file; each is aligned to its element; and
 * a checksum of our kind, when there is one, is right. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/str.h"
#include "io/io.h"
#include "io/tensor_parts.h"

enum { NAME_SHOWN = 160 };

/* The length before the header is the first number that could lead astray: it is compared, never added to. */
static cpl_status read_head(cpl_tensor_file *f, cpl_error *err)
{
    if (f->length < 8)
        CPL_FAIL(err, CPL_FAILED, "the file has %zu bytes, expected at least 8 for the length of its header",
                 f->length);
    uint64_t length = 0;
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)f->bytes[i] << (8 * i);
    if (length > CPL_HEADER_LIMIT)
        CPL_FAIL(err, CPL_FAILED,
                 "not a safetensors file: its first bytes call for a header of %" PRIu64 " bytes, the limit is %d",
                 length, CPL_HEADER_LIMIT);
    if (length > f->length - 8)
        CPL_FAIL(err, CPL_FAILED, "cut short: the file has %zu bytes, its header alone needs %" PRIu64, f->length,
                 length + 8);
    f->head_length = 8 + (size_t)length;
    if (length == 0 || f->bytes[8] != '{')
        CPL_FAIL(err, CPL_FAILED, "not a safetensors file: its header does not begin with '{'");
    CPL_TRY(cpl_json_parse(&f->header, (const char *)f->bytes + 8, (size_t)length, err), err,
            "its header is not valid JSON");
    if (cpl_json_what(f->header) != CPL_JSON_OBJECT)
        CPL_FAIL(err, CPL_FAILED, "its header is not a JSON object");
    return CPL_OK;
}

/* The format allows only strings there. */
static cpl_status check_metadata(cpl_tensor_file *f, const cpl_json *metadata, cpl_error *err)
{
    if (cpl_json_what(metadata) != CPL_JSON_OBJECT)
        CPL_FAIL(err, CPL_FAILED, "'__metadata__' is not an object of strings");
    for (size_t i = 0; i < cpl_json_size(metadata); i++) {
        const cpl_json *value;
        const char *key = cpl_json_key(metadata, i, &value);
        char shown[NAME_SHOWN];
        if (cpl_json_what(value) != CPL_JSON_TEXT)
            CPL_FAIL(err, CPL_FAILED, "metadata '%s' is not a string",
                     cpl_escape(shown, sizeof shown, key, strlen(key)));
    }
    f->metadata = metadata;
    return CPL_OK;
}

/* A whole number of at least 0 at place i. Returns 0, or -1 when something else stands there. */
static int whole_at(const cpl_json *array, size_t i, int64_t *value)
{
    const cpl_json *v = cpl_json_at(array, i);
    *value = cpl_json_int(v, -1);
    return cpl_json_what(v) == CPL_JSON_INT && *value >= 0 ? 0 : -1;
}

/* Sizes such as 2.0 or 2e3 are not whole numbers here, as in the format. */
static cpl_status read_shape(cpl_tensor_entry *t, const cpl_json *shape, cpl_error *err)
{
    size_t rank = cpl_json_size(shape);
    if (cpl_json_what(shape) != CPL_JSON_ARRAY)
        CPL_FAIL(err, CPL_FAILED, "it has no shape");
    if (rank > CPL_TENSOR_RANK)
        CPL_FAIL(err, CPL_FAILED, "it has %zu dimensions, at most %d are supported", rank, CPL_TENSOR_RANK);
    t->rank = (int)rank;
    for (size_t i = 0; i < rank; i++)
        if (whole_at(shape, i, &t->shape[i]) != 0)
            CPL_FAIL(err, CPL_FAILED, "size %zu of its shape is not a whole number of at least 0", i + 1);
    return CPL_OK;
}

/* The checks that need this tensor alone. That it lies within the file comes with check_cover. */
static cpl_status read_tensor(cpl_tensor_file *f, cpl_tensor_entry *t, const cpl_json *value, cpl_error *err)
{
    const char *dtype = cpl_json_text(cpl_json_get(value, "dtype"), NULL);
    if (!dtype)
        CPL_FAIL(err, CPL_FAILED, "it has no dtype");
    char shown[NAME_SHOWN];
    if (!cpl_dtype_named(&t->dtype, dtype))
        CPL_FAIL(err, CPL_FAILED, "its dtype is '%s', expected F32, F64, I32, I64, BOOL, U8, I8 or BF16",
                 cpl_escape(shown, sizeof shown, dtype, strlen(dtype)));
    cpl_status status = read_shape(t, cpl_json_get(value, "shape"), err);
    if (status != CPL_OK)
        return status;
    const cpl_json *offsets = cpl_json_get(value, "data_offsets");
    int64_t begin, end;
    uint64_t bytes;
    if (cpl_json_what(offsets) != CPL_JSON_ARRAY || cpl_json_size(offsets) != 2 || whole_at(offsets, 0, &begin) ||
        whole_at(offsets, 1, &end) || begin > end)
        CPL_FAIL(err, CPL_FAILED, "its data_offsets are not two rising whole numbers");
    if (cpl_tensor_bytes(t, &bytes) != 0)
        CPL_FAIL(err, CPL_FAILED, "its shape is over 64 bits of bytes");
    if (bytes != (uint64_t)(end - begin))
        CPL_FAIL(err, CPL_FAILED, "its shape needs %" PRIu64 " bytes, its data_offsets give %" PRId64, bytes,
                 end - begin);
    size_t room = f->length - f->head_length;
    if ((uint64_t)end > room)
        CPL_FAIL(err, CPL_FAILED, "cut short: the file has %zu bytes, this tensor ends at byte %" PRIu64, f->length,
                 (uint64_t)f->head_length + (uint64_t)end);
    t->data = f->bytes + f->head_length + begin;
    if ((uintptr_t)t->data % cpl_dtype_bytes(t->dtype) != 0)
        CPL_FAIL(err, CPL_FAILED, "it begins at byte %zu, which is not a multiple of its element's %zu bytes",
                 f->head_length + (size_t)begin, cpl_dtype_bytes(t->dtype));
    return CPL_OK;
}

/* Walks the header once; every entry but '__metadata__' is a tensor. Two of one name fail in the JSON reader. */
static cpl_status read_tensors(cpl_tensor_file *f, cpl_error *err)
{
    size_t entries = cpl_json_size(f->header);
    f->tensors = cpl_alloc(entries, sizeof *f->tensors);
    f->order = cpl_alloc(entries, sizeof *f->order);
    f->by_name = cpl_map_new();
    if (!f->tensors || !f->order || !f->by_name)
        CPL_FAIL(err, CPL_FAILED, "no memory for %zu tensors", entries);
    for (size_t i = 0; i < entries; i++) {
        const cpl_json *value;
        const char *name = cpl_json_key(f->header, i, &value);
        if (strcmp(name, "__metadata__") == 0) {
            cpl_status status = check_metadata(f, value, err);
            if (status != CPL_OK)
                return status;
            continue;
        }
        char shown[NAME_SHOWN];
        cpl_tensor_entry *t = &f->tensors[f->count];
        t->name = name;
        CPL_TRY(read_tensor(f, t, value, err), err, "tensor '%s'", cpl_escape(shown, sizeof shown, name, strlen(name)));
        int64_t *place = cpl_map_insert(f->by_name, name, strlen(name), NULL);
        if (!place)
            CPL_FAIL(err, CPL_FAILED, "no memory for %zu tensor names", entries);
        *place = (int64_t)f->count;
        f->order[f->count++] = t;
    }
    return CPL_OK;
}

static const uint8_t *end_of(const cpl_tensor_entry *t)
{
    return (const uint8_t *)t->data + cpl_tensor_elements(t) * cpl_dtype_bytes(t->dtype);
}

/* By place; an empty tensor before one that begins where it lies. */
static int by_place(const void *a, const void *b)
{
    const cpl_tensor_entry *x = *(const cpl_tensor_entry *const *)a, *y = *(const cpl_tensor_entry *const *)b;
    uintptr_t xb = (uintptr_t)x->data, yb = (uintptr_t)y->data;
    if (xb != yb)
        return xb < yb ? -1 : 1;
    uintptr_t xe = (uintptr_t)end_of(x), ye = (uintptr_t)end_of(y);
    return xe < ye ? -1 : xe > ye;
}

/* The tensors must follow each other without gap or overlap, to the end of the file. */
static cpl_status check_cover(cpl_tensor_file *f, cpl_error *err)
{
    if (f->count)
        qsort(f->order, f->count, sizeof *f->order, by_place);
    const uint8_t *at = f->bytes + f->head_length;
    for (size_t i = 0; i < f->count; i++) {
        const cpl_tensor_entry *t = f->order[i];
        char shown[NAME_SHOWN];
        if ((const uint8_t *)t->data != at)
            CPL_FAIL(err, CPL_FAILED, "tensor '%s' begins at byte %zu, %s at byte %zu",
                     cpl_escape(shown, sizeof shown, t->name, strlen(t->name)),
                     (size_t)((const uint8_t *)t->data - f->bytes),
                     (const uint8_t *)t->data < at ? "but the one before it ends only" : "leaving a gap that opens",
                     (size_t)(at - f->bytes));
        at = end_of(t);
    }
    size_t used = (size_t)(at - f->bytes);
    if (used != f->length)
        CPL_FAIL(err, CPL_FAILED, "the file has %zu bytes, its header accounts for %zu", f->length, used);
    return CPL_OK;
}

/* A "checksum" of another length is some other program's entry and means nothing to us. */
static cpl_status verify(cpl_tensor_file *f, cpl_error *err)
{
    size_t length;
    const char *digits = cpl_json_text(cpl_json_get(f->metadata, CPL_CHECKSUM_KEY), &length);
    if (!digits || length != CPL_CHECKSUM_DIGITS)
        return CPL_OK;
    uint8_t *head = cpl_alloc(f->head_length, 1);
    if (!head)
        CPL_FAIL(err, CPL_FAILED, "no memory for a header of %zu bytes", f->head_length);
    memcpy(head, f->bytes, f->head_length);
    uint8_t *place = cpl_checksum_place(head, f->head_length, digits);
    if (place)
        memcpy(place, CPL_CHECKSUM_BLANK, CPL_CHECKSUM_DIGITS);
    uint64_t sum = cpl_tensor_checksum(head, f->head_length, f->order, f->count);
    cpl_release(head);
    char actual[CPL_CHECKSUM_DIGITS + 1], shown[80];
    snprintf(actual, sizeof actual, "%016" PRIx64, sum);
    if (!place || memcmp(actual, digits, CPL_CHECKSUM_DIGITS) != 0)
        CPL_FAIL(err, CPL_FAILED,
                 "its checksum should be %s but its content gives %s" CPL_HINT
                 "take another copy; a program that edits the file must remove the metadata entry 'checksum'",
                 cpl_escape(shown, sizeof shown, digits, length), actual);
    f->verified = 1;
    return CPL_OK;
}

cpl_status cpl_tensor_file_check(cpl_tensor_file *f, cpl_error *err)
{
    cpl_status status = read_head(f, err);
    if (status == CPL_OK)
        status = read_tensors(f, err);
    if (status == CPL_OK)
        status = check_cover(f, err);
    if (status == CPL_OK)
        status = verify(f, err);
    return status;
}
