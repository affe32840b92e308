/* test_copy.c: logits over extended ids against a mixture computed by hand: the numbers of tests/ops/test_pointer.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>
#include "decode/copy.h"
#include "support/run.h"

enum { VOCABULARY = 4, TABLES = 8 };

static const int32_t WORDS[] = {4, 2, 4}, *const COPY[] = {WORDS, WORDS};
static const int64_t LENGTHS[] = {3, 3};
static const cpl_decode_batch BATCH = {.count = 2, .copy = COPY, .length = LENGTHS};
static const real WEIGHTS[] = {(real)0.5, (real)0.25, (real)0.25, (real)0.1, (real)0.6, (real)0.3};

static void fill(real *logits)
{
    for (int i = 0; i < VOCABULARY; i++)
        logits[i] = (real)(log(0.1 * (i + 1)) + 5);
}

static cpl_decode_copy open_copy(int64_t *at, const real *gate)
{
    cpl_decode_copy c = {.vocabulary = VOCABULARY};
    assert_int_equal(cpl_decode_copy_reserve(&c, 1, 2, 3, NULL), CPL_OK);
    c.gate = gate;
    c.weights = WEIGHTS;
    at[0] = 0, at[1] = 3;
    memcpy(c.at, at, 2 * sizeof *at);
    return c;
}

static void test_mixture(void **state)
{
    (void)state;
    static const double expected[2][5] = {{0.075, 0.15, 0.2875, 0.3, 0.1875}, {0.05, 0.1, 0.45, 0.2, 0.2}};
    const real gate[] = {(real)log(3), 0};
    const cpl_kernels *tables[TABLES];
    int64_t at[2], n;
    cpl_decode_copy c = open_copy(at, gate);
    for (int t = cpl_kernels_all(tables, TABLES); t-- > 0;)
        for (int k = 0; k < 2; k++) {
            real logits[VOCABULARY];
            fill(logits);
            real *mixed = cpl_decode_copy_mix(&c, tables[t], 0, k, &BATCH, k, logits, &n);
            assert_int_equal(n, 5);
            tables[t]->softmax(1, n, mixed, n);
            for (int i = 0; i < 5; i++)
                if (!(fabs((double)mixed[i] - expected[k][i]) < 1e-6))
                    fail_msg("%s: row %d id %d has %.9g, expected %.9g", tables[t]->name, k, i, (double)mixed[i],
                             expected[k][i]);
        }
    cpl_decode_copy_free(&c);
}

/* What chooses sees the mixture: the word that only the source has, with its logarithm; and no number where the gate or
 * the logits are none. */
static void test_choice(void **state)
{
    (void)state;
    static const cpl_choice greedy = {.temperature = 0};
    real gate[] = {-2, (real)NAN}, logits[VOCABULARY];
    const cpl_kernels *kernels = cpl_kernels_named("reference");
    int64_t at[2], n;
    cpl_decode_copy c = open_copy(at, gate);
    fill(logits);
    real *mixed = cpl_decode_copy_mix(&c, kernels, 0, 0, &BATCH, 0, logits, &n);
    cpl_chosen x = cpl_decode_choose(kernels, mixed, n, &greedy);
    assert_int_equal(x.id, 4);
    assert_true(fabs(x.log_probability - log(0.75 / (1 + exp(-2)))) < 1e-6);
    fill(logits);
    mixed = cpl_decode_copy_mix(&c, kernels, 0, 1, &BATCH, 1, logits, &n);
    assert_int_equal(cpl_decode_choose(kernels, mixed, n, &greedy).id, -1);
    fill(logits);
    logits[1] = (real)NAN;
    mixed = cpl_decode_copy_mix(&c, kernels, 0, 0, &BATCH, 0, logits, &n);
    assert_int_equal(cpl_decode_choose(kernels, mixed, n, &greedy).id, -1);
    cpl_decode_copy_free(&c);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_mixture), cmocka_unit_test(test_choice)};

CPL_TEST_MAIN(tests)
