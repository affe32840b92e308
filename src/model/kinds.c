/* kinds.c: the kinds by model.type. */
#include "model/model.h"

const cpl_model_kind *cpl_model_kind_of(const cpl_config *config)
{
    static const cpl_model_kind *const kinds[] = {[CPL_MODEL_TRANSLATOR] = &cpl_translator,
                                                  [CPL_MODEL_SUMMARIZER] = &cpl_summarizer,
                                                  [CPL_MODEL_AUTOENCODER] = &cpl_autoencoder};
    if (config->model.bottleneck > 0)
        return &cpl_bottleneck;
    return kinds[config->model.type];
}
