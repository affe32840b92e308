/* filter.c: lets the environment choose among the tests of an executable. Linked into every test.
 *
 * CPL_TEST_FILTER=case_E10* runs the tests whose names match, CPL_TEST_SKIP=case_* all but those. ctest sets
 * them for the cases; a constructor reads them, so a test's main may be cmocka's ordinary one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

__attribute__((constructor)) static void read_filter(void)
{
    const char *filter = getenv("CPL_TEST_FILTER"), *skip = getenv("CPL_TEST_SKIP");
    if (filter && *filter)
        cmocka_set_test_filter(filter);
    if (skip && *skip)
        cmocka_set_skip_filter(skip);
}
