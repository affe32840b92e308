/* parts.c: the value of training.init: FILE for a whole model, or {part: FILE, …}; and back to text and JSON. */
#include <string.h>

#include "base/error.h"
#include "config/value.h"

static cpl_status add(cpl_config *c, const char *name, const cpl_config_part *item, cpl_config_parts *parts,
                      cpl_error *err)
{
    cpl_config_part *items = cpl_arena_alloc(c->arena, (parts->count + 1) * sizeof *items);
    if (!items)
        CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", name);
    for (size_t i = 0; i < parts->count; i++)
        items[i] = parts->items[i];
    cpl_config_part *to = &items[parts->count];
    to->part = item->part ? cpl_arena_strndup(c->arena, item->part, strlen(item->part)) : NULL;
    to->written = cpl_arena_strndup(c->arena, item->written, strlen(item->written));
    to->path = cpl_arena_strndup(c->arena, item->path, strlen(item->path));
    if (!to->written || !to->path || (item->part && !to->part))
        CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", name);
    *parts = (cpl_config_parts){items, parts->count + 1};
    return CPL_OK;
}

static cpl_status add_file(cpl_config *c, const char *name, const char *part, const cpl_value *v,
                           cpl_config_parts *parts, cpl_error *err)
{
    char shown[128];
    if (v->kind != CPL_VALUE_TEXT || !v->text[0])
        CPL_FAIL(err, CPL_USAGE, "'%s' got %s, expected a model's FILE, or {encoder: FILE}", name,
                 cpl_value_shown(v, shown, sizeof shown));
    int as_is = v->text[0] == '/' || strcmp(c->folder, ".") == 0;
    const char *path = as_is ? v->text : cpl_arena_printf(c->arena, "%s/%s", c->folder, v->text);
    if (!path)
        CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", name);
    return add(c, name, &(cpl_config_part){part, v->text, path}, parts, err);
}

cpl_status cpl_parts_parse(cpl_config *c, const char *name, const cpl_value *v, cpl_config_parts *parts,
                           cpl_error *err)
{
    cpl_config_parts made = {NULL, 0};
    cpl_status status = CPL_OK;
    if (v->kind != CPL_VALUE_GROUP)
        status = add_file(c, name, NULL, v, &made, err);
    for (const cpl_value *item = v->kind == CPL_VALUE_GROUP ? v->first : NULL; item && status == CPL_OK;
         item = item->next)
        status = add_file(c, name, item->key, item, &made, err);
    if (status == CPL_OK)
        *parts = made;
    return status;
}

cpl_status cpl_config_add_part(cpl_config *c, const char *part, const char *path, cpl_error *err)
{
    int number = cpl_config_find("training.init");
    c->origin[number] = -1;
    return add(c, "training.init", &(cpl_config_part){part, path, path}, &c->training.init, err);
}

int cpl_parts_are_named(const cpl_config_parts *parts)
{
    return parts->count != 1 || parts->items[0].part;
}

void cpl_parts_text(const cpl_config_parts *parts, cpl_str *to)
{
    if (!cpl_parts_are_named(parts)) {
        cpl_str_add(to, parts->items[0].written);
        return;
    }
    cpl_str_add(to, "{");
    for (size_t i = 0; i < parts->count; i++)
        cpl_str_printf(to, "%s%s: %s", i ? ", " : "", parts->items[i].part, parts->items[i].written);
    cpl_str_add(to, "}");
}

cpl_json *cpl_parts_json(const cpl_config_parts *parts)
{
    cpl_json *object = cpl_json_object();
    for (size_t i = 0; i < parts->count; i++)
        cpl_json_set_text(object, parts->items[i].part, parts->items[i].written);
    return object;
}
