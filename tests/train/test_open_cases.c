/* test_open_cases.c: what cases A09, C11, H02, H03, H05 and H06 ask of whole runs. */
#include "train/train_test.h"

#include <math.h>

#include "graph/program.h"
#include "model/model_file.h"
#include "train/optimizer.h"

static void must(cpl_status status, const cpl_error *err)
{
    if (status != CPL_OK)
        cpl_error_print(err, stderr);
    assert_int_equal(status, CPL_OK);
}

static cpl_model_file *open_model(const char *folder)
{
    char path[700];
    cpl_model_file *f;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s/model.safetensors", top, folder);
    must(cpl_model_file_open(&f, path, &err), &err);
    return f;
}

/* ---- H03, A09: every optimizer ---- */

/* The loss is of the encoder alone; the decoder runs for its output. */
static void two_parts(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("words", 7), "batch s");
    cpl_enter(g, "encoder");
    cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = 7, .units = 3});
    x = cpl_layer_norm(g, "norm", cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.units = 4}).y, 0);
    cpl_leave(g);
    cpl_enter(g, "decoder");
    cpl_node *y = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = 7, .units = 3});
    cpl_output(g, "decoded", cpl_rnn(g, "rnn", y, &(cpl_rnn_options){.units = 5}).y);
    cpl_leave(g);
    cpl_node *logits = cpl_dense(g, "output", x, &(cpl_dense_options){.units = 7, .dim = "vocab"});
    cpl_loss_result r = cpl_masked_cross_entropy(g, logits, source);
    cpl_output(g, "loss", r.loss);
    cpl_minimize(g, r.loss);
}

typedef struct fitting {
    cpl_program *program;
    cpl_config *config;
    cpl_optimizer *optimizer;
    run messages;
    int64_t steps;
    float before[1000]; /* all values */
} fitting;

static size_t bytes_of(const fitting *f)
{
    size_t bytes = cpl_parameters_bytes(f->program->engine->parameters);
    assert_true(bytes <= sizeof f->before);
    return bytes;
}

static fitting begin(const char *const *set)
{
    fitting f = {.steps = 0};
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_config_default(&f.config, &err), &err);
    for (; *set; set++)
        must(cpl_config_set_pair(f.config, *set, &err), &err);
    return f;
}

static void fit(fitting *f, int steps)
{
    static const int32_t ids[2][4] = {{2, 5, 6, 3}, {2, 4, 3, 0}}, *const rows[] = {ids[0], ids[1]};
    static const int64_t lengths[2] = {4, 3};
    cpl_error err = CPL_ERROR_INIT;
    if (!f->program) {
        cpl_compile_options o = {.threads = 1, .seed = 5, .message = on_message, .user = &f->messages};
        must(cpl_compile(&f->program, two_parts, NULL, &o, &err), &err);
        memcpy(f->before, cpl_parameters_values(f->program->engine->parameters), bytes_of(f));
    }
    for (int i = 0; i < steps; i++) {
        must(cpl_feed_ids(f->program, "source", rows, lengths, 2, &err), &err);
        must(cpl_run(f->program, CPL_TRAIN, &err), &err);
        if (!f->optimizer)
            must(cpl_optimizer_new(&f->optimizer, &f->config->training, f->program->engine, f->program->gradients,
                                   &err), &err);
        must(cpl_optimizer_follow(f->optimizer, f->program->gradients, &err), &err);
        cpl_optimizer_update(f->optimizer, ++f->steps, 0.1, 0);
    }
}

/* Parameters whose paths begin with one of the names kept their bits, all others moved. */
static void check_still(const fitting *f, const char *a, const char *b)
{
    const cpl_parameters *p = f->program->engine->parameters;
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(p, i);
        int still = strncmp(info->path, a, strlen(a)) == 0 || (b && strncmp(info->path, b, strlen(b)) == 0);
        size_t bytes = (size_t)info->elements * sizeof(float);
        if ((memcmp(f->before + info->offset, cpl_parameters_value(p, i), bytes) == 0) != still)
            fail_msg("'%s' %s", info->path, still ? "moved" : "did not move");
    }
}

static void finish(fitting *f)
{
    cpl_optimizer_free(f->optimizer);
    cpl_program_free(f->program);
    cpl_config_free(f->config);
}

static const char *const optimizers[][3] = {
    {"training.optimizer.name=sgd"},
    {"training.optimizer.name=sgd", "training.optimizer.momentum=0.9"},
    {"training.optimizer.name=adam"},
    {"training.optimizer.name=adamw", "training.optimizer.weight_decay=0.5"},
};

static void case_A09_no_optimizer_touches_what_no_gradient_reaches(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        fitting f = begin(optimizers[i]);
        fit(&f, 1);
        check_still(&f, "decoder.", NULL);
        fit(&f, 2);
        check_still(&f, "decoder.", NULL);
        assert_int_equal(f.messages.warnings, 1); /* one, that names layers and counts */
        assert_non_null(strstr(f.messages.warned, "'decoder.embedding' (21 parameters)"));
        assert_non_null(strstr(f.messages.warned, "'decoder.rnn' (150 parameters)"));
        finish(&f);
    }
}

/* Two steps, then the encoder is frozen, then three: what the first two left in moments or momentum, and the decay,
 * move nothing of it. A layer normalisation has no statistics of its own: its gain and bias are numbers like any. */
static void case_H03_two_steps_then_frozen(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        fitting f = begin(optimizers[i]);
        cpl_error err = CPL_ERROR_INIT;
        fit(&f, 2);
        check_still(&f, "decoder.", NULL);
        must(cpl_set_trainable(f.program, "encoder", 0, &err), &err);
        memcpy(f.before, cpl_parameters_values(f.program->engine->parameters), bytes_of(&f));
        fit(&f, 3);
        check_still(&f, "encoder.", "decoder.");
        assert_int_equal(cpl_traces(f.program), 1);
        must(cpl_set_trainable(f.program, "encoder", 1, &err), &err);
        fit(&f, 1);
        check_still(&f, "decoder.", NULL);
        finish(&f);
    }
}

/* ---- H03: the command's way, by inspect ---- */

static const char config[] = "model: {units: 6, dropout: 0.1}\n"
                             "data: {train: train.tsv, valid: valid.tsv}\n"
                             "training: {batch_size: 4, epochs: 100, show_examples: 0, threads: 1, log_every: 1}\n";

static void put_all(void)
{
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8), put_file("config.yaml", config);
}

/* The checksum that `inspect --json` tells of a tensor, or NULL; the text lives as long as root. */
static const char *checksum_of(const cpl_json *root, const char *name)
{
    const cpl_json *tensors = cpl_json_get(root, "tensors");
    for (size_t i = 0; i < cpl_json_size(tensors); i++)
        if (strcmp(cpl_json_text(cpl_json_get(cpl_json_at(tensors, i), "name"), NULL), name) == 0)
            return cpl_json_text(cpl_json_get(cpl_json_at(tensors, i), "checksum"), NULL);
    return NULL;
}

static cpl_json *inspect(const char *folder)
{
    char path[700], *text;
    cpl_json *root;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s", top, folder);
    must(cpl_inspect(path, 1, &text, &err), &err);
    must(cpl_json_parse(&root, text, strlen(text), &err), &err);
    cpl_free(text);
    return root;
}

/* train --init first --freeze encoder. */
static void train_frozen(const char *folder, const char *from)
{
    static const char *const freeze[] = {"encoder"};
    static const char *const set[] = {"training.max_steps=6", "training.optimizer.name=adamw",
                                      "training.optimizer.weight_decay=0.5", "training.optimizer.learning_rate=0.05"};
    char path[700], to[700], model[700], *text;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s/config.yaml", top);
    snprintf(to, sizeof to, "%s/%s", top, folder);
    snprintf(model, sizeof model, "%s/%s/model.safetensors", top, from);
    cpl_train_options o = {.config_path = path, .folder = to, .set = set, .set_count = 4, .freeze = freeze,
                           .freeze_count = 1, .init = model};
    must(cpl_train(&o, &err), &err);
    must(cpl_plan(&o, 0, &text, &err), &err);
    assert_non_null(strstr(text, "frozen: "));
    assert_non_null(strstr(text, "trainable parameters: "));
    cpl_free(text);
}

static void case_H03_inspect_tells_the_same_checksums(void **state)
{
    (void)state;
    put_all();
    run r = {.folder = "first", .set = {"training.max_steps=3"}};
    assert_int_equal(train(&r), CPL_OK);
    train_frozen("second", "first");
    cpl_json *before = inspect("first"), *after = inspect("second");
    const cpl_json *tensors = cpl_json_get(before, "tensors");
    int frozen = 0, moved = 0;
    for (size_t i = 0; i < cpl_json_size(tensors); i++) {
        const char *name = cpl_json_text(cpl_json_get(cpl_json_at(tensors, i), "name"), NULL);
        const char *old = checksum_of(before, name), *new = checksum_of(after, name);
        assert_non_null(old);
        assert_non_null(new);
        if (strncmp(name, "encoder.", 8) == 0) {
            frozen++;
            assert_string_equal(old, new);
        } else {
            moved += strcmp(old, new) != 0;
        }
    }
    assert_int_equal(frozen, 7); /* the embedding, and two directions of kernel, recurrent kernel and bias */
    assert_int_equal(moved, (int)cpl_json_size(tensors) - frozen);
    cpl_json_free(before);
    cpl_json_free(after);
    char path[700];
    cpl_tensor_file *f;
    int states = 0;
    snprintf(path, sizeof path, "%s/second/checkpoint.safetensors", top);
    assert_int_equal(cpl_tensor_file_open(&f, path, NULL), CPL_OK);
    for (size_t i = 0; i < cpl_tensor_file_count(f); i++) {
        const char *name = cpl_tensor_file_at(f, i)->name;
        states += strncmp(name, "optimizer.", 10) == 0;
        if (strncmp(name, "optimizer.", 10) == 0 && strstr(name, "encoder."))
            fail_msg("there is '%s'", name);
    }
    assert_int_equal(states, 2 * moved);
    cpl_tensor_file_close(f);
}

/* ---- H05 ---- */

static void case_H05_the_step_after_resuming(void **state)
{
    (void)state;
    put_all();
    run whole = {.folder = "whole", .set = {"training.max_steps=11"}};
    run halves = {.folder = "halves", .set = {"training.max_steps=10"}};
    assert_int_equal(train(&whole), CPL_OK);
    assert_int_equal(train(&halves), CPL_OK);
    halves.set[0] = "training.max_steps=11", halves.resume = 1;
    assert_int_equal(train(&halves), CPL_OK);
    assert_int_equal(halves.steps_seen, 11);
    assert_same_tensors("whole", "halves", "checkpoint.safetensors");
    cpl_json *a[16], *b[16];
    assert_int_equal(read_events("whole", "step", a, 16), 11);
    assert_int_equal(read_events("halves", "step", b, 16), 11);
    for (int i = 0; i < 11; i++) {
        assert_true(number(a[i], "loss") == number(b[i], "loss"));
        cpl_json_free(a[i]);
        cpl_json_free(b[i]);
    }
}

/* A model file has weights and no optimizer state: it cannot be resumed, under either name; and nothing is lost. */
static void case_H05_weights_alone_are_not_resumed(void **state)
{
    (void)state;
    char command[1600];
    size_t n, m;
    put_all();
    run r = {.folder = "weights", .set = {"training.max_steps=3"}};
    assert_int_equal(train(&r), CPL_OK);
    char *before = read_file("weights", "model.safetensors", &n);
    snprintf(command, sizeof command, "rm -f '%s'/weights/checkpoint*", top);
    assert_int_equal(system(command), 0);
    r.resume = 1;
    assert_int_equal(train(&r), CPL_USAGE);
    assert_non_null(strstr(r.error.line[0], "no checkpoint to go on from"));
    assert_non_null(strstr(r.error.line[0], "no optimizer state"));
    assert_non_null(strstr(r.error.hint, "--init"));
    snprintf(command, sizeof command, "cp '%s'/weights/model.safetensors '%s'/weights/checkpoint.safetensors", top,
             top);
    assert_int_equal(system(command), 0);
    r.steps_seen = 0;
    assert_int_not_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 0);
    char *after = read_file("weights", "model.safetensors", &m);
    assert_int_equal(n, m);
    assert_memory_equal(before, after, n);
    cpl_release(before);
    cpl_release(after);
}

/* ---- H06 ---- */

/* NFKC, lower case, characters: the file alone gives the ids that training gave. */
static void case_H06_the_file_alone_gives_the_same_ids(void **state)
{
    (void)state;
    static const char line[] = "ＡＢ é ﬁ"; /* full width letters, e with an accent of its own, a ligature */
    int32_t *ids = NULL;
    size_t capacity = 0, count;
    cpl_error err = CPL_ERROR_INIT;
    put_file("train.tsv", "ＡＢ e\u0301 ﬁ\tone\nab\ttwo\nfi é\tthree\nb a\tfour\n");
    put_file("config.yaml", "model: {units: 4}\ntext: {source: {tokens: char, standardize: nfkc_lower}}\n"
                            "data: {train: train.tsv, valid: 25%}\n"
                            "training: {batch_size: 2, max_steps: 1, show_examples: 0, threads: 1}\n");
    run r = {.folder = "rules", .set = {NULL}};
    assert_int_equal(train(&r), CPL_OK);
    cpl_model_file *f = open_model("rules");
    const cpl_config_side *side = &f->config->text.source;
    cpl_codec *codec;
    must(cpl_codec_new(&codec, (cpl_text_rules){(cpl_tokens)side->tokens, (cpl_standardize)side->standardize},
                       f->source, &err), &err);
    static const char *const want[] = {"a", "b", " ", "é", " ", "f", "i"};
    must(cpl_codec_encode(codec, line, strlen(line), &ids, &capacity, &count, NULL, &err), &err);
    assert_int_equal(count, 7);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids[i], cpl_vocabulary_id(f->source, want[i], strlen(want[i])));
    cpl_release(ids);
    cpl_codec_free(codec);
    cpl_model_file_close(f);
}

/* ---- H02 ---- */

/* Vocabularies of one size: the contents decide, and the first entry that differs is shown. */
static void case_H02_same_size_other_content(void **state)
{
    (void)state;
    char init[1600];
    put_file("config.yaml", "model: {type: autoencoder, units: 4}\ndata: {train: train.txt, valid: train.txt}\n"
                            "training: {batch_size: 2, max_steps: 1, show_examples: 0, threads: 1}\n");
    put_file("train.txt", "c c c b b a\n");
    run r = {.folder = "one", .set = {NULL}};
    assert_int_equal(train(&r), CPL_OK);
    put_file("train.txt", "c c c a a b\n"); /* two lines of the vocabulary change places */
    r.folder = "two";
    assert_int_equal(train(&r), CPL_OK);
    snprintf(init, sizeof init, "training.init={encoder: %s/one/model.safetensors, output: %s/two/model.safetensors}",
             top, top);
    run both = {.folder = "both", .set = {init}};
    assert_int_equal(train(&both), CPL_USAGE);
    assert_non_null(strstr(both.error.line[0], "entry 5 is 'a' and 'b'"));
    char path[700];
    snprintf(path, sizeof path, "%s/both/model.safetensors", top);
    assert_false(cpl_file_exists(path));
}

/* ---- C11 ---- */

/* Padding is known by lengths, not by an id: an id 0 that a length covers is a token like any other. */
static void sum_of_steps(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("words", 3), "batch s");
    cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = 3, .units = 1});
    cpl_output(g, "mean", cpl_mean_time(g, x));
}

static void case_C11_three_valid_tokens(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 1, 2}, *const rows[] = {ids}; /* the cat sat */
    static const int64_t length = 3;
    float mean;
    int64_t shape[6];
    int rank;
    cpl_program *p;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_compile(&p, sum_of_steps, NULL, &(cpl_compile_options){.threads = 1, .inference = 1}, &err), &err);
    memcpy(cpl_parameter_value(p, 0), (const float[]){3, 6, 12}, 3 * sizeof(float));
    must(cpl_feed_ids(p, "source", rows, &length, 1, &err), &err);
    must(cpl_run(p, CPL_EVALUATE, &err), &err);
    must(cpl_read(p, "mean", &mean, 1, shape, &rank, &err), &err);
    assert_true(mean == 7); /* over two of them it would be 9 */
    cpl_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_A09_no_optimizer_touches_what_no_gradient_reaches),
        cmocka_unit_test(case_H03_two_steps_then_frozen),
        cmocka_unit_test(case_H03_inspect_tells_the_same_checksums),
        cmocka_unit_test(case_H05_the_step_after_resuming),
        cmocka_unit_test(case_H05_weights_alone_are_not_resumed),
        cmocka_unit_test(case_H06_the_file_alone_gives_the_same_ids),
        cmocka_unit_test(case_H02_same_size_other_content),
        cmocka_unit_test(case_C11_three_valid_tokens),
    };
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
