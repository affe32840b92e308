/* Models that decide together: probabilities averaged by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"
#include "decode/table.h"

/* Mean after START: A .4, B .6; after A: END 1; after B: END .7, C .3. */
static const double first[WORDS][WORDS] = {[START] = {[A] = .6, [B] = .4}, [A] = {[END] = 1},
                                           [B] = {[END] = .9, [C] = .1}, [C] = {[END] = 1}};
static const double second[WORDS][WORDS] = {[START] = {[A] = .2, [B] = .8}, [A] = {[END] = 1},
                                            [B] = {[END] = .5, [C] = .5}, [C] = {[END] = 1}};
/* All that the mean of three has besides comes from the third alone. */
static const double third[WORDS][WORDS] = {[START] = {[D] = 1}, [D] = {[A] = .5, [END] = .5}, [A] = {[D] = 1},
                                           [B] = {[B] = 1}, [C] = {[END] = 1}};

static const int32_t ONE[] = {A}, TWO[] = {B, C}, *const SHORT[] = {ONE, ONE}, *const LONG[] = {TWO, TWO};
static const int64_t ONES[] = {1, 1}, TWOS[] = {2, 2}, MOST[] = {5, 5};

static cpl_decode_batch batch_of(const cpl_decode_source *more, int64_t beam)
{
    return (cpl_decode_batch){.count = 2, .source = SHORT, .length = ONES, .most = MOST, .more = more, .beam = beam,
                              .nbest = beam};
}

static const cpl_decoded *decode(fixture *f, const cpl_decode_batch *b)
{
    const cpl_decoded *rows;
    cpl_error err = CPL_ERROR_INIT;
    if (cpl_decode(f->decoder, b, &rows, &err) != CPL_OK)
        cpl_error_print(&err, stderr);
    assert_non_null(rows);
    return rows;
}

static int says(const cpl_error *err, const char *text)
{
    int found = 0;
    for (int i = 0; i < err->lines; i++)
        found |= strstr(err->line[i], text) != NULL;
    return found;
}

/* ids: as letters. */
static void expect(const cpl_decoded *r, const char *ids, double probability)
{
    assert_int_equal(r->length, strlen(ids));
    for (int64_t k = 0; k < r->length; k++)
        assert_int_equal(r->ids[k], A + ids[k] - 'A');
    if (!(fabs(r->score - log(probability)) < 1e-6))
        fail_msg("'%s' has %.9g, expected %.9g", ids, r->score, log(probability));
}

static void probabilities_are_averaged(void **state)
{
    (void)state;
    fixture f = make(first), g = make(second), h = make(third);
    const cpl_decode_source more[] = {{LONG, TWOS}, {SHORT, ONES}}; /* a model may read its own, longer sources */
    cpl_decode_batch greedy = batch_of(more, 0), beam = batch_of(more, 3);
    assert_int_equal(cpl_decoder_join(f.decoder, (cpl_decoder *[]){g.decoder}, 1, NULL), CPL_OK);
    for (int i = 0; i < 2; i++) {
        expect(&decode(&f, &greedy)[i], "B", .6 * .7);
        const cpl_decoded *r = &decode(&f, &beam)[i];
        assert_int_equal(r->nbest_count, 3);
        expect(&r->nbest[0], "B", .6 * .7);
        expect(&r->nbest[1], "A", .4);
        expect(&r->nbest[2], "BC", .6 * .3);
    }
    /* Three: A .8/3, B 1.2/3, D 1/3; after B: B 1/3, END 1.4/3, C .6/3; after D: [the first two are uniform there] */
    assert_int_equal(cpl_decoder_join(f.decoder, (cpl_decoder *[]){g.decoder, h.decoder}, 2, NULL), CPL_OK);
    for (int i = 0; i < 2; i++)
        expect(&decode(&f, &greedy)[i], "B", 1.2 / 3 * 1.4 / 3);
    /* And back to one. */
    assert_int_equal(cpl_decoder_join(f.decoder, NULL, 0, NULL), CPL_OK);
    expect(&decode(&f, &greedy)[0], "A", .6);
    release(&f);
    release(&g);
    release(&h);
}

/* A rule may force what no model believes in: its logarithm is not −∞. */
static void what_is_forced_keeps_its_logarithm(void **state)
{
    (void)state;
    static const int32_t prefix[] = {A};
    double table[WORDS][WORDS] = {[START] = {[A] = 1e-44, [B] = 1}, [A] = {[END] = 1}, [B] = {[END] = 1}};
    fixture f = make(table), g = make(table);
    const cpl_decode_source more[] = {{SHORT, ONES}};
    cpl_decode_batch b = batch_of(more, 0);
    b.rules.prefix = prefix, b.rules.prefix_count = 1;
    assert_int_equal(cpl_decoder_join(f.decoder, (cpl_decoder *[]){g.decoder}, 1, NULL), CPL_OK);
    const cpl_decoded *r = decode(&f, &b);
    assert_int_equal(r->length, 1);
    assert_true(fabs(r->score - log(1e-44)) < 1e-4);
    release(&f);
    release(&g);
}

static void attention_is_the_mean(void **state)
{
    (void)state;
    fixture f = make(first), g = make(second);
    static const double keys[2][2] = {{0, 2}, {1, 0}};
    const cpl_decode_source more[] = {{LONG, TWOS}}, other[] = {{SHORT, ONES}};
    fixture *const both[] = {&f, &g};
    cpl_error err = CPL_ERROR_INIT;
    float alone[2][2];
    cpl_decode_batch b = batch_of(more, 0);
    b.source = LONG, b.length = TWOS, b.attention = 1;
    for (int i = 0; i < 2; i++) { /* every query is one vector; what the words of the source are to it */
        cpl_engine *e = both[i]->engine;
        memset(parameter(e, "look.query.kernel"), 0, sizeof(real) * WORDS * WORDS);
        memset(parameter(e, "look.output.kernel"), 0, sizeof(real) * WORDS * WORDS);
        for (int k = 0; k < WORDS; k++)
            parameter(e, "look.query.bias")[k] = 1;
        parameter(e, "begin.kernel")[B * WORDS + A] = (real)keys[i][0];
        parameter(e, "begin.kernel")[C * WORDS + B] = (real)keys[i][1];
        const cpl_decoded *r = decode(both[i], &b);
        memcpy(alone[i], r->attention, sizeof alone[i]);
    }
    assert_true(fabsf(alone[0][0] - alone[1][0]) > 1e-3F);
    assert_int_equal(cpl_decoder_join(f.decoder, (cpl_decoder *[]){g.decoder}, 1, NULL), CPL_OK);
    for (int64_t beam = 0; beam < 3; beam += 2) {
        b.beam = b.nbest = beam;
        const cpl_decoded *r = decode(&f, &b);
        for (int s = 0; s < 2; s++)
            assert_true(fabsf(r->attention[s] - (alone[0][s] + alone[1][s]) / 2) < 1e-6F);
    }
    b.more = other;
    const cpl_decoded *rows;
    assert_int_equal(cpl_decode(f.decoder, &b, &rows, &err), CPL_USAGE);
    assert_true(says(&err, "2 source tokens for the first model and 1 for model 2"));
    release(&f);
    release(&g);
}

static void mistakes_are_told(void **state)
{
    (void)state;
    fixture f = make(first), g = make(second);
    cpl_decoder *many[CPL_DECODE_MODELS];
    const cpl_decode_source more[] = {{SHORT, ONES}};
    cpl_decode_batch b = batch_of(NULL, 0);
    const cpl_decoded *rows;
    cpl_error err = CPL_ERROR_INIT;
    for (int k = 0; k < CPL_DECODE_MODELS; k++)
        many[k] = g.decoder;
    assert_int_equal(cpl_decoder_join(f.decoder, many, CPL_DECODE_MODELS, &err), CPL_USAGE);
    assert_int_equal(cpl_decoder_join(f.decoder, many, 1, NULL), CPL_OK);
    assert_int_equal(cpl_decode(f.decoder, &b, &rows, &err), CPL_FAILED); /* no sources of the second */
    b.more = more;
    parameter(g.engine, "table.kernel")[B * WORDS + A] = (real)NAN;
    for (int64_t beam = 0; beam < 3; beam += 2) {
        err = (cpl_error)CPL_ERROR_INIT;
        b.beam = b.nbest = beam;
        assert_int_equal(cpl_decode(f.decoder, &b, &rows, &err), CPL_FAILED);
        assert_true(says(&err, "step 2"));
        assert_true(says(&err, "'table.kernel' is nan in another model of the ensemble"));
    }
    release(&f);
    release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_averaged),
        cmocka_unit_test(what_is_forced_keeps_its_logarithm),
        cmocka_unit_test(attention_is_the_mean),
        cmocka_unit_test(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
