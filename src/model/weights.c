/* weights.c: the parameters of a program that is no model of ours, in a file and back: safetensors under their paths,
 * matched by name, all of them or none. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/program.h"
#include "io/io.h"
#include "model/model_file.h"

static const cpl_metadata_entry format = {.key = "format", .value = "couplet.weights", .length = 15};

cpl_status cpl_save_weights(const cpl_program *p, const char *path, cpl_error *err)
{
    const cpl_parameters *store = p->engine->parameters;
    size_t count = cpl_parameters_count(store);
    cpl_tensor_entry *tensors = cpl_alloc(count + 1, sizeof *tensors);
    if (!tensors)
        CPL_FAIL(err, CPL_FAILED, "out of memory while saving '%s'", p->name);
    for (size_t i = 0; i < count; i++) {
        const cpl_parameter_info *info = cpl_parameters_at(store, i);
        tensors[i] = (cpl_tensor_entry){.name = info->path, .dtype = CPL_DTYPE_F32, .rank = info->rank,
                                        .data = cpl_parameters_value(store, i)};
        for (int k = 0; k < info->rank; k++)
            tensors[i].shape[k] = info->size[k];
    }
    cpl_tensor_set set = {.tensors = tensors, .tensor_count = count, .metadata = &format, .metadata_count = 1};
    cpl_status status = cpl_tensor_file_write(path, &set, err);
    cpl_release(tensors);
    CPL_TRY(status, err, "cannot save the weights of '%s'", p->name);
    return CPL_OK;
}

cpl_status cpl_load_weights(cpl_program *p, const char *path, cpl_error *err)
{
    cpl_tensor_file *f;
    const cpl_parameters *store = p->engine->parameters;
    CPL_TRY(cpl_tensor_file_open(&f, path, err), err, "cannot load the weights of '%s'", p->name);
    cpl_status status = cpl_model_file_load_block(f, "", store, NULL, cpl_parameters_values(store), err);
    cpl_tensor_file_close(f);
    CPL_TRY(status, err, "cannot load '%s' into '%s'", path, p->name);
    return CPL_OK;
}
