/* train_test.h: tiny trainings in a temporary folder, for the tests of this room. */
#ifndef CPL_TESTS_TRAIN_TEST_H
#define CPL_TESTS_TRAIN_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "couplet.h"
#include "io/io.h"

static char top[512];

static inline int make_top(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    snprintf(top, sizeof top, "%s/cpl_train_XXXXXX", temporary ? temporary : "/tmp");
    return mkdtemp(top) ? 0 : -1;
}

static inline int remove_top(void **state)
{
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

static inline void put_file(const char *name, const char *text)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", top, name);
    assert_int_equal(cpl_file_write(path, text, strlen(text), NULL), CPL_OK);
}

/* `pairs` short pairs whose target says the source's words in English: enough to learn something in a few steps. */
static inline void put_pairs(const char *name, int pairs)
{
    static const char *const from[] = {"uno", "dos", "tres", "casa", "perro", "gato", "agua", "sol"};
    static const char *const to[] = {"one", "two", "three", "house", "dog", "cat", "water", "sun"};
    cpl_str text = {0};
    for (int i = 0; i < pairs; i++) {
        int a = i % 8, b = (i * 3 + i / 8) % 8, c = (i * 5 + 1) % 8;
        if (i % 3 == 0)
            cpl_str_printf(&text, "%s %s\t%s %s\n", from[a], from[b], to[a], to[b]);
        else
            cpl_str_printf(&text, "%s %s %s\t%s %s %s\n", from[a], from[b], from[c], to[a], to[b], to[c]);
    }
    put_file(name, text.data);
    cpl_str_free(&text);
}

/* Pairs whose lengths run from 1 to `longest` words. */
static inline void put_pairs_of_lengths(const char *name, int pairs, int longest)
{
    static const char *const words[] = {"uno", "dos", "tres", "casa", "perro", "gato", "agua", "sol"};
    cpl_str text = {0};
    for (int i = 0; i < pairs; i++)
        for (int side = 0; side < 2; side++) {
            int n = 1 + (i * 7 + side * 3) % longest;
            for (int k = 0; k < n; k++)
                cpl_str_printf(&text, "%s%c", words[(i + k * (side + 1)) % 8], k + 1 < n ? ' ' : side ? '\n' : '\t');
        }
    put_file(name, text.data);
    cpl_str_free(&text);
}

/* What a run is started with, and what came of it. */
typedef struct run {
    const char *folder;   /* inside top */
    const char *set[16];  /* "training.epochs=3", NULL-terminated */
    int resume, overwrite, profile;
    int64_t stop_at;      /* step after which a stop is asked for; 0: never */
    volatile int stop;
    int64_t steps_seen;
    int warnings;
    char warned[4000];    /* all warnings, one a line */
    char told[4000];      /* all information, one a line */
    cpl_error error;
} run;

static inline void on_progress(void *user, const cpl_progress_event *e)
{
    run *r = user;
    if (strcmp(e->kind, "step") == 0) {
        r->steps_seen++;
        if (r->stop_at && e->step >= r->stop_at)
            r->stop = 1;
    }
}

static inline void on_message(void *user, int level, const char *text)
{
    run *r = user;
    char *to = level > 0 ? r->warned : r->told;
    size_t used = strlen(to), room = sizeof r->warned - used; /* both are of one size */
    r->warnings += level > 0;
    snprintf(to + used, room, "%s\n", text);
}

/* Trains with top/config.yaml in top/folder. */
static inline cpl_status train(run *r)
{
    char config[700], folder[700];
    snprintf(config, sizeof config, "%s/config.yaml", top);
    snprintf(folder, sizeof folder, "%s/%s", top, r->folder);
    cpl_train_options o = {.config_path = config, .folder = folder, .set = r->set, .resume = r->resume,
                           .overwrite = r->overwrite, .profile = r->profile,
                           .on_step = on_progress, .on_validation = on_progress,
                           .on_event = on_progress, .message = on_message, .user = r,
                           .stop = &r->stop};
    while (r->set[o.set_count])
        o.set_count++;
    r->stop = 0;
    r->warnings = 0;
    r->warned[0] = r->told[0] = '\0';
    memset(&r->error, 0, sizeof r->error);
    cpl_status status = cpl_train(&o, &r->error);
    if (status == CPL_FAILED)
        cpl_error_print(&r->error, stderr);
    return status;
}

static inline char *read_file(const char *folder, const char *name, size_t *length)
{
    char path[700], *data;
    snprintf(path, sizeof path, "%s/%s/%s", top, folder, name);
    assert_int_equal(cpl_file_read(path, &data, length, NULL), CPL_OK);
    return data;
}

static inline void assert_same_file(const char *folder, const char *other, const char *name)
{
    size_t n, m;
    char *a = read_file(folder, name, &n), *b = read_file(other, name, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    cpl_release(a);
    cpl_release(b);
}

/* All tensors of both files are the same, name by name and bit by bit (times in the metadata may differ). */
static inline void assert_same_tensors(const char *folder, const char *other, const char *name)
{
    cpl_tensor_file *f[2];
    for (int i = 0; i < 2; i++) {
        char path[700];
        snprintf(path, sizeof path, "%s/%s/%s", top, i ? other : folder, name);
        assert_int_equal(cpl_tensor_file_open(&f[i], path, NULL), CPL_OK);
    }
    assert_int_equal(cpl_tensor_file_count(f[0]), cpl_tensor_file_count(f[1]));
    for (size_t i = 0; i < cpl_tensor_file_count(f[0]); i++) {
        const cpl_tensor_entry *a = cpl_tensor_file_at(f[0], i), *b = cpl_tensor_file_find(f[1], a->name);
        assert_non_null(b);
        assert_int_equal(cpl_tensor_elements(a), cpl_tensor_elements(b));
        assert_memory_equal(a->data, b->data, cpl_tensor_elements(a) * cpl_dtype_bytes(a->dtype));
    }
    cpl_tensor_file_close(f[0]);
    cpl_tensor_file_close(f[1]);
}

/* ---- log.jsonl ---- */

/* The lines of one event, parsed; the caller frees each with cpl_json_free. Returns their number; the places behind
 * it are NULL. */
static inline size_t read_events(const char *folder, const char *event, cpl_json **events, size_t most)
{
    size_t length, count = 0;
    char *text = read_file(folder, "log.jsonl", &length);
    memset(events, 0, most * sizeof *events);
    for (char *line = text; line < text + length;) {
        char *end = strchr(line, '\n');
        cpl_json *root;
        assert_non_null(end);
        assert_int_equal(cpl_json_parse(&root, line, (size_t)(end - line), NULL), CPL_OK);
        if (strcmp(cpl_json_text(cpl_json_get(root, "event"), NULL), event) == 0 && count < most)
            events[count++] = root;
        else
            cpl_json_free(root);
        line = end + 1;
    }
    cpl_release(text);
    return count;
}

static inline double number(const cpl_json *event, const char *key)
{
    return cpl_json_real(cpl_json_get(event, key), -12345);
}

static inline size_t count_events(const char *folder, const char *event)
{
    cpl_json *events[1000];
    size_t n = read_events(folder, event, events, 1000);
    for (size_t i = 0; i < n; i++)
        cpl_json_free(events[i]);
    return n;
}

/* A file of tests/cases, parsed. */
static inline cpl_json *read_case(const char *name)
{
    char path[700], *text;
    size_t length;
    cpl_json *root;
    snprintf(path, sizeof path, CPL_TEST_DATA "/cases/%s", name);
    assert_int_equal(cpl_file_read(path, &text, &length, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, text, length, NULL), CPL_OK);
    cpl_release(text);
    return root;
}

#endif
