/* The vectors of RFC 4648, all bytes, and what is no base64. */
#include "support/run.h"

#include <string.h>
#include "base/base64.h"

static void vectors(void **state)
{
    static const char *const rows[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    (void)state;
    for (int i = 0; i < 7; i++) {
        cpl_str text = {0}, back = {0};
        cpl_base64_encode(rows[i][0], strlen(rows[i][0]), &text);
        assert_string_equal(text.data ? text.data : "", rows[i][1]);
        assert_int_equal(cpl_base64_decode(rows[i][1], strlen(rows[i][1]), &back), 0);
        assert_string_equal(back.data ? back.data : "", rows[i][0]);
        cpl_str_free(&text);
        cpl_str_free(&back);
    }
}

static void every_byte(void **state)
{
    char bytes[256];
    cpl_str text = {0}, back = {0};
    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    cpl_base64_encode(bytes, sizeof bytes, &text);
    assert_int_equal(text.length, 344);
    assert_int_equal(cpl_base64_decode(text.data, text.length, &back), 0);
    assert_int_equal(back.length, sizeof bytes);
    assert_memory_equal(back.data, bytes, sizeof bytes);
    cpl_str_free(&text);
    cpl_str_free(&back);
}

static void refused(void **state)
{
    static const char *const odd[] = {"Z", "Zg=", "Zg==Zg==", "Z===", "Zm9*", "Zm 9", "=m9v", "Zm=v"};
    (void)state;
    for (int i = 0; i < 8; i++) {
        cpl_str back = {0};
        assert_int_equal(cpl_base64_decode(odd[i], strlen(odd[i]), &back), -1);
        cpl_str_free(&back);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(vectors),
    cmocka_unit_test(every_byte),
    cmocka_unit_test(refused),
};

CPL_TEST_MAIN(tests)
