/* cli.h: what the files of the command share. Each command is one file: it parses its options into the struct that
 * options.def makes, calls one function of couplet.h, and returns the exit status. */
#ifndef CPL_CLI_CLI_H
#define CPL_CLI_CLI_H

#include <signal.h>

#include "cli/options.def"
#include "couplet.h"

/* ---- options ---- */

typedef enum cpl_cli_kind {
    CPL_CLI_FLAG,
    CPL_CLI_TEXT,
    CPL_CLI_TEXTS,
    CPL_CLI_INTEGER,
    CPL_CLI_REAL,
    CPL_CLI_CHOICE
} cpl_cli_kind;

/* One row of options.def. name is the field's: "max_length" for --max-length. */
typedef struct cpl_cli_option {
    const char *name;
    cpl_cli_kind kind;
    double min, max;
    const char *meta, *help;
    size_t offset; /* within the command's flags */
} cpl_cli_option;

enum { CPL_CLI_TEXTS_MAX = 256, CPL_CLI_POSITIONAL_MAX = 64 };

/* Values of an option that may be repeated. */
typedef struct cpl_cli_texts {
    const char *items[CPL_CLI_TEXTS_MAX];
    int count;
} cpl_cli_texts;

#define CPL_CLI_TYPE_flag int
#define CPL_CLI_TYPE_text const char *
#define CPL_CLI_TYPE_texts cpl_cli_texts
#define CPL_CLI_TYPE_integer int64_t
#define CPL_CLI_TYPE_real double
#define CPL_CLI_TYPE_choice const char *
#define CPL_CLI_FIELD(type, name, ...) CPL_CLI_TYPE_##type name;
#define CPL_CLI_STRUCT(command, LIST, positional, summary)                                                             \
    typedef struct cpl_cli_##command##_flags { CPL_CLI_##LIST(CPL_CLI_FIELD) } cpl_cli_##command##_flags;
CPL_CLI_COMMANDS(CPL_CLI_STRUCT)

/* Defaults, as an initialiser: cpl_cli_train_flags flags = {CPL_CLI_TRAIN(CPL_CLI_DEFAULT)}. */
#define CPL_CLI_INIT_flag(value) value
#define CPL_CLI_INIT_text(value) value
#define CPL_CLI_INIT_texts(value) {.count = value}
#define CPL_CLI_INIT_integer(value) value
#define CPL_CLI_INIT_real(value) value
#define CPL_CLI_INIT_choice(value) value
/* From the flags that all decoding commands have to cpl_generate_options. */
#define CPL_CLI_DECODING_OPTIONS(flags)                                                                                \
    .temperature = (flags).temperature, .seed = (uint64_t)(flags).seed, .top_k = (flags).top_k,                        \
    .top_p = (flags).top_p, .beam = (flags).beam, .length_penalty = (flags).length_penalty,                            \
    .length_penalty_kind = (flags).length_penalty_kind, .coverage_penalty = (flags).coverage_penalty,                  \
    .min_length = (flags).min_length, .no_repeat = (flags).no_repeat, .forbid = (flags).forbid.items,                  \
    .forbid_count = (flags).forbid.count, .force = (flags).force.items, .force_count = (flags).force.count,            \
    .replace_unknown = (flags).replace_unknown, .dictionary = (flags).dictionary, .prefix = (flags).prefix,            \
    .shortlist = (flags).shortlist, .lexicon = (flags).lexicon, .max_length = (flags).max_length,                      \
    .batch_size = (flags).batch_size
#define CPL_CLI_DEFAULT(type, name, fallback, ...) .name = CPL_CLI_INIT_##type(fallback),

/* ---- commands ---- */

typedef struct cpl_cli_command {
    const char *name, *positional, *summary;
    const cpl_cli_option *options;
    int count;
    int (*run)(const struct cpl_cli_command *self, int argc, char **argv); /* returns the exit status */
} cpl_cli_command;

#define CPL_CLI_ONE(...) +1
enum { CPL_CLI_COMMAND_COUNT = 0 CPL_CLI_COMMANDS(CPL_CLI_ONE) };

const cpl_cli_command *cpl_cli_command_at(int i);
const cpl_cli_command *cpl_cli_command_find(const char *name); /* NULL when there is none */

int cpl_cli_new(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_train(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_plan(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_generate(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_evaluate(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_score(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_inspect(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_encode(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_extract(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_average(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_quantize(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_import(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_export(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_vocabulary(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_bench(const cpl_cli_command *self, int argc, char **argv);
int cpl_cli_help(int argc, char **argv);

/* ---- parsing (parse.c) ---- */

typedef struct cpl_cli_positional {
    const char *items[CPL_CLI_POSITIONAL_MAX];
    int count;
} cpl_cli_positional;

/* Reads argv (without the command's name) into flags and positional arguments, of which there must be least to most.
 * Returns -1 to go on, otherwise the exit status: 0 after --help, 2 after an error. */
int cpl_cli_parse(const cpl_cli_command *self, int argc, char **argv, void *flags, cpl_cli_positional *positional);
/* The same where the number of positional arguments is fixed. */
int cpl_cli_count(const cpl_cli_command *self, const cpl_cli_positional *positional, int expected);

/* ---- telling (tell.c) ---- */

/* Prints "error: …" and, unless NULL, "hint: …" to stderr. Returns 2. */
int cpl_cli_wrong(const char *hint, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "did you mean 'near'?" into buffer, or NULL when no name is near. */
const char *cpl_cli_near(const char *name, const char *const *names, int n, char buffer[96]);
/* The exit status of a finished call; prints err unless it went well. */
int cpl_cli_finish(cpl_status status, const cpl_error *err);
/* Prints a result to stdout and frees it; a full disk is an error. Returns the exit status. */
int cpl_cli_result(char *text);
/* A cpl_message_sink: "warning: …" or plain text to stderr. */
void cpl_cli_message(void *user, int level, const char *text);

/* ---- pages (page.c) ---- */

void cpl_cli_usage(FILE *to);                                   /* the short form */
void cpl_cli_overview(FILE *to);                                /* `couplet help` */
void cpl_cli_page(const cpl_cli_command *command, FILE *to);    /* `couplet help COMMAND` */
const char *cpl_cli_option_text(const cpl_cli_option *o, char buffer[64]); /* "--max-length", "-o" */

/* ---- progress (display.c) ---- */

typedef enum cpl_cli_progress { CPL_CLI_PROGRESS_NONE, CPL_CLI_PROGRESS_PLAIN, CPL_CLI_PROGRESS_BAR } cpl_cli_progress;

typedef struct cpl_cli_display {
    cpl_cli_progress mode;
    int unicode, colour;
    int drawn;             /* a bar stands on the last line */
    double last;           /* elapsed seconds when it was drawn, or a line was printed */
} cpl_cli_display;

/* mode: "plain", "bar", "none", or NULL for what suits stderr. */
void cpl_cli_display_start(cpl_cli_display *d, const char *mode);
void cpl_cli_display_event(void *display, const cpl_progress_event *e);
void cpl_cli_display_message(void *display, int level, const char *text);
void cpl_cli_display_end(cpl_cli_display *d); /* leaves the cursor on a fresh line */

#endif
