/* test_kernels.c: loops over vectors, activations, gates and Adam of every table against the reference; the
 * reference's gates against finite differences; and the choice of a table. */
#include "couplet.h"
#include "kernel_test.h"

static const cpl_kernels *tables[TABLES_MOST];
static int table_count;

static const int64_t widths[] = {1, 2, 3, 15, 16, 17, 33, 64, 100};

enum { WIDTHS = sizeof widths / sizeof *widths, BUFFERS = 8 };

/* Every function below works on eight buffers; which of them it reads and writes is its own affair. */
typedef struct set {
    int64_t rows, n, size;
    real *at[BUFFERS];
} set;

static set set_new(int64_t rows, int64_t n)
{
    set s = {.rows = rows, .n = n, .size = rows * n * 4};

    for (int i = 0; i < BUFFERS; i++)
        s.at[i] = numbers(s.size, (uint32_t)i + 1, 2.0);
    for (int64_t i = 0; i < s.size; i++) /* buffer 7: numbers of (0, 1), such as gates and second moments */
        s.at[7][i] = (real)(fabs((double)s.at[7][i]) / 2.0001);
    return s;
}

static void set_free(set *s)
{
    for (int i = 0; i < BUFFERS; i++)
        free(s->at[i]);
}

typedef struct function {
    const char *name;
    int widths[BUFFERS]; /* how wide a row of each buffer is, in units of n; 0: not a matter of rows */
    void (*run)(const cpl_kernels *k, int64_t rows, int64_t n, real *const *x);
} function;

#define RUN(NAME, CALL)                                                                                                \
    static void run_##NAME(const cpl_kernels *k, int64_t rows, int64_t n, real *const *x)                              \
    {                                                                                                                  \
        (void)rows;                                                                                                    \
        CALL;                                                                                                          \
    }
RUN(axpy, k->axpy(rows *n, (real)0.7, x[0], x[1]))
RUN(scale, k->scale(rows *n, (real)0.7, x[0], x[0]))
RUN(add, k->add(rows *n, x[0], x[1], x[0]))
RUN(multiply, k->multiply(rows *n, x[0], x[1], x[1]))
RUN(linear, k->bias_activation(rows, n, x[0], x[6], CPL_LINEAR, x[1]))
RUN(tanh, k->bias_activation(rows, n, x[0], x[6], CPL_TANH, x[0]))
RUN(sigmoid, k->bias_activation(rows, n, x[0], NULL, CPL_SIGMOID, x[1]))
RUN(relu, k->bias_activation(rows, n, x[0], x[6], CPL_RELU, x[1]))
RUN(linear_back, k->activation_backward(rows *n, CPL_LINEAR, x[7], x[0], x[1]))
RUN(tanh_back, k->activation_backward(rows *n, CPL_TANH, x[7], x[0], x[0]))
RUN(sigmoid_back, k->activation_backward(rows *n, CPL_SIGMOID, x[7], x[0], x[1]))
RUN(relu_back, k->activation_backward(rows *n, CPL_RELU, x[2], x[0], x[1]))
RUN(gru, k->gru_forward(rows, n, x[0], x[1], x[2], x[3], x[2]))
RUN(gru_back, k->gru_backward(rows, n, x[7], x[0], x[1], x[2], x[3], x[1]))
RUN(gru_gates, k->gru_before_gates(rows, n, x[0], x[1], x[2], x[3], x[4]))
RUN(gru_state, k->gru_before_state(rows, n, x[0], x[1], x[2], x[7], x[2]))
RUN(gru_back_state, k->gru_before_backward_state(rows, n, x[7], x[0], x[1], x[2], x[1]))
RUN(gru_back_gates, k->gru_before_backward_gates(rows, n, x[7], x[0], x[1], x[2], x[3]))
RUN(lstm, k->lstm_forward(rows, n, x[0], x[1], x[2], x[3], x[2], x[4]))
RUN(lstm_back, k->lstm_backward(rows, n, x[7], x[0], x[1], x[2], x[3], x[4], x[3]))
RUN(adam,
    k->adam(rows *n, x[0], (real)0.5, (real)0.01, (real)0.9, (real)0.999, (real)1e-7, (real)1e-3, x[1], x[2], x[7]))
RUN(add_rows, k->add_rows(rows, n, x[0], n, x[1]))
RUN(dot, x[2][0] = k->dot(rows * n, x[0], x[1]))

static const function functions[] = {
    {"axpy", {1, 1, 1, 1, 1, 1, 1, 1}, run_axpy},
    {"scale", {1, 1, 1, 1, 1, 1, 1, 1}, run_scale},
    {"add", {1, 1, 1, 1, 1, 1, 1, 1}, run_add},
    {"multiply", {1, 1, 1, 1, 1, 1, 1, 1}, run_multiply},
    {"bias_activation linear", {1, 1, 1, 1, 1, 1, 0, 1}, run_linear},
    {"bias_activation tanh", {1, 1, 1, 1, 1, 1, 0, 1}, run_tanh},
    {"bias_activation sigmoid", {1, 1, 1, 1, 1, 1, 0, 1}, run_sigmoid},
    {"bias_activation relu", {1, 1, 1, 1, 1, 1, 0, 1}, run_relu},
    {"activation_backward linear", {1, 1, 1, 1, 1, 1, 1, 1}, run_linear_back},
    {"activation_backward tanh", {1, 1, 1, 1, 1, 1, 1, 1}, run_tanh_back},
    {"activation_backward sigmoid", {1, 1, 1, 1, 1, 1, 1, 1}, run_sigmoid_back},
    {"activation_backward relu", {1, 1, 1, 1, 1, 1, 1, 1}, run_relu_back},
    {"gru_forward", {3, 3, 1, 4, 1, 1, 1, 1}, run_gru},
    {"gru_backward", {1, 1, 3, 3, 1, 1, 1, 4}, run_gru_back},
    {"gru_before_gates", {3, 2, 1, 3, 1, 1, 1, 1}, run_gru_gates},
    {"gru_before_state", {3, 1, 1, 1, 1, 1, 1, 3}, run_gru_state},
    {"gru_before_backward_state", {1, 1, 3, 1, 1, 1, 1, 3}, run_gru_back_state},
    {"gru_before_backward_gates", {1, 1, 3, 1, 1, 1, 1, 3}, run_gru_back_gates},
    {"lstm_forward", {4, 4, 1, 4, 1, 1, 1, 1}, run_lstm},
    {"lstm_backward", {1, 1, 1, 1, 4, 1, 1, 4}, run_lstm_back},
    {"adam", {1, 1, 1, 1, 1, 1, 1, 1}, run_adam},
    {"add_rows", {0, 0, 0, 0, 0, 0, 0, 0}, run_add_rows},
    {"dot", {0, 0, 0, 0, 0, 0, 0, 0}, run_dot},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void every_table_agrees_with_the_reference(void **state)
{
    static const int64_t heights[] = {1, 3, 15, 16, 17, 64};

    (void)state;
    for (int i = 0; i < table_count * FUNCTIONS * WIDTHS * 6; i++) {
        const cpl_kernels *table = tables[i / (FUNCTIONS * WIDTHS * 6)];
        const function *f = &functions[i / (WIDTHS * 6) % FUNCTIONS];
        set got = set_new(heights[i % 6], widths[i / 6 % WIDTHS]);
        set expected = set_new(heights[i % 6], widths[i / 6 % WIDTHS]);

        f->run(table, got.rows, got.n, got.at);
        f->run(cpl_kernels_named("reference"), got.rows, got.n, expected.at);
        for (int b = 0; b < BUFFERS; b++) /* also says that nothing else was written */
            assert_close(f->name, table->name, got.at[b], expected.at[b], got.size, 5e-6);
        set_free(&got);
        set_free(&expected);
    }
}

/* Rows in one call against rows in calls of their own, last first. */
static void bits_of_a_row_do_not_depend_on_other_rows(void **state)
{
    enum { ROWS = 7 };

    (void)state;
    for (int i = 0; i < table_count * FUNCTIONS * WIDTHS; i++) {
        const cpl_kernels *table = tables[i / (FUNCTIONS * WIDTHS)];
        const function *f = &functions[i / WIDTHS % FUNCTIONS];
        set whole = set_new(ROWS, widths[i % WIDTHS]);
        set parts = set_new(ROWS, widths[i % WIDTHS]);

        for (int64_t r = ROWS - 1; f->widths[0] > 0 && r >= 0; r--) {
            real *row[BUFFERS];

            for (int b = 0; b < BUFFERS; b++)
                row[b] = parts.at[b] + r * f->widths[b] * parts.n;
            f->run(table, 1, parts.n, row);
        }
        if (f->widths[0] > 0)
            f->run(table, ROWS, whole.n, whole.at);
        for (int b = 0; b < BUFFERS; b++)
            assert_same_bits(f->name, table->name, whole.at[b], parts.at[b], whole.size);
        set_free(&whole);
        set_free(&parts);
    }
}

/* tanh and sigmoid over their whole range against libm: relative error, signs, limits, NaN. */
static void activations_are_accurate_everywhere(void **state)
{
    enum { N = 40000 };

    (void)state;
    for (int t = 0; t < table_count; t++) {
        real *x = numbers(N, 1, 0.0);
        real *y = numbers(N, 1, 0.0);
        real *z = numbers(N, 1, 0.0);

        for (int i = 0; i < N; i++)
            x[i] = (real)((i % 2 ? 1.0 : -1.0) * pow(10.0, -8.0 + 9.9 * i / N)); /* 1e-8 … 79 */
        tables[t]->bias_activation(1, N, x, NULL, CPL_TANH, y);
        tables[t]->bias_activation(1, N, x, NULL, CPL_SIGMOID, z);
        for (int i = 0; i < N; i++) {
            double v = (double)x[i];

            if (!(fabs((double)y[i] / tanh(v) - 1.0) < 2.5e-7))
                fail_msg("tanh(%.9g) of table %s is %.9g", v, tables[t]->name, (double)y[i]);
            if (!(fabs((double)z[i] * (1.0 + exp(-v)) - 1.0) < 2.5e-7))
                fail_msg("sigmoid(%.9g) of table %s is %.9g", v, tables[t]->name, (double)z[i]);
        }
        free(x);
        free(y);
        free(z);
    }
}

static void activations_at_the_ends_of_the_numbers(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        const real x[6] = {(real)INFINITY, (real)-INFINITY, (real)1e30,
                           (real)-1e30,    (real)NAN,       (real)copysign(NAN, -1)};
        const real expected_tanh[4] = {1, -1, 1, -1};
        const real expected_sigmoid[4] = {1, 0, 1, 0};
        real y[6];

        tables[t]->bias_activation(1, 6, x, NULL, CPL_TANH, y);
        assert_memory_equal(y, expected_tanh, sizeof expected_tanh);
        assert_true(isnan(y[4]) && isnan(y[5]));
        tables[t]->bias_activation(1, 6, x, NULL, CPL_SIGMOID, y);
        assert_memory_equal(y, expected_sigmoid, sizeof expected_sigmoid);
        assert_true(isnan(y[4]) && isnan(y[5]));
        tables[t]->bias_activation(1, 6, x, NULL, CPL_RELU, y);
        assert_true(y[0] == x[0] && y[1] == 0 && y[3] == 0 && isnan(y[4]) && isnan(y[5]));
    }
}

/* Sums of 1 … n are exact in float as far as these go; every number counts once, at vectors' ends too. */
static void reading_takes_every_number_once(void **state)
{
    real x[1100];

    (void)state;
    for (int64_t i = 0; i < 1100; i++)
        x[i] = (real)(i + 1);
    for (int t = 0; t < table_count; t++) {
        for (int64_t n = 0; n <= 1100; n += n < 300 ? 1 : 97)
            assert_true(fabs((double)tables[t]->read(n, x) - 0.5 * (double)(n * (n + 1))) < 0.5);
    }
}

static void dot_of_the_first_numbers(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        real x[300];

        for (int i = 0; i < 300; i++)
            x[i] = (real)(i + 1);
        for (int n = 0; n <= 300; n++) /* Σ i² = n(n+1)(2n+1)/6 */
            assert_true(fabs((double)tables[t]->dot(n, x, x) / (n * (n + 1.0) * (2.0 * n + 1.0) / 6.0 + 1e-30) - 1.0) <
                            1e-6 ||
                        n == 0);
        assert_true(tables[t]->dot(0, x, x) == 0);
    }
}

/* ---- the reference's gates against finite differences of its own forward step ---- */

enum { UNITS = 3, STEP_INPUTS = 9 * UNITS };

/* Σ weights · (h', c') of one step from inputs xg[4u], hg[4u], state[u]. */
static double gru_value(const real *in, const real *weights, real *keep)
{
    real h[UNITS];
    double sum = 0.0;

    cpl_kernels_named("reference")->gru_forward(1, UNITS, in, in + 4 * UNITS, in + 8 * UNITS, keep, h);
    for (int i = 0; i < UNITS; i++)
        sum += (double)weights[i] * (double)h[i];
    return sum;
}

static double lstm_value(const real *in, const real *weights, real *keep)
{
    real h[UNITS], c[UNITS];
    double sum = 0.0;

    cpl_kernels_named("reference")->lstm_forward(1, UNITS, in, in + 4 * UNITS, in + 8 * UNITS, keep, c, h);
    for (int i = 0; i < UNITS; i++)
        sum += (double)weights[i] * (double)h[i] + (double)weights[UNITS + i] * (double)c[i];
    memcpy(keep + 4 * UNITS, c, sizeof c);
    return sum;
}

static void check_slopes(const char *what, double (*value)(const real *, const real *, real *), const real *slopes,
                         const real *weights, real *in)
{
    for (int i = 0; i < STEP_INPUTS; i++) {
        const double step = 1.0 / 64.0;
        real keep[5 * UNITS];
        real x = in[i];
        double above, below;

        in[i] = (real)((double)x + step);
        above = value(in, weights, keep);
        in[i] = (real)((double)x - step);
        below = value(in, weights, keep);
        in[i] = x;
        if (fabs((above - below) / (2.0 * step) - (double)slopes[i]) > 5e-4)
            fail_msg("%s: slope of input %d is %g, differences say %g", what, i, (double)slopes[i],
                     (above - below) / (2.0 * step));
    }
}

static void gates_have_the_slopes_of_their_values(void **state)
{
    const cpl_kernels *k = cpl_kernels_named("reference");
    real in[STEP_INPUTS], weights[2 * UNITS], keep[5 * UNITS];
    real slopes[STEP_INPUTS] = {0};

    (void)state;
    fill(in, STEP_INPUTS, 3, 1.0);
    fill(weights, 2 * UNITS, 4, 1.0);
    gru_value(in, weights, keep);
    k->gru_backward(1, UNITS, keep, in + 8 * UNITS, weights, slopes, slopes + 4 * UNITS, slopes + 8 * UNITS);
    check_slopes("gru", gru_value, slopes, weights, in);

    lstm_value(in, weights, keep);
    k->lstm_backward(1, UNITS, keep, in + 8 * UNITS, keep + 4 * UNITS, weights, weights + UNITS, slopes,
                     slopes + 8 * UNITS);
    memcpy(slopes + 4 * UNITS, slopes, 4 * UNITS * sizeof(real)); /* xg and hg are summed: one slope */
    check_slopes("lstm", lstm_value, slopes, weights, in);
}

/* ---- the choice ---- */

static void a_table_can_be_forced_by_name(void **state)
{
    const cpl_kernels *table;
    cpl_error err = CPL_ERROR_INIT;

    (void)state;
    for (int t = 0; t < table_count; t++) {
        assert_int_equal(setenv("COUPLET_ISA", tables[t]->name, 1), 0);
        assert_int_equal(cpl_kernels_pick(&table, &err), CPL_OK);
        assert_ptr_equal(table, tables[t]);
    }
    assert_int_equal(setenv("COUPLET_ISA", "ref", 1), 0);
    assert_int_equal(cpl_kernels_pick(&table, &err), CPL_OK);
    assert_string_equal(table->name, "reference");
    assert_int_equal(unsetenv("COUPLET_ISA"), 0);
    assert_int_equal(cpl_kernels_pick(&table, &err), CPL_OK);
    assert_ptr_equal(table, tables[0]);
    assert_string_equal(tables[table_count - 1]->name, "reference");
}

static void an_unknown_name_is_refused_with_the_list(void **state)
{
    const cpl_kernels *table;
    cpl_error err = CPL_ERROR_INIT;

    (void)state;
    assert_int_equal(setenv("COUPLET_ISA", "abacus", 1), 0);
    assert_int_equal(cpl_kernels_pick(&table, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "'abacus'"));
    for (int t = 0; t < table_count; t++)
        assert_non_null(strstr(err.line[0], tables[t]->name));
    assert_null(cpl_kernels_named("abacus"));
    assert_int_equal(unsetenv("COUPLET_ISA"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_agrees_with_the_reference),
        cmocka_unit_test(bits_of_a_row_do_not_depend_on_other_rows),
        cmocka_unit_test(activations_are_accurate_everywhere),
        cmocka_unit_test(activations_at_the_ends_of_the_numbers),
        cmocka_unit_test(dot_of_the_first_numbers),
        cmocka_unit_test(reading_takes_every_number_once),
        cmocka_unit_test(gates_have_the_slopes_of_their_values),
        cmocka_unit_test(a_table_can_be_forced_by_name),
        cmocka_unit_test(an_unknown_name_is_refused_with_the_list),
    };

    table_count = cpl_kernels_all(tables, TABLES_MOST);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
