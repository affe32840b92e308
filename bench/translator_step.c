/* translator_step.c: time of one training step of reference B on given lengths: forward, loss, backward, Adam.
 *
 *   translator_step LENGTHS [STEPS] [BATCH] [UNITS] [VOCABULARY] [THREADS]
 *
 * LENGTHS holds a "source target" pair of lengths a line (the target's counts what is predicted); batch k takes lines
 * k·BATCH … (wrapping round). Ids are 4 + splitmix64(i + (seed << 32)) mod (vocabulary − 4), seed 2k+10 for sources and
 * 2k+11 for targets, so that other programs can do the same work. Prints the median step in ms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/hash.h"
#include "couplet.h"
#include "graph/program.h"
#include "model/model.h"

enum { WARM = 4, MOST = 1000 };

typedef struct work {
    long lengths[65536][2];
    long count, batch, vocabulary;
    int32_t *ids[3];
    const int32_t *rows[3][4096];
    int64_t length[2][4096];
} work;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int32_t word(uint64_t i, uint64_t seed, long vocabulary)
{
    return (int32_t)(4 + cpl_mix64(i + (seed << 32)) % (uint64_t)(vocabulary - 4));
}

/* Batch k: sources; targets in START w1 … w(n−1); targets out w1 … w(n−1) END. Rectangles are 32 wide in the count. */
static void fill(work *w, long k)
{
    long at[3] = {0, 0, 0};
    for (long i = 0; i < w->batch; i++) {
        const long *l = w->lengths[(k * w->batch + i) % w->count];
        w->length[0][i] = l[0], w->length[1][i] = l[1];
        for (int side = 0; side < 3; side++)
            w->rows[side][i] = w->ids[side] + at[side];
        for (long j = 0; j < l[0]; j++)
            w->ids[0][at[0]++] = word((uint64_t)(i * 32 + j), (uint64_t)(2 * k + 10), w->vocabulary);
        for (long j = 0; j < l[1]; j++) {
            int32_t next = word((uint64_t)(i * 32 + j), (uint64_t)(2 * k + 11), w->vocabulary);
            w->ids[1][at[1]++] = j ? w->ids[2][at[2] - 1] : 2;
            w->ids[2][at[2]++] = j == l[1] - 1 ? 3 : next;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cpl_status step(cpl_program *p, work *w, long k, cpl_error *err)
{
    fill(w, k);
    cpl_status s = cpl_feed_ids(p, "source", w->rows[0], w->length[0], w->batch, err);
    s = s ? s : cpl_feed_ids(p, "target_in", w->rows[1], w->length[1], w->batch, err);
    s = s ? s : cpl_feed_ids(p, "target_out", w->rows[2], w->length[1], w->batch, err);
    s = s ? s : cpl_run(p, CPL_TRAIN, err);
    return s ? s : cpl_adam(p, 1e-3, err);
}

static cpl_status run(work *w, long steps, long units, int threads, cpl_error *err)
{
    static double ms[MOST];
    cpl_config *config = NULL;
    cpl_program *p = NULL;
    cpl_status s = cpl_config_default(&config, err);
    if (s == CPL_OK)
        config->model.units = units;
    cpl_model_sizes n = {.config = config, .source_vocabulary = w->vocabulary, .target_vocabulary = w->vocabulary};
    cpl_compile_options options = {.name = "translator", .threads = threads};
    s = s ? s : cpl_compile(&p, cpl_translator.loss, &n, &options, err);
    for (long k = 0; s == CPL_OK && k < steps + WARM; k++) {
        double start = now();
        s = step(p, w, k % 50, err);
        double loss = s ? 0 : cpl_scalar(p, "loss");
        if (k >= WARM)
            ms[k - WARM] = 1e3 * (now() - start);
        if (s == CPL_OK && (k == 0 || k == steps + WARM - 1))
            printf("step %ld loss %.6f\n", k + 1, loss);
    }
    qsort(ms, (size_t)steps, sizeof *ms, by_value);
    if (s == CPL_OK)
        printf("median %.2f ms, least %.2f, most %.2f over %ld steps; %d threads, %lld plans\n", ms[steps / 2], ms[0],
               ms[steps - 1], steps, p->engine->threads, (long long)cpl_plans(p));
    cpl_program_free(p);
    cpl_config_free(config);
    return s;
}

static long argument(int argc, char **argv, int i, long fallback)
{
    return argc > i ? strtol(argv[i], NULL, 10) : fallback;
}

int main(int argc, char **argv)
{
    static work w;
    cpl_error err = CPL_ERROR_INIT;
    FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!f)
        return fprintf(stderr, "usage: translator_step LENGTHS [STEPS] [BATCH] [UNITS] [VOCABULARY] [THREADS]\n"), 2;
    while (w.count < 65536 && fscanf(f, "%ld %ld", &w.lengths[w.count][0], &w.lengths[w.count][1]) == 2)
        w.count++;
    fclose(f);
    long steps = argument(argc, argv, 2, 30);
    w.batch = argument(argc, argv, 3, 64);
    w.vocabulary = argument(argc, argv, 5, 5000);
    for (int i = 0; i < 3; i++)
        w.ids[i] = malloc((size_t)w.batch * 1024 * sizeof(int32_t));
    if (steps > MOST || w.batch > 4096 || !w.count || !w.ids[0] || !w.ids[1] || !w.ids[2])
        return 2;
    cpl_status s = run(&w, steps, argument(argc, argv, 4, 256), (int)argument(argc, argv, 6, 2), &err);
    for (int i = 0; i < 3; i++)
        free(w.ids[i]);
    if (s)
        cpl_error_print(&err, stderr);
    return (int)s;
}
