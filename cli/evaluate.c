/* evaluate.c: couplet evaluate MODEL… PAIRS.tsv, or couplet evaluate --outputs FILE PAIRS.tsv */
#include "cli/cli.h"

static int print_scores(cpl_model *model, const cpl_evaluate_options *options)
{
    cpl_error err = CPL_ERROR_INIT;
    char *text = NULL;
    cpl_status status = cpl_evaluate(model, options, &text, &err);
    return status == CPL_OK ? cpl_cli_result(text) : cpl_cli_finish(status, &err);
}

/* Outputs come from a model or from a file: MODEL PAIRS.tsv, or --outputs FILE PAIRS.tsv. */
static int check_arguments(const cpl_cli_command *self, const cpl_cli_evaluate_flags *flags,
                           const cpl_cli_positional *positional)
{
    if (flags->outputs == NULL && positional->count == 1)
        return cpl_cli_wrong("'couplet evaluate --outputs FILE PAIRS.tsv' scores lines without a model",
                             "'couplet evaluate' needs MODEL PAIRS.tsv, got '%s' alone", positional->items[0]);
    if (flags->outputs != NULL && positional->count > 1)
        return cpl_cli_wrong(NULL, "--outputs FILE takes the place of a model: give PAIRS.tsv alone, got '%s' and '%s'",
                             positional->items[0], positional->items[1]);
    if (flags->outputs == NULL && flags->baseline != NULL)
        return cpl_cli_wrong("write the model's outputs with 'couplet generate', then give them as --outputs FILE",
                             "--baseline FILE is compared with --outputs FILE, not with a model");
    int least = flags->outputs == NULL ? 2 : 1;
    return positional->count < least ? cpl_cli_count(self, positional, least) : -1;
}

int cpl_cli_evaluate(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_evaluate_flags flags = {CPL_CLI_EVALUATE(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    cpl_model *model = NULL;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1)
        code = check_arguments(self, &flags, &positional);
    if (code != -1)
        return code;
    cpl_evaluate_options options = {
        .pairs = positional.items[positional.count - 1],
        .outputs = flags.outputs,
        .baseline = flags.baseline,
        .metrics = flags.metric,
        .tokenize = flags.tokenize,
        .group = flags.group,
        .bootstrap = flags.bootstrap,
        .raw = flags.raw,
        .json = flags.json,
        .generate = {CPL_CLI_DECODING_OPTIONS(flags)},
    };
    if (positional.count > 1) {
        cpl_status status = cpl_model_open_ensemble(&model, positional.items, positional.count - 1, (int)flags.threads,
                                                    &err);
        if (status != CPL_OK)
            return cpl_cli_finish(status, &err);
    }
    code = print_scores(model, &options);
    cpl_model_close(model);
    return code;
}
