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

/* ---- single steps of a loop ---- */

enum { APART = 3 /* rows of a sentence stand this far apart */, MEMORY = 21 };

typedef struct one_step {
    int64_t s, n, u;
    int32_t *at;
    real *q, *k, *e, *v, *m, *dy, *dp, *scratch, *weights, *y, *dq, *mask;
} one_step;

static one_step step_new(int64_t s, int64_t n, int64_t u, double range)
{
    one_step x = {.s = s, .n = n, .u = u, .at = calloc((size_t)s, sizeof *x.at)};

    x.q = numbers(n, 1, range);
    x.k = numbers(s * APART * n, 2, range);
    x.e = numbers(s * APART * n, 3, range);
    x.v = numbers(n, 4, 1.0);
    x.m = numbers(s * APART * u, 5, 1.0);
    x.dy = numbers(u, 6, 1.0);
    x.dp = numbers(s, 7, 1.0);
    x.scratch = aligned_alloc(64, ((size_t)cpl_additive_scratch(1, s, n) * sizeof(real) + 63) / 64 * 64);
    x.weights = numbers(s, 8, 1.0);
    x.mask = numbers(s, 11, 2.0);
    x.y = numbers(u, 9, 1.0);
    x.dq = numbers(n, 10, 1.0);
    assert_true(x.at != NULL && x.scratch != NULL);
    for (int64_t j = 0; j < s; j++)
        x.at[j] = (int32_t)(j * APART);
    return x;
}

static void step_free(one_step *x)
{
    real *all[] = {x->q, x->k, x->e, x->v, x->m, x->dy, x->dp, x->scratch, x->weights, x->y, x->dq,
                   x->mask};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(x->at);
}

/* missing 1: no dy, 2: no dweights; with neither missing there is a mask. */
static void run_step(const cpl_kernels *table, one_step *x, int prepared, int missing)
{
    cpl_additive_step a = {.s = x->s, .n = x->n, .u = x->u, .at = x->at, .q = x->q, .k = x->k, .m = x->m,
                           .e = prepared ? x->e : NULL, .v = x->v, .scratch = x->scratch,
                           .mask = missing ? NULL : x->mask};

    table->additive_exponentials(x->s * APART * x->n, x->k, x->e);
    table->additive_step(&a, x->weights, x->y);
    table->additive_step_backward(&a, x->weights, missing == 1 ? NULL : x->dy, missing == 2 ? NULL : x->dp, x->dq);
}

/* A step is softmax, product and gradient of the scores above; prepared keys change no bit. */
static void compare_steps(const cpl_kernels *table, int64_t s, int64_t n, double range, int missing)
{
    const int64_t u = MEMORY;
    one_step got = step_new(s, n, u, range), plain = step_new(s, n, u, range);
    one_step expected = step_new(s, n, u, range);
    double scores = 2e-6 * (double)n; /* errors of exponents */

    run_step(table, &got, 1, missing);
    run_step(table, &plain, 0, missing);
    run_step(cpl_kernels_named("reference"), &expected, 1, missing);
    assert_same_bits("weights", table->name, got.weights, plain.weights, s);
    assert_same_bits("dq", table->name, got.dq, plain.dq, n);
    assert_close("weights", table->name, got.weights, expected.weights, s, 1e-6 + scores);
    assert_close("y", table->name, got.y, expected.y, u, 1e-5 + scores);
    assert_close("dq", table->name, got.dq, expected.dq, n, 1e-5 + (double)u * scores);
    step_free(&got);
    step_free(&plain);
    step_free(&expected);
}

static void every_table_agrees_in_steps(void **state)
{
    static const double ranges[] = {2.0, 19.9, 60.0};
    static const int64_t sources[] = {1, 3, 4, 9, 34};

    (void)state;
    for (int t = 0; t < table_count; t++)
        for (int i = 0; i < WIDTHS * 5 * 9; i++)
            compare_steps(tables[t], sources[i / 9 % 5], widths[i / 45], ranges[i % 3], i / 3 % 3);
}

/* The reference step against the reference of whole sequences. */
static void a_step_is_a_sequence_of_one(void **state)
{
    enum { S = 5, N = 7 };
    const cpl_kernels *table = cpl_kernels_named("reference");
    one_step x = step_new(S, N, MEMORY, 2.0);
    sheet whole = sheet_new(1, S, N, 2.0);

    (void)state;
    run_step(table, &x, 1, 1);
    memcpy(whole.q, x.q, N * sizeof(real));
    memcpy(whole.v, x.v, N * sizeof(real));
    for (int j = 0; j < S; j++)
        memcpy(whole.k + j * N, x.k + j * APART * N, N * sizeof(real));
    table->additive_scores(1, S, N, whole.q, whole.k, whole.v, whole.scratch, whole.scores);
    table->softmax(1, S, whole.scores, S);
    assert_close("weights", "reference", x.weights, whole.scores, S, 1e-6);
    table->softmax_backward(1, S, whole.scores, x.dp, whole.d, S);
    table->additive_scores_backward(1, S, N, whole.q, whole.k, whole.v, whole.d, whole.scratch, whole.dq, NULL, NULL);
    assert_close("dq", "reference", x.dq, whole.dq, N, 1e-6);
    sheet_free(&whole);
    step_free(&x);
}

/* What is not wanted changes nothing of the rest. */
static void gradients_may_be_left_out(void **state)
{
    (void)state;
    for (int i = 0; i < table_count * WIDTHS * 3; i++) {
        const cpl_kernels *table = tables[i / (WIDTHS * 3)];
        int64_t n = widths[i / 3 % WIDTHS];
        double range = i % 3 ? 2.0 : 60.0;
        sheet all = sheet_new(7, 5, n, range), some = sheet_new(7, 5, n, range);

        run(table, &all);
        table->additive_scores_backward(7, 5, n, some.q, some.k, some.v, some.d, some.scratch, some.dq, NULL, NULL);
        table->additive_scores_backward(7, 5, n, some.q, some.k, some.v, some.d, some.scratch, NULL, some.dk, some.dv);
        assert_same_bits("dq", table->name, some.dq, all.dq, 7 * n);
        assert_same_bits("dk", table->name, some.dk, all.dk, 5 * n);
        assert_same_bits("dv", table->name, some.dv, all.dv, n);
        sheet_free(&all);
        sheet_free(&some);
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
        cmocka_unit_test(every_table_agrees_in_steps),
        cmocka_unit_test(a_step_is_a_sequence_of_one),
        cmocka_unit_test(gradients_may_be_left_out),
        cmocka_unit_test(tanh_is_accurate_everywhere),
        cmocka_unit_test(a_nan_is_not_hidden),
        cmocka_unit_test(bits_of_a_step_do_not_depend_on_other_steps),
    };

    table_count = cpl_kernels_all(tables, TABLES_MOST);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
