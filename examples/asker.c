/* asker.c: a summarizer written step by step, as one would in a language with a gradient tape: each step of the target
 * calls the encoder (an LSTM from given states) and asks its outputs by additive attention with the decoder's state.
 *
 * On a tape the encoder would run, and be kept for the gradient, once for every step. Here the body of the loop is
 * traced once, and what depends on no state leaves the loop: the log says which layers did. The data are made up: the
 * "summary" of a row of numbers is its first ones, backwards. */
#include <couplet.h>
#include <stdlib.h>

enum { WORDS = 24, FIRST_WORD = 3, UNITS = 32, BATCH = 16, LONGEST = 12, SUMMARY = 3, STEPS = 400 };
enum { START = 1, END = 2 };

static cpl_node *encoder(cpl_graph *g, cpl_node *source, cpl_node *h, cpl_node *c)
{
    cpl_enter(g, "encoder");
    cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = WORDS, .units = UNITS});
    cpl_rnn_result r = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.cell = CPL_LSTM, .units = UNITS, .h = h, .c = c});
    cpl_leave(g);
    return r.y;
}

typedef struct inputs {
    cpl_node *source, *h, *c;
} inputs;

/* One step of the target. The encoder stands inside on purpose. */
static void decoder(cpl_graph *g, cpl_loop *loop, const void *user)
{
    const inputs *in = user;
    cpl_node *context = encoder(g, in->source, in->h, in->c);
    cpl_node *h = cpl_loop_state(loop, "h"), *c = cpl_loop_state(loop, "c");
    cpl_enter(g, "decoder");
    cpl_node *x = cpl_embedding(g, "embedding", cpl_loop_slice(loop, "token"),
                                &(cpl_embedding_options){.size = WORDS, .units = UNITS});
    cpl_attention_result a = cpl_additive_attention(g, "attention", h, context, NULL);
    cpl_lstm_step(g, "rnn", cpl_concat(g, x, a.y), &h, &c, UNITS);
    cpl_node *logits = cpl_dense(g, "output", h, &(cpl_dense_options){.units = WORDS, .dim = "vocab"});
    cpl_leave(g);
    cpl_loop_next(loop, "h", h);
    cpl_loop_next(loop, "c", c);
    cpl_loop_emit(loop, "logits", logits);
}

static void model(cpl_graph *g, const void *user)
{
    (void)user;
    inputs in = {.source = cpl_input(g, "source", CPL_ID("words", WORDS), "batch s"),
                 .h = cpl_input(g, "h", CPL_REALS(UNITS), "batch units"),
                 .c = cpl_input(g, "c", CPL_REALS(UNITS), "batch units")};
    cpl_node *token = cpl_input(g, "token", CPL_ID("words", WORDS), "batch t");
    cpl_node *label = cpl_input(g, "label", CPL_ID("words", WORDS), "batch t");
    cpl_scan_options o = {.name = "loop", .time = "t", .inputs = {{"token", token, 0}},
                          .states = {{"h", in.h, 0}, {"c", in.c, 0}}};
    cpl_loop *loop = cpl_scan(g, &o, decoder, &in);
    cpl_loss_result r = cpl_masked_cross_entropy(g, cpl_loop_output(loop, "logits"), label);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "accuracy", r.accuracy);
    cpl_minimize(g, r.loss);
}

/* A batch: rows of words, the tokens that the decoder reads and those that it should say. */
static cpl_status feed(cpl_program *p, cpl_error *err)
{
    static const float zeros[BATCH * UNITS];
    int32_t source[BATCH][LONGEST], token[BATCH][SUMMARY + 1], label[BATCH][SUMMARY + 1];
    int64_t lengths[BATCH];
    for (int i = 0; i < BATCH; i++) {
        lengths[i] = SUMMARY + rand() % (LONGEST - SUMMARY + 1);
        for (int k = 0; k < LONGEST; k++)
            source[i][k] = k < lengths[i] ? FIRST_WORD + rand() % (WORDS - FIRST_WORD) : 0;
        for (int k = 0; k <= SUMMARY; k++) {
            label[i][k] = k < SUMMARY ? source[i][SUMMARY - 1 - k] : END;
            token[i][k] = k ? label[i][k - 1] : START;
        }
    }
    cpl_array state = {.type = CPL_FLOAT32, .rank = 2, .shape = {BATCH, UNITS}, .data = zeros};
    cpl_array words = {.type = CPL_INT32, .rank = 2, .shape = {BATCH, LONGEST}, .data = source, .lengths = lengths};
    cpl_array tokens = {.type = CPL_INT32, .rank = 2, .shape = {BATCH, SUMMARY + 1}, .data = token};
    cpl_array labels = {.type = CPL_INT32, .rank = 2, .shape = {BATCH, SUMMARY + 1}, .data = label};
    cpl_status s = cpl_feed(p, "source", &words, err);
    s = s == CPL_OK ? cpl_feed(p, "h", &state, err) : s;
    s = s == CPL_OK ? cpl_feed(p, "c", &state, err) : s;
    s = s == CPL_OK ? cpl_feed(p, "token", &tokens, err) : s;
    return s == CPL_OK ? cpl_feed(p, "label", &labels, err) : s;
}

static void tell(void *user, int level, const char *text)
{
    (void)user;
    printf("%s%s\n", level ? "warning: " : "", text);
}

int main(void)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_program *program = NULL;
    cpl_compile_options o = {.name = "asker", .seed = 1, .message = tell};
    cpl_status status = cpl_compile(&program, model, NULL, &o, &err);
    for (int i = 1; status == CPL_OK && i <= STEPS; i++) {
        status = feed(program, &err);
        if (status == CPL_OK)
            status = cpl_run(program, CPL_TRAIN, &err); /* loss and gradients of the whole loop */
        if (status == CPL_OK)
            status = cpl_adam(program, 1e-2, &err);
        if (status == CPL_OK && i % 100 == 0)
            printf("step %d loss %.4f accuracy %.3f\n", i, cpl_scalar(program, "loss"),
                   cpl_scalar(program, "accuracy"));
    }
    if (status != CPL_OK)
        cpl_error_print(&err, stderr);
    cpl_program_free(program);
    return (int)status;
}
