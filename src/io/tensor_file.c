/* tensor_file.c: opening, closing and asking; the checks are in tensor_read.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/str.h"
#include "io/io.h"
#include "io/tensor_parts.h"

/* The file does not own bytes yet: on failure the caller still has them to unmap. */
static cpl_status open_bytes(cpl_tensor_file **f, const char *name, const uint8_t *bytes, size_t length, cpl_error *err)
{
    *f = NULL;
    if (!cpl_json_available())
        CPL_FAIL(err, CPL_FAILED, "cannot read '%s': this build has no JSON library (Jansson was missing when it was "
                 "built)", name);
    cpl_tensor_file *file = cpl_alloc(1, sizeof *file);
    if (!file)
        CPL_FAIL(err, CPL_FAILED, "no memory for reading '%s'", name);
    file->bytes = bytes;
    file->length = length;
    cpl_status status = cpl_tensor_file_check(file, err);
    if (status != CPL_OK) {
        cpl_tensor_file_close(file);
        if (err)
            err->status = CPL_FAILED; /* a JSON error would count as the user's */
        return cpl_error_context(err, CPL_FAILED, "'%s' is damaged or not a tensor file", name);
    }
    *f = file;
    return CPL_OK;
}

cpl_status cpl_tensor_file_parse(cpl_tensor_file **f, const char *name, const uint8_t *bytes, size_t length,
                                 cpl_error *err)
{
    return open_bytes(f, name, bytes, length, err);
}

cpl_status cpl_tensor_file_open(cpl_tensor_file **f, const char *path, cpl_error *err)
{
    const uint8_t *bytes;
    size_t length;
    *f = NULL;
    CPL_TRY(cpl_file_map(path, &bytes, &length, err), err, "cannot open '%s'", path);
    cpl_status status = open_bytes(f, path, bytes, length, err);
    if (status != CPL_OK) {
        cpl_file_unmap(bytes, length);
        return status;
    }
    (*f)->mapped = bytes;
    return CPL_OK;
}

void cpl_tensor_file_close(cpl_tensor_file *f)
{
    if (!f)
        return;
    cpl_json_free(f->header);
    cpl_map_free(f->by_name);
    cpl_release(f->tensors);
    cpl_release(f->order);
    if (f->mapped)
        cpl_file_unmap(f->mapped, f->length);
    cpl_release(f);
}

int cpl_tensor_file_verified(const cpl_tensor_file *f)
{
    return f->verified;
}

size_t cpl_tensor_file_count(const cpl_tensor_file *f)
{
    return f->count;
}

const cpl_tensor_entry *cpl_tensor_file_at(const cpl_tensor_file *f, size_t i)
{
    return i < f->count ? &f->tensors[i] : NULL;
}

const cpl_tensor_entry *cpl_tensor_file_find(const cpl_tensor_file *f, const char *name)
{
    const int64_t *i = cpl_map_find(f->by_name, name, strlen(name));
    return i ? &f->tensors[*i] : NULL;
}

size_t cpl_tensor_file_metadata_count(const cpl_tensor_file *f)
{
    return cpl_json_size(f->metadata);
}

cpl_metadata_entry cpl_tensor_file_metadata_at(const cpl_tensor_file *f, size_t i)
{
    cpl_metadata_entry entry = {0};
    const cpl_json *value = NULL;
    entry.key = cpl_json_key(f->metadata, i, &value);
    entry.value = cpl_json_text(value, &entry.length);
    return entry;
}

const char *cpl_tensor_file_metadata(const cpl_tensor_file *f, const char *key, size_t *length)
{
    return cpl_json_text(cpl_json_get(f->metadata, key), length);
}

/* Written back, the number must give the same text: that refuses spaces, signs, zeros in front and overflow. */
cpl_status cpl_tensor_file_metadata_int(const cpl_tensor_file *f, const char *key, int64_t *value, cpl_error *err)
{
    const char *text = cpl_tensor_file_metadata(f, key, NULL);
    if (!text)
        CPL_FAIL(err, CPL_FAILED, "the metadata has no '%s'", key);
    char shown[80], again[32];
    *value = strtoll(text, NULL, 10);
    snprintf(again, sizeof again, "%" PRId64, *value);
    if (strcmp(again, text) != 0)
        CPL_FAIL(err, CPL_FAILED, "metadata '%s' is '%s', expected a whole number", key,
                 cpl_escape(shown, sizeof shown, text, strlen(text)));
    return CPL_OK;
}
