/* test_values.c: forward values of the small ops against numbers computed by hand, where dropout may and may not
 * differ, and the shapes that ops refuse. The walks over the table judge gradients and speed, not meaning. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>
#include "base/str.h"
#include "support/op_harness.h"
#include "support/run.h"

/* Sentences of these lengths over s and t, in a rectangle of 4 steps. */
static const int64_t LENGTHS_S[] = {1, 3, 2}, LENGTHS_T[] = {2, 1, 3};
static const cpl_harness_batch THREE = {"three", 3, 4, LENGTHS_S, LENGTHS_T, 0};

static void open_op(cpl_harness *h, const char *op, const char *line)
{
    cpl_harness_open(h, cpl_op_named(op), line, &THREE, 0);
}

static void set(const cpl_tensor *x, const real *values, int64_t n)
{
    assert_int_equal(cpl_harness_elements(x), n);
    memcpy(x->data, values, (size_t)n * sizeof *values);
}
#define SET(tensor, ...) set((tensor), (const real[]){__VA_ARGS__}, sizeof((real[]){__VA_ARGS__}) / sizeof(real))

static void expect(const cpl_tensor *x, const real *values, int64_t n)
{
    assert_int_equal(cpl_harness_elements(x), n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)(x->data[i] - values[i])) < 1e-6))
            fail_msg("element %lld is %.9g, expected %.9g", (long long)i, (double)x->data[i], (double)values[i]);
}
#define EXPECT(tensor, ...)                                                                                            \
    expect((tensor), (const real[]){__VA_ARGS__}, sizeof((real[]){__VA_ARGS__}) / sizeof(real))

static void test_elementwise(void **state)
{
    static const char *const names[] = {"add", "multiply"};
    static const real results[2][2] = {{5, -1}, {6, -6}};
    cpl_harness h;
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_op(&h, names[i], "...=2");
        SET(&h.in[0], 2, -3);
        SET(&h.in[1], 3, 2);
        cpl_harness_forward(&h, 0);
        expect(&h.out[0], results[i], 2);
        cpl_harness_close(&h);
    }
    open_op(&h, "scale", "attr.0=0.5 ...=2");
    SET(&h.in[0], 2, -3);
    cpl_harness_forward(&h, 0);
    EXPECT(&h.out[0], 1, (real)-1.5);
    cpl_harness_close(&h);
}

static void test_activation(void **state)
{
    static const char *const lines[] = {"attr.0=0 ...=2", "attr.0=1 ...=2", "attr.0=2 ...=2", "attr.0=3 ...=2"};
    static const real results[4][2] = {{(real)0.5, -1},
                                       {(real)0.46211716, (real)-0.76159416},
                                       {(real)0.62245933, (real)0.26894142},
                                       {(real)0.5, 0}};
    (void)state;
    for (int f = 0; f < 4; f++) {
        cpl_harness h;
        open_op(&h, "activation", lines[f]);
        SET(&h.in[0], (real)0.5, -1);
        cpl_harness_forward(&h, 0);
        expect(&h.out[0], results[f], 2);
        cpl_harness_close(&h);
    }
}

static void test_linear_and_concat(void **state)
{
    cpl_harness h;
    (void)state;
    open_op(&h, "linear", "in=2 out=3 attr.0=3 ...=1");
    SET(&h.in[0], 1, 2);
    SET(&h.in[1], 1, 2, 3, 4, 5, 6);
    SET(&h.in[2], (real)0.5, -20, 0);
    cpl_harness_forward(&h, 0);
    EXPECT(&h.out[0], (real)9.5, 0, 15);
    cpl_harness_close(&h);

    open_op(&h, "concat", "a=2 b=1 ...=2");
    SET(&h.in[0], 1, 2, 3, 4);
    SET(&h.in[1], 5, 6);
    cpl_harness_forward(&h, 0);
    EXPECT(&h.out[0], 1, 2, 5, 3, 4, 6);
    cpl_harness_close(&h);
}

/* Deviation of 1 2 3 4 5 from its mean 3 is √2. */
static void test_layer_norm(void **state)
{
    cpl_harness h;
    (void)state;
    open_op(&h, "layer_norm", "n=5 attr.0=0.0 ...=");
    SET(&h.in[0], 1, 2, 3, 4, 5);
    SET(&h.in[1], 1, 1, 1, 1, 2);
    SET(&h.in[2], 0, 0, 7, 0, 1);
    cpl_harness_forward(&h, 0);
    EXPECT(&h.out[0], (real)-1.41421356, (real)-0.70710678, 7, (real)0.70710678, (real)3.82842712);
    cpl_harness_close(&h);
}

static void test_ids(void **state)
{
    cpl_harness h;
    (void)state;
    open_op(&h, "embedding", "size=3 units=2 ...=3");
    SET(&h.in[1], 1, 2, 3, 4, 5, 6);
    memcpy(h.in[0].ids, (const int32_t[]){2, -1, 3}, 3 * sizeof(int32_t));
    cpl_harness_forward(&h, 0);
    assert_true(h.out[0].data[0] == 5 && h.out[0].data[1] == 6);
    for (int i = 2; i < 6; i++)
        assert_true(isnan(h.out[0].data[i])); /* never the row of another id */
    cpl_harness_close(&h);

    open_op(&h, "argmax", "n=3 ...=3");
    SET(&h.in[0], 1, 3, 3, NAN, 1, 2, -5, -6, -7);
    cpl_harness_forward(&h, 0);
    assert_memory_equal(h.out[0].ids, ((const int32_t[]){1, -1, 0}), 3 * sizeof(int32_t));
    assert_int_equal(h.out[0].type->entries, 3);
    cpl_harness_close(&h);
}

/* Order of s: sentences 1 2 0; of t: 2 0 1. */
static void test_orders(void **state)
{
    static const int64_t lengths[] = {1, 0, 2};
    static const cpl_harness_batch batch = {"with an empty sentence", 3, 4, lengths, lengths, 0};
    cpl_harness h;
    (void)state;
    open_op(&h, "reorder", "attr.0=0 attr.1=1 ...=batch,1");
    SET(&h.in[0], 10, 20, 0); /* ten times the sentence */
    cpl_harness_forward(&h, 0);
    EXPECT(&h.out[0], 20, 0, 10);
    assert_int_equal(h.out[0].type->order, 1);
    cpl_harness_close(&h);

    open_op(&h, "reorder", "attr.0=1 attr.1=-1 ...=batch,1");
    SET(&h.in[0], 20, 0, 10);
    cpl_harness_forward(&h, 0);
    EXPECT(&h.out[0], 0, 10, 20);
    cpl_harness_close(&h);

    cpl_harness_open(&h, cpl_op_named("mean_time"), "n=1", &batch, 0);
    SET(&h.in[0], 1, 5, 3); /* sentence 2 step 0, sentence 0 step 0, sentence 2 step 1 */
    cpl_harness_forward(&h, 0);
    EXPECT(&h.out[0], 2, 5, 0);
    cpl_harness_close(&h);
}

/* Sentence 0 exists at step 2, sentence 1 at steps 0 and 2; packed: 1@0 0@2 1@2. */
static void test_rectangles(void **state)
{
    static const int64_t lengths[] = {1, 2};
    static const cpl_harness_batch batch = {"gaps", 2, 4, lengths, lengths, 1};
    cpl_harness h;
    (void)state;
    cpl_harness_open(&h, cpl_op_named("pack"), "attr.0=1 attr.1=116 ...=batch,padded", &batch, 0);
    SET(&h.in[0], 1, 2, 3, 4, 5, 6, 7, 8);
    SET(&h.dout[0], 1, 2, 3);
    cpl_harness_forward(&h, 0);
    cpl_harness_backward(&h, 0, 0);
    EXPECT(&h.out[0], 5, 3, 7);
    EXPECT(&h.din[0], 0, 0, 2, 0, 1, 0, 3, 0);
    assert_string_equal(h.out[0].type->dim[1].name, "t");
    cpl_harness_close(&h);

    cpl_harness_open(&h, cpl_op_named("unpack"), "attr.0=2 attr.1=0 ...=batch,t", &batch, 0);
    SET(&h.in[0], 5, 3, 7);
    cpl_harness_forward(&h, 0);
    EXPECT(&h.out[0], 0, 0, 3, 0, 5, 0, 7, 0);
    cpl_harness_close(&h);

    cpl_harness_open(&h, cpl_op_named("unpack"), "attr.0=2 attr.1=1 ...=batch,t", &batch, 0);
    SET(&h.in[0], 5, 3, 7);
    SET(&h.dout[0], 1, 2, 3, 4, 5, 6, 7, 8);
    cpl_harness_forward(&h, 0);
    cpl_harness_backward(&h, 0, 0);
    EXPECT(&h.out[0], 0, 0, 3, 3, 5, 5, 7, 7);
    EXPECT(&h.din[0], 11, 7, 15);
    cpl_harness_close(&h);
}

/* ---- dropout ---- */

static void ones(const cpl_tensor *x)
{
    for (int64_t i = 0; i < cpl_harness_elements(x); i++)
        x->data[i] = 1;
}

static void test_dropout_share(void **state)
{
    cpl_harness h;
    int64_t dropped = 0, n;
    (void)state;
    open_op(&h, "dropout", "attr.0=0.25 ...=batch,t,20001");
    ones(&h.in[0]);
    cpl_harness_forward(&h, 0);
    n = cpl_harness_elements(&h.out[0]);
    for (int64_t i = 0; i < n; i++) {
        if (h.out[0].data[i] == 0)
            dropped++;
        else
            assert_true(fabs((double)h.out[0].data[i] - 4.0 / 3) < 1e-6);
    }
    assert_true(fabs((double)dropped / (double)n - 0.25) < 0.004); /* three deviations */
    h.random_key++;
    real first[64];
    memcpy(first, h.out[0].data, sizeof first);
    cpl_harness_forward(&h, 0);
    assert_memory_not_equal(first, h.out[0].data, sizeof first);
    h.training = 0;
    cpl_harness_forward(&h, 0);
    assert_memory_equal(h.in[0].data, h.out[0].data, (size_t)n * sizeof(real));
    cpl_harness_close(&h);
}

/* What is dropped depends on sentence, step and column, not on where the row stands: other lengths, hence another
 * order, drop the same elements of sentence 0. */
static void test_dropout_moves_with_its_row(void **state)
{
    static const int64_t short_first[] = {2, 5, 1}, long_first[] = {4, 1, 3};
    static const cpl_harness_batch batches[] = {{"a", 3, 6, short_first, short_first, 0},
                                                {"b", 3, 6, long_first, long_first, 0}};
    cpl_harness h[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        cpl_harness_open(&h[i], cpl_op_named("dropout"), "attr.0=0.5 ...=batch,t,33", &batches[i], 0);
        ones(&h[i].in[0]);
        cpl_harness_forward(&h[i], 0);
    }
    const cpl_geometry *a = &h[0].geometry[1], *b = &h[1].geometry[1];
    assert_int_not_equal(a->position[0], b->position[0]);
    for (int step = 0; step < 2; step++)
        assert_memory_equal(h[0].out[0].data + (a->offset[step] + a->position[0]) * 33,
                            h[1].out[0].data + (b->offset[step] + b->position[0]) * 33, 33 * sizeof(real));
    cpl_harness_close(&h[0]);
    cpl_harness_close(&h[1]);
}

/* ---- refusals ---- */

static const cpl_type ENCODED = {.rank = 3, .order = 0,
                                 .dim = {{"batch", 0, CPL_NO_SYMBOL, CPL_DIM_BATCH}, {"s", 0, 0, CPL_DIM_TIME},
                                         {"units", 8, CPL_NO_SYMBOL, CPL_DIM_FEATURE}}};

static void refuses(const char *op, const cpl_type *x, const cpl_type *w, const char *sentence)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_shape_context s = {.path = "encoder", .in = {x, w}, .in_path = {"encoder.rnn", "encoder.kernel"}};
    assert_int_equal(cpl_op_named(op)->check(&s, &err), CPL_USAGE);
    assert_string_equal(err.line[0], sentence);
}

static void test_refusals(void **state)
{
    cpl_type ids = {.element = CPL_ELEMENT_ID, .rank = 2, .vocabulary = "source", .entries = 6,
                    .dim = {ENCODED.dim[0], ENCODED.dim[1]}};
    cpl_type table = {.rank = 2, .dim = {{"size", 5, CPL_NO_SYMBOL, CPL_DIM_FEATURE}, ENCODED.dim[2]}};
    (void)state;
    refuses("embedding", &ids, &table,
            "embedding: 'encoder.kernel' has 5 rows but vocabulary 'source' of 'encoder.rnn' has 6 entries");
    refuses("reorder", &ENCODED, NULL,
            "reorder: expected x [batch ...] without ragged time, got 'encoder.rnn' [batch s units=8]");
    refuses("pack", &ENCODED, NULL, "pack: expected x [batch padded ...], got 'encoder.rnn' [batch s units=8]");
    refuses("unpack", &table, NULL, "unpack: expected x [batch t ...], got 'encoder.rnn' [size=5 units=8]");
}

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; cpl_op_at(i); i++)
        assert_ptr_equal(cpl_op_named(cpl_op_at(i)->name), cpl_op_at(i));
    assert_null(cpl_op_named("nothing"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_elementwise),  cmocka_unit_test(test_activation),
    cmocka_unit_test(test_linear_and_concat), cmocka_unit_test(test_layer_norm),
    cmocka_unit_test(test_ids),          cmocka_unit_test(test_orders),
    cmocka_unit_test(test_rectangles),   cmocka_unit_test(test_dropout_share),
    cmocka_unit_test(test_dropout_moves_with_its_row), cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_table),
};

CPL_TEST_MAIN(tests)
