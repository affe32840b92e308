/* config_test.h: configurations of a few lines, right ones and wrong ones. */
#ifndef CPL_TESTS_CONFIG_CONFIG_TEST_H
#define CPL_TESTS_CONFIG_CONFIG_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"

static inline cpl_status parse(cpl_config **c, const char *text, cpl_error *err)
{
    return cpl_config_parse(c, text, strlen(text), "conf/m.yaml", err);
}

#define L1 "conf/m.yaml:1: "

/* Parses and checks text, which must fail with just this cause and, unless NULL, this hint. */
static inline void expect_error(const char *text, const char *cause, const char *hint)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    cpl_status status = parse(&c, text, &err);
    if (status == CPL_OK)
        status = cpl_config_check(c, 0, &err);
    assert_int_equal(status, CPL_USAGE);
    assert_string_equal(err.line[0], cause);
    assert_string_equal(err.hint, hint == NULL ? "" : hint);
    cpl_config_free(c);
}

static inline cpl_config *good(const char *text)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    if (parse(&c, text, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    return c;
}

#endif
