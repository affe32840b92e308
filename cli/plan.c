/* plan.c: couplet plan CONFIG.yaml */
#include "cli/cli.h"

int cpl_cli_plan(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_plan_flags flags = {CPL_CLI_PLAN(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    char *text = NULL;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = cpl_cli_count(self, &positional, 1);
    if (code != -1)
        return code;
    cpl_train_options options = {
        .config_path = positional.items[0],
        .set = flags.set.items,
        .set_count = flags.set.count,
        .init = flags.init,
        .freeze = flags.freeze.items,
        .freeze_count = flags.freeze.count,
        .memory = flags.memory,
        .threads = (int)flags.threads,
        .message = cpl_cli_message,
    };
    cpl_status status = cpl_plan(&options, flags.json, &text, &err);
    return status == CPL_OK ? cpl_cli_result(text) : cpl_cli_finish(status, &err);
}
