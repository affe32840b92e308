/* Gradients through a loop against central differences, in double: states, attention inside, what is left until after
 * the loop. */
#include "support/run.h"

#include <math.h>
#include "graph/program.h"
#include "support/loop_model.h"

static double loss_of(cpl_program *p)
{
    cpl_error err = CPL_ERROR_INIT;
    p->step = 3; /* of every run the same masks */
    if (run_reader(p, &err) != CPL_OK) {
        cpl_error_print(&err, stderr);
        fail();
    }
    return cpl_scalar(p, "loss");
}

static void gradients_by_differences(void **state)
{
    (void)state;
    for (int kind = 0; kind < READERS; kind++) {
        cpl_program *p;
        cpl_error err = CPL_ERROR_INIT;
        assert_int_equal(cpl_compile(&p, reader_model, &kind, &(cpl_compile_options){.seed = 7}, &err), CPL_OK);
        const cpl_parameters *store = p->engine->parameters;
        for (size_t i = 0; i < cpl_parameters_count(store); i++) {
            const cpl_parameter_info *info = cpl_parameters_at(store, i);
            assert_true(info->reached);
            for (int64_t k = 0; k < info->elements; k++) {
                loss_of(p);
                double want = p->gradients[info->offset + k], at[2];
                real *w = cpl_parameters_value(store, i) + k, old = *w;
                /* a small step: where most of a state is dropped, the norm after it curves */
                for (int side = 0; side < 2; side++) {
                    *w = old + (side ? 2e-6 : -2e-6);
                    at[side] = loss_of(p);
                }
                *w = old;
                double got = (at[1] - at[0]) / 4e-6;
                if (!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))))
                    fail_msg("%s[%d]: %.9g, by differences %.9g", info->path, (int)k, want, got);
            }
        }
        cpl_program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_by_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
