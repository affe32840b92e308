/* train.c: couplet train CONFIG.yaml */
#include "cli/cli.h"

#include <string.h>

/* The number of the signal that asked to stop; the library polls it between steps. */
static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

/* The first Ctrl-C asks training to save and stop. The handler is then gone, so that a second one ends at once. */
static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* Hours of training must not end because the reader of its progress has gone. */
    signal(SIGPIPE, SIG_IGN);
}

int cpl_cli_train(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_train_flags flags = {CPL_CLI_TRAIN(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_cli_display display;
    cpl_error err = CPL_ERROR_INIT;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = cpl_cli_count(self, &positional, 1);
    if (code == -1 && flags.resume && flags.overwrite)
        code = cpl_cli_wrong(NULL, "--resume goes on with a run and --overwrite replaces it: give one of them");
    if (code != -1)
        return code;
    catch_signals();
    cpl_cli_display_start(&display, flags.progress);
    cpl_train_options options = {
        .config_path = positional.items[0],
        .folder = flags.o,
        .set = flags.set.items,
        .set_count = flags.set.count,
        .resume = flags.resume,
        .overwrite = flags.overwrite,
        .init = flags.init,
        .freeze = flags.freeze.items,
        .freeze_count = flags.freeze.count,
        .memory = flags.memory,
        .threads = (int)flags.threads,
        .profile = flags.profile,
        .on_step = cpl_cli_display_event,
        .on_validation = cpl_cli_display_event,
        .on_event = cpl_cli_display_event,
        .message = cpl_cli_display_message,
        .user = &display,
        .stop = &stop_signal,
    };
    cpl_status status = cpl_train(&options, &err);
    cpl_cli_display_end(&display);
    code = cpl_cli_finish(status, &err);
    return status == CPL_STOPPED ? 128 + (stop_signal != 0 ? (int)stop_signal : SIGINT) : code;
}
