/* files.c: the values of data.train and data.valid: FILE, {pairs: FILE}, {source: FILE, target: FILE}, the latter two
 * with a weight, or a list of these; and the way back to text and JSON. */
#include "config/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"

enum { MOST_WEIGHT = 1000 };

#define EXPECTED "a file, {pairs: FILE}, {source: FILE, target: FILE} or a list of these"

/* Keeps the path as written, and joined to the configuration's folder. */
static cpl_status keep_path(cpl_config *c, const char *name, const cpl_value *v, const char **written,
                            const char **path, cpl_error *err)
{
    char shown[128];
    if (v->kind != CPL_VALUE_TEXT || v->text[0] == '\0')
        CPL_FAIL(err, CPL_USAGE, "'%s' got %s, expected the name of a file", name,
                 cpl_value_shown(v, shown, sizeof shown));
    size_t folder = strlen(c->folder);
    int as_is = v->text[0] == '/' || strcmp(v->text, "-") == 0 || strcmp(c->folder, ".") == 0;
    *written = cpl_arena_strndup(c->arena, v->text, strlen(v->text));
    *path = as_is ? *written
                  : cpl_arena_printf(c->arena, "%s%s%s", c->folder, c->folder[folder - 1] == '/' ? "" : "/", v->text);
    if (*written == NULL || *path == NULL)
        CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", name);
    return CPL_OK;
}

static cpl_status parse_weight(const char *name, const cpl_value *v, double *weight, cpl_error *err)
{
    char shown[128], *end = NULL;
    double value = v->kind == CPL_VALUE_TEXT ? strtod(v->text, &end) : 0;
    if (!end || end == v->text || *end != '\0' || !(value > 0 && value <= MOST_WEIGHT))
        CPL_FAIL(err, CPL_USAGE, "'%s' got %s, expected a number above 0 and up to %d", name,
                 cpl_value_shown(v, shown, sizeof shown), MOST_WEIGHT);
    *weight = value;
    return CPL_OK;
}

/* {pairs: FILE} or {source: FILE, target: FILE}, and a weight. */
static cpl_status parse_group(cpl_config *c, const char *name, const cpl_value *v, cpl_config_source *item,
                              cpl_error *err)
{
    static const char *const known[] = {"pairs", "source", "target", "weight"};
    for (const cpl_value *child = v->first; child != NULL; child = child->next) {
        char full[CPL_CONFIG_KEY_SIZE + 128], text[64];
        snprintf(full, sizeof full, "%s.%s", name, cpl_escape(text, sizeof text, child->key, strlen(child->key)));
        const char **written = strcmp(child->key, "pairs") == 0    ? &item->written_pairs
                               : strcmp(child->key, "source") == 0 ? &item->written_source
                               : strcmp(child->key, "target") == 0 ? &item->written_target
                                                                   : NULL;
        if (strcmp(child->key, "weight") == 0) {
            cpl_status status = parse_weight(full, child, &item->weight, err);
            if (status != CPL_OK)
                return status;
            continue;
        }
        if (written == NULL) {
            char cause[CPL_ERROR_WIDTH];
            snprintf(cause, sizeof cause, "unknown key '%s', expected pairs, or source and target", full);
            return cpl_option_fail(err, cause, cpl_nearest(child->key, known, 4));
        }
        const char **path = written == &item->written_pairs    ? &item->pairs
                            : written == &item->written_source ? &item->source
                                                               : &item->target;
        cpl_status status = keep_path(c, full, child, written, path, err);
        if (status != CPL_OK)
            return status;
    }
    if ((item->pairs != NULL) == (item->source != NULL || item->target != NULL) ||
        (item->source != NULL) != (item->target != NULL))
        CPL_FAIL(err, CPL_USAGE, "'%s' needs either pairs, or both source and target", name);
    return CPL_OK;
}

static cpl_status parse_item(cpl_config *c, const char *name, const cpl_value *v, cpl_config_source *item,
                             cpl_error *err)
{
    char shown[128];
    if (v->kind == CPL_VALUE_TEXT && v->text[0] != '\0')
        return keep_path(c, name, v, &item->written_pairs, &item->pairs, err);
    if (v->kind == CPL_VALUE_GROUP)
        return parse_group(c, name, v, item, err);
    CPL_FAIL(err, CPL_USAGE, "'%s' got %s, expected " EXPECTED, name, cpl_value_shown(v, shown, sizeof shown));
}

cpl_status cpl_files_parse(cpl_config *c, const char *name, const cpl_value *v, cpl_config_files *files,
                           cpl_error *err)
{
    size_t count = v->kind == CPL_VALUE_LIST ? 0 : 1;
    const cpl_value *item = v->kind == CPL_VALUE_LIST ? v->first : v;
    for (const cpl_value *child = item; v->kind == CPL_VALUE_LIST && child != NULL; child = child->next)
        count++;
    if (count == 0)
        CPL_FAIL(err, CPL_USAGE, "'%s' got an empty list, expected at least one file", name);
    files->items = cpl_arena_alloc(c->arena, count * sizeof *files->items);
    if (files->items == NULL)
        CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", name);
    files->count = count;
    for (size_t i = 0; i < count; i++, item = item->next) {
        cpl_status status = parse_item(c, name, item, &files->items[i], err);
        if (status != CPL_OK)
            return status;
    }
    return CPL_OK;
}

/* ---- back ---- */

static void add_share(double share, cpl_str *to)
{
    cpl_str_printf(to, "%.12g%%", share * 100); /* 12: the division by 100 leaves dust in the last digits */
}

static void add_item(const cpl_config_source *item, cpl_str *to)
{
    double weight = cpl_config_weight(item);
    if (item->written_pairs != NULL && weight == 1) {
        cpl_str_add(to, item->written_pairs);
        return;
    }
    if (item->written_pairs != NULL)
        cpl_str_printf(to, "{pairs: %s", item->written_pairs);
    else
        cpl_str_printf(to, "{source: %s, target: %s", item->written_source, item->written_target);
    if (weight != 1)
        cpl_str_printf(to, ", weight: %.*g", cpl_real_digits(weight), weight);
    cpl_str_add(to, "}");
}

void cpl_files_text(const cpl_config_files *files, cpl_str *to)
{
    if (files->count == 0) {
        if (files->share > 0)
            add_share(files->share, to);
        return;
    }
    if (files->count > 1)
        cpl_str_add(to, "[");
    for (size_t i = 0; i < files->count; i++) {
        const cpl_config_source *item = &files->items[i];
        cpl_str_add(to, i == 0 ? "" : ", ");
        add_item(item, to);
    }
    if (files->count > 1)
        cpl_str_add(to, "]");
}

static cpl_json *item_json(const cpl_config_source *item)
{
    cpl_json *object = cpl_json_object();
    if (item->written_pairs != NULL) {
        cpl_json_set_text(object, "pairs", item->written_pairs);
    } else {
        cpl_json_set_text(object, "source", item->written_source);
        cpl_json_set_text(object, "target", item->written_target);
    }
    if (cpl_config_weight(item) != 1)
        cpl_json_set_real(object, "weight", cpl_config_weight(item), 0);
    return object;
}

cpl_json *cpl_files_json(const cpl_config_files *files)
{
    cpl_json *array = cpl_json_array();
    for (size_t i = 0; i < files->count; i++)
        cpl_json_add(array, item_json(&files->items[i]));
    return array;
}
