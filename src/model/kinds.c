/* kinds.c: the kinds by model.type. */
#include "model/model.h"

const cpl_model_kind *cpl_model_kind_of(const cpl_config *config)
{
    static const cpl_model_kind *const kinds[] = {[CPL_MODEL_TRANSLATOR] = &cpl_translator,
                                                  [CPL_MODEL_SUMMARIZER] = &cpl_summarizer};
    return kinds[config->model.type];
}
