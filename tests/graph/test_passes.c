/* Each pass alone, all and none: the same results; and what each is for. */
#include "graph/translator_test.h"
#include "support/recompute.h"

static const int each[] = {0, CPL_PASS_DEAD, CPL_PASS_EQUAL, CPL_PASS_FUSE_ACTIVATION, CPL_PASS_FUSE_LOSS,
                           CPL_PASS_SHARE_ROWS, CPL_PASS_ALL};
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
        if (!(each[k] & (CPL_PASS_FUSE_LOSS | CPL_PASS_SHARE_ROWS))) /* these add in another order, the others do not */
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

/* The encoder in each of a loop's steps, over the state of the step before. */
static void encoder_in_steps(cpl_graph *g, const void *user)
{
    const int *steps = user;
    cpl_node *source = cpl_input(g, "source", CPL_REALS(256), "batch s units"), *h = NULL;
    for (int i = 0; i < *steps; i++) {
        cpl_node *y = cpl_rnn(g, "encoder", source, &(cpl_rnn_options){.units = 256}).y;
        h = h ? h : cpl_zeros(g, cpl_mean_time(g, y), 256);
        cpl_gru_step(g, "decoder", cpl_attention(g, "attention", h, y, NULL).y, &h, 256);
    }
    cpl_minimize(g, cpl_sum(g, h));
}

/* Batch 64, 100 steps of 256 units: the encoder's output is one tensor of 6,553,600 bytes for 20 steps of the decoder,
 * and for 40. */
static void case_B01_encoder_output_is_held_once(void **state)
{
    (void)state;
    for (int steps = 20; steps <= 40; steps += 20) {
        cpl_program *p = compiled(encoder_in_steps, &steps, NULL);
        cpl_binding capacity = {.batch = 64};
        int s = cpl_program_symbol(p, "s");
        capacity.rows[s] = 6400, capacity.longest[s] = 100;
        const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
        size_t bytes = 0;
        for (size_t i = 0; i < g->call_count; i++)
            if (!g->calls[i].dead && !g->calls[i].backward && strcmp(g->calls[i].op->name, "gru") == 0)
                bytes += cpl_type_bytes(&g->values[g->calls[i].out[0]].type, &capacity);
        assert_int_equal(bytes, 6553600);
        assert_int_equal(count_calls(p, CPL_TRAIN, "gru_cell"), steps);
        cpl_program_free(p);
    }
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

typedef struct embedded {
    cpl_cell cell;
    int64_t words;
    double dropout;
    int read; /* the embedded tokens are an output */
} embedded;

static void embedded_recurrence(cpl_graph *g, const void *user)
{
    const embedded *e = user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("words", e->words), "batch s");
    cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = e->words, .units = 6});
    if (e->read)
        cpl_output(g, "embedded", x);
    x = cpl_bidirectional(g, "rnn", cpl_dropout(g, x, e->dropout),
                          &(cpl_bidirectional_options){.cell = e->cell, .units = 5}).y;
    cpl_output(g, "y", x);
    cpl_minimize(g, cpl_sum(g, cpl_multiply(g, x, x)));
}

/* How many recurrent calls know the ids of their rows. */
static int told_ids(const cpl_program *p)
{
    const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
    int n = 0;
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        int lstm = strcmp(c->op->name, "lstm") == 0, gru = strncmp(c->op->name, "gru", 3) == 0;
        n += !c->dead && !c->backward && (lstm || gru) && c->in[lstm ? 6 : 5] >= 0;
    }
    return n;
}

enum { SENTENCES = 4, STEPS = 9, MOST_WORDS = 40 };

/* Sentences full of repeated words; words 0 … 4 of a vocabulary that is smaller or larger than the batch's rows. */
static void train_embedded(cpl_program *p, float *y, float *gradients)
{
    int32_t words[SENTENCES * STEPS];
    for (int i = 0; i < SENTENCES * STEPS; i++)
        words[i] = (i * i + i / 5) % 5;
    feed(p, "source", ids(words, SENTENCES, STEPS, (int64_t[]){9, 2, 7, 5}));
    run(p, CPL_TRAIN);
    read_reals(p, "y", y, SENTENCES * STEPS * 5);
    memcpy(gradients, p->gradients, cpl_parameters_bytes(p->engine->parameters));
}

static void equal_rows_are_projected_once(void **state)
{
    (void)state;
    static float y[2][SENTENCES * STEPS * 5], gradients[2][4096];
    for (int k = 0; k < 6; k++) {
        embedded e = {.cell = (cpl_cell)(k % 3), .words = k < 3 ? 5 : MOST_WORDS};
        for (int plain = 0; plain < 2; plain++) {
            cpl_program *p = compiled(embedded_recurrence, &e, &(cpl_compile_options){.no_passes = plain});
            assert_int_equal(told_ids(p), plain ? 0 : 2);
            train_embedded(p, y[plain], gradients[plain]);
            assert_true(cpl_parameters_bytes(p->engine->parameters) <= sizeof gradients[0]);
            cpl_program_free(p);
        }
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        near(gradients[0], gradients[1], 4096, 2e-5, "gradients");
    }
}

/* Dropout makes rows of one id differ; who reads their gradient or themselves wants each row's. */
static void rows_that_may_differ_are_not_shared(void **state)
{
    (void)state;
    static const embedded not[] = {{.words = 5, .dropout = 0.5}, {.words = 5, .read = 1}};
    for (int k = 0; k < 2; k++) {
        cpl_program *p = compiled(embedded_recurrence, &not[k], NULL);
        assert_int_equal(told_ids(p), 0);
        cpl_program_free(p);
    }
}

/* ---- less memory for more time ---- */

static void feed_seven(cpl_program *p, const void *user)
{
    (void)user;
    translator_feed(p, 7, 11, 4);
}

/* To the bit, dropout included: a call that runs again has the random numbers of the first time. */
static void recomputation_gives_every_bit(void **state)
{
    (void)state;
    translator t = translator_open("24", "0.3");
    cpl_program *p = compiled(cpl_translator.loss, &t.sizes, NULL);
    feed_seven(p, NULL);
    run(p, CPL_TRAIN);
    double loss = cpl_scalar(p, "loss");
    assert_true(check_recomputation(p, feed_seven, NULL) > 4);
    feed_seven(p, NULL);
    p->step--;
    run(p, CPL_TRAIN);
    assert_true(cpl_scalar(p, "loss") == loss);
    cpl_program_free(p);
    translator_close(&t);
}

static size_t block_with(cpl_program *p, cpl_recompute level, const cpl_binding *b)
{
    size_t bytes;
    MUST(cpl_program_recompute(p, level, b, err));
    MUST(cpl_program_block_bytes(p, CPL_TRAIN, b, &bytes, err));
    return bytes;
}

/* Cheap calls save a little, costly ones more; a recurrence runs twice only where the level says so. */
static void recomputation_saves_memory(void **state)
{
    (void)state;
    translator t = translator_open("64", "0.2");
    cpl_program *p = compiled(cpl_translator.loss, &t.sizes, NULL);
    translator_feed(p, 24, 20, 1);
    run(p, CPL_TRAIN);
    cpl_binding b = p->binding;
    int gru = count_calls(p, CPL_TRAIN, "gru");
    double flops = cpl_program_flops(p, CPL_TRAIN, &b);
    size_t none = block_with(p, CPL_RECOMPUTE_NONE, &b), cheap = block_with(p, CPL_RECOMPUTE_CHEAP, &b);
    assert_true(cheap < none && p->recomputed > 0);
    assert_int_equal(count_calls(p, CPL_TRAIN, "gru"), gru);
    assert_true(cpl_program_flops(p, CPL_TRAIN, &b) == flops && cpl_program_walk_flops(p, &b) > 0);
    size_t all = block_with(p, CPL_RECOMPUTE_ALL, &b);
    assert_true(all < cheap && all < none * 3 / 4);
    assert_int_equal(count_calls(p, CPL_TRAIN, "gru"), 2 * gru);
    assert_true(cpl_program_flops(p, CPL_TRAIN, &b) > flops);
    assert_true(cpl_program_flops(p, CPL_TRAIN, &b) < 4.0 / 3 * flops);
    cpl_program_free(p);
    translator_close(&t);
}

/* Smaller blocks of logits: each row's loss and gradient to the bit, sums over rows in another order. */
static void smaller_loss_blocks_give_the_same(void **state)
{
    (void)state;
    translator t = translator_open("24", "0");
    cpl_program *p = compiled(cpl_translator.loss, &t.sizes, NULL);
    size_t bytes = (size_t)cpl_parameters_gradient_bytes(p->engine->parameters), whole = 0, block;
    float *want = malloc(bytes);
    assert_non_null(want);
    double loss = 0;
    static const int rows[] = {0, 48, 7, 1, 48};
    for (int i = 0; i < 5; i++) { /* each is planned anew, larger ones again too */
        cpl_program_block_rows(p, CPL_TRAIN, rows[i]);
        translator_feed(p, 24, 20, 3);
        run(p, CPL_TRAIN);
        MUST(cpl_program_block_bytes(p, CPL_TRAIN, &p->binding, &block, err));
        if (i == 0) {
            memcpy(want, p->gradients, bytes);
            loss = cpl_scalar(p, "loss");
            whole = block;
        }
        assert_true(i == 0 || block < whole);
        assert_true(cpl_scalar(p, "loss") == loss);
        near(p->gradients, want, (int64_t)(bytes / sizeof *want), 2e-6, "gradients");
    }
    free(want);
    cpl_program_free(p);
    translator_close(&t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(training_gives_the_same_with_each_pass),
    cmocka_unit_test(dropout_gives_the_same_with_each_pass),
    cmocka_unit_test(evaluation_gives_the_same_with_each_pass),
    cmocka_unit_test(case_B01_encoder_called_twice_runs_once),
    cmocka_unit_test(case_B01_memory_of_one_encoder), cmocka_unit_test(case_B01_encoder_output_is_held_once),
    cmocka_unit_test(random_calls_stay_two),
    cmocka_unit_test(activations_are_fused_and_dead_code_is_dropped),
    cmocka_unit_test(equal_rows_are_projected_once),
    cmocka_unit_test(rows_that_may_differ_are_not_shared),
    cmocka_unit_test(logits_do_not_exist_in_training),
    cmocka_unit_test(reading_logits_of_a_training_run),
    cmocka_unit_test(recomputation_gives_every_bit),
    cmocka_unit_test(recomputation_saves_memory),
    cmocka_unit_test(smaller_loss_blocks_give_the_same),
};

CPL_TEST_MAIN(tests)
