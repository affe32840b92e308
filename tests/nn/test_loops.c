/* Loops: a cell written as a loop is the whole-sequence layer; what need not run inside does not. */
#include "support/run.h"

#include <math.h>
#include <string.h>
#include "graph/program.h"
#include "support/golden.h"
#include "support/loop_model.h"

/* ---- golden lstm_mask through a loop: outputs, states, gradients ---- */

static void lstm_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    (void)user;
    cpl_node *h = cpl_loop_state(loop, "h"), *c = cpl_loop_state(loop, "c");
    cpl_lstm_step(g, "rnn", cpl_loop_slice(loop, "x"), &h, &c, 8);
    cpl_loop_next(loop, "h", h);
    cpl_loop_next(loop, "c", c);
    cpl_loop_emit(loop, "y", h);
}

static cpl_node *project(cpl_graph *g, cpl_node *total, cpl_node *x, const char *proj, const char *shape)
{
    cpl_node *term = cpl_sum(g, cpl_multiply(g, x, cpl_input(g, proj, CPL_REALS(8), shape)));
    return total ? cpl_add(g, total, term) : term;
}

static void lstm_loop(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(6), "batch padded in");
    cpl_node *h0 = cpl_input(g, "state0", CPL_REALS(8), "batch units");
    cpl_node *c0 = cpl_input(g, "state1", CPL_REALS(8), "batch units");
    cpl_watch(g, "grad.x", x);
    cpl_watch(g, "grad.state0", h0);
    cpl_watch(g, "grad.state1", c0);
    cpl_scan_options o = {.name = "loop", .time = "s", .inputs = {{"x", cpl_pack(g, x, "s"), 0}},
                          .states = {{"h", h0, 0}, {"c", c0, 0}}};
    cpl_loop *loop = cpl_scan(g, &o, lstm_body, NULL);
    cpl_node *y = cpl_unpack(g, cpl_loop_output(loop, "y"), 1);
    cpl_node *h = cpl_loop_final(loop, "h"), *c = cpl_loop_final(loop, "c");
    cpl_output(g, "y", y);
    cpl_output(g, "h", h);
    cpl_output(g, "c", c);
    cpl_node *total = project(g, NULL, y, "proj.y", "batch padded units");
    total = project(g, total, h, "proj.h", "batch units");
    cpl_minimize(g, project(g, total, c, "proj.c", "batch units"));
}

static void check_watch(const golden *g, cpl_program *p, const char *name)
{
    const cpl_tensor_entry *t = golden_find(g, name);
    double largest = 0;
    for (int64_t i = 0; i < (int64_t)cpl_tensor_elements(t); i++)
        largest = fmax(largest, fabs(golden_at(t, i)));
    golden_check_output(g, p, name, name, 2e-4 * largest, NULL);
}

static void lstm_mask_through_a_loop(void **state)
{
    (void)state;
    golden g = golden_open("lstm_mask");
    cpl_program *p;
    static const char *const names[][2] = {{"rnn.kernel", "lstm/lstm_cell/kernel"},
                                           {"rnn.recurrent_kernel", "lstm/lstm_cell/recurrent_kernel"},
                                           {"rnn.bias", "lstm/lstm_cell/bias"}};
    char name[80];
    MUST(cpl_compile(&p, lstm_loop, NULL, &(cpl_compile_options){.name = "lstm_loop"}, err));
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "w.%s", names[i][1]);
        golden_set(&g, p, names[i][0], name);
    }
    for (int mode = CPL_EVALUATE; mode <= CPL_TRAIN; mode++) {
        golden_feed(&g, p, "x", "in.x");
        golden_feed_mask(&g, p, "s", "in.mask");
        golden_feed(&g, p, "state0", "in.state0");
        golden_feed(&g, p, "state1", "in.state1");
        golden_feed(&g, p, "proj.y", "proj.y");
        golden_feed(&g, p, "proj.h", "proj.h");
        golden_feed(&g, p, "proj.c", "proj.c");
        MUST(cpl_run(p, (cpl_mode)mode, err));
        golden_check_output(&g, p, "y", "out.y", 2e-5, NULL);
        golden_check_output(&g, p, "h", "out.h", 2e-5, NULL);
        golden_check_output(&g, p, "c", "out.c", 2e-5, NULL);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "grad.w.%s", names[i][1]);
        golden_check_gradient(&g, p, names[i][0], name, 0);
    }
    check_watch(&g, p, "grad.x");
    check_watch(&g, p, "grad.state0");
    check_watch(&g, p, "grad.state1");
    cpl_program_free(p);
    golden_close(&g);
}

/* ---- attention inside a loop, an encoder inside too ---- */

static cpl_program *compiled_reader(int kind, int no_passes, int threads)
{
    cpl_program *p;
    cpl_compile_options o = {.name = "reader", .seed = 7, .no_passes = no_passes, .threads = threads};
    MUST(cpl_compile(&p, reader_model, &kind, &o, err));
    return p;
}

static void compare(cpl_program *a, cpl_program *b, double tolerance)
{
    a->step = b->step = 3; /* the same masks */
    MUST(run_reader(a, err));
    MUST(run_reader(b, err));
    assert_true(fabs(cpl_scalar(a, "loss") - cpl_scalar(b, "loss")) <= tolerance);
    assert_int_equal(cpl_parameter_count(a), cpl_parameter_count(b));
    for (size_t i = 0; i < cpl_parameter_count(a); i++) {
        int64_t j = cpl_parameter_find(b, cpl_parameter_path(a, i)), shape[3], n = 1;
        int rank = cpl_parameter_shape(a, i, shape);
        for (int k = 0; k < rank; k++)
            n *= shape[k];
        const float *x = cpl_parameter_gradient(a, i), *y = cpl_parameter_gradient(b, (size_t)j);
        for (int64_t k = 0; k < n; k++)
            assert_true(fabs((double)x[k] - (double)y[k]) <= tolerance);
    }
}

/* Case B01: the encoder stands in the loop and runs once, at the same cost. */
static void case_B01_encoder_inside_the_loop(void **state)
{
    (void)state;
    cpl_program *outside = compiled_reader(0, 0, 1), *inside = compiled_reader(READER_INSIDE, 0, 1);
    compare(outside, inside, 0);
    size_t a, b;
    cpl_binding capacity = outside->last_plan.capacity;
    MUST(cpl_program_block_bytes(outside, CPL_TRAIN, &capacity, &a, err));
    MUST(cpl_program_block_bytes(inside, CPL_TRAIN, &capacity, &b, err));
    assert_int_equal(a, b);
    const cpl_graph *g = inside->schedule[CPL_TRAIN].graph;
    for (size_t i = 0; i < g->call_count; i++)
        if (!g->calls[i].dead && (!strcmp(g->calls[i].op->name, "gru") || !strcmp(g->calls[i].op->name, "embedding")))
            assert_int_equal(g->calls[i].loop, 0);
    assert_true(g->loops[0].inside > 0 && g->loops[0].outside >= 6);
    cpl_program_free(outside);
    cpl_program_free(inside);
}

static void passes_and_threads_change_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < READERS; kind++) {
        cpl_program *plain = compiled_reader(kind, 1, 1), *one = compiled_reader(kind, 0, 1);
        cpl_program *three = compiled_reader(kind, 0, 3);
        compare(plain, one, 2e-6);
        compare(one, three, 0);
        cpl_program_free(plain);
        cpl_program_free(one);
        cpl_program_free(three);
    }
}

/* A step computes its dq alone; the keys' exponentials, dk, dv and dm are made once, outside. */
static void additive_steps_do_only_their_own(void **state)
{
    (void)state;
    cpl_program *p = compiled_reader(READER_ADDITIVE, 0, 1);
    const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
    int prepared = 0, forward = 0, step = 0, deferred = 0;
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        int attends = !c->dead && strcmp(c->op->name, "additive_attention") == 0;
        prepared += !c->dead && strcmp(c->op->name, "additive_exponentials") == 0 && c->loop == 0;
        forward += attends && !c->backward && c->loop && c->in[5] >= 0;
        step += attends && c->backward && c->loop && c->din[0] >= 0 && c->din[1] < 0 && c->din[2] < 0 && c->din[4] < 0;
        deferred += attends && c->backward && !c->loop && c->din[0] < 0 && c->din[1] >= 0 && c->din[4] >= 0;
    }
    assert_true(prepared == 1 && forward == 1 && step == 1 && deferred == 1);
    cpl_program_free(p);
}

/* ---- mistakes ---- */

static void dropped_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    (void)user;
    cpl_node *h = cpl_loop_state(loop, "h"), *x = cpl_loop_slice(loop, "x");
    cpl_loop_emit(loop, "y", cpl_dense(g, "out", cpl_concat(g, h, x), &(cpl_dense_options){.units = 3}));
}

static void wide_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    (void)user;
    cpl_node *h = cpl_loop_state(loop, "h"), *x = cpl_loop_slice(loop, "x");
    cpl_loop_next(loop, "h", cpl_concat(g, h, x));
}

static void across_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    (void)user;
    cpl_node *h = cpl_add(g, cpl_loop_state(loop, "h"), cpl_loop_slice(loop, "x"));
    cpl_loop_next(loop, "h", cpl_rnn(g, "inner", h, &(cpl_rnn_options){.units = 3}).y);
    cpl_loop_emit(loop, "y", h);
}

static void small_loop(cpl_graph *g, const void *user)
{
    cpl_loop_body body = *(const cpl_loop_body *)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(3), "batch t units");
    cpl_scan_options o = {.name = "decoder.cell", .time = "t", .inputs = {{"x", x, 0}}, .states = {{"h", NULL, 3}}};
    cpl_loop *loop = cpl_scan(g, &o, body, NULL);
    cpl_output(g, "y", cpl_loop_output(loop, "y"));
}

static char heard[1000];

static void hear(void *user, int level, const char *text)
{
    (void)user;
    if (level == 1)
        snprintf(heard, sizeof heard, "%s", text);
}

static cpl_status compile_small(cpl_loop_body body, cpl_error *err)
{
    cpl_program *p = NULL;
    heard[0] = 0;
    cpl_compile_options o = {.name = "model", .message = hear};
    cpl_status status = cpl_compile(&p, small_loop, &body, &o, err);
    cpl_program_free(p);
    return status;
}

static void case_D10_new_state_that_nothing_reads(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(compile_small(dropped_body, &err), CPL_OK);
    assert_string_equal(heard, "new state of 'decoder.cell' is not used: every step starts from the same 'h'");
}

static void case_A04_state_that_changes_its_shape(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(compile_small(wide_body, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "state 'h' enters a step as [batch t units=3] and leaves it as [batch t "));
    assert_non_null(strstr(err.line[0], "=6]"));
}

static void no_op_looks_across_the_steps(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(compile_small(across_body, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "'inner' (gru) looks across the steps of 't'"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lstm_mask_through_a_loop),
        cmocka_unit_test(case_B01_encoder_inside_the_loop), cmocka_unit_test(passes_and_threads_change_nothing),
        cmocka_unit_test(additive_steps_do_only_their_own),
        cmocka_unit_test(case_D10_new_state_that_nothing_reads),
        cmocka_unit_test(case_A04_state_that_changes_its_shape),
        cmocka_unit_test(no_op_looks_across_the_steps),
    };
    if (argc > 1 && !cpl_test_choose(tests, sizeof tests / sizeof tests[0], argv[1]))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
