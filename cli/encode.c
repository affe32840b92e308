/* encode.c: couplet encode MODEL */
#include "cli/cli.h"

#include <string.h>

int cpl_cli_encode(const cpl_cli_command *self, int argc, char **argv)
{
    static const char *const pools[] = {"mean", "none", "last", "max"};
    cpl_cli_encode_flags flags = {CPL_CLI_ENCODE(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = cpl_cli_count(self, &positional, 1);
    if (code != -1)
        return code;
    cpl_encode_options options = {.input = flags.i, .output = flags.o, .threads = (int)flags.threads,
                                  .batch_size = flags.batch_size};
    for (int i = 0; i < 4; i++)
        if (strcmp(flags.pool, pools[i]) == 0)
            options.pool = (cpl_pool_kind)i;
    return cpl_cli_finish(cpl_encode_lines(positional.items[0], &options, stdout, &err), &err);
}
