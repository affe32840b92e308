/* parse.c: from text to a typed value, one function for each kind of option. Each states what it got and expected. */
#include "config/value.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

const char *cpl_value_shown(const cpl_value *v, char *buffer, size_t size)
{
    char text[96];
    if (v->kind == CPL_VALUE_TEXT)
        snprintf(buffer, size, "'%s'", cpl_escape(text, sizeof text, v->text, strlen(v->text)));
    else
        snprintf(buffer, size, "%s",
                 v->kind == CPL_VALUE_LIST ? "a list" : v->kind == CPL_VALUE_GROUP ? "a group of keys" : "nothing");
    return buffer;
}

/* ---- numbers ---- */

/* strtod takes more than a configuration should: hexadecimal, inf, nan, leading spaces. */
static int looks_decimal(const char *text)
{
    const char *p = text + (*text == '-' || *text == '+');
    if (!isdigit((unsigned char)*p) && *p != '.')
        return 0;
    return text[strspn(text, "+-.0123456789eE")] == '\0';
}

static int read_real(const char *text, double *value)
{
    char *end;
    if (!looks_decimal(text))
        return -1;
    errno = 0;
    *value = strtod(text, &end);
    return *end != '\0' || !isfinite(*value) ? -1 : 0;
}

static int read_integer(const char *text, int64_t *value)
{
    char *end;
    const char *digits = text + (*text == '-' || *text == '+');
    if (!isdigit((unsigned char)*digits))
        return -1;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return *end != '\0' || errno != 0 ? -1 : 0;
}

/* "a whole number from 1 to 65536"; limits that only keep arithmetic safe (1e9 and more) are not worth a word. */
static void range_text(const cpl_option *o, const char *what, char *buffer, size_t size)
{
    if (o->max >= 1e9)
        snprintf(buffer, size, "%s of at least %.9g", what, o->min);
    else
        snprintf(buffer, size, "%s from %.9g to %.9g", what, o->min, o->max);
}

static int parse_integer(const cpl_option *o, const char *text, void *field, char *expected, size_t size)
{
    int64_t value;
    range_text(o, "a whole number", expected, size);
    if (read_integer(text, &value) || (double)value < o->min || (double)value > o->max)
        return -1;
    *(int64_t *)field = value;
    return 0;
}

static int parse_real(const cpl_option *o, const char *text, void *field, char *expected, size_t size)
{
    double value;
    range_text(o, "a number", expected, size);
    if (read_real(text, &value) || value < o->min || value > o->max)
        return -1;
    *(double *)field = value;
    return 0;
}

static int parse_steps(const cpl_option *o, const char *text, void *field, char *expected, size_t size)
{
    int64_t value = 0;
    snprintf(expected, size, "epoch, or a number of steps");
    if (strcmp(text, "epoch") != 0 && (read_integer(text, &value) || value < 1 || (double)value > o->max))
        return -1;
    *(int64_t *)field = value;
    return 0;
}

static int parse_period(const cpl_option *o, const char *text, void *field, char *expected, size_t size)
{
    char number[32];
    cpl_config_period value = {0, 0};
    size_t n = strlen(text);
    snprintf(expected, size, "seconds such as 60s, or a number of steps");
    if (n > 1 && n < sizeof number && text[n - 1] == 's') {
        snprintf(number, sizeof number, "%.*s", (int)(n - 1), text);
        if (read_real(number, &value.seconds) || value.seconds <= 0 || value.seconds > o->max)
            return -1;
    } else if (read_integer(text, &value.steps) || value.steps < 1 || (double)value.steps > o->max) {
        return -1;
    }
    *(cpl_config_period *)field = value;
    return 0;
}

static int parse_size(const char *text, void *field, char *expected, size_t size)
{
    unsigned long long value;
    snprintf(expected, size, "a size such as 512MiB or 2GiB");
    if (cpl_bytes_parse(text, &value) || value > (unsigned long long)1 << 62)
        return -1;
    *(int64_t *)field = (int64_t)value;
    return 0;
}

/* ---- words ---- */

static int parse_boolean(const char *text, void *field, char *expected, size_t size)
{
    int yes = strcmp(text, "true") == 0 || strcmp(text, "True") == 0 || strcmp(text, "TRUE") == 0;
    int no = strcmp(text, "false") == 0 || strcmp(text, "False") == 0 || strcmp(text, "FALSE") == 0;
    snprintf(expected, size, "true or false");
    if (!yes && !no)
        return -1;
    *(int *)field = yes;
    return 0;
}

enum { CHOICES = 16 };

/* Cuts "|gru|lstm" into names, stored in buffer; returns how many. */
static int choice_names(const char *meta, char *buffer, size_t size, const char *names[CHOICES])
{
    int count = 0;
    snprintf(buffer, size, "%s", meta);
    for (char *p = buffer; *p != '\0' && count < CHOICES; p++)
        if (*p == '|') {
            *p = '\0';
            names[count++] = p + 1;
        }
    return count;
}

static int parse_choice(const cpl_option *o, const char *text, void *field, char *expected, size_t size)
{
    char buffer[192];
    const char *names[CHOICES];
    int count = choice_names(o->meta, buffer, sizeof buffer, names);
    cpl_str list = {0};
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], text) == 0) {
            *(int *)field = i;
            cpl_str_free(&list);
            return 0;
        }
        cpl_str_add(&list, i == 0 ? "" : i + 1 == count ? " or " : ", ");
        cpl_str_add(&list, names[i]);
    }
    snprintf(expected, size, "%s", list.data == NULL ? "" : list.data);
    cpl_str_free(&list);
    return -1;
}

/* The choice that text may have meant, in buffer; or NULL. */
static const char *choice_near(const cpl_option *o, const char *text, char *buffer, size_t size)
{
    const char *names[CHOICES];
    int count = o->kind == CPL_OPTION_CHOICE ? choice_names(o->meta, buffer, size, names) : 0;
    return cpl_nearest(text, names, (size_t)count);
}

/* ---- any kind ---- */

static int parse_text(const cpl_option *o, const char *text, void *field, char *expected, size_t size)
{
    switch (o->kind) {
    case CPL_OPTION_INTEGER: return parse_integer(o, text, field, expected, size);
    case CPL_OPTION_REAL: return parse_real(o, text, field, expected, size);
    case CPL_OPTION_BOOLEAN: return parse_boolean(text, field, expected, size);
    case CPL_OPTION_CHOICE: return parse_choice(o, text, field, expected, size);
    case CPL_OPTION_STEPS: return parse_steps(o, text, field, expected, size);
    case CPL_OPTION_SIZE: return parse_size(text, field, expected, size);
    default: return parse_period(o, text, field, expected, size);
    }
}

/* "5%": a share of the training pairs. Returns 1 when text is one. */
static int read_share(const char *text, double *share)
{
    char number[32];
    size_t n = strlen(text);
    if (n < 2 || n >= sizeof number || text[n - 1] != '%')
        return 0;
    snprintf(number, sizeof number, "%.*s", (int)(n - 1), text);
    return read_real(number, share) == 0;
}

static cpl_status parse_files(cpl_config *c, int key, const cpl_value *v, cpl_error *err)
{
    char name[CPL_CONFIG_KEY_SIZE];
    const cpl_option_group *group;
    const cpl_option *o = cpl_option_at(key, &group);
    cpl_config_files *field = (cpl_config_files *)(void *)((char *)c + group->offset + o->offset);
    cpl_config_files files = {NULL, 0, 0};
    double percent;
    cpl_config_key(key, name);
    if (o->kind == CPL_OPTION_VALID && v->kind == CPL_VALUE_TEXT && read_share(v->text, &percent)) {
        if (!(percent > 0 && percent < 100))
            CPL_FAIL(err, CPL_USAGE, "'%s' got '%.40s', expected a share above 0%% and below 100%%", name, v->text);
        files.share = percent / 100;
    } else {
        cpl_status status = cpl_files_parse(c, name, v, &files, err);
        if (status != CPL_OK)
            return status;
        for (size_t i = 0; o->kind == CPL_OPTION_VALID && i < files.count; i++)
            if (cpl_config_weight(&files.items[i]) != 1)
                CPL_FAIL(err, CPL_USAGE, "'%s.weight' is %g, but a validation reads each pair once" CPL_HINT
                         "weights are for data.train", name, files.items[i].weight);
    }
    *field = files;
    return CPL_OK;
}

cpl_status cpl_option_fail(cpl_error *err, const char *cause, const char *near)
{
    if (near == NULL)
        CPL_FAIL(err, CPL_USAGE, "%s", cause);
    CPL_FAIL(err, CPL_USAGE, "%s" CPL_HINT "did you mean '%s'?", cause, near);
}

cpl_status cpl_option_parse(cpl_config *c, int key, const cpl_value *v, cpl_error *err)
{
    char name[CPL_CONFIG_KEY_SIZE], shown[128], expected[192], choices[192], cause[CPL_ERROR_WIDTH];
    const cpl_option_group *group;
    const cpl_option *o = cpl_option_at(key, &group);
    if (o->kind == CPL_OPTION_FILES || o->kind == CPL_OPTION_VALID)
        return parse_files(c, key, v, err);
    if (o->kind == CPL_OPTION_FILE)
        return cpl_file_parse(c, cpl_config_key(key, name), v, (void *)((char *)c + group->offset + o->offset), err);
    if (o->kind == CPL_OPTION_PARTS)
        return cpl_parts_parse(c, cpl_config_key(key, name), v, (void *)((char *)c + group->offset + o->offset), err);
    if (o->kind == CPL_OPTION_PATHS)
        return cpl_paths_parse(c, cpl_config_key(key, name), v, (void *)((char *)c + group->offset + o->offset), err);
    /* Lists and groups are parsed as "", which no kind accepts and which says what was expected. */
    const char *text = v->kind == CPL_VALUE_TEXT ? v->text : "";
    if (parse_text(o, text, (char *)c + group->offset + o->offset, expected, sizeof expected) == 0)
        return CPL_OK;
    snprintf(cause, sizeof cause, "'%s' got %s, expected %s", cpl_config_key(key, name),
             cpl_value_shown(v, shown, sizeof shown), expected);
    return cpl_option_fail(err, cause, choice_near(o, text, choices, sizeof choices));
}
