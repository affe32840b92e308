/* Programs over several steps: parameters, warnings, short memory. */
#include "graph/translator_test.h"

/* ---- A05: steps of different sizes ---- */

static void descend(cpl_program *p, float rate)
{
    for (size_t i = 0; i < cpl_parameter_count(p); i++) {
        const float *gradient = cpl_parameter_gradient(p, i);
        for (int64_t k = 0; gradient && k < parameter_size(p, i); k++)
            cpl_parameter_value(p, i)[k] -= rate * gradient[k];
    }
}

static void case_A05_two_steps_of_different_size(void **state)
{
    (void)state;
    translator t = translator_open("8", "0");
    cpl_program *p = compiled(cpl_translator.loss, &t.sizes, NULL);
    size_t count = cpl_parameter_count(p), kernel = parameter(p, "encoder.rnn.forward.kernel");
    char paths[64][80];
    float first[8 * 24], updated[8 * 24];
    for (size_t i = 0; i < count; i++)
        snprintf(paths[i], sizeof paths[i], "%s", cpl_parameter_path(p, i));
    memcpy(first, cpl_parameter_value(p, kernel), sizeof first);
    translator_feed(p, 4, 7, 1);
    run(p, CPL_TRAIN);
    assert_memory_equal(first, cpl_parameter_value(p, kernel), sizeof first); /* a run changes no value */
    descend(p, 0.1f);
    memcpy(updated, cpl_parameter_value(p, kernel), sizeof updated);
    assert_true(memcmp(first, updated, sizeof first) != 0);
    translator_feed(p, 3, 9, 2);
    run(p, CPL_TRAIN);
    assert_int_equal(cpl_parameter_count(p), count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(cpl_parameter_path(p, i), paths[i]);
    assert_memory_equal(updated, cpl_parameter_value(p, kernel), sizeof updated);
    assert_int_equal(cpl_traces(p), 1);
    cpl_program *second = compiled(cpl_translator.loss, &t.sizes, NULL);
    assert_int_equal(cpl_parameter_count(second), count);
    assert_memory_equal(first, cpl_parameter_value(second, kernel), sizeof first); /* its own first values */
    cpl_parameter_value(second, kernel)[0] = 77;
    assert_memory_equal(updated, cpl_parameter_value(p, kernel), sizeof updated);
    cpl_program_free(p);
    assert_true(cpl_parameter_value(second, kernel)[0] == 77);
    cpl_program_free(second);
    translator_close(&t);
}

/* Programs of one model share the values by path; a second graph adds none that exist. */
static void sharing_programs(void **state)
{
    (void)state;
    translator t = translator_open("8", "0");
    cpl_program *train = compiled(cpl_translator.loss, &t.sizes, NULL);
    size_t count = cpl_parameter_count(train), kernel = parameter(train, "decoder.output.kernel");
    cpl_compile_options o = {.share = train, .inference = 1};
    cpl_program *step = compiled(cpl_translator.step, &t.sizes, &o);
    cpl_program *score = compiled(cpl_translator.score, &t.sizes, &o);
    assert_int_equal(cpl_parameter_count(step), count);
    assert_ptr_equal(cpl_parameter_value(step, kernel), cpl_parameter_value(train, kernel));
    translator_feed(train, 5, 6, 3);
    translator_feed(score, 5, 6, 3);
    run(train, CPL_TRAIN);
    run(score, CPL_EVALUATE);
    assert_true(fabs(cpl_scalar(train, "loss") - cpl_scalar(score, "loss")) < 1e-5);
    REFUSED(cpl_run(score, CPL_TRAIN, err), "cannot be trained");
    cpl_program_free(score);
    cpl_program_free(step);
    cpl_program_free(train);
    translator_close(&t);
}

static void seeds_give_first_values(void **state)
{
    (void)state;
    translator t = translator_open("8", "0");
    cpl_program *p[3];
    for (int i = 0; i < 3; i++)
        p[i] = compiled(cpl_translator.loss, &t.sizes, &(cpl_compile_options){.seed = i == 2 ? 8 : 7});
    size_t kernel = parameter(p[0], "decoder.rnn.kernel");
    const float *first = cpl_parameter_value(p[0], kernel);
    assert_memory_equal(first, cpl_parameter_value(p[1], kernel), 8 * 24 * sizeof(float));
    assert_true(memcmp(first, cpl_parameter_value(p[2], kernel), 8 * 24 * sizeof(float)) != 0);
    for (int i = 0; i < 3; i++)
        cpl_program_free(p[i]);
    translator_close(&t);
}

/* ---- A09: a branch that is not on the way to the loss ---- */

static void encoder_loss(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("words", 7), "batch s");
    cpl_node *target = cpl_input(g, "target", CPL_ID("words", 7), "batch t");
    cpl_enter(g, "encoder");
    cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = 7, .units = 3});
    x = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.units = 4}).y;
    cpl_leave(g);
    cpl_enter(g, "decoder");
    cpl_node *y = cpl_embedding(g, "embedding", target, &(cpl_embedding_options){.size = 7, .units = 3});
    cpl_output(g, "decoded", cpl_rnn(g, "rnn", y, &(cpl_rnn_options){.units = 5}).y);
    cpl_leave(g);
    cpl_node *logits = cpl_dense(g, "output", x, &(cpl_dense_options){.units = 7, .dim = "vocab"});
    cpl_minimize(g, cpl_masked_cross_entropy(g, logits, source).loss);
}

typedef struct messages {
    int warnings, others;
    char text[1000];
} messages;

static void listen(void *user, int level, const char *text)
{
    messages *m = user;
    m->warnings += level == 1;
    m->others += level != 1;
    snprintf(m->text, sizeof m->text, "%s", text);
}

static void case_A09_branch_without_gradient(void **state)
{
    (void)state;
    messages m = {0};
    cpl_program *p = compiled(encoder_loss, NULL, &(cpl_compile_options){.message = listen, .user = &m});
    assert_int_equal(m.warnings, 1);
    assert_non_null(strstr(m.text, "'decoder.embedding' (21 parameters)"));
    assert_non_null(strstr(m.text, "'decoder.rnn' (150 parameters)")); /* 3·15 + 5·15 + 2·15 */
    assert_non_null(strstr(m.text, "not on a path to the loss"));
    assert_null(strstr(m.text, "encoder.rnn"));
    assert_null(strstr(m.text, "'output'"));
    size_t unused = parameter(p, "decoder.rnn.kernel");
    float before[45];
    memcpy(before, cpl_parameter_value(p, unused), sizeof before);
    feed(p, "source", ids((int32_t[]){1, 2, 3, 4, 5, 6}, 2, 3, NULL));
    feed(p, "target", ids((int32_t[]){1, 2, 3, 4}, 2, 2, NULL));
    run(p, CPL_TRAIN);
    assert_null(cpl_parameter_gradient(p, unused));
    assert_null(cpl_parameter_gradient(p, parameter(p, "decoder.embedding.kernel")));
    assert_non_null(cpl_parameter_gradient(p, parameter(p, "encoder.rnn.kernel")));
    descend(p, 0.1f);
    assert_memory_equal(before, cpl_parameter_value(p, unused), sizeof before);
    assert_int_equal(m.warnings, 1);
    cpl_program_free(p);
}

static void a_whole_model_gives_no_warning(void **state)
{
    (void)state;
    messages m = {0};
    translator t = translator_open("8", "0");
    cpl_program *p = compiled(cpl_translator.loss, &t.sizes, &(cpl_compile_options){.message = listen, .user = &m});
    assert_int_equal(m.warnings, 0);
    cpl_program_free(p);
    translator_close(&t);
}

/* ---- short memory ---- */

/* Every allocation of compiling fails once: an error, nothing lost, nothing left. */
static void compiling_without_memory(void **state)
{
    (void)state;
    uint64_t live = cpl_memory_live_bytes();
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        cpl_program *p = NULL;
        cpl_error err = CPL_ERROR_INIT;
        cpl_memory_fail_at(n);
        cpl_status status = cpl_compile(&p, encoder_loss, NULL, &(cpl_compile_options){.threads = 1}, &err);
        cpl_memory_fail_at(0);
        if (status == CPL_OK) {
            assert_int_equal(p->traced->input_count, 2);
            assert_int_equal(p->traced->output_count, 1);
            assert_int_equal(p->traced->call_count, 6);
            assert_int_equal(cpl_parameter_count(p), 10);
            cpl_program_free(p);
            if (n > 400)
                break;
            continue; /* an allocation that can be done without */
        }
        failures++;
        if (status != CPL_FAILED || !strstr(err.line[0], "memory"))
            fail_msg("allocation %d: status %d, %s", (int)n, (int)status, err.line[0]);
        assert_null(p);
        assert_int_equal(cpl_memory_live_bytes(), live);
    }
    assert_true(failures > 20);
    assert_int_equal(cpl_memory_live_bytes(), live);
}

/* Feeding and running: the failed call can be made again, with the same results. */
static void running_without_memory(void **state)
{
    (void)state;
    float want = NAN;
    for (uint64_t n = 0; n < 30; n++) {
        cpl_program *p = compiled(encoder_loss, NULL, &(cpl_compile_options){.threads = 1, .seed = 5});
        cpl_array source = ids((int32_t[]){1, 2, 3, 4, 5, 6}, 2, 3, NULL);
        const int32_t target[] = {1, 2, 3}, *const rows[] = {target, target + 1};
        cpl_memory_fail_at(n);
        while (cpl_feed(p, "source", &source, NULL) == CPL_FAILED)
            ;
        while (cpl_feed_ids(p, "target", rows, (int64_t[]){2, 1}, 2, NULL) == CPL_FAILED)
            ;
        while (cpl_run(p, CPL_TRAIN, NULL) == CPL_FAILED)
            ;
        cpl_memory_fail_at(0);
        float gradient = cpl_parameter_gradient(p, parameter(p, "encoder.rnn.kernel"))[0];
        want = n ? want : gradient;
        assert_true(gradient == want);
        float y[32];
        assert_int_equal(read_reals(p, "decoded", y, 32), 2 * 2 * 5);
        cpl_program_free(p);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(case_A05_two_steps_of_different_size),
    cmocka_unit_test(sharing_programs),
    cmocka_unit_test(seeds_give_first_values),
    cmocka_unit_test(case_A09_branch_without_gradient),
    cmocka_unit_test(a_whole_model_gives_no_warning),
    cmocka_unit_test(compiling_without_memory),
    cmocka_unit_test(running_without_memory),
};

CPL_TEST_MAIN(tests)
