/* file.c: keys that are one file: text.source.vocabulary, text.source.vectors and the target's. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "config/table.h"
#include "config/value.h"

/* Standard input is for data: read twice, or before the data, it would give one of them nothing. */
cpl_status cpl_file_parse(cpl_config *c, const char *name, const cpl_value *v, cpl_config_file *file, cpl_error *err)
{
    char shown[128];
    if (v->kind != CPL_VALUE_TEXT || strcmp(v->text, "-") == 0)
        CPL_FAIL(err, CPL_USAGE, "'%s' got %s, expected the name of a file", name,
                 cpl_value_shown(v, shown, sizeof shown));
    cpl_config_file made = {NULL, NULL};
    if (v->text[0]) {
        int as_is = v->text[0] == '/' || strcmp(c->folder, ".") == 0;
        made.written = cpl_arena_strndup(c->arena, v->text, strlen(v->text));
        made.path = as_is ? made.written : cpl_arena_printf(c->arena, "%s/%s", c->folder, v->text);
        if (!made.written || !made.path)
            CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", name);
    }
    *file = made;
    return CPL_OK;
}

/* A list says which words there are, so a limit that is written beside it would do nothing. In a model file every key
 * is written: there the two cannot have contradicted each other, as they were checked when the model was made. */
static cpl_status check_list(const cpl_config *c, const char *side, int for_training, cpl_error *err)
{
    static const char *const limits[] = {"vocabulary_size", "min_count"};
    char key[CPL_CONFIG_KEY_SIZE], at[CPL_ERROR_WIDTH];
    for (int i = 0; i < 2; i++) {
        snprintf(key, sizeof key, "text.%s.%s", side, limits[i]);
        int origin = c->origin[cpl_config_find(key)];
        if (origin > 0 || (origin < 0 && for_training))
            CPL_FAIL(err, CPL_USAGE, "%s'%s' is set, but 'text.%s.vocabulary' names a list of all words" CPL_HINT
                     "leave one of them out: a shorter list is made by cutting the file", cpl_option_where(c, key, at),
                     key, side);
    }
    return CPL_OK;
}

cpl_status cpl_config_check_files(const cpl_config *c, int for_training, cpl_error *err)
{
    cpl_status status = CPL_OK;
    if (c->text.source.vocabulary.path)
        status = check_list(c, "source", for_training, err);
    if (status == CPL_OK && c->text.target.vocabulary.path)
        status = check_list(c, "target", for_training, err);
    return status;
}
