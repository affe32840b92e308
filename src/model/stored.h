/* stored.h: how a parameter stands in a model's file: float32, or in a lower type that `couplet quantize` wrote.
 *
 * A tensor of type F32 or BF16 stands for itself. One of type I8 is bytes −127 … 127; "<path>.scale" (F32) beside it
 * has what they are multiplied with: [1 columns] for the right operand of products, [rows 1] for a table (an
 * embedding, and a projection that is tied to it), so that byte · scale, broadcast as in NumPy, gives the weights. */
#ifndef CPL_MODEL_STORED_H
#define CPL_MODEL_STORED_H

#include "graph/parameters.h"
#include "io/io.h"

#define CPL_STORED_SCALE ".scale"

/* "float32", "bfloat16", "int8" */
const char *cpl_weight_type_name(cpl_weight_type type);
int cpl_weight_type_named(cpl_weight_type *type, const char *name);

/* 1 when tensor t of the file can become the parameter: its shape, and a type in which the parameter may be. */
int cpl_stored_fits(const cpl_tensor_file *f, const cpl_tensor_entry *t, const cpl_parameter_info *info);
/* 1 for "<path>.scale" beside bytes: no parameter of its own. */
int cpl_stored_is_scale(const cpl_tensor_file *f, const char *name);
/* Loads all tensors that are parameters and for which wanted(user, name) says 1. They must fit. Into parameters that
 * were deferred, for inference, float32 is packed as well where products alone read it. */
cpl_status cpl_stored_load(const cpl_tensor_file *f, int (*wanted)(const void *user, const char *name),
                           const void *user, cpl_parameters *p, cpl_error *err);

#endif
