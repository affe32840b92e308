/* test_recurrent_drop.c: dropout of what a recurrent product reads of the state. The recurrences are written out once
 * more here, with a mask of each sentence; of all masks of 0 and 1/(1 − rate), exactly one must give what the op gave,
 * in all of the sentence's steps. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>
#include "support/op_harness.h"
#include "support/run.h"

enum { IN = 2, U = 3, BATCH = 6, LONGEST = 5, MASKS = 1 << U };

static const int64_t LENGTHS[BATCH] = {5, 3, 4, 5, 2, 5}, ONE[] = {1, 1, 1, 1, 1, 1};
static const cpl_harness_batch WHOLE = {"whole", BATCH, LONGEST, ONE, LENGTHS, 0};

/* The op, its gates, its line; attr.1 is the rate. */
static const struct {
    const char *op;
    int gates;
    const char *forward, *reverse;
} CELLS[] = {{"gru", 3, "in=2 u=3 ids=absent attr.1=0.5", "in=2 u=3 ids=absent attr.0=1 attr.1=0.5"},
             {"gru_before", 3, "in=2 u=3 ids=absent attr.1=0.5", "in=2 u=3 ids=absent attr.0=1 attr.1=0.5"},
             {"lstm", 4, "in=2 u=3 ids=absent attr.1=0.5", "in=2 u=3 ids=absent attr.0=1 attr.1=0.5"}};
enum { CELLS_COUNT = sizeof CELLS / sizeof CELLS[0] };

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Row i of x·w + b, and of h·m·r. */
static void projected(const cpl_harness *h, int gates, const real *x, double *to)
{
    for (int j = 0; j < gates * U; j++) {
        to[j] = h->in[3].data[j];
        for (int k = 0; k < IN; k++)
            to[j] += x[k] * h->in[1].data[k * gates * U + j];
    }
}

static double recurrent(const cpl_harness *h, int gates, const double *state, const double *m, int j)
{
    double sum = 0;
    for (int k = 0; k < U; k++)
        sum += state[k] * m[k] * h->in[2].data[k * gates * U + j];
    return sum;
}

static void gru_step(const cpl_harness *h, const double *x, const double *m, double *state)
{
    double next[U];
    const real *b = h->in[3].data + 3 * U;
    for (int j = 0; j < U; j++) {
        double z = sigmoid(x[j] + recurrent(h, 3, state, m, j) + b[j]);
        double r = sigmoid(x[U + j] + recurrent(h, 3, state, m, U + j) + b[U + j]);
        double n = tanh(x[2 * U + j] + r * (recurrent(h, 3, state, m, 2 * U + j) + b[2 * U + j]));
        next[j] = z * state[j] + (1 - z) * n;
    }
    memcpy(state, next, sizeof next);
}

static void before_step(const cpl_harness *h, const double *x, const double *m, double *state)
{
    double z[U], reset[U], next[U];
    for (int j = 0; j < U; j++) {
        z[j] = sigmoid(x[j] + recurrent(h, 3, state, m, j));
        reset[j] = state[j] * sigmoid(x[U + j] + recurrent(h, 3, state, m, U + j));
    }
    for (int j = 0; j < U; j++)
        next[j] = z[j] * state[j] + (1 - z[j]) * tanh(x[2 * U + j] + recurrent(h, 3, reset, m, 2 * U + j));
    memcpy(state, next, sizeof next);
}

static void lstm_step(const cpl_harness *h, const double *x, const double *m, double *state, double *cell)
{
    double next[U];
    for (int j = 0; j < U; j++) {
        double a[4];
        for (int q = 0; q < 4; q++)
            a[q] = x[q * U + j] + recurrent(h, 4, state, m, q * U + j);
        cell[j] = sigmoid(a[1]) * cell[j] + sigmoid(a[0]) * tanh(a[2]);
        next[j] = sigmoid(a[3]) * tanh(cell[j]);
    }
    memcpy(state, next, sizeof next);
}

/* Largest difference between the op's outputs and the recurrence with mask number `mask`, over the sentence's steps. */
static double difference(const cpl_harness *h, int cell, int position, int mask)
{
    const cpl_geometry *g = &h->geometry[CPL_HARNESS_T];
    int64_t length = g->length[position];
    double m[U], state[U], c[U] = {0}, worst = 0, x[4 * U];
    for (int k = 0; k < U; k++) {
        m[k] = mask >> k & 1 ? 2 : 0;
        state[k] = h->in[4].data[position * U + k];
        if (cell == 2)
            c[k] = h->in[5].data[position * U + k];
    }
    for (int64_t i = 0; i < length; i++) {
        int64_t row = g->offset[h->attributes[0] ? length - 1 - i : i] + position;
        projected(h, CELLS[cell].gates, h->in[0].data + row * IN, x);
        if (cell == 0)
            gru_step(h, x, m, state);
        else if (cell == 1)
            before_step(h, x, m, state);
        else
            lstm_step(h, x, m, state, c);
        for (int k = 0; k < U; k++)
            worst = fmax(worst, fabs(state[k] - h->out[0].data[row * U + k]));
    }
    return worst;
}

/* Which masks fit: exactly one for each sentence, and not the same for all. */
static void check(const cpl_harness *h, int cell, int masks[BATCH])
{
    for (int i = 0; i < BATCH; i++) {
        int fits = 0;
        for (int mask = 0; mask < MASKS; mask++)
            if (difference(h, cell, i, mask) < 1e-5)
                fits++, masks[h->geometry[CPL_HARNESS_T].sentence[i]] = mask;
        if (fits != 1)
            fail_msg("%s: %d masks give the outputs of sentence %d", CELLS[cell].op, fits, i);
    }
    int differs = 0;
    for (int i = 1; i < BATCH; i++)
        differs |= masks[i] != masks[0];
    assert_true(differs);
}

static void one_mask_serves_all_steps(void **state)
{
    (void)state;
    for (int cell = 0; cell < CELLS_COUNT; cell++)
        for (int reverse = 0; reverse < 2; reverse++) {
            cpl_harness h;
            int masks[BATCH], again[BATCH];
            cpl_harness_open(&h, cpl_op_named(CELLS[cell].op), reverse ? CELLS[cell].reverse : CELLS[cell].forward,
                             &WHOLE, 0);
            cpl_harness_forward(&h, 1);
            check(&h, cell, masks);
            cpl_harness_use(&h, cpl_kernels_named("reference"), 3); /* threads change nothing, inference neither */
            cpl_harness_forward(&h, 0);
            check(&h, cell, again);
            assert_memory_equal(masks, again, sizeof masks);
            h.random_key++;
            cpl_harness_forward(&h, 1);
            check(&h, cell, again);
            assert_memory_not_equal(masks, again, sizeof masks);
            cpl_harness_close(&h);
        }
}

/* Outside of training it is the op without dropout, to the bit. */
static void only_training_drops(void **state)
{
    static const char *const plain_line = "in=2 u=3 ids=absent";
    (void)state;
    for (int cell = 0; cell < CELLS_COUNT; cell++) {
        cpl_harness plain, drops;
        cpl_harness_open(&plain, cpl_op_named(CELLS[cell].op), plain_line, &WHOLE, 0);
        cpl_harness_open(&drops, cpl_op_named(CELLS[cell].op), CELLS[cell].forward, &WHOLE, 0);
        drops.training = 0;
        cpl_harness_forward(&plain, 1);
        cpl_harness_forward(&drops, 1);
        size_t bytes = (size_t)cpl_harness_elements(&plain.out[0]) * sizeof(real);
        assert_memory_equal(plain.out[0].data, drops.out[0].data, bytes);
        drops.training = 1;
        cpl_harness_forward(&drops, 1);
        assert_memory_not_equal(plain.out[0].data, drops.out[0].data, bytes);
        cpl_harness_close(&plain);
        cpl_harness_close(&drops);
    }
}

/* Dropout's other two forms: the same columns in all steps of a sentence; whole rows. */
static void steady_columns_and_whole_rows(void **state)
{
    (void)state;
    for (int rows = 0; rows < 2; rows++) {
        cpl_harness h;
        int dropped = 0, kept = 0;
        cpl_harness_open(&h, cpl_op_named("dropout"), rows ? "attr.0=0.5 attr.1=2 ...=batch,t,4"
                                                           : "attr.0=0.5 attr.1=1 ...=batch,t,4", &WHOLE, 0);
        cpl_harness_forward(&h, 1);
        const cpl_geometry *g = &h.geometry[CPL_HARNESS_T];
        for (int i = 0; i < BATCH; i++)
            for (int k = 0; k < g->length[i]; k++)
                for (int j = 0; j < 4; j++) {
                    int64_t row = g->offset[k] + i, like = rows ? row * 4 : (int64_t)i * 4 + j, at = row * 4 + j;
                    int zero = h.out[0].data[at] == 0;
                    assert_int_equal(zero, h.out[0].data[like] == 0);
                    assert_true(zero || h.out[0].data[at] == 2 * h.in[0].data[at]);
                    dropped += zero, kept += !zero;
                }
        assert_true(dropped > 0 && kept > 0);
        cpl_harness_close(&h);
    }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(one_mask_serves_all_steps),
                                          cmocka_unit_test(only_training_drops),
                                          cmocka_unit_test(steady_columns_and_whole_rows)};

CPL_TEST_MAIN(tests)
