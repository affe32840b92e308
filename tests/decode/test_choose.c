/* One row of logits → one token. Probabilities are those of cases/open/F06_temperature.json. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include "decode/decode.h"

static const cpl_kernels *kernels(void)
{
    const cpl_kernels *k = NULL;
    assert_int_equal(cpl_kernels_pick(&k, NULL), CPL_OK);
    return k;
}

static cpl_chosen choose(const real *logits, int64_t n, uint64_t forbidden, double temperature, double unit)
{
    real row[64];
    cpl_choice c = {.forbidden = forbidden, .temperature = temperature, .unit = unit};
    memcpy(row, logits, (size_t)n * sizeof *row);
    cpl_chosen with = cpl_decode_choose(kernels(), row, n, &c);
    c.no_probability = 1;
    cpl_chosen without = cpl_decode_choose(kernels(), row, n, &c);
    assert_int_equal(without.id, with.id);
    assert_true(isnan(without.log_probability));
    assert_memory_equal(row, logits, (size_t)n * sizeof *row);
    return with;
}

static const real f06[] = {1, 3, 2, 3};
enum { GRID = 1000000 };

/* The share of evenly spread numbers that choose an id is its probability. */
static void expect_shares(double temperature, const double expected[4])
{
    int64_t seen[4] = {0};
    for (int i = 0; i < GRID; i++) {
        cpl_chosen x = choose(f06, 4, 0, temperature, (i + 0.5) / GRID);
        assert_in_range(x.id, 0, 3);
        seen[x.id]++;
    }
    for (int i = 0; i < 4; i++)
        assert_true(fabs((double)seen[i] / GRID - expected[i]) < 3e-6);
}

static void case_F06_temperature(void **state)
{
    (void)state;
    static const double at_one[] = {0.054065, 0.399486, 0.146963, 0.399486};
    static const double at_half[] = {0.008504, 0.464328, 0.06284, 0.464328};
    static const double tiny[] = {1e-4, 1e-30, 1e-300, 5e-324};
    for (int i = 0; i < 20; i++)
        assert_int_equal(choose(f06, 4, 0, 0, i / 20.0).id, 1);
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 100; i++) {
            cpl_chosen x = choose(f06, 4, 0, tiny[t], i / 100.0);
            assert_true(x.id == 1 || x.id == 3);
            assert_true(fabs(x.log_probability - log(0.399486)) < 2e-6);
        }
    expect_shares(1, at_one);
    expect_shares(0.5, at_half);
}

static void case_F06_wrong_temperatures_are_named(void **state)
{
    (void)state;
    static const struct { double value; const char *text; } wrong[] = {
        {-1, "temperature is -1"}, {NAN, "nan"}, {INFINITY, "temperature is inf"}};
    for (int i = 0; i < 3; i++) {
        cpl_error err = CPL_ERROR_INIT;
        assert_int_equal(cpl_decode_check_temperature(wrong[i].value, &err), CPL_USAGE);
        assert_non_null(strstr(err.line[0], "temperature is "));
        assert_non_null(strstr(err.line[0], wrong[i].text));
    }
    assert_int_equal(cpl_decode_check_temperature(0, NULL), CPL_OK);
    assert_int_equal(cpl_decode_check_temperature(1e-300, NULL), CPL_OK);
}

static void forbidden_ids_never_come(void **state)
{
    (void)state;
    cpl_chosen x = choose(f06, 4, 1u << 1, 0, 0);
    assert_int_equal(x.id, 3);
    assert_true(fabs(x.log_probability - log(0.399486)) < 2e-6);
    x = choose(f06, 4, 1u << 1 | 1u << 3, 0, 0);
    assert_int_equal(x.id, 2);
    assert_true(fabs(x.log_probability - log(0.146963)) < 1e-5); /* of all logits: nothing is renormalised */
    for (int i = 0; i < 1000; i++) {
        int32_t id = choose(f06, 4, 1u << 1, 1, i / 1000.0).id;
        assert_true(id == 0 || id == 2 || id == 3);
    }
    assert_int_equal(choose(f06, 4, 15, 0, 0).id, -1);
    assert_int_equal(choose(f06, 4, 15, 1, 0.5).id, -1);
}

static void what_is_no_number_is_told(void **state)
{
    (void)state;
    const real nan_row[] = {1, NAN, 2}, low[] = {-INFINITY, -INFINITY}, high[] = {1, INFINITY}, some[] = {-INFINITY, 0};
    for (int t = 0; t < 2; t++) {
        assert_int_equal(choose(nan_row, 3, 0, t, 0.5).id, -1);
        assert_int_equal(choose(low, 2, 0, t, 0.5).id, -1);
        assert_int_equal(choose(high, 2, 0, t, 0.5).id, -1);
        assert_int_equal(choose(some, 2, 0, t, 0.5).id, 1);
    }
    assert_true(choose(some, 2, 0, 0, 0).log_probability == 0);
}

/* Where nothing that is allowed has a probability, the first of it comes: something has to. A logit that is no number
 * counts wherever it stands. */
static void what_is_forbidden_leaves_the_rest(void **state)
{
    (void)state;
    const real none[] = {4, 1, -INFINITY, -INFINITY}, first[] = {-INFINITY, 4, -INFINITY}, nan_row[] = {NAN, 1, 2},
               high[] = {INFINITY, 1, 2};
    cpl_chosen x = choose(none, 4, 3, 0, 0);
    assert_int_equal(x.id, 2);
    assert_true(isinf(x.log_probability) && x.log_probability < 0);
    assert_int_equal(choose(first, 3, 2, 0, 0).id, 0);
    assert_int_equal(choose(nan_row, 3, 1, 0, 0).id, -1);
    assert_int_equal(choose(high, 3, 1, 0, 0).id, -1);
    real wide[64];
    for (int i = 0; i < 64; i++)
        wide[i] = (real)(i % 60);
    assert_int_equal(choose(wide, 64, 0, 0, 0).id, 59);
    assert_int_equal(choose(wide, 64, (uint64_t)1 << 59, 0, 0).id, 58);
    assert_int_equal(choose(wide, 64, ~((uint64_t)1 << 63 | 1), 0, 0).id, 63);
    assert_int_equal(choose(wide, 64, ~(uint64_t)0, 0, 0).id, -1);
}

/* Ids from 64 on are never forbidden. */
static void long_rows(void **state)
{
    (void)state;
    real row[1000];
    for (int i = 0; i < 1000; i++)
        row[i] = (real)-i;
    for (int forbidden = 0; forbidden <= 64; forbidden++) {
        cpl_choice c = {.forbidden = forbidden < 64 ? ((uint64_t)1 << forbidden) - 1 : ~(uint64_t)0};
        cpl_chosen x = cpl_decode_choose(kernels(), row, 1000, &c);
        assert_int_equal(x.id, forbidden);
        assert_true(fabs(x.log_probability + forbidden + log(1 / (1 - exp(-1)))) < 1e-6);
    }
}

/* Far below what a float can hold, the logarithm is still right. */
static void improbable_tokens_have_a_logarithm(void **state)
{
    (void)state;
    const real row[] = {0, 500};
    cpl_chosen x = choose(row, 2, 1u << 1, 0, 0);
    assert_int_equal(x.id, 0);
    assert_true(fabs(x.log_probability + 500) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_F06_temperature),
        cmocka_unit_test(case_F06_wrong_temperatures_are_named),
        cmocka_unit_test(forbidden_ids_never_come),
        cmocka_unit_test(what_is_no_number_is_told),
        cmocka_unit_test(what_is_forbidden_leaves_the_rest),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(improbable_tokens_have_a_logarithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
