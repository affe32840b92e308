/* new.c: couplet new PAIRS.tsv */
#include "cli/cli.h"

int cpl_cli_new(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_new_flags flags = {CPL_CLI_NEW(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    char *text = NULL;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = cpl_cli_count(self, &positional, 1);
    if (code != -1)
        return code;
    cpl_status status = cpl_new_config(positional.items[0], flags.swap, &text, &err);
    return status == CPL_OK ? cpl_cli_result(text) : cpl_cli_finish(status, &err);
}
