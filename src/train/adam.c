/* adam.c: cpl_adam, for people who write their own training loop: the optimizer lives with the program. */
#include "base/error.h"
#include "base/memory.h"
#include "train/optimizer.h"

typedef struct own_optimizer {
    cpl_config *config; /* Keras's defaults */
    cpl_optimizer *optimizer;
    int64_t step;
} own_optimizer;

static void own_free(void *p)
{
    own_optimizer *o = p;
    cpl_optimizer_free(o->optimizer);
    cpl_config_free(o->config);
    cpl_release(o);
}

static cpl_status own_new(cpl_program *p, cpl_error *err)
{
    own_optimizer *o = cpl_alloc(1, sizeof *o);
    if (!o)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the optimizer");
    p->optimizer = o;
    p->free_optimizer = own_free;
    CPL_TRY(cpl_config_default(&o->config, err), err, "cannot make the optimizer");
    CPL_TRY(cpl_optimizer_new(&o->optimizer, &o->config->training, p->engine, p->gradients, err), err,
            "cannot make the optimizer");
    return CPL_OK;
}

cpl_status cpl_adam(cpl_program *p, double learning_rate, cpl_error *err)
{
    if (!p->ran || p->last_mode != CPL_TRAIN || p->layout != cpl_parameters_layout(p->engine->parameters))
        CPL_FAIL(err, CPL_USAGE, "cpl_adam needs gradients: call cpl_run(program, CPL_TRAIN, …) before it");
    if (!p->optimizer)
        CPL_TRY(own_new(p, err), err, "cannot update '%s'", p->name);
    own_optimizer *o = p->optimizer;
    CPL_TRY(cpl_optimizer_follow(o->optimizer, p->gradients, err), err, "cannot update '%s'", p->name);
    if (cpl_scalar(p, "count") == 0)
        return CPL_OK;
    cpl_optimizer_update(o->optimizer, ++o->step, learning_rate, 0);
    return CPL_OK;
}
