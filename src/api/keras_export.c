/* keras_export.c: couplet export keras: the table of keras_names.c the other way round. */
#include <string.h>

#include "api/keras.h"
#include "api/model.h"
#include "base/error.h"
#include "base/memory.h"

/* The entry of that name among the first n, or one more. */
static cpl_tensor_entry *entry_of(cpl_tensor_entry *entries, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return &entries[(*n)++];
}

static cpl_status add(const cpl_model *m, size_t i, cpl_arena *arena, cpl_tensor_entry *entries, size_t *n,
                      cpl_error *err)
{
    const cpl_parameters *p = m->engine->parameters;
    const cpl_parameter_info *info = cpl_parameters_at(p, i);
    const float *values = cpl_tensor_file_find(m->file->tensors, info->path)->data; /* the engine's are packed */
    cpl_keras_tensor t;
    if (!cpl_keras_place(m->file->config, p, i, 0, &t))
        CPL_FAIL(err, CPL_FAILED, "'%s' has no place in Keras's files", info->path);
    cpl_tensor_entry *e = entry_of(entries, n, t.name);
    if (!e->name) {
        e->name = cpl_arena_strndup(arena, t.name, strlen(t.name));
        e->dtype = CPL_DTYPE_F32;
        e->rank = t.rank;
        memcpy(e->shape, t.shape, sizeof t.shape);
        e->data = t.row < 0 ? values : cpl_arena_alloc(arena, 2 * (size_t)info->elements * sizeof(float));
    }
    if (!e->name || !e->data)
        CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", t.name);
    if (t.row >= 0) {
        float *rows = (float *)(uintptr_t)e->data; /* the arena's, made above */
        memcpy(rows + t.row * info->elements, values, (size_t)info->elements * sizeof(float));
    }
    return CPL_OK;
}

static cpl_status write_weights(const cpl_model *m, const char *path, cpl_error *err)
{
    size_t count = cpl_parameters_count(m->engine->parameters), n = 0;
    cpl_arena *arena = cpl_arena_new(1 << 12);
    cpl_tensor_entry *entries = cpl_alloc(count, sizeof *entries);
    cpl_status status = CPL_OK;
    if (!arena || !entries)
        status = cpl_error_set(err, CPL_FAILED, "no memory for the list of tensors");
    for (size_t i = 0; i < count && status == CPL_OK; i++)
        status = add(m, i, arena, entries, &n, err);
    if (status == CPL_OK)
        status = cpl_hdf5_write(path, entries, n, err);
    cpl_arena_free(arena);
    cpl_release(entries);
    return status;
}

cpl_status cpl_export_keras(const cpl_keras_export_options *o, cpl_error *err)
{
    cpl_model *m;
    if (!o->model || !o->output)
        CPL_FAIL(err, CPL_USAGE, "export needs a model and a name for the weights");
    size_t n = strlen(o->output);
    if (n < 11 || strcmp(o->output + n - 11, ".weights.h5") != 0)
        CPL_FAIL(err, CPL_USAGE, "'%s' does not end in .weights.h5, by which Keras knows such a file", o->output);
    CPL_TRY(cpl_model_open(&m, o->model, 1, err), err, "cannot read the model");
    cpl_status status = cpl_model_whole(m, err);
    if (status == CPL_OK)
        status = cpl_model_file_need_float32(m->file, o->model, "an export", err);
    if (status == CPL_OK)
        status = cpl_keras_check(m->file->config, err);
    if (status == CPL_OK)
        status = write_weights(m, o->output, err);
    if (status == CPL_OK && o->source_vocabulary)
        status = cpl_vocabulary_write(m->file->source, o->source_vocabulary, err);
    if (status == CPL_OK && o->target_vocabulary)
        status = cpl_vocabulary_write(m->file->target, o->target_vocabulary, err);
    cpl_model_close(m);
    return status;
}
