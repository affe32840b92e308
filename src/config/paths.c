/* paths.c: the value of training.freeze: a path or a list of paths; and the way back to text and JSON. */
#include <string.h>

#include "base/error.h"
#include "config/value.h"

static cpl_status add(cpl_config *c, const char *name, const char *text, cpl_config_paths *paths, cpl_error *err)
{
    const char **items = cpl_arena_alloc(c->arena, (paths->count + 1) * sizeof *items);
    if (items)
        for (size_t i = 0; i < paths->count; i++)
            items[i] = paths->items[i];
    if (!items || !(items[paths->count] = cpl_arena_strndup(c->arena, text, strlen(text))))
        CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", name);
    *paths = (cpl_config_paths){items, paths->count + 1};
    return CPL_OK;
}

cpl_status cpl_paths_parse(cpl_config *c, const char *name, const cpl_value *v, cpl_config_paths *paths,
                           cpl_error *err)
{
    char shown[128];
    cpl_config_paths made = {NULL, 0};
    for (const cpl_value *item = v->kind == CPL_VALUE_LIST ? v->first : v; item; item = item->next) {
        if (item->kind != CPL_VALUE_TEXT || !item->text[0])
            CPL_FAIL(err, CPL_USAGE, "'%s' got %s, expected a path such as encoder, or a list of paths", name,
                     cpl_value_shown(item, shown, sizeof shown));
        cpl_status status = add(c, name, item->text, &made, err);
        if (status != CPL_OK)
            return status;
        if (v->kind != CPL_VALUE_LIST)
            break;
    }
    *paths = made;
    return CPL_OK;
}

cpl_status cpl_config_add_path(cpl_config *c, const char *key, const char *path, cpl_error *err)
{
    int number = cpl_config_find(key);
    const cpl_option_group *group;
    const cpl_option *o = cpl_option_at(number, &group);
    if (!path[0])
        CPL_FAIL(err, CPL_USAGE, "'%s' got nothing, expected a path such as encoder", key);
    c->origin[number] = -1;
    return add(c, key, path, (void *)((char *)c + group->offset + o->offset), err);
}

void cpl_paths_text(const cpl_config_paths *paths, cpl_str *to)
{
    cpl_str_add(to, "[");
    for (size_t i = 0; i < paths->count; i++)
        cpl_str_printf(to, "%s%s", i ? ", " : "", paths->items[i]);
    cpl_str_add(to, "]");
}

cpl_json *cpl_paths_json(const cpl_config_paths *paths)
{
    cpl_json *array = cpl_json_array();
    for (size_t i = 0; i < paths->count; i++)
        cpl_json_add_text(array, paths->items[i], strlen(paths->items[i]));
    return array;
}
