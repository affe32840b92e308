/* translate.c: a trained model inside a program.
 *
 *   cc translate.c -lcouplet -o translate && ./translate de-en/model.safetensors 'ein mann fährt fahrrad .' */
#include <couplet.h>

int main(int argc, char **argv)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_model *model = NULL;
    char *output = NULL;
    if (argc != 3)
        return fputs("usage: translate MODEL 'a line of text'\n", stderr), 2;
    cpl_status status = cpl_model_open(&model, argv[1], 0, &err);
    if (status == CPL_OK)
        status = cpl_generate(&output, model, argv[2], NULL, &err);
    if (status == CPL_OK)
        puts(output);
    else
        cpl_error_print(&err, stderr);
    cpl_free(output);
    cpl_model_close(model);
    return (int)status;
}
