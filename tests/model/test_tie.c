/* test_tie.c: one table as embedding and projection is the same model as two equal ones: logits alike, its gradient
 * the sum of theirs. And what cannot be tied. */
#include "model/model_test.h"

#include <stdio.h>

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { WORDS = SOURCE_WORDS };

/* A model with equal vocabularies on both sides. */
static model_case case_of(const char *const *sets)
{
    model_case m = model_case_of(configured(sets));
    cpl_error err = CPL_ERROR_INIT;
    if (cpl_config_check(m.config, 0, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    m.sizes.target_vocabulary = WORDS;
    return m;
}

static real *value(const model_case *m, const char *path)
{
    int i = cpl_parameters_find(m->engine->parameters, path);
    assert_true(i >= 0);
    return cpl_parameters_value(m->engine->parameters, (size_t)i);
}

static void copy_transposed(const real *table, int width, real *kernel)
{
    for (int w = 0; w < WORDS; w++)
        for (int j = 0; j < width; j++)
            kernel[j * WORDS + w] = table[w * width + j];
}

/* Every parameter that the two share by path, then what the tied model has once. */
static void copy_weights(const model_case *tied, const model_case *plain, int all, int width)
{
    const cpl_parameters *p = plain->engine->parameters;
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(p, i);
        if (cpl_parameters_find(tied->engine->parameters, info->path) >= 0)
            memcpy(cpl_parameters_value(p, i), value(tied, info->path), (size_t)info->elements * sizeof(real));
    }
    const real *table = value(tied, all ? "encoder.embedding.kernel" : "decoder.embedding.kernel");
    memcpy(value(plain, "decoder.embedding.kernel"), table, (size_t)(WORDS * width) * sizeof(real));
    copy_transposed(table, width, value(plain, "decoder.output.kernel"));
}

static void read_logits(cpl_program *p, float *to)
{
    int64_t shape[6];
    int rank;
    feed_whole(p);
    MUST(cpl_run(p, CPL_EVALUATE, err));
    MUST(cpl_read(p, "logits", to, COUNT * LONGEST * WORDS, shape, &rank, err));
}

static const real *gradient(cpl_program *p, const char *path)
{
    int64_t i = cpl_parameter_find(p, path);
    assert_true(i >= 0);
    const real *g = cpl_parameter_gradient(p, (size_t)i);
    assert_non_null(g);
    return g;
}

/* The table's gradient is that of the projection, transposed, and those of the embeddings. */
static void compare_gradients(cpl_program *tied, cpl_program *plain, int all, int width)
{
    const real *sum = gradient(tied, all ? "encoder.embedding.kernel" : "decoder.embedding.kernel");
    const real *target = gradient(plain, "decoder.embedding.kernel");
    const real *kernel = gradient(plain, "decoder.output.kernel");
    const real *source = gradient(plain, "encoder.embedding.kernel");
    double largest = 0;
    for (int w = 0; w < WORDS; w++)
        for (int j = 0; j < width; j++) {
            double want = target[w * width + j] + kernel[j * WORDS + w] + (all ? source[w * width + j] : 0);
            largest = fmax(largest, fabs(want));
            if (!(fabs(want - sum[w * width + j]) <= 1e-5))
                fail_msg("word %d element %d: %g, of two tables %g", w, j, sum[w * width + j], want);
        }
    assert_true(largest > 0.01);
    const real *a = gradient(tied, "decoder.output.bias"), *b = gradient(plain, "decoder.output.bias");
    for (int w = 0; w < WORDS; w++)
        assert_true(fabs(a[w] - b[w]) <= 1e-5);
}

static void tied_is_two_equal_tables(void **state)
{
    static const struct {
        const char *sets[6]; /* the first is model.tie */
        int width;
    } models[] = {{{"model.tie=target"}, 6},
                  {{"model.tie=all"}, 6},
                  {{"model.tie=target", "model.decoder.attention.combine=tanh", "model.encoder.merge=concat"}, 6},
                  {{"model.tie=target", "model.decoder.attention.combine=concat", "model.embedding=12"}, 12},
                  {{"model.tie=all", "model.type=summarizer"}, 6},
                  {{"model.tie=target", "model.type=autoencoder", "model.bottleneck=3"}, 6}};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        int all = strcmp(models[i].sets[0], "model.tie=all") == 0, width = models[i].width;
        model_case a = case_of(models[i].sets), b = case_of(models[i].sets + 1);
        cpl_program *loss[2] = {compile_case(&a, a.kind->loss, 0), compile_case(&b, b.kind->loss, 0)};
        cpl_program *score[2] = {compile_case(&a, a.kind->score, 1), compile_case(&b, b.kind->score, 1)};
        float logits[2][COUNT * LONGEST * WORDS];
        assert_true(cpl_parameters_find(a.engine->parameters, "decoder.output.kernel") < 0);
        assert_int_equal(cpl_parameters_find(a.engine->parameters, "decoder.embedding.kernel") < 0, all);
        assert_int_equal(cpl_parameters_elements(b.engine->parameters) - cpl_parameters_elements(a.engine->parameters),
                         (1 + all) * WORDS * width);
        enliven(&a);
        copy_weights(&a, &b, all, width);
        if (all) /* the source's table too, which the shared one stands for */
            memcpy(value(&b, "encoder.embedding.kernel"), value(&a, "encoder.embedding.kernel"),
                   (size_t)(WORDS * width) * sizeof(real));
        read_logits(score[0], logits[0]), read_logits(score[1], logits[1]);
        for (int k = 0; k < COUNT * 5 * WORDS; k++)
            assert_true(fabs((double)logits[0][k] - (double)logits[1][k]) <= 1e-5);
        for (int k = 0; k < 2; k++) {
            feed_whole(loss[k]);
            MUST(cpl_run(loss[k], CPL_TRAIN, err));
        }
        assert_true(fabs(cpl_scalar(loss[0], "loss") - cpl_scalar(loss[1], "loss")) <= 1e-6);
        compare_gradients(loss[0], loss[1], all, width);
        for (int k = 0; k < 2; k++)
            cpl_program_free(loss[k]), cpl_program_free(score[k]);
        model_case_close(&a), model_case_close(&b);
    }
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

static void case_A08_an_embedding_of_another_width(void **state)
{
    (void)state;
    refuse(SETS("model.tie=target", "model.embedding=4"), "embedding=4 and units=6",
           "make both widths equal: leave model.embedding out, or set it to 6");
    refuse(SETS("model.tie=target", "model.decoder.attention.combine=concat"),
           "embedding=6 and what is projected, two concatenated parts, has 12 (units=6)",
           "set model.decoder.attention.combine to tanh");
    refuse(SETS("model.tie=target", "model.type=autoencoder"), "embeds its source alone", "set model.tie to all");
    refuse(SETS("model.tie=all", "model.type=autoencoder", "model.encoder.merge=concat"), "has 12 (units=6)", "");
}

static cpl_vocabulary *vocabulary(const char *words)
{
    cpl_vocabulary *v;
    cpl_json *json;
    char text[200];
    snprintf(text, sizeof text, "[\"\", \"[UNK]\", \"[START]\", \"[END]\", %s]", words);
    MUST(cpl_json_parse(&json, text, strlen(text), err));
    MUST(cpl_vocabulary_from_json(&v, json, err));
    cpl_json_free(json);
    return v;
}

static void case_A08_vocabularies_that_are_not_one(void **state)
{
    (void)state;
    cpl_config *c = configured(SETS("model.tie=all"));
    cpl_vocabulary *v[] = {vocabulary("\"a\", \"b\", \"c\""), vocabulary("\"a\", \"b\", \"c\", \"d\", \"e\""),
                           vocabulary("\"a\", \"x\", \"c\""), vocabulary("\"a\", \"b\", \"c\"")};
    cpl_error e = CPL_ERROR_INIT;
    assert_int_equal(cpl_model_check_tie(c, (cpl_model_vocabulary){v[0], "de.txt"},
                                         (cpl_model_vocabulary){v[1], "en.txt"}, &e), CPL_USAGE);
    assert_string_equal(e.line[0], "'model.tie' is all, which needs one joint vocabulary, but the source's (de.txt) "
                                     "has 7 entries and the target's (en.txt) 9");
    assert_non_null(strstr(e.hint, "sharing needs one joint vocabulary"));
    e = (cpl_error)CPL_ERROR_INIT;
    assert_int_equal(cpl_model_check_tie(c, (cpl_model_vocabulary){v[0], "de.txt"},
                                         (cpl_model_vocabulary){v[2], NULL}, &e), CPL_USAGE);
    assert_string_equal(e.line[0], "'model.tie' is all, which needs one joint vocabulary, but of the 7 entries of the "
                                     "source's (de.txt) and the target's (built from the training pairs) number 5 is "
                                     "'b' and 'x'");
    MUST(cpl_model_check_tie(c, (cpl_model_vocabulary){v[0], NULL}, (cpl_model_vocabulary){v[3], NULL}, err));
    MUST(cpl_config_set_pair(c, "model.tie=target", err));
    MUST(cpl_model_check_tie(c, (cpl_model_vocabulary){v[0], NULL}, (cpl_model_vocabulary){v[1], NULL}, err));
    for (int i = 0; i < 4; i++)
        cpl_vocabulary_free(v[i]);
    cpl_config_free(c);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(tied_is_two_equal_tables),
                                          cmocka_unit_test(case_A08_an_embedding_of_another_width),
                                          cmocka_unit_test(case_A08_vocabularies_that_are_not_one)};

CPL_TEST_MAIN(tests)
