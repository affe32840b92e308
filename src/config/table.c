/* table.c: options.def made into descriptor tables, and looking keys up.
 *
 * A key's number counts through the groups in the order of CPL_OPTION_GROUPS. Dotted names are not stored: group and
 * name are compared where they are needed, so the table holds each name once. */
#include "config/table.h"

#include <stdio.h>
#include <string.h>

#define KIND_integer CPL_OPTION_INTEGER
#define KIND_real CPL_OPTION_REAL
#define KIND_boolean CPL_OPTION_BOOLEAN
#define KIND_choice CPL_OPTION_CHOICE
#define KIND_steps CPL_OPTION_STEPS
#define KIND_period CPL_OPTION_PERIOD
#define KIND_size CPL_OPTION_SIZE
#define KIND_file CPL_OPTION_FILE
#define KIND_files CPL_OPTION_FILES
#define KIND_valid CPL_OPTION_VALID
#define KIND_paths CPL_OPTION_PATHS
#define KIND_parts CPL_OPTION_PARTS

/* GROUP_STRUCT is defined around each table: the struct whose fields the rows are. */
#define ROW(type, name, fallback, min, max, meta, help)                                                                \
    {#name, KIND_##type, fallback, min, max, meta, help, 0, offsetof(GROUP_STRUCT, name)},
#define ROW_RESUME(type, name, fallback, min, max, meta, help)                                                         \
    {#name, KIND_##type, fallback, min, max, meta, help, 1, offsetof(GROUP_STRUCT, name)},

#define GROUP_STRUCT cpl_config_model
static const cpl_option rows_MODEL[] = {CPL_OPTIONS_MODEL(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_dropout
static const cpl_option rows_DROPOUT[] = {CPL_OPTIONS_DROPOUT(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_encoder
static const cpl_option rows_ENCODER[] = {CPL_OPTIONS_ENCODER(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_decoder
static const cpl_option rows_DECODER[] = {CPL_OPTIONS_DECODER(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_attention
static const cpl_option rows_ATTENTION[] = {CPL_OPTIONS_ATTENTION(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_text
static const cpl_option rows_TEXT[] = {CPL_OPTIONS_TEXT(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_side
static const cpl_option rows_SOURCE[] = {CPL_OPTIONS_SOURCE(ROW, ROW_RESUME)};
static const cpl_option rows_TARGET[] = {CPL_OPTIONS_TARGET(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_data
static const cpl_option rows_DATA[] = {CPL_OPTIONS_DATA(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_noise
static const cpl_option rows_NOISE[] = {CPL_OPTIONS_NOISE(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_training
static const cpl_option rows_TRAINING[] = {CPL_OPTIONS_TRAINING(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_optimizer
static const cpl_option rows_OPTIMIZER[] = {CPL_OPTIONS_OPTIMIZER(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_schedule
static const cpl_option rows_SCHEDULE[] = {CPL_OPTIONS_SCHEDULE(ROW, ROW_RESUME)};
#undef GROUP_STRUCT
#define GROUP_STRUCT cpl_config_stopping
static const cpl_option rows_STOPPING[] = {CPL_OPTIONS_STOPPING(ROW, ROW_RESUME)};
#undef GROUP_STRUCT

/* FIRST_list: the running count, made by an enum in which each group takes its size. */
#define GROUP_ENUM(list, member, prefix, help)                                                                         \
    FIRST_##list, LAST_##list = FIRST_##list + (int)(sizeof(rows_##list) / sizeof(rows_##list[0])) - 1,
enum { CPL_OPTION_GROUPS(GROUP_ENUM) KEYS_COUNTED };

#define GROUP_ROW(list, member, prefix, help)                                                                          \
    {prefix, help, rows_##list, (int)(sizeof(rows_##list) / sizeof(rows_##list[0])), FIRST_##list,                     \
     offsetof(cpl_config, member)},
static const cpl_option_group groups[] = {CPL_OPTION_GROUPS(GROUP_ROW)};

_Static_assert(KEYS_COUNTED == (int)CPL_CONFIG_KEYS, "keys are counted alike here and in config.h");
_Static_assert(sizeof(groups) / sizeof(groups[0]) == CPL_OPTION_GROUP_COUNT, "CPL_OPTION_GROUP_COUNT is out of date");

const cpl_option_group *cpl_option_group_at(int group)
{
    return &groups[group];
}

const cpl_option *cpl_option_at(int key, const cpl_option_group **group)
{
    int g = 0;
    while (g + 1 < CPL_OPTION_GROUP_COUNT && key >= groups[g + 1].first)
        g++;
    if (group != NULL)
        *group = &groups[g];
    return &groups[g].options[key - groups[g].first];
}

/* Rows of CPL_TYPE_DEFAULTS. */
#define TYPE_ROW(id, name, text) {CPL_##id, name, text},
static const struct {
    int type;
    const char *key, *fallback;
} type_defaults[] = {CPL_TYPE_DEFAULTS(TYPE_ROW)};

enum { TYPE_DEFAULTS = sizeof type_defaults / sizeof type_defaults[0] };

const char *cpl_option_default(int type, int key)
{
    char name[CPL_CONFIG_KEY_SIZE];
    cpl_config_key(key, name);
    for (int i = 0; i < TYPE_DEFAULTS; i++)
        if (type_defaults[i].type == type && strcmp(type_defaults[i].key, name) == 0)
            return type_defaults[i].fallback;
    return cpl_option_at(key, NULL)->fallback;
}

#define SHORTHAND_ROW(group, key) {group, key},
static const struct {
    const char *group, *key;
} shorthands[] = {CPL_OPTION_SHORTHANDS(SHORTHAND_ROW)};

const char *cpl_option_shorthand(const char *group, int i)
{
    for (size_t k = 0; k < sizeof shorthands / sizeof shorthands[0]; k++)
        if (strcmp(shorthands[k].group, group) == 0 && i-- == 0)
            return shorthands[k].key;
    return NULL;
}

#define MOVE_ROW(old, key) {old, key},
static const struct {
    const char *old, *key;
} moves[] = {CPL_OPTION_MOVES(MOVE_ROW)};

const char *cpl_option_move(int i, const char **key)
{
    if (i >= (int)(sizeof moves / sizeof moves[0]))
        return NULL;
    *key = moves[i].key;
    return moves[i].old;
}

const void *cpl_option_value(const cpl_config *c, int key)
{
    const cpl_option_group *group;
    const cpl_option *o = cpl_option_at(key, &group);
    return (const char *)c + group->offset + o->offset;
}

const char *cpl_config_key(int key, char buffer[CPL_CONFIG_KEY_SIZE])
{
    const cpl_option_group *group;
    const cpl_option *o = cpl_option_at(key, &group);
    snprintf(buffer, CPL_CONFIG_KEY_SIZE, "%s.%s", group->prefix, o->name);
    return buffer;
}

int cpl_config_find(const char *key)
{
    char name[CPL_CONFIG_KEY_SIZE];
    for (int k = 0; k < CPL_CONFIG_KEYS; k++)
        if (strcmp(cpl_config_key(k, name), key) == 0)
            return k;
    return -1;
}

int cpl_config_resume_may_change(int key)
{
    return cpl_option_at(key, NULL)->may_change;
}

int cpl_option_is_group(const char *path)
{
    size_t n = strlen(path);
    for (int g = 0; g < CPL_OPTION_GROUP_COUNT; g++)
        if (strncmp(groups[g].prefix, path, n) == 0 && (groups[g].prefix[n] == '\0' || groups[g].prefix[n] == '.'))
            return 1;
    return n == 0;
}

/* ---- did you mean ---- */

/* Length of the part before the last dot, 0 without a dot. */
static size_t parent_length(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot == NULL ? 0 : (size_t)(dot - path);
}

/* All dotted names: keys, then groups, then "text", which is no group with keys of its own. */
enum { NAMES = CPL_CONFIG_KEYS + CPL_OPTION_GROUP_COUNT + 1 };

static void all_names(char names[NAMES][CPL_CONFIG_KEY_SIZE])
{
    for (int k = 0; k < CPL_CONFIG_KEYS; k++)
        cpl_config_key(k, names[k]);
    for (int g = 0; g < CPL_OPTION_GROUP_COUNT; g++)
        snprintf(names[CPL_CONFIG_KEYS + g], CPL_CONFIG_KEY_SIZE, "%s", groups[g].prefix);
    snprintf(names[NAMES - 1], CPL_CONFIG_KEY_SIZE, "text");
}

/* First where the key has moved to; then a slip of the pen among the neighbours, then a key of that very name in
 * another group (the wrong indentation), then a slip anywhere. */
const char *cpl_option_nearest(const char *path, char buffer[CPL_CONFIG_KEY_SIZE])
{
    char names[NAMES][CPL_CONFIG_KEY_SIZE];
    const char *last[NAMES], *full[NAMES];
    size_t parent = parent_length(path), count = 0;
    const char *wanted = path + (parent > 0 ? parent + 1 : 0);
    const char *found = NULL, *old, *moved;
    for (int i = 0; (old = cpl_option_move(i, &moved)) != NULL; i++)
        if (strcmp(path, old) == 0)
            return strcpy(buffer, moved);
    all_names(names);
    for (int i = 0; i < NAMES; i++) {
        if (parent_length(names[i]) != parent || strncmp(names[i], path, parent) != 0)
            continue;
        full[count] = names[i];
        last[count++] = names[i] + (parent > 0 ? parent + 1 : 0);
    }
    const char *near = cpl_nearest(wanted, last, count);
    for (size_t i = 0; near != NULL && i < count; i++)
        if (last[i] == near)
            found = full[i];
    for (int i = 0; found == NULL && i < NAMES; i++) {
        const char *dot = strrchr(names[i], '.');
        if (strcmp(dot == NULL ? names[i] : dot + 1, wanted) == 0)
            found = names[i];
    }
    for (int i = 0; i < NAMES; i++)
        full[i] = names[i];
    if (found == NULL)
        found = cpl_nearest(path, full, NAMES);
    if (found == NULL)
        return NULL;
    memcpy(buffer, found, CPL_CONFIG_KEY_SIZE); /* found is a whole row of names */
    return buffer;
}
