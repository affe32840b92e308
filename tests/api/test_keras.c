/* Models from Keras and back: the golden weights through import, generate and further training; files that do not
 * fit. */
#include "api/api_test.h"

#include <math.h>
#include "base/files.h"
#include "graph/program.h"
#include "io/hdf5.h"
#include "model/parts.h"
#include "support/golden.h"

enum { SOURCE_WORDS = 23, TARGET_WORDS = 29 };

/* ---- files ---- */

/* PREFIX4, PREFIX5 … after the four special entries. */
static void write_words(const place *p, const char *name, char prefix, int size)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "\n[UNK]\n[START]\n[END]\n");
    for (int i = 4; i < size; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%c%d\n", prefix, i);
    place_write(p, name, text);
}

typedef struct importing {
    place place;
    char weights[300], config[300], source[300], target[300], map[300];
    cpl_keras_import_options options;
    cpl_error error;
} importing;

static void begin(importing *m, const char *config, int source, int target)
{
    memset(m, 0, sizeof *m);
    place_make(&m->place);
    place_write(&m->place, "c.yaml", config);
    write_words(&m->place, "source.txt", 's', source);
    write_words(&m->place, "target.txt", 't', target);
    m->options = (cpl_keras_import_options){.weights = place_file(&m->place, "w.weights.h5", m->weights),
                                            .config = place_file(&m->place, "c.yaml", m->config),
                                            .source_vocabulary = place_file(&m->place, "source.txt", m->source),
                                            .target_vocabulary = place_file(&m->place, "target.txt", m->target),
                                            .output = m->place.model};
}

static void begin_golden(importing *m, const char *name)
{
    char config[200];
    int mirrored = strcmp(name, "autoencoder") == 0;
    snprintf(config, sizeof config, "model: {type: %s, units: 8}\ntext: {source: {tokens: space}%s}\n", name,
             mirrored ? "" : ", target: {tokens: space}");
    begin(m, config, SOURCE_WORDS, TARGET_WORDS);
    snprintf(m->weights, sizeof m->weights, "%s/golden/%s.weights.h5", CPL_TEST_DATA, name);
    if (mirrored)
        m->options.target_vocabulary = NULL;
}

static void import_ok(importing *m)
{
    m->error = (cpl_error)CPL_ERROR_INIT;
    must(cpl_import_keras(&m->options, &m->error), &m->error);
}

/* Import fails, says each of the texts, and writes nothing. */
static void import_fails(importing *m, const char *const *texts)
{
    char said[CPL_ERROR_LINES * CPL_ERROR_WIDTH + CPL_ERROR_WIDTH + 64] = "";
    m->error = (cpl_error)CPL_ERROR_INIT;
    assert_int_equal(cpl_import_keras(&m->options, &m->error), CPL_USAGE);
    for (int i = 0; i < m->error.lines; i++)
        strcat(strcat(said, m->error.line[i]), "\n");
    strcat(said, m->error.hint);
    for (; *texts; texts++)
        if (!strstr(said, *texts))
            fail_msg("'%s' is not in: %s", *texts, said);
    assert_int_not_equal(access(m->place.model, F_OK), 0);
}

#define FAILS(m, ...) import_fails((m), (const char *const[]){__VA_ARGS__, NULL})

/* A program with the imported weights. */
static cpl_program *loaded(const cpl_model_file *f, cpl_model_function function, const void *user)
{
    cpl_program *p;
    MUST(cpl_compile(&p, function, user, &(cpl_compile_options){.name = "model", .threads = 2}, err));
    MUST(cpl_model_file_load_parameters(f, p->engine->parameters, err));
    return p;
}

static void check_model(cpl_program *p, const golden *g, golden_feeder feed)
{
    feed(g, p);
    MUST(cpl_run(p, CPL_EVALUATE, err));
    golden_check_output(g, p, "logits", "out.logits", 2e-5, golden_find(g, "in.y"));
    for (int step = 0; step < 20; step++) {
        golden_check_step(g, p, step, feed);
        MUST(cpl_adam(p, 1e-3, err));
    }
    cpl_program_free(p);
}

static void feed_pair(const golden *g, cpl_program *p)
{
    golden_feed_mask(g, p, "s", "in.source");
    golden_feed(g, p, "source", "in.source");
    golden_feed_mask(g, p, "t", "in.y");
    golden_feed(g, p, "target_in", "in.target_in");
    golden_feed(g, p, "target_out", "in.y");
}

static void feed_given(const golden *g, cpl_program *p)
{
    feed_pair(g, p);
    golden_feed(g, p, "given_h", "in.h");
    golden_feed(g, p, "given_c", "in.c");
}

static void feed_mirrored(const golden *g, cpl_program *p)
{
    golden_feed_mask(g, p, "s", "in.source");
    golden_feed(g, p, "source", "in.source");
    golden_feed(g, p, "labels", "in.y");
}

/* Loss and logits in one graph. */
static void with_logits(cpl_graph *g, const void *user)
{
    const cpl_model_sizes *n = user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", n->source_vocabulary), "batch s");
    cpl_node *in = cpl_input(g, "target_in", CPL_ID("target", n->target_vocabulary), "batch t");
    cpl_node *out = cpl_input(g, "target_out", CPL_ID("target", n->target_vocabulary), "batch t");
    cpl_node *h = NULL, *c = NULL;
    if (n->config->model.type == CPL_MODEL_SUMMARIZER) { /* the file's encoder begins with given states */
        h = cpl_input(g, "given_h", CPL_REALS(8), "batch units");
        c = cpl_input(g, "given_c", CPL_REALS(8), "batch units");
    }
    cpl_model_encoded e = cpl_model_encode(g, n, source, h, c);
    cpl_attention_memory memory = cpl_model_memory(g, n, e.y);
    cpl_model_states before = cpl_model_begin(g, n, &e);
    cpl_model_decoded d = cpl_model_decode(g, n, in, memory, &before);
    cpl_loss_result r = cpl_masked_cross_entropy(g, d.logits, out);
    cpl_output(g, "logits", d.logits);
    cpl_output(g, "loss", r.loss);
    cpl_minimize(g, r.loss);
}

static void mirrored_with_logits(cpl_graph *g, const void *user)
{
    const cpl_model_sizes *n = user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", n->source_vocabulary), "batch s");
    cpl_node *labels = cpl_input(g, "labels", CPL_ID("target", n->target_vocabulary), "batch s");
    cpl_node *y = cpl_model_encode(g, n, source, NULL, NULL).y;
    cpl_node *logits = cpl_dense(g, "output", y, &(cpl_dense_options){.units = n->target_vocabulary, .dim = "vocab"});
    cpl_loss_result r = cpl_masked_cross_entropy(g, logits, labels);
    cpl_output(g, "logits", logits);
    cpl_output(g, "loss", r.loss);
    cpl_minimize(g, r.loss);
}

static void check_golden(const char *name, cpl_model_function function, golden_feeder feed)
{
    importing m;
    cpl_model_file *f;
    golden g = golden_open(name);
    begin_golden(&m, name);
    import_ok(&m);
    MUST(cpl_model_file_open(&f, m.place.model, err));
    assert_string_equal(f->type, name);
    check_model(loaded(f, function, &f->sizes), &g, feed);
    cpl_model_file_close(f);
    golden_close(&g);
    place_remove(&m.place);
}

static void the_translator_is_keras_s(void **state)
{
    (void)state;
    check_golden("translator", with_logits, feed_pair);
}

static void the_summarizer_is_keras_s(void **state)
{
    (void)state;
    check_golden("summarizer", with_logits, feed_given);
}

static void the_autoencoder_is_keras_s(void **state)
{
    (void)state;
    check_golden("autoencoder", mirrored_with_logits, feed_mirrored);
}

/* Text in, text out: the golden sources as words, the golden greedy ids as words. */
static void generate_gives_keras_s_words(void **state)
{
    (void)state;
    importing m;
    cpl_model *model;
    char *line;
    cpl_generate_options o = {.max_length = 10};
    begin_golden(&m, "translator");
    import_ok(&m);
    MUST(cpl_model_open(&model, m.place.model, 1, err));
    static const char *const pairs[][2] = {{"s22 s22 s8 s7 s22", "t27 t20"}, {"s18 s18 s17", "t20"}, {"s20 s14", ""}};
    for (int i = 0; i < 3; i++) {
        MUST(cpl_generate(&line, model, pairs[i][0], &o, err));
        assert_string_equal(line, pairs[i][1]);
        cpl_free(line);
    }
    cpl_model_close(model);
    place_remove(&m.place);
}

static void same_files(const char *a, const char *b)
{
    cpl_model_file *x, *y;
    MUST(cpl_model_file_open(&x, a, err));
    MUST(cpl_model_file_open(&y, b, err));
    assert_int_equal(cpl_tensor_file_count(x->tensors), cpl_tensor_file_count(y->tensors));
    for (size_t i = 0; i < cpl_tensor_file_count(x->tensors); i++) {
        const cpl_tensor_entry *t = cpl_tensor_file_at(x->tensors, i), *u = cpl_tensor_file_find(y->tensors, t->name);
        assert_non_null(u);
        assert_memory_equal(t->data, u->data, (size_t)cpl_tensor_elements(t) * sizeof(float));
    }
    assert_true(cpl_vocabulary_checksum(x->source) == cpl_vocabulary_checksum(y->source));
    assert_true(cpl_vocabulary_checksum(x->target) == cpl_vocabulary_checksum(y->target));
    cpl_model_file_close(x);
    cpl_model_file_close(y);
}

/* A model file of any configuration, with values that differ everywhere. */
static void make_model(const importing *m, const char *path)
{
    cpl_config *c;
    cpl_vocabulary *source, *target;
    cpl_program *p;
    cpl_model_set *set;
    MUST(cpl_config_load(&c, m->config, err));
    MUST(cpl_config_check(c, 0, err));
    MUST(cpl_vocabulary_read(&source, m->source, CPL_TOKENS_SPACE, err));
    MUST(cpl_vocabulary_read(&target, c->model.type == CPL_MODEL_AUTOENCODER ? m->source : m->target, CPL_TOKENS_SPACE,
                             err));
    cpl_model_sizes n = {.config = c, .source_vocabulary = cpl_vocabulary_size(source),
                         .target_vocabulary = cpl_vocabulary_size(target)};
    MUST(cpl_compile(&p, cpl_model_kind_of(c)->score, &n, &(cpl_compile_options){.inference = 1}, err));
    for (size_t i = 0; i < cpl_parameter_count(p); i++)
        for (int64_t k = 0; k < cpl_parameters_at(p->engine->parameters, i)->elements; k++)
            cpl_parameter_value(p, i)[k] = (float)i + (float)k / 64;
    cpl_model_facts facts = {.config = c, .source = source, .target = target, .parameters = p->engine->parameters};
    MUST(cpl_model_set_new(&set, &facts, err));
    cpl_tensor_set view = cpl_model_set_view(set, 0, 0, "[]", NULL);
    MUST(cpl_tensor_file_write(path, &view, err));
    cpl_model_set_free(set);
    cpl_program_free(p);
    cpl_vocabulary_free(source);
    cpl_vocabulary_free(target);
    cpl_config_free(c);
}

static void export_comes_back(void **state)
{
    (void)state;
    static const char *const configs[] = {
        "model: {units: 8, decoder: {attention: {heads: 2}}}\n",
        "model: {type: summarizer, units: 6, encoder: {layers: 2}, decoder: {layers: 2}}\n",
        "model: {units: 6, encoder: {cell: gru_reset_before, merge: concat}, decoder: {cell: lstm}}\n",
        "model: {units: 4, embedding: 6, decoder: {cell: gru, attention: {score: additive, position: before, "
        "combine: concat}}}\n",
        "model: {units: 6, encoder: {direction: backward}, decoder: {initial_state: bridge, attention: "
        "{score: general, combine: tanh}}}\n",
        "model: {type: autoencoder, units: 6, encoder: {layers: 2}}\n",
        "model: {type: autoencoder, units: 6, bottleneck: 5}\n",
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        importing m;
        char first[300], source[300], target[300];
        begin(&m, configs[i], 9, 11);
        place_file(&m.place, "first.safetensors", first);
        make_model(&m, first);
        cpl_keras_export_options o = {.model = first, .output = m.weights,
                                      .source_vocabulary = place_file(&m.place, "s.txt", source),
                                      .target_vocabulary = place_file(&m.place, "t.txt", target)};
        MUST(cpl_export_keras(&o, err));
        int mirrored = strstr(configs[i], "autoencoder") != NULL;
        m.options.source_vocabulary = source;
        m.options.target_vocabulary = mirrored ? NULL : target;
        import_ok(&m);
        same_files(first, m.place.model);
        place_remove(&m.place);
    }
}

/* ---- small weights of an autoencoder ---- */

enum { TENSORS = 12, NUMBERS = 256 };

typedef struct weights {
    cpl_tensor_entry items[TENSORS];
    float data[TENSORS][NUMBERS];
    size_t count;
} weights;

static void add(weights *w, const char *name, int rank, int64_t a, int64_t b)
{
    cpl_tensor_entry *t = &w->items[w->count];
    *t = (cpl_tensor_entry){.name = name, .rank = rank, .shape = {a, b}, .data = w->data[w->count]};
    assert_true(cpl_tensor_elements(t) <= NUMBERS);
    w->count++;
}

static void add_gru(weights *w, const char *const name[3], int64_t units, int bias_rank, int64_t bias)
{
    add(w, name[0], 2, units, 3 * units);
    add(w, name[1], 2, units, 3 * units);
    if (bias_rank == 2)
        add(w, name[2], 2, 2, bias);
    else
        add(w, name[2], 1, bias, 0);
}

static const char *const bare[3] = {"encoder/rnn/cell/vars/0", "encoder/rnn/cell/vars/1", "encoder/rnn/cell/vars/2"};
static const char *const forward[3] = {"encoder/rnn/forward_layer/cell/vars/0", "encoder/rnn/forward_layer/cell/vars/1",
                                       "encoder/rnn/forward_layer/cell/vars/2"};
static const char *const backward[3] = {"encoder/rnn/backward_layer/cell/vars/0",
                                        "encoder/rnn/backward_layer/cell/vars/1",
                                        "encoder/rnn/backward_layer/cell/vars/2"};

static void add_rest(weights *w, int64_t units, int64_t vocabulary)
{
    add(w, "encoder/embedding/vars/0", 2, vocabulary, units);
    add(w, "layers/dense/vars/0", 2, units, vocabulary);
    add(w, "layers/dense/vars/1", 1, vocabulary, 0);
}

static void begin_small(importing *m, int64_t units, const char *encoder, int vocabulary)
{
    char config[300];
    snprintf(config, sizeof config, "model: {type: autoencoder, units: %lld, encoder: {%s}}\n"
             "text: {source: {tokens: space}}\n", (long long)units, encoder);
    begin(m, config, vocabulary, vocabulary);
    m->options.target_vocabulary = NULL;
}

static void case_H08_gru_variants_and_bias_shapes(void **state)
{
    (void)state;
    static const struct {
        int rank, bias;
        const char *fits, *hint; /* the cell it belongs to, NULL: none; what the refusal says */
    } kinds[] = {{2, 9, "gru", "set model.encoder.cell: gru"},
                 {1, 9, "gru_reset_before", "set model.encoder.cell: gru_reset_before"},
                 {1, 18, NULL, "CuDNNGRU"}};
    static const char *const cells[] = {"gru", "gru_reset_before"};
    for (int i = 0; i < 3 * 2 * 2; i++) {
        int kind = i % 3, nested = i / 6;
        const char *cell = cells[i / 3 % 2];
        char encoder[100];
        importing m;
        weights w = {.count = 0};
        snprintf(encoder, sizeof encoder, "cell: %s, direction: %s", cell, nested ? "both" : "forward");
        begin_small(&m, 3, encoder, 7);
        add_gru(&w, nested ? forward : bare, 3, kinds[kind].rank, kinds[kind].bias);
        if (nested)
            add_gru(&w, backward, 3, kinds[kind].rank, kinds[kind].bias);
        add_rest(&w, 3, 7);
        MUST(cpl_hdf5_write(m.weights, w.items, w.count, err));
        if (kinds[kind].fits && strcmp(kinds[kind].fits, cell) == 0)
            import_ok(&m);
        else
            FAILS(&m, nested ? forward[2] : bare[2], kind == 0 ? "[2 9]" : kind == 1 ? "[9]" : "[18]",
                  strcmp(cell, "gru") == 0 ? "needs [2 9]" : "needs [9]", kinds[kind].hint);
        place_remove(&m.place);
    }
}

/* The outputs of the encoder alone. */
static void encoder(cpl_graph *g, const void *user)
{
    const cpl_model_sizes *n = user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("source", n->source_vocabulary), "batch s");
    cpl_output(g, "y", cpl_model_encode(g, n, source, NULL, NULL).y);
    cpl_dense(g, "output", cpl_zeros(g, cpl_take(g, cpl_model_encode(g, n, source, NULL, NULL).y, 0), 1),
              &(cpl_dense_options){.units = n->target_vocabulary, .dim = "vocab"});
}

/* D01's weights stored as r, z, n: right only where the order is declared. */
static void case_D02_gates_in_another_order(void **state)
{
    (void)state;
    static const float kernel[] = {-0.25f, 0.5f, 1.0f}, recurrent[] = {0.4f, 0.2f, -0.6f};
    static const float bias[] = {-0.1f, 0.1f, 0.05f, 0.3f, 0.0f, 0.2f}, x[] = {1.0f, -0.5f, 0.25f};
    static const float want[2][3] = {{0.423926f, 0.095418f, 0.217371f}, {0.289472f, -0.075652f, 0.139418f}};
    static const int32_t ids[] = {4, 5, 6};
    for (int declared = 0; declared < 2; declared++) {
        importing m;
        weights w = {.count = 0};
        cpl_model_file *f;
        float y[3];
        int64_t shape[6];
        int rank;
        begin_small(&m, 1, "direction: forward", 7);
        add_gru(&w, bare, 1, 2, 3);
        memcpy(w.data[0], kernel, sizeof kernel);
        memcpy(w.data[1], recurrent, sizeof recurrent);
        memcpy(w.data[2], bias, sizeof bias);
        add_rest(&w, 1, 7);
        memcpy(w.data[3] + 4, x, sizeof x);
        MUST(cpl_hdf5_write(m.weights, w.items, w.count, err));
        place_write(&m.place, "map", "gates encoder/rnn rzn # as another library stores them\n");
        m.options.map = declared ? place_file(&m.place, "map", m.map) : NULL;
        import_ok(&m);
        MUST(cpl_model_file_open(&f, m.place.model, err));
        cpl_program *p = loaded(f, encoder, &f->sizes);
        MUST(cpl_feed_ids(p, "source", (const int32_t *const[]){ids}, (const int64_t[]){3}, 1, err));
        MUST(cpl_run(p, CPL_EVALUATE, err));
        MUST(cpl_read(p, "y", y, 3, shape, &rank, err));
        for (int t = 0; t < 3; t++)
            assert_true(fabsf(y[t] - want[declared][t]) < 1e-5f);
        cpl_program_free(p);
        cpl_model_file_close(f);
        place_remove(&m.place);
    }
}

/* ---- names ---- */

/* Equal shapes in another order go where their names say; a name too many or too few stops everything. */
static void case_H01_keras_weights_by_name_alone(void **state)
{
    (void)state;
    importing m;
    weights w = {.count = 0};
    cpl_model_file *f;
    begin_small(&m, 2, "", 7);
    add_rest(&w, 2, 7);
    add_gru(&w, backward, 2, 2, 6);
    add_gru(&w, forward, 2, 2, 6);
    w.data[3][0] = 7; /* backward kernel */
    MUST(cpl_hdf5_write(m.weights, w.items, w.count, err));
    import_ok(&m);
    MUST(cpl_model_file_open(&f, m.place.model, err));
    assert_true(*(const float *)cpl_tensor_file_find(f->tensors, "encoder.rnn.backward.kernel")->data == 7);
    assert_true(*(const float *)cpl_tensor_file_find(f->tensors, "encoder.rnn.forward.kernel")->data == 0);
    cpl_model_file_close(f);
    unlink(m.place.model);
    w.items[1].name = "projection/vars/0";
    add(&w, "optimizer/vars/3", 1, 4, 0);
    MUST(cpl_hdf5_write(m.weights, w.items, w.count, err));
    FAILS(&m, "no place for 'projection/vars/0' [2 7]", "the file has no 'layers/dense/vars/0' [2 7]");
    place_write(&m.place, "map", "# ours\nprojection layers/dense\n");
    m.options.map = place_file(&m.place, "map", m.map);
    import_ok(&m);
    unlink(m.place.model);
    place_write(&m.place, "map", "projection layers/dense\nhead layers/head\n");
    FAILS(&m, "line 2", "nothing in the file is called 'head'");
    place_write(&m.place, "map", "projection layers/dense extra\n");
    FAILS(&m, "line 1 has 3 words");
    place_write(&m.place, "map", "gates encoder/rnn zzh\n");
    FAILS(&m, "'zzh' is no order");
    place_remove(&m.place);
}

static void case_H02_vocabulary_and_embedding_disagree(void **state)
{
    (void)state;
    importing m;
    begin_golden(&m, "translator");
    write_words(&m.place, "source.txt", 's', SOURCE_WORDS - 1);
    FAILS(&m, "'encoder/embedding/vars/0' is [23 8]", "needs [22 8]",
          "23 rows for 22 entries of the source vocabulary");
    place_remove(&m.place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_translator_is_keras_s),
        cmocka_unit_test(the_summarizer_is_keras_s),
        cmocka_unit_test(the_autoencoder_is_keras_s),
        cmocka_unit_test(generate_gives_keras_s_words),
        cmocka_unit_test(export_comes_back),
        cmocka_unit_test(case_H08_gru_variants_and_bias_shapes),
        cmocka_unit_test(case_D02_gates_in_another_order),
        cmocka_unit_test(case_H01_keras_weights_by_name_alone),
        cmocka_unit_test(case_H02_vocabulary_and_embedding_disagree),
    };
    char *version = cpl_version_text();
    int is_missing = !version || strstr(version, "hdf5      missing") != NULL;
    cpl_free(version);
    if (is_missing)
        return 77; /* skipped */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
