/* config.h: the configuration of a run, its keys, and where each value came from.
 *
 *   cpl_config *c;
 *   CPL_TRY(cpl_config_load(&c, "de-en.yaml", err), err, "cannot read the configuration");
 *   CPL_TRY(cpl_config_set(c, "training.epochs", "3", err), err, "--set");
 *   CPL_TRY(cpl_config_check(c, 1, err), err, "…");
 *   … c->model.units, c->training.optimizer.learning_rate …
 *   cpl_config_free(c);
 *
 * options.def lists every key; the structs below, defaults, checks, help and JSON are made from it. */
#ifndef CPL_CONFIG_CONFIG_H
#define CPL_CONFIG_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/str.h"
#include "config/options.def"
#include "couplet.h"

/* ---- choices: CPL_CELL_GRU, CPL_DIRECTION_BOTH, CPL_OPTIMIZER_ADAM … in the order of options.def ---- */

#define CPL_CHOICE_ENUM(id, text) CPL_##id,
typedef enum cpl_choice_model { CPL_CHOICES_MODEL(CPL_CHOICE_ENUM) } cpl_choice_model;
typedef enum cpl_choice_cell { CPL_CHOICES_CELL(CPL_CHOICE_ENUM) } cpl_choice_cell;
typedef enum cpl_choice_direction { CPL_CHOICES_DIRECTION(CPL_CHOICE_ENUM) } cpl_choice_direction;
typedef enum cpl_choice_merge { CPL_CHOICES_MERGE(CPL_CHOICE_ENUM) } cpl_choice_merge;
typedef enum cpl_choice_initializer { CPL_CHOICES_INITIALIZER(CPL_CHOICE_ENUM) } cpl_choice_initializer;
typedef enum cpl_choice_state { CPL_CHOICES_STATE(CPL_CHOICE_ENUM) } cpl_choice_state;
typedef enum cpl_choice_attend { CPL_CHOICES_ATTEND(CPL_CHOICE_ENUM) } cpl_choice_attend;
typedef enum cpl_choice_position { CPL_CHOICES_POSITION(CPL_CHOICE_ENUM) } cpl_choice_position;
typedef enum cpl_choice_combine { CPL_CHOICES_COMBINE(CPL_CHOICE_ENUM) } cpl_choice_combine;
typedef enum cpl_choice_tie { CPL_CHOICES_TIE(CPL_CHOICE_ENUM) } cpl_choice_tie;
typedef enum cpl_choice_too_long { CPL_CHOICES_TOO_LONG(CPL_CHOICE_ENUM) } cpl_choice_too_long;
typedef enum cpl_choice_optimizer { CPL_CHOICES_OPTIMIZER(CPL_CHOICE_ENUM) } cpl_choice_optimizer;
typedef enum cpl_choice_schedule { CPL_CHOICES_SCHEDULE(CPL_CHOICE_ENUM) } cpl_choice_schedule;
typedef enum cpl_choice_monitor { CPL_CHOICES_MONITOR(CPL_CHOICE_ENUM) } cpl_choice_monitor;
typedef enum cpl_choice_precision { CPL_CHOICES_PRECISION(CPL_CHOICE_ENUM) } cpl_choice_precision;
typedef enum cpl_choice_mode { CPL_CHOICES_MODE(CPL_CHOICE_ENUM) } cpl_choice_mode;

/* ---- values ---- */

/* Pairs in one file of two columns (pairs), or in two files line by line (source, target); the others are NULL.
 * Paths are ready to open: relative ones were joined to the configuration's folder. written_* are as the user wrote
 * them. weight: how often each pair stands in a pass over the training data, on average; 0: none was given (once). */
typedef struct cpl_config_source {
    const char *pairs, *source, *target;
    const char *written_pairs, *written_source, *written_target;
    double weight;
} cpl_config_source;

/* 1 where none was given. */
static inline double cpl_config_weight(const cpl_config_source *s)
{
    return s->weight > 0 ? s->weight : 1;
}

/* Data files; or, for data.valid only, count 0 and the share of train, 0 < share < 1. */
typedef struct cpl_config_files {
    cpl_config_source *items;
    size_t count;
    double share;
} cpl_config_files;

/* One file, its path as those of data; both NULL: none. */
typedef struct cpl_config_file {
    const char *written, *path;
} cpl_config_file;

/* Paths or patterns of parts of a model: "encoder", "*.embedding". */
typedef struct cpl_config_paths {
    const char **items;
    size_t count;
} cpl_config_paths;

/* Parts of other models to begin with; part NULL: a whole model (then it is the only one). Paths as those of data. */
typedef struct cpl_config_part {
    const char *part, *written, *path;
} cpl_config_part;
typedef struct cpl_config_parts {
    cpl_config_part *items;
    size_t count;
} cpl_config_parts;

/* Exactly one is not 0. */
typedef struct cpl_config_period {
    double seconds;
    int64_t steps;
} cpl_config_period;

#define CPL_CONFIG_TYPE_integer int64_t
#define CPL_CONFIG_TYPE_real double
#define CPL_CONFIG_TYPE_boolean int
#define CPL_CONFIG_TYPE_choice int
#define CPL_CONFIG_TYPE_steps int64_t /* 0: epoch */
#define CPL_CONFIG_TYPE_period cpl_config_period
#define CPL_CONFIG_TYPE_size int64_t /* bytes */
#define CPL_CONFIG_TYPE_file cpl_config_file
#define CPL_CONFIG_TYPE_files cpl_config_files
#define CPL_CONFIG_TYPE_valid cpl_config_files
#define CPL_CONFIG_TYPE_paths cpl_config_paths
#define CPL_CONFIG_TYPE_parts cpl_config_parts
#define CPL_CONFIG_FIELD(type, name, ...) CPL_CONFIG_TYPE_##type name;
#define CPL_CONFIG_FIELDS(list) CPL_OPTIONS_##list(CPL_CONFIG_FIELD, CPL_CONFIG_FIELD)

typedef struct cpl_config_attention { CPL_CONFIG_FIELDS(ATTENTION) } cpl_config_attention;
typedef struct cpl_config_encoder { CPL_CONFIG_FIELDS(ENCODER) } cpl_config_encoder;
typedef struct cpl_config_decoder { CPL_CONFIG_FIELDS(DECODER) cpl_config_attention attention; } cpl_config_decoder;
typedef struct cpl_config_dropout { CPL_CONFIG_FIELDS(DROPOUT) } cpl_config_dropout;
typedef struct cpl_config_model {
    CPL_CONFIG_FIELDS(MODEL)
    cpl_config_dropout dropout;
    cpl_config_encoder encoder;
    cpl_config_decoder decoder;
} cpl_config_model;

/* tokens and standardize hold the values of cpl_tokens and cpl_standardize (text/text.h), as plain ints. */
typedef struct cpl_config_side { CPL_CONFIG_FIELDS(SOURCE) } cpl_config_side;
typedef struct cpl_config_text { CPL_CONFIG_FIELDS(TEXT) cpl_config_side source, target; } cpl_config_text;
typedef struct cpl_config_noise { CPL_CONFIG_FIELDS(NOISE) } cpl_config_noise;
typedef struct cpl_config_data { CPL_CONFIG_FIELDS(DATA) cpl_config_noise noise; } cpl_config_data;
typedef struct cpl_config_optimizer { CPL_CONFIG_FIELDS(OPTIMIZER) } cpl_config_optimizer;
typedef struct cpl_config_schedule { CPL_CONFIG_FIELDS(SCHEDULE) } cpl_config_schedule;
typedef struct cpl_config_stopping { CPL_CONFIG_FIELDS(STOPPING) } cpl_config_stopping;
/* training.early_stopping is the switch, training.stopping the group `training.early_stopping.*`. */
typedef struct cpl_config_training {
    CPL_CONFIG_FIELDS(TRAINING)
    cpl_config_optimizer optimizer;
    cpl_config_schedule schedule;
    cpl_config_stopping stopping;
} cpl_config_training;

#define CPL_CONFIG_ONE(...) +1
#define CPL_CONFIG_GROUP_SIZE(list, member, prefix, help) CPL_OPTIONS_##list(CPL_CONFIG_ONE, CPL_CONFIG_ONE)
enum { CPL_CONFIG_KEYS = 0 CPL_OPTION_GROUPS(CPL_CONFIG_GROUP_SIZE) };

typedef struct cpl_config {
    cpl_config_model model;
    cpl_config_text text;
    cpl_config_data data;
    cpl_config_training training;
    /* The rest is private to src/config. */
    int origin[CPL_CONFIG_KEYS]; /* 0: default; > 0: line of the file; < 0: set by a call or read from JSON */
    const char *path;            /* of the file, or NULL */
    const char *folder;          /* relative paths start here; "." without a file */
    cpl_arena *arena;
} cpl_config;

/* ---- making one ---- */

cpl_status cpl_config_default(cpl_config **c, cpl_error *err);
/* Reads a YAML file ("-": standard input). Errors name file and line. */
cpl_status cpl_config_load(cpl_config **c, const char *path, cpl_error *err);
/* The same from text; path names it in errors and gives the folder of relative paths. */
cpl_status cpl_config_parse(cpl_config **c, const char *text, size_t length, const char *path, cpl_error *err);
void cpl_config_free(cpl_config *c); /* NULL is fine */

/* Sets one key from text: "training.epochs", "3". Data files also take YAML in brackets: "[a.tsv, b.tsv]". The value
 * that fails leaves the old one. */
cpl_status cpl_config_set(cpl_config *c, const char *key, const char *text, cpl_error *err);
/* "training.epochs=3". */
cpl_status cpl_config_set_pair(cpl_config *c, const char *pair, cpl_error *err);

/* Adds a path to a key of paths: "training.freeze", "encoder". */
cpl_status cpl_config_add_path(cpl_config *c, const char *key, const char *path, cpl_error *err);

/* Adds to training.init; part NULL: the whole model. path as it is to be opened. */
cpl_status cpl_config_add_part(cpl_config *c, const char *part, const char *path, cpl_error *err);

/* What no single key can tell: combinations. for_training != 0 also requires data.train. Call it after the last set. */
cpl_status cpl_config_check(const cpl_config *c, int for_training, cpl_error *err);

/* Tells the log what is allowed but hardly meant: a model without masking that no padding reaches. log may be NULL. */
void cpl_config_warn(const cpl_config *c, const cpl_log *log);
/* 1: both sides have one set of text rules and one vocabulary: an autoencoder, or text.shared. */
int cpl_config_one_text(const cpl_config *c);

/* units of the embeddings: model.embedding, or model.units where that is 0. */
int64_t cpl_config_embedding(const cpl_config *c);

/* ---- keys ---- */

enum { CPL_CONFIG_KEY_SIZE = 64 };

int cpl_config_find(const char *key);                                     /* number of a dotted key, or -1 */
const char *cpl_config_key(int key, char buffer[CPL_CONFIG_KEY_SIZE]);    /* dotted; key < CPL_CONFIG_KEYS */
int cpl_config_is_set(const cpl_config *c, int key);                      /* 1: the user gave it; 0: default */
int cpl_config_resume_may_change(int key);                                /* 1: may differ when a run is resumed */
/* Appends the value as a person writes it: "256", "gru", "1e-3" as 0.001, "60s", "[a.tsv, b.tsv]". */
void cpl_config_text_of(const cpl_config *c, int key, cpl_str *to);

/* ---- stored options ---- */

/* The effective set: every key with its value, nested as in YAML. NULL without memory. */
cpl_json *cpl_config_to_json(const cpl_config *c);
cpl_status cpl_config_from_json(cpl_config **c, const cpl_json *object, cpl_error *err);

/* ---- comparing ---- */

typedef struct cpl_config_difference {
    char key[CPL_CONFIG_KEY_SIZE];
    char *before, *after; /* values as text */
    int allowed;          /* may differ on resume */
} cpl_config_difference;

typedef struct cpl_config_differences {
    cpl_config_difference *items;
    size_t count;
} cpl_config_differences;

cpl_status cpl_config_compare(const cpl_config *before, const cpl_config *after, cpl_config_differences *list,
                              cpl_error *err);
void cpl_config_differences_free(cpl_config_differences *list);
/* CPL_USAGE naming the first key, old and new, that may not differ on resume; CPL_OK when there is none. */
cpl_status cpl_config_check_resume(const cpl_config *saved, const cpl_config *now, cpl_error *err);

/* Appends `couplet help config`: every key with its default and its help. */
void cpl_config_help(cpl_str *to);

#endif
