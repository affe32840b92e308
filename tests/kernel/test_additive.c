/* test_additive.c: scores of additive attention and their gradients, every table: against the reference table, over
 * the whole range of tanh, and with the same bits for a step alone or among others. */
#include "kernel_test.h"

static const cpl_kernels *tables[TABLES_MOST];
static int table_count;

static const int64_t widths[] = {1, 3, 7, 15, 16, 17, 33, 64, 100};
static const int64_t lengths[][2] = {{1, 1}, {1, 9}, {2, 3}, {3, 4}, {4, 5}, {5, 1}, {7, 8}, {9, 13}, {0, 3}, {3, 0}};

enum { WIDTHS = sizeof widths / sizeof *widths, LENGTHS = sizeof lengths / sizeof *lengths };

typedef struct sheet {
    int64_t t, s, n;
    real *q, *k, *v, *d;
    real *scratch, *scores, *dq, *dk, *dv;
} sheet;

static sheet sheet_new(int64_t t, int64_t s, int64_t n, double range)
{
    sheet x = {.t = t, .s = s, .n = n};

    x.q = numbers(t * n, 1, range);
    x.k = numbers(s * n, 2, range);
    x.v = numbers(n, 3, 1.0);
    x.d = numbers(t * s, 4, 1.0);
    x.scratch = aligned_alloc(64, ((size_t)cpl_additive_scratch(t, s, n) * sizeof(real) + 63) / 64 * 64);
    assert_non_null(x.scratch);
    x.scores = numbers(t * s, 5, 1.0);
    x.dq = numbers(t * n, 6, 1.0);
    x.dk = numbers(s * n, 7, 1.0);
    x.dv = numbers(n, 8, 1.0);
    return x;
}

static void sheet_free(sheet *x)
{
    real *all[] = {x->q, x->k, x->v, x->d, x->scratch, x->scores, x->dq, x->dk, x->dv};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void run(const cpl_kernels *table, const sheet *x)
{
    table->additive_scores(x->t, x->s, x->n, x->q, x->k, x->v, x->scratch, x->scores);
    table->additive_scores_backward(x->t, x->s, x->n, x->q, x->k, x->v, x->d, x->scratch, x->dq, x->dk, x->dv);
}

/* Errors of a sum are at most one of tanh, 1e-6, for each term (|v| and |d| are below 1). */
static void compare(const cpl_kernels *table, const sheet *got, const sheet *expected)
{
    const double one = 1e-6;

    run(table, got);
    run(cpl_kernels_named("reference"), expected);
    assert_close("scores", table->name, got->scores, expected->scores, got->t * got->s, one * (double)got->n);
    assert_close("dq", table->name, got->dq, expected->dq, got->t * got->n, one * (double)(1 + got->s));
    assert_close("dk", table->name, got->dk, expected->dk, got->s * got->n, one * (double)(1 + got->t));
    assert_close("dv", table->name, got->dv, expected->dv, got->n, one * (double)(1 + got->t * got->s));
}

/* Ranges: ordinary, saturated, and beyond what exponentials can hold. */
static void every_table_agrees_with_the_reference(void **state)
{
    static const double ranges[] = {2.0, 19.9, 60.0};

    (void)state;
    for (int i = 0; i < table_count * WIDTHS * LENGTHS * 3; i++) {
        const int64_t *length = lengths[i / 3 % LENGTHS];
        int64_t n = widths[i / 3 / LENGTHS % WIDTHS];
        sheet got = sheet_new(length[0], length[1], n, ranges[i % 3]);
        sheet expected = sheet_new(length[0], length[1], n, ranges[i % 3]);

        compare(tables[i / (3 * LENGTHS * WIDTHS)], &got, &expected);
        sheet_free(&got);
        sheet_free(&expected);
    }
}

/* One number each and v 1: the score is tanh(q + k), its gradient the slope, however large and opposed the two are. */
static void tanh_is_accurate_everywhere(void **state)
{
    const real one = 1;

    (void)state;
    for (int i = 0; i < table_count * 4001; i++) {
        const cpl_kernels *table = tables[i / 4001];
        double sum = (i % 4001 - 2000) / 200.0;

        for (double shift = -1000.0; shift <= 1000.0; shift += 62.5) {
            real scratch[128] __attribute__((aligned(64)));
            real q = (real)(shift + sum), k = (real)-shift, score, dq, dk, dv;
            double f = tanh((double)q + (double)k);

            table->additive_scores(1, 1, 1, &q, &k, &one, scratch, &score);
            table->additive_scores_backward(1, 1, 1, &q, &k, &one, &one, scratch, &dq, &dk, &dv);
            assert_true(fabs((double)score - f) < 1e-6 && fabs((double)dv - f) < 1e-6);
            assert_true(fabs((double)dq - (1.0 - f * f)) < 1e-6 && dq == dk);
        }
    }
}

static void a_nan_is_not_hidden(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        sheet x = sheet_new(2, 3, 17, 1.0);

        x.k[17 + 16] = (real)NAN; /* of step 1 of s */
        run(tables[t], &x);
        for (int i = 0; i < 6; i++)
            assert_true((isnan(x.scores[i]) != 0) == (i % 3 == 1));
        assert_true(isnan(x.dq[16]) && isnan(x.dk[17 + 16]) && isnan(x.dv[16]));
        assert_false(isnan(x.dq[0]) || isnan(x.dk[0]) || isnan(x.dv[0]));
        sheet_free(&x);
    }
}

/* Steps of t alone, among ordinary neighbours, and next to one beyond the exponentials (step 2). */
static void bits_of_a_step_do_not_depend_on_other_steps(void **state)
{
    enum { T = 7, S = 5 };

    (void)state;
    for (int i = 0; i < table_count * WIDTHS; i++) {
        const cpl_kernels *table = tables[i / WIDTHS];
        int64_t n = widths[i % WIDTHS];
        sheet whole = sheet_new(T, S, n, 2.0);

        whole.q[2 * n] = 25;
        run(table, &whole);
        for (int64_t step = 0; step < T; step++) {
            sheet one = sheet_new(1, S, n, 2.0);

            memcpy(one.q, whole.q + step * n, sizeof(real) * (size_t)n);
            memcpy(one.d, whole.d + step * S, sizeof(real) * S);
            run(table, &one);
            assert_same_bits("scores", table->name, one.scores, whole.scores + step * S, S);
            assert_same_bits("dq", table->name, one.dq, whole.dq + step * n, n);
            sheet_free(&one);
        }
        sheet_free(&whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_agrees_with_the_reference),
        cmocka_unit_test(tanh_is_accurate_everywhere),
        cmocka_unit_test(a_nan_is_not_hidden),
        cmocka_unit_test(bits_of_a_step_do_not_depend_on_other_steps),
    };

    table_count = cpl_kernels_all(tables, TABLES_MOST);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
