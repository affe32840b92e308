/* tensor_parts.h: what reader and writer of tensor files share; private to this room.
 *
 * The checksum: cpl_hash64 over the header length and the header, with the sixteen digits of the checksum itself
 * taken as '0', then over each tensor that has bytes, one call each in the order of their place. Stored as
 * sixteen lower-case hexadecimal digits in the metadata entry "checksum". It covers every byte of the file. */
#ifndef CPL_IO_TENSOR_PARTS_H
#define CPL_IO_TENSOR_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/map.h"
#include "io/io.h"

#define CPL_CHECKSUM_KEY   "checksum"
#define CPL_CHECKSUM_BLANK "0000000000000000"
enum { CPL_CHECKSUM_DIGITS = 16, CPL_HEADER_LIMIT = 100000000 }; /* the limit is the format's own */

/* head: the 8 bytes of length and the header, with the digits blanked. order: tensors as they lie in the file. */
uint64_t cpl_tensor_checksum(const uint8_t *head, size_t head_length, const cpl_tensor_entry *const *order,
                             size_t count);

/* Where the digits stand in the header's text: the first place where they appear in quotes. NULL: nowhere. */
uint8_t *cpl_checksum_place(uint8_t *head, size_t head_length, const char *digits);

/* "F32" → *dtype and 1, or 0 for a name that we do not read. */
int cpl_dtype_named(cpl_dtype *dtype, const char *name);
/* Bytes of a tensor. Returns 0, or -1 when a size is negative or the product is over 64 bits. */
int cpl_tensor_bytes(const cpl_tensor_entry *t, uint64_t *bytes);

/* An open file. Names and metadata point into header. */
struct cpl_tensor_file {
    const uint8_t *mapped; /* NULL: the bytes are the caller's */
    const uint8_t *bytes;
    size_t length;
    size_t head_length; /* 8 + the header */
    cpl_json *header;
    const cpl_json *metadata;
    cpl_tensor_entry *tensors;
    const cpl_tensor_entry **order; /* as they lie in the file */
    size_t count;
    cpl_map *by_name;
    int verified;
};

/* Reads and checks file->bytes into the other fields. On failure the caller closes the file. */
cpl_status cpl_tensor_file_check(cpl_tensor_file *f, cpl_error *err);

#endif
