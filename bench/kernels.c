/* kernels.c: speed of the matrix product of every kernel table on the shapes that training and decoding use.
 *
 *   kernels [threads [table]]      threads 1 (default) or 2, table: generic, avx2, … (default: all)
 *
 * Prints GFLOP/s, the share of the multiply-add peak, which a loop without memory measures first, then the GFLOP/s of
 * the product in bfloat16, emulated where the table does not multiply it, and how many times as fast it is. With two
 * threads each computes the half of the columns (or of the rows, where that is how the library cuts the
 * product) and the peak is that of two threads. Every figure is the best of several runs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "kernel/kernel.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { THREADS_MOST = 2, ROUNDS = 7, CHAINS = 12, TABLES = 8 };

typedef struct shape {
    const char *name;
    int64_t m, k, n;
    int transpose_a, transpose_b;
    int64_t row_block; /* rows of one call, 0: all */
    int split_rows;    /* two threads share the rows, else the columns */
} shape;

static const shape shapes[] = {
    {"recurrent step", 64, 256, 768, 0, 0, 0, 0},
    {"recurrent step", 32, 256, 768, 0, 0, 0, 0},
    {"recurrent step", 16, 256, 768, 0, 0, 0, 0},
    {"recurrent step", 1, 256, 768, 0, 0, 0, 0},
    {"step's dX, weights turned", 64, 768, 256, 0, 0, 0, 0},
    {"step's dX, transposed", 64, 768, 256, 0, 1, 0, 0},
    {"input projection", 1280, 256, 768, 0, 0, 0, 0},
    {"logits in blocks of 240", 1280, 256, 5000, 0, 0, 240, 0},
    {"logits of one row", 1, 256, 5000, 0, 0, 0, 0},
    {"logits dW", 256, 1280, 5000, 1, 0, 0, 0},
    {"logits dX", 1280, 5000, 256, 0, 1, 0, 1},
};

typedef struct worker {
    const cpl_kernels *table;
    const shape *s;
    const float *a, *b;
    float *c;
    void *scratch;
    int index, threads;
    int64_t repeats;
    double (*peak)(int64_t steps);
    double seconds;
    pthread_barrier_t *start;
} worker;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- peak: CHAINS independent sums, one multiply-add each per step; returns operations per step ---- */

static volatile float peak_sink;

#ifdef __x86_64__
#define PEAK(NAME, TARGET, VEC, LANES, SET, STEP)                                                                      \
    __attribute__((target(TARGET))) static double NAME(int64_t steps)                                                  \
    {                                                                                                                  \
        VEC sum[CHAINS];                                                                                               \
        VEC x = SET(0.999f);                                                                                           \
        VEC y = SET(0.001f);                                                                                           \
        for (int i = 0; i < CHAINS; i++)                                                                               \
            sum[i] = SET((float)i);                                                                                    \
        for (int64_t step = 0; step < steps; step++) {                                                                 \
            _Pragma("GCC unroll 16") for (int i = 0; i < CHAINS; i++) sum[i] = STEP;                                   \
        }                                                                                                              \
        for (int i = 0; i < CHAINS; i++)                                                                               \
            peak_sink = ((const float *)&sum[i])[0];                                                                   \
        return 2.0 * CHAINS * LANES;                                                                                   \
    }
PEAK(peak_generic, "sse2", __m128, 4, _mm_set1_ps, _mm_add_ps(_mm_mul_ps(sum[i], x), y))
PEAK(peak_avx2, "avx2,fma", __m256, 8, _mm256_set1_ps, _mm256_fmadd_ps(sum[i], x, y))
PEAK(peak_avx512, "avx512f", __m512, 16, _mm512_set1_ps, _mm512_fmadd_ps(sum[i], x, y))
#else
static double peak_generic(int64_t steps)
{
    float sum[4 * CHAINS] = {0};

    for (int64_t step = 0; step < steps; step++) {
        for (int i = 0; i < 4 * CHAINS; i++)
            sum[i] = sum[i] * 0.999f + 0.001f;
    }
    peak_sink = sum[0];
    return 8.0 * CHAINS;
}
#endif

static double (*peak_of(const char *table))(int64_t)
{
#ifdef __x86_64__
    if (strncmp(table, "avx512", 6) == 0)
        return peak_avx512;
    if (strcmp(table, "generic") != 0)
        return peak_avx2;
#else
    (void)table;
#endif
    return peak_generic;
}

/* ---- one thread's share of a product ---- */

static void multiply(const worker *w)
{
    const shape *s = w->s;
    int64_t half = s->split_rows ? s->m / w->threads : s->n / w->threads / 16 * 16;
    int64_t from = w->index * half;
    int64_t whole = s->split_rows ? s->m : s->n;
    int64_t size = w->index == w->threads - 1 ? whole - from : half;
    int64_t first = s->split_rows ? from : 0;
    int64_t end = s->split_rows ? from + size : s->m;
    int64_t column = s->split_rows ? 0 : from;
    int64_t block = s->row_block > 0 ? s->row_block : end - first;
    cpl_gemm g = {.transpose_a = s->transpose_a, .transpose_b = s->transpose_b, .k = s->k, .ldc = s->n};

    g.n = s->split_rows ? s->n : size;
    g.lda = s->transpose_a ? s->m : s->k;
    g.ldb = s->transpose_b ? s->k : s->n;
    g.b = w->b + (s->transpose_b ? column * g.ldb : column);
    for (int64_t i = first; i < end; i += block) {
        g.m = end - i < block ? end - i : block;
        g.a = w->a + (s->transpose_a ? i : i * g.lda);
        g.c = w->c + i * s->n + column;
        w->table->gemm(&g, w->scratch);
    }
}

static void *work(void *argument)
{
    worker *w = argument;
    double start;

    pthread_barrier_wait(w->start);
    start = now();
    if (w->s == NULL) {
        w->peak(w->repeats);
    } else {
        for (int64_t i = 0; i < w->repeats; i++)
            multiply(w);
    }
    w->seconds = now() - start;
    return NULL;
}

/* Seconds of the slowest thread, best of ROUNDS. */
static double measure(const worker *model, int threads)
{
    double best = 1e30;

    for (int round = 0; round < ROUNDS; round++) {
        worker workers[THREADS_MOST];
        pthread_t id[THREADS_MOST];
        pthread_barrier_t start;
        double slowest = 0.0;

        pthread_barrier_init(&start, NULL, (unsigned)threads);
        for (int t = 0; t < threads; t++) {
            workers[t] = *model;
            workers[t].index = t;
            workers[t].threads = threads;
            workers[t].start = &start;
            workers[t].scratch = (char *)model->scratch + (size_t)t * model->table->gemm_scratch;
            if (pthread_create(&id[t], NULL, work, &workers[t]) != 0)
                exit(1);
        }
        for (int t = 0; t < threads; t++) {
            pthread_join(id[t], NULL);
            slowest = workers[t].seconds > slowest ? workers[t].seconds : slowest;
        }
        best = slowest < best ? slowest : best;
        pthread_barrier_destroy(&start);
    }
    return best;
}

static float *filled(size_t floats)
{
    float *x = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);

    if (x == NULL)
        exit(1);
    for (size_t i = 0; i < floats; i++)
        x[i] = (float)((i * 2654435761u >> 7) % 2048) / 1024.0f - 1.0f;
    return x;
}

/* GFLOP/s of w's product. */
static double rate_of(worker *w, int threads)
{
    double flop = 2.0 * (double)w->s->m * (double)w->s->k * (double)w->s->n;

    w->repeats = (int64_t)(3e9 / flop) + 1;
    return flop * (double)w->repeats / measure(w, threads) / 1e9;
}

static void table_speed(const cpl_kernels *table, int threads, worker *w)
{
    cpl_kernels in_bf16 = cpl_kernels_in_bf16(table);
    double peak;

    w->table = table;
    w->scratch = filled(table->gemm_scratch / sizeof(float) * THREADS_MOST + 16);
    w->s = NULL;
    w->peak = peak_of(table->name);
    w->repeats = 4000000;
    peak = w->peak(1) * (double)w->repeats * threads / measure(w, threads) / 1e9;
    printf("%s, %d thread%s: peak %.1f GFLOP/s, scratch %zu KiB, bfloat16%s\n", table->name, threads,
           threads > 1 ? "s" : "", peak, table->gemm_scratch / 1024, table->multiplies_bf16 ? "" : " emulated");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = &shapes[i];
        double rate, rate_bf16;

        w->s = s;
        w->table = table;
        rate = rate_of(w, threads);
        w->table = &in_bf16;
        rate_bf16 = rate_of(w, threads);
        printf("  %5lld x %4lld x %4lld%s%s  %-26s %7.1f GFLOP/s  %3.0f %%   bfloat16 %7.1f  x %.2f\n", (long long)s->m,
               (long long)s->k, (long long)s->n, s->transpose_a ? " A'" : "   ", s->transpose_b ? " B'" : "   ",
               s->name, rate, 100.0 * rate / peak, rate_bf16, rate_bf16 / rate);
    }
    free(w->scratch);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    const cpl_kernels *tables[TABLES];
    int count = cpl_kernels_all(tables, TABLES);
    size_t largest = 1280 * 5000;
    worker w = {.a = filled(largest), .b = filled(largest), .c = filled(largest)};

    if (threads < 1 || threads > THREADS_MOST) {
        fprintf(stderr, "usage: kernels [1|2 [table]]\n");
        return 2;
    }
    for (int i = 0; i < count; i++) {
        if (argc > 2 ? strcmp(argv[2], tables[i]->name) == 0 : strcmp(tables[i]->name, "reference") != 0)
            table_speed(tables[i], threads, &w);
    }
    return 0;
}
