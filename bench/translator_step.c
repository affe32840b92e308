/* translator_step.c: time of one training step of reference B on given lengths.
 *
 *   translator_step LENGTHS [STEPS] [BATCH] [UNITS] [VOCABULARY] [THREADS] [--freeze PATH]...
 *
 * step.h says what LENGTHS and the ids are. Prints the median step in ms, and what memory it took. --freeze names a
 * part that does not train, as for `couplet train`; it may be repeated. */
#include "step.h"

enum { MOST_FROZEN = 16 };

/* Takes the pairs "--freeze PATH" out of the arguments. Returns how many are left, or −1. */
static int take_freeze(int argc, char **argv, const char **paths, int *count)
{
    int left = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--freeze") != 0) {
            argv[left++] = argv[i];
            continue;
        }
        if (i + 1 == argc || *count == MOST_FROZEN)
            return -1;
        paths[(*count)++] = argv[++i];
    }
    return left;
}

int main(int argc, char **argv)
{
    static const char *frozen[MOST_FROZEN];
    static step_work w = {.usage = "translator_step LENGTHS [STEPS] [BATCH] [UNITS] [VOCABULARY] [THREADS] "
                                   "[--freeze PATH]...",
                          .kind = &cpl_translator, .freeze = frozen, .width = {32, 32}, .batches = 50};
    cpl_config *config = NULL;
    argc = take_freeze(argc, argv, frozen, &w.freeze_count);
    if (argc < 0)
        return fprintf(stderr, "usage: %s\n", w.usage), 2;
    if (cpl_config_default(&config, NULL))
        return 2;
    w.steps = step_argument(argc, argv, 2, 30);
    w.batch = step_argument(argc, argv, 3, 64);
    w.vocabulary = step_argument(argc, argv, 5, 5000);
    config->model.units = step_argument(argc, argv, 4, 256);
    int status = step_main(&w, argc, argv, config, (int)step_argument(argc, argv, 6, 2));
    cpl_config_free(config);
    return status;
}
