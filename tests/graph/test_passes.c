/* Each pass alone, all and none: the same results; and what each is for. */
#include "graph/translator_test.h"

static const int each[] = {0, CPL_PASS_DEAD, CPL_PASS_EQUAL, CPL_PASS_FUSE_ACTIVATION, CPL_PASS_FUSE_LOSS,
                           CPL_PASS_ALL};
enum { EACH = sizeof each / sizeof each[0] };

/* Replaces a mode's schedule by one with these passes. */
static void use_passes(cpl_program *p, cpl_mode mode, int passes)
{
    cpl_graph_free(p->schedule[mode].graph);
    cpl_graph *g = p->schedule[mode].graph = cpl_graph_copy(p->traced);
    assert_non_null(g);
    if (mode == CPL_EVALUATE) /* gradients have no place there */
        for (size_t i = 0; i < g->output_count; i++)
            assert_int_equal(g->outputs[i].gradient, 0);
    MUST(cpl_graph_optimize(g, passes, err));
    if (mode == CPL_TRAIN)
        MUST(cpl_graph_differentiate(g, err));
    MUST(cpl_graph_verify(g, "all", err));
}

static int count_calls(const cpl_program *p, cpl_mode mode, const char *op)
{
    const cpl_graph *g = p->schedule[mode].graph;
    int n = 0;
    for (size_t i = 0; i < g->call_count; i++)
        n += !g->calls[i].dead && !g->calls[i].backward && (!op || strcmp(g->calls[i].op->name, op) == 0);
    return n;
}

/* ---- results stay ---- */

static void same_results(const char *dropout)
{
    translator t = translator_open("24", dropout);
    double loss = 0;
    float *want = NULL;
    for (int k = 0; k < EACH; k++) {
        cpl_program *p = compiled(cpl_translator.loss, &t.sizes, NULL);
        use_passes(p, CPL_TRAIN, each[k]);
        translator_feed(p, 7, 11, 4);
        run(p, CPL_TRAIN);
        size_t bytes = cpl_parameters_bytes(p->engine->parameters), elements = bytes / sizeof(float);
        if (!want) {
            want = malloc(bytes);
            assert_non_null(want);
            memcpy(want, p->gradients, bytes);
            loss = cpl_scalar(p, "loss");
        }
        assert_true(fabs(cpl_scalar(p, "loss") - loss) < 1e-6);
        double largest = 0;
        for (size_t i = 0; i < elements; i++)
            largest = fmax(largest, fabs((double)want[i]));
        near(p->gradients, want, (int64_t)elements, 2e-6 * fmax(1, largest), "gradients");
        if (!(each[k] & CPL_PASS_FUSE_LOSS)) /* the fused loss adds in another order, the others in the same */
            assert_memory_equal(p->gradients, want, bytes);
        cpl_program_free(p);
    }
    free(want);
    translator_close(&t);
}

static void training_gives_the_same_with_each_pass(void **state)
{
    (void)state;
    same_results("0");
}

/* Random numbers go with the node, not with its place in the schedule. */
static void dropout_gives_the_same_with_each_pass(void **state)
{
    (void)state;
    same_results("0.3");
}

static void evaluation_gives_the_same_with_each_pass(void **state)
{
    (void)state;
    translator t = translator_open("24", "0");
    static float want[7 * 10 * (VOCABULARY - 20)], got[7 * 10 * (VOCABULARY - 20)];
    for (int k = 0; k < EACH; k++) {
        cpl_program *p = compiled(cpl_translator.score, &t.sizes, &(cpl_compile_options){.inference = 1});
        use_passes(p, CPL_EVALUATE, each[k]);
        translator_feed(p, 7, 11, 4);
        run(p, CPL_EVALUATE);
        int64_t n = read_reals(p, "logits", got, sizeof got / sizeof *got);
        assert_int_equal(n, 7 * 10 * (VOCABULARY - 20));
        if (k == 0)
            memcpy(want, got, sizeof want);
        assert_memory_equal(got, want, sizeof want);
        cpl_program_free(p);
    }
    translator_close(&t);
}

/* ---- what they are for ---- */

/* Reference A's mistake: the encoder is called again for every use. */
static void encoder_twice(cpl_graph *g, const void *user)
{
    const int *times = user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("words", 9), "batch s"), *sum = NULL;
    for (int i = 0; i < *times; i++) {
        cpl_enter(g, "encoder");
        cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = 9, .units = 5});
        x = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.units = 5}).h;
        cpl_leave(g);
        sum = sum ? cpl_add(g, sum, x) : x;
    }
    cpl_output(g, "sum", sum);
    cpl_minimize(g, cpl_sum(g, sum));
}

static void case_B01_encoder_called_twice_runs_once(void **state)
{
    (void)state;
    float y[2][15], gradient[2][45];
    for (int plain = 0; plain < 2; plain++) {
        cpl_program *p = compiled(encoder_twice, &(int){20}, &(cpl_compile_options){.no_passes = plain});
        assert_int_equal(count_calls(p, CPL_EVALUATE, "gru"), plain ? 20 : 1);
        assert_int_equal(count_calls(p, CPL_TRAIN, "gru"), plain ? 20 : 1);
        feed(p, "source", ids((int32_t[]){1, 2, 3, 4, 5, 6, 7, 8, 1}, 3, 3, NULL));
        run(p, CPL_TRAIN);
        read_reals(p, "sum", y[plain], 15);
        size_t table = parameter(p, "encoder.embedding.kernel");
        memcpy(gradient[plain], cpl_parameter_gradient(p, table), sizeof gradient[0]);
        cpl_program_free(p);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    near(gradient[0], gradient[1], 45, 1e-5, "gradient");
}

/* Memory of the encoder is that of one, however often it is called. */
static void case_B01_memory_of_one_encoder(void **state)
{
    (void)state;
    size_t bytes[2];
    for (int k = 0; k < 2; k++) {
        cpl_program *p = compiled(encoder_twice, &(int){k ? 20 : 2}, NULL);
        cpl_binding capacity = {.batch = 64, .rows = {0, 6400}, .longest = {0, 100}};
        MUST(cpl_program_block_bytes(p, CPL_TRAIN, &capacity, &bytes[k], err));
        cpl_program_free(p);
    }
    assert_true(bytes[1] - bytes[0] <= 64 * 5 * sizeof(float) * 20); /* sums of states [batch units] at most */
}

/* Random calls are never one: two dropouts of one value differ. */
static void dropouts_are_not_merged(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(64), "batch units");
    cpl_node *w = cpl_parameter(g, "w", CPL_ONES, "units=64");
    (void)w;
    cpl_output(g, "a", cpl_dropout(g, x, 0.5));
    cpl_output(g, "b", cpl_dropout(g, x, 0.5));
    cpl_minimize(g, cpl_sum(g, cpl_dense(g, "d", x, &(cpl_dense_options){.units = 2})));
}

static void random_calls_stay_two(void **state)
{
    (void)state;
    cpl_program *p = compiled(dropouts_are_not_merged, NULL, NULL);
    float x[64], a[64], b[64];
    fill(x, 64, 1);
    feed(p, "x", reals(x, 2, 1, 64, 0));
    run(p, CPL_TRAIN);
    read_reals(p, "a", a, 64);
    read_reals(p, "b", b, 64);
    assert_true(memcmp(a, b, sizeof a) != 0);
    cpl_program_free(p);
}

static void activations_and_dead_code(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(6), "batch in");
    cpl_node *y = cpl_dense(g, "a", x, &(cpl_dense_options){.units = 5, .activation = 1});
    cpl_node *linear = cpl_dense(g, "b", y, &(cpl_dense_options){.units = 5});
    cpl_node *both = cpl_add(g, cpl_tanh(g, linear), linear); /* read twice: must not be fused */
    cpl_dense(g, "dead", cpl_concat(g, x, y), &(cpl_dense_options){.units = 3});
    cpl_output(g, "y", both);
    cpl_minimize(g, cpl_sum(g, both));
}

static void activations_are_fused_and_dead_code_is_dropped(void **state)
{
    (void)state;
    float y[2][20], x[24], gradient[2][30];
    fill(x, 24, 3);
    for (int plain = 0; plain < 2; plain++) {
        cpl_program *p = compiled(activations_and_dead_code, NULL, &(cpl_compile_options){.no_passes = plain});
        assert_int_equal(count_calls(p, CPL_EVALUATE, "activation"), plain ? 2 : 1);
        assert_int_equal(count_calls(p, CPL_EVALUATE, "linear"), plain ? 3 : 2);
        assert_int_equal(count_calls(p, CPL_EVALUATE, "concat"), plain);
        feed(p, "x", reals(x, 2, 4, 6, 0));
        run(p, CPL_TRAIN);
        read_reals(p, "y", y[plain], 20);
        memcpy(gradient[plain], cpl_parameter_gradient(p, parameter(p, "a.kernel")), sizeof gradient[0]);
        cpl_program_free(p);
    }
    near(y[0], y[1], 20, 1e-6, "y");
    near(gradient[0], gradient[1], 30, 1e-6, "gradient");
}

/* In training the logits never exist: no call makes them, and asking for them is refused. */
static void logits_do_not_exist_in_training(void **state)
{
    (void)state;
    translator t = translator_open("16", "0");
    cpl_program *p = compiled(cpl_translator.score, &t.sizes, NULL); /* has no loss to minimize … */
    assert_null(p->schedule[CPL_TRAIN].graph);
    cpl_program_free(p);
    p = compiled(cpl_translator.loss, &t.sizes, NULL);
    assert_int_equal(count_calls(p, CPL_TRAIN, "linear_cross_entropy"), 1);
    assert_int_equal(count_calls(p, CPL_TRAIN, "cross_entropy"), 0);
    for (size_t i = 0; i < p->schedule[CPL_TRAIN].graph->call_count; i++) {
        const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
        const cpl_call *c = &g->calls[i];
        for (int k = 0; k < c->outputs && !c->dead; k++)
            if (cpl_call_writes_output(c, k)) {
                const cpl_type *type = &g->values[c->out[k]].type;
                assert_false(type->rank == 3 && strcmp(type->dim[2].name, "vocab") == 0);
            }
    }
    cpl_program_free(p);
    translator_close(&t);
}

static void loss_and_logits(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(3), "batch t in"), *y = cpl_input(g, "y", CPL_ID("words", 5), "batch t");
    cpl_node *logits = cpl_dense(g, "output", x, &(cpl_dense_options){.units = 5, .dim = "vocab"});
    cpl_loss_result r = cpl_masked_cross_entropy(g, logits, y);
    cpl_output(g, "logits", logits);
    cpl_output(g, "loss", r.loss);
    cpl_minimize(g, r.loss);
}

static void reading_logits_of_a_training_run(void **state)
{
    (void)state;
    cpl_program *p = compiled(loss_and_logits, NULL, NULL);
    float x[12], logits[20];
    double loss[2];
    fill(x, 12, 1);
    for (int mode = 0; mode < 2; mode++) {
        feed(p, "x", reals(x, 3, 2, 2, 3));
        feed(p, "y", ids((int32_t[]){1, 2, 3, 4}, 2, 2, NULL));
        run(p, (cpl_mode)mode);
        loss[mode] = cpl_scalar(p, "loss");
        if (mode == CPL_EVALUATE)
            assert_int_equal(read_reals(p, "logits", logits, 20), 20);
        else
            REFUSED(cpl_read(p, "logits", logits, 20, NULL, NULL, err), "output 'logits' does not exist in this run",
                    "CPL_EVALUATE");
    }
    assert_true(fabs(loss[0] - loss[1]) < 1e-6);
    cpl_program_free(p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(training_gives_the_same_with_each_pass),
    cmocka_unit_test(dropout_gives_the_same_with_each_pass),
    cmocka_unit_test(evaluation_gives_the_same_with_each_pass),
    cmocka_unit_test(case_B01_encoder_called_twice_runs_once),
    cmocka_unit_test(case_B01_memory_of_one_encoder),
    cmocka_unit_test(random_calls_stay_two),
    cmocka_unit_test(activations_are_fused_and_dead_code_is_dropped),
    cmocka_unit_test(logits_do_not_exist_in_training),
    cmocka_unit_test(reading_logits_of_a_training_run),
};

CPL_TEST_MAIN(tests)
