/* summarizer_step.c: time of one training step of reference A on given lengths.
 *
 *   summarizer_step LENGTHS [STEPS] [POSITION] [BATCH] [UNITS] [VOCABULARY] [THREADS]
 *
 * LSTM encoder; LSTM decoder from its last state; additive attention, joined to the state by concatenation. POSITION
 * after (8,115,308 parameters at 256 units and 6,764 words): one attention over all steps. before: the state before a
 * step asks, so the decoder is a loop over single steps. asker: the same, written as its author wrote it, every step of
 * the loop calling the encoder. step.h says what LENGTHS and the ids are. */
#include "step.h"

/* The other programs' attention has one bias, that of the keys; these two add nothing to what it can learn. */
static const char *const absent[] = {"decoder.attention.query.bias", "decoder.attention.score.bias"};

/* ---- the author's own program ---- */

typedef struct asked {
    cpl_node *source;
    const cpl_model_sizes *sizes;
} asked;

static cpl_rnn_result encoder(cpl_graph *g, const asked *in)
{
    int64_t units = in->sizes->config->model.units;
    cpl_enter(g, "encoder");
    cpl_node *x = cpl_embedding(
        g, "embedding", in->source, &(cpl_embedding_options){.size = in->sizes->source_vocabulary, .units = units});
    cpl_rnn_result r = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.cell = CPL_LSTM, .units = units});
    cpl_leave(g);
    return r;
}

static void one_step(cpl_graph *g, cpl_loop *loop, const void *user)
{
    const asked *in = user;
    int64_t units = in->sizes->config->model.units, words = in->sizes->target_vocabulary;
    cpl_node *memory = encoder(g, in).y; /* inside on purpose */
    cpl_node *h = cpl_loop_state(loop, "h"), *c = cpl_loop_state(loop, "c");
    cpl_enter(g, "decoder");
    cpl_node *x = cpl_embedding(g, "embedding", cpl_loop_slice(loop, "token"),
                                &(cpl_embedding_options){.size = words, .units = units});
    cpl_attention_result a = cpl_additive_attention(g, "attention", h, memory, NULL);
    cpl_lstm_step(g, "rnn", cpl_concat(g, x, a.y), &h, &c, units);
    cpl_node *logits = cpl_dense(g, "output", h, &(cpl_dense_options){.units = words, .dim = "vocab"});
    cpl_leave(g);
    cpl_loop_next(loop, "h", h);
    cpl_loop_next(loop, "c", c);
    cpl_loop_emit(loop, "logits", logits);
}

static void asker_loss(cpl_graph *g, const void *user)
{
    const cpl_model_sizes *n = user;
    asked in = {cpl_input(g, "source", CPL_ID("source", n->source_vocabulary), "batch s"), n};
    cpl_node *token = cpl_input(g, "target_in", CPL_ID("target", n->target_vocabulary), "batch t");
    cpl_node *label = cpl_input(g, "target_out", CPL_ID("target", n->target_vocabulary), "batch t");
    cpl_rnn_result first = encoder(g, &in);
    cpl_scan_options o = {.name = "loop", .time = "t", .inputs = {{"token", token, 0}},
                          .states = {{"h", first.h, 0}, {"c", first.c, 0}}};
    cpl_loop *loop = cpl_scan(g, &o, one_step, &in);
    cpl_loss_result r = cpl_masked_cross_entropy(g, cpl_loop_output(loop, "logits"), label);
    cpl_output(g, "loss", r.loss);
    cpl_minimize(g, r.loss);
}

static const cpl_model_kind asker = {.name = "asker", .loss = asker_loss};

/* ---- main ---- */

static int configure(cpl_config *c, const char *position)
{
    return cpl_config_set(c, "model.type", "summarizer", NULL) == CPL_OK &&
           cpl_config_set(c, "model.decoder.attention.position", position, NULL) == CPL_OK;
}

int main(int argc, char **argv)
{
    static step_work w = {.usage = "summarizer_step LENGTHS [STEPS] [after|before|asker] [BATCH] [UNITS] [VOCABULARY] "
                                   "[THREADS]",
                          .kind = &cpl_summarizer, .freeze = absent, .freeze_count = 2, .width = {400, 50},
                          .batches = 20};
    cpl_config *config = NULL;
    const char *position = argc > 3 ? argv[3] : "after";
    if (strcmp(position, "asker") == 0)
        w.kind = &asker, w.freeze_count = 0, position = "before";
    if (cpl_config_default(&config, NULL) || !configure(config, position))
        return fprintf(stderr, "usage: %s\n", w.usage), cpl_config_free(config), 2;
    w.steps = step_argument(argc, argv, 2, 20);
    w.batch = step_argument(argc, argv, 4, 32);
    w.vocabulary = step_argument(argc, argv, 6, 6764);
    config->model.units = step_argument(argc, argv, 5, 256);
    int status = step_main(&w, argc, argv, config, (int)step_argument(argc, argv, 7, 2));
    cpl_config_free(config);
    return status;
}
