/* The summarizer and the parts that both kinds share: stacks of layers, saving and loading, generating, attention
 * weights, dropout in a loop, and what is refused. */
#include "model/model_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "model/model_file.h"

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

static model_case made(const char *const *sets)
{
    cpl_config *c = configured(sets);
    MUST(cpl_config_check(c, 0, err));
    return model_case_of(c);
}

static int has(const model_case *m, const char *path)
{
    return cpl_parameters_find(m->engine->parameters, path) >= 0;
}

/* ---- stacks ---- */

/* Steps against whole sentences; the parameters' names. */
static void check_stack(const char *const *sets)
{
    model_case m = made(sets);
    cpl_program *score = compile_case(&m, m.kind->score, 1);
    enliven(&m);
    float whole[COUNT * LONGEST * TARGET_WORDS], one[COUNT * TARGET_WORDS];
    stepper s;
    feed_whole(score);
    MUST(cpl_run(score, CPL_EVALUATE, err));
    MUST(cpl_read(score, "logits", whole, sizeof whole / sizeof *whole, NULL, NULL, err));
    stepper_begin(&s, &m);
    assert_int_equal(s.description.states, m.config->model.decoder.layers *
                                               (m.config->model.decoder.cell == CPL_CELL_LSTM ? 2 : 1));
    for (int k = 0; k < 5; k++) {
        stepper_step(&s, k);
        MUST(cpl_read(s.step, "logits", one, sizeof one / sizeof *one, NULL, NULL, err));
        for (int i = 0; i < COUNT; i++)
            for (int w = 0; w < TARGET_WORDS && k < target_length[i]; w++)
                assert_true(fabs((double)whole[(i * 5 + k) * TARGET_WORDS + w] - (double)one[i * TARGET_WORDS + w]) <
                            1e-5);
    }
    assert_true(has(&m, "decoder.rnn.kernel") && has(&m, "decoder.rnn_2.kernel"));
    stepper_end(&s);
    cpl_program_free(score);
    model_case_close(&m);
}

static void stacks_agree_step_by_step(void **state)
{
    (void)state;
    static const char *const types[] = {"model.type=translator", "model.type=summarizer"};
    static const char *const cells[] = {"model.decoder.cell=gru", "model.decoder.cell=lstm"};
    static const char *const starts[] = {"model.decoder.initial_state=zero", "model.decoder.initial_state=bridge",
                                         "model.decoder.initial_state=encoder"};
    for (int i = 0; i < 2 * 2 * 3; i++) {
        const char *type = types[i % 2], *cell = cells[i / 2 % 2], *start = starts[i / 4];
        check_stack(SETS(type, cell, start, "model.encoder.cell=lstm", "model.encoder.layers=2",
                         "model.decoder.layers=2", "model.decoder.residual=true", "model.encoder.residual=true"));
        if (i / 4 < 2)
            check_stack(SETS(type, cell, start, "model.encoder.direction=both", "model.encoder.merge=concat",
                             "model.encoder.layers=3", "model.decoder.layers=4",
                             i % 2 ? "model.units=6" : "model.decoder.attention.combine=tanh"));
    }
}

/* A residual adds what enters the second layer: with that layer's output fixed at zero nothing else is left. */
static void residual_layers_add_their_input(void **state)
{
    (void)state;
    model_case m = made(SETS("model.encoder.direction=forward", "model.encoder.layers=2", "model.encoder.residual=true",
                             "model.decoder.attention.score=dot", "model.decoder.attention.combine=concat"));
    cpl_program *encode = compile_case(&m, m.kind->encode, 1);
    float both[COUNT * LONGEST * STATE_UNITS], first[COUNT * LONGEST * STATE_UNITS];
    model_case one = made(SETS("model.encoder.direction=forward", "model.decoder.attention.score=dot",
                               "model.decoder.attention.combine=concat"));
    cpl_program *plain = compile_case(&one, one.kind->encode, 1);
    static const char *const zero[] = {"encoder.rnn_2.kernel", "encoder.rnn_2.recurrent_kernel", "encoder.rnn_2.bias"};
    for (int i = 0; i < 3; i++) { /* a GRU without weights: z = 1/2, n = 0, h stays zero */
        int k = cpl_parameters_find(m.engine->parameters, zero[i]);
        memset(cpl_parameters_value(m.engine->parameters, (size_t)k), 0,
               (size_t)cpl_parameters_at(m.engine->parameters, (size_t)k)->elements * sizeof(real));
    }
    feed_rows(encode, "source", source_ids, source_length);
    feed_rows(plain, "source", source_ids, source_length);
    MUST(cpl_run(encode, CPL_EVALUATE, err));
    MUST(cpl_run(plain, CPL_EVALUATE, err));
    MUST(cpl_read(encode, "values", both, sizeof both / sizeof *both, NULL, NULL, err));
    MUST(cpl_read(plain, "values", first, sizeof first / sizeof *first, NULL, NULL, err));
    assert_memory_equal(both, first, sizeof both); /* the same seed and paths: the same first layer */
    cpl_program_free(plain);
    cpl_program_free(encode);
    model_case_close(&one);
    model_case_close(&m);
}

/* ---- defaults ---- */

static void the_summarizer_is_reference_a(void **state)
{
    (void)state;
    model_case m = made(SETS("model.type=summarizer"));
    cpl_program *p = compile_case(&m, m.kind->loss, 0);
    static const char *const paths[] = {
        "encoder.embedding.kernel", "encoder.rnn.kernel", "encoder.rnn.recurrent_kernel", "encoder.rnn.bias",
        "decoder.embedding.kernel", "decoder.attention.key.kernel", "decoder.attention.key.bias",
        "decoder.attention.query.kernel", "decoder.attention.query.bias", "decoder.attention.score.kernel",
        "decoder.attention.score.bias", "decoder.rnn.kernel", "decoder.rnn.recurrent_kernel", "decoder.rnn.bias",
        "decoder.output.kernel", "decoder.output.bias"};
    assert_string_equal(m.kind->name, "summarizer");
    assert_int_equal(cpl_parameter_count(p), sizeof paths / sizeof paths[0]);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_true(has(&m, paths[i]));
    static const char *const recurrent[] = {"encoder.rnn.recurrent_kernel", "decoder.rnn.recurrent_kernel"};
    for (int i = 0; i < 2; i++) { /* [6 24] with orthonormal rows */
        int k = cpl_parameters_find(m.engine->parameters, recurrent[i]);
        const real *x = cpl_parameters_value(m.engine->parameters, (size_t)k);
        for (int a = 0; a < 6; a++)
            for (int b = 0; b < 6; b++) {
                double sum = 0;
                for (int j = 0; j < 24; j++)
                    sum += (double)x[a * 24 + j] * (double)x[b * 24 + j];
                assert_true(fabs(sum - (a == b)) < 1e-5);
            }
    }
    cpl_program_free(p);
    model_case_close(&m);
}

/* ---- saving, loading, generating ---- */

static cpl_vocabulary *words(int count)
{
    static const char *const special[] = {"", "[UNK]", "[START]", "[END]"};
    cpl_json *array = cpl_json_array();
    cpl_vocabulary *v;
    for (int i = 0; i < count; i++) {
        char c = (char)('a' + i);
        cpl_json_add_text(array, i < 4 ? special[i] : &c, i < 4 ? strlen(special[i]) : 1);
    }
    MUST(cpl_vocabulary_from_json(&v, array, err));
    cpl_json_free(array);
    return v;
}

static void save(const model_case *m, const char *path)
{
    cpl_vocabulary *source = words(SOURCE_WORDS), *target = words(TARGET_WORDS);
    cpl_model_facts facts = {.config = m->config, .source = source, .target = target,
                             .parameters = m->engine->parameters, .longest_target = 9};
    cpl_model_set *set;
    MUST(cpl_model_set_new(&set, &facts, err));
    cpl_tensor_set view = cpl_model_set_view(set, 0, 0, "[]", NULL);
    MUST(cpl_tensor_file_write(path, &view, err));
    cpl_model_set_free(set);
    cpl_vocabulary_free(source);
    cpl_vocabulary_free(target);
}

static const cpl_decoded *decode(cpl_decoder *d, int attention)
{
    static const int64_t most[COUNT] = {9, 9, 9};
    const int32_t *rows[COUNT];
    const cpl_decoded *results;
    for (int i = 0; i < COUNT; i++)
        rows[i] = source_ids[i];
    cpl_decode_batch b = {.count = COUNT, .source = rows, .length = source_length, .most = most,
                          .attention = attention};
    MUST(cpl_decode(d, &b, &results, err));
    return results;
}

/* What was generated is what a whole pass over it finds most probable, position by position. */
static void check_greedy(const model_case *m, const cpl_decoded *r)
{
    cpl_program *score = compile_case(m, m->kind->score, 1);
    for (int i = 0; i < COUNT; i++) {
        int32_t in[16] = {CPL_ID_START}, out[16] = {0};
        int64_t n = r[i].length + r[i].finished;
        float logits[16 * TARGET_WORDS];
        memcpy(in + 1, r[i].ids, (size_t)r[i].length * sizeof *in);
        memcpy(out, r[i].ids, (size_t)r[i].length * sizeof *out);
        out[r[i].length] = CPL_ID_END;
        const int32_t *source = source_ids[i], *in_row = in, *out_row = out;
        MUST(cpl_feed_ids(score, "source", &source, &source_length[i], 1, err));
        MUST(cpl_feed_ids(score, "target_in", &in_row, &n, 1, err));
        MUST(cpl_feed_ids(score, "target_out", &out_row, &n, 1, err));
        MUST(cpl_run(score, CPL_EVALUATE, err));
        MUST(cpl_read(score, "logits", logits, sizeof logits / sizeof *logits, NULL, NULL, err));
        for (int64_t k = 0; k < n; k++)
            for (int w = 0; w < TARGET_WORDS; w++)
                assert_true(logits[k * TARGET_WORDS + w] <= logits[k * TARGET_WORDS + out[k]] + 1e-5F);
    }
    cpl_program_free(score);
}

static void check_file(const char *const *sets, const char *path)
{
    model_case m = made(sets);
    cpl_decoder *before, *after;
    cpl_model_file *f;
    MUST(cpl_decoder_new(&before, m.kind, &m.sizes, m.engine, err));
    enliven(&m);
    save(&m, path);
    MUST(cpl_model_file_open(&f, path, err));
    assert_ptr_equal(f->kind, m.kind);
    cpl_config_differences list;
    MUST(cpl_config_compare(m.config, f->config, &list, err));
    assert_int_equal(list.count, 0); /* the stored options are the real ones */
    cpl_config_differences_free(&list);
    cpl_engine *engine;
    MUST(cpl_engine_new(&engine, 2, 99, err));
    MUST(cpl_decoder_new(&after, f->kind, &f->sizes, engine, err));
    MUST(cpl_model_file_load_parameters(f, engine->parameters, err));
    const cpl_decoded *a = decode(before, 0), *b = decode(after, 0);
    check_greedy(&m, a);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(a[i].length, b[i].length);
        assert_memory_equal(a[i].ids, b[i].ids, (size_t)a[i].length * sizeof *a[i].ids);
        assert_true(a[i].score == b[i].score);
    }
    cpl_decoder_free(before);
    cpl_decoder_free(after);
    cpl_engine_release(engine);
    cpl_model_file_close(f);
    model_case_close(&m);
}

static void models_are_saved_loaded_and_generate(void **state)
{
    (void)state;
    char folder[256], path[300];
    snprintf(folder, sizeof folder, "%s/model.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    check_file(SETS("model.type=summarizer"), path);
    check_file(SETS("model.type=summarizer", "model.decoder.attention.position=after"), path);
    check_file(SETS("model.type=summarizer", "model.encoder.cell=gru", "model.decoder.cell=gru",
                    "model.decoder.layers=2", "model.encoder.layers=2", "model.decoder.attention.score=general"), path);
    check_file(SETS("model.type=summarizer", "model.decoder.attention.score=none"), path);
    check_file(SETS("model.type=summarizer", "model.encoder.direction=both", "model.encoder.merge=concat",
                    "model.decoder.initial_state=bridge", "model.decoder.attention.combine=tanh"), path);
    check_file(SETS("model.decoder.attention.score=dot", "model.decoder.cell=lstm"), path);
    check_file(SETS("model.decoder.attention.heads=3", "model.decoder.initial_state=bridge"), path);
    unlink(path);
    rmdir(folder);
}

/* ---- attention ---- */

static void weights_of_one_head_are_kept(void **state)
{
    (void)state;
    model_case m = made(SETS("model.type=summarizer"));
    cpl_decoder *d;
    MUST(cpl_decoder_new(&d, m.kind, &m.sizes, m.engine, err));
    enliven(&m);
    const cpl_decoded *r = decode(d, 1);
    for (int i = 0; i < COUNT; i++)
        for (int64_t t = 0; t < r[i].length + r[i].finished; t++) {
            double sum = 0;
            for (int64_t s = 0; s < source_length[i]; s++)
                sum += (double)r[i].attention[t * source_length[i] + s];
            assert_true(fabs(sum - 1) < 1e-5);
        }
    cpl_decoder_free(d);
    model_case_close(&m);
}

/* ---- dropout ---- */

/* In a loop too the same seed and step drop the same, whatever the number of threads; another step drops other
 * elements; and evaluating drops nothing. */
static void dropout_inside_a_loop(void **state)
{
    (void)state;
    const char *const *sets = SETS("model.type=summarizer", "model.dropout=0.4", "model.encoder.layers=2",
                                   "model.decoder.layers=2");
    double loss[2][2], quiet[2];
    for (int threads = 0; threads < 2; threads++) {
        cpl_config *c = configured(sets);
        cpl_model_sizes n = {c, SOURCE_WORDS, TARGET_WORDS};
        cpl_program *p;
        MUST(cpl_compile(&p, cpl_summarizer.loss, &n, &(cpl_compile_options){.threads = 1 + 2 * threads, .seed = 3},
                         err));
        for (size_t i = 0; i < cpl_parameter_count(p); i++)
            for (int k = 0; k < 6 && strstr(cpl_parameter_path(p, i), "kernel"); k++)
                cpl_parameter_value(p, i)[k] += 1;
        for (int step = 0; step < 2; step++) {
            feed_whole(p);
            MUST(cpl_run(p, CPL_TRAIN, err));
            loss[threads][step] = cpl_scalar(p, "loss");
        }
        feed_whole(p);
        MUST(cpl_run(p, CPL_EVALUATE, err));
        quiet[threads] = cpl_scalar(p, "loss");
        cpl_program_free(p);
        cpl_config_free(c);
    }
    assert_true(loss[0][0] == loss[1][0] && loss[0][1] == loss[1][1] && quiet[0] == quiet[1]);
    assert_true(loss[0][0] != loss[0][1] && loss[0][0] != quiet[0]);
}

/* ---- what does not fit ---- */

static void refuse(const char *const *sets, const char *cause, const char *hint)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = configured(sets);
    assert_int_equal(cpl_config_check(c, 0, &err), CPL_USAGE);
    if (!strstr(err.line[0], cause) || !strstr(err.hint, hint))
        fail_msg("got '%s', hint '%s'", err.line[0], err.hint);
    cpl_config_free(c);
}

static void case_D08_a_state_of_twice_the_width(void **state)
{
    (void)state;
    refuse(SETS("model.units=4", "model.encoder.merge=concat", "model.decoder.initial_state=encoder"),
           "the decoder's state is [batch units=4], but the encoder hands over [batch units=8]: its two directions "
           "concatenated",
           "set model.encoder.merge to sum or average, or model.decoder.initial_state to bridge, a dense layer from 8 "
           "to 4");
    static const char *const ways[] = {"model.encoder.merge=sum", "model.encoder.merge=average",
                                       "model.decoder.initial_state=bridge"};
    for (int i = 0; i < 3; i++) { /* each hint is a way out */
        model_case m = made(SETS("model.encoder.merge=concat", "model.decoder.initial_state=encoder", ways[i]));
        cpl_program_free(compile_case(&m, m.kind->loss, 0));
        model_case_close(&m);
    }
}

static void parts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    refuse(SETS("model.type=summarizer", "model.encoder.cell=gru"), "an lstm begins with h and c",
           "model.encoder.cell to lstm");
    refuse(SETS("model.type=summarizer", "model.decoder.layers=2"), "the encoder has 1 and the decoder 2", "bridge");
    refuse(SETS("model.type=summarizer", "model.decoder.cell=gru_reset_before"), "has no single steps",
           "model.decoder.cell to gru or lstm");
    refuse(SETS("model.decoder.attention.score=none"), "nothing of the source reaches the decoder", "bridge");
    refuse(SETS("model.decoder.attention.score=dot", "model.encoder.merge=concat"), "state [6]", "general");
    refuse(SETS("model.decoder.attention.score=additive", "model.encoder.merge=concat"), "result [12]",
           "concat or tanh");
    refuse(SETS("model.type=summarizer", "model.embedding=9", "model.decoder.attention.combine=add_norm"),
           "result [6] to the embedded token [9]", "concat or tanh");
    refuse(SETS("model.encoder.residual=true"), "'model.encoder.residual' is true", "layers to 2 or more");
    refuse(SETS("model.type=summarizer", "model.decoder.attention.heads=2"), "only score multihead has heads", "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stacks_agree_step_by_step), cmocka_unit_test(residual_layers_add_their_input),
    cmocka_unit_test(the_summarizer_is_reference_a), cmocka_unit_test(models_are_saved_loaded_and_generate),
    cmocka_unit_test(weights_of_one_head_are_kept), cmocka_unit_test(dropout_inside_a_loop),
    cmocka_unit_test(case_D08_a_state_of_twice_the_width), cmocka_unit_test(parts_that_do_not_fit_are_refused),
};

CPL_TEST_MAIN(tests)
