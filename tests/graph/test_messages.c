/* What a program tells through its message sink: prints when it runs, what left a loop, why memory was planned. */
#include "graph/graph_test.h"
#include "support/host_loop_model.h"

enum { MOST = 64 };

typedef struct heard {
    int count;
    char line[MOST][600];
} heard;

static void hear(void *user, int level, const char *text)
{
    heard *h = user;
    if (level == 0 && h->count < MOST)
        snprintf(h->line[h->count++], sizeof h->line[0], "%s", text);
}

static int heard_with(const heard *h, const char *part)
{
    int n = 0;
    for (int i = 0; i < h->count; i++)
        n += strstr(h->line[i], part) != NULL;
    return n;
}

static const char *line_with(const heard *h, const char *part)
{
    for (int i = 0; i < h->count; i++)
        if (strstr(h->line[i], part))
            return h->line[i];
    fail_msg("nobody said '%s'", part);
    return "";
}

/* ---- print ---- */

static void printing(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *ids = cpl_print(g, cpl_input(g, "tokens", CPL_ID("source", 9), "batch s"), "fed");
    cpl_node *x = cpl_embedding(g, "table", ids, &(cpl_embedding_options){.size = 9, .units = 2});
    cpl_print(g, x, "vectors of");           /* nothing reads what it gives */
    cpl_print(g, cpl_scale(g, x, 2), "");    /* nothing else reads x doubled */
    cpl_node *y = cpl_print(g, x, "vectors of");
    cpl_node *loss = cpl_sum(g, cpl_multiply(g, y, y));
    cpl_output(g, "loss", loss);
    cpl_minimize(g, loss);
}

static void feed_tokens(cpl_program *p)
{
    static const int32_t tokens[] = {3, 4, 5, 8, 0, 0};
    static const int64_t lengths[] = {3, 1};
    feed(p, "tokens", ids(tokens, 2, 3, lengths));
}

/* Case A11: a print is seen once for each run and never while the model is traced; with and without passes. */
static void case_A11_prints_once_for_each_run(void **state)
{
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        heard h = {0};
        cpl_program *p = compiled(printing, NULL, &(cpl_compile_options){.message = hear, .user = &h,
                                                                         .no_passes = plain});
        assert_int_equal(heard_with(&h, "fed"), 0);
        assert_int_equal(heard_with(&h, "vectors of"), 0);
        for (int i = 0; i < 3; i++) {
            feed_tokens(p);
            run(p, i == 1 ? CPL_EVALUATE : CPL_TRAIN);
            assert_int_equal(heard_with(&h, "fed 'tokens' [batch=2 s=3]: min 3 mean 5 max 8, 0 of 4 not finite, first "
                                        "3 8 4 5"), i + 1);
            assert_int_equal(heard_with(&h, "vectors of 'table' [batch=2 s=3 units=2]: min "), 2 * (i + 1));
        }
        assert_int_equal(cpl_traces(p), 1);
        cpl_program_free(p);
    }
}

static void four_numbers(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_output(g, "y", cpl_print(g, cpl_input(g, "x", CPL_REALS(4), "batch in"), "look at"));
}

static void summary_of_numbers_that_are_not_finite(void **state)
{
    (void)state;
    heard h = {0};
    float x[] = {1, -3, (float)NAN, 2, (float)INFINITY, 0, 0, 0};
    cpl_program *p = compiled(four_numbers, NULL, &(cpl_compile_options){.message = hear, .user = &h});
    feed(p, "x", reals(x, 2, 2, 4, 0));
    run(p, CPL_EVALUATE);
    assert_non_null(strstr(line_with(&h, "look at"),
                           "look at 'x' [batch=2 in=4]: min -3 mean 0 max 2, 2 of 8 not finite, first 1 -3 nan 2 "
                           "inf 0"));
    cpl_program_free(p);
    p = compiled(four_numbers, NULL, NULL); /* nobody listens */
    feed(p, "x", reals(x, 2, 2, 4, 0));
    run(p, CPL_EVALUATE);
    cpl_program_free(p);
}

/* The gradient goes through: as if the print were not there. */
static void printed_loss(cpl_graph *g, const void *user)
{
    cpl_node *x = cpl_input(g, "x", CPL_REALS(3), "batch in");
    cpl_node *y = cpl_dense(g, "dense", x, &(cpl_dense_options){.units = 2, .activation = 1});
    y = *(const int *)user ? cpl_print(g, y, "y") : y;
    cpl_minimize(g, cpl_sum(g, cpl_multiply(g, y, y)));
}

static void gradients_go_through(void **state)
{
    (void)state;
    float x[] = {0.5f, -1, 2, 1, 0.25f, -0.75f};
    cpl_program *p[2];
    for (int print = 0; print < 2; print++) {
        p[print] = compiled(printed_loss, &print, &(cpl_compile_options){.seed = 5});
        feed(p[print], "x", reals(x, 2, 2, 3, 0));
        run(p[print], CPL_TRAIN);
        int backward = 0;
        const cpl_graph *g = p[print]->schedule[CPL_TRAIN].graph;
        for (size_t i = 0; i < g->call_count; i++)
            backward += g->calls[i].backward && strcmp(g->calls[i].op->name, "print") == 0;
        assert_int_equal(backward, 0);
    }
    near(cpl_parameter_gradient(p[1], 0), cpl_parameter_gradient(p[0], 0), 6, 1e-6, "kernel");
    cpl_program_free(p[0]);
    cpl_program_free(p[1]);
}

static void counting_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    (void)user;
    cpl_node *h = cpl_loop_state(loop, "h");
    h = cpl_print(g, cpl_add(g, h, cpl_loop_slice(loop, "x")), "state");
    cpl_print(g, cpl_loop_slice(loop, "x"), "input");
    cpl_loop_next(loop, "h", h);
    cpl_loop_emit(loop, "y", h);
}

static void counting(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(1), "batch t units");
    cpl_scan_options o = {.name = "count", .time = "t", .inputs = {{"x", x, 0}}, .states = {{"h", NULL, 1}}};
    cpl_output(g, "y", cpl_loop_output(cpl_scan(g, &o, counting_body, NULL), "y"));
}

/* Inside a loop once for each step; what needs no state runs, and tells, once. */
static void once_for_each_step_of_a_loop(void **state)
{
    (void)state;
    heard h = {0};
    float x[] = {1, 2, 3, 10, 20, 0};
    int64_t lengths[] = {3, 2};
    cpl_program *p = compiled(counting, NULL, &(cpl_compile_options){.message = hear, .user = &h});
    cpl_array a = reals(x, 3, 2, 3, 1);
    a.lengths = lengths;
    feed(p, "x", a);
    run(p, CPL_EVALUATE);
    assert_int_equal(heard_with(&h, "state '"), 3);
    assert_int_equal(heard_with(&h, "0 of 2 not finite, first 1 10"), 1);
    assert_int_equal(heard_with(&h, "0 of 2 not finite, first 3 30"), 1);
    assert_int_equal(heard_with(&h, "0 of 1 not finite, first 6"), 1);
    assert_int_equal(heard_with(&h, "input 'x' ["), 1);
    cpl_program_free(p);
}

/* ---- loops ---- */

static void what_left_a_loop(void **state)
{
    (void)state;
    heard h = {0};
    int inside = 1;
    cpl_program *p = compiled(reader_model, &inside, &(cpl_compile_options){.message = hear, .user = &h});
    const char *line = line_with(&h, "loop 'decoder'");
    int stepwise = 0, once = 0;
    assert_int_equal(sscanf(line, "loop 'decoder': %d calls run step by step, %d run once", &stepwise, &once), 2);
    assert_true(stepwise >= 5 && once >= 6);
    const char *names = strstr(line, "run once: ");
    assert_non_null(names);
    assert_non_null(strstr(names, "source, encoder.forward"));
    assert_non_null(strstr(names, "attention.key"));
    assert_null(strstr(names, "attention.query"));
    assert_null(strstr(names, "cell"));
    h.count = 0;
    MUST(run_reader(p, err));
    assert_int_equal(h.count, 1); /* of its plan */
    cpl_program_free(p);
    h.count = 0;
    host_form form = {.encoder_inside = 1, .steps = 4};
    p = compiled(host_model, &form, &(cpl_compile_options){.message = hear, .user = &h});
    assert_non_null(strstr(line_with(&h, "run once with it"), "source, encoder.forward"));
    cpl_program_free(p);
}

/* ---- plans ---- */

static void tagger(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *words = cpl_input(g, "words", CPL_ID("words", 20), "batch s");
    cpl_node *x = cpl_embedding(g, "embedding", words, &(cpl_embedding_options){.size = 20, .units = 8});
    x = cpl_bidirectional(g, "rnn", x, &(cpl_bidirectional_options){.units = 8}).y;
    cpl_loss_result r = cpl_masked_cross_entropy(
        g, cpl_dense(g, "output", x, &(cpl_dense_options){.units = 20, .dim = "vocab"}), words);
    cpl_output(g, "loss", r.loss);
    cpl_minimize(g, r.loss);
}

static void step(cpl_program *p, int64_t batch, int64_t length)
{
    static const int32_t words[] = {4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int32_t *rows[] = {words, words + 1};
    const int64_t lengths[] = {length, length};
    MUST(cpl_feed_ids(p, "words", rows, lengths, batch, err));
    run(p, CPL_TRAIN);
}

/* Case J01: ten lengths 2 … 11 with batch 2, the same in another order, then batch 1: one trace; each new plan is told
 * with its reason; the second time and for a smaller batch there is none, and not a byte more is held. */
static void case_J01_new_lengths_never_trace_again(void **state)
{
    (void)state;
    static const int64_t order[] = {7, 2, 11, 5, 9, 3, 10, 4, 8, 6};
    heard h = {0};
    cpl_program *p = compiled(tagger, NULL, &(cpl_compile_options){.name = "tagger", .message = hear, .user = &h});
    for (int64_t length = 2; length <= 11; length++)
        step(p, 2, length);
    int64_t plans = cpl_plans(p);
    uint64_t held = cpl_memory_live_bytes();
    assert_true(plans >= 1 && plans <= 10);
    assert_int_equal(heard_with(&h, "memory plan "), plans);
    assert_non_null(strstr(h.line[0], "memory plan 1 of 'tagger', training: batch=2 s=2 (4 in all) is the first that "
                                      "comes; "));
    assert_non_null(strstr(h.line[0], "traces: 1"));
    assert_non_null(strstr(h.line[1], "batch=2 s=3 (6 in all) is larger than any plan before; "));
    for (int i = 0; i < 10; i++)
        step(p, 2, order[i]);
    for (int i = 0; i < 10; i++)
        step(p, 1, order[i]);
    assert_int_equal(cpl_traces(p), 1);
    assert_int_equal(cpl_plans(p), plans);
    assert_int_equal(heard_with(&h, "memory plan "), plans);
    assert_int_equal(cpl_memory_live_bytes(), held);
    cpl_program_free(p);
}

/* Planned for the longest, a length that was never seen costs what a seen one does: no plan, no allocation. */
static void case_J01_first_seen_lengths_allocate_nothing(void **state)
{
    (void)state;
    cpl_program *p = compiled(tagger, NULL, NULL);
    cpl_binding capacity = {.batch = 2};
    int s = cpl_program_symbol(p, "s");
    capacity.rows[s] = 22, capacity.longest[s] = 11;
    MUST(cpl_program_reserve(p, CPL_TRAIN, &capacity, err));
    MUST(cpl_program_reserve_inputs(p, &capacity, err));
    step(p, 2, 2);
    uint64_t allocations = cpl_memory_allocations();
    for (int64_t length = 3; length <= 11; length++)
        step(p, 2, length);
    assert_int_equal(cpl_memory_allocations(), allocations);
    assert_int_equal(cpl_traces(p), 1);
    assert_int_equal(cpl_plans(p), 1);
    cpl_program_free(p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(case_J01_first_seen_lengths_allocate_nothing),
    cmocka_unit_test(case_A11_prints_once_for_each_run),
    cmocka_unit_test(summary_of_numbers_that_are_not_finite),
    cmocka_unit_test(gradients_go_through),
    cmocka_unit_test(once_for_each_step_of_a_loop),
    cmocka_unit_test(what_left_a_loop),
    cmocka_unit_test(case_J01_new_lengths_never_trace_again),
};

CPL_TEST_MAIN(tests)
