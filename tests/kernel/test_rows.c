/* test_rows.c: softmax, cross-entropy, argmax and layer normalisation of every table: against values known by
 * hand, against the reference table, and with the same bits for a row alone or among others. */
#include "kernel_test.h"

static const cpl_kernels *tables[TABLES_MOST];
static int table_count;

static const int64_t widths[] = {1, 2, 3, 7, 15, 16, 17, 33, 64, 100, 129, 1000};
static const int64_t heights[] = {1, 3, 15, 16, 17};

enum { WIDTHS = sizeof widths / sizeof *widths, HEIGHTS = sizeof heights / sizeof *heights };

/* ---- by hand ---- */

static void softmax_by_hand(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        real x[] = {0, (real)log(3.0), 1000, 1000, -1000, 1000};
        const real expected[] = {0.25, 0.75, 0.5, 0.5, 0, 1};

        tables[t]->softmax(3, 2, x, 2);
        assert_close("softmax", tables[t]->name, x, expected, 6, 3e-7);
        tables[t]->softmax(1, 0, x, 1); /* n 0: nothing happens */
    }
}

/* Masked entries stand at −∞, all of them in a row without a source: weights exactly 0, never a NaN. */
static void case_C12_infinite_scores_give_finite_weights(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        real x[40];

        for (int i = 0; i < 40; i++)
            x[i] = i < 20 && i % 2 == 0 ? -20 : (real)-INFINITY;
        tables[t]->softmax(2, 20, x, 20);
        for (int i = 0; i < 40; i++) {
            if (i < 20 && i % 2 == 0)
                assert_true(fabs((double)x[i] - 0.1) < 1e-7);
            else
                assert_true(x[i] == 0);
        }
    }
}

static void a_nan_is_not_hidden(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            real x[37];
            real loss, correct;
            int32_t target = 5;
            int32_t index;

            fill(x, 37, 1, 1.0);
            x[21] = (real)copysign(NAN, sign);
            tables[t]->argmax(1, 37, x, 37, &index);
            assert_int_equal(index, -1);
            tables[t]->argmax_sum_exp(1, 37, x, 37, &index, &loss);
            assert_true(index == -1 && isnan(loss));
            tables[t]->cross_entropy(1, 37, x, 37, NULL, &target, 1, 0, &loss, &correct);
            assert_true(isnan(loss) && correct == 0);
            tables[t]->softmax(1, 37, x, 37);
            for (int i = 0; i < 37; i++)
                assert_true(isnan(x[i]));
        }
    }
}

/* Two sentences of four places, four classes; places of label 0 hold garbage. */
static void case_C01_padding_gives_neither_loss_nor_gradient(void **state)
{
    const int32_t target[8] = {1, 2, 3, 0, 2, 0, 0, 0};
    const double chance[8] = {0.5, 0.25, 0.5, 0, 0.25, 0, 0, 0};

    (void)state;
    for (int t = 0; t < table_count; t++) {
        real x[32], loss[8], correct[8];
        double sum = 0.0;

        for (int i = 0; i < 32; i++) {
            double p = i % 4 == target[i / 4] ? chance[i / 4] : (1.0 - chance[i / 4]) / 3.0;

            x[i] = target[i / 4] == 0 ? (real)(1e30 * (i - 16)) : (real)log(p);
        }
        x[31] = (real)NAN;
        tables[t]->cross_entropy(8, 4, x, 4, NULL, target, (real)0.25, 1, loss, correct);
        for (int r = 0; r < 8; r++) {
            sum += (double)loss[r];
            for (int i = 0; i < 4; i++) {
                double p = i == target[r] ? chance[r] - 1.0 : (1.0 - chance[r]) / 3.0;

                if (target[r] == 0)
                    assert_true(x[r * 4 + i] == 0 && loss[r] == 0 && correct[r] == 0);
                else
                    assert_true(fabs((double)x[r * 4 + i] - 0.25 * p) < 1e-7);
            }
        }
        assert_true(fabs(sum - 6.0 * log(2.0)) < 2e-6);
    }
}

static void case_C05_the_padding_class_is_in_the_denominator(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        real x[3] = {0, 0, 0};
        const real bias[3] = {2, 2, 2};
        const int32_t target = 1;
        real loss, correct;

        tables[t]->cross_entropy(1, 3, x, 3, bias, &target, 1, 0, &loss, &correct);
        assert_true(fabs((double)loss - log(3.0)) < 3e-7);
        assert_true(correct == 0); /* the first of equal logits is class 0 */
        assert_true(x[0] == 2 && x[1] == 2 && x[2] == 2);
    }
}

static void argmax_takes_the_first_of_equals(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        for (int64_t n = 1; n < 400; n += 7) {
            real *x = numbers(n + 1, 4, 1.0);
            int32_t index[2];

            x[n / 3] = x[n / 2] = x[n - 1] = 2;
            tables[t]->argmax(1, n, x, n, index);
            assert_int_equal(index[0], n / 3);
            for (int64_t i = 0; i < n; i++)
                x[i] = (real)-INFINITY;
            tables[t]->argmax(1, n, x, n, index);
            assert_int_equal(index[0], 0);
            free(x);
        }
    }
}

/* Few different values: most rows have several largest. Whatever the place of a NaN, it is found. */
static void argmax_sees_every_place(void **state)
{
    enum { MOST = 300 };

    (void)state;
    for (int t = 0; t < table_count; t++) {
        for (int64_t n = 1; n <= MOST; n++) {
            real *x = numbers(n, (uint32_t)n, 3.0);
            int32_t index, expected = 0;

            for (int64_t i = 0; i < n; i++) {
                x[i] = (real)floor((double)x[i]);
                if (x[i] > x[expected])
                    expected = (int32_t)i;
            }
            tables[t]->argmax(1, n, x, n, &index);
            assert_int_equal(index, expected);
            for (int64_t at = 0; at < n; at += n < 40 ? 1 : 11) {
                real kept = x[at];

                x[at] = (real)NAN;
                tables[t]->argmax(1, n, x, n, &index);
                assert_int_equal(index, -1);
                x[at] = kept;
            }
            free(x);
        }
    }
}

static void argmax_sum_exp_by_hand(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        const real low = (real)-INFINITY, high = (real)INFINITY;
        const real x[] = {0, (real)log(3.0), 1000, 1000, -1000, 1000, low, low, low, -7, 1, high, high, (real)NAN};
        const int32_t first[] = {1, 0, 1, 0, 1, 1, -1};
        const real expected[] = {(real)(4.0 / 3.0), 2, 1, 0, 1, (real)NAN, (real)NAN};
        int32_t index[7];
        real sum[7];

        tables[t]->argmax_sum_exp(7, 2, x, 2, index, sum);
        assert_close("argmax_sum_exp", tables[t]->name, sum, expected, 7, 3e-7);
        for (int r = 0; r < 7; r++)
            assert_int_equal(index[r], first[r]);
        tables[t]->argmax_sum_exp(1, 0, x, 1, index, sum);
        assert_true(index[0] == -1 && sum[0] == 0);
    }
}

/* The index of argmax, the reference's sum, and the same bits for a row alone; x is not written. */
static void argmax_sum_exp_agrees_with_the_reference(void **state)
{
    enum { ROWS = 5 };

    (void)state;
    for (int i = 0; i < table_count * WIDTHS; i++) {
        const cpl_kernels *table = tables[i / WIDTHS];
        int64_t n = widths[i % WIDTHS], ld = n + 3;
        real *x = numbers(ROWS * ld, (uint32_t)i, 6.0), *kept = copy_of(x, ROWS * ld);
        real sum[ROWS], alone[ROWS], expected[ROWS];
        int32_t index[ROWS], other[ROWS];

        table->argmax_sum_exp(ROWS, n, x, ld, index, sum);
        table->argmax(ROWS, n, x, ld, other);
        assert_memory_equal(index, other, sizeof index);
        cpl_kernels_named("reference")->argmax_sum_exp(ROWS, n, x, ld, other, expected);
        assert_memory_equal(index, other, sizeof index);
        assert_close("argmax_sum_exp", table->name, sum, expected, ROWS, 1e-6);
        for (int r = ROWS - 1; r >= 0; r--)
            table->argmax_sum_exp(1, n, x + r * ld, ld, &other[r], &alone[r]);
        assert_same_bits("argmax_sum_exp", table->name, sum, alone, ROWS);
        assert_same_bits("argmax_sum_exp: what it read", table->name, x, kept, ROWS * ld);
        free(x);
        free(kept);
    }
}

static void layer_norm_by_hand(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        const real x[] = {1, 3, 1, 3};
        const real gamma[] = {1, 1, 2, 2};
        const real beta[] = {0, 0, 1, 1};
        const real expected[] = {-1, 1, -1, 3};
        real y[4], keep[2];

        tables[t]->layer_norm(1, 4, x, gamma, beta, 0, y, keep);
        assert_close("layer_norm", tables[t]->name, y, expected, 4, 3e-7);
        assert_true(keep[0] == 2 && keep[1] == 1);
    }
}

/* ---- against the reference ---- */

typedef struct sheet {
    int64_t rows, n, ld;
    real *x, *dy, *gamma, *bias, *loss, *correct, *keep, *dgamma, *dbeta;
    int32_t *target;
} sheet;

static sheet sheet_new(int64_t rows, int64_t n, int64_t ld)
{
    sheet s = {.rows = rows, .n = n, .ld = ld};

    s.x = numbers(rows * ld, 5, 6.0);
    s.dy = numbers(rows * ld, 6, 1.0);
    s.gamma = numbers(n, 7, 1.0);
    s.bias = numbers(n, 8, 1.0);
    s.loss = numbers(rows, 9, 1.0);
    s.correct = numbers(rows, 9, 1.0);
    s.keep = numbers(rows * 2, 9, 1.0);
    s.dgamma = numbers(n, 10, 1.0);
    s.dbeta = numbers(n, 11, 1.0);
    s.target = calloc((size_t)rows, sizeof *s.target);
    assert_non_null(s.target);
    for (int64_t r = 0; r < rows; r++)
        s.target[r] = (int32_t)((r * 5 + 3) % n);
    return s;
}

static void sheet_free(sheet *s)
{
    real *all[] = {s->x, s->dy, s->gamma, s->bias, s->loss, s->correct, s->keep, s->dgamma, s->dbeta};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(s->target);
}

enum { SOFTMAX, SOFTMAX_BACKWARD, ENTROPY, ENTROPY_GRADIENT, NORM, NORM_BACKWARD, FUNCTIONS };
static const char *const names[] = {"softmax",    "softmax_backward",   "cross_entropy", "cross_entropy gradient",
                                    "layer_norm", "layer_norm_backward"};

/* layer_norm_backward needs the keep of a forward call on the same x. */
static void run_norm_backward(const cpl_kernels *table, const sheet *s, int64_t first, int64_t rows)
{
    real *y = numbers(rows * s->n, 1, 0.0);

    cpl_kernels_named("reference")
        ->layer_norm(rows, s->n, s->x + first * s->n, s->gamma, s->bias, (real)1e-3, y, s->keep + 2 * first);
    table->layer_norm_backward(rows, s->n, s->x + first * s->n, s->gamma, s->keep + 2 * first, s->dy + first * s->n,
                               s->dy + first * s->n, s->dgamma, s->dbeta);
    free(y);
}

/* Runs one function on rows first … first+rows of a sheet; results stay in the sheet. */
static void run(const cpl_kernels *table, int which, const sheet *s, int64_t first, int64_t rows)
{
    real *x = s->x + first * s->ld;
    real *dy = s->dy + first * s->ld;

    switch (which) {
    case SOFTMAX:
        table->softmax(rows, s->n, x, s->ld);
        break;
    case SOFTMAX_BACKWARD:
        table->softmax_backward(rows, s->n, x, dy, dy, s->ld);
        break;
    case ENTROPY:
    case ENTROPY_GRADIENT:
        table->cross_entropy(rows, s->n, x, s->ld, s->bias, s->target + first, (real)0.125, which == ENTROPY_GRADIENT,
                             s->loss + first, s->correct + first);
        break;
    case NORM:
        table->layer_norm(rows, s->n, x, s->gamma, s->bias, (real)1e-3, dy, s->keep + 2 * first);
        break;
    default:
        run_norm_backward(table, s, first, rows);
        break;
    }
}

static void compare(const cpl_kernels *table, int which, int64_t rows, int64_t n)
{
    int64_t ld = which >= NORM ? n : n + (n & 1) * 3;
    sheet got = sheet_new(rows, n, ld);
    sheet expected = sheet_new(rows, n, ld);
    /* The two with 2e-5 take differences of sums, which cancel. */
    double tolerance = which == NORM_BACKWARD || which == SOFTMAX_BACKWARD ? 2e-5 : 2e-6;

    run(table, which, &got, 0, rows);
    run(cpl_kernels_named("reference"), which, &expected, 0, rows);
    assert_close(names[which], table->name, got.x, expected.x, rows * ld, tolerance);
    assert_close(names[which], table->name, got.dy, expected.dy, rows * ld, tolerance);
    assert_close(names[which], table->name, got.loss, expected.loss, rows, tolerance);
    assert_close(names[which], table->name, got.correct, expected.correct, rows, 0.0);
    assert_close(names[which], table->name, got.keep, expected.keep, rows * 2, tolerance);
    assert_close(names[which], table->name, got.dgamma, expected.dgamma, n, tolerance);
    assert_close(names[which], table->name, got.dbeta, expected.dbeta, n, tolerance);
    sheet_free(&got);
    sheet_free(&expected);
}

static void every_table_agrees_with_the_reference(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        for (int i = 0; i < WIDTHS * HEIGHTS * FUNCTIONS; i++)
            compare(tables[t], i % FUNCTIONS, heights[i / FUNCTIONS % HEIGHTS], widths[i / FUNCTIONS / HEIGHTS]);
    }
}

static void bits_of_a_row_do_not_depend_on_other_rows(void **state)
{
    enum { ROWS = 9 };

    (void)state;
    for (int i = 0; i < table_count * WIDTHS * FUNCTIONS; i++) {
        const cpl_kernels *table = tables[i / (WIDTHS * FUNCTIONS)];
        int64_t n = widths[i / FUNCTIONS % WIDTHS];
        int which = i % FUNCTIONS;
        sheet whole = sheet_new(ROWS, n, n);
        sheet parts = sheet_new(ROWS, n, n);

        run(table, which, &whole, 0, ROWS);
        for (int64_t r = ROWS - 1; r >= 0; r--)
            run(table, which, &parts, r, 1);
        assert_same_bits(names[which], table->name, whole.x, parts.x, ROWS * n);
        assert_same_bits(names[which], table->name, whole.dy, parts.dy, ROWS * n);
        assert_same_bits(names[which], table->name, whole.loss, parts.loss, ROWS);
        assert_same_bits(names[which], table->name, whole.keep, parts.keep, ROWS * 2);
        sheet_free(&whole);
        sheet_free(&parts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_by_hand),
        cmocka_unit_test(case_C12_infinite_scores_give_finite_weights),
        cmocka_unit_test(a_nan_is_not_hidden),
        cmocka_unit_test(case_C01_padding_gives_neither_loss_nor_gradient),
        cmocka_unit_test(case_C05_the_padding_class_is_in_the_denominator),
        cmocka_unit_test(argmax_takes_the_first_of_equals),
        cmocka_unit_test(argmax_sees_every_place),
        cmocka_unit_test(argmax_sum_exp_by_hand),
        cmocka_unit_test(argmax_sum_exp_agrees_with_the_reference),
        cmocka_unit_test(layer_norm_by_hand),
        cmocka_unit_test(every_table_agrees_with_the_reference),
        cmocka_unit_test(bits_of_a_row_do_not_depend_on_other_rows),
    };

    table_count = cpl_kernels_all(tables, TABLES_MOST);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
