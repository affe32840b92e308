/* part.c: loading a part of a model by path (cases H01, H02, H08): names and shapes must agree on both sides, never the
 * order; what became of each tensor is told in a table. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/model_file.h"

static void add_sizes(cpl_str *to, const int64_t *size, int rank, const char *const *dim)
{
    cpl_str_add(to, "[");
    for (int i = 0; i < rank; i++)
        cpl_str_printf(to, "%s%s%s%" PRId64, i ? " " : "", dim ? dim[i] : "", dim ? "=" : "", size[i]);
    cpl_str_add(to, "]");
}

static int fits(const cpl_tensor_entry *t, const cpl_parameter_info *info)
{
    int same = t->rank == info->rank && t->dtype == CPL_DTYPE_F32;
    for (int i = 0; same && i < info->rank; i++)
        same = t->shape[i] == info->size[i];
    return same;
}

static int in_part(const char *part, const char *name)
{
    return strncmp(name, "optimizer.", 10) != 0 && (!part || cpl_path_matches(part, name));
}

/* One line for each tensor of the part, on either side. Returns how many do not fit. */
static int compare(const cpl_tensor_file *f, const char *part, const cpl_parameters *p, cpl_str *table)
{
    int wrong = 0;
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(p, i);
        const cpl_tensor_entry *t = cpl_tensor_file_find(f, info->path);
        if (!in_part(part, info->path))
            continue;
        int ok = t && fits(t, info);
        wrong += !ok;
        cpl_str_printf(table, "%-10s  %s ", ok ? "loaded" : t ? "mismatched" : "missing", info->path);
        add_sizes(table, info->size, info->rank, info->dim);
        if (t && !ok) {
            cpl_str_add(table, ", in the file ");
            add_sizes(table, t->shape, t->rank, t->rank == info->rank ? info->dim : NULL);
        }
        cpl_str_add(table, "\n");
    }
    for (size_t i = 0; i < cpl_tensor_file_count(f); i++) {
        const cpl_tensor_entry *t = cpl_tensor_file_at(f, i);
        if (!in_part(part, t->name) || cpl_parameters_find(p, t->name) >= 0)
            continue;
        wrong++;
        cpl_str_printf(table, "%-10s  %s ", "unused", t->name);
        add_sizes(table, t->shape, t->rank, NULL);
        cpl_str_add(table, "\n");
    }
    return wrong;
}

cpl_status cpl_model_file_load_part(const cpl_model_file *f, const char *part, const cpl_parameters *p,
                                    cpl_str *table, cpl_error *err)
{
    int wrong = compare(f->tensors, part, p, table), loaded = 0;
    if (table->failed)
        CPL_FAIL(err, CPL_FAILED, "no memory for the table of tensors");
    for (size_t i = 0; i < cpl_tensor_file_count(f->tensors) && wrong == 0; i++) {
        const cpl_tensor_entry *t = cpl_tensor_file_at(f->tensors, i);
        int k = in_part(part, t->name) ? cpl_parameters_find(p, t->name) : -1;
        if (k < 0)
            continue;
        memcpy(cpl_parameters_value(p, (size_t)k), t->data,
               (size_t)cpl_parameters_at(p, (size_t)k)->elements * sizeof(real));
        loaded++;
    }
    if (wrong > 0) {
        /* one entry of the error for each line that is no "loaded" */
        cpl_str list = {0};
        for (const char *line = table->data, *end; line && (end = strchr(line, '\n')); line = end + 1)
            if (strncmp(line, "loaded", 6) != 0 && list.length < 300)
                cpl_str_printf(&list, "%s%.*s %.*s", list.length ? "; " : "", (int)strcspn(line, " "), line,
                               (int)(end - line - 12), line + 12);
        cpl_error_set(err, CPL_USAGE, "%d of its tensors do not fit: %s", wrong, list.data ? list.data : "");
        cpl_str_free(&list);
        return CPL_USAGE;
    }
    if (loaded == 0)
        CPL_FAIL(err, CPL_USAGE, "neither the file nor the model has a part '%s'", part ? part : "");
    return CPL_OK;
}
