/* Loops in the steps of loops: equal to two loops in C, sentence by sentence; mistakes are named. */
#include "support/run.h"

#include <math.h>
#include <string.h>
#include "graph/program.h"
#include "support/golden.h"
#include "support/nest_model.h"

/* ---- as loops in C, for one sentence ---- */

typedef struct unrolled {
    int kind, source, target; /* NEST_…; lengths */
} unrolled;

static cpl_node *inner_loop(cpl_graph *g, const char *name, int n, cpl_node *const *source, cpl_node *query,
                            cpl_node *h, cpl_node **y)
{
    cpl_node *c = cpl_zeros(g, query, UNITS);
    for (int j = 0; j < n; j++) {
        inner_step(g, name, source[j], query, &h, &c);
        y[j] = h;
    }
    return h;
}

static void unrolled_model(cpl_graph *g, const void *user)
{
    const unrolled *u = user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", WORDS), "batch s");
    cpl_node *token = cpl_input(g, "token", CPL_ID("target", WORDS), "batch t");
    cpl_node *last, *memory = encode(g, source, &last), *h = last, *at[LONGEST], *y[LONGEST], *z[LONGEST];
    for (int j = 0; j < u->source; j++)
        at[j] = cpl_take(g, memory, j);
    for (int k = 0; k < u->target; k++) {
        char name[20];
        cpl_node *x = word(g, "target", cpl_take(g, token, k)), *query = query_of(u->kind, x, h);
        cpl_node *zero = cpl_zeros(g, query, UNITS);
        cpl_node *begin = u->kind == NEST_STATE ? h : u->kind == NEST_GIVEN ? last : zero;
        cpl_node *found = inner_loop(g, "inner", u->source, at, query, begin, y);
        if (u->kind == NEST_TWO)
            found = inner_loop(g, "again", u->source, y, query, zero, z);
        snprintf(name, sizeof name, "logits.%d", k);
        cpl_output(g, name, outer_step(g, u->kind, x, found, &h));
    }
}

static cpl_program *compiled(int kind, int no_passes, int threads)
{
    cpl_program *p;
    cpl_compile_options o = {.name = "nest", .seed = 3, .no_passes = no_passes, .threads = threads};
    MUST(cpl_compile(&p, nest_model, &kind, &o, err));
    return p;
}

static void check_sentence(cpl_program *p, int kind, int i, const float *logits, const int64_t *shape)
{
    unrolled u = {kind, (int)source_length[i], (int)target_length[i]};
    const int32_t *row = nest_ids + i;
    cpl_program *one;
    MUST(cpl_compile(&one, unrolled_model, &u, &(cpl_compile_options){.name = "unrolled", .share = p}, err));
    MUST(cpl_feed_ids(one, "source", &row, &source_length[i], 1, err));
    MUST(cpl_feed_ids(one, "token", &row, &target_length[i], 1, err));
    MUST(cpl_run(one, CPL_EVALUATE, err));
    for (int k = 0; k < u.target; k++) {
        char name[20];
        float want[WORDS];
        int64_t got[6];
        int rank;
        snprintf(name, sizeof name, "logits.%d", k);
        MUST(cpl_read(one, name, want, WORDS, got, &rank, err));
        for (int j = 0; j < WORDS; j++)
            assert_true(fabsf(want[j] - logits[(i * shape[1] + k) * WORDS + j]) <= 1e-6f);
    }
    cpl_program_free(one);
}

static void nests_are_two_loops_in_c(void **state)
{
    (void)state;
    for (int kind = 0; kind < NESTS; kind++) {
        cpl_program *p = compiled(kind, 0, 1);
        float logits[BATCH * LONGEST * WORDS];
        int64_t shape[6];
        int rank;
        MUST(run_nest_model(p, CPL_EVALUATE, err));
        MUST(cpl_read(p, "logits", logits, sizeof logits / sizeof *logits, shape, &rank, err));
        for (int i = 0; i < BATCH; i++)
            if (source_length[i] > 0 && target_length[i] > 0)
                check_sentence(p, kind, i, logits, shape);
        cpl_program_free(p);
    }
}

/* Which loops share a run of the outer loop's steps, and what is left outside both. */
static void what_runs_where(void **state)
{
    (void)state;
    for (int kind = 0; kind < NESTS; kind++) {
        cpl_program *p = compiled(kind, 0, 1);
        const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
        int nested = 0, products = 0;
        for (size_t i = 0; i < g->call_count; i++) {
            const cpl_call *c = &g->calls[i];
            nested += !c->dead && !c->backward && !strcmp(c->op->name, "nest_last") && c->loop == 1;
            products += !c->dead && c->backward && !strcmp(c->op->name, "linear") && c->loop && c->din[1] >= 0;
        }
        int depends = kind != NEST_AFTER && kind != NEST_BEFORE;
        assert_int_equal(nested, depends);
        assert_int_equal(products, 0); /* gradients of weights are made once, for all steps of both */
        cpl_program_free(p);
    }
}

static void passes_and_threads_change_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < NESTS; kind++) {
        cpl_program *p[3] = {compiled(kind, 1, 1), compiled(kind, 0, 1), compiled(kind, 0, 3)};
        for (int k = 0; k < 3; k++)
            MUST(run_nest_model(p[k], CPL_TRAIN, err));
        assert_true(fabs(cpl_scalar(p[0], "loss") - cpl_scalar(p[1], "loss")) < 2e-6);
        assert_true(cpl_scalar(p[1], "loss") == cpl_scalar(p[2], "loss"));
        for (int k = 0; k < 3; k++)
            cpl_program_free(p[k]);
    }
}

/* ---- mistakes ---- */

static void same_time_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    (void)user;
    cpl_node *h = cpl_loop_state(loop, "h");
    cpl_scan_options o = {.name = "within", .time = "t", .inputs = {{"x", cpl_loop_slice(loop, "x"), 0}},
                          .states = {{"h", h, 0}}};
    cpl_scan(g, &o, inner_body, "within");
}

static void sum_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    (void)user;
    cpl_node *h = cpl_add(g, cpl_loop_state(loop, "h"), cpl_loop_slice(loop, "x"));
    cpl_loop_next(loop, "h", h);
    cpl_loop_emit(loop, "y", h);
}

static void captured_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    cpl_node *h = cpl_add(g, cpl_loop_state(loop, "h"), *(cpl_node *const *)user);
    cpl_loop_next(loop, "h", h);
}

static void deep_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    cpl_scan_options o = {.name = "third", .time = *(const char *const *)user,
                          .inputs = {{"x", cpl_loop_slice(loop, "x"), 0}}, .states = {{"h", NULL, UNITS}}};
    cpl_loop_next(loop, "h", cpl_loop_final(cpl_scan(g, &o, sum_body, NULL), "h"));
}

enum { SAME_TIME, CAPTURED, DROPPED_OUT, READ, DEEP, TOGETHER };

static void wrong_body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    int kind = **(const int *const *)user;
    cpl_node *const source = ((cpl_node *const *)user)[1], *h = cpl_loop_state(loop, "h");
    const char *t = "t";
    cpl_scan_options o = {.name = "within", .time = "s", .inputs = {{"x", source, 0}}, .states = {{"h", h, 0}}};
    if (kind == SAME_TIME) {
        same_time_body(g, loop, NULL);
        return;
    }
    if (kind == TOGETHER) { /* begins with nothing of a step, but reads the outer state and is read by it */
        o.time = "t", o.inputs[0].x = cpl_add(g, h, cpl_loop_slice(loop, "x"));
        o.states[0] = (cpl_loop_value){"h", NULL, UNITS};
        cpl_loop_next(loop, "h", cpl_loop_output(cpl_scan(g, &o, sum_body, NULL), "y"));
        return;
    }
    const void *inner_user = kind == CAPTURED ? (const void *)&h : &t;
    cpl_loop_body body = kind == CAPTURED ? captured_body : kind == DEEP ? deep_body : sum_body;
    cpl_loop *inner = cpl_scan(g, &o, body, inner_user);
    cpl_loop_next(loop, "h", cpl_loop_final(inner, "h"));
    if (kind == DROPPED_OUT)
        cpl_dropout(g, cpl_loop_output(inner, "y"), 0.5);
    if (kind == READ)
        cpl_output(g, "inner", cpl_loop_output(inner, "y"));
}

static void wrong_model(cpl_graph *g, const void *user)
{
    cpl_node *source = cpl_input(g, "source", CPL_REALS(UNITS), "batch s units");
    const void *given[2] = {user, source};
    cpl_node *x = cpl_input(g, "x", CPL_REALS(UNITS), "batch t units");
    cpl_scan_options o = {.name = "around", .time = "t", .inputs = {{"x", x, 0}}, .states = {{"h", NULL, UNITS}}};
    cpl_loop *loop = cpl_scan(g, &o, wrong_body, given);
    cpl_output(g, "source", cpl_mean_time(g, source));
    cpl_output(g, "h", cpl_loop_final(loop, "h"));
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const char *const want[][2] = {
        [SAME_TIME] = {"state 'h' begins as [batch t units=4], expected [batch units]", "another time word"},
        [CAPTURED] = {"gets a step of 's in t' together with a step of 't'", "hand it to the inner loop as an input"},
        [DROPPED_OUT] = {"(dropout) cannot work on steps of 's in t'", "final state"},
        [READ] = {"output 'inner' would have the steps of 's in t'", "read what the outer loop emits"},
        [DEEP] = {"'third' would run in each step of 'within', which runs in each step of 'around'", ""},
        [TOGETHER] = {"the loop 'within' over 't' and the loop 'around' over 't' depend on each other's states",
                      "begins"},
    };
    for (int kind = SAME_TIME; kind <= TOGETHER; kind++) {
        cpl_program *p = NULL;
        cpl_error err = CPL_ERROR_INIT;
        assert_int_equal(cpl_compile(&p, wrong_model, &kind, &(cpl_compile_options){.name = "model"}, &err), CPL_USAGE);
        if (!strstr(err.line[0], want[kind][0]) || !strstr(err.hint, want[kind][1]))
            fail_msg("mistake %d: %s / %s", kind, err.line[0], err.hint);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nests_are_two_loops_in_c), cmocka_unit_test(what_runs_where),
        cmocka_unit_test(passes_and_threads_change_nothing), cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
