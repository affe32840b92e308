/* export.c: couplet export keras MODEL -o WEIGHTS.h5 */
#include "cli/cli.h"

#include <string.h>

int cpl_cli_export(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_export_flags flags = {CPL_CLI_EXPORT(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = cpl_cli_count(self, &positional, 2);
    if (code != -1)
        return code;
    if (strcmp(positional.items[0], "keras") != 0)
        return cpl_cli_wrong("couplet export keras MODEL -o WEIGHTS.h5", "cannot export to '%s', only to keras",
                             positional.items[0]);
    if (!flags.o)
        return cpl_cli_wrong("couplet export keras MODEL -o WEIGHTS.h5", "export needs -o WEIGHTS.h5");
    cpl_keras_export_options options = {
        .model = positional.items[1],
        .output = flags.o,
        .source_vocabulary = flags.source_vocabulary,
        .target_vocabulary = flags.target_vocabulary,
    };
    return cpl_cli_finish(cpl_export_keras(&options, &err), &err);
}
