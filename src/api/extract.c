/* extract.c: cpl_extract: a part of a model in a file of its own, with vocabularies and text rules. */
#include <string.h>
#include <sys/stat.h>

#include "api/model.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"

char *cpl_model_path(const char *path)
{
    struct stat what;
    if (stat(path, &what) == 0 && S_ISDIR(what.st_mode))
        return cpl_path_join(path, "model.safetensors");
    return cpl_strdup(path);
}

typedef struct extraction {
    cpl_tensor_entry *tensors;
    cpl_metadata_entry *metadata;
    size_t tensor_count, metadata_count;
} extraction;

static cpl_status no_such_part(const cpl_model_file *f, const char *part, cpl_error *err)
{
    const char *names[256];
    char layers[256][100], shown[120];
    size_t n = 0;
    for (size_t i = 0; i < cpl_tensor_file_count(f->tensors) && n + 8 < 256; i++) {
        const char *name = cpl_tensor_file_at(f->tensors, i)->name;
        for (const char *dot = strchr(name, '.'); dot && n < 256; dot = strchr(dot + 1, '.')) {
            snprintf(layers[n], sizeof layers[n], "%.*s", (int)(dot - name), name);
            names[n] = layers[n];
            n++;
        }
    }
    const char *near = cpl_nearest(part, names, n);
    cpl_escape(shown, sizeof shown, part, strlen(part));
    if (near)
        CPL_FAIL(err, CPL_USAGE, "the model has no part '%s'" CPL_HINT "did you mean '%s'?", shown, near);
    CPL_FAIL(err, CPL_USAGE, "the model has no part '%s'" CPL_HINT "couplet inspect lists its tensors", shown);
}

/* The optimizer's state and the state of a run are no part of a model. */
static cpl_status choose(const cpl_model_file *f, const char *part, extraction *x, cpl_error *err)
{
    size_t tensors = cpl_tensor_file_count(f->tensors), entries = cpl_tensor_file_metadata_count(f->tensors);
    x->tensors = cpl_alloc(tensors + 1, sizeof *x->tensors);
    x->metadata = cpl_alloc(entries + 1, sizeof *x->metadata);
    if (!x->tensors || !x->metadata)
        CPL_FAIL(err, CPL_FAILED, "no memory for %zu tensors", tensors);
    for (size_t i = 0; i < tensors; i++) {
        const cpl_tensor_entry *t = cpl_tensor_file_at(f->tensors, i);
        if (strncmp(t->name, "optimizer.", 10) != 0 && cpl_path_matches(part, t->name))
            x->tensors[x->tensor_count++] = *t;
    }
    for (size_t i = 0; i < entries; i++) {
        cpl_metadata_entry e = cpl_tensor_file_metadata_at(f->tensors, i);
        if (strcmp(e.key, "checksum") != 0 && strcmp(e.key, "state") != 0 && strcmp(e.key, "part") != 0)
            x->metadata[x->metadata_count++] = e;
    }
    x->metadata[x->metadata_count++] = (cpl_metadata_entry){.key = "part", .value = part, .length = strlen(part)};
    return x->tensor_count > 0 ? CPL_OK : no_such_part(f, part, err);
}

cpl_status cpl_extract(const char *model, const char *part, const char *output, cpl_error *err)
{
    cpl_model_file *f = NULL;
    extraction x = {0};
    char *path = cpl_model_path(model);
    cpl_status status = path ? cpl_model_file_open(&f, path, err) : cpl_error_set(err, CPL_FAILED, "out of memory");
    if (status == CPL_OK)
        status = choose(f, part, &x, err);
    cpl_tensor_set set = {x.tensors, x.tensor_count, x.metadata, x.metadata_count};
    if (status == CPL_OK)
        status = cpl_tensor_file_write(output, &set, err);
    cpl_release(x.tensors);
    cpl_release(x.metadata);
    cpl_model_file_close(f);
    cpl_release(path);
    if (status != CPL_OK)
        return cpl_error_context(err, status, "cannot extract '%s' from '%s'", part, model);
    return CPL_OK;
}
