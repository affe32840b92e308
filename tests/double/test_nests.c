/* Gradients through a loop in the steps of a loop against central differences, in double. */
#include "support/run.h"

#include <math.h>
#include "graph/program.h"
#include "support/nest_model.h"

static double loss_of(cpl_program *p)
{
    cpl_error err = CPL_ERROR_INIT;
    if (run_nest_model(p, CPL_TRAIN, &err) != CPL_OK) {
        cpl_error_print(&err, stderr);
        fail();
    }
    return cpl_scalar(p, "loss");
}

static void check_parameter(cpl_program *p, int kind, size_t i)
{
    const cpl_parameters *store = p->engine->parameters;
    const cpl_parameter_info *info = cpl_parameters_at(store, i);
    assert_true(info->reached);
    for (int64_t k = 0; k < info->elements; k++) {
        loss_of(p);
        double want = p->gradients[info->offset + k], at[2];
        real *w = cpl_parameters_value(store, i) + k, old = *w;
        for (int side = 0; side < 2; side++) {
            *w = old + (side ? 1e-5 : -1e-5);
            at[side] = loss_of(p);
        }
        *w = old;
        double got = (at[1] - at[0]) / 2e-5;
        if (!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))))
            fail_msg("nest %d, %s[%d]: %.9g, by differences %.9g", kind, info->path, (int)k, want, got);
    }
}

static void gradients_by_differences(void **state)
{
    (void)state;
    for (int kind = 0; kind < NESTS; kind++) {
        cpl_program *p;
        cpl_error err = CPL_ERROR_INIT;
        cpl_status status = cpl_compile(&p, nest_model, &kind, &(cpl_compile_options){.seed = 3}, &err);
        if (status != CPL_OK)
            cpl_error_print(&err, stderr);
        assert_int_equal(status, CPL_OK);
        /* what begins at zero gets other values, so that no gradient is zero by chance */
        const cpl_parameters *store = p->engine->parameters;
        for (size_t i = 0; i < cpl_parameters_count(store); i++)
            for (int64_t k = 0; k < cpl_parameters_at(store, i)->elements; k++)
                cpl_parameters_value(store, i)[k] += 0.3 * sin((double)(k + 7 * (int64_t)i));
        for (size_t i = 0; i < cpl_parameters_count(store); i++)
            check_parameter(p, kind, i);
        cpl_program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_by_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
