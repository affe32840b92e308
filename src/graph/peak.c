/* peak.c: measures multiply-adds on all threads at once.
 *
 * Each thread's speed is that of the time for which it had a processor: other programs make no difference but through
 * what processors share. A try gives each thread one task. A try in which one of them came too late and another did two
 * says nothing of all together, and counts only, scaled, when there is no better one. */
#include "graph/peak.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"

typedef struct job {
    const cpl_kernels *kernels;
    int64_t rounds;
    int bf16;
    double *speed; /* of each thread in this try; 0: it did no task */
} job;

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the processor time it took. */
static double work(job *j, int thread)
{
    real sink;
    double begun = processor_seconds(), operations = j->kernels->multiply_adds(j->rounds, j->bf16, &sink);
    double took = processor_seconds() - begun;
    j->speed[thread] = took > 0 ? operations / took : 0;
    return took;
}

static void run_task(void *arguments, int64_t task, int thread)
{
    (void)task;
    work(arguments, thread);
}

double cpl_peak(const cpl_kernels *kernels, cpl_pool *pool, int bf16)
{
    const int64_t all_ns = 50000000, start = cpl_clock_ns();
    int threads = cpl_pool_threads(pool);
    job j = {.kernels = kernels, .rounds = 64, .bf16 = bf16 && kernels->multiplies_bf16,
             .speed = cpl_alloc((size_t)threads, sizeof *j.speed)};
    double best[2] = {0, 0}; /* of tries of some threads, scaled; of all */
    while (j.speed && work(&j, 0) < 1e-3) /* a try takes about a millisecond */
        j.rounds *= 2;
    while (j.speed && (cpl_clock_ns() - start < all_ns || !(best[0] + best[1] > 0))) {
        double sum = 0;
        int took_part = 0;
        memset(j.speed, 0, (size_t)threads * sizeof *j.speed);
        cpl_pool_run(pool, threads, run_task, &j);
        for (int i = 0; i < threads; i++)
            sum += j.speed[i], took_part += j.speed[i] > 0;
        sum *= took_part ? (double)threads / took_part : 0;
        best[took_part == threads] = sum > best[took_part == threads] ? sum : best[took_part == threads];
    }
    cpl_release(j.speed);
    return best[1] > 0 ? best[1] : best[0];
}
