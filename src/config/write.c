/* write.c: values as a person writes them. */
#include "config/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cpl_real_digits(double value)
{
    char text[40];
    int digits = 15; /* any decimal of 15 digits survives; fewer would write 60 as 6e+01 */
    for (; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return digits;
}

/* Choice number i of "|gru|lstm", and its length. */
static const char *choice_name(const char *meta, int i, int *length)
{
    const char *p = meta + 1;
    for (; i > 0; i--)
        p = strchr(p, '|') + 1;
    *length = (int)strcspn(p, "|");
    return p;
}

static void add_real(double value, cpl_str *to)
{
    cpl_str_printf(to, "%.*g", cpl_real_digits(value), value);
}

static void add_period(const cpl_config_period *period, cpl_str *to)
{
    if (period->steps > 0) {
        cpl_str_printf(to, "%" PRId64, period->steps);
        return;
    }
    add_real(period->seconds, to);
    cpl_str_add(to, "s");
}

/* The largest unit that divides: every size reads back as the same number of bytes. */
static void add_size(int64_t bytes, cpl_str *to)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes > 0 && bytes % 1024 == 0 && unit < 4; unit++)
        bytes /= 1024;
    cpl_str_printf(to, "%" PRId64 "%s", bytes, units[unit]);
}

void cpl_config_text_of(const cpl_config *c, int key, cpl_str *to)
{
    const cpl_option *o = cpl_option_at(key, NULL);
    const void *field = cpl_option_value(c, key);
    int64_t integer = o->kind == CPL_OPTION_INTEGER || o->kind == CPL_OPTION_STEPS ? *(const int64_t *)field : 0;
    const char *name;
    int length;
    switch (o->kind) {
    case CPL_OPTION_INTEGER: cpl_str_printf(to, "%" PRId64, integer); break;
    case CPL_OPTION_SIZE: add_size(*(const int64_t *)field, to); break;
    case CPL_OPTION_REAL: add_real(*(const double *)field, to); break;
    case CPL_OPTION_BOOLEAN: cpl_str_add(to, *(const int *)field ? "true" : "false"); break;
    case CPL_OPTION_CHOICE:
        name = choice_name(o->meta, *(const int *)field, &length);
        cpl_str_add_bytes(to, name, (size_t)length);
        break;
    case CPL_OPTION_STEPS:
        if (integer == 0)
            cpl_str_add(to, "epoch");
        else
            cpl_str_printf(to, "%" PRId64, integer);
        break;
    case CPL_OPTION_PERIOD: add_period(field, to); break;
    case CPL_OPTION_FILE:
        if (((const cpl_config_file *)field)->written)
            cpl_str_add(to, ((const cpl_config_file *)field)->written);
        break;
    case CPL_OPTION_FILES:
    case CPL_OPTION_VALID: cpl_files_text(field, to); break;
    case CPL_OPTION_PARTS: cpl_parts_text(field, to); break;
    case CPL_OPTION_PATHS: cpl_paths_text(field, to); break;
    }
}
