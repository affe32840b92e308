/* A decoder unrolled by a loop in C is the same model as cpl_scan's, and an encoder called in each of its steps runs
 * once. */
#include "support/run.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include "graph/graph_test.h"
#include "support/host_loop_model.h"

static cpl_program *host(int inside, int steps, cpl_score score, int no_passes)
{
    host_form form = {.encoder_inside = inside, .steps = steps, .score = score};
    return compiled(host_model, &form, &(cpl_compile_options){.name = "host", .seed = 7, .no_passes = no_passes,
                                                              .threads = 1});
}

static cpl_program *scan(int kind)
{
    return compiled(reader_model, &kind, &(cpl_compile_options){.name = "scan", .seed = 7, .threads = 1});
}

/* The same first values by path: the order in which a model asks for its parameters does not matter then. */
static void same_weights(const cpl_program *from, cpl_program *to)
{
    assert_int_equal(cpl_parameter_count(from), cpl_parameter_count(to));
    for (size_t i = 0; i < cpl_parameter_count(from); i++) {
        int64_t j = cpl_parameter_find(to, cpl_parameter_path(from, i)), shape[3], n = 1;
        assert_true(j >= 0);
        for (int k = 0, rank = cpl_parameter_shape(from, i, shape); k < rank; k++)
            n *= shape[k];
        memcpy(cpl_parameter_value(to, (size_t)j), cpl_parameter_value(from, i), (size_t)n * sizeof(float));
    }
}

static void same_results(cpl_program *a, cpl_program *b, double tolerance)
{
    MUST(run_reader(a, err));
    MUST(run_reader(b, err));
    assert_true(cpl_scalar(a, "loss") > 0.5);
    assert_true(fabs(cpl_scalar(a, "loss") - cpl_scalar(b, "loss")) <= tolerance);
    for (size_t i = 0; i < cpl_parameter_count(a); i++) {
        int64_t j = cpl_parameter_find(b, cpl_parameter_path(a, i)), shape[3], n = 1;
        for (int k = 0, rank = cpl_parameter_shape(a, i, shape); k < rank; k++)
            n *= shape[k];
        const float *x = cpl_parameter_gradient(a, i), *y = cpl_parameter_gradient(b, (size_t)j);
        assert_true(x && y);
        near(x, y, n, tolerance, cpl_parameter_path(a, i));
    }
}

/* Calls of an op in the forward part of a schedule. */
static int calls(const cpl_program *p, cpl_mode mode, const char *op)
{
    const cpl_graph *g = p->schedule[mode].graph;
    int n = 0;
    for (size_t i = 0; i < g->call_count; i++)
        n += !g->calls[i].dead && !g->calls[i].backward && (!op || strcmp(g->calls[i].op->name, op) == 0);
    return n;
}

static void case_B01_literal_loop_runs_the_encoder_once(void **state)
{
    (void)state;
    cpl_program *literal = host(1, 4, CPL_SCORE_MULTIHEAD, 0), *repaired = host(0, 4, CPL_SCORE_MULTIHEAD, 0);
    cpl_program *plain = host(1, 4, CPL_SCORE_MULTIHEAD, 1), *loop = scan(0);
    for (int mode = CPL_EVALUATE; mode <= CPL_TRAIN; mode++) {
        assert_int_equal(calls(literal, (cpl_mode)mode, "gru"), 2); /* one in each direction */
        assert_int_equal(calls(literal, (cpl_mode)mode, NULL), calls(repaired, (cpl_mode)mode, NULL));
        assert_int_equal(calls(literal, (cpl_mode)mode, "attention"), 4);
    }
    assert_int_equal(calls(plain, CPL_EVALUATE, "gru"), 8);
    same_weights(loop, literal);
    same_weights(loop, repaired);
    same_weights(loop, plain);
    same_results(loop, literal, 2e-6);
    same_results(literal, repaired, 0);
    same_results(literal, plain, 2e-6);
    size_t a, b;
    cpl_binding capacity = literal->last_plan.capacity;
    MUST(cpl_program_block_bytes(literal, CPL_TRAIN, &capacity, &a, err));
    MUST(cpl_program_block_bytes(repaired, CPL_TRAIN, &capacity, &b, err));
    assert_int_equal(a, b);
    cpl_program_free(literal);
    cpl_program_free(repaired);
    cpl_program_free(plain);
    cpl_program_free(loop);
}

/* More steps than any sentence has change nothing; fewer are refused. */
static void steps_that_no_sentence_has(void **state)
{
    (void)state;
    cpl_program *four = host(1, 4, CPL_SCORE_ADDITIVE, 0), *nine = host(1, 9, CPL_SCORE_ADDITIVE, 0);
    cpl_program *loop = scan(READER_INSIDE | READER_ADDITIVE);
    same_weights(loop, four);
    same_weights(loop, nine);
    same_results(loop, four, 2e-6);
    same_results(loop, nine, 2e-6);
    cpl_program_free(loop);
    cpl_program_free(four);
    cpl_program_free(nine);
    cpl_program *three = host(0, 3, CPL_SCORE_DOT, 0);
    REFUSED(run_reader(three, err), "a sentence has 4 steps of 't' but 3 were stacked", "cpl_scan");
    cpl_program_free(three);
}

/* Each score may be queried by a state: one step against a sequence of one step. */
static void query(cpl_graph *g, const void *user)
{
    cpl_attention_options o = {.score = *(const cpl_score *)user};
    cpl_node *memory = cpl_input(g, "memory", CPL_REALS(6), "batch s units");
    cpl_node *state = cpl_input(g, "state", CPL_REALS(6), "batch units");
    cpl_node *one = cpl_input(g, "one", CPL_REALS(6), "batch t units");
    cpl_output(g, "y", cpl_attention(g, "a", state, memory, &o).y);
    cpl_output(g, "weights", cpl_attention(g, "a", state, memory, &o).weights);
    cpl_output(g, "want", cpl_attention(g, "a", one, memory, &o).y);
    cpl_output(g, "want_weights", cpl_attention(g, "a", one, memory, &o).weights);
}

static void attention_queried_by_a_state(void **state)
{
    (void)state;
    for (cpl_score score = CPL_SCORE_MULTIHEAD; score <= CPL_SCORE_GENERAL; score++) {
        float memory[3 * 4 * 6], q[3 * 6], want[3 * 6], weights[3 * 4];
        int64_t lengths[] = {2, 4, 3};
        fill(memory, 72, 1);
        fill(q, 18, 2);
        cpl_program *p = compiled(query, &score, NULL);
        cpl_array m = reals(memory, 3, 3, 4, 6);
        m.lengths = lengths;
        feed(p, "memory", m);
        feed(p, "state", reals(q, 2, 3, 6, 0));
        feed(p, "one", reals(q, 3, 3, 1, 6));
        run(p, CPL_EVALUATE);
        assert_int_equal(read_reals(p, "want", want, 18), 18);
        output_is(p, "y", want, 18, 0);
        assert_int_equal(read_reals(p, "want_weights", weights, 12), 12);
        output_is(p, "weights", weights, 12, 0);
        cpl_program_free(p);
    }
}

/* Tokens from a rectangle; the steps of numbers from both kinds of sequence. */
static void takes(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(2), "batch padded units");
    cpl_node *packed = cpl_pack(g, x, "t"), *steps[3];
    for (int k = 0; k < 3; k++)
        steps[k] = cpl_take(g, packed, k);
    cpl_output(g, "third", cpl_take(g, x, 2));
    cpl_output(g, "packed_third", steps[2]);
    cpl_output(g, "tenth", cpl_take(g, x, 9));
    cpl_output(g, "again", cpl_stack(g, steps, 3, "t"));
    cpl_output(g, "zeros", cpl_zeros(g, packed, 3));
}

static void steps_of_rectangles_and_of_sequences(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const uint8_t mask[] = {1, 1, 0, 1, 1, 1};
    cpl_program *p = compiled(takes, NULL, NULL);
    feed_mask(p, "t", mask, 2, 3);
    feed(p, "x", reals(x, 3, 2, 3, 2));
    run(p, CPL_EVALUATE);
    output_is(p, "third", (const float[]){5, 6, 11, 12}, 4, 0);
    output_is(p, "packed_third", (const float[]){0, 0, 11, 12}, 4, 0);
    output_is(p, "tenth", (const float[]){0, 0, 0, 0}, 4, 0);
    output_is(p, "again", (const float[]){1, 2, 3, 4, 0, 0, 7, 8, 9, 10, 11, 12}, 12, 0);
    output_is(p, "zeros", (const float[]){0, 0, 0, 0, 0, 0}, 6, 0);
    cpl_program_free(p);
}

static void tokens_from_a_rectangle(void **state)
{
    (void)state;
    static const int32_t rows[BATCH][4] = {{4, 5, 0, 0}, {5, 0, 0, 0}, {6, 7, 8, 9}, {0, 0, 0, 0}};
    static const int32_t more[8] = {4, 5, 6, 7, 8, 9, 10, 4};
    const int32_t *source[BATCH] = {more, more + 1, more + 2, more + 3}, *labels[BATCH];
    const int64_t sources[BATCH] = {3, 5, 1, 2}, targets[BATCH] = {2, 1, 4, 0};
    for (int i = 0; i < BATCH; i++)
        labels[i] = more + i + 1;
    host_form form = {.encoder_inside = 1, .steps = 4, .rectangle = 1};
    cpl_program *p = compiled(host_model, &form, &(cpl_compile_options){.seed = 7}), *loop = scan(0);
    same_weights(loop, p);
    MUST(run_reader(loop, err));
    MUST(cpl_feed_ids(p, "source", source, sources, BATCH, err));
    MUST(cpl_feed_ids(p, "label", labels, targets, BATCH, err));
    feed(p, "token", ids(&rows[0][0], BATCH, 4, NULL));
    run(p, CPL_TRAIN);
    assert_true(fabs(cpl_scalar(p, "loss") - cpl_scalar(loop, "loss")) <= 2e-6);
    assert_int_equal((int)cpl_scalar(p, "count"), 7);
    cpl_program_free(p);
    cpl_program_free(loop);
}

/* GRU steps on rows of sentences are the whole-sequence layer's, through stack and take. */
static void grus(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(3), "batch t in"), *h = cpl_zeros(g, x, 4), *steps[5];
    for (int k = 0; k < 5; k++) {
        cpl_gru_step(g, "rnn", cpl_take(g, x, k), &h, 4);
        steps[k] = h;
    }
    cpl_output(g, "y", cpl_stack(g, steps, 5, "t"));
    cpl_output(g, "want", cpl_rnn(g, "layer", x, &(cpl_rnn_options){.cell = CPL_GRU, .units = 4}).y);
}

static void gru_steps_are_the_layer(void **state)
{
    (void)state;
    float x[3 * 5 * 3], want[60];
    int64_t lengths[] = {5, 2, 3}, shape[3];
    fill(x, 45, 3);
    cpl_program *p = compiled(grus, NULL, &(cpl_compile_options){.seed = 3});
    static const char *const names[][2] = {{"rnn.kernel", "layer.kernel"}, {"rnn.recurrent_kernel",
                                            "layer.recurrent_kernel"}};
    for (int i = 0; i < 2; i++) {
        size_t a = (size_t)cpl_parameter_find(p, names[i][0]), b = (size_t)cpl_parameter_find(p, names[i][1]);
        cpl_parameter_shape(p, a, shape);
        memcpy(cpl_parameter_value(p, b), cpl_parameter_value(p, a), (size_t)(shape[0] * shape[1]) * sizeof(float));
    }
    cpl_array a = reals(x, 3, 3, 5, 3);
    a.lengths = lengths;
    feed(p, "x", a);
    run(p, CPL_EVALUATE);
    assert_int_equal(read_reals(p, "want", want, 60), 60);
    output_is(p, "y", want, 60, 1e-6);
    cpl_program_free(p);
}

/* The passes stay fast for a loop of 50 steps; a quadratic one would show here, not in a model of four steps. */
static void fifty_steps_compile_in_a_moment(void **state)
{
    (void)state;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    cpl_program *p = host(1, 50, CPL_SCORE_MULTIHEAD, 0);
    MUST(run_reader(p, err));
    clock_gettime(CLOCK_MONOTONIC, &b);
    double seconds = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    print_message("50 steps: %zu calls traced, %d run, %.3f s with the first run\n", p->traced->call_count,
                  calls(p, CPL_TRAIN, NULL), seconds);
    assert_int_equal(calls(p, CPL_TRAIN, "gru"), 2);
    assert_true(seconds < 10);
    cpl_program_free(p);
}

static void two_widths(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(3), "batch t in");
    cpl_node *steps[] = {cpl_take(g, x, 0), cpl_concat(g, cpl_take(g, x, 1), cpl_take(g, x, 1))};
    cpl_output(g, "y", cpl_stack(g, steps, 2, "t"));
}

static void no_time(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_output(g, "y", cpl_take(g, cpl_input(g, "x", CPL_REALS(3), "batch in"), 0));
}

static void mistakes(void **state)
{
    (void)state;
    NOT_COMPILED(two_widths, NULL, "is 3 in", "but 6 in");
    NOT_COMPILED(no_time, NULL, "take: expected x [batch t ...] or [batch padded ...], got 'x' [batch in=3]");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(case_B01_literal_loop_runs_the_encoder_once),
    cmocka_unit_test(steps_that_no_sentence_has),
    cmocka_unit_test(attention_queried_by_a_state),
    cmocka_unit_test(steps_of_rectangles_and_of_sequences),
    cmocka_unit_test(tokens_from_a_rectangle),
    cmocka_unit_test(gru_steps_are_the_layer),
    cmocka_unit_test(fifty_steps_compile_in_a_moment),
    cmocka_unit_test(mistakes),
};

CPL_TEST_MAIN(tests)
