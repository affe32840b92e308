/* peak.c: what the processor can do at most with the instruction set that was chosen: multiply-adds in registers, and
 * reading from each level of the caches. Best of many short rounds: other work on the machine only takes away, and the
 * shorter a round is, the sooner one is left alone. */
#include <stdio.h>
#include <unistd.h>

#include "api/bench/bench.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/peak.h"

static const double MIB = 1024.0 * 1024.0;
enum { ROUNDS = 40 };

static double round_seconds(const cpl_bench *b)
{
    double seconds = b->seconds / (8 * ROUNDS);
    return seconds < 2e-4 ? 2e-4 : seconds > 4e-3 ? 4e-3 : seconds;
}

/* ---- reading ---- */

typedef struct reading {
    const cpl_bench *b;
    const real *x;
    int64_t part, repeats; /* elements of each thread */
    real sink;
} reading;

static void run_reading(void *arguments, int64_t task, int thread)
{
    reading *r = arguments;
    real sum = 0;
    (void)thread;
    for (int64_t i = 0; i < r->repeats; i++)
        sum += r->b->engine->kernels->read(r->part, r->x + task * r->part);
    if (task == 0)
        r->sink = sum;
}

static double read_once(reading *r, int threads)
{
    double start = cpl_bench_now();
    if (threads == 1)
        run_reading(r, 0, 0);
    else
        cpl_pool_run(r->b->engine->pool, threads, run_reading, r);
    return cpl_bench_now() - start;
}

double cpl_bench_read_rate(const cpl_bench *b, int64_t bytes, int threads)
{
    int64_t part = bytes / (int64_t)sizeof(real) / threads;
    part = part < 64 ? 64 : part / 16 * 16;
    int64_t all = part * threads;
    real *x = cpl_alloc_aligned((size_t)all * sizeof *x, 64);
    if (!x)
        return 0;
    for (int64_t i = 0; i < all; i++)
        x[i] = (real)1e-3;
    reading r = {.b = b, .x = x, .part = part, .repeats = 1};
    double seconds = read_once(&r, threads), best = 0, stop = cpl_bench_now() + 40 * ROUNDS * round_seconds(b);
    r.repeats = (int64_t)(round_seconds(b) / (seconds > 1e-8 ? seconds : 1e-8)) + 1;
    for (int round = 0; round < ROUNDS && (round < 3 || cpl_bench_now() < stop); round++) {
        double rate = (double)all * sizeof *x * (double)r.repeats / read_once(&r, threads);
        best = rate > best ? rate : best;
    }
    cpl_release(x);
    return best;
}

/* Of a level. sysconf comes second: on some processors it counts what is not there for one core. */
static int64_t cache_bytes(int level, int name, int64_t otherwise)
{
    char path[80];
    long long kib = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", level);
    FILE *f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%12lldK", &kib) != 1)
            kib = 0;
        fclose(f);
    }
    long bytes = sysconf(name);
    return kib > 0 ? (int64_t)kib * 1024 : bytes > 0 ? bytes : otherwise;
}

/* Half a cache, so that all of it stays; of memory four times the last cache. A second-level cache is one core's. */
static void measure_reading(cpl_bench *b)
{
    int threads = b->engine->threads;
    int64_t l2 = cache_bytes(2, _SC_LEVEL2_CACHE_SIZE, 256 << 10);
    int64_t l3 = cache_bytes(3, _SC_LEVEL3_CACHE_SIZE, 0);
    int64_t memory = 4 * (l3 > l2 ? l3 : l2);
    memory = memory < 64 << 20 ? 64 << 20 : memory > 512 << 20 ? 512 << 20 : memory;
    cpl_bench_reading all[] = {{"L2", l2 / 2, l2 / 2 * threads, 0, 0}, {"L3", l3 / 2, l3 / 2, 0, 0},
                               {"memory", memory, memory, 0, 0}};
    for (int i = 0; i < CPL_BENCH_READINGS; i++) {
        cpl_bench_reading *r = &b->peak.reading[b->peak.readings];
        if (all[i].bytes_all == 0)
            continue;
        *r = all[i];
        r->one = cpl_bench_read_rate(b, r->bytes_one, 1);
        r->all = threads == 1 ? r->one : cpl_bench_read_rate(b, r->bytes_all, threads);
        b->peak.readings++;
    }
}

static void measure_operations(cpl_bench *b, cpl_pool *one)
{
    const cpl_kernels *k = b->engine->kernels;
    b->peak.float32_one = cpl_peak(k, one, 0);
    b->peak.float32_all = cpl_peak(k, b->engine->pool, 0);
    if (k->multiplies_bf16) {
        b->peak.bfloat16_one = cpl_peak(k, one, 1);
        b->peak.bfloat16_all = cpl_peak(k, b->engine->pool, 1);
    }
}

cpl_status cpl_bench_measure_peak(cpl_bench *b, cpl_error *err)
{
    cpl_pool *one;
    cpl_bench_tell(b, "peak of the processor …");
    CPL_TRY(cpl_pool_new(&one, 1, err), err, "cannot measure the peak of one thread");
    measure_operations(b, one);
    cpl_pool_free(one);
    measure_reading(b);
    for (int i = 0; i < b->peak.readings; i++)
        if (b->peak.reading[i].all <= 0)
            CPL_FAIL(err, CPL_FAILED, "out of memory: reading %s needs %.0f MiB", b->peak.reading[i].level,
                     (double)b->peak.reading[i].bytes_all / MIB);
    return CPL_OK;
}

double cpl_bench_limit(const cpl_bench *b, const cpl_bench_row *row)
{
    int in_bf16 = row->precision[0] == 'b' && row->tokens == 0 && b->peak.bfloat16_all > 0;
    return in_bf16 ? b->peak.bfloat16_all : b->peak.float32_all;
}
