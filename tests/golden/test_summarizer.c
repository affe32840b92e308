/* Reference A against Keras: an encoder with given states and a decoder of single steps, attention before the cell:
 * logits, loss, gradients, 20 Adam steps, the weights after them, greedy ids. The halves are the model's own. */
#include "support/run.h"

#include <string.h>
#include "graph/program.h"
#include "model/parts.h"
#include "support/golden.h"

enum { BATCH = 4, SOURCE = 7, TARGET = 29, UNITS = 8, STEPS = 10, END = 3, START = 2 };

static const golden_name names[] = {
    {"encoder.embedding.kernel", "encoder/embedding/vars/0", 0},
    {"encoder.rnn.kernel", "encoder/rnn/cell/vars/0", 0},
    {"encoder.rnn.recurrent_kernel", "encoder/rnn/cell/vars/1", 0},
    {"encoder.rnn.bias", "encoder/rnn/cell/vars/2", 0},
    {"decoder.embedding.kernel", "decoder/embedding/vars/0", 0},
    {"decoder.attention.query.kernel", "decoder/attention/wq/vars/0", 0},
    {"decoder.attention.query.bias", "decoder/attention/wq/vars/1", 0},
    {"decoder.attention.key.kernel", "decoder/attention/wk/vars/0", 0},
    {"decoder.attention.key.bias", "decoder/attention/wk/vars/1", 0},
    {"decoder.attention.score.kernel", "decoder/attention/v/vars/0", 0},
    {"decoder.attention.score.bias", "decoder/attention/v/vars/1", 1},
    {"decoder.rnn.kernel", "decoder/cell/vars/0", 0},
    {"decoder.rnn.recurrent_kernel", "decoder/cell/vars/1", 0},
    {"decoder.rnn.bias", "decoder/cell/vars/2", 0},
    {"decoder.output.kernel", "decoder/output_layer/vars/0", 0},
    {"decoder.output.bias", "decoder/output_layer/vars/1", 0},
    {NULL, NULL, 0}};

/* The encoder from the file's h and c. */
static cpl_model_encoded encoded(cpl_graph *g, const cpl_model_sizes *n)
{
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", n->source_vocabulary), "batch s");
    cpl_node *h = cpl_input(g, "given_h", CPL_REALS(UNITS), "batch units");
    cpl_node *c = cpl_input(g, "given_c", CPL_REALS(UNITS), "batch units");
    return cpl_model_encode(g, n, source, h, c);
}

static void whole(cpl_graph *g, const void *user)
{
    const cpl_model_sizes *n = user;
    cpl_model_encoded e = encoded(g, n);
    cpl_node *in = cpl_input(g, "target_in", CPL_ID("target", n->target_vocabulary), "batch t");
    cpl_node *out = cpl_input(g, "target_out", CPL_ID("target", n->target_vocabulary), "batch t");
    cpl_attention_memory memory = cpl_model_memory(g, n, e.y);
    cpl_model_states before = cpl_model_begin(g, n, &e);
    cpl_model_decoded d = cpl_model_decode(g, n, in, memory, &before);
    cpl_loss_result r = cpl_masked_cross_entropy(g, d.logits, out);
    cpl_output(g, "logits", d.logits);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "accuracy", r.accuracy);
    cpl_minimize(g, r.loss);
}

static void encode(cpl_graph *g, const void *user)
{
    cpl_model_encoded e = encoded(g, user);
    cpl_attention_memory memory = cpl_model_memory(g, user, e.y);
    cpl_output(g, "keys", memory.keys);
    cpl_output(g, "values", memory.values);
    cpl_output(g, "prepared", cpl_additive_attention_prepare(g, memory.keys));
    cpl_output(g, "h", e.states.h[0]);
    cpl_output(g, "c", e.states.c[0]);
}

static cpl_model_sizes sizes(cpl_config **config)
{
    MUST(cpl_config_default(config, err));
    MUST(cpl_config_set_pair(*config, "model.type=summarizer", err));
    MUST(cpl_config_set_pair(*config, "model.units=8", err));
    MUST(cpl_config_check(*config, 0, err));
    return (cpl_model_sizes){.config = *config, .source_vocabulary = 23, .target_vocabulary = TARGET};
}

static void feed_source(const golden *g, cpl_program *p)
{
    golden_feed_mask(g, p, "s", "in.source");
    golden_feed(g, p, "source", "in.source");
    golden_feed(g, p, "given_h", "in.h");
    golden_feed(g, p, "given_c", "in.c");
}

static void feed(const golden *g, cpl_program *p)
{
    feed_source(g, p);
    golden_feed_mask(g, p, "t", "in.y");
    golden_feed(g, p, "target_in", "in.target_in");
    golden_feed(g, p, "target_out", "in.y");
}

static void training(void **state)
{
    (void)state;
    golden g = golden_open("summarizer");
    cpl_config *config;
    cpl_program *p;
    cpl_model_sizes n = sizes(&config);
    for (int variant = 0; variant < 3; variant++) {
        int threads = variant == 2 ? 3 : 1;
        cpl_compile_options options = {.name = "summarizer", .no_passes = variant == 1, .threads = threads};
        MUST(cpl_compile(&p, whole, &n, &options, err));
        assert_int_equal(cpl_parameter_count(p), sizeof names / sizeof names[0] - 1);
        golden_load(&g, p, names, "w.");
        feed(&g, p);
        MUST(cpl_run(p, CPL_EVALUATE, err));
        golden_check_output(&g, p, "logits", "out.logits", 2e-5, golden_find(&g, "in.y"));
        golden_check_training(&g, p, names, feed);
        assert_int_equal(cpl_traces(p), 1);
        cpl_program_free(p);
    }
    cpl_config_free(config);
    golden_close(&g);
}

/* ---- greedy ids ---- */

typedef struct memory {
    float keys[BATCH * SOURCE * UNITS], values[BATCH * SOURCE * UNITS], prepared[BATCH * SOURCE * UNITS];
    float h[BATCH * UNITS], c[BATCH * UNITS];
    int64_t length[BATCH];
} memory;

static void read_reals(cpl_program *p, const char *name, float *to, size_t n)
{
    int64_t shape[6];
    int rank;
    MUST(cpl_read(p, name, to, n, shape, &rank, err));
}

static void feed_reals(cpl_program *p, const char *name, const float *data, const int64_t *length)
{
    cpl_array a = {.type = CPL_FLOAT32, .rank = length ? 3 : 2, .data = data, .lengths = length,
                   .shape = {BATCH, length ? SOURCE : UNITS, length ? UNITS : 0}};
    MUST(cpl_feed(p, name, &a, err));
}

static void take_step(cpl_program *p, memory *m, const int32_t token[BATCH], int32_t next[BATCH])
{
    static float logits[BATCH * TARGET];
    cpl_array ids = {.type = CPL_INT32, .rank = 2, .shape = {BATCH, 1}, .data = token};
    feed_reals(p, "keys", m->keys, m->length);
    feed_reals(p, "values", m->values, m->length);
    feed_reals(p, "prepared", m->prepared, m->length);
    feed_reals(p, "h", m->h, NULL);
    feed_reals(p, "c", m->c, NULL);
    MUST(cpl_feed(p, "token", &ids, err));
    MUST(cpl_run(p, CPL_EVALUATE, err));
    read_reals(p, "logits", logits, BATCH * TARGET);
    for (int i = 0; i < BATCH; i++) {
        next[i] = 0;
        for (int k = 1; k < TARGET; k++)
            if (logits[i * TARGET + k] > logits[i * TARGET + next[i]])
                next[i] = k;
    }
    read_reals(p, "h", m->h, BATCH * UNITS);
    read_reals(p, "c", m->c, BATCH * UNITS);
}

static void greedy(void **state)
{
    (void)state;
    golden g = golden_open("summarizer");
    cpl_config *config;
    cpl_program *p, *step;
    cpl_model_sizes n = sizes(&config);
    memory m = {.length = {0}};
    const cpl_tensor_entry *source = golden_find(&g, "in.source"), *want = golden_find(&g, "out.greedy");
    for (int i = 0; i < BATCH * SOURCE; i++)
        m.length[i / SOURCE] += golden_at(source, i) != 0;
    MUST(cpl_compile(&p, encode, &n, &(cpl_compile_options){.inference = 1}, err));
    MUST(cpl_compile(&step, cpl_summarizer.step, &n, &(cpl_compile_options){.share = p, .inference = 1}, err));
    golden_load(&g, p, names, "w.");
    feed_source(&g, p);
    MUST(cpl_run(p, CPL_EVALUATE, err));
    read_reals(p, "keys", m.keys, BATCH * SOURCE * UNITS);
    read_reals(p, "values", m.values, BATCH * SOURCE * UNITS);
    read_reals(p, "prepared", m.prepared, BATCH * SOURCE * UNITS);
    read_reals(p, "h", m.h, BATCH * UNITS);
    read_reals(p, "c", m.c, BATCH * UNITS);
    int32_t token[BATCH] = {START, START, START, START};
    int done[BATCH] = {0};
    for (int k = 0; k < STEPS; k++) {
        int32_t next[BATCH];
        take_step(step, &m, token, next);
        for (int i = 0; i < BATCH; i++) {
            done[i] |= next[i] == END;
            assert_int_equal(done[i] ? 0 : next[i], (int32_t)golden_at(want, i * STEPS + k));
            token[i] = done[i] ? START : next[i]; /* what a row that is over reads does not matter */
        }
    }
    cpl_program_free(step);
    cpl_program_free(p);
    cpl_config_free(config);
    golden_close(&g);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(training), cmocka_unit_test(greedy)};

CPL_TEST_MAIN(tests)
