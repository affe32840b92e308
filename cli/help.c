/* help.c: couplet help [COMMAND | config] */
#include "cli/cli.h"

#include <string.h>

int cpl_cli_help(int argc, char **argv)
{
    const char *names[CPL_CLI_COMMAND_COUNT + 1] = {"config"};
    char hint[96];
    cpl_error err = CPL_ERROR_INIT;
    if (argc == 0) {
        cpl_cli_overview(stdout);
        return cpl_cli_finish(CPL_OK, &err);
    }
    if (argc > 1)
        return cpl_cli_wrong(NULL, "'couplet help' takes one command, got '%s' as well", argv[1]);
    if (strcmp(argv[0], "config") == 0)
        return cpl_cli_result(cpl_config_help_text());
    const cpl_cli_command *command = cpl_cli_command_find(argv[0]);
    if (command != NULL) {
        cpl_cli_page(command, stdout);
        return cpl_cli_finish(CPL_OK, &err);
    }
    for (int i = 0; i < CPL_CLI_COMMAND_COUNT; i++)
        names[i + 1] = cpl_cli_command_at(i)->name;
    const char *near = cpl_cli_near(argv[0], names, CPL_CLI_COMMAND_COUNT + 1, hint);
    return cpl_cli_wrong(near == NULL ? "'couplet help' lists the commands" : near, "no help for '%s'", argv[0]);
}
