/* recompute.h: a training run with recomputation gives every bit of the one without. */
#ifndef CPL_TESTS_SUPPORT_RECOMPUTE_H
#define CPL_TESTS_SUPPORT_RECOMPUTE_H

#include <stdlib.h>
#include <string.h>
#include "graph/program.h"

/* p has just run CPL_TRAIN; put_in feeds the same batch again. Checks the gradients of each level of recomputation
 * against those of that run. Returns how many calls ran again, of all levels together. */
static inline int check_recomputation(cpl_program *p, void (*put_in)(cpl_program *p, const void *user),
                                      const void *user)
{
    size_t bytes = (size_t)cpl_parameters_gradient_bytes(p->engine->parameters);
    cpl_binding binding = p->binding;
    uint64_t step = p->step - 1;
    void *want = malloc(bytes + 1);
    int again = 0;
    assert_non_null(want);
    memcpy(want, p->gradients, bytes);
    for (int level = CPL_RECOMPUTE_CHEAP; level <= CPL_RECOMPUTE_ALL; level++) {
        memset(p->gradients, 0, bytes);
        assert_int_equal(cpl_program_recompute(p, (cpl_recompute)level, &binding, NULL), CPL_OK);
        for (int run = 0; run < 2; run++) { /* what the first run left in memory must not matter */
            p->step = step;
            put_in(p, user);
            assert_int_equal(cpl_run(p, CPL_TRAIN, NULL), CPL_OK);
            assert_memory_equal(p->gradients, want, bytes);
        }
        again += p->recomputed;
    }
    assert_int_equal(cpl_program_recompute(p, CPL_RECOMPUTE_NONE, &binding, NULL), CPL_OK);
    free(want);
    return again;
}

#endif
