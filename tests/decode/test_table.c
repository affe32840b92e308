/* Decoding with Markov tables: the next token depends on the last one alone, so that every output and score is known
 * by hand. The source only decides how a row begins. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "decode/table.h"

static const cpl_decoded *decode(fixture *f, const int32_t *sources, int64_t count, int64_t most, cpl_error *err)
{
    const int32_t *rows[16];
    int64_t length[16], limit[16];
    for (int64_t i = 0; i < count; i++)
        rows[i] = &sources[i], length[i] = 1, limit[i] = most;
    cpl_decode_batch b = {.count = count, .source = rows, .length = length, .most = limit};
    const cpl_decoded *results;
    cpl_decode(f->decoder, &b, &results, err);
    return results;
}

static void case_F01_never_ends(void **state)
{
    (void)state;
    static const double p[WORDS][WORDS] = {[START] = {[END] = 0.4, [A] = 0.6}, [A] = {[END] = 0.4, [A] = 0.6}};
    fixture f = make(p);
    const int32_t source = A;
    const cpl_decoded *r = decode(&f, &source, 1, 5, NULL);
    assert_non_null(r);
    assert_int_equal(r->length, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(r->ids[i], A);
    assert_int_equal(r->finished, 0);
    assert_true(fabs(r->score - -2.554128) < 1e-5);
    assert_true(cpl_decoder_steps(f.decoder) <= 6); /* one more than tokens: END may still come */
    release(&f);
}

/* END after exactly `most` tokens is no cut. */
static void the_limit_does_not_count_end(void **state)
{
    (void)state;
    static const double p[WORDS][WORDS] = {[START] = {[A] = 1}, [A] = {[B] = 1}, [B] = {[END] = 1}};
    fixture f = make(p);
    const int32_t source = A;
    const cpl_decoded *r = decode(&f, &source, 1, 2, NULL);
    assert_int_equal(r->length, 2);
    assert_int_equal(r->finished, 1);
    r = decode(&f, &source, 1, 1, NULL);
    assert_int_equal(r->length, 1);
    assert_int_equal(r->finished, 0);
    r = decode(&f, &source, 1, 0, NULL);
    assert_int_equal(r->length, 0);
    assert_int_equal(r->finished, 0);
    release(&f);
}

static void case_F03_greedy_takes_the_first_step_that_looks_best(void **state)
{
    (void)state;
    static const double p[WORDS][WORDS] = {[START] = {[A] = .6, [B] = .4}, [A] = {[C] = .35, [D] = .33, [UNK] = .32},
                                           [B] = {[C] = .9, [D] = .1}, [C] = {[END] = 1}, [D] = {[END] = 1}};
    fixture f = make(p);
    const int32_t source = A;
    const cpl_decoded *r = decode(&f, &source, 1, 9, NULL);
    assert_int_equal(r->length, 2);
    assert_int_equal(r->ids[0], A);
    assert_int_equal(r->ids[1], C);
    assert_true(fabs(r->score - log(.21)) < 1e-5);
    release(&f);
}

/* x END against p q r END: A END / B C D END. Whatever would follow END never shows. */
static void case_F10_done_rows_stay_done(void **state)
{
    (void)state;
    static const double p[WORDS][WORDS] = {[START] = {[A] = .5, [B] = .5}, [A] = {[END] = .9, [A] = .1},
                                           [B] = {[C] = .8, [END] = .2}, [C] = {[D] = .8, [END] = .2},
                                           [D] = {[END] = .8, [D] = .2}, [END] = {[C] = 1}};
    fixture f = make(p);
    real *begin = parameter(f.engine, "begin.kernel");
    begin[A * WORDS + A] = 0.1f;
    begin[B * WORDS + B] = 0.1f;
    begin[C * WORDS + END] = 1e9f; /* END at once */
    const int32_t sources[] = {A, B, C};
    const cpl_decoded *r = decode(&f, sources, 3, 500, NULL);
    assert_int_equal(cpl_decoder_steps(f.decoder), 4); /* not 500 */
    assert_int_equal(r[0].length, 1);
    assert_int_equal(r[0].ids[0], A);
    double tilt = exp(0.1), first = log(tilt / (1 + tilt));
    double second = log(.9 / (.9 + .1 * tilt)); /* the source's word keeps its 0.1 in every step */
    assert_true(fabs(r[0].score - (first + second)) < 1e-5);
    assert_int_equal(r[1].length, 3);
    assert_int_equal(r[1].ids[0], B);
    assert_int_equal(r[1].ids[1], C);
    assert_int_equal(r[1].ids[2], D);
    assert_int_equal(r[2].length, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(r[i].finished, 1);
    release(&f);
}

/* Rows that end after 6, 5, 4 and 3 steps: 6 steps are run of 500, and each row is what it is alone. */
static void case_J04_six_steps_of_five_hundred(void **state)
{
    (void)state;
    static const double p[WORDS][WORDS] = {[START] = {[UNK] = .25, [A] = .25, [B] = .25, [C] = .25}, [UNK] = {[A] = 1},
                                           [A] = {[B] = 1}, [B] = {[C] = 1}, [C] = {[D] = 1}, [D] = {[END] = 1},
                                           [END] = {[A] = 1}};
    static const int32_t sources[] = {UNK, A, B, C}, words[] = {UNK, A, B, C, D};
    fixture f = make(p);
    real *begin = parameter(f.engine, "begin.kernel");
    for (int i = 0; i < 4; i++)
        begin[sources[i] * WORDS + sources[i]] = 1;
    double alone[4];
    for (int i = 0; i < 4; i++) {
        int64_t before = cpl_decoder_steps(f.decoder);
        const cpl_decoded *r = decode(&f, &sources[i], 1, 500, NULL);
        assert_int_equal(cpl_decoder_steps(f.decoder) - before, 6 - i);
        alone[i] = r->score;
    }
    int64_t before = cpl_decoder_steps(f.decoder);
    const cpl_decoded *r = decode(&f, sources, 4, 500, NULL);
    assert_int_equal(cpl_decoder_steps(f.decoder) - before, 6);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(r[i].finished, 1);
        assert_int_equal(r[i].length, 5 - i);
        for (int64_t k = 0; k < r[i].length; k++)
            assert_int_equal(r[i].ids[k], words[i + k]);
        assert_true(r[i].score == alone[i]);
    }
    release(&f);
}

/* Row 1's source gives NaN; the others are answered, and the error names row, step and the parameter. */
static void case_F07_nan_stops_its_row_alone(void **state)
{
    (void)state;
    static const double p[WORDS][WORDS] = {[START] = {[A] = 1}, [A] = {[END] = 1}};
    fixture f = make(p);
    parameter(f.engine, "begin.kernel")[B * WORDS + C] = NAN;
    const int32_t sources[] = {A, B, A};
    cpl_error err = CPL_ERROR_INIT;
    const cpl_decoded *r = decode(&f, sources, 3, 9, &err);
    assert_non_null(r);
    assert_int_equal(err.status, CPL_FAILED);
    assert_non_null(strstr(err.line[0], "row 1, step 1"));
    assert_non_null(strstr(err.line[0], "'begin.kernel'"));
    assert_int_equal(r[1].failed, 1);
    assert_int_equal(r[1].length, 0);
    assert_int_equal(r[1].finished, 0);
    for (int i = 0; i < 3; i += 2) {
        assert_int_equal(r[i].failed, 0);
        assert_int_equal(r[i].length, 1);
        assert_int_equal(r[i].finished, 1);
    }
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_F01_never_ends),
        cmocka_unit_test(the_limit_does_not_count_end),
        cmocka_unit_test(case_F03_greedy_takes_the_first_step_that_looks_best),
        cmocka_unit_test(case_F10_done_rows_stay_done),
        cmocka_unit_test(case_J04_six_steps_of_five_hundred),
        cmocka_unit_test(case_F07_nan_stops_its_row_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
