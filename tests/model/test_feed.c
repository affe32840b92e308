/* test_feed.c: model.decoder.input_feed: what is fed back is what the projection reads, it stands behind the embedded
 * token in the cell's input, and what cannot feed is refused. */
#include "model/model_test.h"

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const real *value(const model_case *m, const char *path, int64_t rows)
{
    int i = cpl_parameters_find(m->engine->parameters, path);
    assert_true(i >= 0);
    assert_int_equal(cpl_parameters_at(m->engine->parameters, (size_t)i)->size[0], rows);
    return cpl_parameters_value(m->engine->parameters, (size_t)i);
}

static void what_is_projected_is_fed_back(void **state)
{
    static const struct {
        const char *combine;
        int width;
    } ways[] = {{"model.decoder.attention.combine=add_norm", 6}, {"model.decoder.attention.combine=tanh", 6},
                {"model.decoder.attention.combine=concat", 12}};
    (void)state;
    for (int way = 0; way < 3; way++) {
        int width = ways[way].width;
        model_case m = model_case_of(configured(SETS("model.decoder.input_feed=true", "model.decoder.cell=lstm",
                                                     ways[way].combine)));
        cpl_program *loss = compile_case(&m, m.kind->loss, 0);
        stepper s;
        float logits[COUNT * TARGET_WORDS];
        enliven(&m);
        stepper_begin(&s, &m);
        const cpl_model_part *fed = &s.description.state[s.description.states - 1];
        assert_string_equal(fed->name, "feed");
        assert_int_equal(fed->width, width);
        const float *after[2] = {s.state[1][s.description.states - 1], s.state[0][s.description.states - 1]};
        const real *kernel = value(&m, "decoder.output.kernel", width), *bias = value(&m, "decoder.output.bias",
                                                                                      TARGET_WORDS);
        value(&m, "decoder.rnn.kernel", 6 + width); /* the token's vector and what is fed */
        for (int step = 0; step < 2; step++) {
            stepper_step(&s, step);
            MUST(cpl_read(s.step, "logits", logits, COUNT * TARGET_WORDS, NULL, NULL, err));
            for (int i = 0; i < COUNT; i++)
                for (int w = 0; w < TARGET_WORDS; w++) {
                    double sum = bias[w];
                    for (int k = 0; k < width; k++)
                        sum += after[step][i * width + k] * kernel[k * TARGET_WORDS + w];
                    assert_true(fabs(sum - logits[i * TARGET_WORDS + w]) < 1e-4);
                }
        }
        stepper_end(&s);
        cpl_program_free(loss);
        model_case_close(&m);
    }
}

/* Zero rows of the kernel for what is fed make the model one without feeding. */
static void nothing_fed_is_no_feeding(void **state)
{
    const char *const *with = SETS("model.decoder.input_feed=true", "model.decoder.cell=lstm");
    model_case a = model_case_of(configured(with)), b = model_case_of(configured(with + 1));
    cpl_program *p[2] = {compile_case(&a, a.kind->score, 1), compile_case(&b, b.kind->score, 1)};
    float logits[2][COUNT * LONGEST * TARGET_WORDS];
    (void)state;
    enliven(&b);
    for (size_t i = 0; i < cpl_parameters_count(b.engine->parameters); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(b.engine->parameters, i);
        int at = cpl_parameters_find(a.engine->parameters, info->path);
        assert_true(at >= 0);
        real *to = cpl_parameters_value(a.engine->parameters, (size_t)at);
        memset(to, 0, (size_t)cpl_parameters_at(a.engine->parameters, (size_t)at)->elements * sizeof *to);
        memcpy(to, cpl_parameters_value(b.engine->parameters, i), (size_t)info->elements * sizeof *to);
    }
    for (int k = 0; k < 2; k++) {
        feed_whole(p[k]);
        MUST(cpl_run(p[k], CPL_EVALUATE, err));
        MUST(cpl_read(p[k], "logits", logits[k], COUNT * LONGEST * TARGET_WORDS, NULL, NULL, err));
        cpl_program_free(p[k]);
    }
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < target_length[i]; k++)
            for (int w = 0; w < TARGET_WORDS; w++)
                assert_true(fabs((double)logits[0][(i * 5 + k) * TARGET_WORDS + w] -
                                 (double)logits[1][(i * 5 + k) * TARGET_WORDS + w]) < 1e-5);
    model_case_close(&a), model_case_close(&b);
}

static void refuse(const char *const *sets, const char *cause, const char *hint)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = configured(sets);
    assert_int_equal(cpl_config_check(c, 0, &err), CPL_USAGE);
    if (!strstr(err.line[0], cause) || !strstr(err.hint, hint))
        fail_msg("got '%s', hint '%s'", err.line[0], err.hint);
    cpl_config_free(c);
}

static void what_cannot_feed_is_refused(void **state)
{
    (void)state;
    refuse(SETS("model.decoder.input_feed=true", "model.decoder.attention.score=none",
                "model.decoder.initial_state=encoder"), "without attention there is nothing to feed", "score");
    refuse(SETS("model.decoder.input_feed=true", "model.type=summarizer"), "part of its input already",
           "position to after");
    refuse(SETS("model.decoder.input_feed=true", "model.decoder.cell=gru_reset_before"), "has no single steps",
           "gru or lstm");
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_projected_is_fed_back),
                                          cmocka_unit_test(nothing_fed_is_no_feeding),
                                          cmocka_unit_test(what_cannot_feed_is_refused)};

CPL_TEST_MAIN(tests)
