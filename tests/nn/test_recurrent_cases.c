/* Recurrent layers on the cases' numbers: masks, directions, states. */
#include "graph/graph_test.h"

/* ---- one GRU unit over a masked rectangle (D01, D03, D04, D09, D10) ---- */

typedef struct one {
    cpl_cell cell;
    int given; /* an initial state is fed */
} one;

static void one_unit(cpl_graph *g, const void *user)
{
    const one *o = user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(1), "batch padded in");
    cpl_node *h = o->given ? cpl_input(g, "h", CPL_REALS(1), "batch units") : NULL;
    cpl_rnn_result r = cpl_rnn(g, "rnn", cpl_pack(g, x, "s"), &(cpl_rnn_options){.cell = o->cell, .units = 1, .h = h});
    cpl_output(g, "y", cpl_unpack(g, r.y, 1));
    cpl_output(g, "rows", r.y);
    cpl_output(g, "state", r.h);
}

/* D01's weights. */
static cpl_program *d01(const one *o)
{
    cpl_json *c = read_case("D01_gru_reset.json");
    cpl_program *p = compiled(one_unit, o, NULL);
    float w[6];
    numbers(w, cpl_json_at(cpl_json_get(c, "kernel"), 0));
    set_parameter(p, "rnn.kernel", w, 3);
    numbers(w, cpl_json_at(cpl_json_get(c, "recurrent"), 0));
    set_parameter(p, "rnn.recurrent_kernel", w, 3);
    numbers(w, cpl_json_get(c, "bias_input"));
    numbers(w + 3, cpl_json_get(c, "bias_recurrent"));
    set_parameter(p, "rnn.bias", w, o->cell == CPL_GRU ? 6 : 3);
    cpl_json_free(c);
    return p;
}

static void feed_x(cpl_program *p, const float *x, const uint8_t *mask, int64_t batch, int64_t width)
{
    uint8_t whole[64];
    memset(whole, 1, sizeof whole);
    feed_mask(p, "s", mask ? mask : whole, batch, width);
    feed(p, "x", reals(x, 3, batch, width, 1));
}

static void case_D01_reset_after_and_before(void **state)
{
    (void)state;
    cpl_json *c = read_case("D01_gru_reset.json");
    float x[3], want[3];
    numbers(x, cpl_json_get(c, "x"));
    for (int before = 0; before < 2; before++) {
        cpl_program *p = d01(&(one){before ? CPL_GRU_RESET_BEFORE : CPL_GRU, 0});
        numbers(want, cpl_json_get(c, before ? "expect_reset_before(bias_recurrent unused)" : "expect_reset_after"));
        feed_x(p, x, NULL, 1, 3);
        run(p, CPL_EVALUATE);
        output_is(p, "y", want, 3, 1e-5);
        output_is(p, "state", want + 2, 1, 1e-5);
        cpl_program_free(p);
    }
    cpl_json_free(c);
}

/* All four rows of the case in one batch; then with other numbers where nothing exists. */
static void case_D03_masked_steps(void **state)
{
    (void)state;
    cpl_json *c = read_case("D03_masked_gru.json");
    const cpl_json *rows = cpl_json_get(c, "cases");
    float x[16], y[16], last[4], mask_values[16], got[2][16], states[2][4];
    uint8_t mask[16];
    assert_int_equal(cpl_json_size(rows), 4);
    for (size_t i = 0; i < 4; i++) {
        const cpl_json *row;
        cpl_json_key(rows, i, &row);
        numbers(x + 4 * i, cpl_json_get(row, "x"));
        numbers(y + 4 * i, cpl_json_get(row, "outputs"));
        numbers(mask_values + 4 * i, cpl_json_get(row, "mask"));
        last[i] = number(cpl_json_get(row, "state"));
    }
    for (int i = 0; i < 16; i++)
        mask[i] = mask_values[i] != 0;
    cpl_program *p = d01(&(one){CPL_GRU, 0});
    for (int k = 0; k < 2; k++) {
        feed_x(p, x, mask, 4, 4);
        run(p, CPL_EVALUATE);
        read_reals(p, "y", got[k], 16);
        read_reals(p, "state", states[k], 4);
        near(got[k], y, 16, 1e-5, "outputs");
        near(states[k], last, 4, 1e-5, "states");
        for (int i = 0; i < 16; i++)
            x[i] = mask[i] ? x[i] : (float)(i * 1e6 - 3e6);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    assert_memory_equal(states[0], states[1], sizeof states[0]);
    cpl_program_free(p);
    cpl_json_free(c);
}

static void case_D04_empty_row_with_a_state(void **state)
{
    (void)state;
    cpl_program *p = d01(&(one){CPL_GRU, 1});
    const float x[] = {7, 8, 9, /**/ 9, 1.0f, -0.5f}, half[] = {0.5f, 0.5f}, last[] = {0.5f, 0.035289f};
    const float y[] = {0, 0, 0, /**/ 0, 0.586277f, 0.035289f};
    feed_x(p, x, (uint8_t[]){0, 0, 0, 0, 1, 1}, 2, 3);
    feed(p, "h", reals(half, 2, 2, 1, 0));
    run(p, CPL_EVALUATE);
    output_is(p, "y", y, 6, 1e-5);
    output_is(p, "state", last, 2, 1e-5);
    float got[2];
    read_reals(p, "state", got, 2);
    assert_true(got[0] == 0.5f);
    for (int row = 0; row < 2; row++) { /* each alone, a batch without any row too */
        feed_x(p, x + 3 * row, (uint8_t[]){0, (uint8_t)row, (uint8_t)row}, 1, 3);
        feed(p, "h", reals(half, 2, 1, 1, 0));
        run(p, CPL_EVALUATE);
        output_is(p, "y", y + 3 * row, 3, 1e-5);
        output_is(p, "state", last + row, 1, 1e-5);
    }
    cpl_program_free(p);
}

static void case_D09_short_last_batch(void **state)
{
    (void)state;
    float x[128], y[64], h[64] = {0};
    fill(x, 128, 6);
    cpl_program *p = d01(&(one){CPL_GRU, 0});
    for (int64_t batch = 64; batch > 0; batch -= 28) { /* 64, 36, 8 */
        feed_x(p, x, (uint8_t[128]){[0 ... 127] = 1}, batch, 2);
        run(p, CPL_EVALUATE);
        assert_int_equal(read_reals(p, "state", y, 64), batch);
    }
    assert_int_equal(cpl_traces(p), 1);
    cpl_program_free(p);
    p = d01(&(one){CPL_GRU, 1});
    feed_x(p, x, (uint8_t[72]){[0 ... 71] = 1}, 36, 2);
    cpl_array full = reals(h, 2, 64, 1, 0);
    REFUSED(cpl_feed(p, "h", &full, err), "'h' is (64, 1)", "batch=36", "[batch units=1]");
    cpl_program_free(p);
}

static void case_D10_state_carried_across_chunks(void **state)
{
    (void)state;
    cpl_json *c = read_case("D10_state_carry.json");
    float x[6], full[6], reset[3], h, got[6];
    numbers(x, cpl_json_get(c, "x"));
    numbers(full, cpl_json_get(c, "expect_full"));
    numbers(reset, cpl_json_get(c, "second_chunk_after_reset"));
    cpl_program *p = d01(&(one){CPL_GRU, 1});
    for (int64_t chunk = 6; chunk > 0; chunk = chunk == 6 ? 3 : chunk == 3 ? 1 : 0) {
        h = 0;
        for (int64_t at = 0; at < 6; at += chunk) {
            feed_x(p, x + at, NULL, 1, chunk);
            feed(p, "h", reals(&h, 2, 1, 1, 0));
            run(p, CPL_EVALUATE);
            read_reals(p, "y", got + at, 6);
            read_reals(p, "state", &h, 1);
        }
        near(got, full, 6, 1e-5, "in chunks");
    }
    h = 0;
    feed_x(p, x + 3, NULL, 1, 3);
    feed(p, "h", reals(&h, 2, 1, 1, 0));
    run(p, CPL_EVALUATE);
    output_is(p, "y", reset, 3, 1e-5);
    cpl_program_free(p);
    cpl_json_free(c);
}

/* ---- the accumulator of D05 and D06 ----
 * An LSTM with open gates: c = c + tanh(x/1024), h = tanh(c), so that 1024·h is the sum of x to a relative error of
 * (6/1024)²/3 ≈ 1.2e-5. */

enum { SCALE = 1024 };

typedef struct accumulator {
    cpl_merge merge;
    int reverse_alone;
} accumulator;

static void accumulate(cpl_graph *g, const void *user)
{
    const accumulator *a = user;
    cpl_node *x = cpl_pack(g, cpl_input(g, "x", CPL_REALS(1), "batch padded in"), "s");
    if (a->reverse_alone) {
        cpl_rnn_result r = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.cell = CPL_LSTM, .units = 1, .reverse = 1});
        cpl_output(g, "y", cpl_scale(g, r.y, SCALE));
        cpl_output(g, "mean", cpl_scale(g, cpl_mean_time(g, r.y), SCALE));
        return;
    }
    cpl_bidirectional_options o = {.cell = CPL_LSTM, .units = 1, .merge = a->merge};
    cpl_bidirectional_result r = cpl_bidirectional(g, "rnn", x, &o);
    cpl_output(g, "y", cpl_unpack(g, cpl_scale(g, r.y, a->merge == CPL_MULTIPLY ? SCALE * SCALE : SCALE), 0));
    cpl_output(g, "forward", cpl_scale(g, r.forward.y, SCALE));
    cpl_output(g, "backward", cpl_scale(g, r.backward.y, SCALE));
    cpl_output(g, "forward_h", cpl_scale(g, r.forward.h, SCALE));
    cpl_output(g, "backward_h", cpl_scale(g, r.backward.h, SCALE));
}

static cpl_program *accumulator_of(const accumulator *a)
{
    static const float kernel[] = {0, 0, 1.0f / SCALE, 0}, recurrent[4] = {0}, bias[] = {30, 30, 0, 30};
    cpl_program *p = compiled(accumulate, a, NULL);
    for (int backward = 0; backward < (a->reverse_alone ? 1 : 2); backward++) {
        const char *layer = a->reverse_alone ? "rnn" : backward ? "rnn.backward" : "rnn.forward";
        char path[80];
        snprintf(path, sizeof path, "%s.kernel", layer);
        set_parameter(p, path, kernel, 4);
        snprintf(path, sizeof path, "%s.recurrent_kernel", layer);
        set_parameter(p, path, recurrent, 4);
        snprintf(path, sizeof path, "%s.bias", layer);
        set_parameter(p, path, bias, 4);
    }
    return p;
}

static const double ACCUMULATED = 1e-3; /* tolerance */

static void case_D05_merge_modes(void **state)
{
    (void)state;
    static const struct {
        cpl_merge merge;
        const char *name;
    } modes[] = {{CPL_SUM, "sum"}, {CPL_AVERAGE, "ave"}, {CPL_MULTIPLY, "mul"}, {CPL_CONCAT, "concat"}};
    cpl_json *c = read_case("D05_bidirectional_merge.json");
    const cpl_json *valid = cpl_json_get(c, "expect_valid_positions"), *final = cpl_json_get(c, "final_states");
    float x[5], mask_values[5], want[10], one_direction[5] = {0};
    uint8_t mask[5];
    int64_t n = numbers(x, cpl_json_get(c, "x"));
    numbers(mask_values, cpl_json_get(c, "mask"));
    for (int i = 0; i < 5; i++)
        mask[i] = mask_values[i] != 0;
    for (size_t k = 0; k < 4; k++) {
        const cpl_json *expect = cpl_json_get(valid, modes[k].name);
        int wide = modes[k].merge == CPL_CONCAT ? 2 : 1;
        cpl_program *p = accumulator_of(&(accumulator){.merge = modes[k].merge});
        memset(want, 0, sizeof want); /* masked positions are 0 in every mode */
        for (size_t i = 0; i < cpl_json_size(expect); i++)
            if (wide == 2)
                numbers(want + 2 * i, cpl_json_at(expect, i));
            else
                want[i] = number(cpl_json_at(expect, i));
        feed_x(p, x, mask, 1, n);
        run(p, CPL_EVALUATE);
        output_is(p, "y", want, n * wide, ACCUMULATED);
        numbers(one_direction, cpl_json_get(c, "forward"));
        output_is(p, "forward", one_direction, n, ACCUMULATED);
        numbers(one_direction, cpl_json_get(c, "backward_aligned"));
        output_is(p, "backward", one_direction, n, ACCUMULATED);
        float forward = number(cpl_json_get(final, "forward")), backward = number(cpl_json_get(final, "backward"));
        output_is(p, "forward_h", &forward, 1, ACCUMULATED);
        output_is(p, "backward_h", &backward, 1, ACCUMULATED);
        cpl_program_free(p);
    }
    cpl_json_free(c);
}

/* Our outputs stand in the order of the input, so the mask handed on is the input's. */
static void case_D06_backward_layer_alone(void **state)
{
    (void)state;
    cpl_program *p = accumulator_of(&(accumulator){.reverse_alone = 1});
    const float x[] = {1, 2, 3, 50, 50, /**/ 50, 50, 1, 2, 3, /**/ 1, 2, 50, 50, 50};
    const float y[] = {6, 5, 3, 0, 0, /**/ 0, 0, 6, 5, 3, /**/ 3, 2, 0, 0, 0}, mean[] = {14 / 3.0f, 14 / 3.0f, 2.5f};
    feed_x(p, x, (uint8_t[]){1, 1, 1, 0, 0, /**/ 0, 0, 1, 1, 1, /**/ 1, 1, 0, 0, 0}, 3, 5);
    run(p, CPL_EVALUATE);
    output_is(p, "y", y, 15, ACCUMULATED);
    output_is(p, "mean", mean, 3, ACCUMULATED);
    cpl_program_free(p);
}

/* ---- D07: states by name ---- */

static void bilstm(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(1), "batch s in");
    cpl_bidirectional_options o = {.cell = CPL_LSTM, .units = 1, .merge = CPL_CONCAT};
    o.forward_h = cpl_input(g, "fwd_h", CPL_REALS(1), "batch units");
    o.forward_c = cpl_input(g, "fwd_c", CPL_REALS(1), "batch units");
    o.backward_h = cpl_input(g, "bwd_h", CPL_REALS(1), "batch units");
    o.backward_c = cpl_input(g, "bwd_c", CPL_REALS(1), "batch units");
    cpl_bidirectional_result r = cpl_bidirectional(g, "rnn", x, &o);
    cpl_output(g, "y", r.y);
    cpl_output(g, "out_fwd_h", r.forward.h);
    cpl_output(g, "out_fwd_c", r.forward.c);
    cpl_output(g, "out_bwd_h", r.backward.h);
    cpl_output(g, "out_bwd_c", r.backward.c);
}

static void case_D07_bidirectional_states(void **state)
{
    (void)state;
    static const char *const names[] = {"fwd_h", "fwd_c", "bwd_h", "bwd_c"};
    cpl_json *c = read_case("D07_bilstm_states.json");
    const cpl_json *initial = cpl_json_get(c, "initial"), *expect = cpl_json_get(c, "expect");
    cpl_program *p = compiled(bilstm, NULL, NULL);
    float w[4], x[2], concat[2], y[4];
    for (int backward = 0; backward < 2; backward++) {
        const cpl_json *weights = cpl_json_get(c, backward ? "backward" : "forward");
        numbers(w, cpl_json_at(cpl_json_get(weights, "kernel"), 0));
        set_parameter(p, backward ? "rnn.backward.kernel" : "rnn.forward.kernel", w, 4);
        numbers(w, cpl_json_at(cpl_json_get(weights, "recurrent"), 0));
        set_parameter(p, backward ? "rnn.backward.recurrent_kernel" : "rnn.forward.recurrent_kernel", w, 4);
        numbers(w, cpl_json_get(weights, "bias"));
        set_parameter(p, backward ? "rnn.backward.bias" : "rnn.forward.bias", w, 4);
    }
    numbers(x, cpl_json_get(c, "x"));
    feed(p, "x", reals(x, 3, 1, 2, 1));
    for (int i = 0; i < 4; i++) {
        float value = number(cpl_json_get(initial, names[i]));
        feed(p, names[i], reals(&value, 2, 1, 1, 0));
    }
    run(p, CPL_EVALUATE);
    for (int i = 0; i < 4; i++) {
        char output[16];
        float want = number(cpl_json_get(expect, names[i]));
        snprintf(output, sizeof output, "out_%s", names[i]);
        output_is(p, output, &want, 1, 1e-5);
    }
    numbers(concat, cpl_json_get(expect, "output_concat")); /* each direction where it ends */
    assert_int_equal(read_reals(p, "y", y, 4), 4);
    near(y + 2, concat, 1, 1e-5, "forward, last step");
    near(y + 1, concat + 1, 1, 1e-5, "backward, first step");
    cpl_program_free(p);
    cpl_json_free(c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(case_D01_reset_after_and_before),
    cmocka_unit_test(case_D03_masked_steps),
    cmocka_unit_test(case_D04_empty_row_with_a_state),
    cmocka_unit_test(case_D05_merge_modes),
    cmocka_unit_test(case_D06_backward_layer_alone),
    cmocka_unit_test(case_D07_bidirectional_states),
    cmocka_unit_test(case_D09_short_last_batch),
    cmocka_unit_test(case_D10_state_carried_across_chunks),
};

CPL_TEST_MAIN(tests)
