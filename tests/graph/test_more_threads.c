/* Case J02: more threads than processors, and several programs at once, cost next to nothing. What is compared is the
 * time of processors, which other work on the machine hardly changes: threads that spin or wake each other for nothing
 * would use much more of it. Elapsed times stand in bench/LOG.md. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include "graph/translator_test.h"

enum { ROUNDS = 10, RUNS = 3, KINDS = 3, AT_ONCE = 4 };

/* Of the least time of one thread; 1.16 is what 8 threads take on 2 processors. A sanitizer's threads cost more. */
static const double allowed = 1.5;

/* Of all threads of this process. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static cpl_program *small(const translator *t, int threads)
{
    return compiled(cpl_translator.loss, &t->sizes, &(cpl_compile_options){.threads = threads});
}

/* Takes the time of some steps into *least; the loss of the last one. */
static double steps(cpl_program *p, double *least)
{
    double start = seconds();
    for (int i = 0; i < RUNS; i++) {
        translator_feed(p, BATCH_MOST, WIDTH_MOST, 9);
        p->step = 0;
        run(p, CPL_TRAIN);
    }
    double now = seconds() - start;
    *least = *least < now ? *least : now;
    return cpl_scalar(p, "loss");
}

/* One thread, and two and four times as many as there are processors. */
static void case_J02_more_threads_than_processors(void **state)
{
    (void)state;
    int processors = cpl_processors(), threads[KINDS] = {1, 2 * processors, 4 * processors};
    translator t = translator_open("64", "0");
    cpl_program *p[KINDS];
    double least[KINDS] = {1e9, 1e9, 1e9}, loss = 0;
    for (int i = 0; i < KINDS; i++) {
        p[i] = small(&t, threads[i]);
        assert_int_equal(p[i]->engine->threads, threads[i]);
        double now = steps(p[i], &(double){0});
        assert_true(i == 0 || now == loss);
        loss = now;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < KINDS; i++)
            steps(p[i], &least[i]);
    print_message("processor seconds of %d steps with 1, %d, %d threads: %.4f %.4f %.4f\n", RUNS, threads[1],
                  threads[2], least[0], least[1], least[2]);
    for (int i = 1; i < KINDS; i++)
        assert_true(least[i] < allowed * least[0] || getenv("COUPLET_SANITIZED"));
    for (int i = 0; i < KINDS; i++)
        cpl_program_free(p[i]);
    translator_close(&t);
}

static void *request(void *argument)
{
    double unused = 0;
    steps(argument, &unused);
    return NULL;
}

/* Four callers, each with a program and pool of its own of as many threads as there are processors. */
static void case_J02_four_requests_at_once(void **state)
{
    (void)state;
    translator t = translator_open("64", "0");
    cpl_program *p[AT_ONCE];
    double together = 1e9, in_turn = 1e9;
    for (int i = 0; i < AT_ONCE; i++)
        p[i] = small(&t, 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t caller[AT_ONCE];
        double start = seconds();
        for (int i = 0; i < AT_ONCE; i++)
            steps(p[i], &(double){0});
        double middle = seconds();
        for (int i = 0; i < AT_ONCE; i++)
            assert_int_equal(pthread_create(&caller[i], NULL, request, p[i]), 0);
        for (int i = 0; i < AT_ONCE; i++)
            pthread_join(caller[i], NULL);
        double end = seconds();
        in_turn = in_turn < middle - start ? in_turn : middle - start;
        together = together < end - middle ? together : end - middle;
        for (int i = 1; i < AT_ONCE; i++)
            assert_true(cpl_scalar(p[i], "loss") == cpl_scalar(p[0], "loss"));
    }
    print_message("processor seconds of %d requests in turn %.4f, at once %.4f\n", AT_ONCE, in_turn, together);
    assert_true(together < allowed * in_turn || getenv("COUPLET_SANITIZED"));
    for (int i = 0; i < AT_ONCE; i++)
        cpl_program_free(p[i]);
    translator_close(&t);
}

/* The default number of threads is what this very process may use, not what the machine has. */
static void case_J02_default_is_what_is_allowed(void **state)
{
    (void)state;
    translator t = translator_open("8", "0");
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int allowed_processors = CPU_COUNT(&before), first = 0;
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    cpl_program *p = small(&t, 0);
    assert_true(p->engine->threads >= 1 && p->engine->threads <= allowed_processors);
    cpl_program_free(p);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    p = small(&t, 0);
    assert_int_equal(p->engine->threads, 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    cpl_program_free(p);
    translator_close(&t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(case_J02_more_threads_than_processors),
    cmocka_unit_test(case_J02_four_requests_at_once),
    cmocka_unit_test(case_J02_default_is_what_is_allowed),
};

CPL_TEST_MAIN(tests)
