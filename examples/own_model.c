/* own_model.c: a translator of one's own, outside the library: it describes its inputs, encodes, steps and has a loss;
 * cpl_fit trains it and stops early; its weights are saved, loaded into a new program and used to generate.
 *
 * The task is made up: say a row of words backwards. One function is a step of the decoder, in training for a whole
 * sequence (cpl_scan) and in generating for one token of each sentence. */
#include <couplet.h>
#include <stdlib.h>

enum { WORDS = 20, FIRST_WORD = 3, UNITS = 48, BATCH = 32, LONGEST = 6, TRAIN = 40, VALID = 5, LINES = 50 };
enum { START = 1, END = 2 };

/* ---- the model ---- */

static cpl_attention_memory encode(cpl_graph *g, cpl_node *source)
{
    cpl_node *x = cpl_embedding(g, "source", source, &(cpl_embedding_options){.size = WORDS, .units = UNITS});
    x = cpl_bidirectional(g, "encoder", x, &(cpl_bidirectional_options){.cell = CPL_GRU, .units = UNITS}).y;
    return cpl_attention_project(g, "attention", x, NULL, UNITS);
}

/* token and states before → logits and states after: [batch t …] in a loop, [batch …] alone. */
static cpl_node *step(cpl_graph *g, cpl_node *token, cpl_attention_memory memory, cpl_node **h, cpl_node **c)
{
    cpl_node *x = cpl_embedding(g, "target", token, &(cpl_embedding_options){.size = WORDS, .units = UNITS});
    cpl_attention_result a = cpl_attention_query(g, "attention", *h, memory, NULL);
    cpl_lstm_step(g, "decoder", cpl_concat(g, x, a.y), h, c, UNITS);
    a = cpl_attention_query(g, "look", *h, memory, NULL);
    return cpl_dense(g, "output", cpl_concat(g, *h, a.y), &(cpl_dense_options){.units = WORDS, .dim = "vocab"});
}

static void body(cpl_graph *g, cpl_loop *loop, const void *user)
{
    const cpl_attention_memory *memory = user;
    cpl_node *h = cpl_loop_state(loop, "h"), *c = cpl_loop_state(loop, "c");
    cpl_loop_emit(loop, "logits", step(g, cpl_loop_slice(loop, "token"), *memory, &h, &c));
    cpl_loop_next(loop, "h", h);
    cpl_loop_next(loop, "c", c);
}

static void training(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("words", WORDS), "batch s");
    cpl_node *token = cpl_input(g, "token", CPL_ID("words", WORDS), "batch t");
    cpl_node *label = cpl_input(g, "label", CPL_ID("words", WORDS), "batch t");
    cpl_attention_memory memory = encode(g, source);
    cpl_scan_options o = {.name = "loop", .time = "t", .inputs = {{"token", token, 0}},
                          .states = {{"h", NULL, UNITS}, {"c", NULL, UNITS}}};
    cpl_loop *loop = cpl_scan(g, &o, body, &memory);
    cpl_loss_result r = cpl_masked_cross_entropy(g, cpl_loop_output(loop, "logits"), label);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "accuracy", r.accuracy);
    cpl_output(g, "count", r.count);
    cpl_minimize(g, r.loss);
}

/* The two parts that generating needs. */
static void encoding(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_attention_memory memory = encode(g, cpl_input(g, "source", CPL_ID("words", WORDS), "batch s"));
    cpl_output(g, "keys", memory.keys);
    cpl_output(g, "values", memory.values);
}

static void stepping(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_attention_memory memory = {.keys = cpl_input(g, "keys", CPL_REALS(UNITS), "batch s keys"),
                                   .values = cpl_input(g, "values", CPL_REALS(UNITS), "batch s keys")};
    cpl_node *token = cpl_input(g, "token", CPL_ID("words", WORDS), "batch");
    cpl_node *h = cpl_input(g, "h", CPL_REALS(UNITS), "batch units"), *c = cpl_input(g, "c", CPL_REALS(UNITS),
                                                                                     "batch units");
    cpl_output(g, "token", cpl_argmax(g, step(g, token, memory, &h, &c)));
    cpl_output(g, "h", h);
    cpl_output(g, "c", c);
}

/* ---- the data ---- */

typedef struct batch {
    int32_t source[BATCH][LONGEST], token[BATCH][LONGEST + 1], label[BATCH][LONGEST + 1];
    int64_t lengths[BATCH], steps[BATCH];
} batch;

/* Always the same for one number. */
static void make_batch(batch *b, unsigned number)
{
    srand(number);
    for (int i = 0; i < BATCH; i++) {
        int n = 2 + rand() % (LONGEST - 1);
        b->lengths[i] = n, b->steps[i] = n + 1;
        for (int k = 0; k < n; k++)
            b->source[i][k] = FIRST_WORD + rand() % (WORDS - FIRST_WORD);
        for (int k = 0; k <= n; k++) {
            b->label[i][k] = k < n ? b->source[i][n - 1 - k] : END;
            b->token[i][k] = k ? b->label[i][k - 1] : START;
        }
    }
}

static cpl_status feed(cpl_program *p, int64_t epoch, int64_t number, void *user, cpl_error *err)
{
    batch b;
    const int32_t *source[BATCH], *token[BATCH], *label[BATCH];
    const int *valid = user; /* validation sees the same batches in each epoch, and no others do */
    make_batch(&b, *valid ? (unsigned)(900000 + number) : (unsigned)(epoch * TRAIN + number));
    for (int i = 0; i < BATCH; i++)
        source[i] = b.source[i], token[i] = b.token[i], label[i] = b.label[i];
    cpl_status s = cpl_feed_ids(p, "source", source, b.lengths, BATCH, err);
    s = s == CPL_OK ? cpl_feed_ids(p, "token", token, b.steps, BATCH, err) : s;
    return s == CPL_OK ? cpl_feed_ids(p, "label", label, b.steps, BATCH, err) : s;
}

static void progress(void *user, const cpl_progress_event *e)
{
    (void)user;
    printf("epoch %lld loss %.4f val_loss %.4f val_accuracy %.3f\n", (long long)e->epoch, e->loss, e->val_loss,
           e->val_accuracy);
}

static cpl_status train(const char *path, cpl_error *err)
{
    int yes = 1, no = 0;
    cpl_program *p = NULL;
    cpl_fit_result r;
    cpl_status s = cpl_compile(&p, training, NULL, &(cpl_compile_options){.name = "backwards", .seed = 1}, err);
    if (s == CPL_OK)
        s = cpl_fit(p, &(cpl_batches){TRAIN, feed, &no}, &(cpl_batches){VALID, feed, &yes},
                    &(cpl_fit_rules){.epochs = 60, .learning_rate = 5e-3, .patience = 2, .min_delta = 2e-3,
                                     .on_validation = progress}, &r, err);
    if (s == CPL_OK)
        printf("%s after %lld epochs; the best was %lld\n", r.stopped_early ? "stopped early" : "ended",
               (long long)r.epochs, (long long)r.best_epoch);
    s = s == CPL_OK ? cpl_save_weights(p, path, err) : s;
    cpl_program_free(p);
    return s;
}

/* ---- generating ---- */

typedef struct state {
    float keys[LONGEST * UNITS], values[LONGEST * UNITS], h[UNITS], c[UNITS];
    int64_t length;
    int32_t token;
} state;

/* One token for one sentence: the state goes in and comes out again. */
static cpl_status next_token(cpl_program *p, state *x, cpl_error *err)
{
    cpl_array memory = {.type = CPL_FLOAT32, .rank = 3, .shape = {1, x->length, UNITS}, .data = x->keys};
    cpl_array units = {.type = CPL_FLOAT32, .rank = 2, .shape = {1, UNITS}, .data = x->h};
    cpl_array token = {.type = CPL_INT32, .rank = 1, .shape = {1}, .data = &x->token};
    int64_t shape[6];
    int rank;
    cpl_status s = cpl_feed(p, "keys", &memory, err);
    memory.data = x->values;
    s = s == CPL_OK ? cpl_feed(p, "values", &memory, err) : s;
    s = s == CPL_OK ? cpl_feed(p, "token", &token, err) : s;
    s = s == CPL_OK ? cpl_feed(p, "h", &units, err) : s;
    units.data = x->c;
    s = s == CPL_OK ? cpl_feed(p, "c", &units, err) : s;
    s = s == CPL_OK ? cpl_run(p, CPL_EVALUATE, err) : s;
    s = s == CPL_OK ? cpl_read_ids(p, "token", &x->token, 1, shape, &rank, err) : s;
    s = s == CPL_OK ? cpl_read(p, "h", x->h, UNITS, shape, &rank, err) : s;
    return s == CPL_OK ? cpl_read(p, "c", x->c, UNITS, shape, &rank, err) : s;
}

/* *right: it was said backwards without a mistake. */
static cpl_status say(cpl_program *encoder, cpl_program *stepper, const int32_t *row, int64_t n, int *right,
                      cpl_error *err)
{
    state x = {.length = n, .token = START};
    int64_t shape[6];
    int rank;
    cpl_status s = cpl_feed_ids(encoder, "source", &row, &n, 1, err);
    s = s == CPL_OK ? cpl_run(encoder, CPL_EVALUATE, err) : s;
    s = s == CPL_OK ? cpl_read(encoder, "keys", x.keys, LONGEST * UNITS, shape, &rank, err) : s;
    s = s == CPL_OK ? cpl_read(encoder, "values", x.values, LONGEST * UNITS, shape, &rank, err) : s;
    *right = 1;
    for (int64_t k = 0; k <= n && s == CPL_OK && *right; k++) {
        s = next_token(stepper, &x, err);
        *right = x.token == (k < n ? row[n - 1 - k] : END);
    }
    return s;
}

static cpl_status generate(const char *path, cpl_error *err)
{
    cpl_program *encoder = NULL, *stepper = NULL;
    batch b[2];
    int right = 0;
    cpl_status s = cpl_compile(&encoder, encoding, NULL, &(cpl_compile_options){.name = "encode", .inference = 1}, err);
    if (s == CPL_OK)
        s = cpl_compile(&stepper, stepping, NULL, &(cpl_compile_options){.name = "step", .inference = 1,
                                                                         .share = encoder}, err);
    s = s == CPL_OK ? cpl_load_weights(stepper, path, err) : s; /* of both: they share them */
    make_batch(&b[0], 800001);
    make_batch(&b[1], 800002);
    for (int i = 0; i < LINES && s == CPL_OK; i++) {
        int one;
        s = say(encoder, stepper, b[i / BATCH].source[i % BATCH], b[i / BATCH].lengths[i % BATCH], &one, err);
        right += one;
    }
    if (s == CPL_OK)
        printf("%d of %d rows said backwards\n", right, LINES);
    cpl_program_free(stepper);
    cpl_program_free(encoder);
    return s;
}

int main(int argc, char **argv)
{
    cpl_error err = CPL_ERROR_INIT;
    const char *path = argc > 1 ? argv[1] : "own_model.safetensors";
    cpl_status status = train(path, &err);
    if (status == CPL_OK)
        status = generate(path, &err);
    if (status != CPL_OK)
        cpl_error_print(&err, stderr);
    return (int)status;
}
