/* score.c: couplet score MODEL PAIRS.tsv */
#include "cli/cli.h"

int cpl_cli_score(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_score_flags flags = {CPL_CLI_SCORE(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    cpl_model *model = NULL;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = cpl_cli_count(self, &positional, 2);
    if (code != -1)
        return code;
    cpl_score_options options = {.pairs = positional.items[1], .batch_size = flags.batch_size, .json = flags.json,
                                 .alignments = flags.alignments};
    cpl_status status = cpl_model_open(&model, positional.items[0], (int)flags.threads, &err);
    if (status == CPL_OK)
        status = cpl_score_pairs(model, &options, stdout, &err);
    cpl_model_close(model);
    return cpl_cli_finish(status, &err);
}
