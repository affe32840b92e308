/* hdf5.h: the numbers of an HDF5 file by their paths ("encoder/embedding/vars/0"), as Keras stores weights. Knows no
 * model. The HDF5 library is not made for threads: one file at a time in a process.
 *
 *   cpl_hdf5 *f;
 *   CPL_TRY(cpl_hdf5_open(&f, path, err), err, "cannot read the weights");
 *   … cpl_hdf5_at(f, i)->name, shape, data … until cpl_hdf5_close(f) */
#ifndef CPL_IO_HDF5_H
#define CPL_IO_HDF5_H

#include "io/io.h"

typedef struct cpl_hdf5 cpl_hdf5;

/* Reads every data set: floating-point numbers of any width as float32; of other kinds (counters, seeds) only the name
 * and the shape, with dtype I64 and data NULL. */
cpl_status cpl_hdf5_open(cpl_hdf5 **f, const char *path, cpl_error *err);
void cpl_hdf5_close(cpl_hdf5 *f); /* NULL is fine */
size_t cpl_hdf5_count(const cpl_hdf5 *f);
const cpl_tensor_entry *cpl_hdf5_at(const cpl_hdf5 *f, size_t i); /* ordered by name, byte by byte */

/* Writes float32 tensors, atomically. A '/' in a name makes a group. */
cpl_status cpl_hdf5_write(const char *path, const cpl_tensor_entry *tensors, size_t count, cpl_error *err);

#endif
