/* translator_step.c: time of one training step of reference B on given lengths.
 *
 *   translator_step LENGTHS [STEPS] [BATCH] [UNITS] [VOCABULARY] [THREADS]
 *
 * step.h says what LENGTHS and the ids are. Prints the median step in ms, and what memory it took. */
#include "step.h"

int main(int argc, char **argv)
{
    static step_work w = {.usage = "translator_step LENGTHS [STEPS] [BATCH] [UNITS] [VOCABULARY] [THREADS]",
                          .kind = &cpl_translator, .width = {32, 32}, .batches = 50};
    cpl_config *config = NULL;
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
