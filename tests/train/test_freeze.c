/* test_freeze.c: parts that do not train (case H03): bit-identical, without gradient, state and activations. */
#include "train/train_test.h"

#include <math.h>

#include "config/config.h"
#include "graph/program.h"
#include "model/model.h"
#include "train/optimizer.h"

/* ---- by the C API: before and after a first fit ---- */

static void tagger(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *source = cpl_input(g, "source", CPL_ID("words", 7), "batch s");
    cpl_enter(g, "encoder");
    cpl_node *x = cpl_embedding(g, "embedding", source, &(cpl_embedding_options){.size = 7, .units = 3});
    x = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.units = 4}).y;
    x = cpl_layer_norm(g, "norm", x, 0);
    cpl_leave(g);
    x = cpl_dense(g, "hidden", x, &(cpl_dense_options){.units = 6, .activation = 1});
    cpl_node *logits = cpl_dense(g, "output", x, &(cpl_dense_options){.units = 7, .dim = "vocab"});
    cpl_loss_result r = cpl_masked_cross_entropy(g, logits, source);
    cpl_output(g, "loss", r.loss);
    cpl_minimize(g, r.loss);
}

static void must(cpl_status status, const cpl_error *err)
{
    if (status != CPL_OK)
        cpl_error_print(err, stderr);
    assert_int_equal(status, CPL_OK);
}

static void step(cpl_program *p, double rate)
{
    static const int32_t ids[2][4] = {{2, 5, 6, 3}, {2, 4, 3, 0}};
    static const int64_t lengths[2] = {4, 3};
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_feed(p, "source", &(cpl_array){.type = CPL_INT32, .rank = 2, .shape = {2, 4}, .data = ids,
                                            .lengths = lengths}, &err), &err);
    must(cpl_run(p, CPL_TRAIN, &err), &err);
    if (rate > 0)
        must(cpl_adam(p, rate, &err), &err);
}

static cpl_program *make(const char *const *freeze, int count)
{
    cpl_program *p = NULL;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_compile(&p, tagger, NULL, &(cpl_compile_options){.freeze = freeze, .freeze_count = count, .threads = 1,
                                                              .seed = 5}, &err), &err);
    return p;
}

static size_t elements_of(const cpl_program *p, size_t i)
{
    int64_t shape[3], n = 1;
    for (int k = cpl_parameter_shape(p, i, shape); k-- > 0;)
        n *= shape[k];
    return (size_t)n;
}

/* Copies all values one after the other. */
static float *values_of(const cpl_program *p)
{
    size_t n = 0;
    float *all = cpl_alloc(1000, sizeof *all);
    for (size_t i = 0; i < cpl_parameter_count(p); i++) {
        memcpy(all + n, cpl_parameter_value(p, i), elements_of(p, i) * sizeof *all);
        n += elements_of(p, i);
    }
    assert_true(n < 1000);
    return all;
}

/* Which parameters have moved: their paths begin with prefix or not. */
static void check_moved(const cpl_program *p, const float *before, const char *still)
{
    for (size_t i = 0; i < cpl_parameter_count(p); i++) {
        size_t bytes = elements_of(p, i) * sizeof *before;
        int frozen = still && strncmp(cpl_parameter_path(p, i), still, strlen(still)) == 0;
        assert_int_equal(memcmp(before, cpl_parameter_value(p, i), bytes) == 0, frozen);
        assert_int_equal(cpl_parameter_trainable(p, i), !frozen);
        before += elements_of(p, i);
    }
}

static void case_H03_freeze_after_a_first_fit(void **state)
{
    (void)state;
    cpl_program *p = make(NULL, 0);
    cpl_error err = CPL_ERROR_INIT;
    step(p, 0.01), step(p, 0.01);
    size_t plain = p->schedule[CPL_TRAIN].plans[0].bytes;
    must(cpl_set_trainable(p, "encoder", 0, &err), &err);
    assert_null(cpl_parameter_gradient(p, (size_t)cpl_parameter_find(p, "output.kernel"))); /* until the next run */
    assert_int_equal(cpl_adam(p, 0.01, NULL), CPL_USAGE);
    float *before = values_of(p);
    step(p, 0.01), step(p, 0.01), step(p, 0.01);
    check_moved(p, before, "encoder");
    assert_null(cpl_parameter_gradient(p, (size_t)cpl_parameter_find(p, "encoder.rnn.kernel")));
    assert_int_equal(cpl_traces(p), 1);
    assert_true(p->schedule[CPL_TRAIN].plans[0].bytes < plain);
    assert_true(cpl_parameters_gradient_bytes(p->engine->parameters) < cpl_parameters_bytes(p->engine->parameters));
    cpl_release(before);

    /* Thawed: moments of zero, while the count of steps goes on: this is step 6. */
    must(cpl_set_trainable(p, "*", 1, &err), &err);
    before = values_of(p);
    float w = cpl_parameter_value(p, (size_t)cpl_parameter_find(p, "encoder.rnn.kernel"))[0];
    step(p, 0);
    double g = (double)cpl_parameter_gradient(p, (size_t)cpl_parameter_find(p, "encoder.rnn.kernel"))[0];
    must(cpl_adam(p, 0.01, &err), &err);
    check_moved(p, before, NULL);
    double want = (double)w - 0.01 * sqrt(1 - pow(0.999, 6)) / (1 - pow(0.9, 6)) * (0.1 * g) /
                  (sqrt(0.001 * g * g) + 1e-7);
    assert_true(fabs((double)cpl_parameter_value(p, (size_t)cpl_parameter_find(p, "encoder.rnn.kernel"))[0] - want) <
                1e-6);
    cpl_release(before);
    cpl_program_free(p);
}

/* What is not frozen has the gradients that it would have anyway, whatever lies above or below. */
static void gradients_of_the_rest_are_the_same(void **state)
{
    (void)state;
    static const char *const sets[][2] = {{"encoder", NULL}, {"output", "hidden"}, {"*kernel", NULL},
                                          {"*.embedding", "output.bias"}, {"hidden", NULL}};
    cpl_program *all = make(NULL, 0);
    step(all, 0);
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        cpl_program *p = make(sets[s], sets[s][1] ? 2 : 1);
        step(p, 0);
        int frozen = 0;
        assert_true(cpl_scalar(p, "loss") == cpl_scalar(all, "loss"));
        for (size_t i = 0; i < cpl_parameter_count(p); i++) {
            const float *g = cpl_parameter_gradient(p, i);
            frozen += g == NULL;
            if (g)
                assert_memory_equal(g, cpl_parameter_gradient(all, i), elements_of(p, i) * sizeof *g);
        }
        assert_true(frozen > 0 && frozen < (int)cpl_parameter_count(p));
        cpl_program_free(p);
    }
    cpl_program_free(all);
}

/* ---- what is not computed ---- */

static cpl_program *translator(const char *const *freeze, int count)
{
    cpl_config *config;
    cpl_program *p = NULL;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_config_default(&config, &err), &err);
    config->model.units = 8;
    cpl_model_sizes n = {.config = config, .source_vocabulary = 9, .target_vocabulary = 11};
    must(cpl_compile(&p, cpl_translator.loss, &n, &(cpl_compile_options){.freeze = freeze, .freeze_count = count},
                     &err), &err);
    cpl_config_free(config);
    return p;
}

/* "path:gradients" of each backward call, in order; a gradient is named by its input: v a value, P a parameter. */
static void show_backward(const cpl_program *p, cpl_str *to)
{
    const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
    cpl_str_clear(to);
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        if (c->dead || !c->backward)
            continue;
        cpl_str_printf(to, "%s%s:", to->length ? " " : "", c->path);
        for (int k = 0; k < c->inputs; k++)
            if (c->din[k] >= 0)
                cpl_str_add(to, g->values[c->in[k]].parameter >= 0 ? "P" : "v");
    }
}

/* A frozen encoder is not run backwards. With the attention alone nothing is, but the way from the loss to it: no
 * gradient for the projection's weights, none for the cell in front of it, none through time. */
static void nobody_computes_a_gradient_that_nobody_needs(void **state)
{
    static const char *const frozen[] = {"encoder", "decoder.embedding", "decoder.rnn", "decoder.output"};
    (void)state;
    cpl_str calls = {0};
    cpl_program *p = translator(frozen, 1);
    show_backward(p, &calls);
    assert_string_equal(calls.data, "decoder.norm:vPP decoder.attention.output:vPP decoder.attention:vvv "
                                    "decoder.attention.query:vPP decoder.rnn:vPPP decoder.embedding:P "
                                    "decoder.attention.value:PP decoder.attention.key:PP");
    cpl_program_free(p);
    p = translator(frozen, 4);
    show_backward(p, &calls);
    assert_string_equal(calls.data, "decoder.norm:vPP decoder.attention.output:vPP decoder.attention:vvv "
                                    "decoder.attention.query:PP decoder.attention.value:PP decoder.attention.key:PP");
    const cpl_graph *g = p->schedule[CPL_TRAIN].graph;
    for (size_t i = 0; i < g->call_count; i++) { /* the loss gives its gradients on the way */
        const cpl_call *c = &g->calls[i];
        if (!c->dead && strcmp(c->op->name, "linear_cross_entropy") == 0) {
            assert_true(c->out[c->visible] >= 0);
            assert_int_equal(c->out[c->visible + 1], -1);
            assert_int_equal(c->out[c->visible + 2], -1);
        }
        if (!c->dead && strcmp(c->op->name, "gru") == 0)
            assert_false(c->differentiated); /* keeps nothing */
    }
    cpl_program_free(p);
    cpl_str_free(&calls);
}

static void paths_and_patterns(void **state)
{
    (void)state;
    assert_true(cpl_path_matches("encoder", "encoder.rnn.kernel"));
    assert_true(cpl_path_matches("encoder.rnn.kernel", "encoder.rnn.kernel"));
    assert_false(cpl_path_matches("encoder.rnn", "encoder.rnn_2.kernel"));
    assert_true(cpl_path_matches("encoder.rnn*", "encoder.rnn_2.kernel"));
    assert_true(cpl_path_matches("*.embedding", "decoder.embedding.kernel"));
    assert_false(cpl_path_matches("*.embedding", "embedding.kernel"));
    assert_true(cpl_path_matches("*.rnn_?.bias", "encoder.rnn_2.bias"));
    assert_true(cpl_path_matches("*", "a"));
    assert_false(cpl_path_matches("", "a"));
    cpl_program *p = make(NULL, 0);
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_set_trainable(p, "encoder.rmn", 0, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "'encoder.rmn'"));
    assert_non_null(strstr(err.hint, "'encoder.rnn'"));
    cpl_program_free(p);
}

/* ---- by the configuration ---- */

static const char config[] = "model: {units: 24}\n"
                             "data: {train: train.tsv, valid: valid.tsv}\n"
                             "training: {batch_size: 4, epochs: 100, show_examples: 0, threads: 2, log_every: 1,\n"
                             "           optimizer: {name: adamw, weight_decay: 0.5}, validate_every: 2}\n";

static cpl_tensor_file *tensors(const char *folder, const char *name)
{
    char path[700];
    cpl_tensor_file *f;
    snprintf(path, sizeof path, "%s/%s/%s", top, folder, name);
    assert_int_equal(cpl_tensor_file_open(&f, path, NULL), CPL_OK);
    return f;
}

/* Tensors whose names begin with prefix: all the same bits (1), or not one of more than one number (0). */
static void compare(const char *folder, const char *other, const char *prefix, int same)
{
    cpl_tensor_file *a = tensors(folder, "model.safetensors"), *b = tensors(other, "model.safetensors");
    int seen = 0;
    for (size_t i = 0; i < cpl_tensor_file_count(a); i++) {
        const cpl_tensor_entry *x = cpl_tensor_file_at(a, i), *y = cpl_tensor_file_find(b, x->name);
        if (strncmp(x->name, prefix, strlen(prefix)) != 0)
            continue;
        seen++;
        assert_int_equal(memcmp(x->data, y->data, cpl_tensor_elements(x) * sizeof(float)) == 0, same);
    }
    assert_true(seen >= 2);
    cpl_tensor_file_close(a);
    cpl_tensor_file_close(b);
}

static double peak_of(const char *folder, const char *key)
{
    cpl_json *events[2];
    assert_int_equal(read_events(folder, "start", events, 2), 1);
    double n = number(events[0], key);
    cpl_json_free(events[0]);
    return n;
}

/* The peak that `plan` gives, and what it says it would be if all trained. */
static double planned(const char *freeze, double *thawed)
{
    char path[700], *text;
    const char *set[] = {freeze};
    cpl_json *root;
    snprintf(path, sizeof path, "%s/config.yaml", top);
    cpl_train_options o = {.config_path = path, .set = set, .set_count = freeze ? 1 : 0};
    assert_int_equal(cpl_plan(&o, 1, &text, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, text, strlen(text), NULL), CPL_OK);
    const cpl_json *all = cpl_json_get(root, "all_trained_peak_bytes");
    const cpl_json *reading = cpl_json_get(cpl_json_get(root, "parts"), "reading");
    double peak = number(root, "peak_bytes") - (reading ? cpl_json_real(reading, 0) : 0);
    *thawed = all ? cpl_json_real(all, 0) : 0;
    cpl_json_free(root);
    cpl_free(text);
    return peak;
}

static void plan_says_what_freezing_saves(void **state)
{
    (void)state;
    double thawed, none;
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8), put_file("config.yaml", config);
    double whole = planned(NULL, &none), less = planned("training.freeze=[encoder]", &thawed);
    assert_true(none == 0 && less < whole);
    if (fabs(thawed - whole) > 0.02 * whole)
        fail_msg("%.0f bytes if all trained, but planning that gives %.0f", thawed, whole);
}

static void case_H03_frozen_under_weight_decay(void **state)
{
    (void)state;
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8), put_file("config.yaml", config);
    run few = {.folder = "few", .set = {"training.max_steps=2", "training.freeze=encoder"}};
    run more = {.folder = "more", .set = {"training.max_steps=8", "training.freeze=[encoder]"}};
    run free_run = {.folder = "free", .set = {"training.max_steps=8"}};
    run pieces = {.folder = "pieces", .set = {"training.max_steps=8", "training.freeze=[encoder]",
                                              "training.clip_norm=0.5"}};
    assert_int_equal(train(&few), CPL_OK);
    assert_int_equal(train(&more), CPL_OK);
    assert_int_equal(train(&free_run), CPL_OK);
    assert_int_equal(train(&pieces), CPL_OK);
    compare("few", "more", "encoder.", 1);
    compare("few", "pieces", "encoder.", 1);
    compare("few", "free", "encoder.", 0);
    compare("few", "more", "decoder.output", 0);
    assert_true(peak_of("more", "trainable_parameters") < peak_of("free", "trainable_parameters"));
    assert_true(peak_of("more", "planned_peak_bytes") < peak_of("free", "planned_peak_bytes"));
    cpl_tensor_file *f = tensors("more", "checkpoint.safetensors");
    int states = 0;
    for (size_t i = 0; i < cpl_tensor_file_count(f); i++) {
        const char *name = cpl_tensor_file_at(f, i)->name;
        states += strncmp(name, "optimizer.", 10) == 0;
        assert_null(strstr(name, "optimizer.m.encoder"));
        assert_null(strstr(name, "optimizer.v.encoder"));
    }
    assert_true(states > 10);
    cpl_tensor_file_close(f);
}

/* Ten steps are five and five more: the state of what trains comes back into its slots. */
static void a_frozen_run_resumes(void **state)
{
    (void)state;
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8), put_file("config.yaml", config);
    run whole = {.folder = "whole", .set = {"training.max_steps=10", "training.freeze=[encoder, decoder.norm]"}};
    run halves = {.folder = "halves", .set = {"training.max_steps=5", "training.freeze=[encoder, decoder.norm]"}};
    assert_int_equal(train(&whole), CPL_OK);
    assert_int_equal(train(&halves), CPL_OK);
    halves.set[0] = "training.max_steps=10";
    halves.resume = 1;
    assert_int_equal(train(&halves), CPL_OK);
    assert_same_tensors("whole", "halves", "checkpoint.safetensors");
    halves.set[1] = "training.freeze=[encoder]";
    assert_int_equal(train(&halves), CPL_USAGE);
    assert_non_null(strstr(halves.error.line[0], "training.freeze"));
}

static void refusals(void **state)
{
    (void)state;
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8), put_file("config.yaml", config);
    run r = {.folder = "refused", .set = {"training.freeze=encodr"}};
    assert_int_equal(train(&r), CPL_USAGE);
    assert_non_null(strstr(r.error.hint, "'encoder'"));
    r.set[0] = "training.freeze=[encoder, decoder]";
    assert_int_equal(train(&r), CPL_USAGE);
    r.set[0] = "training.freeze=[{a: b}]";
    assert_int_equal(train(&r), CPL_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_H03_freeze_after_a_first_fit), cmocka_unit_test(gradients_of_the_rest_are_the_same),
        cmocka_unit_test(nobody_computes_a_gradient_that_nobody_needs), cmocka_unit_test(paths_and_patterns),
        cmocka_unit_test(case_H03_frozen_under_weight_decay),
        cmocka_unit_test(plan_says_what_freezing_saves), cmocka_unit_test(a_frozen_run_resumes),
        cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
