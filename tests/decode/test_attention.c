/* The attention that a decoding keeps is the one of a whole pass over the same output, and costs nothing once warm. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "decode/decode.h"
#include "text/text.h"

enum { SIZE = 30, HEADS = 2, COUNT = 3, MOST = 12 };

static const int32_t rows[COUNT][9] = {{CPL_ID_START, 7, 9, CPL_ID_END},
                                       {CPL_ID_START, 5, 6, 11, 20, 29, 4, 8, CPL_ID_END},
                                       {CPL_ID_START, 12, CPL_ID_END}};
static const int64_t lengths[COUNT] = {4, 9, 3};

typedef struct fixture {
    cpl_config *config;
    cpl_engine *engine;
    cpl_decoder *decoder;
    cpl_model_sizes sizes;
} fixture;

static void must(cpl_status status, const cpl_error *err)
{
    if (status != CPL_OK)
        cpl_error_print(err, stderr);
    assert_int_equal(status, CPL_OK);
}

/* Random weights, with embeddings large enough that the attention is not even. */
static void make(fixture *f)
{
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_config_default(&f->config, &err), &err);
    must(cpl_config_set_pair(f->config, "model.units=16", &err), &err);
    must(cpl_config_set_pair(f->config, "model.decoder.attention.heads=2", &err), &err);
    f->sizes = (cpl_model_sizes){.config = f->config, .source_vocabulary = SIZE, .target_vocabulary = SIZE};
    must(cpl_engine_new(&f->engine, 2, 3, &err), &err);
    must(cpl_decoder_new(&f->decoder, &cpl_translator, &f->sizes, f->engine, &err), &err);
    for (size_t i = 0; i < cpl_parameters_count(f->engine->parameters); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(f->engine->parameters, i);
        for (int64_t k = 0; strstr(info->path, "embedding") && k < info->elements; k++)
            cpl_parameters_value(f->engine->parameters, i)[k] *= 40;
    }
}

static void release(fixture *f)
{
    cpl_decoder_free(f->decoder);
    cpl_engine_release(f->engine);
    cpl_config_free(f->config);
}

static const cpl_decoded *decode(fixture *f, int first, int count, int attention)
{
    const int32_t *source[COUNT];
    int64_t most[COUNT];
    const cpl_decoded *results;
    cpl_error err = CPL_ERROR_INIT;
    for (int i = 0; i < count; i++)
        source[i] = rows[first + i], most[i] = MOST - 4 * i;
    cpl_decode_batch b = {.count = count, .source = source, .length = lengths + first, .most = most,
                          .attention = attention};
    must(cpl_decode(f->decoder, &b, &results, &err), &err);
    return results;
}

/* weights of a pass over [START] and the output: [heads 1 t s]. */
static void whole_pass(cpl_program *score, int row, const cpl_decoded *r, float *weights)
{
    int32_t in[MOST + 1] = {CPL_ID_START}, out[MOST + 1] = {0};
    int64_t n = r->length + r->finished, shape[6];
    int rank;
    cpl_error err = CPL_ERROR_INIT;
    memcpy(in + 1, r->ids, (size_t)r->length * sizeof *in);
    memcpy(out, r->ids, (size_t)r->length * sizeof *out);
    if (r->finished)
        out[r->length] = CPL_ID_END;
    const int32_t *source = rows[row], *in_row = in, *out_row = out;
    must(cpl_feed_ids(score, "source", &source, &lengths[row], 1, &err), &err);
    must(cpl_feed_ids(score, "target_in", &in_row, &n, 1, &err), &err);
    must(cpl_feed_ids(score, "target_out", &out_row, &n, 1, &err), &err);
    must(cpl_run(score, CPL_EVALUATE, &err), &err);
    must(cpl_read(score, "weights", weights, HEADS * (MOST + 1) * 9, shape, &rank, &err), &err);
    assert_int_equal(rank, 4);
    assert_int_equal(shape[0], HEADS);
    assert_int_equal(shape[2], n);
    assert_int_equal(shape[3], lengths[row]);
}

static void is_the_mean_over_the_heads_of_a_whole_pass(void **state)
{
    (void)state;
    fixture f;
    cpl_program *score;
    cpl_error err = CPL_ERROR_INIT;
    float weights[HEADS * (MOST + 1) * 9];
    make(&f);
    cpl_program shared = {.engine = f.engine};
    must(cpl_compile(&score, cpl_translator.score, &f.sizes,
                     &(cpl_compile_options){.share = &shared, .inference = 1}, &err), &err);
    const cpl_decoded *r = decode(&f, 0, COUNT, 1);
    float uneven = 0;
    for (int i = 0; i < COUNT; i++) {
        int64_t n = r[i].length + r[i].finished, s = lengths[i];
        assert_int_equal(r[i].source_length, s);
        assert_true(n > 0);
        whole_pass(score, i, &r[i], weights);
        for (int64_t t = 0; t < n; t++) {
            double sum = 0;
            for (int64_t k = 0; k < s; k++) {
                float mean = (weights[t * s + k] + weights[(n + t) * s + k]) / 2, x = r[i].attention[t * s + k];
                assert_true(fabsf(mean - x) < 1e-5F);
                uneven = fmaxf(uneven, fabsf(x - 1 / (float)s));
                sum += (double)x;
            }
            assert_true(fabs(sum - 1) < 1e-5);
        }
    }
    assert_true(uneven > 0.02F); /* or the order of the weights would not have been seen */
    cpl_program_free(score);
    release(&f);
}

static void is_kept_only_when_asked_for(void **state)
{
    (void)state;
    fixture f;
    make(&f);
    assert_non_null(decode(&f, 0, 1, 1)[0].attention);
    assert_null(decode(&f, 0, 1, 0)[0].attention);
    release(&f);
}

static void allocates_nothing_once_warm(void **state)
{
    (void)state;
    fixture f;
    make(&f);
    for (int i = 0; i < 3; i++) /* every sentence in every place */
        for (int first = 0; first < COUNT; first++)
            for (int count = 1; first + count <= COUNT; count++)
                decode(&f, first, count, 1);
    uint64_t allocations = cpl_memory_allocations();
    for (int i = 0; i < 50; i++)
        for (int first = 0; first < COUNT; first++)
            decode(&f, first, COUNT - first, 1);
    assert_int_equal(cpl_memory_allocations(), allocations);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_mean_over_the_heads_of_a_whole_pass),
        cmocka_unit_test(is_kept_only_when_asked_for),
        cmocka_unit_test(allocates_nothing_once_warm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
