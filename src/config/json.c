/* json.c: a configuration as JSON (stored in the model file) and back. */
#include "config/value.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

/* ---- to JSON ---- */

static cpl_json *group_json(const cpl_config *c, const char *prefix);

/* Numbers as JSON numbers, truths as JSON truths, everything else as it is written in YAML. */
static void key_json(const cpl_config *c, int key, cpl_json *object)
{
    const cpl_option *o = cpl_option_at(key, NULL);
    const void *field = cpl_option_value(c, key);
    const cpl_config_files *files = field; /* only looked at where it is one */
    cpl_str text = {0};
    if (o->kind == CPL_OPTION_INTEGER) {
        cpl_json_set_int(object, o->name, *(const int64_t *)field);
    } else if (o->kind == CPL_OPTION_REAL) {
        cpl_json_set_real(object, o->name, *(const double *)field, cpl_real_digits(*(const double *)field));
    } else if (o->kind == CPL_OPTION_BOOLEAN) {
        cpl_json_set_bool(object, o->name, *(const int *)field);
    } else if ((o->kind == CPL_OPTION_FILES || o->kind == CPL_OPTION_VALID) && files->count > 0) {
        cpl_json_set(object, o->name, cpl_files_json(files));
    } else if (o->kind == CPL_OPTION_PARTS && cpl_parts_are_named(field)) {
        cpl_json_set(object, o->name, cpl_parts_json(field));
    } else if (o->kind == CPL_OPTION_PATHS) {
        cpl_json_set(object, o->name, cpl_paths_json(field));
    } else {
        cpl_config_text_of(c, key, &text);
        if (text.length > 0)
            cpl_json_set_text(object, o->name, text.data);
    }
    cpl_str_free(&text);
}

static void keys_json(const cpl_config *c, const cpl_option_group *group, cpl_json *object)
{
    char path[CPL_CONFIG_KEY_SIZE];
    for (int i = 0; i < group->count; i++) {
        int on = cpl_option_is_group(cpl_config_key(group->first + i, path)) &&
                 *(const int *)cpl_option_value(c, group->first + i);
        if (!on) /* early_stopping that is on is written as its group */
            key_json(c, group->first + i, object);
    }
}

/* A group whose switch (the key of the same name) is off is left out: the switch stands there as false. */
static int switched_off(const cpl_config *c, const char *prefix)
{
    int key = cpl_config_find(prefix);
    return key >= 0 && !*(const int *)cpl_option_value(c, key);
}

/* The object of all that lies under a prefix ("" is everything); children are filled before they are added. */
static cpl_json *group_json(const cpl_config *c, const char *prefix)
{
    cpl_json *object = cpl_json_object();
    size_t n = strlen(prefix);
    for (int g = 0; object != NULL && g < CPL_OPTION_GROUP_COUNT; g++) {
        const cpl_option_group *group = cpl_option_group_at(g);
        const char *rest = group->prefix + (n == 0 ? 0 : n + 1);
        if (strcmp(group->prefix, prefix) == 0) {
            keys_json(c, group, object);
        } else if ((n == 0 || (strncmp(group->prefix, prefix, n) == 0 && group->prefix[n] == '.')) &&
                   strchr(rest, '.') == NULL && !switched_off(c, group->prefix)) {
            cpl_json_set(object, rest, group_json(c, group->prefix));
        }
    }
    return object;
}

cpl_json *cpl_config_to_json(const cpl_config *c)
{
    return group_json(c, "");
}

/* ---- from JSON ---- */

static cpl_value *from_json(cpl_arena *arena, const cpl_json *json);

/* JSON numbers become the text that the option's parser reads. */
static const char *scalar_text(cpl_arena *arena, const cpl_json *json)
{
    size_t length = 0;
    const char *text = cpl_json_text(json, &length);
    double real = cpl_json_real(json, 0);
    switch (cpl_json_what(json)) {
    case CPL_JSON_TEXT: return cpl_arena_strndup(arena, text, length);
    case CPL_JSON_INT: return cpl_arena_printf(arena, "%" PRId64, cpl_json_int(json, 0));
    case CPL_JSON_REAL: return cpl_arena_printf(arena, "%.*g", cpl_real_digits(real), real);
    case CPL_JSON_BOOL: return cpl_json_bool(json, 0) ? "true" : "false";
    default: return "";
    }
}

static int children_from_json(cpl_arena *arena, const cpl_json *json, cpl_value *v)
{
    cpl_value **last = &v->first;
    for (size_t i = 0; i < cpl_json_size(json); i++) {
        const cpl_json *item = v->kind == CPL_VALUE_LIST ? cpl_json_at(json, i) : NULL;
        const char *key = v->kind == CPL_VALUE_LIST ? NULL : cpl_json_key(json, i, &item);
        cpl_value *child = from_json(arena, item);
        if (child == NULL)
            return -1;
        child->key = key == NULL ? NULL : cpl_arena_strndup(arena, key, strlen(key));
        if (key != NULL && child->key == NULL)
            return -1;
        *last = child;
        last = &child->next;
    }
    return 0;
}

static cpl_value *from_json(cpl_arena *arena, const cpl_json *json)
{
    cpl_value *v = cpl_arena_alloc(arena, sizeof *v);
    cpl_json_kind what = cpl_json_what(json);
    if (v == NULL)
        return NULL;
    v->kind = what == CPL_JSON_ARRAY    ? CPL_VALUE_LIST
              : what == CPL_JSON_OBJECT ? CPL_VALUE_GROUP
              : what == CPL_JSON_NULL   ? CPL_VALUE_NULL
                                        : CPL_VALUE_TEXT;
    if (what == CPL_JSON_ARRAY || what == CPL_JSON_OBJECT)
        return children_from_json(arena, json, v) ? NULL : v;
    v->text = scalar_text(arena, json);
    return v->text == NULL ? NULL : v;
}

/* ---- keys that have moved ---- */

/* Takes the value at a dotted path out of the tree; NULL: there is none. */
static cpl_value *take(cpl_value *group, const char *path)
{
    size_t n = strcspn(path, ".");
    for (cpl_value **at = &group->first; *at; at = &(*at)->next) {
        cpl_value *v = *at;
        if (strlen(v->key) != n || strncmp(v->key, path, n) != 0)
            continue;
        if (path[n] == '.')
            return v->kind == CPL_VALUE_GROUP ? take(v, path + n + 1) : NULL;
        *at = v->next;
        return v;
    }
    return NULL;
}

/* Values under names that they had before go where they belong now. */
static cpl_status assign_moved(cpl_config *c, cpl_value *root, cpl_error *err)
{
    cpl_status status = CPL_OK;
    const char *old, *key;
    for (int i = 0; root->kind == CPL_VALUE_GROUP && (old = cpl_option_move(i, &key)) && status == CPL_OK; i++) {
        const cpl_value *v = take(root, old);
        if (v)
            status = cpl_value_assign(c, key, v, NULL, err);
    }
    return status;
}

cpl_status cpl_config_from_json(cpl_config **c, const cpl_json *object, cpl_error *err)
{
    cpl_status status = cpl_config_default(c, err);
    if (status != CPL_OK)
        return status;
    cpl_value *root = from_json((*c)->arena, object);
    if (root == NULL)
        status = cpl_error_set(err, CPL_FAILED, "no memory for the configuration");
    else
        status = assign_moved(*c, root, err);
    if (status == CPL_OK)
        status = cpl_value_assign(*c, "", root, NULL, err);
    if (status != CPL_OK) {
        cpl_config_free(*c);
        *c = NULL;
    }
    return status;
}
