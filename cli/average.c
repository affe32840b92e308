/* average.c: couplet average MODEL... -o FILE */
#include "cli/cli.h"

int cpl_cli_average(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_average_flags flags = {CPL_CLI_AVERAGE(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1 && flags.o == NULL)
        code = cpl_cli_wrong(NULL, "'couplet average' needs -o FILE, where the averaged model is written");
    if (code != -1)
        return code;
    return cpl_cli_finish(cpl_average_models(positional.items, positional.count, flags.o, &err), &err);
}
