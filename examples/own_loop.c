/* own_loop.c: a model of one's own and a training loop by hand, for people who come from a gradient tape.
 *
 * The model reads a sentence of ids backwards and forwards and tags each position: here, with the id that stood one
 * place earlier (a toy that needs memory). Everything that can be wrong with it is found by cpl_compile. */
#include <couplet.h>
#include <stdlib.h>

enum { WORDS = 20, UNITS = 24, BATCH = 16, LONGEST = 9, STEPS = 300 };

/* Called once, for every length there will ever be. Nothing runs here. */
static void tagger(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *words = cpl_input(g, "words", CPL_ID("words", WORDS), "batch s");
    cpl_node *tags = cpl_input(g, "tags", CPL_ID("words", WORDS), "batch s");
    cpl_node *x = cpl_embedding(g, "embedding", words, &(cpl_embedding_options){.size = WORDS, .units = UNITS});
    x = cpl_bidirectional(g, "rnn", x, &(cpl_bidirectional_options){.cell = CPL_GRU, .units = UNITS}).y;
    cpl_expect(g, x, "batch s units=24");
    cpl_node *logits = cpl_dense(g, "output", x, &(cpl_dense_options){.units = WORDS, .dim = "vocab"});
    cpl_loss_result r = cpl_masked_cross_entropy(g, logits, tags);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "accuracy", r.accuracy);
    cpl_minimize(g, r.loss);
}

/* Sentences of 2 … LONGEST ids; the tag is the id before (1 at the first place). */
static void make_batch(int32_t words[BATCH][LONGEST], int32_t tags[BATCH][LONGEST], int64_t *lengths)
{
    for (int i = 0; i < BATCH; i++) {
        lengths[i] = 2 + rand() % (LONGEST - 1);
        for (int k = 0; k < lengths[i]; k++) {
            words[i][k] = 2 + rand() % (WORDS - 2);
            tags[i][k] = k ? words[i][k - 1] : 1;
        }
    }
}

static cpl_status step(cpl_program *p, cpl_error *err)
{
    int32_t words[BATCH][LONGEST], tags[BATCH][LONGEST];
    const int32_t *word_rows[BATCH], *tag_rows[BATCH];
    int64_t lengths[BATCH];
    make_batch(words, tags, lengths);
    for (int i = 0; i < BATCH; i++)
        word_rows[i] = words[i], tag_rows[i] = tags[i];
    cpl_status s = cpl_feed_ids(p, "words", word_rows, lengths, BATCH, err);
    if (s == CPL_OK)
        s = cpl_feed_ids(p, "tags", tag_rows, lengths, BATCH, err);
    if (s == CPL_OK)
        s = cpl_run(p, CPL_TRAIN, err); /* loss and gradients */
    return s == CPL_OK ? cpl_adam(p, 1e-2, err) : s;
}

int main(void)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_program *program = NULL;
    cpl_status status = cpl_compile(&program, tagger, NULL, &(cpl_compile_options){.name = "tagger", .seed = 1}, &err);
    for (int i = 1; status == CPL_OK && i <= STEPS; i++) {
        status = step(program, &err);
        if (status == CPL_OK && i % 100 == 0)
            printf("step %d loss %.4f accuracy %.3f\n", i, cpl_scalar(program, "loss"), cpl_scalar(program, "accuracy"));
    }
    if (status != CPL_OK)
        cpl_error_print(&err, stderr);
    cpl_program_free(program);
    return (int)status;
}
