/* Word vectors: which rows they fill, with which numbers, how much is covered, and what is refused. */
#include "data/data_test.h"

#include "data/vectors.h"

enum { WIDTH = 2, ROWS = 16 };

/* Source tokens: sol 4 times, uno twice, Dos, gato and Éta once. */
static const char pairs[] = "uno Dos sol\ta\nsol gato sol\tb\nÉta uno sol\tc\n";

typedef struct trial {
    char pairs_path[512], path[512];
    cpl_config *config;
    cpl_dataset *data;
    real rows[ROWS * WIDTH];
    cpl_str log;
    cpl_error error;
} trial;

/* Reads a file of these bytes into rows that were all 7. */
static cpl_status read_bytes(trial *t, const char *name, const char *bytes, size_t length)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < ROWS * WIDTH; i++)
        t->rows[i] = 7;
    write_file(t->pairs_path, "pairs.tsv", pairs, strlen(pairs));
    write_file(t->path, name, bytes, length);
    const char *const all[] = {"data.valid", t->pairs_path, NULL}; /* nothing is kept apart */
    t->config = config_of(t->pairs_path, all);
    t->data = dataset_of(t->config, NULL);
    cpl_log log = {.sink = keep_message, .user = &t->log};
    cpl_vectors_options o = {.path = t->path, .name = "v.vec", .rows = t->rows, .width = WIDTH,
                             .layer = "encoder.embedding", .width_key = "model.units", .log = &log};
    return cpl_dataset_read_vectors(t->data, &o, &t->error);
}

static cpl_status read_text(trial *t, const char *text)
{
    return read_bytes(t, "v.vec", text, strlen(text));
}

static void finish(trial *t)
{
    cpl_dataset_free(t->data);
    cpl_config_free(t->config);
    cpl_str_free(&t->log);
    remove_file(t->path);
    remove_file(t->pairs_path);
}

static void assert_row(const trial *t, const char *word, float a, float b)
{
    int32_t id = cpl_vocabulary_id(t->data->source, word, strlen(word));
    assert_true(id >= CPL_ID_WORDS);
    assert_true(t->rows[id * WIDTH] == a && t->rows[id * WIDTH + 1] == b);
}

static void reads(const char *text, float uno, float sol)
{
    trial t;
    if (read_text(&t, text) != CPL_OK)
        fail_msg("%s", t.error.line[0]);
    assert_row(&t, "uno", uno, 2);
    assert_row(&t, "sol", sol, -4.5f);
    assert_row(&t, "gato", 7, 7);
    for (int i = 0; i < CPL_ID_WORDS * WIDTH; i++)
        assert_true(t.rows[i] == 7);
    assert_int_equal(t.data->report.source.vectors.exact, 2);
    assert_int_equal(t.data->report.source.vectors.tokens, 6); /* uno 2, sol 4 of 9 */
    assert_string_equal(t.log.data ? t.log.data : "", "");
    finish(&t);
}

static void forms_of_the_file(void **state)
{
    (void)state;
    reads("uno 1 2\nsol 3 -4.5\n", 1, 3);
    reads("uno 1 2\nsol 3 -4.5", 1, 3);                                 /* no last line feed */
    reads("2 2\nuno 1 2\nsol 3 -4.5\n", 1, 3);                          /* header */
    reads("\xEF\xBB\xBF" "2 2\r\nuno 1 2\r\nsol 3 -4.5\r\n\r\n", 1, 3); /* mark, CRLF, blank at the end */
    reads("uno\t1\t2\nsol\t3\t-4.5\n", 1, 3);
    reads("uno 1 2 \nsol 3.0e0 -45E-1 \n", 1, 3);                       /* fastText's last space */
    reads("uno .1 2\nsol +0.30000001 -4.5\n", .1f, 0.30000001f);
    reads("[UNK] 9 9\n[START] 9 9\nuno 1 2\n. . 5 6\na b@c 5 6\nsol 3 -4.5\nd\xC2\xA0" "e 1 1\n", 1, 3);
}

static void reads_a_compressed_file(void **state)
{
    (void)state;
    static const unsigned char gz[] = { /* "uno 1 2\nsol 3 -4.5\n", by gzip -n */
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x2b, 0xcd, 0xcb, 0x57, 0x30, 0x54,
        0x30, 0xe2, 0x2a, 0xce, 0xcf, 0x51, 0x30, 0x56, 0xd0, 0x35, 0xd1, 0x33, 0xe5, 0x02, 0x00, 0x69,
        0x97, 0xdd, 0x59, 0x13, 0x00, 0x00, 0x00,
    };
    trial t;
    cpl_status status = read_bytes(&t, "v.vec.gz", (const char *)gz, sizeof gz);
    if (status == CPL_OK)
        assert_row(&t, "sol", 3, -4.5f);
    else
        assert_holds(t.error.line[0], "this build has no gzip reader");
    finish(&t);
}

/* More lines than a piece of the file has bytes: words stand on both sides of every border. */
static void reads_long_files(void **state)
{
    (void)state;
    cpl_str text = {0};
    trial t;
    for (int i = 0; i < 40000; i++)
        cpl_str_printf(&text, "%s%d %d.5 -1\n", i == 39999 ? "sol" : "w", i, i);
    cpl_str_add(&text, "uno 39999.5 2\n");
    assert_int_equal(read_text(&t, text.data), CPL_OK);
    assert_row(&t, "uno", 39999.5f, 2);
    assert_row(&t, "sol", 7, 7);
    assert_int_equal(t.data->report.source.vectors.vectors, 40001);
    finish(&t);
    cpl_str_free(&text);
}

/* As it is first, wherever that stands; then in lower case; the first of two lines. Accents too, with the tables. */
static void looks_up_lower_case(void **state)
{
    (void)state;
    trial t;
    assert_int_equal(read_text(&t, "dos 1 1\néta 2 2\nsol 3 3\nSOL 4 4\nuno 5 5\nuno 6 6\nUno 6 6\n"), CPL_OK);
    assert_row(&t, "Dos", 1, 1);
    assert_row(&t, "sol", 3, 3);
    assert_row(&t, "uno", 5, 5);
    cpl_str lower = {0};
    assert_int_equal(cpl_lower_text("É", 2, &lower, NULL), CPL_OK);
    int tables = strcmp(lower.data ? lower.data : "", "é") == 0;
    cpl_str_free(&lower);
    assert_row(&t, "Éta", tables ? 2 : 7, tables ? 2 : 7);
    const cpl_vector_report *r = &t.data->report.source.vectors;
    assert_int_equal(r->vectors, 7);
    assert_int_equal(r->exact, 2);
    assert_int_equal(r->lower, 1 + tables);
    assert_int_equal(r->repeated, 1);
    assert_int_equal(r->tokens, 7 + tables); /* sol 4, uno 2, Dos 1, Éta 1 of 9 */
    assert_string_equal(t.log.data, "'v.vec' has 1 lines with a token that it had before: the first counts\n");
    cpl_str text = {0};
    cpl_dataset_describe(t.data, &text);
    assert_holds(text.data, tables ? "source vectors: 4 of 5 words (80.0 %), 2 of them in lower case, 88.9 % of the "
                                     "tokens, from 'v.vec'\n"
                                   : "source vectors: 3 of 5 words (60.0 %), 1 of them in lower case, 77.8 % of the "
                                     "tokens, from 'v.vec'\n");
    cpl_str_free(&text);
    finish(&t);
    assert_int_equal(read_text(&t, "dos 1 1\nDos 2 2\ndos 3 3\n"), CPL_OK);
    assert_row(&t, "Dos", 2, 2);
    assert_holds(t.log.data, "only 11.1 % of the tokens of the source have a vector in 'v.vec'");
    finish(&t);
    assert_int_equal(read_text(&t, "5 2\nuno 1 2\nsol 3 4\n"), CPL_OK);
    assert_string_equal(t.log.data, "'v.vec' has 2 vectors, but its first line says 5\n");
    finish(&t);
}

static void refuses(const char *bytes, size_t length, const char *cause, const char *hint)
{
    trial t;
    assert_int_equal(read_bytes(&t, "v.vec", bytes, length), CPL_USAGE);
    assert_string_equal(t.error.line[0], cause);
    assert_holds(t.error.hint, hint);
    assert_null(t.data->report.source.vectors.from);
    finish(&t);
}

#define REFUSES(text, cause, hint) refuses(text, sizeof text - 1, cause, hint)

static void refuses_what_is_wrong(void **state)
{
    (void)state;
    static const char width[] = "'v.vec' has vectors of 3 numbers, but encoder.embedding has 2 (model.units)";
    REFUSES("9 3\nuno 1 2 3\n", width, "set model.embedding to 3, or take vectors of 2 numbers");
    REFUSES("uno 1 2 3\n", width, "set model.embedding to 3");
    REFUSES("x 1 2\nuno 1\n", "'v.vec' line 2 has 1 number, expected 2", "");
    REFUSES("x 1 2\ny 1 2\nuno 1 2 3\n", "'v.vec' line 3 has 3 numbers, expected 2", "");
    REFUSES("x 1 2\n1 2\n", "'v.vec' line 2 has 1 number, expected 2", "");
    REFUSES("x 1 2\n\nuno 1 2\n", "'v.vec' line 2 is blank, expected a token and 2 numbers", "");
    REFUSES("x 1 2\n 1 2\n", "'v.vec' line 2 begins with a space: it has no token", "");
    REFUSES("x 1 nan\n", "'v.vec' line 1: number 2 is 'nan', expected a finite decimal number", "");
    REFUSES("x -inf 2\n", "'v.vec' line 1: number 1 is '-inf', expected a finite decimal number", "");
    REFUSES("x 1 0x2\n", "'v.vec' line 1: number 2 is '0x2', expected a finite decimal number", "");
    REFUSES("x 1 1,5\n", "'v.vec' line 1: number 2 is '1,5', expected a finite decimal number", "");
    REFUSES("uno 1 1e39\n", "'v.vec' line 1: number 2 is '1e39', too large for 32 bits", "");
    REFUSES("3 2\nuno \0\0\n", "'v.vec' line 2 is not text: a NUL byte is in it", "text files");
    REFUSES("\xFF\xFEu\0n\0", "'v.vec' is UTF-16, expected UTF-8", "iconv");
    REFUSES("", "'v.vec' holds no vectors", "");
    REFUSES("5 2\n", "'v.vec' holds no vectors", "");
}

static void refuses_endless_lines(void **state)
{
    (void)state;
    size_t length = (size_t)17 << 20;
    char *bytes = cpl_alloc(length, 1);
    assert_non_null(bytes);
    memset(bytes, 'a', length);
    refuses(bytes, length, "'v.vec' line 1 has over 16777216 bytes, expected a token and 2 numbers", "");
    cpl_release(bytes);
}

/* With one number a vector, line 1 may be a word that is a number. */
static void headers_of_one_number(void **state)
{
    (void)state;
    static const char *const texts[] = {"12 1\nuno 5\n", "12 3\nuno 5\n"};
    for (int i = 0; i < 2; i++) {
        trial t;
        (void)read_text(&t, "uno 1 2\n");
        remove_file(t.path);
        write_file(t.path, "one.vec", texts[i], strlen(texts[i]));
        cpl_vectors_options o = {.path = t.path, .name = "v.vec", .rows = t.rows, .width = 1, .layer = "",
                                 .width_key = ""};
        assert_int_equal(cpl_dataset_read_vectors(t.data, &o, &t.error), CPL_OK);
        assert_true(t.rows[cpl_vocabulary_id(t.data->source, "uno", 3)] == 5);
        assert_int_equal(t.data->report.source.vectors.vectors, 1 + i);
        finish(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_the_file),     cmocka_unit_test(reads_a_compressed_file),
        cmocka_unit_test(reads_long_files),      cmocka_unit_test(looks_up_lower_case),
        cmocka_unit_test(refuses_what_is_wrong), cmocka_unit_test(refuses_endless_lines),
        cmocka_unit_test(headers_of_one_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
