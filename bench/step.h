/* step.h: what the benchmarks of a training step share: lengths from a file, ids that other programs can make too, and
 * the timed loop of forward, loss, backward and Adam. Each benchmark is one file with a main, so this is all static.
 *
 * LENGTHS holds a "source target" pair of lengths a line (the target's counts what is predicted); batch k takes lines
 * k·BATCH … (wrapping round). Word j of sentence i is 4 + splitmix64(i·width + j + (seed << 32)) mod (vocabulary − 4),
 * seed 2k+10 for sources and 2k+11 for targets, width being that of the other programs' rectangles. */
#ifndef CPL_BENCH_STEP_H
#define CPL_BENCH_STEP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "base/hash.h"
#include "couplet.h"
#include "graph/program.h"
#include "model/model.h"

enum { STEP_WARM = 4, STEP_MOST = 1000, STEP_BATCH = 4096, STEP_LENGTHS = 65536 };

typedef struct step_work {
    const char *usage;          /* set by the benchmark, like all up to steps */
    const cpl_model_kind *kind;
    const char *const *freeze;  /* parameters that the other programs' model does not have: they stay 0 */
    int freeze_count;
    long width[2];              /* of the rectangles of sources and targets, for the ids' numbers */
    long batches;               /* after as many, the first comes again */
    long batch, vocabulary, steps;
    long count, lengths[STEP_LENGTHS][2];
    int32_t *ids[3];
    const int32_t *rows[3][STEP_BATCH];
    int64_t length[2][STEP_BATCH];
} step_work;

static double step_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int32_t step_word(uint64_t i, uint64_t seed, long vocabulary)
{
    return (int32_t)(4 + cpl_mix64(i + (seed << 32)) % (uint64_t)(vocabulary - 4));
}

/* Batch k: sources; targets in START w1 … w(n−1); targets out w1 … w(n−1) END. */
static void step_fill(step_work *w, long k)
{
    long at[3] = {0, 0, 0};
    for (long i = 0; i < w->batch; i++) {
        const long *l = w->lengths[(k * w->batch + i) % w->count];
        w->length[0][i] = l[0], w->length[1][i] = l[1];
        for (int side = 0; side < 3; side++)
            w->rows[side][i] = w->ids[side] + at[side];
        for (long j = 0; j < l[0]; j++)
            w->ids[0][at[0]++] = step_word((uint64_t)(i * w->width[0] + j), (uint64_t)(2 * k + 10), w->vocabulary);
        for (long j = 0; j < l[1]; j++) {
            int32_t next = step_word((uint64_t)(i * w->width[1] + j), (uint64_t)(2 * k + 11), w->vocabulary);
            w->ids[1][at[1]++] = j ? w->ids[2][at[2] - 1] : 2;
            w->ids[2][at[2]++] = j == l[1] - 1 ? 3 : next;
        }
    }
}

static int step_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cpl_status step_once(cpl_program *p, step_work *w, long k, cpl_error *err)
{
    step_fill(w, k);
    cpl_status s = cpl_feed_ids(p, "source", w->rows[0], w->length[0], w->batch, err);
    s = s ? s : cpl_feed_ids(p, "target_in", w->rows[1], w->length[1], w->batch, err);
    s = s ? s : cpl_feed_ids(p, "target_out", w->rows[2], w->length[1], w->batch, err);
    s = s ? s : cpl_run(p, CPL_TRAIN, err);
    return s ? s : cpl_adam(p, 1e-3, err);
}

static long long step_parameters(const cpl_parameters *store)
{
    long long n = 0;
    for (size_t i = 0; i < cpl_parameters_count(store); i++)
        n += cpl_parameters_at(store, i)->trainable ? cpl_parameters_at(store, i)->elements : 0;
    return n;
}

/* Wall and processor time of a step, and what the program needs. Processor time of a step is the mean: what else runs
 * on the machine moves it least. */
static void step_tell(const cpl_program *p, double *ms, long steps, double cpu_ms)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    qsort(ms, (size_t)steps, sizeof *ms, step_by_value);
    printf("median %.2f ms, least %.2f, most %.2f over %ld steps, %.2f ms of processors each; %d threads, %lld plans\n",
           ms[steps / 2], ms[0], ms[steps - 1], steps, cpu_ms, p->engine->threads, (long long)cpl_plans(p));
    long long trained = step_parameters(p->engine->parameters);
    printf("%lld trained parameters, planned %.1f MiB, gradients and moments %.1f MiB, peak %.1f MiB\n", trained,
           (double)p->block_bytes / 1048576.0, (double)(3 * trained) * sizeof(float) / 1048576.0,
           (double)use.ru_maxrss / 1024.0);
}

static cpl_status step_run(step_work *w, const cpl_config *config, int threads, cpl_error *err)
{
    static double ms[STEP_MOST];
    cpl_program *p = NULL;
    cpl_model_sizes n = {.config = config, .source_vocabulary = w->vocabulary, .target_vocabulary = w->vocabulary};
    cpl_compile_options options = {.name = w->kind->name, .threads = threads, .freeze = w->freeze,
                                   .freeze_count = w->freeze_count};
    cpl_status s = cpl_compile(&p, w->kind->loss, &n, &options, err);
    clock_t cpu = 0;
    for (long k = 0; s == CPL_OK && k < w->steps + STEP_WARM; k++) {
        cpu = k == STEP_WARM ? clock() : cpu;
        double start = step_now();
        s = step_once(p, w, k % w->batches, err);
        double loss = s ? 0 : cpl_scalar(p, "loss");
        if (k >= STEP_WARM)
            ms[k - STEP_WARM] = 1e3 * (step_now() - start);
        if (s == CPL_OK && (k == 0 || k == w->steps + STEP_WARM - 1))
            printf("step %ld loss %.6f\n", k + 1, loss);
    }
    if (s == CPL_OK)
        step_tell(p, ms, w->steps, 1e3 * (double)(clock() - cpu) / (double)CLOCKS_PER_SEC / (double)w->steps);
    cpl_program_free(p);
    return s;
}

static long step_argument(int argc, char **argv, int i, long fallback)
{
    return argc > i ? strtol(argv[i], NULL, 10) : fallback;
}

/* The whole benchmark: lengths from argv[1], then the steps of this configuration. Returns main's status. */
static int step_main(step_work *w, int argc, char **argv, const cpl_config *config, int threads)
{
    cpl_error err = CPL_ERROR_INIT;
    FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!f)
        return fprintf(stderr, "usage: %s\n", w->usage), 2;
    while (w->count < STEP_LENGTHS && fscanf(f, "%ld %ld", &w->lengths[w->count][0], &w->lengths[w->count][1]) == 2)
        w->count++;
    fclose(f);
    for (int i = 0; i < 3; i++)
        w->ids[i] = malloc((size_t)w->batch * 1024 * sizeof(int32_t));
    if (w->steps < 1 || w->steps > STEP_MOST || w->batch > STEP_BATCH || !w->count || !w->ids[0] || !w->ids[1] ||
        !w->ids[2])
        return 2;
    cpl_status s = step_run(w, config, threads, &err);
    for (int i = 0; i < 3; i++)
        free(w->ids[i]);
    if (s)
        cpl_error_print(&err, stderr);
    return (int)s;
}

#endif
