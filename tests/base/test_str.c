/* Strings: growing, showing text safely, sizes, nearest names. */
#include "support/run.h"

#include <string.h>

#include "base/memory.h"
#include "base/str.h"

static void grows_and_hands_over(void **state)
{
    (void)state;
    cpl_str s = {0};
    for (int i = 0; i < 1000; i++) {
        cpl_str_add(&s, "ab");
        cpl_str_add_char(&s, '-');
        cpl_str_printf(&s, "%03d", i);
        cpl_str_add_bytes(&s, "\0", 1);
    }
    assert_int_equal(s.length, 7000);
    assert_memory_equal(s.data + 6993, "ab-999\0", 8);
    cpl_str_clear(&s);
    assert_int_equal(s.length, 0);
    assert_string_equal(s.data, "");
    char *taken = cpl_str_take(&s);
    assert_non_null(taken);
    cpl_release(taken);
    taken = cpl_str_take(&s); /* nothing was ever added */
    assert_string_equal(taken, "");
    cpl_release(taken);
    cpl_str_free(&s);
}

static void lack_of_memory_sticks(void **state)
{
    (void)state;
    cpl_str s = {0};
    cpl_str_add(&s, "abc");
    cpl_memory_fail_at(1);
    cpl_str_printf(&s, "%0100d", 1);
    cpl_memory_fail_at(0);
    cpl_str_add(&s, "more");
    assert_true(s.failed);
    assert_string_equal(s.data, "abc");
    assert_null(cpl_str_take(&s));
}

static void edit_distances(void **state)
{
    (void)state;
    assert_int_equal(cpl_edit_distance("", ""), 0);
    assert_int_equal(cpl_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(cpl_edit_distance("abc", ""), 3);
    assert_int_equal(cpl_edit_distance("", "abcd"), 4);
    assert_int_equal(cpl_edit_distance("units", "unist"), 1);
    assert_int_equal(cpl_edit_distance("ca", "abc"), 3); /* optimal string alignment, not the full metric */
    char longer[300];
    memset(longer, 'a', 299);
    longer[299] = '\0';
    assert_int_equal(cpl_edit_distance(longer, longer), 0);
    assert_int_equal(cpl_edit_distance(longer, "a"), 299);
}

static void nearest_names(void **state)
{
    (void)state;
    static const char *const names[] = {"units", "batch_size", "learning_rate", "dropout", "gru", "lstm"};
    const size_t n = sizeof names / sizeof *names;
    assert_string_equal(cpl_nearest("unist", names, n), "units");
    assert_string_equal(cpl_nearest("batchsize", names, n), "batch_size");
    assert_string_equal(cpl_nearest("learing_rat", names, n), "learning_rate");
    assert_string_equal(cpl_nearest("GRU", names, n), "gru");
    assert_null(cpl_nearest("temperature", names, n));
    assert_null(cpl_nearest("x", names, n));
    assert_null(cpl_nearest("", names, n));
    assert_null(cpl_nearest("units", names, 0));
}

static void escapes_what_a_terminal_must_not_see(void **state)
{
    (void)state;
    char b[64];
    assert_string_equal(cpl_escape(b, sizeof b, "a\tb\n\x1b'\\\0", 8), "a\\tb\\n\\x1B\\'\\\\\\x00");
    assert_string_equal(cpl_escape(b, sizeof b, "¿Qué? 猫 😀", strlen("¿Qué? 猫 😀")), "¿Qué? 猫 😀");
    /* lone continuation, overlong '/', surrogate, above U+10FFFF, cut character */
    assert_string_equal(cpl_escape(b, sizeof b, "\x80", 1), "\\x80");
    assert_string_equal(cpl_escape(b, sizeof b, "\xC0\xAF", 2), "\\xC0\\xAF");
    assert_string_equal(cpl_escape(b, sizeof b, "\xED\xA0\x80", 3), "\\xED\\xA0\\x80");
    assert_string_equal(cpl_escape(b, sizeof b, "\xF4\x90\x80\x80", 4), "\\xF4\\x90\\x80\\x80");
    assert_string_equal(cpl_escape(b, sizeof b, "\xE2\x82", 2), "\\xE2\\x82");
    /* a line separator and a mark that turns the direction of writing */
    assert_string_equal(cpl_escape(b, sizeof b, "\u2028\u202e", 6), "\\xE2\\x80\\xA8\\xE2\\x80\\xAE");
}

static void escape_fits_any_buffer(void **state)
{
    (void)state;
    char b[16];
    assert_string_equal(cpl_escape(b, 9, "abcdefgh", 8), "abcdefgh");
    assert_string_equal(cpl_escape(b, 8, "abcdefgh", 8), "abcd…");
    assert_string_equal(cpl_escape(b, 8, "ab€€€", 11), "ab…");
    assert_string_equal(cpl_escape(b, 8, "abc\n\n\n", 6), "abc…");
    assert_string_equal(cpl_escape(b, 3, "abc", 3), "ab");
    assert_string_equal(cpl_escape(b, 1, "abc", 3), "");
}

static void sizes_are_shown(void **state)
{
    (void)state;
    char b[32];
    assert_string_equal(cpl_bytes_text(b, sizeof b, 0), "0 bytes");
    assert_string_equal(cpl_bytes_text(b, sizeof b, 1), "1 byte");
    assert_string_equal(cpl_bytes_text(b, sizeof b, 512), "512 bytes");
    assert_string_equal(cpl_bytes_text(b, sizeof b, 2048), "2.0 KiB");
    assert_string_equal(cpl_bytes_text(b, sizeof b, 4 << 20), "4.0 MiB");
    assert_string_equal(cpl_bytes_text(b, sizeof b, 3ull << 29), "1.50 GiB");
    assert_string_equal(cpl_bytes_text(b, sizeof b, 1ull << 41), "2.00 TiB");
}

static void sizes_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned long long bytes;
    } good[] = {{"4096", 4096},         {"0", 0},           {"2GiB", 2ull << 30},     {"512MiB", 512ull << 20},
                {"1.5G", 3ull << 29},   {"1.5 gib", 3ull << 29}, {"10kB", 10000},     {"1GB", 1000000000},
                {"64k", 65536},         {"7 bytes", 7},     {"0.5T", 1ull << 39},
                {"18446744073709551615", UINT64_MAX},
                {"1.0000000000001K", 1024}};
    static const char *const bad[] = {"", " 1", "-1", "+1", "1.5", "1.", ".5G", "G", "1e3", "0x10", "inf", "nan", "1Gi",
                                      "1 GiB x", "1,5G", "18446744073709551616", "16777216T", "1PiB", "1bits", "1.G"};
    unsigned long long got;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(cpl_bytes_parse(good[i].text, &got), 0);
        assert_true(got == good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (cpl_bytes_parse(bad[i], &got) != -1)
            fail_msg("'%s' was read as %llu bytes", bad[i], got);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(grows_and_hands_over),
    cmocka_unit_test(lack_of_memory_sticks),
    cmocka_unit_test(edit_distances),
    cmocka_unit_test(nearest_names),
    cmocka_unit_test(escapes_what_a_terminal_must_not_see),
    cmocka_unit_test(escape_fits_any_buffer),
    cmocka_unit_test(sizes_are_shown),
    cmocka_unit_test(sizes_are_read),
};

CPL_TEST_MAIN(tests)
