/* import.c: couplet import keras WEIGHTS.h5 --config CONFIG.yaml -o MODEL */
#include "cli/cli.h"

#include <string.h>

int cpl_cli_import(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_import_flags flags = {CPL_CLI_IMPORT(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = cpl_cli_count(self, &positional, 2);
    if (code != -1)
        return code;
    if (strcmp(positional.items[0], "keras") != 0)
        return cpl_cli_wrong("couplet import keras WEIGHTS.h5 --config CONFIG.yaml -o MODEL",
                             "cannot import from '%s', only from keras", positional.items[0]);
    if (!flags.config || !flags.o)
        return cpl_cli_wrong("couplet import keras WEIGHTS.h5 --config CONFIG.yaml -o MODEL", "import needs %s",
                             flags.config ? "-o MODEL" : "--config CONFIG.yaml");
    cpl_keras_import_options options = {
        .weights = positional.items[1],
        .config = flags.config,
        .source_vocabulary = flags.source_vocabulary,
        .target_vocabulary = flags.target_vocabulary,
        .map = flags.map,
        .output = flags.o,
        .message = cpl_cli_message,
        .pad_to = flags.pad_to,
    };
    return cpl_cli_finish(cpl_import_keras(&options, &err), &err);
}
