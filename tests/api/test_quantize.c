/* Weights in a lower type: models that answer nearly as before, whatever the batch and the threads; their files; and
 * how little memory they take. */
#include "api/run_text.h"

#include <math.h>
#include "api/model.h"

static const char TEXT[] = "a b c\n\nd e f g h\nz y\na b c\nq r s t u v w\n";
static const char PAIRS[] = "a b c\td e f\nz y\tq\nq r s t u v w\ta a b b\nh\ti j k l m n o p\n";

static const char *const models[][3] = {
    {"model.decoder.attention.heads=2", "model.decoder.cell=gru", "model.encoder.cell=lstm"},
    {"model.decoder.attention.position=before", "model.decoder.attention.score=additive",
     "model.encoder.cell=gru_reset_before"},
    {"model.copy=true", "model.decoder.attention.heads=1", "model.decoder.cell=lstm"},
    {"model.decoder.attention.score=none", "model.decoder.initial_state=bridge", "model.decoder.layers=2"},
    {"model.decoder.attention.score=general", "model.decoder.cell=gru_reset_before", "model.encoder.layers=2"},
    {"model.tie=target", "model.decoder.cell=gru", "model.encoder.direction=forward"},
    {"model.tie=all", "model.decoder.cell=lstm", "model.decoder.attention.score=dot"},
    {"model.tie=target", "model.copy=true", "model.decoder.attention.heads=1"}};
enum { MODELS = sizeof models / sizeof *models };

/* As `lively`, but milder: words that differ without saturating the gates. */
static void mild(cpl_parameters *p)
{
    int64_t n;
    for (size_t i = 0; i < cpl_parameters_count(p); i++)
        for (int64_t k = 0; strstr(cpl_parameters_at(p, i)->path, "embedding") && k < cpl_parameters_at(p, i)->elements;
             k++)
            cpl_parameters_value(p, i)[k] *= 15;
    values_of(p, "decoder.output.bias", &n)[CPL_ID_END] = 1;
}

static void quantize(const place *p, const char *type, char path[300])
{
    char *text;
    cpl_error err = CPL_ERROR_INIT;
    place_file(p, type, path);
    must(cpl_quantize(p->model, type, path, &text, &err), &err);
    assert_non_null(strstr(text, type));
    cpl_release(text);
}

static cpl_model *open_path(const char *path, int threads)
{
    cpl_model *m;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_model_open(&m, path, threads, &err), &err);
    return m;
}

/* The log-probability of each pair. */
static void score(const place *p, cpl_model *m, double log_probability[4])
{
    char pairs[300], result[300], line[200];
    cpl_error err = CPL_ERROR_INIT;
    FILE *to = fopen(place_file(p, "scores.txt", result), "w+");
    assert_non_null(to);
    place_write(p, "pairs.tsv", PAIRS);
    must(cpl_score_pairs(m, &(cpl_score_options){.pairs = place_file(p, "pairs.tsv", pairs)}, to, &err), &err);
    rewind(to);
    for (int i = 0; i < 4; i++) {
        assert_non_null(fgets(line, sizeof line, to));
        log_probability[i] = strtod(line, NULL);
    }
    fclose(to);
}

/* The loss of the same pairs, whose graph has the projection inside an op of its own. */
static double loss_of(const place *p, cpl_model *m)
{
    char pairs[300], *text;
    cpl_error err = CPL_ERROR_INIT;
    cpl_evaluate_options o = {.pairs = place_file(p, "pairs.tsv", pairs), .metrics = "loss"};
    must(cpl_evaluate(m, &o, &text, &err), &err);
    assert_int_equal(strncmp(text, "loss ", 5), 0);
    double loss = strtod(text + 5, NULL);
    cpl_release(text);
    return loss;
}

/* Half a step of 1/127 of the largest is 0.4 % of it, of bfloat16 0.2 % of each number. Errors of the terms of a
 * product go both ways, so a token's log-probability moves by a few thousandths, not by the sum of all; a target has 9
 * tokens at most. Equal numbers would mean that the floats were used. */
static void nearly_the_same_scores(void **state)
{
    static const char *const types[] = {"int8", "bfloat16"};
    static const double moved[] = {0.15, 0.05};
    (void)state;
    for (int k = 0; k < MODELS; k++) {
        place p;
        double before[4], after[4], sum = 0;
        place_make(&p);
        model_write(&p, mild, models[k], 3);
        cpl_model *m = model_open(&p);
        score(&p, m, before);
        double loss = loss_of(&p, m);
        for (int t = 0; t < 2; t++) {
            char path[300];
            quantize(&p, types[t], path);
            cpl_model *q = open_path(path, 1);
            score(&p, q, after);
            for (int i = 0; i < 4; i++) {
                if (!(fabs(after[i] - before[i]) <= moved[t]))
                    fail_msg("model %d, %s: pair %d has %.6g, before %.6g", k, types[t], i, after[i], before[i]);
                sum += fabs(after[i] - before[i]);
            }
            assert_true(sum > 1e-5);
            if (!(fabs(loss_of(&p, q) - loss) <= moved[t] / 4 && loss > 1))
                fail_msg("model %d, %s: the loss is %.6g, before %.6g", k, types[t], loss_of(&p, q), loss);
            cpl_model_close(q);
        }
        cpl_model_close(m);
        place_remove(&p);
    }
}

static const char *const force[] = {"q"};
static const cpl_generate_options kinds[] = {
    {.json = 1}, {.beam = 4, .json = 1}, {.temperature = 1, .json = 1},
    {.beam = 3, .force = force, .force_count = 1, .json = 1}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Also: a short list of everything is the whole list, bit by bit. */
static void same_bits_for_any_batch_threads_and_list(void **state)
{
    (void)state;
    for (int k = 0; k < 2 * MODELS; k++) {
        place p;
        char path[300];
        place_make(&p);
        model_write(&p, lively, models[k / 2], 3);
        quantize(&p, k % 2 ? "bfloat16" : "int8", path);
        cpl_model *one = open_path(path, 1), *three = open_path(path, 3);
        for (int i = 0; i < KINDS; i++) {
            cpl_generate_options o = kinds[i];
            char *expected = run(&p, one, TEXT, &o), *got;
            o.batch_size = 1;
            got = run(&p, three, TEXT, &o);
            assert_string_equal(got, expected);
            cpl_release(got);
            o.batch_size = 3, o.shortlist = i % 2 ? WORDS : 1e9;
            got = run(&p, one, TEXT, &o);
            assert_string_equal(got, expected);
            cpl_release(got);
            cpl_release(expected);
        }
        cpl_model_close(one);
        cpl_model_close(three);
        place_remove(&p);
    }
}

/* Entries that are gathered from packed weights are the columns themselves. */
static void short_lists_gather_columns(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        place p;
        char path[300], lexicon[300];
        cpl_str text = {0};
        place_make(&p);
        for (const char *from = ALPHABET; *from; from++)
            for (const char *to = ALPHABET; *to; to++)
                cpl_str_printf(&text, "%c\t%c\n", *from, *to);
        place_write(&p, "full.tsv", text.data);
        cpl_str_free(&text);
        model_write(&p, lively, models[k / 2 ? 5 : 0], 3);
        quantize(&p, k % 2 ? "bfloat16" : "int8", path);
        cpl_model *m = open_path(path, 1);
        cpl_generate_options o = {.json = 1};
        char *whole = run(&p, m, TEXT, &o), *list;
        o.shortlist = 1, o.lexicon = place_file(&p, "full.tsv", lexicon);
        list = run(&p, m, TEXT, &o);
        assert_string_equal(list, whole);
        cpl_release(whole);
        cpl_release(list);
        cpl_model_close(m);
        place_remove(&p);
    }
}

/* No float of a matrix is there: what is left are biases and norms. */
static void floats_are_gone(void **state)
{
    (void)state;
    place p;
    char path[300];
    place_make(&p);
    model_write(&p, lively, (const char *const[]){"model.units=64"}, 1);
    quantize(&p, "int8", path);
    cpl_model *m = model_open(&p), *q = open_path(path, 1);
    size_t floats = cpl_parameters_bytes(q->engine->parameters);
    assert_true(floats * 20 < (size_t)cpl_parameters_elements(m->engine->parameters) * sizeof(float));
    for (size_t i = 0; i < cpl_parameters_count(q->engine->parameters); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(q->engine->parameters, i);
        int matrix = strstr(info->path, "kernel") != NULL;
        if (matrix != (info->packed != NULL))
            fail_msg("'%s' is %s", info->path, matrix ? "float32" : "not float32");
        assert_true(matrix == (cpl_parameters_value(q->engine->parameters, i) == NULL));
    }
    cpl_model_close(m);
    cpl_model_close(q);
    place_remove(&p);
}

/* By hand, from the file: bytes times scales, broadcast, are the weights to half a step. */
static void what_the_file_holds(void **state)
{
    (void)state;
    place p;
    char path[300];
    cpl_tensor_file *before, *after;
    cpl_error err = CPL_ERROR_INIT;
    static const struct { const char *name, *scale; int rows; } tensors[] = {
        {"decoder.output.kernel", "decoder.output.kernel.scale", 0},
        {"encoder.embedding.kernel", "encoder.embedding.kernel.scale", 1}};
    place_make(&p);
    model_write(&p, mild, models[0], 3);
    quantize(&p, "int8", path);
    must(cpl_tensor_file_open(&before, p.model, &err), &err);
    must(cpl_tensor_file_open(&after, path, &err), &err);
    assert_string_equal(cpl_tensor_file_metadata(after, "format_version", NULL), "2");
    assert_string_equal(cpl_tensor_file_metadata(after, "weights", NULL), "int8");
    for (int k = 0; k < 2; k++) {
        const cpl_tensor_entry *w = cpl_tensor_file_find(before, tensors[k].name);
        const cpl_tensor_entry *q = cpl_tensor_file_find(after, tensors[k].name);
        const cpl_tensor_entry *s = cpl_tensor_file_find(after, tensors[k].scale);
        assert_true(w && q && s && q->dtype == CPL_DTYPE_I8 && s->dtype == CPL_DTYPE_F32);
        assert_true(s->shape[0] == (tensors[k].rows ? w->shape[0] : 1));
        assert_true(s->shape[1] == (tensors[k].rows ? 1 : w->shape[1]));
        for (int64_t i = 0; i < w->shape[0]; i++)
            for (int64_t j = 0; j < w->shape[1]; j++) {
                int64_t at = i * w->shape[1] + j;
                double scale = (double)((const float *)s->data)[tensors[k].rows ? i : j];
                double x = (double)((const float *)w->data)[at], y = scale * ((const int8_t *)q->data)[at];
                assert_true(fabs(x - y) <= scale * 0.5001);
            }
    }
    const cpl_tensor_entry *bias = cpl_tensor_file_find(after, "decoder.output.bias");
    assert_int_equal(bias->dtype, CPL_DTYPE_F32);
    assert_memory_equal(bias->data, cpl_tensor_file_find(before, "decoder.output.bias")->data,
                        cpl_tensor_elements(bias) * 4);
    cpl_tensor_file_close(before);
    cpl_tensor_file_close(after);
    place_remove(&p);
}

/* Floats and bytes side by side, and with themselves. */
static void ensembles(void **state)
{
    (void)state;
    place p;
    char path[300];
    cpl_model *mixed, *q;
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, models[0], 3);
    quantize(&p, "int8", path);
    must(cpl_model_open_ensemble(&mixed, (const char *[]){p.model, path}, 2, 1, &err), &err);
    char *text = run(&p, mixed, TEXT, &(cpl_generate_options){.beam = 3, .tokens = 1});
    int lines = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 6);
    cpl_release(text);
    cpl_model_close(mixed);
    q = open_path(path, 1);
    must(cpl_model_open_ensemble(&mixed, (const char *[]){path, path}, 2, 1, &err), &err);
    char *alone = run(&p, q, TEXT, &(cpl_generate_options){.tokens = 1});
    text = run(&p, mixed, TEXT, &(cpl_generate_options){.tokens = 1});
    assert_string_equal(text, alone);
    cpl_release(text);
    cpl_release(alone);
    cpl_model_close(q);
    cpl_model_close(mixed);
    place_remove(&p);
}

static void a_nan(cpl_parameters *p)
{
    int64_t n;
    values_of(p, "decoder.output.kernel", &n)[7] = NAN;
}

static void what_is_refused(void **state)
{
    (void)state;
    place p;
    char path[300], *text;
    place_make(&p);
    cpl_error err = CPL_ERROR_INIT;
    model_write(&p, a_nan, NULL, 0);
    assert_int_equal(cpl_quantize(p.model, NULL, place_file(&p, "q", path), &text, &err), CPL_FAILED);
    assert_true(says(&err, "element 7 of 'decoder.output.kernel' is nan"));
    assert_null(text);
    model_write(&p, lively, NULL, 0);
    err = (cpl_error)CPL_ERROR_INIT;
    assert_int_equal(cpl_quantize(p.model, "int4", path, &text, &err), CPL_USAGE);
    assert_true(says(&err, "expected int8 or bfloat16"));
    assert_int_equal(access(path, F_OK), -1);
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearly_the_same_scores),
        cmocka_unit_test(same_bits_for_any_batch_threads_and_list),
        cmocka_unit_test(short_lists_gather_columns),
        cmocka_unit_test(floats_are_gone),
        cmocka_unit_test(what_the_file_holds),
        cmocka_unit_test(ensembles),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
