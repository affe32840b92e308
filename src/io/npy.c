/* npy.c: NumPy's array file, version 1.0: a magic word, a header that is a Python literal padded to 64 bytes, and the
 * numbers in row order. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/str.h"
#include "io/io.h"

cpl_status cpl_npy_write(const char *path, const char *type, const int64_t *shape, int rank, const void *data,
                         cpl_error *err)
{
    cpl_str head = {0};
    size_t bytes = (size_t)(type[2] - '0'); /* "<f4", "<i8" */
    cpl_str_add_bytes(&head, "\x93NUMPY\x01\x00\0\0", 10);
    cpl_str_printf(&head, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int i = 0; i < rank; i++) {
        cpl_str_printf(&head, "%" PRId64 ", ", shape[i]);
        bytes *= (size_t)shape[i];
    }
    cpl_str_add(&head, "), }");
    while (head.length % 64 != 63 && !head.failed)
        cpl_str_add_char(&head, ' ');
    cpl_str_add_char(&head, '\n');
    if (head.failed) {
        cpl_str_free(&head);
        CPL_FAIL(err, CPL_FAILED, "out of memory for '%s'", path);
    }
    head.data[8] = (char)(uint8_t)((head.length - 10) & 255);
    head.data[9] = (char)(uint8_t)((head.length - 10) >> 8);
    cpl_writer *w;
    cpl_status status = cpl_writer_open(&w, path, err);
    if (status == CPL_OK) {
        status = cpl_writer_write(w, head.data, head.length, err);
        if (status == CPL_OK && bytes > 0)
            status = cpl_writer_write(w, data, bytes, err);
        if (status == CPL_OK)
            status = cpl_writer_commit(w, err);
        else
            cpl_writer_abandon(w);
    }
    cpl_str_free(&head);
    return status;
}
