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

static int in_part(const void *user, const char *name)
{
    const char *part = user;
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
        int ok = t && cpl_stored_fits(f, t, info);
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
        if (!in_part(part, t->name) || cpl_parameters_find(p, t->name) >= 0 || cpl_stored_is_scale(f, t->name))
            continue;
        wrong++;
        cpl_str_printf(table, "%-10s  %s ", "unused", t->name);
        add_sizes(table, t->shape, t->rank, NULL);
        cpl_str_add(table, "\n");
    }
    return wrong;
}

cpl_status cpl_model_file_load_part(const cpl_model_file *f, const char *part, cpl_parameters *p, cpl_str *table,
                                    cpl_error *err)
{
    int wrong = compare(f->tensors, part, p, table);
    int fitting = table->data && strncmp(table->data, "loaded", 6) == 0; /* nothing wrong: then all lines are */
    if (table->failed)
        CPL_FAIL(err, CPL_FAILED, "no memory for the table of tensors");
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
    if (!fitting)
        CPL_FAIL(err, CPL_USAGE, "neither the file nor the model has a part '%s'", part ? part : "");
    return cpl_stored_load(f->tensors, in_part, part, p, err);
}
