/* extract.c: couplet extract MODEL PART -o FILE */
#include "cli/cli.h"

int cpl_cli_extract(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_extract_flags flags = {CPL_CLI_EXTRACT(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = cpl_cli_count(self, &positional, 2);
    if (code == -1 && flags.o == NULL)
        code = cpl_cli_wrong(NULL, "'couplet extract' needs -o FILE, where the part is written");
    if (code != -1)
        return code;
    return cpl_cli_finish(cpl_extract(positional.items[0], positional.items[1], flags.o, &err), &err);
}
