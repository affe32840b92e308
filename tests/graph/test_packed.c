/* test_packed.c: weights that are packed for inference give the bits of plain ones, and what they hold can be told. */
#include "graph/translator_test.h"

enum { LOGITS = BATCH_MOST * (WIDTH_MOST - 1) * (VOCABULARY - 20) };

static int packed_count(const cpl_program *p)
{
    int n = 0;
    for (size_t i = 0; i < cpl_parameters_count(p->engine->parameters); i++)
        n += cpl_parameters_at(p->engine->parameters, i)->packed != NULL;
    return n;
}

static int64_t logits_of(cpl_program *p, int64_t batch, float *to)
{
    translator_feed(p, batch, WIDTH_MOST, 5);
    run(p, CPL_EVALUATE);
    return read_reals(p, "logits", to, LOGITS);
}

/* Few sentences, whose steps several threads share, and many; layers with other widths than the blocks of columns. */
static void packed_weights_give_the_same_bits(void **state)
{
    static const char *const cells[] = {"gru", "lstm", "gru_reset_before"};
    (void)state;
    float *plain = malloc(2 * LOGITS * sizeof *plain), *packed = malloc(2 * LOGITS * sizeof *packed);
    assert_true(plain && packed);
    for (int k = 0; k < 3; k++)
        for (int threads = 1; threads <= 3; threads++) {
            translator t = translator_open(k == 0 ? "108" : "100", "0");
            cpl_compile_options o = {.threads = threads, .inference = 1};
            MUST(cpl_config_set(t.config, "model.encoder.cell", cells[k], err));
            MUST(cpl_config_set(t.config, "model.decoder.cell", cells[k], err));
            cpl_program *p = compiled(cpl_translator.score, &t.sizes, &o);
            int64_t few = logits_of(p, 2, plain), all = logits_of(p, BATCH_MOST, plain + few);
            uint64_t elements = (uint64_t)cpl_parameters_elements(p->engine->parameters);
            assert_int_equal(packed_count(p), 0);
            MUST(cpl_parameters_pack_values(p->engine->parameters, err));
            assert_true(packed_count(p) >= 9);
            assert_true(cpl_parameters_bytes(p->engine->parameters) < elements * sizeof(real) / 2);
            logits_of(p, 2, packed);
            logits_of(p, BATCH_MOST, packed + few);
            assert_memory_equal(packed, plain, (size_t)(few + all) * sizeof *plain);
            cpl_program_free(p);
            translator_close(&t);
        }
    free(plain);
    free(packed);
}

/* Tables stay as they are: their rows are taken. */
static void tables_are_not_packed(void **state)
{
    (void)state;
    translator t = translator_open("32", "0");
    cpl_program *p = compiled(cpl_translator.score, &t.sizes, &(cpl_compile_options){.threads = 1, .inference = 1});
    MUST(cpl_parameters_pack_values(p->engine->parameters, err));
    assert_null(cpl_parameters_at(p->engine->parameters, parameter(p, "decoder.embedding.kernel"))->packed);
    assert_null(cpl_parameters_at(p->engine->parameters, parameter(p, "decoder.output.bias"))->packed);
    assert_non_null(cpl_parameters_at(p->engine->parameters, parameter(p, "decoder.output.kernel"))->packed);
    cpl_program_free(p);
    translator_close(&t);
}

static int64_t first_bad(const cpl_program *p, const char *path)
{
    double element = 0;
    int64_t at = cpl_parameters_not_finite(p->engine->parameters, parameter(p, path), &element);
    assert_true(at < 0 || !isfinite(element));
    return at;
}

/* The first in the order of the file, packed or not. */
static void numbers_that_are_not_finite_are_found(void **state)
{
    (void)state;
    translator t = translator_open("32", "0");
    cpl_program *p = compiled(cpl_translator.score, &t.sizes, &(cpl_compile_options){.threads = 1, .inference = 1});
    cpl_parameters *store = p->engine->parameters;
    real *kernel = cpl_parameters_value(store, parameter(p, "decoder.output.kernel"));
    real *bias = cpl_parameters_value(store, parameter(p, "decoder.output.bias"));
    kernel[3 * (VOCABULARY - 20) + 200] = kernel[5 * (VOCABULARY - 20) + 1] = (real)NAN;
    bias[17] = (real)INFINITY;
    for (int packed = 0; packed < 2; packed++) {
        assert_int_equal(first_bad(p, "decoder.output.kernel"), 3 * (VOCABULARY - 20) + 200);
        assert_int_equal(first_bad(p, "decoder.output.bias"), 17);
        assert_int_equal(first_bad(p, "encoder.embedding.kernel"), -1);
        assert_int_equal(first_bad(p, "decoder.rnn.kernel"), -1);
        MUST(cpl_parameters_pack_values(store, err));
    }
    cpl_program_free(p);
    translator_close(&t);
}

/* Training packs the recurrent kernels for the length of a walk, both ways; products in bfloat16 take them plain, and
 * so does who believes to have such. */
static void a_walk_with_packed_kernels_has_the_same_bits(void **state)
{
    static const char *const cells[] = {"gru", "lstm", "gru_reset_before"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        translator t = translator_open("42", "0.2");
        MUST(cpl_config_set(t.config, "model.encoder.cell", cells[k], err));
        MUST(cpl_config_set(t.config, "model.decoder.cell", cells[k], err));
        cpl_program *p = compiled(cpl_translator.loss, &t.sizes, &(cpl_compile_options){.threads = 2});
        translator_feed(p, BATCH_MOST, WIDTH_MOST, 7);
        run(p, CPL_TRAIN);
        size_t bytes = cpl_parameters_gradient_bytes(p->engine->parameters);
        float *packed = malloc(bytes);
        assert_non_null(packed);
        memcpy(packed, p->gradients, bytes);
        p->training.gemm_bf16 = p->training.gemm;
        p->step = 0;
        translator_feed(p, BATCH_MOST, WIDTH_MOST, 7);
        run(p, CPL_TRAIN);
        assert_memory_equal(p->gradients, packed, bytes);
        free(packed);
        cpl_program_free(p);
        translator_close(&t);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(packed_weights_give_the_same_bits),
    cmocka_unit_test(tables_are_not_packed),
    cmocka_unit_test(a_walk_with_packed_kernels_has_the_same_bits),
    cmocka_unit_test(numbers_that_are_not_finite_are_found),
};

CPL_TEST_MAIN(tests)
