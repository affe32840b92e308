/* summarizer_step.c: time of one training step of reference A on given lengths.
 *
 *   summarizer_step LENGTHS [STEPS] [POSITION] [BATCH] [UNITS] [VOCABULARY] [THREADS]
 *
 * LSTM encoder; LSTM decoder from its last state; additive attention, joined to the state by concatenation. POSITION
 * after (8,115,308 parameters at 256 units and 6,764 words): one attention over all steps. before: the state before a
 * step asks, so the decoder is a loop over single steps. step.h says what LENGTHS and the ids are. */
#include "step.h"

/* The other programs' attention has one bias, that of the keys; these two add nothing to what it can learn. */
static const char *const absent[] = {"decoder.attention.query.bias", "decoder.attention.score.bias"};

static int configure(cpl_config *c, const char *position)
{
    return cpl_config_set(c, "model.type", "summarizer", NULL) == CPL_OK &&
           cpl_config_set(c, "model.decoder.attention.position", position, NULL) == CPL_OK;
}

int main(int argc, char **argv)
{
    static step_work w = {.usage = "summarizer_step LENGTHS [STEPS] [after|before] [BATCH] [UNITS] [VOCABULARY] "
                                   "[THREADS]",
                          .kind = &cpl_summarizer, .freeze = absent, .freeze_count = 2, .width = {400, 50}, .batches = 20};
    cpl_config *config = NULL;
    if (cpl_config_default(&config, NULL) || !configure(config, argc > 3 ? argv[3] : "after"))
        return fprintf(stderr, "usage: %s\n", w.usage), cpl_config_free(config), 2;
    w.steps = step_argument(argc, argv, 2, 20);
    w.batch = step_argument(argc, argv, 4, 32);
    w.vocabulary = step_argument(argc, argv, 6, 6764);
    config->model.units = step_argument(argc, argv, 5, 256);
    int status = step_main(&w, argc, argv, config, (int)step_argument(argc, argv, 7, 2));
    cpl_config_free(config);
    return status;
}
