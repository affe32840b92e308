/* vocabulary.c: couplet vocabulary FILE.tsv -o FILE */
#include "cli/cli.h"

int cpl_cli_vocabulary(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_vocabulary_flags flags = {CPL_CLI_VOCABULARY(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    char *text = NULL;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = cpl_cli_count(self, &positional, 1);
    if (code == -1 && flags.o == NULL)
        code = cpl_cli_wrong(NULL, "'couplet vocabulary' needs -o FILE, where the vocabulary is written");
    if (code != -1)
        return code;
    cpl_vocabulary_options options = {.input = positional.items[0], .column = flags.column, .tokens = flags.kind,
                                      .standardize = flags.standardize, .size = flags.size,
                                      .min_count = flags.min_count, .output = flags.o, .json = flags.json,
                                      .message = cpl_cli_message};
    cpl_status status = cpl_vocabulary_make(&options, &text, &err);
    return status == CPL_OK ? cpl_cli_result(text) : cpl_cli_finish(status, &err);
}
