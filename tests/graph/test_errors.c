/* Mistakes in the model function: found while it is built, with the layer, the named dimensions and what to do. */
#include "graph/graph_test.h"

/* ---- A01: encoder output to the loss ---- */

typedef struct autoencoder {
    int64_t units, vocab;
    int projection; /* of another size than the vocabulary */
} autoencoder;

static void encoder_to_loss(cpl_graph *g, const void *user)
{
    const autoencoder *a = user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("words", a->vocab), "batch s");
    cpl_node *target = cpl_input(g, "target", CPL_ID("words", a->vocab), "batch s");
    cpl_enter(g, "encoder");
    cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = a->vocab, .units = a->units});
    x = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.units = a->units}).y;
    cpl_leave(g);
    if (a->projection)
        x = cpl_dense(g, "output", x, &(cpl_dense_options){.units = a->projection, .dim = "vocab"});
    cpl_minimize(g, cpl_masked_cross_entropy(g, x, target).loss);
}

static void case_A01_units_as_logits(void **state)
{
    (void)state;
    cpl_json *c = read_case("A01_units_as_logits.json");
    const cpl_json *dims = cpl_json_get(c, "dims");
    autoencoder a = {cpl_json_int(cpl_json_get(dims, "units"), 0), cpl_json_int(cpl_json_get(dims, "vocab"), 0), 0};
    cpl_program *p = NULL;
    cpl_error err = CPL_ERROR_INIT;
    cpl_compile_options o = {.name = "translator"};
    assert_int_equal(cpl_compile(&p, encoder_to_loss, &a, &o, &err), CPL_USAGE);
    assert_null(p);
    assert_string_equal(err.line[0], "loss 'masked_cross_entropy' needs logits [batch s vocab] but 'encoder.rnn' gives "
                                     "[batch s units=8]");
    assert_string_equal(err.line[err.lines - 1], "cannot build 'translator'");
    assert_string_equal(err.hint, "return the decoder's logits, or add a projection to the vocabulary (vocab=5) after "
                                  "'encoder.rnn'");
    cpl_json_free(c);
}

/* The sizes agree by accident, the dimensions do not. */
static void case_A01_units_equal_to_vocab(void **state)
{
    (void)state;
    NOT_COMPILED(encoder_to_loss, (&(autoencoder){5, 5, 0}), "needs logits [batch s vocab]",
                 "'encoder.rnn' gives [batch s units=5]", "vocab=5");
}

static void case_A01_logits_of_another_vocabulary(void **state)
{
    (void)state;
    NOT_COMPILED(encoder_to_loss, (&(autoencoder){8, 5, 7}), "needs logits [batch s vocab=5]",
                 "'output' gives [batch s vocab=7]");
}

static void logits_over_s(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *logits = cpl_input(g, "logits", CPL_REALS(4), "batch s vocab");
    cpl_node *labels = cpl_input(g, "labels", CPL_ID("target", 4), "batch t");
    cpl_minimize(g, cpl_masked_cross_entropy(g, logits, labels).loss);
}

static void case_A02_logits_over_another_time(void **state)
{
    (void)state;
    NOT_COMPILED(logits_over_s, NULL, "'logits' [batch s vocab=4]", "'labels' [batch t]", "'s'", "'t'");
}

/* ---- A05: layers declared twice ---- */

static int dense_line;

static void dense_twice(cpl_graph *g, const void *user)
{
    const int64_t *units = user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(3), "batch in");
    cpl_enter(g, "decoder");
    dense_line = __LINE__ + 1;
    cpl_output(g, "a", cpl_dense(g, "bridge", x, &(cpl_dense_options){.units = 4}));
    cpl_output(g, "b", cpl_dense(g, "bridge", x, &(cpl_dense_options){.units = *units, .activation = *units > 6}));
    cpl_leave(g);
}

static void case_A05_same_name_same_options_share(void **state)
{
    (void)state;
    cpl_program *p = compiled(dense_twice, &(int64_t){4}, NULL);
    assert_int_equal(cpl_parameter_count(p), 2);
    assert_string_equal(cpl_parameter_path(p, 0), "decoder.bridge.kernel");
    assert_string_equal(cpl_parameter_path(p, 1), "decoder.bridge.bias");
    cpl_program_free(p);
}

static void case_A05_same_name_other_options(void **state)
{
    (void)state;
    char first[40], second[40];
    NOT_COMPILED(dense_twice, &(int64_t){6}, "layer 'decoder.bridge' is dense units=4", "but dense units=6",
                 "another name");
    snprintf(first, sizeof first, "at test_errors.c:%d but", dense_line);
    snprintf(second, sizeof second, "at test_errors.c:%d", dense_line + 1);
    NOT_COMPILED(dense_twice, &(int64_t){6}, first, second);
}

/* What makes no other parameters is another option all the same. */
static void case_A05_same_name_other_activation(void **state)
{
    (void)state;
    NOT_COMPILED(dense_twice, &(int64_t){7}, "dense units=4 activation=linear", "dense units=7 activation=tanh");
}

static int first_line, second_line;

static void parameter_twice(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(3), "batch in");
    first_line = __LINE__ + 1;
    cpl_parameter(g, "table", CPL_ZEROS, "in=3");
    second_line = __LINE__ + 1;
    cpl_parameter(g, "table", CPL_ZEROS, "in=4");
    cpl_output(g, "x", x);
}

static void case_A05_both_places_are_named(void **state)
{
    (void)state;
    char first[40], second[40];
    NOT_COMPILED(parameter_twice, NULL, "'table'"); /* learns the lines */
    snprintf(first, sizeof first, "[in=3] (zeros) at test_errors.c:%d", first_line);
    snprintf(second, sizeof second, "[in=4] (zeros) at test_errors.c:%d", second_line);
    NOT_COMPILED(parameter_twice, NULL, first, second);
}

/* Case D01's second half: the variants have other biases, so one cannot take the other's weights. */
static void gru_once(cpl_graph *g, const void *user)
{
    cpl_node *x = cpl_input(g, "x", CPL_REALS(1), "batch s in");
    cpl_output(g, "a", cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.units = 1, .cell = *(const cpl_cell *)user}).y);
}

static void case_D01_variants_do_not_share(void **state)
{
    (void)state;
    cpl_program *after = compiled(gru_once, &(cpl_cell){CPL_GRU}, NULL), *before = NULL;
    cpl_error err = CPL_ERROR_INIT;
    cpl_compile_options o = {.share = after};
    assert_int_equal(cpl_compile(&before, gru_once, &(cpl_cell){CPL_GRU_RESET_BEFORE}, &o, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "'rnn.bias'"));
    assert_non_null(strstr(err.line[0], "[rows=2 gates=3]"));
    assert_non_null(strstr(err.line[0], "[gates=3]"));
    assert_int_equal(cpl_parameter_count(after), 3); /* what failed left nothing behind */
    cpl_program_free(after);
}

/* ---- A07, D08: initial states ---- */

typedef enum given { GIVEN_SEQUENCE, GIVEN_CONCAT, GIVEN_ONE_WRONG, GIVEN_STATES } given;

static void decoder_states(cpl_graph *g, const void *user)
{
    given which = *(const given *)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(6), "batch s in"), *y = cpl_input(g, "y", CPL_REALS(6), "batch t in");
    cpl_bidirectional_options both = {.cell = CPL_LSTM, .units = 64, .merge = CPL_CONCAT};
    cpl_bidirectional_result e = cpl_bidirectional(g, "encoder", x, &both);
    cpl_rnn_options o = {.cell = CPL_LSTM, .units = 128};
    cpl_node *h = cpl_concat(g, e.forward.h, e.backward.h), *c = cpl_concat(g, e.forward.c, e.backward.c);
    o.h = which == GIVEN_SEQUENCE ? e.y : h;
    o.c = which == GIVEN_ONE_WRONG ? e.forward.c : which == GIVEN_STATES ? c : NULL;
    if (which == GIVEN_CONCAT)
        o = (cpl_rnn_options){.units = 64, .h = h};
    cpl_output(g, "y", cpl_rnn(g, "decoder", y, &o).y);
    cpl_output(g, "c", c);
}

static void case_A07_sequence_as_state(void **state)
{
    (void)state;
    NOT_COMPILED(decoder_states, &(given){GIVEN_SEQUENCE}, "'decoder'", "2 initial states [batch units=128] (h and c)",
                 "'encoder'", "[batch s ", "=128]", "result.h and result.c");
    cpl_program_free(compiled(decoder_states, &(given){GIVEN_STATES}, NULL)); /* what the hint says works */
}

static void case_A07_one_state_of_the_wrong_width(void **state)
{
    (void)state;
    NOT_COMPILED(decoder_states, &(given){GIVEN_ONE_WRONG}, "'decoder'", "initial state c must be [batch units=128]",
                 "[batch units=64]");
}

static void case_D08_concatenated_states(void **state)
{
    (void)state;
    NOT_COMPILED(decoder_states, &(given){GIVEN_CONCAT}, "'decoder'", "initial state h must be [batch units=64]",
                 "=128]", "twice as wide", "sum or average", "dense layer", "units=128");
}

/* ---- A11: an input that nothing reads ---- */

static void unused_input(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(3), "batch in");
    cpl_input(g, "h", CPL_REALS(3), "batch units");
    cpl_output(g, "y", x);
}

static void case_A11_unused_input(void **state)
{
    (void)state;
    NOT_COMPILED(unused_input, NULL, "input 'h' is declared but never used");
}

/* ---- all other mistakes of a model function, one a row ---- */

typedef enum mistake {
    SCALAR_LOSS, INPUT_TWICE, OUTPUT_TWICE, LEAVE, UNKNOWN_OP, NO_SIZE, SEVEN_DIMENSIONS, RATE, HEADS, NO_UNITS,
    TIME_WORD, VOCABULARY_SIZE, OTHER_SHAPES, EXPECT_WORD, EXPECT_SIZE, EXPECT_RANK, STICKY, IDS_AS_REALS, DOT, NO_NAME
} mistake;

static void mistaken(cpl_graph *g, const void *user)
{
    cpl_node *x = cpl_input(g, "x", CPL_REALS(6), "batch t units");
    cpl_node *words = cpl_input(g, "words", CPL_ID("target", 9), "batch t");
    cpl_output(g, "sum", cpl_sum(g, x));
    cpl_enter(g, "decoder");
    switch (*(const mistake *)user) {
    case SCALAR_LOSS: cpl_minimize(g, x); break;
    case INPUT_TWICE: cpl_input(g, "x", CPL_REALS(6), "batch units"); break;
    case OUTPUT_TWICE: cpl_output(g, "sum", x); break;
    case LEAVE: cpl_leave(g), cpl_leave(g); break;
    case UNKNOWN_OP: cpl_apply(g, "convolve", NULL, (cpl_node *[]){x}, 1); break;
    case NO_SIZE: cpl_input(g, "z", CPL_REALS(0), "batch units"); break;
    case SEVEN_DIMENSIONS: cpl_input(g, "z", CPL_REALS(0), "batch t a=1 b=1 c=1 d=1 e=1"); break;
    case RATE: cpl_dropout(g, x, 1.0); break;
    case HEADS: cpl_attention(g, "attention", x, x, &(cpl_attention_options){.heads = 4}); break;
    case NO_UNITS: cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.units = 0}); break;
    case TIME_WORD: cpl_pack(g, x, "u"); break;
    case VOCABULARY_SIZE:
        cpl_embedding(g, "embedding", words, &(cpl_embedding_options){.size = 8, .units = 2});
        break;
    case OTHER_SHAPES: cpl_add(g, x, cpl_dense(g, "d", x, &(cpl_dense_options){.units = 5})); break;
    case EXPECT_WORD: cpl_expect(g, x, "batch s units"); break;
    case EXPECT_SIZE: cpl_expect(g, x, "batch t units=7"); break;
    case EXPECT_RANK: cpl_expect(g, x, "batch t"); break;
    case STICKY:
        x = cpl_dropout(g, x, -1); /* the first mistake; what follows is not reported and never NULL */
        x = cpl_dense(g, "dense", x, &(cpl_dense_options){.units = 3});
        x = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.units = 0}).y;
        assert_non_null(x);
        assert_non_null(cpl_attention(g, "attention", x, x, NULL).weights);
        assert_non_null(cpl_masked_cross_entropy(g, x, words).accuracy);
        cpl_expect(g, x, "nothing of the kind");
        cpl_output(g, "y", x);
        cpl_minimize(g, x);
        assert_true(cpl_graph_failed(g));
        break;
    case IDS_AS_REALS: cpl_tanh(g, words); break;
    case DOT: cpl_dense(g, "a.b", x, &(cpl_dense_options){.units = 3}); break;
    case NO_NAME: cpl_enter(g, ""), cpl_leave(g); break;
    }
    cpl_leave(g);
}

static void each_mistake_is_named(void **state)
{
    (void)state;
    NOT_COMPILED(mistaken, &(mistake){SCALAR_LOSS}, "a loss must be one number", "'x'", "[batch t units=6]");
    NOT_COMPILED(mistaken, &(mistake){INPUT_TWICE}, "input 'x' is declared twice");
    NOT_COMPILED(mistaken, &(mistake){OUTPUT_TWICE}, "output 'sum' is declared twice");
    NOT_COMPILED(mistaken, &(mistake){LEAVE}, "cpl_leave without a cpl_enter");
    NOT_COMPILED(mistaken, &(mistake){UNKNOWN_OP}, "no op is called 'convolve'", "'decoder'");
    NOT_COMPILED(mistaken, &(mistake){NO_SIZE}, "dimension 'units'", "needs a size", "'units=8'");
    NOT_COMPILED(mistaken, &(mistake){SEVEN_DIMENSIONS}, "more than 6 dimensions");
    NOT_COMPILED(mistaken, &(mistake){RATE}, "rate is 1", "below 1", "decoder.dropout");
    NOT_COMPILED(mistaken, &(mistake){HEADS}, "4 heads do not divide", "=6", "'decoder.attention'");
    NOT_COMPILED(mistaken, &(mistake){NO_UNITS}, "units is 0", "'decoder.rnn'");
    NOT_COMPILED(mistaken, &(mistake){TIME_WORD}, "'u' is no time word", "'s' or 't'");
    NOT_COMPILED(mistaken, &(mistake){VOCABULARY_SIZE}, "size=8", "vocabulary 'target' has 9 entries",
                 "'decoder.embedding'");
    NOT_COMPILED(mistaken, &(mistake){OTHER_SHAPES}, "shapes differ", "'x' [batch t units=6]",
                 "'decoder.d' [batch t units=5]");
    NOT_COMPILED(mistaken, &(mistake){IDS_AS_REALS}, "real numbers", "'words' [batch t]");
    NOT_COMPILED(mistaken, &(mistake){DOT}, "a layer cannot be called 'a.b'", "'decoder'");
    NOT_COMPILED(mistaken, &(mistake){NO_NAME}, "a layer cannot be called ''");
}

static void expectations(void **state)
{
    (void)state;
    NOT_COMPILED(mistaken, &(mistake){EXPECT_WORD}, "expected [batch s units] but 'x' is [batch t units=6]",
                 "'decoder'");
    NOT_COMPILED(mistaken, &(mistake){EXPECT_SIZE}, "expected [batch t units=7] but 'x' is [batch t units=6]");
    NOT_COMPILED(mistaken, &(mistake){EXPECT_RANK}, "expected [batch t] but 'x' is [batch t units=6]");
}

static void the_first_mistake_sticks(void **state)
{
    (void)state;
    NOT_COMPILED(mistaken, &(mistake){STICKY}, "rate is -1");
}

static void met_expectations(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(6), "batch t units");
    cpl_expect(g, x, "batch t units");
    cpl_expect(g, x, "batch t units=6");
    cpl_expect(g, x, " batch  t units=6 ");
    cpl_expect(g, cpl_sum(g, x), "");
    cpl_output(g, "x", x);
}

static void right_expectations_pass(void **state)
{
    (void)state;
    cpl_program *p = compiled(met_expectations, NULL, NULL);
    REFUSED(cpl_run(p, CPL_TRAIN, err), "'model' cannot be trained: it has no loss");
    cpl_program_free(p);
}

static cpl_node *foreign;

static void keeps_a_node(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(2), "batch in");
    cpl_output(g, "y", foreign ? cpl_add(g, x, foreign) : x);
    foreign = foreign ? foreign : x;
}

static void nodes_of_another_graph(void **state)
{
    (void)state;
    cpl_program *p = compiled(keeps_a_node, NULL, NULL);
    NOT_COMPILED(keeps_a_node, NULL, "input 1 of 'add' belongs to another graph");
    cpl_program_free(p);
}

/* user: what is minimised: the figure without smoothing, or a smoothing that is none. */
static void smoothed(cpl_graph *g, const void *user)
{
    const double *smoothing = user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(3), "batch t in"), *y = cpl_input(g, "y", CPL_ID("words", 5), "batch t");
    cpl_node *logits = cpl_dense(g, "output", x, &(cpl_dense_options){.units = 5, .dim = "vocab"}), *plain;
    cpl_loss_result r = cpl_smoothed_cross_entropy(g, logits, y, *smoothing, &plain);
    cpl_minimize(g, *smoothing == 0.25 ? plain : r.loss);
}

static void a_figure_is_not_minimised(void **state)
{
    (void)state;
    const double smoothings[] = {0.25, 1, 0.1};
    NOT_COMPILED(smoothed, &smoothings[0], "output 3 of 'linear_cross_entropy' is a figure to read, it has no gradient",
                 "minimize the loss itself");
    NOT_COMPILED(smoothed, &smoothings[1], "the smoothing of a loss is 1, expected 0 … below 1");
    cpl_program_free(compiled(smoothed, &smoothings[2], NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_figure_is_not_minimised),
    cmocka_unit_test(case_A01_units_as_logits),
    cmocka_unit_test(case_A01_units_equal_to_vocab),
    cmocka_unit_test(case_A01_logits_of_another_vocabulary),
    cmocka_unit_test(case_A02_logits_over_another_time),
    cmocka_unit_test(case_A05_same_name_same_options_share),
    cmocka_unit_test(case_A05_same_name_other_options),
    cmocka_unit_test(case_A05_same_name_other_activation),
    cmocka_unit_test(case_A05_both_places_are_named),
    cmocka_unit_test(case_D01_variants_do_not_share),
    cmocka_unit_test(case_A07_sequence_as_state),
    cmocka_unit_test(case_A07_one_state_of_the_wrong_width),
    cmocka_unit_test(case_D08_concatenated_states),
    cmocka_unit_test(case_A11_unused_input),
    cmocka_unit_test(each_mistake_is_named),
    cmocka_unit_test(expectations),
    cmocka_unit_test(the_first_mistake_sticks),
    cmocka_unit_test(right_expectations_pass),
    cmocka_unit_test(nodes_of_another_graph),
};

CPL_TEST_MAIN(tests)
