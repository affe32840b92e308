/* test_encode.c: the encoder's vectors of lines (case H04): the same from the part alone; pooled over real tokens. */
#include "train/train_test.h"

#include <math.h>

static const char config[] = "model: {type: autoencoder, units: 5}\n"
                             "data: {train: train.tsv, valid: valid.tsv}\n"
                             "training: {batch_size: 4, show_examples: 0, threads: 1, max_steps: 3}\n";

/* The JSON lines for three lines, one of them blank. */
static char *encode(const char *model, cpl_pool_kind pool)
{
    char input[700], path[700], *text = NULL;
    size_t size;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s", top, model);
    snprintf(input, sizeof input, "%s/lines", top);
    put_file("lines", "uno dos casa\n\nsol\n");
    FILE *out = open_memstream(&text, &size);
    cpl_status status = cpl_encode_lines(path, &(cpl_encode_options){.input = input, .pool = pool}, out, &err);
    if (status != CPL_OK)
        cpl_error_print(&err, stderr);
    assert_int_equal(status, CPL_OK);
    fclose(out);
    return text;
}

static cpl_json *line_of(const char *text, int line)
{
    cpl_json *root;
    for (; line > 0; line--)
        text = strchr(text, '\n') + 1;
    assert_int_equal(cpl_json_parse(&root, text, strcspn(text, "\n"), NULL), CPL_OK);
    return root;
}

static void case_H04_the_part_encodes_as_the_whole(void **state)
{
    (void)state;
    char whole[700], part[700];
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8), put_file("config.yaml", config);
    run r = {.folder = "ae", .set = {NULL}};
    assert_int_equal(train(&r), CPL_OK);
    snprintf(whole, sizeof whole, "%s/ae", top);
    snprintf(part, sizeof part, "%s/part", top);
    assert_int_equal(cpl_extract(whole, "encoder", part, NULL), CPL_OK);
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

/* Magic word, a header padded to 64 bytes, then the numbers. */
static void numpy_reads_the_file(void **state)
{
    (void)state;
    char path[700], *data;
    size_t length;
    const float x[] = {1, 2, 3, 4, 5, 6};
    const int64_t shape[] = {3, 2};
    snprintf(path, sizeof path, "%s/x.npy", top);
    assert_int_equal(cpl_npy_write(path, "<f4", shape, 2, x, NULL), CPL_OK);
    assert_int_equal(cpl_file_read(path, &data, &length, NULL), CPL_OK);
    assert_memory_equal(data, "\x93NUMPY\x01\x00", 8);
    size_t head = (size_t)(unsigned char)data[8] + 256 * (size_t)(unsigned char)data[9];
    assert_int_equal((10 + head) % 64, 0);
    assert_int_equal(length, 10 + head + sizeof x);
    assert_non_null(strstr(data + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, ), }"));
    assert_int_equal(data[9 + head], '\n');
    assert_memory_equal(data + 10 + head, x, sizeof x);
    cpl_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(case_H04_the_part_encodes_as_the_whole),
                                       cmocka_unit_test(numpy_reads_the_file)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
