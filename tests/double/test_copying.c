/* Gradients of a model that copies, with coverage, against central differences, in double: the attention's weights are
 * read by its context, the pointer and the coverage loss, after a recurrent layer and inside a loop. */
#include "support/run.h"

#include <math.h>
#include "graph/program.h"

enum { WORDS = 7, UNITS = 4, BATCH = 4 };
enum { LOOP = 1, ADDITIVE = 2, KINDS = 4 };

typedef struct stepping {
    cpl_attention_options attention;
    cpl_attention_memory memory;
} stepping;

static void body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    const stepping *s = user;
    cpl_node *h = cpl_loop_state(loop, "h"), *c = cpl_loop_state(loop, "c");
    cpl_attention_result a = cpl_attention_query(g, "attention", h, s->memory, &s->attention);
    cpl_lstm_step(g, "cell", cpl_concat(g, a.y, cpl_loop_slice(loop, "x")), &h, &c, UNITS);
    cpl_loop_next(loop, "h", h);
    cpl_loop_next(loop, "c", c);
    cpl_loop_emit(loop, "y", h);
    cpl_loop_emit(loop, "context", a.y);
    cpl_loop_emit(loop, "weights", a.weights);
}

static void model(cpl_graph *g, const void *user)
{
    int kind = *(const int *)user;
    stepping s = {.attention = {.score = kind & ADDITIVE ? CPL_SCORE_ADDITIVE : CPL_SCORE_MULTIHEAD}};
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", WORDS), "batch s"), *y, *context, *weights;
    cpl_node *ids = cpl_input(g, "copy", CPL_EXTENDED_ID, "batch s");
    cpl_node *token = cpl_input(g, "token", CPL_ID("target", WORDS), "batch t");
    cpl_node *label = cpl_input(g, "label", CPL_EXTENDED_ID, "batch t");
    cpl_node *x = cpl_embedding(g, "source", source, &(cpl_embedding_options){.size = WORDS, .units = UNITS});
    x = cpl_rnn(g, "encoder", x, &(cpl_rnn_options){.units = UNITS}).y;
    s.memory = cpl_attention_project(g, "attention", x, &s.attention, UNITS);
    x = cpl_embedding(g, "target", token, &(cpl_embedding_options){.size = WORDS, .units = UNITS});
    if (kind & LOOP) {
        cpl_scan_options o = {.name = "decoder", .time = "t", .inputs = {{"x", x, 0}},
                              .states = {{"h", NULL, UNITS}, {"c", NULL, UNITS}}};
        cpl_loop *loop = cpl_scan(g, &o, body, &s);
        y = cpl_loop_output(loop, "y"), context = cpl_loop_output(loop, "context");
        weights = cpl_loop_output(loop, "weights");
    } else {
        y = cpl_rnn(g, "decoder", x, &(cpl_rnn_options){.units = UNITS}).y;
        cpl_attention_result a = cpl_attention_query(g, "attention", y, s.memory, &s.attention);
        context = a.y, weights = a.weights;
    }
    cpl_node *gate = cpl_dense(g, "gate", cpl_concat(g, context, y), &(cpl_dense_options){.units = 1, .dim = "gate"});
    cpl_node *logits = cpl_dense(g, "output", y, &(cpl_dense_options){.units = WORDS, .dim = "vocab"});
    cpl_loss_result r = cpl_copying_cross_entropy(g, logits, &(cpl_copying){gate, weights, ids}, label);
    cpl_node *loss = cpl_add(g, r.loss, cpl_scale(g, cpl_coverage(g, weights, label), 0.5));
    cpl_output(g, "loss", loss);
    cpl_minimize(g, loss);
}

/* 7 and 8 are words of the source that the vocabulary lacks. */
static double loss_of(cpl_program *p)
{
    static const int32_t words[] = {4, 1, 6, 1, 5}, copy[] = {4, 7, 6, 8, 7}, labels[] = {7, 6, 3, 8, 7, 3};
    const int32_t *rows[BATCH] = {words, words, words + 2, words + 1}, *ids[BATCH] = {copy, copy, copy + 2, copy + 1};
    const int32_t *targets[BATCH] = {labels, labels + 3, labels + 3, labels};
    const int64_t source[BATCH] = {3, 5, 2, 2}, target[BATCH] = {3, 2, 1, 0};
    cpl_error err = CPL_ERROR_INIT;
    cpl_status s = cpl_feed_ids(p, "source", rows, source, BATCH, &err);
    s = s ? s : cpl_feed_ids(p, "copy", ids, source, BATCH, &err);
    s = s ? s : cpl_feed_ids(p, "token", rows, target, BATCH, &err);
    s = s ? s : cpl_feed_ids(p, "label", targets, target, BATCH, &err);
    s = s ? s : cpl_run(p, CPL_TRAIN, &err);
    if (s != CPL_OK)
        fail_msg("%s", err.line[0]);
    return cpl_scalar(p, "loss");
}

static double difference(cpl_program *p, real *w)
{
    real old = *w;
    *w = old + 1e-5;
    double up = loss_of(p);
    *w = old - 1e-5;
    double down = loss_of(p);
    *w = old;
    return (up - down) / 2e-5;
}

static void gradients_by_differences(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        cpl_program *p;
        cpl_error err = CPL_ERROR_INIT;
        if (cpl_compile(&p, model, &kind, &(cpl_compile_options){.seed = 7}, &err) != CPL_OK)
            fail_msg("%s", err.line[0]);
        const cpl_parameters *store = p->engine->parameters;
        for (size_t i = 0; i < cpl_parameters_count(store); i++) {
            const cpl_parameter_info *info = cpl_parameters_at(store, i);
            assert_true(info->reached);
            for (int64_t k = 0; k < info->elements; k++) {
                loss_of(p);
                double want = p->gradients[info->offset + k], got = difference(p, cpl_parameters_value(store, i) + k);
                if (!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))))
                    fail_msg("kind %d, %s[%d]: %.9g, by differences %.9g", kind, info->path, (int)k, want, got);
            }
        }
        cpl_program_free(p);
    }
}

/* Logits must come from a projection that the loss can see through. */
static void of_activated_logits(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(UNITS), "batch t units"), *label;
    label = cpl_input(g, "label", CPL_EXTENDED_ID, "batch t");
    cpl_loss_result r = cpl_copying_cross_entropy(g, cpl_tanh(g, x), &(cpl_copying){x, x, label}, label);
    cpl_minimize(g, r.loss);
}

static void other_logits_are_refused(void **state)
{
    (void)state;
    cpl_program *p;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_compile(&p, of_activated_logits, NULL, &(cpl_compile_options){.seed = 7}, &err), CPL_USAGE);
    assert_string_equal(err.line[0],
                        "loss 'copying_cross_entropy' needs logits that a dense layer without activation gives");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_by_differences),
                                       cmocka_unit_test(other_logits_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
