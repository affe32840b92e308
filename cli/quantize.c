/* quantize.c: couplet quantize MODEL [--type int8|bfloat16] -o FILE */
#include "cli/cli.h"

int cpl_cli_quantize(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_quantize_flags flags = {CPL_CLI_QUANTIZE(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    char *text;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = cpl_cli_count(self, &positional, 1);
    if (code == -1 && flags.o == NULL)
        code = cpl_cli_wrong(NULL, "'couplet quantize' needs -o FILE, where the model is written");
    if (code != -1)
        return code;
    cpl_status status = cpl_quantize(positional.items[0], flags.type, flags.o, &text, &err);
    return status == CPL_OK ? cpl_cli_result(text) : cpl_cli_finish(status, &err);
}
