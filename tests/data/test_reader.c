/* Reading pairs: line ends, marks, encoding, fields, aligned files, compression. Expected figures are the cases'. */
#include "data_test.h"

static void case_E01_crlf(void **state)
{
    (void)state;
    cpl_pairs *p = case_pairs("E01_crlf.tsv");
    assert_int_equal(p->count, 2);
    for (size_t i = 0; i < p->count; i++) {
        assert_null(memchr(p->items[i].source.text, '\r', p->items[i].source.length));
        assert_null(memchr(p->items[i].target.text, '\r', p->items[i].target.length));
    }
    assert_slice(p->items[0].target, "hola mundo", 10);
    assert_slice(p->items[1].target, "buenas noches", 13);
    cpl_pairs_free(p);
}

static void case_E02_byte_order_marks(void **state)
{
    (void)state;
    char path[512];
    cpl_str messages = {0};
    cpl_log log = {keep_message, &messages};
    cpl_pairs *p;
    assert_int_equal(read_pairs(&p, (cpl_config_source){.pairs = case_path(path, "E02_bom.tsv")},
                                (cpl_pairs_options){.log = &log}, NULL), CPL_OK);
    assert_int_equal(p->count, 3);
    assert_int_equal(p->counts.marks, 1);
    assert_slice(p->items[0].source, "cat", 3);
    assert_slice(p->items[1].source, "dog", 3);
    assert_slice(p->items[2].source, "cat", 3);
    assert_holds(messages.data, "line 3");
    cpl_str_free(&messages);
    cpl_pairs_free(p);
}

static void case_E03_invalid_utf8(void **state)
{
    (void)state;
    char path[512];
    cpl_pairs *p;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(read_pairs(&p, (cpl_config_source){.pairs = case_path(path, "E03_invalid_utf8.tsv")},
                                (cpl_pairs_options){0}, &err), CPL_USAGE);
    assert_null(p);
    assert_holds(err.line[0], "E03_invalid_utf8.tsv");
    assert_holds(err.line[0], "in 4 lines: line 1 at byte 3 (0xE9), line 3 at byte 4 (0xC3), line 4 at byte 10 (0xED), "
                              "line 5 at byte 9 (0xC0)");
}

static void utf16_is_named(void **state)
{
    (void)state;
    char path[512];
    cpl_pairs *p;
    cpl_error err = CPL_ERROR_INIT;
    write_file(path, "u.tsv", "\xFF\xFE" "a\0\t\0b\0", 8);
    assert_int_equal(read_pairs(&p, (cpl_config_source){.pairs = path}, (cpl_pairs_options){0}, &err), CPL_USAGE);
    assert_holds(err.line[0], "UTF-16");
    remove_file(path);
}

static void case_E04_wrong_fields_stop(void **state)
{
    (void)state;
    char path[512];
    cpl_pairs *p;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(read_pairs(&p, (cpl_config_source){.pairs = case_path(path, "E04_fields.tsv")},
                                (cpl_pairs_options){0}, &err), CPL_USAGE);
    assert_holds(err.line[0], "2 of 8 lines without exactly 2 fields: line 2 has 1, line 3 has 3");
}

/* The case's other six lines: what is skipped is named and the sum is right. */
static void case_E04_empty_sides_are_counted(void **state)
{
    (void)state;
    static const char text[] = "a b\tx y\n\ttarget only\nsource only\t\n   \t   \n\nlast without newline\tok";
    char path[512];
    cpl_pairs *p;
    write_file(path, "e04.tsv", text, sizeof text - 1);
    cpl_config_source source = {.pairs = path};
    assert_int_equal(read_pairs(&p, source, (cpl_pairs_options){0}, NULL), CPL_OK);
    cpl_line_counts c = p->counts;
    assert_int_equal(p->count, 2);
    assert_int_equal(p->items[1].line, 6);
    assert_slice(p->items[1].source, "last without newline", 20);
    assert_slice(p->items[1].target, "ok", 2);
    assert_int_equal(c.empty_source, 1);
    assert_int_equal(c.empty_target, 1);
    assert_int_equal(c.empty_both, 1);
    assert_int_equal(c.blank, 1);
    assert_int_equal(c.lines, 6);
    assert_int_equal(c.lines, c.pairs + c.blank + c.empty_source + c.empty_target + c.empty_both);
    cpl_pairs_free(p);
    assert_int_equal(read_pairs(&p, source, (cpl_pairs_options){.swap = 1}, NULL), CPL_OK);
    assert_slice(p->items[0].source, "x y", 3);
    assert_slice(p->items[0].target, "a b", 3);
    cpl_pairs_free(p);
    assert_int_equal(read_pairs(&p, source, (cpl_pairs_options){.keep_empty = 1}, NULL), CPL_OK);
    assert_int_equal(p->count, 6);
    assert_slice(p->items[4].source, "", 0);
    cpl_pairs_free(p);
    remove_file(path);
}

static void case_E05_separators_end_no_line(void **state)
{
    (void)state;
    char source[512], target[512];
    cpl_pairs *p;
    cpl_config_source from = {.source = case_path(source, "E05_line_separators.src"),
                              .target = case_path(target, "E05_line_separators.tgt")};
    assert_int_equal(read_pairs(&p, from, (cpl_pairs_options){0}, NULL), CPL_OK);
    assert_int_equal(p->count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(p->items[i].line, i + 1);
    cpl_pairs_free(p);
}

static void case_E06_files_of_different_length(void **state)
{
    (void)state;
    char source[512], target[512];
    cpl_pairs *p;
    cpl_error err = CPL_ERROR_INIT;
    cpl_config_source from = {.source = case_path(source, "E06_mismatch.src"),
                              .target = case_path(target, "E06_mismatch.tgt"),
                              .written_source = "m.src", .written_target = "m.tgt"};
    assert_int_equal(read_pairs(&p, from, (cpl_pairs_options){0}, &err), CPL_USAGE);
    assert_string_equal(err.line[0], "'m.src' has 4 lines but 'm.tgt' has 5; line 3 of 'm.tgt' is empty, its partner "
                                     "is not");
}

static void case_E15_nul_inside_a_line(void **state)
{
    (void)state;
    cpl_pairs *p = case_pairs("E15_nul.tsv");
    assert_int_equal(p->count, 2);
    assert_int_equal(p->items[0].source.text[1], '\0');
    assert_slice(p->items[0].target, "x y", 3);
    cpl_pairs_free(p);
}

/* A list of a compressed file and a plain one: pairs in order, each with its file and line. */
static void lists_and_compression(void **state)
{
    (void)state;
    static const unsigned char gz[] = { /* "a\tb\nc\td\n", by gzip -n */
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x4b, 0xe4, 0x4c, 0xe2, 0x4a, 0xe6,
        0x4c, 0xe1, 0x02, 0x00, 0xb0, 0xa8, 0x71, 0x24, 0x08, 0x00, 0x00, 0x00};
    char one[512], two[512];
    write_file(one, "a.tsv.gz", (const char *)gz, sizeof gz);
    write_file(two, "b.tsv", "e\tf\n", 4);
    cpl_config_source items[2] = {{.pairs = one}, {.pairs = two}};
    cpl_config_files files = {.items = items, .count = 2};
    cpl_pairs *p = NULL;
    cpl_error err = CPL_ERROR_INIT;
    cpl_status status = cpl_pairs_read(&p, &files, NULL, &err);
    remove_file(one);
    remove_file(two);
    if (status != CPL_OK && strstr(err.line[0], "zlib was missing"))
        skip();
    assert_int_equal(status, CPL_OK);
    assert_int_equal(p->count, 3);
    assert_slice(p->items[1].target, "d", 1);
    assert_slice(p->items[2].source, "e", 1);
    assert_int_equal(p->items[2].file, 1);
    assert_int_equal(p->items[2].line, 1);
    cpl_pairs_free(p);
    assert_int_equal(read_pairs(&p, (cpl_config_source){.pairs = "/nowhere.tsv"}, (cpl_pairs_options){0}, &err),
                     CPL_USAGE);
    assert_holds(err.line[0], "nowhere.tsv");
}

/* Every allocation fails once, in turn: an error each time, nothing is lost (the sanitizer would tell). */
static void memory_runs_out(void **state)
{
    (void)state;
    char path[512];
    cpl_config_source from = {.pairs = case_path(path, "B03_one_long_pair_last.tsv")};
    cpl_pairs *p;
    uint64_t live = cpl_memory_live_bytes();
    int failures = 0;
    for (uint64_t at = 1; at < 50; at++) {
        cpl_memory_fail_at(at);
        cpl_status status = read_pairs(&p, from, (cpl_pairs_options){0}, NULL);
        cpl_memory_fail_at(0);
        failures += status == CPL_FAILED;
        if (status == CPL_OK) /* past the last one, or the file's first buffer, which can do without its size */
            cpl_pairs_free(p);
        else
            assert_int_equal(status, CPL_FAILED);
        assert_int_equal(cpl_memory_live_bytes(), live);
    }
    assert_true(failures > 5 && failures < 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_E01_crlf),
        cmocka_unit_test(case_E02_byte_order_marks),
        cmocka_unit_test(case_E03_invalid_utf8),
        cmocka_unit_test(utf16_is_named),
        cmocka_unit_test(case_E04_wrong_fields_stop),
        cmocka_unit_test(case_E04_empty_sides_are_counted),
        cmocka_unit_test(case_E05_separators_end_no_line),
        cmocka_unit_test(case_E06_files_of_different_length),
        cmocka_unit_test(case_E15_nul_inside_a_line),
        cmocka_unit_test(lists_and_compression),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
