/* Spans: a bounded list that any thread adds to, written so that a viewer nests them. */
#include "support/run.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/trace.h"

/* What the trace writes, behind one event of our own as a JSON list; freed by the caller. */
static cpl_json *written(cpl_trace *t)
{
    const char *temporary = getenv("TMPDIR");
    char path[600], *text;
    size_t length;
    cpl_writer *w;
    cpl_json *root;
    snprintf(path, sizeof path, "%s/cpl_trace_%ld.json", temporary ? temporary : "/tmp", (long)getpid());
    assert_int_equal(cpl_writer_open(&w, path, NULL), CPL_OK);
    assert_int_equal(cpl_writer_write(w, "[{}", 3, NULL), CPL_OK);
    assert_int_equal(cpl_trace_write(t, w, NULL), CPL_OK);
    assert_int_equal(cpl_writer_write(w, "]", 1, NULL), CPL_OK);
    assert_int_equal(cpl_writer_commit(w, NULL), CPL_OK);
    assert_int_equal(cpl_file_read(path, &text, &length, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, text, length, NULL), CPL_OK);
    cpl_release(text);
    unlink(path);
    return root;
}

static const char *name_of(const cpl_json *event)
{
    return cpl_json_text(cpl_json_get(event, "name"), NULL);
}

static void events_stand_as_a_viewer_nests_them(void **state)
{
    (void)state;
    cpl_trace *t;
    assert_int_equal(cpl_trace_new(&t, 8, NULL), CPL_OK);
    int64_t at = cpl_clock_ns() + 1000000;
    /* Inner spans end, and are added, before those around them. */
    cpl_trace_add(t, &(cpl_span){.name = "la\"yer", .kind = "forward", .op = "gru", .number = -1, .begun = at + 5,
                                 .ended = at + 1234567, .thread = 0});
    cpl_trace_add(t, &(cpl_span){.name = "inner", .kind = "phase", .number = -1, .begun = at, .ended = at + 10,
                                 .thread = 1});
    cpl_trace_add(t, &(cpl_span){.name = "step", .kind = "step", .number = 7, .begun = at, .ended = at + 2000000});
    cpl_json *root = written(t);
    assert_int_equal(cpl_json_size(root), 4);
    const cpl_json *step = cpl_json_at(root, 1), *inner = cpl_json_at(root, 2), *layer = cpl_json_at(root, 3);
    assert_string_equal(name_of(step), "step 7"); /* begins with 'inner' and is longer */
    assert_string_equal(name_of(inner), "inner");
    assert_string_equal(name_of(layer), "la\"yer");
    assert_string_equal(cpl_json_text(cpl_json_get(layer, "ph"), NULL), "X");
    assert_string_equal(cpl_json_text(cpl_json_get(layer, "cat"), NULL), "forward");
    assert_string_equal(cpl_json_text(cpl_json_get(cpl_json_get(layer, "args"), "op"), NULL), "gru");
    assert_null(cpl_json_get(step, "args"));
    assert_int_equal(cpl_json_int(cpl_json_get(inner, "tid"), -1), 1);
    assert_int_equal(cpl_json_int(cpl_json_get(inner, "pid"), -1), 1);
    double begun = cpl_json_real(cpl_json_get(step, "ts"), -1), later = cpl_json_real(cpl_json_get(layer, "ts"), -1);
    assert_true(begun >= 1000); /* microseconds since the trace was made */
    assert_true(fabs(later - begun - 0.005) < 1e-6);
    assert_true(fabs(cpl_json_real(cpl_json_get(layer, "dur"), -1) - 1234.562) < 1e-9);
    cpl_json_free(root);
    cpl_trace_free(t);
}

enum { THREADS = 4, EACH = 500, ROOM = 1200 };

static void *add_many(void *trace)
{
    for (int i = 0; i < EACH; i++) {
        int64_t now = cpl_clock_ns();
        cpl_trace_add(trace, &(cpl_span){.name = "x", .kind = "y", .number = i, .begun = now, .ended = now + 1});
    }
    return NULL;
}

static void the_room_is_bounded_for_all_threads_together(void **state)
{
    (void)state;
    cpl_trace *t;
    pthread_t threads[THREADS];
    size_t left_out;
    assert_int_equal(cpl_trace_new(&t, ROOM, NULL), CPL_OK);
    assert_int_equal(cpl_trace_count(t, &left_out), 0);
    uint64_t allocations = cpl_memory_allocations();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, t), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(cpl_trace_count(t, &left_out), ROOM);
    assert_int_equal(left_out, THREADS * EACH - ROOM);
    assert_int_equal(cpl_memory_allocations(), allocations);
    cpl_json *root = written(t);
    assert_int_equal(cpl_json_size(root), ROOM + 1);
    for (size_t i = 2; i <= ROOM; i++)
        assert_true(cpl_json_real(cpl_json_get(cpl_json_at(root, i), "ts"), -1) >=
                    cpl_json_real(cpl_json_get(cpl_json_at(root, i - 1), "ts"), -1));
    cpl_json_free(root);
    cpl_trace_free(t);
}

static void no_memory_is_said(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 2; i++) {
        cpl_trace *t;
        cpl_error err = CPL_ERROR_INIT;
        uint64_t held = cpl_memory_live_bytes();
        cpl_memory_fail_at(i);
        assert_int_equal(cpl_trace_new(&t, 100, &err), CPL_FAILED);
        cpl_memory_fail_at(0);
        assert_null(t);
        assert_non_null(strstr(err.line[0], "100 spans"));
        assert_true(cpl_memory_live_bytes() == held);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(events_stand_as_a_viewer_nests_them),
    cmocka_unit_test(the_room_is_bounded_for_all_threads_together),
    cmocka_unit_test(no_memory_is_said),
};

CPL_TEST_MAIN(tests)
