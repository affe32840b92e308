/* test_attention_step.c: attention of a single query has the bits that the same query has among others: what is decoded
 * step by step sees what the whole sequence sees. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "support/op_harness.h"
#include "support/run.h"

enum { BATCH = 5 };

static const int64_t SOURCE[BATCH] = {5, 3, 0, 40, 9}, THREE[BATCH] = {3, 3, 3, 3, 3}, ONE[BATCH] = {1, 1, 1, 1, 1},
                     MIXED[BATCH] = {3, 2, 2, 1, 1};
static const cpl_harness_batch WHOLE = {"whole", BATCH, 41, SOURCE, THREE, 0},
                               STEP = {"step", BATCH, 41, SOURCE, ONE, 0},
                               SOME = {"some", BATCH, 41, SOURCE, MIXED, 0};

static void same(const cpl_harness *h, const real *a, const real *b, int64_t n)
{
    if (memcmp(a, b, (size_t)n * sizeof *a) != 0)
        fail_msg("%s: other bits than among other queries", cpl_harness_name(h));
}

/* Rows of the first step stand first, in the same order where all have it; each head's weights begin anew. */
static void check(const cpl_kernels *kernels, const char *line, const cpl_harness_batch *batch, int heads)
{
    cpl_harness whole, step;
    cpl_harness_open(&whole, cpl_op_named("attention"), line, &WHOLE, 0);
    cpl_harness_open(&step, cpl_op_named("attention"), line, batch, 0);
    cpl_harness_use(&whole, kernels, 1);
    cpl_harness_use(&step, kernels, 2);
    memcpy(step.in[0].data, whole.in[0].data, (size_t)cpl_harness_elements(&step.in[0]) * sizeof(real));
    for (int k = 1; k < 3; k++)
        memcpy(step.in[k].data, whole.in[k].data, (size_t)cpl_harness_elements(&whole.in[k]) * sizeof(real));
    cpl_harness_forward(&whole, 1);
    cpl_harness_forward(&step, 1);
    same(&step, step.out[0].data, whole.out[0].data, BATCH * whole.in[0].width);
    for (int h = 0; h < heads; h++) {
        int64_t sources = 0, all = cpl_harness_elements(&whole.out[1]) / heads;
        int64_t own = cpl_harness_elements(&step.out[1]) / heads;
        for (int i = 0; i < BATCH; i++)
            sources += SOURCE[i];
        same(&step, step.out[1].data + h * own, whole.out[1].data + h * all, sources);
    }
    cpl_tensor weights = step.out[1];
    step.out[1].data = NULL; /* nobody reads them */
    cpl_harness_forward(&step, 1);
    step.out[1] = weights;
    same(&step, step.out[0].data, whole.out[0].data, BATCH * whole.in[0].width);
    cpl_harness_close(&whole);
    cpl_harness_close(&step);
}

static void one_query_has_the_bits_of_many(void **state)
{
    const cpl_kernels *tables[8];
    int n = cpl_kernels_all(tables, 8);
    (void)state;
    for (int i = 0; i < n; i++) {
        check(tables[i], "hd=1 attr.0=1 attr.1=1.0", &STEP, 1);
        check(tables[i], "hd=36 attr.0=3 attr.1=0.25", &STEP, 3);
        check(tables[i], "hd=36 attr.0=3 attr.1=0.25", &SOME, 3); /* some sentences have one query, some more */
        check(tables[i], "hd=257 attr.0=1 attr.1=0.5", &STEP, 1);
    }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(one_query_has_the_bits_of_many)};

CPL_TEST_MAIN(tests)
