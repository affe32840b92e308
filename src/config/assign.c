/* assign.c: puts a tree of values into a configuration, key by key, and makes new configurations. */
#include "config/value.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"

enum { PATH_SIZE = 256 };

/* ---- making one ---- */

/* Defaults go through the same parser as a user's text, so the table is checked whenever a configuration is made. */
static cpl_status set_defaults(cpl_config *c, cpl_error *err)
{
    for (int key = 0; key < CPL_CONFIG_KEYS; key++) {
        const char *fallback = cpl_option_at(key, NULL)->fallback;
        cpl_value v = {CPL_VALUE_TEXT, fallback, NULL, 0, NULL, NULL};
        cpl_status status = fallback[0] == '\0' ? CPL_OK : cpl_option_parse(c, key, &v, err);
        if (status != CPL_OK)
            return status;
    }
    return CPL_OK;
}

static cpl_status make(cpl_config **c, const char *path, cpl_error *err)
{
    cpl_status status = CPL_OK;
    char *folder = path == NULL || strcmp(path, "-") == 0 ? cpl_strdup(".") : cpl_path_folder(path);
    cpl_config *made = cpl_alloc(1, sizeof *made);
    cpl_arena *arena = cpl_arena_new(4096);
    if (made != NULL && arena != NULL && folder != NULL) {
        made->arena = arena;
        made->folder = cpl_arena_strndup(arena, folder, strlen(folder));
        made->path = path == NULL ? NULL : cpl_arena_strndup(arena, path, strlen(path));
    }
    if (made == NULL || made->folder == NULL || (path != NULL && made->path == NULL))
        status = cpl_error_set(err, CPL_FAILED, "no memory for the configuration");
    else
        status = set_defaults(made, err);
    cpl_release(folder);
    if (status == CPL_OK) {
        *c = made;
        return CPL_OK;
    }
    cpl_arena_free(arena);
    cpl_release(made);
    *c = NULL;
    return status;
}

cpl_status cpl_config_default(cpl_config **c, cpl_error *err)
{
    return make(c, NULL, err);
}

void cpl_config_free(cpl_config *c)
{
    if (c == NULL)
        return;
    cpl_arena_free(c->arena);
    cpl_release(c);
}

cpl_status cpl_config_parse(cpl_config **c, const char *text, size_t length, const char *path, cpl_error *err)
{
    cpl_value *root = NULL;
    cpl_status status = make(c, path, err);
    if (status != CPL_OK)
        return status;
    status = cpl_value_from_yaml(&root, (*c)->arena, text, length, (*c)->path, err);
    if (status == CPL_OK)
        status = cpl_value_assign(*c, "", root, (*c)->path, err);
    if (status != CPL_OK) {
        cpl_config_free(*c);
        *c = NULL;
    }
    return status;
}

cpl_status cpl_config_load(cpl_config **c, const char *path, cpl_error *err)
{
    char *text = NULL;
    size_t length = 0;
    *c = NULL;
    cpl_status status = cpl_file_read(path, &text, &length, err);
    if (status == CPL_OK)
        status = cpl_config_parse(c, text, length, path, err);
    cpl_release(text);
    return status;
}

/* ---- assigning ---- */

/* Puts "m.yaml:3: " before the cause that err holds. */
static cpl_status at_line(cpl_status status, const char *path, int line, cpl_error *err)
{
    char cause[CPL_ERROR_WIDTH], hint[CPL_ERROR_WIDTH];
    if (err == NULL || path == NULL || line <= 0 || err->lines == 0)
        return status;
    snprintf(cause, sizeof cause, "%s", err->line[0]);
    snprintf(hint, sizeof hint, "%s", err->hint);
    cpl_error_set(err, status, "%s:%d: %s", path, line, cause);
    snprintf(err->hint, sizeof err->hint, "%s", hint);
    return status;
}

static cpl_status unknown_key(const char *path, cpl_error *err)
{
    char shown[PATH_SIZE], buffer[CPL_CONFIG_KEY_SIZE], cause[CPL_ERROR_WIDTH];
    snprintf(cause, sizeof cause, "unknown key '%s'", cpl_escape(shown, sizeof shown, path, strlen(path)));
    return cpl_option_fail(err, cause, cpl_option_nearest(path, buffer));
}

/* A dot inside a YAML key would reach what only nesting should. */
static cpl_status dotted_key(const char *key, cpl_error *err)
{
    char shown[PATH_SIZE];
    CPL_FAIL(err, CPL_USAGE, "key '%s' has a dot, but keys in a file are nested" CPL_HINT
             "write the last part under its group, on a line of its own with more indentation",
             cpl_escape(shown, sizeof shown, key, strlen(key)));
}

static cpl_status assign_group(cpl_config *c, const char *path, const cpl_value *v, const char *file, cpl_error *err);

/* Another model.type has other defaults: all keys that nobody set take those of the type that is now set, whatever
 * the order in which the type and they are given. So it is when text.shared is taken back. */
static cpl_status follow_type(cpl_config *c, cpl_error *err)
{
    for (int key = 0; key < CPL_CONFIG_KEYS; key++) {
        cpl_value v = {CPL_VALUE_TEXT, cpl_option_default(c->model.type, key), NULL, 0, NULL, NULL};
        cpl_status status = c->origin[key] != 0 || v.text[0] == '\0' ? CPL_OK : cpl_option_parse(c, key, &v, err);
        if (status != CPL_OK)
            return status;
    }
    return CPL_OK;
}

/* Where there is one set of text rules, what nobody set of the target's is the source's. */
static void follow_source(cpl_config *c)
{
    char from[CPL_CONFIG_KEY_SIZE], to[CPL_CONFIG_KEY_SIZE];
    for (int key = 0; cpl_config_one_text(c) && key < CPL_CONFIG_KEYS; key++) {
        cpl_config_key(key, from);
        if (strncmp(from, "text.source.", 12) != 0)
            continue;
        snprintf(to, sizeof to, "text.target.%s", from + 12);
        int target = cpl_config_find(to);
        cpl_option_kind kind = cpl_option_at(key, NULL)->kind;
        size_t size = kind == CPL_OPTION_INTEGER ? sizeof(int64_t)
                      : kind == CPL_OPTION_FILE  ? sizeof(cpl_config_file)
                                                 : sizeof(int);
        if (target < 0 || c->origin[target] != 0)
            continue;
        const cpl_option_group *group;
        const cpl_option *o = cpl_option_at(target, &group);
        memcpy((char *)c + group->offset + o->offset, cpl_option_value(c, key), size);
    }
}

static cpl_status assign_key(cpl_config *c, int key, const cpl_value *v, const char *file, cpl_error *err)
{
    cpl_status status = cpl_option_parse(c, key, v, err);
    if (status != CPL_OK)
        return at_line(status, file, v->line, err);
    c->origin[key] = v->line > 0 ? v->line : -1;
    int changes_defaults = key == cpl_config_find("model.type") || key == cpl_config_find("text.shared");
    status = changes_defaults ? follow_type(c, err) : CPL_OK;
    follow_source(c);
    return status;
}

/* `early_stopping` is both a key (true or false) and a group: a group turns it on. */
static cpl_status assign_switch(cpl_config *c, int key, const cpl_value *v, const char *file, cpl_error *err)
{
    cpl_value on = {CPL_VALUE_TEXT, "true", NULL, v->line, NULL, NULL};
    char path[CPL_CONFIG_KEY_SIZE];
    cpl_status status = assign_key(c, key, &on, file, err);
    return status != CPL_OK ? status : assign_group(c, cpl_config_key(key, path), v, file, err);
}

static cpl_status assign_group(cpl_config *c, const char *path, const cpl_value *v, const char *file, cpl_error *err)
{
    char shown[128];
    cpl_status status = CPL_OK;
    if (v->kind == CPL_VALUE_NULL)
        return CPL_OK; /* a heading under which everything is commented out */
    if (v->kind != CPL_VALUE_GROUP) {
        cpl_value_shown(v, shown, sizeof shown);
        status = path[0] == '\0' ? cpl_error_set(err, CPL_USAGE, "a configuration is a group of keys, got %s", shown)
                                 : cpl_error_set(err, CPL_USAGE, "'%s' got %s, expected a group of keys", path, shown);
        return at_line(status, file, v->line, err);
    }
    for (const cpl_value *child = v->first; child != NULL && status == CPL_OK; child = child->next) {
        char full[PATH_SIZE];
        snprintf(full, sizeof full, "%s%s%s", path, path[0] == '\0' ? "" : ".", child->key);
        if (strchr(child->key, '.') != NULL)
            status = at_line(dotted_key(child->key, err), file, child->line, err);
        else
            status = cpl_value_assign(c, full, child, file, err);
    }
    return status;
}

/* An error about the key that a plain value went to names the group that the user wrote. */
static void name_group(cpl_error *err, const char *group, const char *key)
{
    char quoted[PATH_SIZE];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    char *at = err && err->lines > 0 ? strstr(err->line[0], quoted) : NULL;
    if (at)
        memmove(at + 1 + strlen(group), at + 1 + strlen(key), strlen(at + 1 + strlen(key)) + 1);
}

/* `dropout: 0.3` in place of the group of that name. */
static cpl_status assign_shorthand(cpl_config *c, const char *group, const cpl_value *v, const char *file,
                                   cpl_error *err)
{
    const char *key;
    for (int i = 0; (key = cpl_option_shorthand(group, i)) != NULL; i++) {
        cpl_status status = assign_key(c, cpl_config_find(key), v, file, err);
        if (status != CPL_OK) {
            name_group(err, group, key);
            return status;
        }
    }
    return CPL_OK;
}

cpl_status cpl_value_assign(cpl_config *c, const char *key, const cpl_value *v, const char *path, cpl_error *err)
{
    int number = cpl_config_find(key);
    int group = cpl_option_is_group(key);
    if (number >= 0 && group && v->kind == CPL_VALUE_GROUP)
        return assign_switch(c, number, v, path, err);
    if (number >= 0)
        return assign_key(c, number, v, path, err);
    if (group && (v->kind == CPL_VALUE_TEXT || v->kind == CPL_VALUE_LIST) && cpl_option_shorthand(key, 0))
        return assign_shorthand(c, key, v, path, err);
    if (group)
        return assign_group(c, key, v, path, err);
    return at_line(unknown_key(key, err), path, v->line, err);
}

cpl_status cpl_config_set(cpl_config *c, const char *key, const char *text, cpl_error *err)
{
    cpl_value plain = {CPL_VALUE_TEXT, text, NULL, 0, NULL, NULL};
    cpl_value *v = &plain;
    if (text[0] == '[' || text[0] == '{')
        CPL_TRY(cpl_value_from_yaml(&v, c->arena, text, strlen(text), NULL, err), err,
                "cannot read the value of '%s'", key);
    if (key[0] == '\0')
        CPL_FAIL(err, CPL_USAGE, "a key is missing before '='");
    return cpl_value_assign(c, key, v, NULL, err);
}

cpl_status cpl_config_set_pair(cpl_config *c, const char *pair, cpl_error *err)
{
    char key[PATH_SIZE], shown[PATH_SIZE];
    const char *equals = strchr(pair, '=');
    if (equals == NULL || (size_t)(equals - pair) >= sizeof key)
        CPL_FAIL(err, CPL_USAGE, "got '%s', expected KEY=VALUE, such as training.epochs=3",
                 cpl_escape(shown, sizeof shown, pair, strlen(pair)));
    snprintf(key, sizeof key, "%.*s", (int)(equals - pair), pair);
    return cpl_config_set(c, key, equals + 1, err);
}
