/* generate.c: couplet generate MODEL… */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Opens the input ("-" or NULL: stdin). Returns -1, or the exit status. */
static int open_input(const char *path, FILE **in)
{
    struct stat what;
    *in = path == NULL || strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (*in == NULL)
        return cpl_cli_wrong(NULL, "cannot read '%s': %s", path, strerror(errno));
    if (fstat(fileno(*in), &what) == 0 && S_ISDIR(what.st_mode)) {
        if (*in != stdin)
            fclose(*in);
        return cpl_cli_wrong(NULL, "cannot read '%s': it is a folder", path == NULL ? "-" : path);
    }
    return -1;
}

/* Opens the output ("-" or NULL: stdout) unless it is the input, which opening would empty. */
static int open_output(const char *path, FILE *in, FILE **out)
{
    struct stat input, output;
    *out = stdout;
    if (path == NULL || strcmp(path, "-") == 0)
        return -1;
    if (fstat(fileno(in), &input) == 0 && stat(path, &output) == 0 && S_ISREG(output.st_mode) &&
        input.st_dev == output.st_dev && input.st_ino == output.st_ino)
        return cpl_cli_wrong(NULL, "'%s' is both input and output", path);
    *out = fopen(path, "w");
    if (*out != NULL)
        return -1;
    cpl_cli_wrong(NULL, "cannot write '%s': %s", path, strerror(errno));
    return CPL_FAILED;
}

static int write_lines(cpl_model *model, FILE *in, const char *path, const cpl_generate_options *options)
{
    cpl_error err = CPL_ERROR_INIT;
    FILE *out = NULL;
    int code = open_output(path, in, &out);
    if (code != -1)
        return code;
    code = cpl_cli_finish(cpl_generate_lines(model, in, out, options, cpl_cli_message, NULL, &err), &err);
    if (out != stdout && fclose(out) != 0 && code == 0) {
        fprintf(stderr, "error: cannot write '%s': %s\n", path, strerror(errno));
        code = CPL_FAILED;
    }
    return code;
}

int cpl_cli_generate(const cpl_cli_command *self, int argc, char **argv)
{
    cpl_cli_generate_flags flags = {CPL_CLI_GENERATE(CPL_CLI_DEFAULT)};
    cpl_cli_positional positional;
    cpl_error err = CPL_ERROR_INIT;
    cpl_model *model = NULL;
    FILE *in = NULL;
    int code = cpl_cli_parse(self, argc, argv, &flags, &positional);
    if (code == -1 && positional.count < 1)
        code = cpl_cli_count(self, &positional, 1);
    if (code == -1)
        code = open_input(flags.i, &in);
    if (code != -1)
        return code;
    cpl_generate_options options = {
        CPL_CLI_DECODING_OPTIONS(flags),
        .nbest = flags.nbest,
        .tokens = flags.tokens,
        .json = flags.json,
        .attention_folder = flags.attention,
        .alignments = flags.alignments,
    };
    cpl_status status = cpl_model_open_ensemble(&model, positional.items, positional.count, (int)flags.threads, &err);
    code = status == CPL_OK ? write_lines(model, in, flags.o, &options) : cpl_cli_finish(status, &err);
    cpl_model_close(model);
    if (in != stdin)
        fclose(in);
    return code;
}
