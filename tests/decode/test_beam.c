/* Beam search and the rules with Markov tables: every output and score is known by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "decode/table.h"

/* The tables of the cases. */
static const double f01[WORDS][WORDS] = {[START] = {[END] = .4, [A] = .6}, [A] = {[END] = .4, [A] = .6}};
static const double f03[WORDS][WORDS] = {[START] = {[A] = .6, [B] = .4}, [A] = {[C] = .35, [D] = .33, [UNK] = .32},
                                         [B] = {[C] = .9, [D] = .1}, [C] = {[END] = 1}, [D] = {[END] = 1},
                                         [UNK] = {[END] = 1}};
static const double f04[WORDS][WORDS] = {[START] = {[END] = .45, [A] = .55}, [A] = {[B] = 1},
                                         [B] = {[END] = .95, [A] = .05}};
static const double f08[WORDS][WORDS] = {[START] = {[A] = .9, [END] = .1}, [A] = {[B] = .8, [END] = .2},
                                         [B] = {[A] = .7, [END] = .3}};

/* One row with the source A. b holds what is special. */
static const cpl_decoded *search(fixture *f, cpl_decode_batch b, int64_t most)
{
    static const int32_t source = A, *const row = &source;
    static const int64_t length = 1;
    static int64_t limit;
    const cpl_decoded *r;
    cpl_error err = CPL_ERROR_INIT;
    limit = most;
    b.count = 1, b.source = &row, b.length = &length, b.most = &limit;
    if (cpl_decode(f->decoder, &b, &r, &err) != CPL_OK)
        cpl_error_print(&err, stderr);
    assert_non_null(r);
    return r;
}

/* ids: as letters, "AB" */
static void expect(const cpl_decoded *r, const char *ids, int finished, double score)
{
    assert_int_equal(r->length, strlen(ids));
    for (int64_t k = 0; k < r->length; k++)
        assert_int_equal(r->ids[k], A + ids[k] - 'A');
    assert_int_equal(r->finished, finished);
    assert_true(fabs(r->score - score) < 1e-5);
}

static void case_F02_length_penalty_changes_the_winner(void **state)
{
    (void)state;
    fixture f = make(f01);
    const cpl_decoded *r = search(&f, (cpl_decode_batch){.beam = 2, .nbest = 2}, 3);
    assert_int_equal(r->nbest_count, 2);
    expect(&r->nbest[0], "", 1, -.916291);
    expect(&r->nbest[1], "A", 1, -1.427116);
    r = search(&f, (cpl_decode_batch){.beam = 2, .nbest = 2, .length_penalty = 1, .plain_penalty = 1}, 3);
    expect(&r->nbest[0], "AAA", 1, -2.448768);
    assert_true(fabs(r->ranked - -.612192) < 1e-5);
    expect(&r->nbest[1], "AA", 1, -1.937942);
    assert_true(fabs(r->nbest[1].ranked - -.645981) < 1e-5);
    r = search(&f, (cpl_decode_batch){.beam = 2, .nbest = 2, .length_penalty = .6}, 3);
    expect(&r->nbest[0], "", 1, -.916291);
    assert_true(fabs(r->ranked - -.916291) < 1e-5);
    expect(&r->nbest[1], "A", 1, -1.427116);
    assert_true(fabs(r->nbest[1].ranked - -1.301042) < 1e-5);
    release(&f);
}

/* Without END in reach there are only cut outputs; with it they stand last. */
static void case_F02_cut_outputs_come_last(void **state)
{
    (void)state;
    fixture f = make(f01);
    const cpl_decoded *r = search(&f, (cpl_decode_batch){.beam = 4, .nbest = 4}, 2);
    assert_int_equal(r->nbest_count, 4);
    expect(&r->nbest[2], "AA", 1, log(.6 * .6 * .4));
    expect(&r->nbest[3], "AA", 0, log(.6 * .6)); /* more probable, but not an output that ended */
    release(&f);
}

static void case_F01_beam_one_is_greedy(void **state)
{
    (void)state;
    fixture f = make(f01);
    expect(search(&f, (cpl_decode_batch){.beam = 1}, 5), "AAAAA", 0, 5 * log(.6));
    release(&f);
}

static void case_F03_beam_beats_greedy(void **state)
{
    (void)state;
    fixture f = make(f03);
    expect(search(&f, (cpl_decode_batch){.beam = 0}, 9), "AC", 1, log(.21));
    expect(search(&f, (cpl_decode_batch){.beam = 1}, 9), "AC", 1, log(.21));
    const cpl_decoded *r = search(&f, (cpl_decode_batch){.beam = 2, .nbest = 2}, 9);
    assert_int_equal(r->nbest_count, 2);
    expect(&r->nbest[0], "BC", 1, -1.021651);
    expect(&r->nbest[1], "AC", 1, -1.560648);
    release(&f);
}

static void case_F04_does_not_stop_at_the_first_end(void **state)
{
    (void)state;
    fixture f = make(f04);
    for (int plain = 0; plain < 2; plain++)
        for (int penalty = 0; penalty < 2; penalty++)
            expect(search(&f, (cpl_decode_batch){.beam = 2, .length_penalty = penalty, .plain_penalty = plain}, 20),
                   "AB", 1, -.649130);
    assert_true(cpl_decoder_steps(f.decoder) <= 4 * 21);
    release(&f);
}

/* Without a penalty nothing can win once the best path is below the best output: END at −0.916 against A A at −1.02. */
static void the_search_stops_when_nothing_can_win(void **state)
{
    (void)state;
    fixture f = make(f01);
    search(&f, (cpl_decode_batch){.beam = 2}, 500);
    assert_int_equal(cpl_decoder_steps(f.decoder), 2);
    release(&f);
}

static void case_F05_beam_larger_than_the_vocabulary(void **state)
{
    (void)state;
    fixture f = make(f04);
    const cpl_decoded *r = search(&f, (cpl_decode_batch){.beam = 10, .nbest = 10}, 4);
    assert_int_equal(r->nbest_count, 4); /* END, A B END, A B A B END, and A B A B cut */
    for (int64_t k = 0; k < r->nbest_count; k++) {
        assert_true(r->nbest[k].score > -20);
        for (int64_t i = 0; i < r->nbest[k].length; i++)
            assert_true(r->nbest[k].ids[i] == A || r->nbest[k].ids[i] == B);
    }
    expect(&r->nbest[2], "ABAB", 1, log(.55 * .05 * .95));
    expect(&r->nbest[3], "ABAB", 0, log(.55 * .05));
    release(&f);
}

static void case_F06_ties_go_to_the_lowest_id(void **state)
{
    (void)state;
    static const double p[WORDS][WORDS] = {[START] = {[A] = .25, [B] = .25, [C] = .25, [D] = .25}, [A] = {[END] = 1},
                                           [B] = {[END] = 1}, [C] = {[END] = 1}, [D] = {[END] = 1}};
    fixture f = make(p);
    const cpl_decoded *r = search(&f, (cpl_decode_batch){.beam = 3, .nbest = 3}, 9);
    assert_int_equal(r->nbest_count, 3);
    expect(&r->nbest[0], "A", 1, log(.25));
    expect(&r->nbest[1], "B", 1, log(.25));
    expect(&r->nbest[2], "C", 1, log(.25));
    release(&f);
}

static void case_F08_no_repeated_bigram(void **state)
{
    (void)state;
    fixture f = make(f08);
    cpl_decode_rules rules = {.no_repeat = 2};
    expect(search(&f, (cpl_decode_batch){.beam = 0}, 6), "ABABAB", 0, 3 * log(.8) + log(.9) + 2 * log(.7));
    expect(search(&f, (cpl_decode_batch){.rules = rules}, 6), "ABA", 1, log(.9 * .8 * .7 * .2));
    expect(search(&f, (cpl_decode_batch){.beam = 1, .rules = rules}, 6), "ABA", 1, log(.9 * .8 * .7 * .2));
    rules.no_repeat = 1; /* A B, then only END is left */
    expect(search(&f, (cpl_decode_batch){.rules = rules}, 6), "AB", 1, log(.9 * .8 * .3));
    release(&f);
}

static void case_F10_end_at_once_is_an_output(void **state)
{
    (void)state;
    static const double p[WORDS][WORDS] = {[START] = {[END] = .9, [A] = .1}, [A] = {[END] = 1}};
    fixture f = make(p);
    expect(search(&f, (cpl_decode_batch){.beam = 3}, 9), "", 1, log(.9));
    expect(search(&f, (cpl_decode_batch){.beam = 3}, 0), "", 1, log(.9));
    release(&f);
}

static void rules_decide_what_an_output_looks_like(void **state)
{
    (void)state;
    static const int32_t a = A, c = C, b[2] = {B, B};
    fixture f = make(f01);
    for (int64_t beam = 0; beam < 3; beam++)
        expect(search(&f, (cpl_decode_batch){.beam = beam, .rules = {.forbidden = &a, .forbidden_count = 1}}, 9), "", 1,
               log(.4));
    expect(search(&f, (cpl_decode_batch){.beam = 2, .rules = {.min_length = 2}}, 9), "AA", 1, log(.6 * .6 * .4));
    release(&f);
    f = make(f03);
    for (int64_t beam = 0; beam < 3; beam++) {
        expect(search(&f, (cpl_decode_batch){.beam = beam, .rules = {.prefix = b, .prefix_count = 1}}, 9), "BC", 1,
               log(.36));
        expect(search(&f, (cpl_decode_batch){.beam = beam, .rules = {.forbidden = &c, .forbidden_count = 1}}, 9), "AD",
               1, log(.6 * .33));
    }
    release(&f);
    f = make(f04); /* END is likeliest behind A B: there the two missing tokens come first, then END */
    const cpl_decoded *r = search(&f, (cpl_decode_batch){.rules = {.forced = b, .forced_count = 2}}, 9);
    assert_int_equal(r->finished, 1);
    int count = 0;
    for (int64_t k = 0; k < r->length; k++)
        count += r->ids[k] == B;
    assert_int_equal(count, 2);
    release(&f);
}

static void samples_stay_within_top_k_and_top_p(void **state)
{
    (void)state;
    static const double p[WORDS][WORDS] = {[START] = {[A] = .1, [B] = .4, [C] = .2, [D] = .3}, [A] = {[END] = 1},
                                           [B] = {[END] = 1}, [C] = {[END] = 1}, [D] = {[END] = 1}};
    static const cpl_decode_rules rules[] = {{.top_k = 2}, {.top_p = .65}, {.top_k = 3}, {.top_p = .75}};
    const int bd = 1 << B | 1 << D, expected[] = {bd, bd, bd | 1 << C, bd | 1 << C};
    fixture f = make(p);
    for (int i = 0; i < 4; i++) {
        int seen = 0;
        for (uint64_t seed = 0; seed < 200; seed++) {
            const cpl_decoded *r = search(&f, (cpl_decode_batch){.temperature = 1, .seed = seed, .rules = rules[i]}, 3);
            seen |= 1 << r->ids[0];
            assert_true(fabs(r->score - log(p[START][r->ids[0]])) < 1e-5); /* the model's, not the mask's */
        }
        assert_int_equal(seen, expected[i]);
    }
    release(&f);
}

/* All weights lie on the only source word, so that its sum reaches 1 with the first token. */
static void coverage_counts_what_was_looked_at(void **state)
{
    (void)state;
    fixture f = make(f03);
    const cpl_decoded *r = search(&f, (cpl_decode_batch){.beam = 2, .coverage_penalty = 5, .attention = 1}, 9);
    expect(r, "BC", 1, log(.36));
    assert_true(fabs(r->ranked - r->score) < 1e-6);
    for (int k = 0; k < 3; k++)
        assert_true(fabs((double)r->attention[k] - 1) < 1e-6);
    release(&f);
    cpl_decode_batch b = {.coverage_penalty = .5, .length_penalty = 2, .plain_penalty = 1};
    assert_true(fabs(cpl_decode_rank(&b, -8, 2, log(.5) + log(.25)) - (-2 + .5 * log(.125))) < 1e-12);
}

static void case_F07_nan_stops_its_row_alone(void **state)
{
    (void)state;
    static const double p[WORDS][WORDS] = {[START] = {[A] = 1}, [A] = {[END] = 1}};
    static const int32_t sources[] = {A, B, A}, *const rows[] = {&sources[0], &sources[1], &sources[2]};
    static const int64_t length[] = {1, 1, 1}, most[] = {9, 9, 9};
    fixture f = make(p);
    parameter(f.engine, "begin.kernel")[B * WORDS + C] = NAN;
    cpl_error err = CPL_ERROR_INIT;
    const cpl_decoded *r;
    cpl_decode_batch b = {.count = 3, .source = rows, .length = length, .most = most, .beam = 3};
    assert_int_equal(cpl_decode(f.decoder, &b, &r, &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], "row 1, step 1"));
    assert_int_equal(r[1].failed, 1);
    assert_int_equal(r[1].nbest_count, 0);
    expect(&r[0], "A", 1, 0);
    expect(&r[2], "A", 1, 0);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_F01_beam_one_is_greedy),
        cmocka_unit_test(case_F02_length_penalty_changes_the_winner),
        cmocka_unit_test(case_F02_cut_outputs_come_last),
        cmocka_unit_test(case_F03_beam_beats_greedy),
        cmocka_unit_test(case_F04_does_not_stop_at_the_first_end),
        cmocka_unit_test(the_search_stops_when_nothing_can_win),
        cmocka_unit_test(case_F05_beam_larger_than_the_vocabulary),
        cmocka_unit_test(case_F06_ties_go_to_the_lowest_id),
        cmocka_unit_test(case_F07_nan_stops_its_row_alone),
        cmocka_unit_test(case_F08_no_repeated_bigram),
        cmocka_unit_test(case_F10_end_at_once_is_an_output),
        cmocka_unit_test(rules_decide_what_an_output_looks_like),
        cmocka_unit_test(samples_stay_within_top_k_and_top_p),
        cmocka_unit_test(coverage_counts_what_was_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
