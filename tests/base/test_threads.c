/* The pool: every task once, at any size, from any caller; short runs are cheap; sleepers wake. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include "support/run.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"

enum { TASKS_MAX = 5000 };

typedef struct tally {
    cpl_pool *pool;
    int threads;
    atomic_int ran[TASKS_MAX];
    atomic_int busy[16]; /* by thread index: two tasks with one index at once would share scratch */
    atomic_int clashes;
} tally;

static void count(void *arguments, int64_t task, int thread)
{
    tally *t = arguments;
    if (thread < 0 || thread >= t->threads || atomic_fetch_add(&t->busy[thread], 1) != 0)
        atomic_fetch_add(&t->clashes, 1);
    atomic_fetch_add(&t->ran[task], 1);
    atomic_fetch_sub(&t->busy[thread], 1);
}

static cpl_pool *new_pool(int threads)
{
    cpl_pool *pool;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_pool_new(&pool, threads, &err), CPL_OK);
    return pool;
}

static void every_task_runs_once(void **state)
{
    (void)state;
    static tally t;
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, 1000, TASKS_MAX};
    uint64_t live = cpl_memory_live_bytes();
    for (int threads = 1; threads <= 8; threads++) {
        cpl_pool *pool = new_pool(threads);
        assert_int_equal(cpl_pool_threads(pool), threads);
        t.threads = threads;
        for (int round = 0; round < 50; round++) {
            int64_t n = sizes[round % 8];
            for (int i = 0; i < TASKS_MAX; i++)
                atomic_store_explicit(&t.ran[i], 0, memory_order_relaxed);
            cpl_pool_run(pool, n, count, &t);
            for (int64_t i = 0; i < TASKS_MAX; i++)
                assert_int_equal(atomic_load_explicit(&t.ran[i], memory_order_relaxed), i < n);
        }
        cpl_pool_free(pool);
    }
    assert_int_equal(t.clashes, 0);
    assert_int_equal(cpl_memory_live_bytes(), live);
}

/* Plain, unguarded results: what a task wrote is seen by the caller, what the caller wrote by the tasks. */
static void plus_one(void *arguments, int64_t task, int thread)
{
    (void)thread;
    ((int64_t *)arguments)[task]++;
}

static void results_are_visible_between_runs(void **state)
{
    (void)state;
    static int64_t numbers[64];
    cpl_pool *pool = new_pool(4);
    for (int round = 0; round < 2000; round++) {
        cpl_pool_run(pool, 2 + round % 63, plus_one, numbers);
        numbers[0] -= 1;
    }
    assert_int_equal(numbers[0], 0);
    assert_int_equal(numbers[1], 2000);
    cpl_pool_free(pool);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void who(void *arguments, int64_t task, int thread)
{
    (void)task;
    if (thread > 0) /* the caller's own tasks stay free of shared writes */
        atomic_fetch_add_explicit((atomic_int *)arguments, 1, memory_order_relaxed);
}

/* The limit is loose (the machine may be busy); a pool that lost a wake-up would not come back at all.
 * The time is no cost of dealing tasks to threads: tasks this short are mostly done by the caller alone
 * before a worker gets to them, hence the share beside it. */
static void ten_thousand_short_runs(void **state)
{
    (void)state;
    static const int threads[] = {0, 2, 4};
    for (int k = 0; k < 3; k++) {
        cpl_pool *pool = new_pool(threads[k]);
        atomic_int helped = 0;
        double start = seconds();
        for (int i = 0; i < 10000; i++)
            cpl_pool_run(pool, 8, who, &helped);
        double each = (seconds() - start) / 10000;
        print_message("%d threads: %.2f us a run of 8 empty tasks, %.1f %% of them done by workers\n",
                      cpl_pool_threads(pool), each * 1e6, helped / 800.0);
        assert_true(each < 2e-3);
        cpl_pool_free(pool);
    }
}

static void sleepers_wake_and_callers_sleep(void **state)
{
    (void)state;
    static tally t;
    cpl_pool *pool = new_pool(3);
    t.threads = 3;
    memset(&t.ran, 0, sizeof t.ran);
    for (int i = 0; i < 40; i++) {
        struct timespec pause = {0, (i % 8) * 100000}; /* 0 to 0.7 ms: awake, about to sleep, asleep */
        nanosleep(&pause, NULL);
        cpl_pool_run(pool, 12, count, &t);
    }
    for (int i = 0; i < 12; i++)
        assert_int_equal(t.ran[i], 40);
    cpl_pool_free(pool);
}

static void slow_last(void *arguments, int64_t task, int thread)
{
    (void)thread;
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
    atomic_fetch_add((atomic_int *)arguments, (int)task + 1);
}

static void slow_tasks_are_awaited(void **state)
{
    (void)state;
    atomic_int sum = 0;
    cpl_pool *pool = new_pool(4);
    for (int i = 0; i < 10; i++)
        cpl_pool_run(pool, 5, slow_last, &sum);
    assert_int_equal(sum, 150);
    cpl_pool_free(pool);
}

static void inner(void *arguments, int64_t task, int thread)
{
    tally *t = arguments;
    (void)thread;
    atomic_fetch_add(&t->ran[task], 1);
}

static void outer(void *arguments, int64_t task, int thread)
{
    tally *t = arguments;
    (void)task;
    (void)thread;
    cpl_pool_run(t->pool, 10, inner, t);
}

static void runs_inside_tasks_finish(void **state)
{
    (void)state;
    static tally t;
    t.pool = new_pool(4);
    for (int i = 0; i < 100; i++)
        cpl_pool_run(t.pool, 9, outer, &t);
    for (int i = 0; i < 10; i++)
        assert_int_equal(t.ran[i], 900);
    cpl_pool_free(t.pool);
}

static void *call_often(void *argument)
{
    tally *t = argument;
    for (int i = 0; i < 500; i++)
        cpl_pool_run(t->pool, 1 + i % 9, count, t);
    return NULL;
}

static void callers_take_turns(void **state)
{
    (void)state;
    static tally t;
    pthread_t callers[3];
    t.pool = new_pool(3);
    t.threads = 3;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, &t), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(callers[i], NULL);
    assert_int_equal(t.ran[0], 1500);
    assert_int_equal(t.ran[8], 165);
    assert_int_equal(t.clashes, 0);
    cpl_pool_free(t.pool);
}

static void *narrowed(void *argument)
{
    cpu_set_t set, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return NULL;
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &set))
            CPU_SET(i, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0)
        *(int *)argument = cpl_processors();
    return NULL;
}

static void processors_follow_affinity(void **state)
{
    (void)state;
    int got = 1;
    pthread_t thread;
    assert_true(cpl_processors() >= 1);
    assert_int_equal(pthread_create(&thread, NULL, narrowed, &got), 0);
    pthread_join(thread, NULL);
    assert_int_equal(got, 1);
    cpl_pool *pool = new_pool(0);
    assert_int_equal(cpl_pool_threads(pool), cpl_processors());
    cpl_pool_free(pool);
}

static void odd_numbers_are_refused(void **state)
{
    (void)state;
    cpl_pool *pool;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_pool_new(&pool, -1, &err), CPL_USAGE);
    assert_string_equal(err.line[0], "threads is -1, expected 0 to 1024");
    assert_null(pool);
    assert_int_equal(cpl_pool_new(&pool, 1000000, &err), CPL_USAGE);
    cpl_pool_free(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_task_runs_once),
    cmocka_unit_test(results_are_visible_between_runs),
    cmocka_unit_test(ten_thousand_short_runs),
    cmocka_unit_test(sleepers_wake_and_callers_sleep),
    cmocka_unit_test(slow_tasks_are_awaited),
    cmocka_unit_test(runs_inside_tasks_finish),
    cmocka_unit_test(callers_take_turns),
    cmocka_unit_test(processors_follow_affinity),
    cmocka_unit_test(odd_numbers_are_refused),
};

CPL_TEST_MAIN(tests)
