/* test_autoencoder.c: model.type autoencoder from one column of text to outputs: with a projection of each position,
 * and with a bottleneck; noise, and the leak of case C13. */
#include "train/train_test.h"

#include "data/data.h"
#include "graph/program.h"

static const char config[] =
    "model: {type: autoencoder, units: 16}\n"
    "data: {train: train.txt, valid: valid.txt}\n"
    "training: {batch_size: 4, epochs: 200, show_examples: 2, threads: 2, log_every: 1, max_steps: 150,\n"
    "           optimizer: {learning_rate: 0.02}, early_stopping: false, validate_every: 50}\n";

static void put_lines(const char *name, int lines)
{
    static const char *const words[] = {"one", "two", "three", "house", "dog", "cat", "water", "sun"};
    cpl_str text = {0};
    for (int i = 0; i < lines; i++)
        cpl_str_printf(&text, "%s %s%s%s\n", words[i % 8], words[(i * 3 + i / 8) % 8], i % 3 ? " " : "",
                       i % 3 ? words[(i * 5 + 1) % 8] : "");
    put_file(name, text.data);
    cpl_str_free(&text);
}

static void put_all(void)
{
    put_lines("train.txt", 40), put_lines("valid.txt", 9), put_file("config.yaml", config);
}

/* 1 when the model gives the line back. */
static int gives_back(const char *folder, const char *line)
{
    char path[700], *output = NULL;
    cpl_model *m;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s", top, folder);
    cpl_status status = cpl_model_open(&m, path, 1, &err);
    if (status != CPL_OK)
        cpl_error_print(&err, stderr);
    assert_int_equal(status, CPL_OK);
    assert_int_equal(cpl_generate(&output, m, line, NULL, NULL), CPL_OK);
    int same = strcmp(output, line) == 0;
    cpl_free(output);
    cpl_model_close(m);
    return same;
}

static void evaluate(const char *folder, double least)
{
    char path[700], file[700], *text;
    cpl_model *m;
    cpl_json *root;
    snprintf(path, sizeof path, "%s/%s", top, folder);
    snprintf(file, sizeof file, "%s/valid.txt", top);
    assert_int_equal(cpl_model_open(&m, path, 1, NULL), CPL_OK);
    cpl_evaluate_options o = {.pairs = file, .json = 1};
    assert_int_equal(cpl_evaluate(m, &o, &text, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, text, strlen(text), NULL), CPL_OK);
    assert_true(number(cpl_json_get(root, "accuracy"), "score") >= least);
    assert_true(number(cpl_json_get(root, "exact"), "score") >= least);
    cpl_json_free(root);
    cpl_free(text);
    cpl_model_close(m);
}

static void a_projection_learns_to_give_back(void **state)
{
    (void)state;
    put_all();
    run r = {.folder = "plain", .set = {NULL}};
    assert_int_equal(train(&r), CPL_OK);
    assert_true(gives_back("plain", "house dog cat"));
    assert_true(gives_back("plain", "sun sun sun sun sun"));
    evaluate("plain", 1);
    assert_true(count_events("plain", "example") >= 2);
    /* label = input, START and END included: all tokens of 3 or 2 words are counted */
    cpl_json *events[4];
    assert_int_equal(read_events("plain", "validation", events, 4), 3);
    for (int i = 0; i < 3; i++)
        cpl_json_free(events[i]);
    /* two columns that differ: the source's is read, and is what swap says */
    put_file("train.txt", "x\tone two\ny\tdog cat\nz\tsun\nx\twater one\nx\thouse\n");
    run two = {.folder = "two", .set = {"data.swap=true", "data.valid=20%", "training.max_steps=2"}};
    assert_int_equal(train(&two), CPL_OK);
    assert_null(strstr(two.warned, "NaN"));
}

static void a_bottleneck_has_one_vector_and_a_decoder(void **state)
{
    (void)state;
    put_all();
    run r = {.folder = "narrow", .set = {"model.bottleneck=12", "model.units=32", "training.max_steps=400"}};
    assert_int_equal(train(&r), CPL_OK);
    evaluate("narrow", 0.6);
    cpl_tensor_file *f;
    char path[700];
    snprintf(path, sizeof path, "%s/narrow/model.safetensors", top);
    assert_int_equal(cpl_tensor_file_open(&f, path, NULL), CPL_OK);
    const cpl_tensor_entry *t = cpl_tensor_file_find(f, "encoder.bottleneck.kernel");
    assert_non_null(t);
    assert_int_equal(t->shape[1], 12);
    assert_int_equal(cpl_tensor_file_find(f, "decoder.bridge.h.kernel")->shape[0], 12);
    cpl_tensor_file_close(f);
}

/* The same with noise, in pieces under a budget, and in two halves: one state. */
static void noise_is_a_function_of_seed_epoch_and_pair(void **state)
{
    (void)state;
    put_all();
    run whole = {.folder = "whole", .set = {"training.max_steps=30", "data.noise.mask=0.2", "data.noise.swap=0.3"}};
    run halves = {.folder = "halves", .set = {"training.max_steps=13", "data.noise.mask=0.2", "data.noise.swap=0.3"}};
    assert_int_equal(train(&whole), CPL_OK);
    assert_int_equal(train(&halves), CPL_OK);
    halves.set[0] = "training.max_steps=30";
    halves.resume = 1;
    assert_int_equal(train(&halves), CPL_OK);
    assert_same_tensors("whole", "halves", "checkpoint.safetensors");
}

/* The losses of the three validations of a run that learns nothing. */
static void validations(const char *folder, const char *noise, double losses[3])
{
    cpl_json *events[4];
    run r = {.folder = folder, .set = {"training.optimizer.learning_rate=0", noise}};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(read_events(folder, "validation", events, 4), 3);
    for (int i = 0; i < 3; i++) {
        losses[i] = number(events[i], "val_loss");
        cpl_json_free(events[i]);
    }
}

/* Validation mends damaged sentences too, the same ones each time; and a token is worked on once, not for each side. */
static void validation_has_the_same_noise_each_time(void **state)
{
    (void)state;
    double sound[3], damaged[3];
    cpl_json *epoch[64];
    put_all();
    validations("sound", "data.noise.mask=0", sound);
    validations("damaged", "data.noise.mask=0.5", damaged);
    for (int i = 0; i < 3; i++) {
        assert_true(sound[i] == sound[0] && damaged[i] == damaged[0]);
        assert_true(sound[i] != damaged[i]);
    }
    int count = read_events("damaged", "epoch", epoch, 64);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        assert_true(number(epoch[i], "valid_token_share") == 1);
        cpl_json_free(epoch[i]);
    }
}

/* Shares as asked for, START and END where they were, and only neighbours change places. */
static void noise_keeps_its_shares(void **state)
{
    (void)state;
    enum { N = 20002 };
    int32_t *row = cpl_alloc(N, sizeof *row), *to = cpl_alloc(N, sizeof *to), *again = cpl_alloc(N, sizeof *again);
    for (int i = 0; i < N; i++)
        row[i] = i == 0 ? CPL_ID_START : i == N - 1 ? CPL_ID_END : CPL_ID_WORDS + i;
    cpl_config_noise n = {.mask = 0.1};
    assert_int_equal(cpl_noise_row(&n, 1, 0, 5, row, N, to), N);
    int masked = 0, moved = 0;
    for (int i = 0; i < N; i++)
        masked += to[i] == CPL_ID_UNKNOWN;
    assert_true(masked > 1800 && masked < 2200);
    assert_true(to[0] == CPL_ID_START && to[N - 1] == CPL_ID_END);
    n = (cpl_config_noise){.swap = 0.4};
    assert_int_equal(cpl_noise_row(&n, 1, 0, 5, row, N, to), N);
    for (int i = 0; i < N; i++) {
        moved += to[i] != row[i];
        assert_true(to[i] == row[i] || to[i] == row[i] + 1 || to[i] == row[i] - 1);
    }
    assert_true(moved > 7600 && moved < 8400);
    n = (cpl_config_noise){.drop = 0.25};
    int64_t left = cpl_noise_row(&n, 1, 0, 5, row, N, to);
    assert_true(left > 14700 && left < 15300 && to[left - 1] == CPL_ID_END);
    assert_int_equal(cpl_noise_row(&n, 1, 0, 5, row, N, again), left);
    assert_memory_equal(to, again, (size_t)left * sizeof *to);
    assert_true(cpl_noise_row(&n, 1, 1, 5, row, N, again) != left || memcmp(to, again, (size_t)left * 4) != 0);
    cpl_release(row);
    cpl_release(to);
    cpl_release(again);
}

static void refused(const char *one, const char *two, const char *says)
{
    run r = {.folder = "refused", .set = {one, two}};
    assert_int_equal(train(&r), CPL_USAGE);
    if (!strstr(r.error.line[0], says))
        fail_msg("'%s' is missing in: %s", says, r.error.line[0]);
}

static void refusals(void **state)
{
    (void)state;
    put_all();
    refused("data.noise.drop=0.1", NULL, "without a bottleneck");
    refused("model.decoder.layers=2", NULL, "no decoder");
    refused("model.bottleneck=4", "model.decoder.attention.score=dot", "around the bottleneck");
    refused("model.bottleneck=4", "model.decoder.initial_state=zero", "bridge");
    refused("text.target.tokens=char", NULL, "one set of text rules");
    refused("model.type=translator", "model.bottleneck=4", "only an autoencoder");
    refused("model.type=translator", "data.noise.mask=0.5", "only an autoencoder");
    run r = {.folder = "rules", .set = {"text.source.tokens=char", "text.source.vocabulary_size=40",
                                        "training.max_steps=2"}};
    assert_int_equal(train(&r), CPL_OK); /* the target takes the source's */
}

/* ---- C13 ---- */

static void decoder_alone(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *in = cpl_input(g, "target_in", CPL_ID("target", 10), "batch t");
    cpl_node *out = cpl_input(g, "target_out", CPL_ID("target", 10), "batch t");
    cpl_node *x = cpl_embedding(g, "embedding", in, &(cpl_embedding_options){.size = 10, .units = 4});
    x = cpl_dense(g, "output", cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.units = 4}).y,
                  &(cpl_dense_options){.units = 10, .dim = "vocab"});
    cpl_minimize(g, cpl_masked_cross_entropy(g, x, out).loss);
}

static void case_C13_labels_as_input(void **state)
{
    (void)state;
    static const int32_t right[] = {2, 7, 8, 9}, labels[] = {7, 8, 9, 3};
    for (int leak = 0; leak < 2; leak++) {
        run r = {.warnings = 0};
        cpl_program *p;
        assert_int_equal(cpl_compile(&p, decoder_alone, NULL, &(cpl_compile_options){
            .threads = 1, .message = on_message, .user = &r}, NULL), CPL_OK);
        const int32_t *in = leak ? labels : right, *out = labels;
        const int64_t length = 4;
        for (int step = 0; step < 2; step++) {
            assert_int_equal(cpl_feed_ids(p, "target_in", &in, &length, 1, NULL), CPL_OK);
            assert_int_equal(cpl_feed_ids(p, "target_out", &out, &length, 1, NULL), CPL_OK);
            assert_int_equal(cpl_run(p, CPL_TRAIN, NULL), CPL_OK);
        }
        assert_int_equal(r.warnings, leak);
        if (leak)
            assert_non_null(strstr(r.warned, "'target_in' equals the labels 'target_out'"));
        cpl_program_free(p);
    }
}

/* What the data pipeline itself builds. */
static void case_C13_the_pipeline_shifts(void **state)
{
    (void)state;
    put_file("pairs.tsv", "a\tx y z\nb\tx y z\n");
    char train_path[700];
    snprintf(train_path, sizeof train_path, "%s/pairs.tsv", top);
    cpl_config *c;
    cpl_dataset *d;
    cpl_batcher *b;
    assert_int_equal(cpl_config_default(&c, NULL), CPL_OK);
    assert_int_equal(cpl_config_set(c, "data.train", train_path, NULL), CPL_OK);
    assert_int_equal(cpl_config_set(c, "data.valid", train_path, NULL), CPL_OK);
    assert_int_equal(cpl_dataset_new(&d, &(cpl_dataset_options){.config = c}, NULL), CPL_OK);
    assert_int_equal(cpl_batcher_new(&b, &d->train, &(cpl_batcher_options){.batch_size = 2}, NULL), CPL_OK);
    const cpl_batch *batch = cpl_batcher_next(b);
    int32_t x = cpl_vocabulary_id(d->target, "x", 1), y = cpl_vocabulary_id(d->target, "y", 1);
    int32_t z = cpl_vocabulary_id(d->target, "z", 1);
    const int32_t in[] = {CPL_ID_START, x, y, z}, out[] = {x, y, z, CPL_ID_END};
    assert_int_equal(batch->target_length[0], 4);
    assert_memory_equal(batch->target_in[0], in, sizeof in);
    assert_memory_equal(batch->target_out[0], out, sizeof out);
    cpl_batcher_free(b);
    cpl_dataset_free(d);
    cpl_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_projection_learns_to_give_back), cmocka_unit_test(noise_keeps_its_shares),
        cmocka_unit_test(validation_has_the_same_noise_each_time),
        cmocka_unit_test(a_bottleneck_has_one_vector_and_a_decoder),
        cmocka_unit_test(noise_is_a_function_of_seed_epoch_and_pair), cmocka_unit_test(refusals),
        cmocka_unit_test(case_C13_labels_as_input), cmocka_unit_test(case_C13_the_pipeline_shifts)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
