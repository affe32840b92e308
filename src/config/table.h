/* table.h: options.def as data, for the code of this room: one descriptor for each key, one for each group. */
#ifndef CPL_CONFIG_TABLE_H
#define CPL_CONFIG_TABLE_H

#include "config/config.h"

typedef enum cpl_option_kind {
    CPL_OPTION_INTEGER,
    CPL_OPTION_REAL,
    CPL_OPTION_BOOLEAN,
    CPL_OPTION_CHOICE,
    CPL_OPTION_STEPS,
    CPL_OPTION_PERIOD,
    CPL_OPTION_SIZE,
    CPL_OPTION_FILE,
    CPL_OPTION_FILES,
    CPL_OPTION_VALID,
    CPL_OPTION_PATHS,
    CPL_OPTION_PARTS
} cpl_option_kind;

/* One row of options.def. */
typedef struct cpl_option {
    const char *name; /* last part of the key */
    cpl_option_kind kind;
    const char *fallback; /* the default as text */
    double min, max;
    const char *meta; /* for a choice "|gru|lstm" */
    const char *help;
    int may_change; /* on resume */
    size_t offset;  /* within the group's struct */
} cpl_option;

typedef struct cpl_option_group {
    const char *prefix; /* "model.encoder" */
    const char *help;
    const cpl_option *options;
    int count;
    int first;     /* number of its first key */
    size_t offset; /* within cpl_config */
} cpl_option_group;

enum { CPL_OPTION_GROUP_COUNT = 14 };

const cpl_option_group *cpl_option_group_at(int group);
/* The descriptor of a key and its group (may be NULL). */
const cpl_option *cpl_option_at(int key, const cpl_option_group **group);
/* A key's default in a model of this type (CPL_MODEL_TRANSLATOR …), as text. */
const char *cpl_option_default(int type, int key);
/* The place of a key's value. */
const void *cpl_option_value(const cpl_config *c, int key);

/* "m.yaml:7: " where the key stands in a file, otherwise nothing. Returns buffer, of CPL_ERROR_WIDTH bytes. */
const char *cpl_option_where(const cpl_config *c, const char *key, char *buffer);
/* check_autoencoder.c: of an autoencoder, and what no other type may have. */
cpl_status cpl_config_check_autoencoder(const cpl_config *c, cpl_error *err);
/* file.c: a vocabulary, and what it takes the place of. */
cpl_status cpl_config_check_files(const cpl_config *c, int for_training, cpl_error *err);
/* check_text.c: what the kind of tokens asks of a side's other keys. */
cpl_status cpl_config_check_text(const cpl_config *c, cpl_error *err);
/* check_tie.c: one table for embeddings and projection. */
cpl_status cpl_config_check_tie(const cpl_config *c, cpl_error *err);
/* check_model.c: which parts of a model fit together. */
cpl_status cpl_config_check_model(const cpl_config *c, cpl_error *err);

/* The i-th key that a plain value of this group sets; NULL past the last. */
const char *cpl_option_shorthand(const char *group, int i);
/* The i-th key that has moved, and where it stands now; NULL past the last. */
const char *cpl_option_move(int i, const char **key);
/* 1 when path is a group, or leads to one ("text"). */
int cpl_option_is_group(const char *path);
/* What the user may have meant by an unknown dotted key: a full key into buffer, or NULL. */
const char *cpl_option_nearest(const char *path, char buffer[CPL_CONFIG_KEY_SIZE]);

#endif
