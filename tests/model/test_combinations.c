/* Every combination of the options that shape a model: what the configuration's check lets pass compiles, trains, and
 * gives the same logits step by step as over whole sentences; what cannot be built is refused by the check, never
 * later. */
#include "model/model_test.h"

#include <stdio.h>
#include "support/recompute.h"

static const char *const cells[] = {"gru", "lstm", "gru_reset_before"};
static const char *const scores[] = {"none", "dot", "general", "additive", "multihead"};
static const char *const positions[] = {"after", "before"};
static const char *const combines[] = {"add_norm", "concat", "tanh"};
static const char *const states[] = {"zero", "encoder", "bridge"};
static const char *const directions[][2] = {{"both", "sum"}, {"both", "concat"}, {"both", "average"},
                                            {"both", "multiply"}, {"forward", "sum"}, {"backward", "sum"}};

/* Which choice of each option. */
typedef struct combination {
    int encoder, decoder, score, position, combine, state, direction;
    const char *more[4]; /* other settings, up to a NULL */
} combination;

static const char *const *sets_of(const combination *c, char (*text)[80], const char **sets)
{
    snprintf(text[0], sizeof *text, "model.encoder.cell=%s", cells[c->encoder]);
    snprintf(text[1], sizeof *text, "model.decoder.cell=%s", cells[c->decoder]);
    snprintf(text[2], sizeof *text, "model.decoder.attention.score=%s", scores[c->score]);
    snprintf(text[3], sizeof *text, "model.decoder.attention.position=%s", positions[c->position]);
    snprintf(text[4], sizeof *text, "model.decoder.attention.combine=%s", combines[c->combine]);
    snprintf(text[5], sizeof *text, "model.decoder.initial_state=%s", states[c->state]);
    snprintf(text[6], sizeof *text, "model.encoder.direction=%s", directions[c->direction][0]);
    snprintf(text[7], sizeof *text, "model.encoder.merge=%s", directions[c->direction][1]);
    for (int i = 0; i < 8; i++)
        sets[i] = text[i];
    for (int i = 0; i < 4; i++)
        sets[8 + i] = c->more[i];
    sets[12] = NULL;
    return sets;
}

static void feed_again(cpl_program *p, const void *user)
{
    (void)user;
    feed_whole(p);
}

static void check_training(const model_case *m)
{
    cpl_program *p = compile_case(m, m->kind->loss, 0);
    enliven(m);
    feed_whole(p);
    MUST(cpl_run(p, CPL_TRAIN, err));
    assert_true(isfinite(cpl_scalar(p, "loss")));
    for (size_t i = 0; i < cpl_parameter_count(p); i++)
        if (!cpl_parameter_gradient(p, i))
            fail_msg("no gradient reaches '%s'", cpl_parameter_path(p, i));
    assert_true(check_recomputation(p, feed_again, NULL) > 0);
    cpl_program_free(p);
}

/* All logits of the whole pass against those of single steps. */
static double largest_difference(const model_case *m)
{
    cpl_program *score = compile_case(m, m->kind->score, 1);
    stepper s;
    float whole[COUNT * LONGEST * TARGET_WORDS], one[COUNT * TARGET_WORDS];
    int64_t shape[6];
    int rank;
    double largest = 0;
    feed_whole(score);
    MUST(cpl_run(score, CPL_EVALUATE, err));
    MUST(cpl_read(score, "logits", whole, sizeof whole / sizeof *whole, shape, &rank, err));
    assert_int_equal(shape[1], 5);
    stepper_begin(&s, m);
    for (int k = 0; k < 5; k++) {
        stepper_step(&s, k);
        MUST(cpl_read(s.step, "logits", one, sizeof one / sizeof *one, NULL, NULL, err));
        for (int i = 0; i < COUNT; i++)
            for (int w = 0; w < TARGET_WORDS && k < target_length[i]; w++)
                largest = fmax(largest, fabs((double)whole[(i * 5 + k) * TARGET_WORDS + w] -
                                             (double)one[i * TARGET_WORDS + w]));
    }
    stepper_end(&s);
    cpl_program_free(score);
    return largest;
}

/* 1: built and right; 0: refused. */
static int try_combination(const combination *c)
{
    char text[8][80];
    const char *sets[13];
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *config = configured(sets_of(c, text, sets));
    if (cpl_config_check(config, 0, &err) != CPL_OK) {
        assert_int_equal(err.status, CPL_USAGE);
        assert_true(err.hint[0] != '\0');
        cpl_config_free(config);
        return 0;
    }
    model_case m = model_case_of(config);
    check_training(&m);
    double difference = largest_difference(&m);
    if (!(difference <= 1e-5)) {
        for (int i = 0; sets[i]; i++)
            print_error("%s\n", sets[i]);
        fail_msg("steps and whole sentences differ by %g", difference);
    }
    model_case_close(&m);
    return 1;
}

/* Everything about the decoder, with one cell on both sides. */
static void decoders(void **state)
{
    (void)state;
    int built = 0, tried = 0;
    for (int i = 0; i < 3 * 5 * 2 * 3 * 3; i++) {
        combination c = {.encoder = i % 3, .decoder = i % 3, .score = i / 3 % 5, .position = i / 15 % 2,
                         .combine = i / 30 % 3, .state = i / 90, .direction = i % 2 ? 4 : 0};
        built += try_combination(&c), tried++;
    }
    print_message("%d of %d combinations can be built\n", built, tried);
    assert_int_equal(tried, 270);
    assert_int_equal(built, 216); /* not 18 without any source, and 36 whose cell has no steps */
}

/* Everything about the encoder: cells that differ, directions, merges, over each way to hand over and to compare. */
static void encoders(void **state)
{
    (void)state;
    int built = 0, tried = 0;
    for (int i = 0; i < 3 * 2 * 6 * 3 * 4; i++) {
        combination c = {.encoder = i % 3, .decoder = i / 3 % 2, .direction = i / 6 % 6, .state = i / 36 % 3,
                         .score = 1 + i / 108, .position = i % 2, .combine = 1 + i % 5 % 2};
        built += try_combination(&c), tried++;
    }
    print_message("%d of %d combinations can be built\n", built, tried);
    assert_int_equal(tried, 432);
    assert_int_equal(built, 356); /* not 24 of twice the width, 40 without c, 12 dots of two widths */
}

/* Everyday options, in turn over the decoders: each over every score, position, combination and cell now and then. */
static void options(void **state)
{
    static const char *const sets[][4] = {
        {"model.tie=target", "model.encoder.merge=sum"},
        {"model.dropout=0.3", "model.dropout.recurrent=0.4", "model.dropout.word=0.2"},
        {"model.encoder.layers=2", "model.decoder.layers=2", "model.encoder.residual=true",
         "model.decoder.residual=true"},
        {"model.embedding=4", "model.dropout.recurrent=0.3"},
        {"model.decoder.input_feed=true", "model.decoder.layers=2", "model.dropout.layer=0.2"},
        {"model.decoder.input_feed=true", "model.tie=target", "model.encoder.merge=concat"},
        {"model.encoder.layers=3", "model.encoder.residual=true", "model.encoder.merge=average",
         "model.dropout.layer=0.2"},
    };
    enum { SETS = sizeof sets / sizeof sets[0] };
    (void)state;
    int built = 0, tried = 0;
    for (int i = 0; i < 3 * 5 * 2 * 3; i++) {
        const char *const *s = sets[i % SETS];
        combination c = {.encoder = i % 3, .decoder = i / 2 % 3, .score = i / 3 % 5, .position = i / 15 % 2,
                         .combine = i / 30, .state = i / 7 % 3, .more = {s[0], s[1], s[2], s[3]}};
        built += try_combination(&c), tried++;
    }
    print_message("%d of %d combinations can be built\n", built, tried);
    assert_true(built > 40);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(decoders), cmocka_unit_test(encoders),
                                          cmocka_unit_test(options)};

CPL_TEST_MAIN(tests)
