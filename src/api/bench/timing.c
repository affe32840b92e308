/* timing.c: the loop that times steps, and what a process needs for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "api/bench/bench.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "train/train.h"

enum { WARM = 3, LEAST = 3, MOST = 1 << 20 };

double cpl_bench_now(void)
{
    return 1e-9 * (double)cpl_clock_ns();
}

/* Seconds since this process began, to the hundredth that the system keeps; 0: it does not say. */
static double process_age(void)
{
    struct timespec t;
    char text[1024];
    unsigned long long ticks = 0;
    FILE *f = fopen("/proc/self/stat", "re");
    if (!f || clock_gettime(CLOCK_BOOTTIME, &t) != 0)
        return f ? (void)fclose(f), 0 : 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    /* The name in parentheses is the second field, and may hold spaces; the start is the 22nd. */
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        ticks = strtoull(at + 1, NULL, 10);
    return ticks ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec - (double)ticks / (double)sysconf(_SC_CLK_TCK) : 0;
}

static double processor_seconds(void)
{
    struct rusage use;
    if (getrusage(RUSAGE_SELF, &use) != 0)
        return 0;
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

uint64_t cpl_bench_forget_peak(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (f) {
        fputs("5\n", f);
        fclose(f);
    }
    f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%*u %18llu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int goes_on(const cpl_bench *b, int64_t count, double seconds)
{
    if (b->options->steps > 0)
        return count < b->options->steps;
    return count < LEAST || (seconds < b->seconds && count < MOST);
}

typedef struct timed {
    double *ms;
    size_t count, capacity;
    double seconds, tokens, operations;
} timed;

static cpl_status run_timed(const cpl_bench *b, cpl_bench_step step, void *user, timed *t, cpl_error *err)
{
    while (goes_on(b, (int64_t)t->count, t->seconds)) {
        cpl_bench_done done = {0};
        if (cpl_grow(&t->ms, &t->capacity, t->count + 1, sizeof *t->ms))
            CPL_FAIL(err, CPL_FAILED, "out of memory for the times of %zu steps", t->count + 1);
        double start = cpl_bench_now();
        cpl_status status = step(user, WARM + (int64_t)t->count, &done, err);
        if (status != CPL_OK)
            return status;
        double seconds = cpl_bench_now() - start;
        t->ms[t->count++] = 1e3 * seconds;
        t->seconds += seconds;
        t->tokens += done.tokens;
        t->operations += done.operations;
    }
    return CPL_OK;
}

cpl_status cpl_bench_time(const cpl_bench *b, cpl_bench_step step, void *user, cpl_bench_row *row, cpl_error *err)
{
    timed t = {0};
    for (int64_t i = 0; i < WARM; i++) {
        cpl_bench_done done;
        cpl_status status = step(user, i, &done, err);
        if (status != CPL_OK)
            return status;
        if (i == 0)
            row->setup_s = cpl_bench_now() - b->started;
        if (i == 0 && b->count == 1)
            row->first_step_s = process_age();
    }
    double processors = processor_seconds();
    cpl_status status = run_timed(b, step, user, &t, err);
    if (status == CPL_OK) {
        double n = (double)t.count;
        qsort(t.ms, t.count, sizeof *t.ms, by_value);
        row->steps = (int64_t)t.count;
        row->ms = 0.5 * (t.ms[t.count / 2] + t.ms[(t.count - 1) / 2]);
        row->ms_least = t.ms[0], row->ms_most = t.ms[t.count - 1];
        row->cpu_ms = 1e3 * (processor_seconds() - processors) / n;
        row->tokens_per_s = t.tokens / t.seconds;
        row->operations = t.operations / n;
        row->peak_bytes = cpl_peak_rss();
    }
    cpl_release(t.ms);
    return status;
}
