/* main.c: finds the command and runs it. */
#include "cli/cli.h"

#include <string.h>

/* The rows of one command's options. */
#define KIND_flag CPL_CLI_FLAG
#define KIND_text CPL_CLI_TEXT
#define KIND_texts CPL_CLI_TEXTS
#define KIND_integer CPL_CLI_INTEGER
#define KIND_real CPL_CLI_REAL
#define KIND_choice CPL_CLI_CHOICE
#define ROW(type, name, fallback, min, max, meta, help)                                                                \
    {#name, KIND_##type, min, max, meta, help, offsetof(FLAGS, name)},

#define FLAGS cpl_cli_new_flags
static const cpl_cli_option new_options[] = {CPL_CLI_NEW(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_train_flags
static const cpl_cli_option train_options[] = {CPL_CLI_TRAIN(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_plan_flags
static const cpl_cli_option plan_options[] = {CPL_CLI_PLAN(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_generate_flags
static const cpl_cli_option generate_options[] = {CPL_CLI_GENERATE(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_evaluate_flags
static const cpl_cli_option evaluate_options[] = {CPL_CLI_EVALUATE(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_score_flags
static const cpl_cli_option score_options[] = {CPL_CLI_SCORE(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_encode_flags
static const cpl_cli_option encode_options[] = {CPL_CLI_ENCODE(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_extract_flags
static const cpl_cli_option extract_options[] = {CPL_CLI_EXTRACT(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_average_flags
static const cpl_cli_option average_options[] = {CPL_CLI_AVERAGE(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_quantize_flags
static const cpl_cli_option quantize_options[] = {CPL_CLI_QUANTIZE(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_inspect_flags
static const cpl_cli_option inspect_options[] = {CPL_CLI_INSPECT(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_import_flags
static const cpl_cli_option import_options[] = {CPL_CLI_IMPORT(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_export_flags
static const cpl_cli_option export_options[] = {CPL_CLI_EXPORT(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_vocabulary_flags
static const cpl_cli_option vocabulary_options[] = {CPL_CLI_VOCABULARY(ROW)};
#undef FLAGS
#define FLAGS cpl_cli_bench_flags
static const cpl_cli_option bench_options[] = {CPL_CLI_BENCH(ROW)};
#undef FLAGS

#define COMMAND(name, LIST, positional, summary)                                                                       \
    {#name, positional, summary, name##_options, (int)(sizeof name##_options / sizeof name##_options[0]),              \
     cpl_cli_##name},
static const cpl_cli_command commands[] = {CPL_CLI_COMMANDS(COMMAND)};

_Static_assert(sizeof commands / sizeof commands[0] == CPL_CLI_COMMAND_COUNT, "CPL_CLI_COMMAND_COUNT is out of date");

const cpl_cli_command *cpl_cli_command_at(int i)
{
    return &commands[i];
}

const cpl_cli_command *cpl_cli_command_find(const char *name)
{
    for (int i = 0; i < CPL_CLI_COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[CPL_CLI_COMMAND_COUNT + 2] = {"help", "--version"};
    char hint[96];
    for (int i = 0; i < CPL_CLI_COMMAND_COUNT; i++)
        names[i + 2] = commands[i].name;
    const char *near = cpl_cli_near(name, names, CPL_CLI_COMMAND_COUNT + 2, hint);
    return cpl_cli_wrong(near == NULL ? "'couplet help' lists the commands" : near, "unknown %s '%s'",
                         name[0] == '-' ? "option" : "command", name);
}

int main(int argc, char **argv)
{
    /* A reader that has gone ends the program in silence, whatever the parent process ignored. */
    signal(SIGPIPE, SIG_DFL);
    if (argc < 2) {
        cpl_cli_usage(stderr);
        return CPL_USAGE;
    }
    const cpl_cli_command *command = cpl_cli_command_find(argv[1]);
    if (command != NULL)
        return command->run(command, argc - 2, argv + 2);
    if (strcmp(argv[1], "--version") == 0)
        return cpl_cli_result(cpl_version_text());
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return cpl_cli_help(argc - 2, argv + 2);
    return unknown_command(argv[1]);
}
