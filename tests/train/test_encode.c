/* test_encode.c: the encoder's vectors of lines (case H04): the same from the part alone; pooled over real tokens. */
#include "train/train_test.h"

#include <math.h>
#include <sys/wait.h>

static const char config[] = "model: {type: autoencoder, units: 5}\n"
                             "data: {train: train.tsv, valid: valid.tsv}\n"
                             "training: {batch_size: 4, show_examples: 0, threads: 1, max_steps: 3}\n";

/* What is written for the lines of top/lines; options: without an input. */
static char *encode_with(const char *model, cpl_encode_options options)
{
    char input[700], path[700], *text = NULL;
    size_t size;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s", top, model);
    snprintf(input, sizeof input, "%s/lines", top);
    options.input = input;
    FILE *out = open_memstream(&text, &size);
    cpl_status status = cpl_encode_lines(path, &options, out, &err);
    if (status != CPL_OK)
        cpl_error_print(&err, stderr);
    assert_int_equal(status, CPL_OK);
    fclose(out);
    return text;
}

/* The JSON lines for three lines, one of them blank. */
static char *encode(const char *model, cpl_pool_kind pool)
{
    put_file("lines", "uno dos casa\n\nsol\n");
    return encode_with(model, (cpl_encode_options){.pool = pool});
}

static cpl_json *line_of(const char *text, int line)
{
    cpl_json *root;
    for (; line > 0; line--)
        text = strchr(text, '\n') + 1;
    assert_int_equal(cpl_json_parse(&root, text, strcspn(text, "\n"), NULL), CPL_OK);
    return root;
}

/* top/ae: the folder of a run; top/part: its encoder alone. */
static int make_models(void **state)
{
    char whole[700], part[700];
    if (make_top(state) != 0)
        return -1;
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8), put_file("config.yaml", config);
    run r = {.folder = "ae", .set = {NULL}};
    snprintf(whole, sizeof whole, "%s/ae", top);
    snprintf(part, sizeof part, "%s/part", top);
    return train(&r) == CPL_OK && cpl_extract(whole, "encoder", part, NULL) == CPL_OK ? 0 : -1;
}

static void case_H04_the_part_encodes_as_the_whole(void **state)
{
    (void)state;
    for (int pool = CPL_POOL_MEAN; pool <= CPL_POOL_MAX; pool++) {
        char *a = encode("ae", (cpl_pool_kind)pool), *b = encode("part", (cpl_pool_kind)pool);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    char *mean = encode("part", CPL_POOL_MEAN), *most = encode("part", CPL_POOL_MAX);
    char *all = encode("part", CPL_POOL_NONE);
    cpl_json *m = line_of(mean, 0), *x = line_of(most, 0), *n = line_of(all, 0), *blank = line_of(all, 1);
    const cpl_json *rows = cpl_json_get(n, "vectors");
    assert_int_equal(cpl_json_size(rows), 3);
    assert_int_equal(cpl_json_size(cpl_json_get(blank, "vectors")), 0);
    for (size_t k = 0; k < 5; k++) {
        double sum = 0, top_value = -1e9;
        for (size_t i = 0; i < 3; i++) {
            double v = cpl_json_real(cpl_json_at(cpl_json_at(rows, i), k), 1e9);
            sum += v;
            top_value = fmax(top_value, v);
        }
        assert_true(fabs(cpl_json_real(cpl_json_at(cpl_json_get(m, "vector"), k), 1e9) - sum / 3) < 1e-6);
        assert_true(fabs(cpl_json_real(cpl_json_at(cpl_json_get(x, "vector"), k), 1e9) - top_value) < 1e-6);
    }
    cpl_json_free(m), cpl_json_free(x), cpl_json_free(n), cpl_json_free(blank);
    free(mean), free(most), free(all);
}

/* ---- batches ---- */

/* Lines of 0 to 6 words in no order of length, blank and unknown ones among them. */
static void put_lines(int lines)
{
    static const char *const words[] = {"uno", "dos", "tres", "casa", "perro", "nadie", "agua", "sol"};
    cpl_str text = {0};
    for (int i = 0; i < lines; i++) {
        for (int k = 0; k < i * 5 % 7; k++)
            cpl_str_printf(&text, "%s%s", k ? " " : "", words[(i * 3 + k * k) % 8]);
        cpl_str_add(&text, i % 11 == 3 ? "   \n" : "\n");
    }
    put_file("lines", text.data);
    cpl_str_free(&text);
}

static void read_top(const char *name, char **data, size_t *length)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", top, name);
    assert_int_equal(cpl_file_read(path, data, length, NULL), CPL_OK);
}

static void expect_same_file(const char *name, const char *other)
{
    char *a, *b;
    size_t n, m;
    read_top(name, &a, &n);
    read_top(other, &b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    cpl_release(a);
    cpl_release(b);
}

static void a_line_gives_the_same_bits_in_every_batch(void **state)
{
    static const int64_t batch[] = {1, 7, 0, 64};
    (void)state;
    char one[700], now[700];
    put_lines(150);
    snprintf(one, sizeof one, "%s/one.npy", top);
    snprintf(now, sizeof now, "%s/now.npy", top);
    for (int pool = CPL_POOL_MEAN; pool <= CPL_POOL_MAX; pool++) {
        cpl_encode_options o = {.pool = (cpl_pool_kind)pool, .threads = 1, .batch_size = 1};
        char *expected = encode_with("ae", o);
        o.output = one;
        free(encode_with("ae", o));
        for (int i = 0; i < 8; i++) {
            o.threads = 1 + i % 2, o.batch_size = batch[i / 2], o.output = NULL;
            char *text = encode_with("ae", o);
            assert_string_equal(text, expected);
            free(text);
            o.output = now;
            free(encode_with("ae", o));
            expect_same_file("now.npy", "one.npy");
            if (pool == CPL_POOL_NONE)
                expect_same_file("now.lengths.npy", "one.lengths.npy");
        }
        free(expected);
    }
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_encode_lines(top, &(cpl_encode_options){.batch_size = -1}, stdout, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "batch-size is -1"));
}

/* The other side sends its next line when it has the answer to the one before. */
static void no_answer_waits_for_more_input(void **state)
{
    static const char *const lines[] = {"uno dos\n", "\n", "casa sol sol\n"};
    (void)state;
    int to[2], from[2], code = 0;
    char path[700], input[40], line[4096];
    snprintf(path, sizeof path, "%s/ae", top);
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    snprintf(input, sizeof input, "/dev/fd/%d", to[0]);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(to[1]);
        close(from[0]);
        alarm(60); /* a test that hangs must end */
        FILE *out = fdopen(from[1], "w");
        _exit(cpl_encode_lines(path, &(cpl_encode_options){.input = input, .threads = 1}, out, NULL) != CPL_OK);
    }
    close(from[1]);
    FILE *answers = fdopen(from[0], "r");
    alarm(60);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(write(to[1], lines[i], strlen(lines[i])), strlen(lines[i]));
        assert_non_null(fgets(line, sizeof line, answers)); /* waits for ever if the answer is held back */
        assert_int_equal(strncmp(line, "{\"vector\": [", 12), 0);
    }
    close(to[1]);
    close(to[0]);
    assert_null(fgets(line, sizeof line, answers));
    alarm(0);
    fclose(answers);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
}

/* ---- one text ---- */

/* The rows of one text after those of another: what the model did before leaves no trace. */
static void expect_rows(cpl_model *m, const char *text, cpl_pool_kind pool, const char *json)
{
    cpl_error err = CPL_ERROR_INIT;
    float *x;
    int64_t shape[2];
    cpl_json *root = line_of(json, 0);
    const cpl_json *list = cpl_json_get(root, pool == CPL_POOL_NONE ? "vectors" : "vector");
    cpl_status status = cpl_encode(&x, shape, m, text, pool, &err);
    if (status != CPL_OK)
        cpl_error_print(&err, stderr);
    assert_int_equal(status, CPL_OK);
    assert_int_equal(shape[0], pool == CPL_POOL_NONE ? (int64_t)cpl_json_size(list) : 1);
    assert_int_equal(shape[1], 5);
    for (int64_t i = 0; i < shape[0]; i++)
        for (int64_t k = 0; k < 5; k++) {
            const cpl_json *row = pool == CPL_POOL_NONE ? cpl_json_at(list, (size_t)i) : list;
            assert_true(x[i * 5 + k] == (float)cpl_json_real(cpl_json_at(row, (size_t)k), 1e9)); /* 9 digits: exact */
        }
    cpl_free(x);
    cpl_json_free(root);
}

static void one_text_encodes_as_a_stream_does(void **state)
{
    static const char *const models[] = {"ae", "part"}, *const texts[] = {"uno dos casa", "", "sol"};
    (void)state;
    char path[700];
    cpl_model *m;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", top, models[i]);
        assert_int_equal(cpl_model_open(&m, path, 1, NULL), CPL_OK);
        for (int pool = CPL_POOL_MEAN; pool <= CPL_POOL_MAX; pool++) {
            char *json = encode("ae", (cpl_pool_kind)pool), *line = json;
            for (int k = 0; k < 3; k++, line = strchr(line, '\n') + 1)
                expect_rows(m, texts[k], (cpl_pool_kind)pool, line);
            free(json);
        }
        cpl_model_close(m);
    }
}

static void an_encoder_alone_does_nothing_else(void **state)
{
    (void)state;
    char path[700], *text;
    float *x;
    int64_t shape[2];
    cpl_model *m;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s/part", top);
    assert_int_equal(cpl_model_open(&m, path, 1, &err), CPL_OK);
    assert_int_equal(cpl_generate(&text, m, "uno", NULL, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "part' holds only 'encoder' of a model"));
    assert_null(text);
    assert_int_equal(cpl_generate_lines(m, stdin, stdout, NULL, NULL, NULL, &err), CPL_USAGE);
    assert_int_equal(cpl_evaluate(m, &(cpl_evaluate_options){.pairs = "x"}, &text, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "holds only 'encoder'"));
    assert_int_equal(cpl_score_pairs(m, &(cpl_score_options){.pairs = "x"}, stdout, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "holds only 'encoder'"));
    assert_int_equal(cpl_encode(&x, shape, m, "uno \xff", CPL_POOL_MEAN, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "byte 5 of the text is not UTF-8"));
    assert_null(x);
    assert_int_equal(cpl_encode(&x, shape, m, "uno", (cpl_pool_kind)9, &err), CPL_USAGE);
    assert_null(x);
    cpl_model_close(m);
    assert_int_equal(cpl_inspect(path, 0, &text, &err), CPL_OK);
    assert_non_null(strstr(text, "autoencoder, its part 'encoder', written by"));
    assert_non_null(strstr(text, "encoder.embedding.kernel"));
    assert_null(strstr(text, "projection"));
    cpl_free(text);
}

static void a_bottleneck_has_one_vector_and_none_for_tokens(void **state)
{
    (void)state;
    char path[700];
    float *x, *y;
    int64_t shape[2];
    cpl_model *m;
    cpl_error err = CPL_ERROR_INIT;
    run r = {.folder = "narrow", .set = {"model.bottleneck=3", NULL}};
    assert_int_equal(train(&r), CPL_OK);
    snprintf(path, sizeof path, "%s/narrow", top);
    assert_int_equal(cpl_model_open(&m, path, 1, &err), CPL_OK);
    assert_int_equal(cpl_encode(&x, shape, m, "uno dos", CPL_POOL_MEAN, &err), CPL_OK);
    assert_int_equal(shape[0], 1);
    assert_int_equal(shape[1], 3);
    assert_int_equal(cpl_encode(&y, shape, m, "uno dos", CPL_POOL_LAST, &err), CPL_OK);
    assert_memory_equal(x, y, 3 * sizeof *x);
    cpl_free(x);
    cpl_free(y);
    assert_int_equal(cpl_encode(&x, shape, m, "uno dos", CPL_POOL_NONE, &err), CPL_USAGE);
    assert_null(x);
    cpl_model_close(m);
}

/* ---- files ---- */

/* Magic word, a header padded to 64 bytes, then the numbers. */
static void numpy_reads_the_file(void **state)
{
    (void)state;
    char path[700], *data;
    size_t length;
    const float x[] = {1, 2, 3, 4, 5, 6};
    const int64_t lengths[] = {7, 8};
    cpl_npy *npy;
    snprintf(path, sizeof path, "%s/x.npy", top);
    assert_int_equal(cpl_npy_open(&npy, path, "<f4", 2, NULL), CPL_OK);
    assert_int_equal(cpl_npy_add(npy, x, 1, NULL), CPL_OK);
    assert_int_equal(cpl_npy_add(npy, x, 0, NULL), CPL_OK);
    assert_int_equal(cpl_npy_add(npy, x + 2, 2, NULL), CPL_OK);
    assert_int_equal(access(path, F_OK), -1); /* not before it is complete */
    assert_int_equal(cpl_npy_commit(npy, NULL), CPL_OK);
    read_top("x.npy", &data, &length);
    assert_memory_equal(data, "\x93NUMPY\x01\x00", 8);
    size_t head = (size_t)(unsigned char)data[8] + 256 * (size_t)(unsigned char)data[9];
    assert_int_equal((10 + head) % 64, 0);
    assert_int_equal(length, 10 + head + sizeof x);
    assert_non_null(strstr(data + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, ), }"));
    assert_int_equal(data[9 + head], '\n');
    assert_memory_equal(data + 10 + head, x, sizeof x);
    cpl_release(data);
    assert_int_equal(cpl_npy_open(&npy, path, "<i8", 0, NULL), CPL_OK);
    assert_int_equal(cpl_npy_add(npy, lengths, 2, NULL), CPL_OK);
    assert_int_equal(cpl_npy_commit(npy, NULL), CPL_OK);
    read_top("x.npy", &data, &length);
    assert_non_null(strstr(data + 10, "{'descr': '<i8', 'fortran_order': False, 'shape': (2, ), }"));
    assert_memory_equal(data + length - sizeof lengths, lengths, sizeof lengths);
    cpl_release(data);
}

/* What cannot be gone back in gets the same bytes. */
static void a_pipe_gets_the_file_too(void **state)
{
    (void)state;
    int ends[2];
    char name[40], *data, through[4096];
    size_t length;
    const float x[] = {1, 2, 3, 4};
    cpl_npy *npy;
    assert_int_equal(pipe(ends), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    for (int i = 0; i < 2; i++) {
        char path[700];
        snprintf(path, sizeof path, "%s/y.npy", top);
        assert_int_equal(cpl_npy_open(&npy, i ? name : path, "<f4", 2, NULL), CPL_OK);
        assert_int_equal(cpl_npy_add(npy, x, 2, NULL), CPL_OK);
        assert_int_equal(cpl_npy_commit(npy, NULL), CPL_OK);
    }
    read_top("y.npy", &data, &length);
    assert_int_equal(read(ends[0], through, sizeof through), length);
    assert_memory_equal(through, data, length);
    cpl_release(data);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(case_H04_the_part_encodes_as_the_whole),
                                       cmocka_unit_test(a_line_gives_the_same_bits_in_every_batch),
                                       cmocka_unit_test(no_answer_waits_for_more_input),
                                       cmocka_unit_test(one_text_encodes_as_a_stream_does),
                                       cmocka_unit_test(an_encoder_alone_does_nothing_else),
                                       cmocka_unit_test(a_bottleneck_has_one_vector_and_none_for_tokens),
                                       cmocka_unit_test(numpy_reads_the_file),
                                       cmocka_unit_test(a_pipe_gets_the_file_too)};
    return cmocka_run_group_tests(tests, make_models, remove_top);
}
