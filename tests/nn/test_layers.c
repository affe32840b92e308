/* Layers without recurrence: the mask reaches the mean and the attention; dropout. */
#include "graph/graph_test.h"

/* ---- C06: mean over what exists ---- */

static void pooled(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *ids_in = cpl_input(g, "ids", CPL_ID("words", 4), "batch s");
    cpl_node *x = cpl_embedding(g, "embedding", ids_in, &(cpl_embedding_options){.size = 4, .units = 1});
    /* Layers in between hand the lengths on: plain arithmetic too. */
    x = cpl_add(g, cpl_scale(g, x, 0.5), cpl_scale(g, cpl_dropout(g, x, 0.5), 0.5));
    cpl_node *mean = cpl_mean_time(g, x);
    cpl_output(g, "mean", mean);
    cpl_minimize(g, cpl_sum(g, mean));
}

static void case_C06_mean_of_a_layer_stack(void **state)
{
    (void)state;
    cpl_json *c = read_case("C06_mask_pooling.json");
    float table[4], want[2] = {number(cpl_json_get(c, "expect")), 0};
    int32_t id[8] = {0};
    uint8_t mask[8] = {0}; /* the second sentence has nothing at all */
    for (size_t i = 0; i < 4; i++) {
        numbers(table + i, cpl_json_at(cpl_json_get(c, "embedding"), i));
        id[i] = (int32_t)cpl_json_int(cpl_json_at(cpl_json_at(cpl_json_get(c, "ids"), 0), i), -1);
        mask[i] = id[i] != 0;
    }
    cpl_program *p = compiled(pooled, NULL, NULL);
    set_parameter(p, "embedding.kernel", table, 4);
    feed_mask(p, "s", mask, 2, 4);
    feed(p, "ids", ids(id, 2, 4, NULL));
    run(p, CPL_EVALUATE);
    output_is(p, "mean", want, 2, 1e-5);
    run(p, CPL_TRAIN);
    assert_true(cpl_parameter_gradient(p, 0)[0] == 0); /* the padding id's row */
    cpl_program_free(p);
    cpl_json_free(c);
}

/* ---- C07, C10: attention ---- */

static void attending(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *query = cpl_input(g, "query", CPL_REALS(1), "batch t units");
    cpl_node *memory = cpl_input(g, "memory", CPL_REALS(2), "batch s units");
    cpl_watch(g, "grad.memory", memory);
    cpl_attention_result a = cpl_attention(g, "attention", query, memory, NULL);
    cpl_output(g, "context", a.y);
    cpl_output(g, "weights", a.weights);
    cpl_minimize(g, cpl_sum(g, a.y));
}

/* Keys are the memory's first column, values its second; a query of 1 makes the scores the keys. */
static cpl_program *attention_of_scores(void)
{
    cpl_program *p = compiled(attending, NULL, NULL);
    const float one = 1, key[] = {1, 0}, value[] = {0, 1};
    set_parameter(p, "attention.query.kernel", &one, 1);
    set_parameter(p, "attention.key.kernel", key, 2);
    set_parameter(p, "attention.value.kernel", value, 2);
    set_parameter(p, "attention.output.kernel", &one, 1);
    return p;
}

static void case_C07_attention_layer_ignores_padding(void **state)
{
    (void)state;
    cpl_json *c = read_case("C07_attention_padding.json");
    float memory[16], want[8], context[2], ones[] = {1, 1}, values[4], gradient[16], got[8];
    uint8_t mask[8];
    numbers(values, cpl_json_get(c, "values"));
    numbers(context, cpl_json_get(c, "expect_context"));
    for (size_t i = 0; i < 2; i++) {
        float scores[4], exists[4];
        numbers(scores, cpl_json_at(cpl_json_get(c, "scores"), i));
        numbers(exists, cpl_json_at(cpl_json_get(c, "mask"), i));
        numbers(want + 4 * i, cpl_json_at(cpl_json_get(c, "expect_weights"), i));
        for (size_t k = 0; k < 4; k++) {
            memory[8 * i + 2 * k] = scores[k], memory[8 * i + 2 * k + 1] = values[k];
            mask[4 * i + k] = exists[k] != 0;
        }
    }
    cpl_program *p = attention_of_scores();
    feed(p, "query", reals(ones, 3, 2, 1, 1));
    feed_mask(p, "s", mask, 2, 4);
    feed(p, "memory", reals(memory, 3, 2, 4, 2));
    run(p, CPL_TRAIN);
    output_is(p, "weights", want, 8, 1e-5);
    output_is(p, "context", context, 2, 1e-5);
    read_reals(p, "weights", got, 8);
    read_reals(p, "grad.memory", gradient, 16);
    for (int i = 0; i < 8; i++)
        if (!mask[i])
            assert_true(got[i] == 0 && gradient[2 * i] == 0 && gradient[2 * i + 1] == 0);
    cpl_program_free(p);
    cpl_json_free(c);
}

static void case_C10_source_without_a_token(void **state)
{
    (void)state;
    float memory[12], query[] = {1, -2, 0.5f, 3}, context[4], weights[12], alone[2], alone_weights[6];
    fill(memory, 12, 4);
    cpl_program *p = attention_of_scores();
    feed(p, "query", reals(query, 3, 2, 2, 1));
    feed(p, "memory", (cpl_array){.type = CPL_FLOAT32, .rank = 3, .shape = {2, 3, 2}, .data = memory,
                                  .lengths = (int64_t[]){3, 0}});
    run(p, CPL_TRAIN);
    read_reals(p, "context", context, 4);
    read_reals(p, "weights", weights, 12);
    for (int i = 0; i < 2; i++)
        assert_true(context[2 + i] == 0); /* the biases are 0 */
    for (int i = 6; i < 12; i++)
        assert_true(weights[i] == 0);
    for (size_t i = 0; i < cpl_parameter_count(p); i++)
        for (int64_t k = 0; k < parameter_size(p, i); k++)
            assert_true(isfinite(cpl_parameter_gradient(p, i)[k]));
    feed(p, "query", reals(query, 3, 1, 2, 1));
    feed(p, "memory", reals(memory, 3, 1, 3, 2));
    run(p, CPL_TRAIN);
    read_reals(p, "context", alone, 2);
    read_reals(p, "weights", alone_weights, 6);
    assert_memory_equal(alone, context, sizeof alone);
    assert_memory_equal(alone_weights, weights, sizeof alone_weights);
    cpl_program_free(p);
}

/* ---- dropout ---- */

enum { ROWS = 40, UNITS = 50, MANY = ROWS * UNITS };

static void dropped(cpl_graph *g, const void *user)
{
    cpl_node *x = cpl_input(g, "x", CPL_REALS(UNITS), "batch units");
    cpl_node *w = cpl_parameter(g, "w", CPL_ZEROS, "units=%d", UNITS);
    (void)w;
    cpl_watch(g, "grad.x", x);
    cpl_node *y = cpl_dropout(g, x, *(const double *)user);
    cpl_output(g, "y", y);
    cpl_minimize(g, cpl_sum(g, y));
}

static void dropped_values(cpl_program *p, const float *x, cpl_mode mode, uint64_t step, float *y)
{
    p->step = step;
    feed(p, "x", reals(x, 2, ROWS, UNITS, 0));
    run(p, mode);
    assert_int_equal(read_reals(p, "y", y, MANY), MANY);
}

static void dropout_trains_only_scales_and_repeats(void **state)
{
    (void)state;
    static float x[MANY], y[MANY], again[MANY], other[MANY], gradient[MANY];
    fill(x, MANY, 5);
    for (int i = 0; i < MANY; i++)
        x[i] = x[i] == 0 ? 1 : x[i];
    const double rate = 0.2;
    cpl_program *p = compiled(dropped, &rate, &(cpl_compile_options){.seed = 3});
    cpl_program *twin = compiled(dropped, &rate, &(cpl_compile_options){.seed = 3, .threads = 1});
    cpl_program *stranger = compiled(dropped, &rate, &(cpl_compile_options){.seed = 4});
    dropped_values(p, x, CPL_EVALUATE, 0, y);
    assert_memory_equal(x, y, sizeof x); /* off */
    dropped_values(p, x, CPL_TRAIN, 0, y);
    read_reals(p, "grad.x", gradient, MANY);
    int zeros = 0;
    for (int i = 0; i < MANY; i++) {
        zeros += y[i] == 0;
        assert_true(y[i] == 0 || fabs((double)y[i] - (double)x[i] / (1 - rate)) < 1e-6);
        assert_true(fabs((double)gradient[i] - (y[i] == 0 ? 0 : 1 / (1 - rate))) < 1e-6); /* the same mask */
    }
    assert_in_range(zeros, MANY * 2 / 10 - 90, MANY * 2 / 10 + 90); /* five deviations */
    dropped_values(p, x, CPL_TRAIN, 0, again);
    assert_memory_equal(y, again, sizeof y);
    dropped_values(twin, x, CPL_TRAIN, 0, again);
    assert_memory_equal(y, again, sizeof y);
    dropped_values(p, x, CPL_TRAIN, 1, other);
    assert_true(memcmp(y, other, sizeof y) != 0);
    dropped_values(stranger, x, CPL_TRAIN, 0, other);
    assert_true(memcmp(y, other, sizeof y) != 0);
    cpl_program_free(p);
    cpl_program_free(twin);
    cpl_program_free(stranger);
}

static void dropout_of_nothing_is_nothing(void **state)
{
    (void)state;
    static float x[MANY], y[MANY];
    fill(x, MANY, 6);
    cpl_program *p = compiled(dropped, &(double){0}, NULL);
    dropped_values(p, x, CPL_TRAIN, 0, y);
    assert_memory_equal(x, y, sizeof x);
    cpl_program_free(p);
}

/* ---- the rest of the layers, by hand ---- */

static void small_layers(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(2), "batch in"), *y = cpl_input(g, "y", CPL_REALS(2), "batch in");
    for (int a = 0; a < 4; a++) {
        char name[] = "dense0";
        name[5] = (char)('0' + a);
        cpl_dense_options o = {.units = 1, .activation = a, .no_bias = a == 3};
        cpl_output(g, name, cpl_dense(g, name, x, &o));
    }
    cpl_output(g, "concat", cpl_concat(g, x, y));
    cpl_output(g, "product", cpl_multiply(g, x, y));
    cpl_output(g, "sum", cpl_sum(g, cpl_add(g, x, y)));
    cpl_output(g, "norm", cpl_layer_norm(g, "norm", x, 1e-6));
    cpl_output(g, "best", cpl_argmax(g, x));
}

static void values_by_hand(void **state)
{
    (void)state;
    cpl_program *p = compiled(small_layers, NULL, NULL);
    const float x[] = {1, 3, 2, -2}, y[] = {10, 20, 30, 40}, kernel[] = {1, -1}, bias = 0.5f;
    for (int a = 0; a < 4; a++) {
        char path[] = "dense0.kernel";
        path[5] = (char)('0' + a);
        set_parameter(p, path, kernel, 2);
        strcpy(path + 7, "bias");
        assert_int_equal(cpl_parameter_find(p, path) < 0, a == 3);
        if (a < 3)
            set_parameter(p, path, &bias, 1);
    }
    feed(p, "x", reals(x, 2, 2, 2, 0));
    feed(p, "y", reals(y, 2, 2, 2, 0));
    run(p, CPL_EVALUATE);
    const double sums[] = {-1.5, 4.5};
    output_is(p, "dense0", (float[]){-1.5f, 4.5f}, 2, 1e-6);
    output_is(p, "dense1", (float[]){(float)tanh(sums[0]), (float)tanh(sums[1])}, 2, 1e-6);
    output_is(p, "dense2", (float[]){(float)(1 / (1 + exp(1.5))), (float)(1 / (1 + exp(-4.5)))}, 2, 1e-6);
    output_is(p, "dense3", (float[]){0, 4}, 2, 0);
    output_is(p, "concat", (float[]){1, 3, 10, 20, 2, -2, 30, 40}, 8, 0);
    output_is(p, "product", (float[]){10, 60, 60, -80}, 4, 0);
    assert_true(cpl_scalar(p, "sum") == 104);
    output_is(p, "norm", (float[]){-1, 1, 1, -1}, 4, 1e-5);
    int32_t best[2];
    MUST(cpl_read_ids(p, "best", best, 2, NULL, NULL, err));
    assert_true(best[0] == 1 && best[1] == 0);
    cpl_program_free(p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(case_C06_mean_of_a_layer_stack),
    cmocka_unit_test(case_C07_attention_layer_ignores_padding),
    cmocka_unit_test(case_C10_source_without_a_token),
    cmocka_unit_test(dropout_trains_only_scales_and_repeats),
    cmocka_unit_test(dropout_of_nothing_is_nothing),
    cmocka_unit_test(values_by_hand),
};

CPL_TEST_MAIN(tests)
