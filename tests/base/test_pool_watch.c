/* A pool that is watched tells what its threads did; one that is not tells nothing. */
#include "support/run.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/threads.h"

enum { THREADS = 3 };

typedef struct told {
    atomic_int times[THREADS];
    atomic_int_fast64_t ns[THREADS];
    atomic_int backwards; /* a stretch that ends before it begins */
    atomic_int arrived;   /* tasks that run */
    int wanted;           /* no task ends before so many have begun */
    int64_t caller_task;  /* how long the caller's task goes on after that */
    int64_t other_task;   /* the others' */
} told;

static void watch(void *user, int thread, int64_t from, int64_t to)
{
    told *t = user;
    atomic_fetch_add(&t->times[thread], 1);
    atomic_fetch_add(&t->ns[thread], to - from);
    atomic_fetch_add(&t->backwards, to < from);
}

/* Tasks that wait for each other need a thread each. */
static void meet(void *arguments, int64_t task, int thread)
{
    told *t = arguments;
    (void)task;
    atomic_fetch_add(&t->arrived, 1);
    while (atomic_load(&t->arrived) < t->wanted)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    int64_t until = cpl_clock_ns() + (thread == 0 ? t->caller_task : t->other_task);
    while (cpl_clock_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static cpl_pool *new_pool(int threads)
{
    cpl_pool *pool;
    assert_int_equal(cpl_pool_new(&pool, threads, NULL), CPL_OK);
    return pool;
}

static void each_thread_tells_what_it_did(void **state)
{
    (void)state;
    cpl_pool *pool = new_pool(THREADS);
    told t = {.wanted = THREADS, .other_task = 20000000};
    cpl_pool_watch(pool, watch, &t);
    cpl_pool_run(pool, THREADS, meet, &t);
    /* All of it before the run returned: the others computed, the caller had done its task and waited. */
    for (int i = 1; i < THREADS; i++) {
        assert_int_equal(t.times[i], 1);
        assert_true(t.ns[i] >= 20000000);
    }
    assert_int_equal(t.times[0], 1);
    assert_true(t.ns[0] > 0);
    assert_int_equal(t.backwards, 0);
    cpl_pool_free(pool);
}

static void who_computes_alone_tells_nothing(void **state)
{
    (void)state;
    cpl_pool *pool = new_pool(THREADS), *alone = new_pool(1);
    told t = {.wanted = 1};
    cpl_pool_watch(pool, watch, &t);
    cpl_pool_watch(alone, watch, &t);
    cpl_pool_run(pool, 1, meet, &t);
    cpl_pool_run(alone, 100, meet, &t);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(t.times[i], 0);
    cpl_pool_free(pool);
    cpl_pool_free(alone);
}

static void nobody_watches_any_more(void **state)
{
    (void)state;
    cpl_pool *pool = new_pool(THREADS);
    told t = {.wanted = THREADS};
    cpl_pool_watch(pool, watch, &t);
    cpl_pool_watch(pool, NULL, NULL);
    cpl_pool_run(pool, THREADS, meet, &t);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(t.times[i], 0);
    assert_int_equal(t.arrived, THREADS);
    cpl_pool_free(pool);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_thread_tells_what_it_did),
    cmocka_unit_test(who_computes_alone_tells_nothing),
    cmocka_unit_test(nobody_watches_any_more),
};

CPL_TEST_MAIN(tests)
