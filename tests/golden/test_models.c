/* Whole models against Keras: logits, loss, gradients, 20 Adam steps, the weights after them, greedy ids. */
#include "support/run.h"

#include <math.h>
#include <string.h>
#include "decode/decode.h"
#include "graph/program.h"
#include "model/model.h"
#include "support/golden.h"

static const golden_name translator_names[] = {
    {"encoder.embedding.kernel", "encoder/embedding/vars/0", 0},
    {"encoder.rnn.forward.kernel", "encoder/rnn/forward_layer/cell/vars/0", 0},
    {"encoder.rnn.forward.recurrent_kernel", "encoder/rnn/forward_layer/cell/vars/1", 0},
    {"encoder.rnn.forward.bias", "encoder/rnn/forward_layer/cell/vars/2", 0},
    {"encoder.rnn.backward.kernel", "encoder/rnn/backward_layer/cell/vars/0", 0},
    {"encoder.rnn.backward.recurrent_kernel", "encoder/rnn/backward_layer/cell/vars/1", 0},
    {"encoder.rnn.backward.bias", "encoder/rnn/backward_layer/cell/vars/2", 0},
    {"decoder.embedding.kernel", "decoder/embedding/vars/0", 0},
    {"decoder.rnn.kernel", "decoder/rnn/cell/vars/0", 0},
    {"decoder.rnn.recurrent_kernel", "decoder/rnn/cell/vars/1", 0},
    {"decoder.rnn.bias", "decoder/rnn/cell/vars/2", 0},
    {"decoder.attention.query.kernel", "decoder/attention/mha/query_dense/vars/0", 0},
    {"decoder.attention.query.bias", "decoder/attention/mha/query_dense/vars/1", 0},
    {"decoder.attention.key.kernel", "decoder/attention/mha/key_dense/vars/0", 0},
    {"decoder.attention.key.bias", "decoder/attention/mha/key_dense/vars/1", 1},
    {"decoder.attention.value.kernel", "decoder/attention/mha/value_dense/vars/0", 0},
    {"decoder.attention.value.bias", "decoder/attention/mha/value_dense/vars/1", 0},
    {"decoder.attention.output.kernel", "decoder/attention/mha/output_dense/vars/0", 0},
    {"decoder.attention.output.bias", "decoder/attention/mha/output_dense/vars/1", 0},
    {"decoder.norm.gamma", "decoder/attention/layernorm/vars/0", 0},
    {"decoder.norm.beta", "decoder/attention/layernorm/vars/1", 0},
    {"decoder.output.kernel", "decoder/output_layer/vars/0", 0},
    {"decoder.output.bias", "decoder/output_layer/vars/1", 0},
    {NULL, NULL, 0}};

static const golden_name autoencoder_names[] = {
    {"encoder.embedding.kernel", "encoder/embedding/vars/0", 0},
    {"encoder.rnn.forward.kernel", "encoder/rnn/forward_layer/cell/vars/0", 0},
    {"encoder.rnn.forward.recurrent_kernel", "encoder/rnn/forward_layer/cell/vars/1", 0},
    {"encoder.rnn.forward.bias", "encoder/rnn/forward_layer/cell/vars/2", 0},
    {"encoder.rnn.backward.kernel", "encoder/rnn/backward_layer/cell/vars/0", 0},
    {"encoder.rnn.backward.recurrent_kernel", "encoder/rnn/backward_layer/cell/vars/1", 0},
    {"encoder.rnn.backward.bias", "encoder/rnn/backward_layer/cell/vars/2", 0},
    {"head.kernel", "layers/dense/vars/0", 0},
    {"head.bias", "layers/dense/vars/1", 0},
    {NULL, NULL, 0}};

/* Reference B's autoencoder as a user would build it: the encoder and a projection; label = input. */
static void autoencoder(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("words", 23), "batch s");
    cpl_node *label = cpl_input(g, "y", CPL_ID("words", 23), "batch s");
    cpl_enter(g, "encoder");
    cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = 23, .units = 8});
    x = cpl_bidirectional(g, "rnn", x, &(cpl_bidirectional_options){.units = 8, .merge = CPL_SUM}).y;
    cpl_expect(g, x, "batch s units=8");
    cpl_leave(g);
    cpl_node *logits = cpl_dense(g, "head", x, &(cpl_dense_options){.units = 23, .dim = "vocab"});
    cpl_loss_result r = cpl_masked_cross_entropy(g, logits, label);
    cpl_output(g, "logits", logits);
    cpl_output(g, "loss", r.loss);
    cpl_output(g, "accuracy", r.accuracy);
    cpl_minimize(g, r.loss);
}

static void feed_translator(const golden *g, cpl_program *p)
{
    golden_feed_mask(g, p, "s", "in.source");
    golden_feed(g, p, "source", "in.source");
    golden_feed_mask(g, p, "t", "in.y");
    golden_feed(g, p, "target_in", "in.target_in");
    golden_feed(g, p, "target_out", "in.y");
}

static void feed_autoencoder(const golden *g, cpl_program *p)
{
    golden_feed_mask(g, p, "s", "in.source");
    golden_feed(g, p, "source", "in.source");
    golden_feed(g, p, "y", "in.y");
}

static cpl_model_sizes translator_sizes(cpl_config **config)
{
    MUST(cpl_config_default(config, err));
    (*config)->model.units = 8;
    return (cpl_model_sizes){.config = *config, .source_vocabulary = 23, .target_vocabulary = 29};
}

static void translator_training(void **state)
{
    (void)state;
    golden g = golden_open("translator");
    cpl_config *config;
    cpl_program *p, *q;
    cpl_model_sizes n = translator_sizes(&config);
    for (int no_passes = 0; no_passes < 2; no_passes++) {
        cpl_compile_options options = {.name = "translator", .no_passes = no_passes};
        MUST(cpl_compile(&p, cpl_translator.loss, &n, &options, err));
        assert_int_equal(cpl_parameter_count(p), sizeof translator_names / sizeof translator_names[0] - 1);
        golden_load(&g, p, translator_names, "w.");
        MUST(cpl_compile(&q, cpl_translator.score, &n, &(cpl_compile_options){.share = p, .inference = 1}, err));
        feed_translator(&g, q);
        MUST(cpl_run(q, CPL_EVALUATE, err));
        golden_check_output(&g, q, "logits", "out.logits", 2e-5, golden_find(&g, "in.y"));
        cpl_program_free(q);
        golden_check_training(&g, p, translator_names, feed_translator);
        assert_int_equal(cpl_traces(p), 1);
        cpl_program_free(p);
    }
    cpl_config_free(config);
    golden_close(&g);
}

/* In bfloat16 the losses of the 20 steps are near Keras's in float32, and not the same. */
static void translator_training_in_bfloat16(void **state)
{
    (void)state;
    golden g = golden_open("translator");
    cpl_config *config;
    cpl_program *p;
    cpl_model_sizes n = translator_sizes(&config);
    MUST(cpl_compile(&p, cpl_translator.loss, &n, &(cpl_compile_options){.name = "translator", .bfloat16 = 1}, err));
    golden_load(&g, p, translator_names, "w.");
    const cpl_tensor_entry *losses = golden_find(&g, "train.loss");
    for (int step = 0; step < 20; step++) {
        feed_translator(&g, p);
        MUST(cpl_run(p, CPL_TRAIN, err));
        double loss = cpl_scalar(p, "loss"), want = golden_at(losses, step), off = fabs(loss - want) / want;
        if (!(off <= 2e-3) || off < 1e-7)
            fail_msg("loss of step %d is %.9g, expected about %.9g", step + 1, loss, want);
        MUST(cpl_adam(p, 1e-3, err));
    }
    cpl_program_free(p);
    cpl_config_free(config);
    golden_close(&g);
}

static void translator_attention(void **state)
{
    (void)state;
    golden g = golden_open("translator");
    cpl_config *config;
    cpl_program *p;
    cpl_model_sizes n = translator_sizes(&config);
    MUST(cpl_compile(&p, cpl_translator.score, &n, &(cpl_compile_options){.name = "translator"}, err));
    golden_load(&g, p, translator_names, "w.");
    feed_translator(&g, p);
    MUST(cpl_run(p, CPL_EVALUATE, err));
    golden_check_output(&g, p, "weights", "out.attention", 2e-5, golden_find(&g, "in.y"));
    cpl_program_free(p);
    cpl_config_free(config);
    golden_close(&g);
}

/* The context [batch s units] that the encoder hands over, in a graph of its own. */
static void context(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", 23), "batch s");
    cpl_enter(g, "encoder");
    cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = 23, .units = 8});
    x = cpl_bidirectional(g, "rnn", x, &(cpl_bidirectional_options){.units = 8}).y;
    cpl_leave(g);
    cpl_output(g, "context", x);
}

static void translator_context(void **state)
{
    (void)state;
    golden g = golden_open("translator");
    cpl_program *p;
    golden_name encoder[8];
    memcpy(encoder, translator_names, 7 * sizeof *encoder);
    encoder[7] = (golden_name){NULL, NULL, 0};
    MUST(cpl_compile(&p, context, NULL, &(cpl_compile_options){.name = "encoder"}, err));
    golden_load(&g, p, encoder, "w.");
    golden_feed_mask(&g, p, "s", "in.source");
    golden_feed(&g, p, "source", "in.source");
    MUST(cpl_run(p, CPL_EVALUATE, err));
    golden_check_output(&g, p, "context", "out.context", 2e-5, golden_find(&g, "in.source"));
    cpl_program_free(p);
    golden_close(&g);
}

static void autoencoder_training(void **state)
{
    (void)state;
    golden g = golden_open("autoencoder");
    cpl_program *p;
    for (int no_passes = 0; no_passes < 2; no_passes++) {
        cpl_compile_options options = {.name = "autoencoder", .no_passes = no_passes};
        MUST(cpl_compile(&p, autoencoder, NULL, &options, err));
        golden_load(&g, p, autoencoder_names, "w.");
        feed_autoencoder(&g, p);
        MUST(cpl_run(p, CPL_EVALUATE, err));
        golden_check_output(&g, p, "logits", "out.logits", 2e-5, golden_find(&g, "in.y"));
        golden_check_training(&g, p, autoencoder_names, feed_autoencoder);
        cpl_program_free(p);
    }
    golden_close(&g);
}

/* The kind that model.type: autoencoder builds. */
static const golden_name kind_names[] = {
    {"encoder.embedding.kernel", "encoder/embedding/vars/0", 0},
    {"encoder.rnn.forward.kernel", "encoder/rnn/forward_layer/cell/vars/0", 0},
    {"encoder.rnn.forward.recurrent_kernel", "encoder/rnn/forward_layer/cell/vars/1", 0},
    {"encoder.rnn.forward.bias", "encoder/rnn/forward_layer/cell/vars/2", 0},
    {"encoder.rnn.backward.kernel", "encoder/rnn/backward_layer/cell/vars/0", 0},
    {"encoder.rnn.backward.recurrent_kernel", "encoder/rnn/backward_layer/cell/vars/1", 0},
    {"encoder.rnn.backward.bias", "encoder/rnn/backward_layer/cell/vars/2", 0},
    {"output.kernel", "layers/dense/vars/0", 0},
    {"output.bias", "layers/dense/vars/1", 0},
    {NULL, NULL, 0}};

static void feed_kind(const golden *g, cpl_program *p)
{
    golden_feed_mask(g, p, "s", "in.source");
    golden_feed(g, p, "source", "in.source");
    golden_feed(g, p, "labels", "in.y");
}

static void autoencoder_of_a_configuration(void **state)
{
    (void)state;
    golden g = golden_open("autoencoder");
    cpl_config *config;
    cpl_program *p, *q;
    MUST(cpl_config_default(&config, err));
    MUST(cpl_config_set(config, "model.type", "autoencoder", err));
    MUST(cpl_config_set(config, "model.units", "8", err));
    cpl_model_sizes n = {.config = config, .source_vocabulary = 23, .target_vocabulary = 23};
    assert_ptr_equal(cpl_model_kind_of(config), &cpl_autoencoder);
    MUST(cpl_compile(&p, cpl_autoencoder.loss, &n, NULL, err));
    assert_int_equal(cpl_parameter_count(p), sizeof kind_names / sizeof kind_names[0] - 1);
    golden_load(&g, p, kind_names, "w.");
    MUST(cpl_compile(&q, cpl_autoencoder.score, &n, &(cpl_compile_options){.share = p, .inference = 1}, err));
    feed_kind(&g, q);
    MUST(cpl_run(q, CPL_EVALUATE, err));
    golden_check_output(&g, q, "logits", "out.logits", 2e-5, golden_find(&g, "in.y"));
    golden_check_training(&g, p, kind_names, feed_kind);
    cpl_program_free(q);
    cpl_program_free(p);
    cpl_config_free(config);
    golden_close(&g);
}

/* Ten greedy tokens (START 2, END 3): END itself and all after it are 0 in the file. */
static void translator_greedy(void **state)
{
    (void)state;
    golden g = golden_open("translator");
    cpl_config *config;
    cpl_program *p;
    cpl_decoder *d;
    cpl_error error = CPL_ERROR_INIT;
    cpl_model_sizes n = translator_sizes(&config);
    MUST(cpl_compile(&p, cpl_translator.loss, &n, &(cpl_compile_options){.name = "translator"}, err));
    golden_load(&g, p, translator_names, "w.");
    MUST(cpl_decoder_new(&d, &cpl_translator, &n, p->engine, err));
    const cpl_tensor_entry *source = golden_find(&g, "in.source"), *want = golden_find(&g, "out.greedy");
    int32_t ids[4][7];
    const int32_t *rows[4];
    int64_t length[4] = {0}, most[4] = {10, 10, 10, 10};
    for (int i = 0; i < 4; i++) {
        rows[i] = ids[i];
        for (int k = 0; k < 7; k++) {
            ids[i][k] = (int32_t)golden_at(source, i * 7 + k);
            length[i] += ids[i][k] != 0;
        }
    }
    const cpl_decoded *got;
    cpl_decode_batch batch = {.count = 4, .source = rows, .length = length, .most = most};
    assert_int_equal(cpl_decode(d, &batch, &got, &error), CPL_OK);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 10; k++)
            assert_int_equal(k < got[i].length ? got[i].ids[k] : 0, (int32_t)golden_at(want, i * 10 + k));
    cpl_decoder_free(d);
    cpl_program_free(p);
    cpl_config_free(config);
    golden_close(&g);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(translator_training), cmocka_unit_test(translator_attention),
        cmocka_unit_test(translator_context),  cmocka_unit_test(translator_greedy),
        cmocka_unit_test(autoencoder_training),
        cmocka_unit_test(autoencoder_of_a_configuration), cmocka_unit_test(translator_training_in_bfloat16),
    };
    if (argc > 1 && !cpl_test_choose(tests, sizeof tests / sizeof tests[0], argv[1]))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
