/* Layers against Keras's values: outputs, states and gradients of Σ out·proj, padding included. */
#include "support/run.h"

#include <string.h>
#include "support/golden.h"

typedef struct layer_case {
    const char *file;
    cpl_cell cell;
    int bidirectional;
    cpl_merge merge;
    int mask, states; /* states: initial ones given and final ones compared */
} layer_case;

/* Σ x·proj, as one more term of total. */
static cpl_node *project(cpl_graph *g, cpl_node *total, cpl_node *x, const char *proj, cpl_input_type type,
                         const char *shape)
{
    cpl_node *term = cpl_sum(g, cpl_multiply(g, x, cpl_input(g, proj, type, shape)));
    return total ? cpl_add(g, total, term) : term;
}

static void recurrent(cpl_graph *g, const void *user)
{
    const layer_case *c = user;
    int wide = c->bidirectional && c->merge == CPL_CONCAT ? 16 : 8, lstm = c->cell == CPL_LSTM;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(6), "batch padded in");
    cpl_watch(g, "grad.x", x);
    cpl_node *h0 = NULL, *c0 = NULL;
    if (c->states) {
        h0 = cpl_input(g, "state0", CPL_REALS(8), "batch units");
        cpl_watch(g, "grad.state0", h0);
        if (lstm) {
            c0 = cpl_input(g, "state1", CPL_REALS(8), "batch units");
            cpl_watch(g, "grad.state1", c0);
        }
    }
    cpl_rnn_result r = {0};
    cpl_node *packed = cpl_pack(g, x, "s");
    if (c->bidirectional)
        r.y = cpl_bidirectional(g, "rnn", packed, &(cpl_bidirectional_options){
            .cell = c->cell, .units = 8, .merge = c->merge}).y;
    else
        r = cpl_rnn(g, "rnn", packed, &(cpl_rnn_options){.cell = c->cell, .units = 8, .h = h0, .c = c0});
    cpl_node *y = cpl_unpack(g, r.y, !c->bidirectional);
    cpl_output(g, "y", y);
    cpl_node *total = project(g, NULL, y, "proj.y", CPL_REALS(wide), "batch padded units");
    if (c->states) {
        cpl_output(g, "h", r.h);
        total = project(g, total, r.h, "proj.h", CPL_REALS(8), "batch units");
        if (lstm) {
            cpl_output(g, "c", r.c);
            total = project(g, total, r.c, "proj.c", CPL_REALS(8), "batch units");
        }
    }
    cpl_minimize(g, total);
}

/* Parameter paths of ours and of the file; NULL-terminated. */
static const char *const gru_names[][2] = {{"rnn.kernel", "gru/gru_cell/kernel"},
                                           {"rnn.recurrent_kernel", "gru/gru_cell/recurrent_kernel"},
                                           {"rnn.bias", "gru/gru_cell/bias"}, {NULL, NULL}};
static const char *const lstm_names[][2] = {{"rnn.kernel", "lstm/lstm_cell/kernel"},
                                            {"rnn.recurrent_kernel", "lstm/lstm_cell/recurrent_kernel"},
                                            {"rnn.bias", "lstm/lstm_cell/bias"}, {NULL, NULL}};
static const char *const bigru_names[][2] = {
    {"rnn.forward.kernel", "bidirectional/forward_gru/gru_cell/kernel"},
    {"rnn.forward.recurrent_kernel", "bidirectional/forward_gru/gru_cell/recurrent_kernel"},
    {"rnn.forward.bias", "bidirectional/forward_gru/gru_cell/bias"},
    {"rnn.backward.kernel", "bidirectional/backward_gru/gru_cell/kernel"},
    {"rnn.backward.recurrent_kernel", "bidirectional/backward_gru/gru_cell/recurrent_kernel"},
    {"rnn.backward.bias", "bidirectional/backward_gru/gru_cell/bias"}, {NULL, NULL}};
static const char *const bilstm_names[][2] = {
    {"rnn.forward.kernel", "bidirectional/forward_lstm/lstm_cell/kernel"},
    {"rnn.forward.recurrent_kernel", "bidirectional/forward_lstm/lstm_cell/recurrent_kernel"},
    {"rnn.forward.bias", "bidirectional/forward_lstm/lstm_cell/bias"},
    {"rnn.backward.kernel", "bidirectional/backward_lstm/lstm_cell/kernel"},
    {"rnn.backward.recurrent_kernel", "bidirectional/backward_lstm/lstm_cell/recurrent_kernel"},
    {"rnn.backward.bias", "bidirectional/backward_lstm/lstm_cell/bias"}, {NULL, NULL}};

static void load(const golden *g, cpl_program *p, const char *const (*names)[2])
{
    char name[160];
    for (; (*names)[0]; names++) {
        snprintf(name, sizeof name, "w.%s", (*names)[1]);
        golden_set(g, p, (*names)[0], name);
    }
}

static void check_gradients(const golden *g, cpl_program *p, const char *const (*names)[2])
{
    char name[160];
    for (; (*names)[0]; names++) {
        snprintf(name, sizeof name, "grad.w.%s", (*names)[1]);
        golden_check_gradient(g, p, (*names)[0], name, 0);
    }
}

/* A watched gradient against the file, relative to its largest value. */
static void check_watch(const golden *g, cpl_program *p, const char *name)
{
    const cpl_tensor_entry *t = golden_find(g, name);
    double largest = 0;
    for (int64_t i = 0; i < (int64_t)cpl_tensor_elements(t); i++)
        largest = golden_at(t, i) > largest ? golden_at(t, i) : -golden_at(t, i) > largest ? -golden_at(t, i) : largest;
    golden_check_output(g, p, name, name, 2e-4 * largest, NULL);
}

static void feed_recurrent(const golden *g, cpl_program *p, const layer_case *c)
{
    const cpl_tensor_entry *x = golden_find(g, "in.x");
    golden_feed(g, p, "x", "in.x");
    if (c->mask)
        golden_feed_mask(g, p, "s", "in.mask");
    else {
        uint8_t whole[64];
        memset(whole, 1, sizeof whole);
        MUST(cpl_feed_mask(p, "s", whole, x->shape[0], x->shape[1], err));
    }
    golden_feed(g, p, "proj.y", "proj.y");
    if (!c->states)
        return;
    int lstm = c->cell == CPL_LSTM;
    golden_feed(g, p, "state0", "in.state0");
    golden_feed(g, p, "proj.h", lstm ? "proj.h" : "proj.state");
    if (lstm) {
        golden_feed(g, p, "state1", "in.state1");
        golden_feed(g, p, "proj.c", "proj.c");
    }
}

static void check_recurrent(const layer_case *c, const char *const (*names)[2])
{
    golden g = golden_open(c->file);
    cpl_program *p;
    int lstm = c->cell == CPL_LSTM;
    MUST(cpl_compile(&p, recurrent, c, &(cpl_compile_options){.name = c->file}, err));
    load(&g, p, names);
    for (int mode = CPL_EVALUATE; mode <= CPL_TRAIN; mode++) {
        feed_recurrent(&g, p, c);
        MUST(cpl_run(p, (cpl_mode)mode, err));
        golden_check_output(&g, p, "y", "out.y", 2e-5, NULL);
        if (c->states) {
            golden_check_output(&g, p, "h", lstm ? "out.h" : "out.state", 2e-5, NULL);
            if (lstm)
                golden_check_output(&g, p, "c", "out.c", 2e-5, NULL);
        }
    }
    check_gradients(&g, p, names);
    check_watch(&g, p, "grad.x");
    if (c->states)
        check_watch(&g, p, "grad.state0");
    if (c->states && lstm)
        check_watch(&g, p, "grad.state1");
    cpl_program_free(p);
    golden_close(&g);
}

static void gru(void **state)
{
    (void)state;
    check_recurrent(&(layer_case){"gru", CPL_GRU, 0, CPL_SUM, 0, 1}, gru_names);
}

static void gru_mask(void **state)
{
    (void)state;
    check_recurrent(&(layer_case){"gru_mask", CPL_GRU, 0, CPL_SUM, 1, 1}, gru_names);
}

static void gru_reset_before(void **state)
{
    (void)state;
    check_recurrent(&(layer_case){"gru_reset_before", CPL_GRU_RESET_BEFORE, 0, CPL_SUM, 1, 0}, gru_names);
}

static void lstm(void **state)
{
    (void)state;
    check_recurrent(&(layer_case){"lstm", CPL_LSTM, 0, CPL_SUM, 0, 1}, lstm_names);
}

static void lstm_mask(void **state)
{
    (void)state;
    check_recurrent(&(layer_case){"lstm_mask", CPL_LSTM, 0, CPL_SUM, 1, 1}, lstm_names);
}

static void bigru_sum_mask(void **state)
{
    (void)state;
    check_recurrent(&(layer_case){"bigru_sum_mask", CPL_GRU, 1, CPL_SUM, 1, 0}, bigru_names);
}

static void bilstm_concat_mask(void **state)
{
    (void)state;
    check_recurrent(&(layer_case){"bilstm_concat_mask", CPL_LSTM, 1, CPL_CONCAT, 1, 0}, bilstm_names);
}

/* ---- cross-attention ---- */

static void attention(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(8), "batch padded units");
    cpl_node *context = cpl_input(g, "context", CPL_REALS(8), "batch s units");
    cpl_watch(g, "grad.x", x);
    cpl_watch(g, "grad.context", context);
    cpl_node *q = cpl_pack(g, x, "t");
    cpl_attention_result a = cpl_attention(g, "attention", q, context, NULL);
    cpl_node *y = cpl_layer_norm(g, "norm", cpl_add(g, q, a.y), 0);
    cpl_output(g, "y", y);
    cpl_output(g, "scores", a.weights);
    cpl_node *total = project(g, NULL, y, "proj.y", CPL_REALS(8), "batch t units");
    cpl_minimize(g, project(g, total, a.weights, "proj.scores", CPL_REALS(0), "heads=1 batch t s"));
}

static const char *const attention_names[][2] = {
    {"attention.query.kernel", "multi_head_attention/query/kernel"},
    {"attention.query.bias", "multi_head_attention/query/bias"},
    {"attention.key.kernel", "multi_head_attention/key/kernel"},
    {"attention.key.bias", "multi_head_attention/key/bias"},
    {"attention.value.kernel", "multi_head_attention/value/kernel"},
    {"attention.value.bias", "multi_head_attention/value/bias"},
    {"attention.output.kernel", "multi_head_attention/attention_output/kernel"},
    {"attention.output.bias", "multi_head_attention/attention_output/bias"},
    {"norm.gamma", "layer_normalization/gamma"},
    {"norm.beta", "layer_normalization/beta"}};
enum { ATTENTION_NAMES = sizeof attention_names / sizeof attention_names[0] };

static void feed_attention(const golden *g, cpl_program *p)
{
    const cpl_tensor_entry *x = golden_find(g, "in.x");
    uint8_t whole[64];
    memset(whole, 1, sizeof whole);
    golden_feed(g, p, "x", "in.x");
    golden_feed_mask(g, p, "s", "in.mask");
    MUST(cpl_feed_mask(p, "t", whole, x->shape[0], x->shape[1], err));
    golden_feed(g, p, "context", "in.context");
    golden_feed(g, p, "proj.y", "proj.y");
    cpl_array scores = golden_array(g, "proj.scores");
    cpl_array with_heads = {.type = scores.type, .rank = 4, .data = scores.data,
                            .shape = {1, scores.shape[0], scores.shape[1], scores.shape[2]}};
    MUST(cpl_feed(p, "proj.scores", &with_heads, err));
}

static void cross_attention(void **state)
{
    (void)state;
    golden g = golden_open("cross_attention");
    cpl_program *p;
    char name[160];
    MUST(cpl_compile(&p, attention, NULL, &(cpl_compile_options){.name = "cross_attention"}, err));
    for (int i = 0; i < ATTENTION_NAMES; i++) {
        snprintf(name, sizeof name, "w.cross_attention/%s", attention_names[i][1]);
        golden_set(&g, p, attention_names[i][0], name);
    }
    feed_attention(&g, p);
    MUST(cpl_run(p, CPL_TRAIN, err));
    golden_check_output(&g, p, "y", "out.y", 2e-5, NULL);
    golden_check_output(&g, p, "scores", "out.scores", 2e-5, NULL);
    for (int i = 0; i < ATTENTION_NAMES; i++) {
        snprintf(name, sizeof name, "grad.w.cross_attention/%s", attention_names[i][1]);
        int none = strcmp(attention_names[i][0], "attention.key.bias") == 0;
        golden_check_gradient(&g, p, attention_names[i][0], name, none);
    }
    check_watch(&g, p, "grad.x");
    check_watch(&g, p, "grad.context");
    cpl_program_free(p);
    golden_close(&g);
}

/* ---- the loss ---- */

static void loss(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *logits = cpl_input(g, "logits", CPL_REALS(5), "batch t vocab");
    cpl_node *y = cpl_input(g, "y", CPL_ID("target", 5), "batch t");
    cpl_watch(g, "grad.logits", logits);
    cpl_loss_result r = cpl_masked_cross_entropy(g, logits, y);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "accuracy", r.accuracy);
    cpl_minimize(g, r.loss);
}

/* Once with the padding outside (a mask), once with every position present and label 0 meaning padding. */
static void masked_loss(void **state)
{
    (void)state;
    golden g = golden_open("masked_loss");
    cpl_program *p;
    MUST(cpl_compile(&p, loss, NULL, &(cpl_compile_options){.name = "masked_loss"}, err));
    for (int masked = 0; masked < 2; masked++) {
        if (masked)
            golden_feed_mask(&g, p, "t", "in.y");
        golden_feed(&g, p, "logits", "in.logits");
        golden_feed(&g, p, "y", "in.y");
        MUST(cpl_run(p, CPL_TRAIN, err));
        golden_check_output(&g, p, "loss", "out.loss", 2e-5, NULL);
        golden_check_output(&g, p, "accuracy", "out.accuracy", 2e-5, NULL);
        check_watch(&g, p, "grad.logits");
    }
    cpl_program_free(p);
    golden_close(&g);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gru), cmocka_unit_test(gru_mask), cmocka_unit_test(gru_reset_before), cmocka_unit_test(lstm),
        cmocka_unit_test(lstm_mask), cmocka_unit_test(bigru_sum_mask), cmocka_unit_test(bilstm_concat_mask),
        cmocka_unit_test(cross_attention), cmocka_unit_test(masked_loss),
    };
    if (argc > 1 && !cpl_test_choose(tests, sizeof tests / sizeof tests[0], argv[1]))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
