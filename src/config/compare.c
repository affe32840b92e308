/* compare.c: which keys of two configurations differ, and whether a run may be resumed with the second. */
#include "config/table.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

void cpl_config_differences_free(cpl_config_differences *list)
{
    for (size_t i = 0; i < list->count; i++) {
        cpl_release(list->items[i].before);
        cpl_release(list->items[i].after);
    }
    cpl_release(list->items);
    *list = (cpl_config_differences){NULL, 0};
}

/* Adds key to the list when its two texts differ. */
static cpl_status compare_key(int key, const cpl_config *before, const cpl_config *after, cpl_config_differences *list,
                              cpl_error *err)
{
    cpl_str a = {0}, b = {0};
    cpl_status status = CPL_OK;
    cpl_str_add(&a, "");
    cpl_str_add(&b, "");
    cpl_config_text_of(before, key, &a);
    cpl_config_text_of(after, key, &b);
    cpl_config_difference *d = &list->items[list->count];
    if (a.failed || b.failed) {
        status = cpl_error_set(err, CPL_FAILED, "no memory for comparing configurations");
    } else if (strcmp(a.data == NULL ? "" : a.data, b.data == NULL ? "" : b.data) != 0) {
        cpl_config_key(key, d->key);
        d->allowed = cpl_config_resume_may_change(key);
        d->before = cpl_strdup(a.data == NULL ? "" : a.data);
        d->after = cpl_strdup(b.data == NULL ? "" : b.data);
        list->count++; /* from here on the list frees both */
        if (d->before == NULL || d->after == NULL)
            status = cpl_error_set(err, CPL_FAILED, "no memory for comparing configurations");
    }
    cpl_str_free(&a);
    cpl_str_free(&b);
    return status;
}

cpl_status cpl_config_compare(const cpl_config *before, const cpl_config *after, cpl_config_differences *list,
                              cpl_error *err)
{
    cpl_status status = CPL_OK;
    list->count = 0;
    list->items = cpl_alloc(CPL_CONFIG_KEYS, sizeof *list->items);
    if (list->items == NULL)
        CPL_FAIL(err, CPL_FAILED, "no memory for comparing configurations");
    for (int key = 0; key < CPL_CONFIG_KEYS && status == CPL_OK; key++)
        status = compare_key(key, before, after, list, err);
    if (status != CPL_OK)
        cpl_config_differences_free(list);
    return status;
}

cpl_status cpl_config_check_resume(const cpl_config *saved, const cpl_config *now, cpl_error *err)
{
    cpl_config_differences list;
    cpl_status status = cpl_config_compare(saved, now, &list, err);
    if (status != CPL_OK)
        return status;
    for (size_t i = 0; i < list.count && status == CPL_OK; i++) {
        const cpl_config_difference *d = &list.items[i];
        if (!d->allowed)
            status = cpl_error_set(err, CPL_USAGE,
                                   "'%s' was %s in the run and is now %s, which cannot change on resume" CPL_HINT
                                   "put the old value back, or start anew with --overwrite or another folder",
                                   d->key, d->before, d->after);
    }
    cpl_config_differences_free(&list);
    return status;
}
