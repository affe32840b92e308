/* parse.c: the command line into a command's flags, driven by its rows of options.def. */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *cpl_cli_option_text(const cpl_cli_option *o, char buffer[64])
{
    snprintf(buffer, 64, "%s%s", o->name[1] == '\0' ? "-" : "--", o->name);
    for (char *p = buffer; *p != '\0'; p++)
        if (*p == '_')
            *p = '-';
    return buffer;
}

/* ---- values ---- */

static int bad_value(const cpl_cli_option *o, const char *got, const char *expected)
{
    char name[64];
    return cpl_cli_wrong(NULL, "option '%s' got '%s', expected %s", cpl_cli_option_text(o, name), got, expected);
}

static int bad_number(const cpl_cli_option *o, const char *got, const char *what)
{
    char expected[96];
    if (o->max > 1e12)
        snprintf(expected, sizeof expected, "%s of at least %.0f", what, o->min);
    else
        snprintf(expected, sizeof expected, "%s from %.9g to %.9g", what, o->min, o->max);
    return bad_value(o, got, expected);
}

static int set_integer(const cpl_cli_option *o, const char *text, int64_t *field)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    int odd = !isdigit((unsigned char)text[*text == '-']) || *end != '\0' || errno != 0;
    if (odd || (double)value < o->min || (double)value > o->max)
        return bad_number(o, text, "a whole number");
    *field = value;
    return -1;
}

static int set_real(const cpl_cli_option *o, const char *text, double *field)
{
    char *end;
    double value = strtod(text, &end);
    int odd = text[strspn(text, "+-.0123456789eE")] != '\0' || *end != '\0' || end == text || !isfinite(value);
    if (odd || value < o->min || value > o->max)
        return bad_number(o, text, "a number");
    *field = value;
    return -1;
}

/* meta lists the words: "plain|bar|none". */
static int set_choice(const cpl_cli_option *o, const char *text, const char **field)
{
    char words[96], list[128] = "", name[64], hint[96];
    const char *names[8];
    int n = 0;
    snprintf(words, sizeof words, "%s", o->meta);
    for (char *p = strtok(words, "|"); p != NULL && n < 8; p = strtok(NULL, "|"))
        names[n++] = p;
    for (int i = 0; i < n; i++) {
        if (strcmp(names[i], text) == 0) {
            *field = text;
            return -1;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", names[i]);
    }
    return cpl_cli_wrong(cpl_cli_near(text, names, n, hint), "option '%s' got '%s', expected %s",
                         cpl_cli_option_text(o, name), text, list);
}

/* Stores one value. Returns -1, or the exit status. */
static int set_value(const cpl_cli_option *o, const char *text, void *flags)
{
    void *field = (char *)flags + o->offset;
    cpl_cli_texts *texts = field;
    char name[64];
    switch (o->kind) {
    case CPL_CLI_FLAG: *(int *)field = 1; return -1;
    case CPL_CLI_TEXT: *(const char **)field = text; return -1;
    case CPL_CLI_INTEGER: return set_integer(o, text, field);
    case CPL_CLI_REAL: return set_real(o, text, field);
    case CPL_CLI_CHOICE: return set_choice(o, text, field);
    case CPL_CLI_TEXTS: break;
    }
    if (texts->count == CPL_CLI_TEXTS_MAX)
        return cpl_cli_wrong(NULL, "option '%s' appears more than %d times", cpl_cli_option_text(o, name),
                             CPL_CLI_TEXTS_MAX);
    texts->items[texts->count++] = text;
    return -1;
}

/* ---- options ---- */

/* The option that argument begins with, and where an attached value starts ("--threads=2", "-o=DIR"), or NULL. A value
 * glued to a letter is no option: "-overwrite" must not write to a folder "verwrite". */
static const cpl_cli_option *find_option(const cpl_cli_command *self, const char *argument, const char **attached)
{
    char name[64];
    for (int i = 0; i < self->count; i++) {
        const cpl_cli_option *o = &self->options[i];
        size_t n = strlen(cpl_cli_option_text(o, name));
        if (strncmp(argument, name, n) != 0 || (argument[n] != '\0' && argument[n] != '='))
            continue;
        *attached = argument[n] == '\0' ? NULL : argument + n + (argument[n] == '=');
        return o;
    }
    return NULL;
}

static int unknown_option(const cpl_cli_command *self, const char *argument)
{
    char texts[32][64], hint[128], wanted[64];
    const char *names[33];
    int n = 0, has_set = 0;
    for (; n < self->count && n < 32; n++) {
        names[n] = cpl_cli_option_text(&self->options[n], texts[n]);
        has_set |= strcmp(self->options[n].name, "set") == 0;
    }
    names[n++] = "--help";
    snprintf(wanted, sizeof wanted, "%.*s", (int)strcspn(argument, "="), argument);
    const char *near = cpl_cli_near(wanted, names, n, hint);
    if (near == NULL)
        snprintf(hint, sizeof hint, "'couplet help %s' lists the options%s", self->name,
                 has_set ? "; --set KEY=VALUE changes a key of the configuration" : "");
    return cpl_cli_wrong(hint, "unknown option '%s' for 'couplet %s'", wanted, self->name);
}

/* Reads the option at argv[*i] and its value. Returns -1, or the exit status. */
static int read_option(const cpl_cli_command *self, int argc, char **argv, int *i, void *flags)
{
    const char *value = NULL;
    char name[64];
    const cpl_cli_option *o = find_option(self, argv[*i], &value);
    if (o == NULL)
        return unknown_option(self, argv[*i]);
    cpl_cli_option_text(o, name);
    if (o->kind == CPL_CLI_FLAG && value != NULL)
        return cpl_cli_wrong(NULL, "option '%s' takes no value, got '%s'", name, value);
    if (o->kind != CPL_CLI_FLAG && value == NULL) {
        if (*i + 1 >= argc)
            return cpl_cli_wrong(NULL, "option '%s' needs a value: %s", name, o->meta);
        value = argv[++*i];
        if (strncmp(value, "--", 2) == 0)
            return cpl_cli_wrong(NULL, "option '%s' needs a value (%s), got the option '%s'", name, o->meta, value);
    }
    return set_value(o, value, flags);
}

int cpl_cli_parse(const cpl_cli_command *self, int argc, char **argv, void *flags, cpl_cli_positional *positional)
{
    int options_end = 0;
    positional->count = 0;
    for (int i = 0; i < argc; i++) {
        int is_option = !options_end && argv[i][0] == '-' && argv[i][1] != '\0';
        int status = -1;
        if (is_option && strcmp(argv[i], "--") == 0) {
            options_end = 1;
        } else if (is_option && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            cpl_cli_page(self, stdout);
            return 0;
        } else if (is_option) {
            status = read_option(self, argc, argv, &i, flags);
        } else if (positional->count == CPL_CLI_POSITIONAL_MAX) {
            status = cpl_cli_wrong(NULL, "more than %d arguments for 'couplet %s'", CPL_CLI_POSITIONAL_MAX, self->name);
        } else {
            positional->items[positional->count++] = argv[i];
        }
        if (status != -1)
            return status;
    }
    return -1;
}

int cpl_cli_count(const cpl_cli_command *self, const cpl_cli_positional *positional, int expected)
{
    char hint[96];
    snprintf(hint, sizeof hint, "'couplet help %s' shows the usage", self->name);
    if (positional->count < expected)
        return cpl_cli_wrong(hint, "'couplet %s' needs %s", self->name, self->positional);
    if (positional->count > expected)
        return cpl_cli_wrong(hint, "'couplet %s' takes %s, got '%s' as well", self->name, self->positional,
                             positional->items[expected]);
    return -1;
}
