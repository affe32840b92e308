/* npy.c: NumPy's array file, version 1.0: a magic word, a header that is a Python literal padded to 64 bytes, and the
 * numbers in row order.
 *
 * The number of rows stands at the front but is known at the end: the header has a fixed size and is written over. What
 * cannot be gone back in, such as a pipe, gets everything at the end. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/str.h"
#include "io/io.h"

enum { HEADER_BYTES = 128 }; /* the words take 70 at most, two sizes 40 */

struct cpl_npy {
    cpl_writer *writer;
    char type[4];
    int64_t width, rows;
    int held;        /* 1: the rows wait in memory */
    char *data;
    size_t used, capacity;
};

static size_t row_bytes(const cpl_npy *n)
{
    return (size_t)(n->type[2] - '0') * (size_t)(n->width > 0 ? n->width : 1); /* "<f4", "<i8" */
}

static void make_header(const cpl_npy *n, char header[HEADER_BYTES])
{
    char text[HEADER_BYTES], width[24] = "";
    if (n->width > 0)
        snprintf(width, sizeof width, "%" PRId64 ", ", n->width);
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRId64 ", %s), }",
                          n->type, n->rows, width);
    memset(header, ' ', HEADER_BYTES);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)(HEADER_BYTES - 10), header[9] = 0;
    memcpy(header + 10, text, (size_t)length);
    header[HEADER_BYTES - 1] = '\n';
}

cpl_status cpl_npy_open(cpl_npy **npy, const char *path, const char *type, int64_t width, cpl_error *err)
{
    char header[HEADER_BYTES];
    cpl_npy *n = cpl_alloc(1, sizeof *n);
    *npy = NULL;
    if (!n)
        CPL_FAIL(err, CPL_FAILED, "no memory to write '%s'", path);
    memcpy(n->type, type, sizeof n->type);
    n->width = width;
    cpl_status status = cpl_writer_open(&n->writer, path, err);
    n->held = status == CPL_OK && !cpl_writer_can_replace(n->writer);
    if (status == CPL_OK && !n->held) {
        make_header(n, header);
        status = cpl_writer_write(n->writer, header, sizeof header, err);
    }
    if (status != CPL_OK) {
        cpl_npy_abandon(n);
        return status;
    }
    *npy = n;
    return CPL_OK;
}

cpl_status cpl_npy_add(cpl_npy *n, const void *data, int64_t rows, cpl_error *err)
{
    size_t bytes = (size_t)rows * row_bytes(n);
    n->rows += rows;
    if (bytes == 0)
        return CPL_OK;
    if (!n->held)
        return cpl_writer_write(n->writer, data, bytes, err);
    if (cpl_grow(&n->data, &n->capacity, n->used + bytes, 1))
        CPL_FAIL(err, CPL_FAILED, "out of memory for an array of %zu bytes", n->used + bytes);
    memcpy(n->data + n->used, data, bytes);
    n->used += bytes;
    return CPL_OK;
}

cpl_status cpl_npy_commit(cpl_npy *n, cpl_error *err)
{
    char header[HEADER_BYTES];
    make_header(n, header);
    cpl_status status = n->held ? cpl_writer_write(n->writer, header, sizeof header, err)
                                : cpl_writer_replace(n->writer, header, sizeof header, err);
    if (status == CPL_OK && n->used > 0)
        status = cpl_writer_write(n->writer, n->data, n->used, err);
    if (status == CPL_OK) {
        cpl_writer *w = n->writer;
        n->writer = NULL;
        status = cpl_writer_commit(w, err);
    }
    cpl_npy_abandon(n);
    return status;
}

void cpl_npy_abandon(cpl_npy *n)
{
    if (!n)
        return;
    cpl_writer_abandon(n->writer);
    cpl_release(n->data);
    cpl_release(n);
}
