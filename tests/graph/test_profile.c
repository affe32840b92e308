/* A profile counts what the schedule says, leaves every bit as it is, and nests in the trace. */
#include "graph/translator_test.h"

#include "base/clock.h"
#include "graph/profile.h"

enum { RUNS = 3, LONGEST = 6, ROOM = 20000 };

static translator open_kind(int in_loop)
{
    translator t = translator_open("16", "0.1");
    if (in_loop)
        MUST(cpl_config_set(t.config, "model.decoder.attention.position", "before", err));
    return t;
}

static cpl_program *compile(const translator *t, int threads)
{
    return compiled(cpl_translator.loss, &t->sizes, &(cpl_compile_options){.seed = 3, .threads = threads});
}

/* How often a call runs in a training run whose longest target has `steps` words: a loop's calls in each of its steps,
 * but carried states of a loop that goes back once more, at its beginning. */
static int64_t times_of(const cpl_call *c, int64_t steps)
{
    if (c->dead)
        return 0;
    if (!c->loop)
        return 1;
    return steps + (c->reverse && (c->op->flags & CPL_OP_CARRY));
}

static void count_calls(int in_loop)
{
    translator t = open_kind(in_loop);
    cpl_program *p = compile(&t, 2);
    const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
    cpl_profile *f;
    double flops = 0, want = 0, dense[2] = {0, 0}; /* of dense layers, forward and backward */
    int64_t calls = 0, sides = 0, in_loops = 0;
    MUST(cpl_profile_new(&f, p, NULL, err));
    for (int i = 0; i < RUNS; i++) {
        translator_feed(p, 5, LONGEST + 1, (uint32_t)i); /* its longest target has LONGEST */
        run(p, CPL_TRAIN);
        want += cpl_program_flops(p, CPL_TRAIN, &p->binding);
    }
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_profile_row *row = cpl_profile_row_at(f, CPL_TRAIN, i);
        if (row->meter.count != RUNS * times_of(&g->calls[i], LONGEST))
            fail_msg("'%s' %s ran %lld times", g->calls[i].path, g->calls[i].op->name, (long long)row->meter.count);
        assert_true(row->meter.ns >= 0 && row->meter.helped >= 0 && row->meter.waited >= 0);
        assert_true(row->meter.waited <= row->meter.ns);
        calls += row->meter.ns;
        flops += row->flops;
        if (strcmp(g->calls[i].op->name, "linear") == 0)
            dense[g->calls[i].backward] += row->flops;
        in_loops += g->calls[i].loop != 0 && !g->calls[i].dead;
    }
    assert_true((in_loops > 0) == in_loop);
    assert_true(fabs(flops - want) <= 1e-9 * want && want > 0);
    /* One product for the input and one for the weights, together or, behind a loop, in two calls. */
    assert_true(dense[0] > 0 && fabs(dense[1] - 2 * dense[0]) <= 1e-9 * dense[1]);
    for (int backward = 0; backward < 2; backward++) {
        assert_int_equal(cpl_profile_side(f, CPL_TRAIN, backward)->count, RUNS);
        sides += cpl_profile_side(f, CPL_TRAIN, backward)->ns;
    }
    assert_true(calls > 0 && calls <= sides);
    assert_null(cpl_profile_row_at(f, CPL_TRAIN, g->call_count));
    assert_int_equal(cpl_profile_side(f, CPL_EVALUATE, 0)->count, 0);
    cpl_profile_free(f);
    assert_null(p->profile);
    run(p, CPL_TRAIN);
    cpl_program_free(p);
    translator_close(&t);
}

static void every_call_of_the_schedule_is_counted(void **state)
{
    (void)state;
    count_calls(0);
}

static void calls_in_loops_are_counted_by_steps(void **state)
{
    (void)state;
    count_calls(1);
}

/* A frozen layer's gradient has the product for its input alone; one that reads data, that for its weights alone. */
static void two_layers(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(3), "batch in");
    x = cpl_dense(g, "first", x, &(cpl_dense_options){.units = 5});
    x = cpl_dense(g, "second", x, &(cpl_dense_options){.units = 7});
    cpl_minimize(g, cpl_sum(g, x));
}

static void gradients_are_counted_by_what_they_compute(void **state)
{
    (void)state;
    cpl_program *p = compiled(two_layers, NULL, NULL);
    cpl_binding four = {.batch = 4};
    double first = 2.0 * 4 * 3 * 5, second = 2.0 * 4 * 5 * 7;
    assert_true(cpl_program_flops(p, CPL_EVALUATE, &four) == first + second);
    assert_true(cpl_program_flops(p, CPL_TRAIN, &four) == (first + second) + first + 2 * second);
    cpl_program_free(p);
    const char *const frozen[] = {"second"};
    p = compiled(two_layers, NULL, &(cpl_compile_options){.freeze = frozen, .freeze_count = 1});
    assert_true(cpl_program_flops(p, CPL_TRAIN, &four) == (first + second) + first + second);
    cpl_program_free(p);
}

static void evaluation_has_rows_of_its_own(void **state)
{
    (void)state;
    translator t = open_kind(0);
    cpl_program *p = compile(&t, 1);
    cpl_profile *f;
    MUST(cpl_profile_new(&f, p, NULL, err));
    translator_feed(p, 4, 5, 1);
    run(p, CPL_EVALUATE);
    const cpl_graph *g = p->schedule[CPL_EVALUATE].graph;
    for (size_t i = 0; i < g->call_count; i++)
        assert_int_equal(cpl_profile_row_at(f, CPL_EVALUATE, i)->meter.count, !g->calls[i].dead);
    assert_int_equal(cpl_profile_side(f, CPL_EVALUATE, 0)->count, 1);
    assert_int_equal(cpl_profile_side(f, CPL_EVALUATE, 1)->count, 0);
    assert_int_equal(cpl_profile_side(f, CPL_TRAIN, 0)->count, 0);
    cpl_profile_free(f);
    cpl_program_free(p);
    translator_close(&t);
}

/* The same program with and without a profile, in one thread and three. */
static void bits_stay_the_same(void **state)
{
    (void)state;
    for (int in_loop = 0; in_loop < 2; in_loop++) {
        translator t = open_kind(in_loop);
        cpl_program *plain = compile(&t, 1), *measured = compile(&t, 3);
        cpl_trace *trace;
        cpl_profile *f;
        MUST(cpl_trace_new(&trace, ROOM, err));
        MUST(cpl_profile_new(&f, measured, trace, err));
        cpl_profile_set_tracing(f, 1);
        for (uint32_t i = 0; i < 2; i++) {
            translator_feed(plain, 9, 8, i);
            translator_feed(measured, 9, 8, i);
            run(plain, CPL_TRAIN);
            run(measured, CPL_TRAIN);
            assert_true(cpl_scalar(plain, "loss") == cpl_scalar(measured, "loss"));
        }
        assert_memory_equal(plain->gradients, measured->gradients,
                            cpl_parameters_gradient_bytes(plain->engine->parameters));
        cpl_profile_free(f);
        cpl_trace_free(trace);
        cpl_program_free(plain);
        cpl_program_free(measured);
        translator_close(&t);
    }
}

static void the_schedule_must_not_change(void **state)
{
    (void)state;
    translator t = open_kind(0);
    cpl_program *p = compile(&t, 1);
    cpl_profile *f;
    translator_feed(p, 4, 5, 1);
    run(p, CPL_TRAIN);
    cpl_binding capacity = p->binding;
    MUST(cpl_profile_new(&f, p, NULL, err));
    REFUSED(cpl_program_recompute(p, CPL_RECOMPUTE_ALL, &capacity, err), "cannot change while a profile");
    run(p, CPL_TRAIN);
    cpl_profile_free(f);
    MUST(cpl_program_recompute(p, CPL_RECOMPUTE_ALL, &capacity, err));
    cpl_program_free(p);
    translator_close(&t);
}

/* Calls that run again for the backward pass belong to it. */
static void recomputed_calls_are_time_of_the_backward_pass(void **state)
{
    (void)state;
    translator t = open_kind(0);
    cpl_program *p = compile(&t, 1);
    cpl_profile *f;
    int64_t again = 0, backward = 0, forward = 0;
    translator_feed(p, 4, 5, 1);
    run(p, CPL_TRAIN);
    cpl_binding capacity = p->binding;
    MUST(cpl_program_recompute(p, CPL_RECOMPUTE_ALL, &capacity, err));
    MUST(cpl_profile_new(&f, p, NULL, err));
    run(p, CPL_TRAIN);
    const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_meter *m = &cpl_profile_row_at(f, CPL_TRAIN, i)->meter;
        const char *pass = cpl_profile_pass(f, CPL_TRAIN, i);
        again += strcmp(pass, "again") == 0 ? m->count : 0;
        forward += strcmp(pass, "forward") == 0 ? m->ns : 0;
        backward += strcmp(pass, "forward") != 0 ? m->ns : 0;
    }
    assert_true(again > 0);
    assert_true(forward <= cpl_profile_side(f, CPL_TRAIN, 0)->ns);
    assert_true(backward <= cpl_profile_side(f, CPL_TRAIN, 1)->ns);
    cpl_profile_free(f);
    cpl_program_free(p);
    translator_close(&t);
}

static void no_memory_leaves_the_program_as_it_was(void **state)
{
    (void)state;
    translator t = open_kind(0);
    cpl_program *p = compile(&t, 2);
    translator_feed(p, 4, 5, 1);
    for (uint64_t i = 1; i <= 4; i++) {
        cpl_profile *f;
        cpl_error err = CPL_ERROR_INIT;
        uint64_t held = cpl_memory_live_bytes();
        cpl_memory_fail_at(i);
        assert_int_equal(cpl_profile_new(&f, p, NULL, &err), CPL_FAILED);
        cpl_memory_fail_at(0);
        assert_null(f);
        assert_null(p->profile);
        assert_true(cpl_memory_live_bytes() == held);
        run(p, CPL_TRAIN);
    }
    cpl_program_free(p);
    translator_close(&t);
}

static void measuring_takes_no_memory_while_it_runs(void **state)
{
    (void)state;
    translator t = open_kind(1);
    cpl_program *p = compile(&t, 2);
    cpl_trace *trace;
    cpl_profile *f;
    translator_feed(p, 5, 7, 1);
    run(p, CPL_TRAIN);
    MUST(cpl_trace_new(&trace, 50, err));
    uint64_t held = cpl_memory_live_bytes();
    MUST(cpl_profile_new(&f, p, trace, err));
    assert_true(cpl_memory_live_bytes() - held >= cpl_profile_bytes(p));
    assert_true(cpl_memory_live_bytes() - held <= cpl_profile_bytes(p) + 1024); /* allocators round up */
    cpl_profile_set_tracing(f, 1);
    translator_feed(p, 5, 7, 1);
    uint64_t before = cpl_memory_allocations();
    run(p, CPL_TRAIN);
    assert_int_equal(cpl_memory_allocations(), before);
    cpl_profile_free(f);
    cpl_trace_free(trace);
    cpl_program_free(p);
    translator_close(&t);
}

/* A caller that waited half of the time, and two others that computed a part of it. */
static void busy_is_a_share_of_all_threads(void **state)
{
    (void)state;
    cpl_meter m = {.ns = 1000, .waited = 500, .helped = 1250};
    assert_true(fabs(cpl_meter_busy(&m, 3) - 1750.0 / 3000) < 1e-12);
    m = (cpl_meter){.ns = 1000};
    assert_true(fabs(cpl_meter_busy(&m, 4) - 0.25) < 1e-12);
    assert_true(isnan(cpl_meter_busy(&(cpl_meter){0}, 2)));
    cpl_meter sum = {0}, begun = {.ns = 10, .helped = 5, .waited = 1}, ended = {.ns = 30, .helped = 15, .waited = 4};
    cpl_meter_add(&sum, &begun, &ended);
    cpl_meter_add(&sum, &begun, &ended);
    assert_true(sum.count == 2 && sum.ns == 40 && sum.helped == 20 && sum.waited == 6);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_call_of_the_schedule_is_counted),
    cmocka_unit_test(calls_in_loops_are_counted_by_steps),
    cmocka_unit_test(gradients_are_counted_by_what_they_compute),
    cmocka_unit_test(evaluation_has_rows_of_its_own),
    cmocka_unit_test(bits_stay_the_same),
    cmocka_unit_test(the_schedule_must_not_change),
    cmocka_unit_test(recomputed_calls_are_time_of_the_backward_pass),
    cmocka_unit_test(no_memory_leaves_the_program_as_it_was),
    cmocka_unit_test(measuring_takes_no_memory_while_it_runs),
    cmocka_unit_test(busy_is_a_share_of_all_threads),
};

CPL_TEST_MAIN(tests)
