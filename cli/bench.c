/* bench.c: couplet bench [WORK...] */
#include "cli/cli.h"

#include <string.h>

int cpl_cli_bench(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_bench_flags flags = {CPL_CLI_BENCH(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    char *text = NULL;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code != -1)
        return code;
    cpl_bench_options options = {
        .works = positional.items,
        .work_count = positional.count,
        .threads = (int)flags.threads,
        .seconds = flags.seconds,
        .steps = flags.steps,
        .batch = flags.batch,
        .vocabulary = flags.vocabulary,
        .tokens = flags.tokens,
        .bfloat16 = flags.precision != NULL && strcmp(flags.precision, "bfloat16") == 0,
        .lengths = flags.lengths,
        .set = flags.set.items,
        .set_count = flags.set.count,
        .freeze = flags.freeze.items,
        .freeze_count = flags.freeze.count,
        .model = flags.model,
        .keep_model = flags.keep_model,
        .json = flags.json,
        .message = cpl_cli_message,
    };
    cpl_status status = cpl_bench_run(&options, &text, &err);
    return status == CPL_OK ? cpl_cli_result(text) : cpl_cli_finish(status, &err);
}
