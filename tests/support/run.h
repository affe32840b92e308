/* run.h: the main function of a test, CPL_TEST_MAIN(tests), where `tests` is an array of struct CMUnitTest.
 *
 * The executable takes a pattern of names (with * and ?) as its argument: build/tests/text_split 'case_E*'.
 * A pattern that no test matches is a failure, not an empty success. */
#ifndef CPL_TESTS_SUPPORT_RUN_H
#define CPL_TESTS_SUPPORT_RUN_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fnmatch.h>
#include <stdio.h>

/* Hands the pattern to cmocka; returns how many of the tests match it. */
static inline size_t cpl_test_choose(const struct CMUnitTest *tests, size_t count, const char *pattern)
{
    size_t matches = 0;
    for (size_t i = 0; i < count; i++)
        matches += fnmatch(pattern, tests[i].name, 0) == 0;
    cmocka_set_test_filter(pattern);
    return matches;
}

#define CPL_TEST_MAIN(tests)                                                                              \
    int main(int argc, char **argv)                                                                       \
    {                                                                                                     \
        if (argc > 1 && !cpl_test_choose((tests), sizeof(tests) / sizeof((tests)[0]), argv[1])) {         \
            fprintf(stderr, "no test of %s matches '%s'\n", argv[0], argv[1]);                            \
            return 1;                                                                                     \
        }                                                                                                 \
        return cmocka_run_group_tests(tests, NULL, NULL);                                                 \
    }

#endif
