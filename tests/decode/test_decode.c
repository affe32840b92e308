/* Decoding with a small translator of random weights: a row's result is its own, whatever stands around it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/hash.h"
#include "base/memory.h"
#include "decode/decode.h"
#include "text/text.h"

enum { SOURCE_SIZE = 50, TARGET_SIZE = 40, MOST = 60, SENTENCES = 4 };

typedef struct fixture {
    cpl_config *config;
    cpl_engine *engine;
    cpl_decoder *decoder;
} fixture;

static void must(cpl_status status, const cpl_error *err)
{
    if (status != CPL_OK)
        cpl_error_print(err, stderr);
    assert_int_equal(status, CPL_OK);
}

/* Weights large enough that outputs differ from source to source; the bias of END decides how long they get. */
static void spread(const cpl_engine *e, double end_bias)
{
    for (size_t i = 0; i < cpl_parameters_count(e->parameters); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(e->parameters, i);
        real *x = cpl_parameters_value(e->parameters, i);
        for (int64_t k = 0; strstr(info->path, "embedding") && k < info->elements; k++)
            x[k] *= 40;
        if (strcmp(info->path, "decoder.output.bias") == 0)
            x[CPL_ID_END] = (real)end_bias;
    }
}

static fixture make(const char *const *set, int sets, double end_bias)
{
    fixture f;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_config_default(&f.config, &err), &err);
    must(cpl_config_set_pair(f.config, "model.units=24", &err), &err);
    must(cpl_config_set_pair(f.config, "model.decoder.attention.heads=2", &err), &err);
    for (int i = 0; i < sets; i++)
        must(cpl_config_set_pair(f.config, set[i], &err), &err);
    cpl_model_sizes n = {.config = f.config, .source_vocabulary = SOURCE_SIZE, .target_vocabulary = TARGET_SIZE};
    must(cpl_engine_new(&f.engine, 2, 7, &err), &err);
    must(cpl_decoder_new(&f.decoder, &cpl_translator, &n, f.engine, &err), &err);
    spread(f.engine, end_bias);
    return f;
}

static void release(fixture *f)
{
    cpl_decoder_free(f->decoder);
    cpl_engine_release(f->engine);
    cpl_config_free(f->config);
}

static int32_t sentence[SENTENCES][64];
static const int64_t sentence_length[SENTENCES] = {3, 4, 7, 42}; /* of 1, 2, 5, 40 words */

static void make_sentences(void)
{
    for (int i = 0; i < SENTENCES; i++)
        for (int64_t k = 0; k < sentence_length[i]; k++)
            sentence[i][k] = k == 0 ? CPL_ID_START : k + 1 == sentence_length[i] ? CPL_ID_END :
                             (int32_t)(CPL_ID_WORDS + cpl_random_below(3, (uint64_t)(100 * i + k), SOURCE_SIZE - 4));
}

typedef struct answer {
    int32_t ids[MOST];
    int64_t length;
    double score;
    int finished;
} answer;

/* Decodes the sentences `which`, and keeps copies. */
static void decode_as(fixture *f, const int *which, int count, cpl_decode_batch b, answer *answers)
{
    const int32_t *rows[16];
    int64_t length[16], most[16], number[16];
    for (int i = 0; i < count; i++) {
        rows[i] = sentence[which[i]], length[i] = sentence_length[which[i]];
        most[i] = MOST, number[i] = which[i];
    }
    b.count = count, b.source = rows, b.length = length, b.most = most, b.number = number;
    b.forbidden = 1u << CPL_ID_PADDING | 1u << CPL_ID_START, b.seed = 11;
    const cpl_decoded *results;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_decode(f->decoder, &b, &results, &err), &err);
    for (int i = 0; i < count; i++) {
        answers[i] = (answer){.length = results[i].length, .score = results[i].score, .finished = results[i].finished};
        memcpy(answers[i].ids, results[i].ids, (size_t)results[i].length * sizeof(int32_t));
    }
}

static void decode(fixture *f, const int *which, int count, double temperature, answer *answers)
{
    decode_as(f, which, count, (cpl_decode_batch){.temperature = temperature}, answers);
}

static void expect_same(const answer *a, const answer *b)
{
    assert_int_equal(a->length, b->length);
    assert_int_equal(a->finished, b->finished);
    assert_memory_equal(a->ids, b->ids, (size_t)a->length * sizeof(int32_t));
    assert_true(fabs(a->score - b->score) < 1e-5);
}

static const char *const lstm[] = {"model.decoder.cell=lstm", "model.encoder.cell=lstm", "model.encoder.merge=concat"};
static const char *const before[] = {"model.decoder.cell=gru_reset_before", "model.encoder.direction=backward"};

static void check_groupings(const char *const *set, int sets, cpl_decode_batch b)
{
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}};
    fixture f = make(set, sets, 1);
    answer alone[SENTENCES], some[SENTENCES];
    int differ = 0;
    for (int i = 0; i < SENTENCES; i++)
        decode_as(&f, &i, 1, b, &alone[i]);
    for (int i = 1; i < SENTENCES; i++)
        differ |= alone[i].length != alone[0].length || alone[i].ids[0] != alone[0].ids[0];
    assert_true(differ); /* or the test would show nothing */
    for (int o = 0; o < 4; o++)
        for (int size = 1; size <= 4; size *= 2)
            for (int at = 0; at < SENTENCES; at += size) {
                decode_as(&f, &orders[o][at], size, b, some);
                for (int i = 0; i < size; i++)
                    expect_same(&some[i], &alone[orders[o][at + i]]);
            }
    release(&f);
}

static void case_F09_batch_equals_single(void **state)
{
    (void)state;
    check_groupings(NULL, 0, (cpl_decode_batch){.beam = 0});
    check_groupings(lstm, 3, (cpl_decode_batch){.beam = 0});
    check_groupings(before, 2, (cpl_decode_batch){.beam = 0});
}

static void case_F09_batch_equals_single_with_a_beam(void **state)
{
    (void)state;
    /* without a least length an untrained model's likeliest output has no word */
    const cpl_decode_batch plain = {.beam = 4, .rules = {.min_length = 4}};
    const cpl_decode_batch gnmt = {
        .beam = 4, .length_penalty = 1, .coverage_penalty = 0.2, .rules = {.min_length = 2}};
    check_groupings(NULL, 0, plain);
    check_groupings(lstm, 3, gnmt);
    check_groupings(before, 2, (cpl_decode_batch){.beam = 3, .rules = {.no_repeat = 2, .min_length = 3}});
}

/* Token for token, with scores, in one batch and alone. */
static void case_F03_beam_one_equals_greedy(void **state)
{
    (void)state;
    static const int all[] = {0, 1, 2, 3};
    for (int kind = 0; kind < 3; kind++) {
        fixture f = make(kind == 0 ? NULL : kind == 1 ? lstm : before, kind == 0 ? 0 : kind == 1 ? 3 : 2, 1);
        answer greedy[SENTENCES], beam[SENTENCES], wide[SENTENCES];
        decode(&f, all, SENTENCES, 0, greedy);
        decode_as(&f, all, SENTENCES, (cpl_decode_batch){.beam = 1, .length_penalty = 1}, beam);
        decode_as(&f, all, SENTENCES, (cpl_decode_batch){.beam = 5}, wide);
        for (int i = 0; i < SENTENCES; i++) {
            expect_same(&beam[i], &greedy[i]);
            assert_true(wide[i].score >= greedy[i].score - 1e-5 || wide[i].finished > greedy[i].finished);
        }
        release(&f);
    }
}

/* Draws depend on (seed, line, step), not on the batch. */
static void samples_do_not_depend_on_the_batch(void **state)
{
    (void)state;
    check_groupings(NULL, 0, (cpl_decode_batch){.temperature = 0.8});
}

/* The same ids, and NaN in the place of each score; a beam keeps its scores. */
static void who_wants_no_scores_gets_the_same_ids(void **state)
{
    (void)state;
    static const int all[] = {0, 1, 2, 3};
    static const cpl_decode_batch ways[] = {
        {.temperature = 0}, {.temperature = 0.8}, {.rules = {.min_length = 4, .no_repeat = 2}},
        {.temperature = 1, .rules = {.top_k = 5}}, {.beam = 3, .rules = {.min_length = 4}}};
    fixture f = make(NULL, 0, 1);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        cpl_decode_batch b = ways[w];
        answer with[SENTENCES], without[SENTENCES];
        decode_as(&f, all, SENTENCES, b, with);
        b.no_scores = 1;
        decode_as(&f, all, SENTENCES, b, without);
        for (int i = 0; i < SENTENCES; i++) {
            assert_true(with[i].score < 0);
            assert_true(b.beam ? without[i].score == with[i].score : isnan(without[i].score));
            assert_int_equal(without[i].length, with[i].length);
            assert_int_equal(without[i].finished, with[i].finished);
            assert_memory_equal(without[i].ids, with[i].ids, (size_t)with[i].length * sizeof(int32_t));
        }
    }
    release(&f);
}

static void case_F11_dropout_is_off(void **state)
{
    (void)state;
    static const char *const set[] = {"model.dropout=0.5"};
    fixture f = make(set, 1, 1);
    int which = 2;
    answer first, again;
    decode(&f, &which, 1, 0, &first);
    for (int i = 0; i < 20; i++) {
        decode(&f, &which, 1, 0, &again);
        expect_same(&again, &first);
        assert_true(again.score == first.score);
    }
    release(&f);
}

static void case_D10_no_state_survives_a_sentence(void **state)
{
    (void)state;
    int a = 3, b = 1;
    answer first, after, other;
    fixture f = make(lstm, 3, 1);
    decode(&f, &b, 1, 0, &first);
    release(&f);
    f = make(lstm, 3, 1);
    decode(&f, &a, 1, 0, &other);
    decode(&f, &b, 1, 0, &after);
    expect_same(&after, &first);
    release(&f);
}

/* The same ids and score as one pass over the whole output: what is carried from step to step is the whole state. */
static void case_D10_steps_agree_with_one_pass(void **state)
{
    (void)state;
    fixture f = make(lstm, 3, 1);
    cpl_model_sizes n = {.config = f.config, .source_vocabulary = SOURCE_SIZE, .target_vocabulary = TARGET_SIZE};
    cpl_program shared = {.engine = f.engine}, *score;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_compile(&score, cpl_translator.score, &n, &(cpl_compile_options){.share = &shared, .inference = 1}, &err),
         &err);
    for (int i = 0; i < SENTENCES; i++) {
        answer a;
        decode(&f, &i, 1, 0, &a);
        int32_t in[MOST + 1] = {CPL_ID_START}, out[MOST + 1];
        int64_t length = a.length + a.finished;
        memcpy(in + 1, a.ids, (size_t)a.length * sizeof *in);
        memcpy(out, a.ids, (size_t)a.length * sizeof *out);
        if (a.finished)
            out[a.length] = CPL_ID_END;
        const int32_t *source = sentence[i], *in_row = in, *out_row = out;
        must(cpl_feed_ids(score, "source", &source, &sentence_length[i], 1, &err), &err);
        must(cpl_feed_ids(score, "target_in", &in_row, &length, 1, &err), &err);
        must(cpl_feed_ids(score, "target_out", &out_row, &length, 1, &err), &err);
        must(cpl_run(score, CPL_EVALUATE, &err), &err);
        assert_true(fabs(a.score + cpl_scalar(score, "loss") * (double)length) < 1e-4);
    }
    cpl_program_free(score);
    release(&f);
}

static void case_J04_stops_when_all_rows_are_done(void **state)
{
    (void)state;
    static const int all[] = {0, 1, 2, 3};
    fixture f = make(NULL, 0, 2.2);
    answer a[SENTENCES];
    int64_t before_call = cpl_decoder_steps(f.decoder), longest = 0;
    decode(&f, all, SENTENCES, 0, a);
    for (int i = 0; i < SENTENCES; i++) {
        assert_int_equal(a[i].finished, 1);
        longest = a[i].length + 1 > longest ? a[i].length + 1 : longest;
    }
    assert_true(longest < MOST);
    assert_int_equal(cpl_decoder_steps(f.decoder) - before_call, longest);
    release(&f);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void case_J03_calls_leave_nothing_behind(void **state)
{
    (void)state;
    fixture f = make(NULL, 0, 1);
    static const int all[] = {0, 1, 2, 3};
    answer a[SENTENCES];
    for (int i = 0; i < 50; i++)
        decode(&f, all, SENTENCES, 0, a);
    uint64_t allocations = cpl_memory_allocations(), bytes = cpl_memory_live_bytes();
    int64_t plans = cpl_decoder_plans(f.decoder);
    double start = seconds(), early = 0, late = 0;
    for (int i = 0; i < 2000; i++) {
        int which = i % SENTENCES;
        decode(&f, &which, 1, 0, a);
        if (i == 499)
            early = seconds() - start;
        if (i == 1499)
            start = seconds();
    }
    late = seconds() - start;
    print_message("500 calls: %.3f s, the last 500: %.3f s, steps %lld\n", early, late,
                  (long long)cpl_decoder_steps(f.decoder));
    assert_int_equal(cpl_memory_allocations(), allocations);
    assert_int_equal(cpl_memory_live_bytes(), bytes);
    assert_int_equal(cpl_decoder_plans(f.decoder), plans);
    release(&f);
}

/* The memory of batch · beam rows is planned once. */
static void case_B05_a_beam_allocates_nothing_more(void **state)
{
    (void)state;
    fixture f = make(lstm, 3, 1);
    static const int all[] = {0, 1, 2, 3};
    const cpl_decode_batch b = {.beam = 4, .length_penalty = 1, .coverage_penalty = .1, .attention = 1};
    answer a[SENTENCES];
    decode_as(&f, all, SENTENCES, b, a);
    uint64_t allocations = cpl_memory_allocations();
    int64_t plans = cpl_decoder_plans(f.decoder);
    for (int i = 0; i < 50; i++) {
        int which = i % SENTENCES;
        decode_as(&f, &which, 1, b, a);
        decode_as(&f, all, SENTENCES, b, a);
    }
    assert_int_equal(cpl_memory_allocations(), allocations);
    assert_int_equal(cpl_decoder_plans(f.decoder), plans);
    release(&f);
}

/* Lengths 3 to 42 in batches of 1 to 4 need few plans. */
static void sizes_make_few_plans(void **state)
{
    (void)state;
    fixture f = make(NULL, 0, 3);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < SENTENCES; i++)
            for (int n = 1; n + i <= SENTENCES; n++) {
                static const int all[] = {0, 1, 2, 3};
                answer a[SENTENCES];
                decode(&f, &all[i], n, 0, a);
            }
    assert_true(cpl_decoder_plans(f.decoder) <= 16);
    release(&f);
}

int main(void)
{
    make_sentences();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_F09_batch_equals_single),
        cmocka_unit_test(case_F09_batch_equals_single_with_a_beam),
        cmocka_unit_test(case_F03_beam_one_equals_greedy),
        cmocka_unit_test(samples_do_not_depend_on_the_batch),
        cmocka_unit_test(who_wants_no_scores_gets_the_same_ids),
        cmocka_unit_test(case_F11_dropout_is_off),
        cmocka_unit_test(case_D10_no_state_survives_a_sentence),
        cmocka_unit_test(case_D10_steps_agree_with_one_pass),
        cmocka_unit_test(case_J04_stops_when_all_rows_are_done),
        cmocka_unit_test(case_J03_calls_leave_nothing_behind),
        cmocka_unit_test(case_B05_a_beam_allocates_nothing_more),
        cmocka_unit_test(sizes_make_few_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
