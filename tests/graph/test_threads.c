/* Results do not depend on the number of threads, nor on the order of a batch or the other sentences in it. */
#include "graph/translator_test.h"

static void same_bits(const char *units, const char *cell, int64_t batch, int64_t width)
{
    translator t = translator_open(units, "0.1");
    MUST(cpl_config_set(t.config, "model.decoder.cell", cell, err));
    float *want = NULL, loss = 0;
    for (int threads = 1; threads <= 3; threads++) {
        cpl_program *p = compiled(cpl_translator.loss, &t.sizes, &(cpl_compile_options){.threads = threads});
        assert_int_equal(p->engine->threads, threads);
        for (int again = 0; again < 2; again++) {
            translator_feed(p, batch, width, 9);
            p->step = 0; /* the same dropout each time */
            run(p, CPL_TRAIN);
            size_t bytes = cpl_parameters_bytes(p->engine->parameters);
            float now = (float)cpl_scalar(p, "loss");
            if (!want) {
                want = malloc(bytes);
                assert_non_null(want);
                memcpy(want, p->gradients, bytes);
                loss = now;
            }
            assert_memory_equal(&now, &loss, sizeof now);
            assert_memory_equal(p->gradients, want, bytes);
        }
        cpl_program_free(p);
    }
    free(want);
    translator_close(&t);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    same_bits("96", "gru", 24, 20);
    same_bits("33", "lstm", 5, 7);
    same_bits("64", "gru_reset_before", 1, 13);
}

/* So few sentences that the products of a step are dealt out, and not the sentences. */
static void threads_that_share_a_step_change_no_bit(void **state)
{
    (void)state;
    same_bits("112", "gru", 3, 9);
    same_bits("96", "lstm", 6, 7);
    same_bits("128", "gru_reset_before", 1, 13);
}

/* ---- batches ---- */

enum { LOGITS = (WIDTH_MOST - 1) * (VOCABULARY - 20) };

static const float *logits_of(cpl_program *p, const sentences *s, const sentences *t, const int *order, int n,
                              float *to)
{
    sentences a = {.batch = n, .width = s->width}, b = {.batch = n, .width = t->width};
    for (int i = 0; i < n; i++) {
        a.lengths[i] = s->lengths[order[i]], b.lengths[i] = t->lengths[order[i]];
        memcpy(a.id + i * s->width, s->id + order[i] * s->width, (size_t)s->width * sizeof *a.id);
        memcpy(b.id + i * t->width, t->id + order[i] * t->width, (size_t)t->width * sizeof *b.id);
    }
    feed(p, "source", ids(a.id, n, a.width, a.lengths));
    feed(p, "target_in", ids(b.id, n, b.width, b.lengths));
    feed(p, "target_out", ids(b.id, n, b.width, b.lengths));
    run(p, CPL_EVALUATE);
    read_reals(p, "logits", to, (size_t)n * LOGITS);
    return to;
}

/* Sentence k of a batch of seven, of a shuffled one, and alone: the same logits. Bits may differ where products are
 * done by other tiles, nothing more. */
static void a_sentence_does_not_know_its_batch(void **state)
{
    (void)state;
    translator t = translator_open("32", "0");
    cpl_program *p = compiled(cpl_translator.score, &t.sizes, &(cpl_compile_options){.inference = 1});
    sentences s = sentences_make(7, WIDTH_MOST, 2), target = sentences_make(7, WIDTH_MOST - 1, 3);
    const int straight[] = {0, 1, 2, 3, 4, 5, 6}, shuffled[] = {5, 0, 6, 3, 1, 4, 2};
    static float a[7 * LOGITS], b[7 * LOGITS], alone[LOGITS];
    logits_of(p, &s, &target, straight, 7, a);
    logits_of(p, &s, &target, shuffled, 7, b);
    for (int i = 0; i < 7; i++) {
        near(b + i * LOGITS, a + shuffled[i] * LOGITS, LOGITS, 1e-6, "shuffled");
        near(logits_of(p, &s, &target, straight + i, 1, alone), a + i * LOGITS, LOGITS, 1e-6, "alone");
    }
    cpl_program_free(p);
    translator_close(&t);
}

/* What stands behind a sentence's end is never read: any ids there give the same bits. */
static void padding_has_no_influence(void **state)
{
    (void)state;
    translator t = translator_open("32", "0");
    cpl_program *p = compiled(cpl_translator.score, &t.sizes, &(cpl_compile_options){.inference = 1});
    sentences s = sentences_make(7, WIDTH_MOST, 2), target = sentences_make(7, WIDTH_MOST - 1, 3);
    const int straight[] = {0, 1, 2, 3, 4, 5, 6};
    static float a[7 * LOGITS], b[7 * LOGITS];
    logits_of(p, &s, &target, straight, 7, a);
    double loss = cpl_scalar(p, "loss");
    for (int i = 0; i < 7; i++) {
        for (int64_t k = s.lengths[i]; k < s.width; k++)
            s.id[i * s.width + k] = (int32_t)(k + i);
        for (int64_t k = target.lengths[i]; k < target.width; k++)
            target.id[i * target.width + k] = 0;
    }
    logits_of(p, &s, &target, straight, 7, b);
    assert_memory_equal(a, b, sizeof a);
    assert_true(loss == cpl_scalar(p, "loss"));
    cpl_program_free(p);
    translator_close(&t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(threads_change_no_bit),
    cmocka_unit_test(threads_that_share_a_step_change_no_bit),
    cmocka_unit_test(a_sentence_does_not_know_its_batch),
    cmocka_unit_test(padding_has_no_influence),
};

CPL_TEST_MAIN(tests)
