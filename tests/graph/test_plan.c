/* The memory plan, checked by replaying the schedule on a map of who owns which line of the block. */
#include "graph/translator_test.h"

enum { LINE = 64, NOBODY = -1 };

typedef struct replay {
    const cpl_graph *g;
    const cpl_memory_plan *plan;
    int64_t *owner; /* of each line: value, or −2 − call for a workspace */
    size_t lines;
    size_t live; /* lower bound of any plan: the most bytes that calls need at once */
} replay;

static int in_block(const replay *r, int v)
{
    return v >= 0 && r->g->values[v].storage == CPL_STORE_BLOCK && r->g->values[v].input < 0;
}

static size_t lines_of(size_t bytes)
{
    return (bytes + LINE - 1) / LINE;
}

static size_t value_lines(const replay *r, int v)
{
    return lines_of(cpl_type_bytes(&r->g->values[v].type, &r->plan->capacity));
}

static void own(replay *r, size_t offset, size_t lines, int64_t who)
{
    assert_int_equal(offset % LINE, 0);
    assert_true(offset / LINE + lines <= r->lines);
    for (size_t i = 0; i < lines; i++)
        r->owner[offset / LINE + i] = who;
}

static void owned(const replay *r, int v, size_t call, const char *what)
{
    for (size_t i = 0; i < value_lines(r, v); i++)
        if (r->owner[r->plan->offset[v] / LINE + i] != v)
            fail_msg("call %zu (%s of %s): %s value %d lies under %d", call, r->g->calls[call].op->name,
                     r->g->calls[call].path, what, v, (int)r->owner[r->plan->offset[v] / LINE + i]);
}

/* The values that a call reads and writes. */
static int reads(const cpl_call *c, int *list)
{
    int n = 0;
    for (int k = 0; k < c->inputs; k++)
        if (cpl_call_reads_input(c, k))
            list[n++] = c->in[k];
    for (int k = 0; k < c->outputs; k++) {
        if (cpl_call_reads_output(c, k))
            list[n++] = c->out[k];
        if (c->backward && c->dout[k] >= 0)
            list[n++] = c->dout[k];
    }
    return n;
}

static int writes(const cpl_call *c, int *list)
{
    int n = 0;
    for (int k = 0; k < c->outputs; k++)
        if (cpl_call_writes_output(c, k))
            list[n++] = c->out[k];
    for (int k = 0; k < c->inputs && c->backward; k++)
        if (c->din[k] >= 0)
            list[n++] = c->din[k];
    return n;
}

static int needed_after(const replay *r, int v, size_t call)
{
    int list[32];
    for (size_t i = call + 1; i < r->g->call_count; i++)
        for (int n = r->g->calls[i].dead ? 0 : reads(&r->g->calls[i], list); n-- > 0;)
            if (list[n] == v)
                return 1;
    for (size_t i = 0; i < r->g->output_count; i++)
        if (r->g->outputs[i].value == v)
            return 1;
    return r->g->loss == v;
}

/* Bytes that exist while the call runs: what it touches, and what earlier calls made for later ones. */
static size_t live_bytes(const replay *r, size_t call, size_t workspace)
{
    size_t lines = workspace;
    int list[32];
    for (size_t v = 0; v < r->g->value_count; v++) {
        if (!in_block(r, (int)v))
            continue;
        int made = (int)v == r->g->seed, touched = 0;
        for (size_t i = 0; i <= call && !made; i++)
            for (int n = r->g->calls[i].dead ? 0 : writes(&r->g->calls[i], list); n-- > 0;)
                made |= list[n] == (int)v;
        for (int n = writes(&r->g->calls[call], list); n-- > 0;)
            touched |= list[n] == (int)v;
        for (int n = reads(&r->g->calls[call], list); n-- > 0;)
            touched |= list[n] == (int)v && !(r->g->calls[call].op->flags & CPL_OP_IN_PLACE);
        if (made && (touched || needed_after(r, (int)v, call)))
            lines += value_lines(r, (int)v);
    }
    return lines * LINE;
}

static void replay_call(replay *r, size_t i, int threads)
{
    const cpl_call *c = &r->g->calls[i];
    int in[32], out[32], inputs = reads(c, in), outputs = writes(c, out);
    cpl_size_context s;
    cpl_call_sizes(r->g, c, &r->plan->capacity, threads, &s);
    size_t workspace = c->op->workspace ? lines_of(c->op->workspace(&s)) : 0;
    for (int k = 0; k < inputs; k++)
        if (in_block(r, in[k]))
            owned(r, in[k], i, "input");
    if (workspace)
        own(r, r->plan->workspace[i], workspace, -2 - (int64_t)i);
    for (int k = 0; k < outputs; k++)
        if (in_block(r, out[k]))
            own(r, r->plan->offset[out[k]], value_lines(r, out[k]), out[k]);
    for (int k = 0; k < outputs; k++)
        if (in_block(r, out[k]))
            owned(r, out[k], i, "output");
    for (size_t k = 0; k < workspace; k++)
        assert_int_equal(r->owner[r->plan->workspace[i] / LINE + k], -2 - (int64_t)i);
    for (int k = 0; k < inputs; k++) {
        int in_place = in[k] == c->in[0] && !c->backward && (c->op->flags & CPL_OP_IN_PLACE) && in_block(r, in[k]) &&
                       r->plan->offset[in[k]] == r->plan->offset[c->out[0]] && !needed_after(r, in[k], i);
        if (in_block(r, in[k]) && !in_place)
            owned(r, in[k], i, "input, after the outputs were written,");
    }
    size_t live = live_bytes(r, i, workspace);
    r->live = live > r->live ? live : r->live;
}

static size_t replay_plan(const cpl_graph *g, const cpl_memory_plan *plan, int threads)
{
    replay r = {.g = g, .plan = plan, .lines = lines_of(plan->bytes)};
    size_t top = 0;
    r.owner = malloc((r.lines + 1) * sizeof *r.owner);
    assert_non_null(r.owner);
    for (size_t i = 0; i < r.lines; i++)
        r.owner[i] = NOBODY;
    if (g->seed >= 0)
        own(&r, plan->offset[g->seed], 1, g->seed);
    for (size_t i = 0; i < g->call_count; i++)
        if (!g->calls[i].dead)
            replay_call(&r, i, threads);
    for (size_t i = 0; i < g->output_count; i++)
        if (in_block(&r, g->outputs[i].value))
            owned(&r, g->outputs[i].value, g->call_count - 1, "the result");
    for (size_t i = 0; i < r.lines; i++)
        top = r.owner[i] != NOBODY ? i + 1 : top;
    assert_int_equal(top * LINE, plan->bytes); /* the peak is the highest line that is ever used */
    free(r.owner);
    return r.live;
}

static cpl_binding capacity_of(int64_t batch, int64_t longest)
{
    cpl_binding b = {.batch = batch};
    for (int i = 0; i < CPL_MAX_SYMBOLS; i++) {
        b.rows[i] = batch * longest, b.longest[i] = longest;
        for (int k = 0; k < CPL_MAX_SYMBOLS; k++)
            b.pairs[i][k] = batch * longest * longest;
    }
    return b;
}

static void check_plans(const char *units, const char *dropout, const char *cell)
{
    translator t = translator_open(units, dropout);
    MUST(cpl_config_set(t.config, "model.decoder.cell", cell, err));
    for (int plain = 0; plain < 2; plain++) {
        cpl_program *p = compiled(cpl_translator.loss, &t.sizes, &(cpl_compile_options){.no_passes = plain});
        for (int mode = 0; mode < CPL_MODES; mode++)
            for (int64_t batch = 1; batch <= 64; batch = batch * 5 + 3) {
                cpl_memory_plan plan;
                cpl_binding capacity = capacity_of(batch, 21);
                MUST(cpl_plan_make(&plan, p->schedule[mode].graph, &capacity, p->engine->threads, err));
                size_t bytes, live = replay_plan(p->schedule[mode].graph, &plan, p->engine->threads);
                MUST(cpl_program_block_bytes(p, (cpl_mode)mode, &capacity, &bytes, err));
                assert_true(plan.bytes >= live);
                assert_true((double)plan.bytes <= 1.25 * (double)live); /* no plan can be below `live` */
                assert_int_equal(plan.bytes, bytes);
                cpl_plan_free(&plan);
            }
        cpl_program_free(p);
    }
    translator_close(&t);
}

static void no_two_live_values_overlap(void **state)
{
    (void)state;
    check_plans("64", "0.1", "gru");
    check_plans("24", "0", "lstm");
}

/* One plan for the largest capacity holds all smaller batches, and where things lie changes no result. */
static void a_larger_plan_holds_smaller_batches(void **state)
{
    (void)state;
    translator t = translator_open("16", "0");
    cpl_program *p = compiled(cpl_translator.loss, &t.sizes, NULL), *q = compiled(cpl_translator.loss, &t.sizes, NULL);
    cpl_binding capacity = capacity_of(12, 20);
    MUST(cpl_program_reserve(p, CPL_TRAIN, &capacity, err));
    assert_int_equal(cpl_plans(p), 1);
    for (int64_t batch = 1; batch <= 12; batch += 3) {
        int64_t width = 2 + batch;
        translator_feed(p, batch, width, (uint32_t)batch);
        translator_feed(q, batch, width, (uint32_t)batch);
        run(p, CPL_TRAIN);
        run(q, CPL_TRAIN);
        assert_true(cpl_scalar(p, "loss") == cpl_scalar(q, "loss"));
        for (size_t i = 0; i < cpl_parameter_count(p); i++)
            assert_memory_equal(cpl_parameter_gradient(p, i), cpl_parameter_gradient(q, i),
                                (size_t)parameter_size(p, i) * sizeof(float));
    }
    assert_int_equal(cpl_plans(p), 1);
    assert_true(cpl_plans(q) > 1);
    translator_feed(p, 13, 5, 1); /* one sentence too many: one more plan, counted */
    run(p, CPL_TRAIN);
    assert_int_equal(cpl_plans(p), 2);
    cpl_program_free(p);
    cpl_program_free(q);
    translator_close(&t);
}

static void runs_allocate_nothing(void **state)
{
    (void)state;
    translator t = translator_open("16", "0.2");
    cpl_program *p = compiled(cpl_translator.loss, &t.sizes, NULL);
    for (int mode = 0; mode < CPL_MODES; mode++) {
        translator_feed(p, 8, 12, 1);
        run(p, (cpl_mode)mode);
        for (int64_t width = 12; width > 1; width -= 3) {
            translator_feed(p, width == 12 ? 8 : 5, width, 1);
            uint64_t before = cpl_memory_allocations();
            run(p, (cpl_mode)mode);
            assert_int_equal(cpl_memory_allocations(), before);
        }
    }
    cpl_program_free(p);
    translator_close(&t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_two_live_values_overlap),
    cmocka_unit_test(a_larger_plan_holds_smaller_batches),
    cmocka_unit_test(runs_allocate_nothing),
};

CPL_TEST_MAIN(tests)
