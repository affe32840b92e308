/* stored.c: see stored.h. */
#include "model/stored.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

static const char *const names[] = {
    [CPL_WEIGHT_FLOAT32] = "float32", [CPL_WEIGHT_BFLOAT16] = "bfloat16", [CPL_WEIGHT_INT8] = "int8"};

const char *cpl_weight_type_name(cpl_weight_type type)
{
    return names[type];
}

int cpl_weight_type_named(cpl_weight_type *type, const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) {
            *type = (cpl_weight_type)i;
            return 1;
        }
    return 0;
}

/* The scale beside bytes, or NULL. */
static const cpl_tensor_entry *scale_of(const cpl_tensor_file *f, const char *path)
{
    cpl_str name = {0};
    cpl_str_printf(&name, "%s" CPL_STORED_SCALE, path);
    const cpl_tensor_entry *t = name.failed ? NULL : cpl_tensor_file_find(f, name.data);
    cpl_str_free(&name);
    return t;
}

int cpl_stored_is_scale(const cpl_tensor_file *f, const char *name)
{
    size_t n = strlen(name), tail = strlen(CPL_STORED_SCALE);
    if (n <= tail || strcmp(name + n - tail, CPL_STORED_SCALE) != 0)
        return 0;
    char *path = cpl_strndup(name, n - tail);
    const cpl_tensor_entry *t = path ? cpl_tensor_file_find(f, path) : NULL;
    cpl_release(path);
    return t && t->dtype == CPL_DTYPE_I8;
}

static cpl_weight_type type_of(const cpl_tensor_entry *t)
{
    return t->dtype == CPL_DTYPE_I8 ? CPL_WEIGHT_INT8 : t->dtype == CPL_DTYPE_BF16 ? CPL_WEIGHT_BFLOAT16
                                                                                   : CPL_WEIGHT_FLOAT32;
}

int cpl_stored_fits(const cpl_tensor_file *f, const cpl_tensor_entry *t, const cpl_parameter_info *info)
{
    if (t->rank != info->rank)
        return 0;
    for (int i = 0; i < info->rank; i++)
        if (t->shape[i] != info->size[i])
            return 0;
    if (t->dtype == CPL_DTYPE_F32)
        return 1;
    if (type_of(t) == CPL_WEIGHT_FLOAT32 || !cpl_parameters_packable(info, type_of(t)))
        return 0;
    int rows = info->read_as == CPL_READ_ROWS;
    const cpl_tensor_entry *scale = t->dtype == CPL_DTYPE_I8 ? scale_of(f, info->path) : NULL;
    return t->dtype == CPL_DTYPE_BF16 || (scale && scale->dtype == CPL_DTYPE_F32 && scale->rank == 2 &&
                                          scale->shape[!rows] == info->size[!rows] && scale->shape[rows] == 1);
}

static void fill(const cpl_tensor_file *f, const cpl_tensor_entry *t, const cpl_parameter_info *info,
                 cpl_packed *packed)
{
    const cpl_tensor_entry *found = t->dtype == CPL_DTYPE_I8 ? scale_of(f, info->path) : NULL;
    const float *scale = found ? found->data : NULL;
    int rows = info->read_as == CPL_READ_ROWS;
    int64_t next = rows ? info->size[1] : 1, step = rows ? 1 : info->size[1];
    if (t->dtype == CPL_DTYPE_F32)
        cpl_packed_set_whole(packed, t->data);
    for (int64_t k = 0; k < packed->columns && t->dtype != CPL_DTYPE_F32; k++)
        cpl_packed_set(packed, k, (const char *)t->data + (size_t)(k * next) * cpl_dtype_bytes(t->dtype), step,
                       scale ? scale[k] : 0);
}

/* The parameter of tensor i, or −1. */
static int parameter_of(const cpl_tensor_entry *t, int (*wanted)(const void *user, const char *name),
                        const void *user, const cpl_parameters *p)
{
    return wanted(user, t->name) ? cpl_parameters_find(p, t->name) : -1;
}

static int is_packed(const cpl_tensor_entry *t, const cpl_parameters *p, int parameter)
{
    cpl_weight_type type = type_of(t);
    return type != CPL_WEIGHT_FLOAT32 ||
           (cpl_parameters_deferred(p) && cpl_parameters_packable(cpl_parameters_at(p, (size_t)parameter), type));
}

/* What is packed changes where the others stand, so it is filled first. */
cpl_status cpl_stored_load(const cpl_tensor_file *f, int (*wanted)(const void *user, const char *name),
                           const void *user, cpl_parameters *p, cpl_error *err)
{
    size_t count = cpl_tensor_file_count(f);
    for (size_t i = 0; i < count; i++) {
        const cpl_tensor_entry *t = cpl_tensor_file_at(f, i);
        int k = parameter_of(t, wanted, user, p);
        cpl_packed *packed;
        if (k < 0 || !is_packed(t, p, k))
            continue;
        cpl_status status = cpl_parameters_pack(p, (size_t)k, type_of(t), &packed, err);
        if (status != CPL_OK)
            return status;
        fill(f, t, cpl_parameters_at(p, (size_t)k), packed);
    }
    cpl_status status = cpl_parameters_settle(p, err);
    for (size_t i = 0; i < count && status == CPL_OK; i++) {
        const cpl_tensor_entry *t = cpl_tensor_file_at(f, i);
        int k = parameter_of(t, wanted, user, p);
        const cpl_parameter_info *info = k >= 0 ? cpl_parameters_at(p, (size_t)k) : NULL;
        if (info && !info->packed && info->elements > 0)
            memcpy(cpl_parameters_value(p, (size_t)k), t->data,
                   (size_t)info->elements * sizeof(real));
    }
    return status;
}
