/* Lines of a stream: what is there comes at once, what is not is not waited for, anything may be inside. */
#include "data_test.h"
#include "data/scan.h"

static void put(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* The next lines with '|' after each. The caller frees. */
static char *next(cpl_lines *l, size_t most)
{
    const cpl_line *lines;
    size_t n;
    cpl_str s = {0};
    assert_int_equal(cpl_lines_read(l, most, &lines, &n, NULL), CPL_OK);
    cpl_str_add(&s, "");
    for (size_t i = 0; i < n; i++) {
        cpl_str_add_bytes(&s, lines[i].text, lines[i].length);
        cpl_str_add_char(&s, '|');
    }
    return s.data ? cpl_str_take(&s) : cpl_strdup("");
}

static void assert_next(cpl_lines *l, size_t most, const char *expected)
{
    char *got = next(l, most);
    assert_string_equal(got, expected);
    cpl_release(got);
}

/* If a call waited for more than is there, the test would hang (and alarm would end it). */
static void never_waits_while_it_has_lines(void **state)
{
    (void)state;
    int ends[2];
    cpl_lines *l;
    alarm(20);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(cpl_lines_open_fd(&l, ends[0], NULL), CPL_OK);
    put(ends[1], "one\n");
    assert_next(l, 8, "one|");
    put(ends[1], "two\n\nthree\r\nhal");
    assert_next(l, 8, "two||three|");
    put(ends[1], "f\na\nb\nc\n");
    assert_next(l, 2, "half|a|");
    assert_next(l, 2, "b|c|");
    put(ends[1], "no end");
    close(ends[1]);
    assert_next(l, 8, "no end|");
    assert_next(l, 8, "");
    assert_next(l, 8, "");
    cpl_lines_close(l);
    close(ends[0]);
    alarm(0);
}

static void files_and_numbers(void **state)
{
    (void)state;
    char path[512];
    cpl_lines *l;
    const cpl_line *lines;
    size_t n;
    write_file(path, "in.txt", CPL_MARK "a\0b\n\n" "x\xFFy\xC3\n" CPL_MARK "z", 17);
    assert_int_equal(cpl_lines_open(&l, path, NULL), CPL_OK);
    assert_int_equal(cpl_lines_read(l, 10, &lines, &n, NULL), CPL_OK);
    assert_int_equal(n, 4);
    assert_int_equal(lines[0].length, 3);
    assert_memory_equal(lines[0].text, "a\0b", 3);
    assert_int_equal(lines[1].length, 0);
    assert_int_equal(lines[2].length, 8);
    assert_memory_equal(lines[2].text, "x\xEF\xBF\xBDy\xEF\xBF\xBD", 8);
    assert_int_equal(lines[3].length, 1);
    assert_int_equal(lines[3].number, 4);
    int64_t first;
    assert_int_equal(cpl_lines_replaced(l, &first), 2);
    assert_int_equal(first, 3);
    cpl_lines_close(l);
    remove_file(path);
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_lines_open(&l, "/nowhere.txt", &err), CPL_USAGE);
    assert_null(l);
    assert_int_equal(cpl_lines_open(&l, "/", NULL), CPL_OK);
    assert_int_equal(cpl_lines_read(l, 1, &lines, &n, &err), CPL_USAGE);
    cpl_lines_close(l);
}

/* A line of 1 MiB, and 5000 short ones in batches of 64. */
static void long_and_many(void **state)
{
    (void)state;
    char path[512];
    cpl_str text = {0};
    for (int i = 0; i < 1 << 20; i++)
        cpl_str_add_char(&text, 'a');
    cpl_str_add_char(&text, '\n');
    for (int i = 0; i < 5000; i++)
        cpl_str_printf(&text, "line %d\n", i);
    write_file(path, "in.txt", text.data, text.length);
    cpl_str_free(&text);
    cpl_lines *l;
    const cpl_line *lines;
    size_t n, total = 0;
    assert_int_equal(cpl_lines_open(&l, path, NULL), CPL_OK);
    while (cpl_lines_read(l, 64, &lines, &n, NULL) == CPL_OK && n > 0) {
        for (size_t i = 0; i < n; i++) {
            char expected[32];
            int length = snprintf(expected, sizeof expected, "line %zu", total + i - 1);
            assert_int_equal(lines[i].length, total + i == 0 ? 1 << 20 : length);
            assert_int_equal(lines[i].number, total + i + 1);
            if (total + i)
                assert_memory_equal(lines[i].text, expected, (size_t)length);
        }
        total += n;
        assert_true(n <= 64);
    }
    assert_int_equal(total, 5001);
    cpl_lines_close(l);
    remove_file(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_waits_while_it_has_lines),
        cmocka_unit_test(files_and_numbers),
        cmocka_unit_test(long_and_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
