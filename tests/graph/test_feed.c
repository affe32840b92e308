/* What programs are fed: checked by name, type, shape, lengths and range of ids, before anything runs. */
#include "graph/graph_test.h"

static int calls; /* how often the model function ran */

/* Reference A's step: source, a decoder input, and two states. */
static void step_model(cpl_graph *g, const void *user)
{
    (void)user;
    calls++;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", 6), "batch s");
    cpl_node *in = cpl_input(g, "dec_in", CPL_ID("target", 6), "batch t");
    cpl_node *h = cpl_input(g, "h", CPL_REALS(4), "batch units"), *c = cpl_input(g, "c", CPL_REALS(4), "batch units");
    cpl_embedding_options embedding = {.size = 6, .units = 4};
    cpl_node *x = cpl_embedding(g, "source_embedding", source, &embedding);
    cpl_node *y = cpl_embedding(g, "target_embedding", in, &embedding);
    cpl_rnn_result r = cpl_rnn(g, "decoder", y, &(cpl_rnn_options){.cell = CPL_LSTM, .units = 4, .h = h, .c = c});
    y = cpl_attention(g, "attention", r.y, x, NULL).y;
    cpl_node *logits = cpl_dense(g, "output", y, &(cpl_dense_options){.units = 6, .dim = "vocab"});
    cpl_output(g, "logits", logits);
    cpl_output(g, "next", cpl_argmax(g, logits));
    cpl_loss_result l = cpl_masked_cross_entropy(g, logits, in);
    cpl_output(g, "loss", l.loss);
    cpl_minimize(g, l.loss);
}

static const float zeros[64];
static const int32_t words[] = {1, 5, 2, 3, 4, 2, 1, 1, 3, 2, 2, 5, 4, 3, 2, 1, 5, 4, 3, 2, 1, 2, 3, 4};

static void feed_step(cpl_program *p, int64_t batch, int64_t s, int64_t t)
{
    feed(p, "source", ids(words, batch, s, NULL));
    feed(p, "dec_in", ids(words, batch, t, NULL));
    feed(p, "h", reals(zeros, 2, batch, 4, 0));
    feed(p, "c", reals(zeros, 2, batch, 4, 0));
}

static void case_A11_missing_input(void **state)
{
    (void)state;
    cpl_program *p = compiled(step_model, NULL, NULL);
    feed(p, "source", ids(words, 8, 3, NULL));
    feed(p, "dec_in", ids(words, 8, 2, NULL));
    feed(p, "h", reals(zeros, 2, 8, 4, 0));
    REFUSED(cpl_run(p, CPL_TRAIN, err), "input 'c' was not fed",
            "source [batch s], dec_in [batch t], h [batch units=4], c [batch units=4]");
    feed(p, "c", reals(zeros, 2, 8, 4, 0)); /* nothing is lost */
    run(p, CPL_TRAIN);
    cpl_program_free(p);
}

static void case_A11_state_of_one_sentence(void **state)
{
    (void)state;
    cpl_program *p = compiled(step_model, NULL, NULL);
    cpl_array h = reals(zeros, 2, 1, 4, 0);
    feed(p, "source", ids(words, 8, 3, NULL));
    REFUSED(cpl_feed(p, "h", &h, err), "'h' is (1, 4)", "[batch units=4]", "batch=8");
    cpl_array wide = reals(zeros, 2, 8, 5, 0);
    REFUSED(cpl_feed(p, "h", &wide, err), "'h' is (8, 5)", "[batch units=4]");
    REFUSED(cpl_feed(p, "hh", &h, err), "'model' has no input 'hh'", "source [batch s], dec_in [batch t]");
    cpl_program_free(p);
}

static void case_A11_model_runs_once(void **state)
{
    (void)state;
    calls = 0;
    cpl_program *p = compiled(step_model, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        feed_step(p, 2 + i, 3 + i, 2);
        run(p, CPL_TRAIN);
        run(p, CPL_EVALUATE);
    }
    assert_int_equal(calls, 1);
    assert_int_equal(cpl_traces(p), 1);
    cpl_program_free(p);
}

static void logits_and_labels(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *logits = cpl_input(g, "logits", CPL_REALS(4), "batch t vocab");
    cpl_node *labels = cpl_input(g, "labels", CPL_ID("target", 4), "batch t");
    cpl_loss_result r = cpl_masked_cross_entropy(g, logits, labels);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "logits", logits);
}

static void case_A02_lengths_differ(void **state)
{
    (void)state;
    cpl_program *p = compiled(logits_and_labels, NULL, NULL);
    const int32_t labels[10] = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1};
    feed(p, "logits", reals(zeros, 3, 2, 3, 4));
    cpl_array whole = ids(labels, 2, 5, NULL), ragged = ids(labels, 2, 5, (int64_t[]){3, 5});
    REFUSED(cpl_feed(p, "labels", &whole, err), "'labels' has t=5 but 'logits' has t=3", "cut both");
    REFUSED(cpl_feed(p, "labels", &ragged, err), "sentence 1 has t=5 in 'labels' but t=3 in 'logits'", "START and END");
    feed(p, "labels", ids(labels, 2, 3, NULL));
    run(p, CPL_EVALUATE);
    assert_true(fabs(cpl_scalar(p, "loss") - log(4.0)) < 1e-6);
    cpl_program_free(p);
}

/* A target below zero is no padding: it is refused with its place, not left out of the loss. */
static void case_C05_target_below_zero(void **state)
{
    (void)state;
    cpl_program *p = compiled(logits_and_labels, NULL, NULL);
    cpl_array labels = ids((int32_t[]){1, 2, 3, 1, -4, 2}, 2, 3, NULL);
    REFUSED(cpl_feed(p, "labels", &labels, err), "id -4 at row 1, column 1 of 'labels'", "outside 0 to 3");
    cpl_program_free(p);
}

static void embedded(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", 6), "batch s");
    cpl_output(g, "y", cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = 6, .units = 2}));
}

static void case_A03_id_outside_the_vocabulary(void **state)
{
    (void)state;
    cpl_json *c = read_case("A03_id_equals_vocab.json");
    const cpl_json *bad = cpl_json_get(c, "ids_bad"), *expected = cpl_json_get(c, "expect_errors");
    cpl_program *p = compiled(embedded, NULL, NULL);
    int32_t id[9];
    for (size_t i = 0; i < 9; i++)
        id[i] = (int32_t)cpl_json_int(cpl_json_at(cpl_json_at(bad, i / 3), i % 3), 0);
    for (size_t k = 0; k < cpl_json_size(expected); k++) {
        const cpl_json *e = cpl_json_at(expected, k);
        int64_t row = cpl_json_int(cpl_json_get(e, "row"), 0), column = cpl_json_int(cpl_json_get(e, "column"), 0);
        int64_t value = cpl_json_int(cpl_json_get(e, "id"), 0);
        char where[80];
        snprintf(where, sizeof where, "id %d at row %d, column %d of 'source'", (int)value, (int)row, (int)column);
        cpl_array a = ids(id, 3, 3, NULL);
        REFUSED(cpl_feed(p, "source", &a, err), where, "outside 0 to 5",
                "vocabulary 'source' has 6 entries including padding and unknown");
        const int32_t *const rows[] = {id, id + 3, id + 6};
        REFUSED(cpl_feed_ids(p, "source", rows, (int64_t[]){3, 3, 3}, 3, err), where, "outside 0 to 5");
        id[row * 3 + column] = 0; /* mended, so that the next one is found */
    }
    feed(p, "source", ids(id, 3, 3, NULL));
    run(p, CPL_EVALUATE);
    cpl_program_free(p);
    cpl_json_free(c);
}

/* Ids that stand where nothing exists are not looked at: they never enter. */
static void case_A03_ids_behind_the_length(void **state)
{
    (void)state;
    cpl_program *p = compiled(embedded, NULL, NULL);
    feed(p, "source", ids((int32_t[]){1, 99, 99, 2, 3, -7}, 2, 3, (int64_t[]){1, 2}));
    run(p, CPL_EVALUATE);
    float y[12];
    assert_int_equal(read_reals(p, "y", y, 12), 12);
    for (int i = 2; i < 6; i++)
        assert_true(y[i] == 0);
    cpl_program_free(p);
}

/* The token of a decode loop comes as (batch) instead of (batch, 1). */
static void case_A04_token_without_time(void **state)
{
    (void)state;
    cpl_program *p = compiled(step_model, NULL, NULL);
    cpl_array flat = {.type = CPL_INT32, .rank = 1, .shape = {8}, .data = words};
    REFUSED(cpl_feed(p, "dec_in", &flat, err), "'dec_in' is (8)", "[batch t]");
    cpl_program_free(p);
}

/* Rows of any length, run after run, without a new trace; a plan that holds them is used again. */
static void case_A04_lengths_vary_without_a_new_trace(void **state)
{
    (void)state;
    cpl_program *p = compiled(step_model, NULL, NULL);
    feed_step(p, 3, 5, 4);
    run(p, CPL_EVALUATE);
    for (int64_t width = 1; width <= 4; width++)
        for (int64_t first = 0; first <= width; first++) {
            feed(p, "source", ids(words, 3, width, (int64_t[]){first, width, 1}));
            feed(p, "dec_in", ids(words, 3, width, (int64_t[]){width, first, 0}));
            feed(p, "h", reals(zeros, 2, 3, 4, 0));
            feed(p, "c", reals(zeros, 2, 3, 4, 0));
            run(p, CPL_EVALUATE);
            int64_t shape[6];
            int rank;
            MUST(cpl_read_ids(p, "next", NULL, 0, shape, &rank, err));
            assert_int_equal(rank, 2);
            assert_int_equal(shape[0], 3);
            assert_int_equal(shape[1], width);
        }
    assert_int_equal(cpl_traces(p), 1);
    assert_int_equal(cpl_plans(p), 1);
    cpl_program_free(p);
}

static void case_A06_integer_widths(void **state)
{
    (void)state;
    cpl_program *p = compiled(step_model, NULL, NULL);
    float logits[2][36];
    int32_t next[2][6];
    int64_t wide[24], lengths[] = {3, 1};
    for (int i = 0; i < 24; i++)
        wide[i] = words[i];
    for (int k = 0; k < 2; k++) {
        cpl_array source = ids(words, 2, 3, lengths), in = ids(words, 2, 3, NULL);
        if (k)
            source.type = in.type = CPL_INT64, source.data = in.data = wide;
        feed(p, "source", source);
        feed(p, "dec_in", in);
        feed(p, "h", reals(zeros, 2, 2, 4, 0));
        feed(p, "c", (cpl_array){.type = CPL_FLOAT64, .rank = 2, .shape = {2, 4}, .data = (double[8]){0}});
        run(p, CPL_EVALUATE);
        assert_int_equal(read_reals(p, "logits", logits[k], 36), 36);
        MUST(cpl_read_ids(p, "next", next[k], 6, NULL, NULL, err));
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    assert_memory_equal(next[0], next[1], sizeof next[0]);
    const float two[] = {2.0f, 2.5f};
    const double two_double[] = {2.0, 2.5};
    for (int i = 0; i < 2; i++) {
        cpl_array single = reals(two + i, 2, 1, 1, 0), twice = single;
        twice.type = CPL_FLOAT64, twice.data = two_double + i;
        REFUSED(cpl_feed(p, "source", &single, err), "'source' is float32", "int32 or int64");
        REFUSED(cpl_feed(p, "source", &twice, err), "'source' is float64", "int32 or int64");
    }
    cpl_array whole = ids(words, 2, 4, NULL);
    REFUSED(cpl_feed(p, "h", &whole, err), "'h' is int32", "float32 or float64");
    cpl_program_free(p);
}

static void reading_what_is_not_there(void **state)
{
    (void)state;
    cpl_program *p = compiled(step_model, NULL, NULL);
    float y[100];
    REFUSED(cpl_read(p, "logits", y, 100, NULL, NULL, err), "'logits'");
    feed_step(p, 2, 3, 2);
    run(p, CPL_EVALUATE);
    REFUSED(cpl_read(p, "logit", y, 100, NULL, NULL, err), "'model' has no output 'logit'");
    REFUSED(cpl_read(p, "next", y, 100, NULL, NULL, err), "'next' holds ids", "cpl_read_ids");
    REFUSED(cpl_read(p, "logits", y, 23, NULL, NULL, err), "24 elements", "room for 23");
    REFUSED(cpl_read_ids(p, "logits", (int32_t[24]){0}, 24, NULL, NULL, err), "'logits' holds real numbers");
    assert_true(isnan(cpl_scalar(p, "logits")) && isnan(cpl_scalar(p, "nothing")));
    assert_false(isnan(cpl_scalar(p, "loss")));
    cpl_program_free(p);
}

/* ---- lengths that contradict what was fed already ---- */

static void a_mask_after_its_time_was_fed(void **state)
{
    (void)state;
    cpl_program *p = compiled(embedded, NULL, NULL);
    const uint8_t mask[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    feed(p, "source", ids(words, 2, 3, NULL));
    REFUSED(cpl_feed_mask(p, "s", mask, 2, 5, err), "'s'", "'source'");
    REFUSED(cpl_feed_mask(p, "t", mask, 2, 5, err), "no time 't'");
    cpl_program_free(p);
}

/* A feed that failed leaves no lengths behind. */
static void a_failed_feed_can_be_mended(void **state)
{
    (void)state;
    cpl_program *p = compiled(embedded, NULL, NULL);
    cpl_array bad = ids((int32_t[]){1, 2, 6, 1}, 2, 2, NULL);
    REFUSED(cpl_feed(p, "source", &bad, err), "id 6");
    feed(p, "source", ids(words, 3, 4, (int64_t[]){4, 1, 2}));
    run(p, CPL_EVALUATE);
    cpl_program_free(p);
}

/* Neither does it leave half of the new data in the place of the old. */
static void a_failed_second_feed_is_no_feed(void **state)
{
    (void)state;
    cpl_program *p = compiled(embedded, NULL, NULL);
    cpl_array bad = ids((int32_t[]){1, 2, 6, 1}, 2, 2, NULL);
    feed(p, "source", ids(words, 2, 2, NULL));
    REFUSED(cpl_feed(p, "source", &bad, err), "id 6");
    REFUSED(cpl_run(p, CPL_EVALUATE, err), "input 'source' was not fed");
    cpl_program_free(p);
}

/* An array without lengths stands in the mask's columns; a narrower one cannot hold a mask with gaps. */
static void narrow_array_under_a_mask_with_gaps(void **state)
{
    (void)state;
    cpl_program *p = compiled(embedded, NULL, NULL);
    cpl_array narrow = ids(words, 2, 2, NULL);
    feed_mask(p, "s", (uint8_t[]){1, 0, 0, 1, 0, 1, 0, 0}, 2, 4);
    REFUSED(cpl_feed(p, "source", &narrow, err), "'source' has s=2 but 's' has s=4");
    feed(p, "source", ids(words, 2, 4, NULL));
    run(p, CPL_EVALUATE);
    cpl_program_free(p);
}

static void rectangles(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(2), "batch padded in");
    cpl_node *y = cpl_unpack(g, cpl_pack(g, x, "s"), 0);
    cpl_output(g, "y", cpl_multiply(g, y, cpl_input(g, "proj", CPL_REALS(2), "batch padded in")));
}

static void two_rectangles_of_other_widths(void **state)
{
    (void)state;
    cpl_program *p = compiled(rectangles, NULL, NULL);
    cpl_array wide = reals(zeros, 3, 2, 5, 2);
    feed_mask(p, "s", (uint8_t[]){1, 1, 1, 1, 0, 0}, 2, 3);
    feed(p, "x", reals(zeros, 3, 2, 3, 2));
    REFUSED(cpl_feed(p, "proj", &wide, err), "'proj' is (2, 5, 2)", "padded=3");
    cpl_program_free(p);
}

static void a_mask_wider_than_its_rectangle(void **state)
{
    (void)state;
    cpl_program *p = compiled(rectangles, NULL, NULL);
    feed_mask(p, "s", (uint8_t[]){1, 1, 1, 1, 1, 0, 0, 0, 0, 1}, 2, 5);
    feed(p, "x", reals(zeros, 3, 2, 3, 2));
    feed(p, "proj", reals(zeros, 3, 2, 3, 2));
    REFUSED(cpl_run(p, CPL_EVALUATE, err), "'s'", "5", "3");
    cpl_program_free(p);
}

static void unknown_lengths(void **state)
{
    (void)state;
    cpl_program *p = compiled(rectangles, NULL, NULL);
    feed(p, "x", reals(zeros, 3, 2, 3, 2));
    feed(p, "proj", reals(zeros, 3, 2, 3, 2));
    REFUSED(cpl_run(p, CPL_EVALUATE, err), "the lengths of 's' are not known", "cpl_feed_mask");
    cpl_program_free(p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(case_A02_lengths_differ),
    cmocka_unit_test(case_C05_target_below_zero),
    cmocka_unit_test(case_A03_id_outside_the_vocabulary),
    cmocka_unit_test(case_A03_ids_behind_the_length),
    cmocka_unit_test(case_A04_token_without_time),
    cmocka_unit_test(case_A04_lengths_vary_without_a_new_trace),
    cmocka_unit_test(case_A06_integer_widths),
    cmocka_unit_test(case_A11_missing_input),
    cmocka_unit_test(case_A11_state_of_one_sentence),
    cmocka_unit_test(case_A11_model_runs_once),
    cmocka_unit_test(reading_what_is_not_there),
    cmocka_unit_test(a_mask_after_its_time_was_fed),
    cmocka_unit_test(a_failed_feed_can_be_mended),
    cmocka_unit_test(a_failed_second_feed_is_no_feed),
    cmocka_unit_test(narrow_array_under_a_mask_with_gaps),
    cmocka_unit_test(two_rectangles_of_other_widths),
    cmocka_unit_test(a_mask_wider_than_its_rectangle),
    cmocka_unit_test(unknown_lengths),
};

CPL_TEST_MAIN(tests)
