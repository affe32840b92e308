/* hdf5.c: the one file that knows the HDF5 library. Files travel as images in memory: reading and atomic writing are
 * those of base/files.h, the library neither locks nor leaves half a file behind. */
#include "io/hdf5.h"

#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/str.h"

#ifdef CPL_HAVE_HDF5
#define H5_USE_110_API /* the names of 1.10, which all later ones have */
#include <hdf5.h>

struct cpl_hdf5 {
    cpl_arena *arena;
    cpl_tensor_entry *items;
    size_t count, capacity;
    cpl_error *err; /* of the walk, while it lasts */
    cpl_status status;
};

/* The library prints its own stack of errors; ours say what failed. */
typedef struct quiet {
    H5E_auto2_t function;
    void *user;
} quiet;

static quiet be_quiet(void)
{
    quiet q = {NULL, NULL};
    H5Eget_auto2(H5E_DEFAULT, &q.function, &q.user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return q;
}

static void be_loud(quiet q)
{
    H5Eset_auto2(H5E_DEFAULT, q.function, q.user);
}

/* ---- reading ---- */

enum { IMAGE_STEP = 1 << 20 };

static cpl_status shape_of(hid_t set, cpl_tensor_entry *t, cpl_error *err)
{
    hsize_t size[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int rank = H5Sget_simple_extent_ndims(space);
    if (rank >= 0 && rank <= CPL_TENSOR_RANK)
        H5Sget_simple_extent_dims(space, size, NULL);
    H5Sclose(space);
    if (rank < 0 || rank > CPL_TENSOR_RANK)
        CPL_FAIL(err, CPL_FAILED, "'%s' has %d dimensions, expected at most %d", t->name, rank, CPL_TENSOR_RANK);
    t->rank = rank;
    for (int i = 0; i < rank; i++)
        t->shape[i] = (int64_t)size[i];
    return CPL_OK;
}

/* The numbers of one data set. The size that the file claims is asked of the memory before anything is read. */
static cpl_status numbers_of(cpl_hdf5 *f, hid_t set, cpl_tensor_entry *t, cpl_error *err)
{
    hid_t type = H5Dget_type(set);
    int is_float = H5Tget_class(type) == H5T_FLOAT;
    H5Tclose(type);
    cpl_status status = shape_of(set, t, err);
    if (status != CPL_OK)
        return status;
    t->dtype = is_float ? CPL_DTYPE_F32 : CPL_DTYPE_I64;
    if (!is_float)
        return CPL_OK;
    uint64_t elements = 1;
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(elements, (uint64_t)t->shape[i], &elements) || elements > SIZE_MAX / sizeof(float))
            CPL_FAIL(err, CPL_FAILED, "'%s' claims more elements than a memory can hold", t->name);
    float *data = cpl_arena_alloc(f->arena, (size_t)elements * sizeof *data + 1);
    if (!data)
        CPL_FAIL(err, CPL_FAILED, "no memory for the %llu numbers of '%s'", (unsigned long long)elements, t->name);
    if (elements > 0 && H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        CPL_FAIL(err, CPL_FAILED, "'%s' cannot be read: the file is damaged, or packed by a filter that is missing",
                 t->name);
    t->data = data;
    return CPL_OK;
}

static cpl_status add(cpl_hdf5 *f, hid_t root, const char *name, cpl_error *err)
{
    if (cpl_grow(&f->items, &f->capacity, f->count + 1, sizeof *f->items))
        CPL_FAIL(err, CPL_FAILED, "no memory for the list of tensors");
    cpl_tensor_entry *t = &f->items[f->count];
    *t = (cpl_tensor_entry){.name = cpl_arena_strndup(f->arena, name, strlen(name))};
    if (!t->name)
        CPL_FAIL(err, CPL_FAILED, "no memory for the list of tensors");
    hid_t set = H5Dopen2(root, name, H5P_DEFAULT);
    if (set < 0)
        CPL_FAIL(err, CPL_FAILED, "'%s' cannot be opened", name);
    cpl_status status = numbers_of(f, set, t, err);
    H5Dclose(set);
    f->count += status == CPL_OK;
    return status;
}

static herr_t visit(hid_t root, const char *name, const H5O_info_t *info, void *file)
{
    cpl_hdf5 *f = file;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    f->status = add(f, root, name, f->err);
    return f->status == CPL_OK ? 0 : 1;
}

/* Opens the image; negative when it is none. */
static hid_t open_image(char *bytes, size_t length)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    if (H5Pset_fapl_core(access, IMAGE_STEP, 0) >= 0 && H5Pset_file_image(access, bytes, length) >= 0)
        file = H5Fopen("image", H5F_ACC_RDONLY, access);
    H5Pclose(access);
    return file;
}

static cpl_status walk(cpl_hdf5 *f, const char *path, cpl_error *err)
{
    char *bytes;
    size_t length = 0;
    cpl_status status = cpl_file_read(path, &bytes, &length, err);
    if (status != CPL_OK)
        return status;
    hid_t file = length > 0 ? open_image(bytes, length) : -1;
    cpl_release(bytes);
    if (file < 0)
        CPL_FAIL(err, CPL_FAILED, "'%s' is not an HDF5 file, or it is damaged (%zu bytes)", path, length);
    f->err = err;
    herr_t walked = H5Ovisit_by_name2(file, "/", H5_INDEX_NAME, H5_ITER_INC, visit, f, H5O_INFO_BASIC, H5P_DEFAULT);
    f->err = NULL;
    H5Fclose(file);
    if (f->status != CPL_OK)
        return cpl_error_context(err, f->status, "cannot read '%s'", path);
    if (walked < 0)
        CPL_FAIL(err, CPL_FAILED, "'%s' is damaged: its groups cannot be listed", path);
    return CPL_OK;
}

cpl_status cpl_hdf5_open(cpl_hdf5 **out, const char *path, cpl_error *err)
{
    cpl_hdf5 *f = cpl_alloc(1, sizeof *f);
    *out = NULL;
    if (!f || !(f->arena = cpl_arena_new(1 << 16))) {
        cpl_release(f);
        CPL_FAIL(err, CPL_FAILED, "no memory for reading '%s'", path);
    }
    quiet q = be_quiet();
    cpl_status status = walk(f, path, err);
    be_loud(q);
    if (status != CPL_OK) {
        cpl_hdf5_close(f);
        return status;
    }
    *out = f;
    return CPL_OK;
}

void cpl_hdf5_close(cpl_hdf5 *f)
{
    if (!f)
        return;
    cpl_arena_free(f->arena);
    cpl_release(f->items);
    cpl_release(f);
}

size_t cpl_hdf5_count(const cpl_hdf5 *f)
{
    return f->count;
}

const cpl_tensor_entry *cpl_hdf5_at(const cpl_hdf5 *f, size_t i)
{
    return &f->items[i];
}

/* ---- writing ---- */

static int put(hid_t file, const cpl_tensor_entry *t)
{
    hsize_t size[CPL_TENSOR_RANK];
    for (int i = 0; i < t->rank; i++)
        size[i] = (hsize_t)t->shape[i];
    hid_t groups = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(groups, 1);
    hid_t space = t->rank > 0 ? H5Screate_simple(t->rank, size, NULL) : H5Screate(H5S_SCALAR);
    hid_t set = H5Dcreate2(file, t->name, H5T_IEEE_F32LE, space, groups, H5P_DEFAULT, H5P_DEFAULT);
    int done = set >= 0 && H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->data) >= 0;
    if (set >= 0)
        H5Dclose(set);
    H5Sclose(space);
    H5Pclose(groups);
    return done;
}

/* The finished file as bytes; *image is the caller's to release. */
static cpl_status image_of(const cpl_tensor_entry *tensors, size_t count, char **image, size_t *length, cpl_error *err)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, IMAGE_STEP, 0);
    hid_t file = H5Fcreate("image", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    if (file < 0)
        CPL_FAIL(err, CPL_FAILED, "no memory for the file");
    cpl_status status = CPL_OK;
    for (size_t i = 0; i < count && status == CPL_OK; i++)
        if (!put(file, &tensors[i]))
            status = cpl_error_set(err, CPL_FAILED, "'%s' cannot be stored: no memory, or the name is taken",
                                   tensors[i].name);
    ssize_t size = status == CPL_OK && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 ? H5Fget_file_image(file, NULL, 0) : -1;
    *image = size > 0 ? cpl_alloc((size_t)size, 1) : NULL;
    if (status == CPL_OK && (!*image || H5Fget_file_image(file, *image, (size_t)size) != size))
        status = cpl_error_set(err, CPL_FAILED, "no memory for the file");
    H5Fclose(file);
    *length = (size_t)size;
    return status;
}

cpl_status cpl_hdf5_write(const char *path, const cpl_tensor_entry *tensors, size_t count, cpl_error *err)
{
    char *image = NULL;
    size_t length = 0;
    quiet q = be_quiet();
    cpl_status status = image_of(tensors, count, &image, &length, err);
    be_loud(q);
    if (status == CPL_OK)
        status = cpl_file_write(path, image, length, err);
    else
        status = cpl_error_context(err, status, "cannot write '%s'", path);
    cpl_release(image);
    return status;
}

#else

static cpl_status missing(cpl_error *err)
{
    CPL_FAIL(err, CPL_FAILED, "this build has no HDF5 (libhdf5 was missing when it was built)");
}

cpl_status cpl_hdf5_open(cpl_hdf5 **f, const char *path, cpl_error *err)
{
    *f = NULL;
    CPL_TRY(missing(err), err, "cannot read '%s'", path);
    return CPL_OK;
}

void cpl_hdf5_close(cpl_hdf5 *f)
{
    (void)f;
}

size_t cpl_hdf5_count(const cpl_hdf5 *f)
{
    (void)f;
    return 0;
}

const cpl_tensor_entry *cpl_hdf5_at(const cpl_hdf5 *f, size_t i)
{
    (void)f, (void)i;
    return NULL;
}

cpl_status cpl_hdf5_write(const char *path, const cpl_tensor_entry *tensors, size_t count, cpl_error *err)
{
    (void)tensors, (void)count;
    CPL_TRY(missing(err), err, "cannot write '%s'", path);
    return CPL_OK;
}
#endif
