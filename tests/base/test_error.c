/* Errors: the printed form of architecture.md, the limits of a chain, and log messages. */
#include "support/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

static char *printed(const cpl_error *err)
{
    static char text[8 * CPL_ERROR_WIDTH];
    FILE *file = tmpfile();
    assert_non_null(file);
    cpl_error_print(err, file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static cpl_status cause(cpl_error *err)
{
    CPL_FAIL(err, CPL_USAGE, "loss '%s' needs logits [batch t vocab] but '%s' gives [batch s units=%d]" CPL_HINT
             "return the decoder's logits, or add a projection to the vocabulary after '%s'",
             "masked_cross_entropy", "encoder.rnn", 256, "encoder.rnn");
}

static cpl_status outer(cpl_error *err)
{
    CPL_TRY(cause(err), err, "cannot build '%s'", "translator");
    return CPL_OK;
}

static void prints_the_documented_form(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(outer(&err), CPL_USAGE);
    assert_string_equal(printed(&err),
                        "error: cannot build 'translator'\n"
                        "  because: loss 'masked_cross_entropy' needs logits [batch t vocab] but 'encoder.rnn' "
                        "gives [batch s units=256]\n"
                        "  hint: return the decoder's logits, or add a projection to the vocabulary after "
                        "'encoder.rnn'\n");
}

static void one_line_is_just_the_error(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    assert_string_equal(printed(&err), "");
    assert_int_equal(cpl_error_set(&err, CPL_FAILED, "no memory"), CPL_FAILED);
    assert_string_equal(printed(&err), "error: no memory\n");
    cpl_error_set(&err, CPL_USAGE, "second"); /* replaces all */
    assert_string_equal(printed(&err), "error: second\n");
}

static void long_chains_keep_cause_and_outermost(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    cpl_error_set(&err, CPL_USAGE, "line 0");
    for (int i = 1; i < 10; i++)
        assert_int_equal(cpl_error_context(&err, CPL_FAILED, "line %d", i), CPL_USAGE);
    assert_string_equal(printed(&err), "error: line 9\n  because: line 4\n  because: line 3\n"
                                       "  because: line 2\n  because: line 1\n  because: line 0\n");
}

static void without_an_object_the_status_remains(void **state)
{
    (void)state;
    assert_int_equal(outer(NULL), CPL_USAGE);
    assert_int_equal(cpl_error_set(NULL, CPL_STOPPED, "x"), CPL_STOPPED);
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_error_context(&err, CPL_USAGE, "only context"), CPL_USAGE);
    assert_string_equal(printed(&err), "error: only context\n");
}

static void data_cannot_break_lines(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    cpl_error_set(&err, CPL_USAGE, "bad field '%s'", "a\nb\x1b[31m\t");
    assert_string_equal(printed(&err), "error: bad field 'a b [31m '\n");
}

static void long_lines_are_cut_at_a_character(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    for (int shift = 0; shift < 3; shift++) {
        char text[1500];
        memset(text, 'x', (size_t)shift);
        for (size_t i = (size_t)shift; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "€", 4);
        cpl_error_set(&err, CPL_FAILED, "%s", text);
        size_t n = strlen(err.line[0]);
        assert_true(n < CPL_ERROR_WIDTH && n > CPL_ERROR_WIDTH - 8);
        assert_int_equal((n - 3 - (size_t)shift) % 3, 0);
        assert_string_equal(err.line[0] + n - 3, "…");
    }
    cpl_error_set(&err, CPL_FAILED, "again: %s", err.line[0]); /* an argument inside err */
    assert_memory_equal(err.line[0], "again: xx€", 12);
}

static void keep_message(void *user, cpl_log_level level, const char *message)
{
    snprintf(user, 64, "%d %s", (int)level, message);
}

static void log_goes_to_its_sink(void **state)
{
    (void)state;
    char got[64] = "";
    cpl_log log = {keep_message, got}, silent = {NULL, NULL};
    cpl_log_warning(&log, "%d lines\nskipped", 3);
    assert_string_equal(got, "1 3 lines skipped");
    cpl_log_info(&log, "done");
    assert_string_equal(got, "0 done");
    cpl_log_info(&silent, "nothing");
    cpl_log_warning(NULL, "nothing");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(prints_the_documented_form),
    cmocka_unit_test(one_line_is_just_the_error),
    cmocka_unit_test(long_chains_keep_cause_and_outermost),
    cmocka_unit_test(without_an_object_the_status_remains),
    cmocka_unit_test(data_cannot_break_lines),
    cmocka_unit_test(long_lines_are_cut_at_a_character),
    cmocka_unit_test(log_goes_to_its_sink),
};

CPL_TEST_MAIN(tests)
