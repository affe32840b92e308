/* tensor_write.c: writes a safetensors file.
 *
 * The header is made with a blank checksum, which settles its length; the digits are filled in afterwards. The
 * bytes lie by falling element size, so that each tensor begins at a multiple of its element: the format allows
 * no gaps between tensors. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/str.h"
#include "io/io.h"
#include "io/tensor_parts.h"

/* Checks one tensor and that its name is new. */
static cpl_status check_tensor(const cpl_tensor_entry *t, cpl_map *names, cpl_error *err)
{
    uint64_t bytes;
    int is_new;
    if (strcmp(t->name, "__metadata__") == 0)
        CPL_FAIL(err, CPL_FAILED, "a tensor cannot be named '__metadata__'");
    if (t->rank < 0 || t->rank > CPL_TENSOR_RANK)
        CPL_FAIL(err, CPL_FAILED, "tensor '%s' has %d dimensions, expected 0 to %d", t->name, t->rank, CPL_TENSOR_RANK);
    if (cpl_tensor_bytes(t, &bytes) != 0)
        CPL_FAIL(err, CPL_FAILED, "tensor '%s' has a negative or too large shape", t->name);
    if (bytes > 0 && !t->data)
        CPL_FAIL(err, CPL_FAILED, "tensor '%s' of %" PRIu64 " bytes has no data", t->name, bytes);
    if (!cpl_map_insert(names, t->name, strlen(t->name), &is_new))
        CPL_FAIL(err, CPL_FAILED, "no memory for %zu tensor names", cpl_map_size(names));
    if (!is_new)
        CPL_FAIL(err, CPL_FAILED, "two tensors are named '%s'", t->name);
    return CPL_OK;
}

/* A wrong set is a bug of the caller's, but a file is a bad place to find it. */
static cpl_status check_set(const cpl_tensor_set *set, cpl_error *err)
{
    cpl_map *names = cpl_map_new();
    if (!names)
        CPL_FAIL(err, CPL_FAILED, "no memory for the names of tensors");
    cpl_status status = CPL_OK;
    for (size_t i = 0; i < set->tensor_count && status == CPL_OK; i++)
        status = check_tensor(&set->tensors[i], names, err);
    cpl_map_free(names);
    return status;
}

/* The tensors as they will lie in the file, and where each begins. */
typedef struct layout {
    const cpl_tensor_entry **order;
    uint64_t *begin; /* by index in the set */
} layout;

/* Eight-byte elements first, then four, two, one. Returns 0, or -1 without memory or above 64 bits. */
static int make_layout(layout *l, const cpl_tensor_set *set)
{
    l->order = cpl_alloc(set->tensor_count, sizeof *l->order);
    l->begin = cpl_alloc(set->tensor_count, sizeof *l->begin);
    if (!l->order || !l->begin)
        return -1;
    uint64_t at = 0;
    size_t placed = 0;
    for (size_t element = 8; element > 0; element /= 2) {
        for (size_t i = 0; i < set->tensor_count; i++) {
            const cpl_tensor_entry *t = &set->tensors[i];
            if (cpl_dtype_bytes(t->dtype) != element)
                continue;
            uint64_t bytes = 0;
            cpl_tensor_bytes(t, &bytes);
            l->order[placed++] = t;
            l->begin[i] = at;
            if (__builtin_add_overflow(at, bytes, &at))
                return -1;
        }
    }
    return 0;
}

static void free_layout(layout *l)
{
    cpl_release(l->order);
    cpl_release(l->begin);
}

/* One tensor's entry in the header. */
static cpl_json *describe(const cpl_tensor_entry *t, uint64_t begin)
{
    cpl_json *tensor = cpl_json_object(), *shape = cpl_json_array(), *offsets = cpl_json_array();
    uint64_t bytes = 0;
    cpl_tensor_bytes(t, &bytes);
    for (int i = 0; i < t->rank; i++)
        cpl_json_add_int(shape, t->shape[i]);
    cpl_json_add_int(offsets, (int64_t)begin);
    cpl_json_add_int(offsets, (int64_t)(begin + bytes));
    cpl_json_set_text(tensor, "dtype", cpl_dtype_name(t->dtype));
    cpl_json_set(tensor, "shape", shape);
    cpl_json_set(tensor, "data_offsets", offsets);
    return tensor;
}

/* Appends the 8 bytes of length and the header with a blank checksum. The checksum comes first, so that the
 * first place where its digits stand in quotes is its own. */
static cpl_status write_head(cpl_str *head, const cpl_tensor_set *set, const layout *l, cpl_error *err)
{
    cpl_json *root = cpl_json_object(), *metadata = cpl_json_object();
    cpl_json_set_text(metadata, CPL_CHECKSUM_KEY, CPL_CHECKSUM_BLANK);
    for (size_t i = 0; i < set->metadata_count; i++) {
        const cpl_metadata_entry *m = &set->metadata[i];
        if (strcmp(m->key, CPL_CHECKSUM_KEY) != 0)
            cpl_json_set_bytes(metadata, m->key, m->value, m->length);
    }
    cpl_json_set(root, "__metadata__", metadata);
    for (size_t i = 0; i < set->tensor_count; i++)
        cpl_json_set(root, set->tensors[i].name, describe(&set->tensors[i], l->begin[i]));
    cpl_str_add_bytes(head, CPL_CHECKSUM_BLANK, 8); /* room for the length */
    cpl_status status = cpl_json_write(root, head, err);
    cpl_json_free(root);
    CPL_TRY(status, err, "cannot write the header");
    while (head->length % 8 != 0 && !head->failed)
        cpl_str_add_char(head, ' ');
    if (head->failed)
        CPL_FAIL(err, CPL_FAILED, "no memory for the header of %zu tensors", set->tensor_count);
    uint64_t length = head->length - 8;
    if (length > CPL_HEADER_LIMIT)
        CPL_FAIL(err, CPL_FAILED, "the header has %" PRIu64 " bytes, the format's limit is %d", length,
                 CPL_HEADER_LIMIT);
    for (int i = 0; i < 8; i++)
        head->data[i] = (char)(uint8_t)(length >> (8 * i));
    return CPL_OK;
}

/* Fills in the checksum. */
static cpl_status seal(cpl_str *head, const cpl_tensor_set *set, const layout *l, cpl_error *err)
{
    uint8_t *bytes = (uint8_t *)head->data;
    uint64_t sum = cpl_tensor_checksum(bytes, head->length, l->order, set->tensor_count);
    uint8_t *place = cpl_checksum_place(bytes, head->length, CPL_CHECKSUM_BLANK);
    if (!place)
        CPL_FAIL(err, CPL_FAILED, "the header lost its checksum");
    char digits[CPL_CHECKSUM_DIGITS + 1];
    snprintf(digits, sizeof digits, "%016" PRIx64, sum);
    memcpy(place, digits, CPL_CHECKSUM_DIGITS);
    return CPL_OK;
}

/* Head, then the tensors in their order, to a temporary file that takes the name when all is on disk. */
static cpl_status write_all(const char *path, const cpl_str *head, const cpl_tensor_set *set, const layout *l,
                            cpl_error *err)
{
    cpl_writer *w;
    CPL_TRY(cpl_writer_open(&w, path, err), err, "cannot write '%s'", path);
    cpl_status status = cpl_writer_write(w, head->data, head->length, err);
    for (size_t i = 0; i < set->tensor_count && status == CPL_OK; i++) {
        uint64_t bytes = 0;
        cpl_tensor_bytes(l->order[i], &bytes);
        if (bytes > 0)
            status = cpl_writer_write(w, l->order[i]->data, (size_t)bytes, err);
    }
    if (status == CPL_OK)
        return cpl_writer_commit(w, err);
    cpl_writer_abandon(w);
    return status;
}

cpl_status cpl_tensor_file_write(const char *path, const cpl_tensor_set *set, cpl_error *err)
{
    CPL_TRY(check_set(set, err), err, "cannot write '%s'", path);
    layout l = {0};
    cpl_str head = {0};
    cpl_status status = CPL_OK;
    if (make_layout(&l, set) != 0)
        status = cpl_error_set(err, CPL_FAILED, "no memory for the list of %zu tensors", set->tensor_count);
    if (status == CPL_OK)
        status = write_head(&head, set, &l, err);
    if (status == CPL_OK)
        status = seal(&head, set, &l, err);
    if (status == CPL_OK)
        status = write_all(path, &head, set, &l, err);
    cpl_str_free(&head);
    free_layout(&l);
    CPL_TRY(status, err, "cannot write '%s'", path);
    return CPL_OK;
}
