/* data_test.h: what the tests of data share: files in a fresh folder, a log that is kept, rows made by hand. */
#ifndef CPL_TESTS_DATA_DATA_TEST_H
#define CPL_TESTS_DATA_DATA_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/files.h"
#include "base/memory.h"
#include "data/data.h"

/* tests/cases/NAME into a buffer of the caller. */
static inline const char *case_path(char path[512], const char *name)
{
    snprintf(path, 512, "%s/cases/%s", CPL_TEST_DATA, name);
    return path;
}

/* Writes a file into a fresh folder; remove_file takes both away. */
static inline const char *write_file(char path[512], const char *name, const char *bytes, size_t length)
{
    const char *base = getenv("TMPDIR");
    snprintf(path, 512, "%s/cpl-data-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
    size_t n = strlen(path);
    snprintf(path + n, 512 - n, "/%s", name);
    assert_int_equal(cpl_file_write(path, bytes, length, NULL), CPL_OK);
    return path;
}

static inline void remove_file(char path[512])
{
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
}

/* Keeps messages, one a line. */
static inline void keep_message(void *user, cpl_log_level level, const char *message)
{
    (void)level;
    cpl_str_printf(user, "%s\n", message);
}

static inline cpl_status read_pairs(cpl_pairs **p, cpl_config_source source, cpl_pairs_options options, cpl_error *err)
{
    cpl_config_files files = {.items = &source, .count = 1};
    return cpl_pairs_read(p, &files, &options, err);
}

/* The pairs of a case's file, which must be fine. */
static inline cpl_pairs *case_pairs(const char *name)
{
    char path[512];
    cpl_pairs *p;
    cpl_error err = CPL_ERROR_INIT;
    cpl_config_source from = {.pairs = case_path(path, name)};
    cpl_status status = read_pairs(&p, from, (cpl_pairs_options){0}, &err);
    assert_string_equal(err.lines ? err.line[0] : "", "");
    assert_int_equal(status, CPL_OK);
    return p;
}

static inline void assert_slice(cpl_slice got, const char *expected, size_t length)
{
    assert_int_equal(got.length, length);
    assert_memory_equal(got.text, expected, length);
}

static inline void assert_holds(const char *text, const char *part)
{
    if (!text || !strstr(text, part))
        fail_msg("'%s' does not hold '%s'", text ? text : "", part);
}

/* A configuration of white-space tokens as they are, with key and value pairs up to NULL. */
static inline cpl_config *config_of(const char *train, const char *const *settings)
{
    cpl_config *c;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_config_default(&c, NULL), CPL_OK);
    assert_int_equal(cpl_config_set(c, "text.source.tokens", "space", NULL), CPL_OK);
    assert_int_equal(cpl_config_set(c, "text.target.tokens", "space", NULL), CPL_OK);
    assert_int_equal(cpl_config_set(c, "text.source.standardize", "none", NULL), CPL_OK);
    if (train)
        assert_int_equal(cpl_config_set(c, "data.train", train, &err), CPL_OK);
    for (; settings && *settings; settings += 2)
        if (cpl_config_set(c, settings[0], settings[1], &err) != CPL_OK)
            fail_msg("%s: %s", settings[0], err.line[0]);
    return c;
}

static inline cpl_dataset *dataset_of(const cpl_config *c, const cpl_log *log)
{
    cpl_dataset *d;
    cpl_error err = CPL_ERROR_INIT;
    cpl_dataset_options o = {.config = c, .texts = 2, .log = log};
    if (cpl_dataset_new(&d, &o, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    return d;
}

/* n rows with lengths up to `longest` words; every id says which row it is of. Free items and ids. */
static inline cpl_rows rows_of(int64_t n, int longest)
{
    cpl_rows rows = {.items = cpl_alloc((size_t)n, sizeof(cpl_row)), .count = n};
    int32_t *ids = cpl_alloc((size_t)n * 2 * ((size_t)longest + 2), sizeof *ids), *at = ids;
    uint32_t random = 12345;
    for (int64_t i = 0; i < n; i++) {
        int32_t words[2];
        for (int side = 0; side < 2; side++) {
            random = random * 1664525u + 1013904223u;
            words[side] = (int32_t)(1 + (random >> 16) % (uint32_t)longest);
        }
        rows.items[i] = (cpl_row){at - ids, words[0] + 2, words[1] + 2, 0, (uint32_t)i + 1};
        for (int side = 0; side < 2; side++) {
            *at++ = CPL_ID_START;
            for (int32_t k = 0; k < words[side]; k++)
                *at++ = CPL_ID_WORDS + (int32_t)i;
            *at++ = CPL_ID_END;
        }
    }
    rows.ids = ids;
    return rows;
}

static inline void free_rows(cpl_rows *rows)
{
    cpl_release(rows->items);
    cpl_release((void *)(uintptr_t)rows->ids);
}

#endif
