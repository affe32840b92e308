/* value.h: what YAML, JSON and `--set` have in common: a small tree of text. The readers make it, assign.c puts it
 * into a configuration, and only there are types known. All of a tree lives in one arena. */
#ifndef CPL_CONFIG_VALUE_H
#define CPL_CONFIG_VALUE_H

#include "config/table.h"

typedef enum cpl_value_kind { CPL_VALUE_NULL, CPL_VALUE_TEXT, CPL_VALUE_LIST, CPL_VALUE_GROUP } cpl_value_kind;

typedef struct cpl_value cpl_value;
struct cpl_value {
    cpl_value_kind kind;
    const char *text;  /* of a TEXT */
    const char *key;   /* where the parent is a GROUP */
    int line;          /* in the file, from 1; 0 where there is no file */
    cpl_value *first;  /* children of a LIST or GROUP */
    cpl_value *next;
};

/* yaml.c: text into a tree; path names it in errors. An empty document is an empty group. */
cpl_status cpl_value_from_yaml(cpl_value **root, cpl_arena *arena, const char *text, size_t length, const char *path,
                               cpl_error *err);

/* assign.c: puts v under the dotted path ("" is the whole configuration). path names the file in errors, or is NULL. */
cpl_status cpl_value_assign(cpl_config *c, const char *key, const cpl_value *v, const char *path, cpl_error *err);

/* parse.c: one value into its field. Failing leaves the field as it was. */
cpl_status cpl_option_parse(cpl_config *c, int key, const cpl_value *v, cpl_error *err);
/* parse.c: CPL_USAGE with the cause, and "did you mean 'near'?" as the hint unless near is NULL. */
cpl_status cpl_option_fail(cpl_error *err, const char *cause, const char *near);

/* files.c: the value of data.train and data.valid. */
cpl_status cpl_files_parse(cpl_config *c, const char *name, const cpl_value *v, cpl_config_files *files,
                           cpl_error *err);
/* file.c: the value of a key that is one file: a path, or "" for none. */
cpl_status cpl_file_parse(cpl_config *c, const char *name, const cpl_value *v, cpl_config_file *file, cpl_error *err);
/* parse.c: "got 'abc'", "got a list" … for an error. Returns buffer. */
const char *cpl_value_shown(const cpl_value *v, char *buffer, size_t size);

/* write.c: significant digits, 15 to 17, that read back as the same number. */
int cpl_real_digits(double value);
/* files.c: the text of data files, as in YAML. */
void cpl_files_text(const cpl_config_files *files, cpl_str *to);
cpl_json *cpl_files_json(const cpl_config_files *files);


/* paths.c: the value of training.freeze: a path, or a list of them. */
cpl_status cpl_paths_parse(cpl_config *c, const char *name, const cpl_value *v, cpl_config_paths *paths,
                           cpl_error *err);
void cpl_paths_text(const cpl_config_paths *paths, cpl_str *to);
cpl_json *cpl_paths_json(const cpl_config_paths *paths);

/* parts.c: the value of training.init. */
cpl_status cpl_parts_parse(cpl_config *c, const char *name, const cpl_value *v, cpl_config_parts *parts,
                           cpl_error *err);
void cpl_parts_text(const cpl_config_parts *parts, cpl_str *to);
cpl_json *cpl_parts_json(const cpl_config_parts *parts);
int cpl_parts_are_named(const cpl_config_parts *parts); /* 0: one whole model */

#endif
