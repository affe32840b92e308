/* help.c: `couplet help config`, made from the table. */
#include "config/table.h"

#include <stdio.h>
#include <string.h>

enum { INDENT = 43, WIDTH = 118 }; /* of what stands below a help text */

/* "a|b|c" as lines of "a | b | c". */
static void help_choices(const char *choices, cpl_str *to)
{
    size_t column = INDENT;
    cpl_str_printf(to, "%*s", INDENT, "");
    for (const char *p = choices; *p != '\0'; p += p[0] == '|') {
        size_t n = strcspn(p, "|");
        if (p != choices && column + 3 + n > WIDTH)
            cpl_str_printf(to, " |\n%*s", INDENT, ""), column = INDENT;
        else if (p != choices)
            cpl_str_add(to, " | "), column += 3;
        cpl_str_add_bytes(to, p, n);
        column += n, p += n;
    }
    cpl_str_add(to, "\n");
}

/* One line: key, default, help; the kind of value stands on a line of its own where it says more than the default. */
static void help_key(int key, cpl_str *to)
{
    const cpl_option *o = cpl_option_at(key, NULL);
    int is_choice = o->kind == CPL_OPTION_CHOICE;
    const char *fallback = o->fallback[0] == '\0' ? "(none)" : o->fallback;
    cpl_str_printf(to, "    %-22s %-15s %s%s\n", o->name, fallback, o->help, o->may_change ? " *" : "");
    if (is_choice && strchr(o->meta + 1, '|') != NULL)
        help_choices(o->meta + 1, to);
    static const char *const types[] = {[CPL_MODEL_SUMMARIZER] = "summarizer", [CPL_MODEL_AUTOENCODER] = "autoencoder"};
    for (int type = CPL_MODEL_SUMMARIZER; type <= CPL_MODEL_AUTOENCODER; type++) {
        const char *other = cpl_option_default(type, key);
        if (strcmp(other, o->fallback) != 0)
            cpl_str_printf(to, "    %-22s %-15s default of the %s: %s\n", "", "", types[type], other);
    }
}

void cpl_config_help(cpl_str *to)
{
    cpl_str_add(to, "A configuration is a YAML file. Every key has a default, except data.train, so a file holds\n"
                    "only what differs:\n\n"
                    "    data:\n"
                    "      train: pairs.tsv\n"
                    "    training: {epochs: 20}\n\n"
                    "On the command line a key is dotted: --set training.epochs=20. Relative paths start at the\n"
                    "configuration's folder. Keys, defaults and meaning (*: may differ when a run is resumed):\n");
    for (int g = 0; g < CPL_OPTION_GROUP_COUNT; g++) {
        const cpl_option_group *group = cpl_option_group_at(g);
        cpl_str_printf(to, "\n%s: %s\n", group->prefix, group->help);
        for (int i = 0; i < group->count; i++)
            help_key(group->first + i, to);
    }
}
