/* show.c: what was measured as a table to read. */
#include <stdio.h>
#include <string.h>

#include "api/bench/bench.h"

static const double MIB = 1024.0 * 1024.0;

static double share_of(const cpl_bench *b, const cpl_bench_row *r)
{
    return 100 * r->operations / (r->ms / 1e3) / cpl_bench_limit(b, r);
}

static void add_peak(const cpl_bench *b, cpl_str *to)
{
    const cpl_bench_peak *p = &b->peak;
    int threads = b->engine->threads;
    cpl_str_printf(to, "kernels %s, %d thread%s\n\n%-32s %10s", b->engine->kernels->name, threads,
                   threads > 1 ? "s" : "", "peak of this processor", "1 thread");
    cpl_str_printf(to, threads > 1 ? " %7d threads\n" : "\n", threads);
    cpl_str_printf(to, "%-32s %10.1f %15.1f  GFLOP/s\n", "multiply-add, float32", p->float32_one / 1e9,
                   p->float32_all / 1e9);
    if (p->bfloat16_all > 0)
        cpl_str_printf(to, "%-32s %10.1f %15.1f  GFLOP/s\n", "multiply-add, bfloat16", p->bfloat16_one / 1e9,
                       p->bfloat16_all / 1e9);
    for (int i = 0; i < p->readings; i++) {
        const cpl_bench_reading *r = &p->reading[i];
        char name[64];
        snprintf(name, sizeof name, "read %s (%.4g MiB)", r->level, (double)r->bytes_all / MIB);
        cpl_str_printf(to, "%-32s %10.1f %15.1f  GB/s\n", name, r->one / 1e9, r->all / 1e9);
    }
}

static int is(const cpl_bench_row *r, const char *work)
{
    return strcmp(r->work, work) == 0;
}

static int trains(const cpl_bench_row *r)
{
    return !is(r, "decode") && !is(r, "kernel") && !is(r, "growth");
}

static void add_training(const cpl_bench *b, const cpl_bench_row *r, int first, cpl_str *to)
{
    if (first)
        cpl_str_printf(to, "\n%-12s %5s %6s %7s %-9s %9s %9s %9s %9s %6s %8s %8s\n", "training step", "batch", "units",
                       "words", "precision", "ms", "least", "tokens/s", "GFLOP/s", "share", "plan MiB", "peak MiB");
    cpl_str_printf(to, "%-13s %5lld %6lld %7lld %-9s %9.2f %9.2f %9.0f %9.1f %4.0f %% %8.1f %8.1f\n", r->work,
                   (long long)r->batch, (long long)r->units, (long long)r->vocabulary, r->precision, r->ms, r->ms_least,
                   r->tokens_per_s, r->operations / r->ms / 1e6, share_of(b, r),
                   (double)(r->planned_bytes + r->state_bytes) / MIB, (double)r->peak_bytes / MIB);
}

static void add_decoding(const cpl_bench *b, const cpl_bench_row *r, int first, cpl_str *to)
{
    if (first)
        cpl_str_printf(to, "\n%-13s %5s %6s %7s %-9s %9s %9s %9s %9s %6s %8s\n", "greedy decode", "batch", "units",
                       "words", "weights", "ms", "us/token", "tokens/s", "GFLOP/s", "share", "peak MiB");
    cpl_str_printf(to, "%-13s %5lld %6lld %7lld %-9s %9.3f %9.2f %9.0f %9.1f %4.0f %% %8.1f\n", "", (long long)r->batch,
                   (long long)r->units, (long long)r->vocabulary, r->precision, r->ms,
                   1e3 * r->ms / (double)(r->tokens * r->batch), r->tokens_per_s, r->operations / r->ms / 1e6,
                   share_of(b, r), (double)r->peak_bytes / MIB);
    if (r->step_us > 0)
        cpl_str_printf(to, "%-13s a step alone takes %.2f us and reads %.2f MiB of weights at %.1f GB/s: %.0f %% of "
                           "reading them alone\n",
                       "", r->step_us, r->step_bytes / MIB, r->step_bytes / r->step_us / 1e3,
                       100 * r->step_bytes / r->step_us * 1e6 / r->read_rate);
}

static void add_kernel(const cpl_bench *b, const cpl_bench_row *r, int first, cpl_str *to)
{
    if (first)
        cpl_str_printf(to, "\n%-28s %18s %-9s %9s %9s %6s\n", "product", "m x k x n", "precision", "ms", "GFLOP/s",
                       "share");
    char shape[48];
    snprintf(shape, sizeof shape, "%lld x %lld x %lld", (long long)r->m, (long long)r->k, (long long)r->n);
    cpl_str_printf(to, "%-28s %18s %-9s %9.4f %9.1f %4.0f %%", r->name, shape, r->precision, r->ms,
                   r->operations / r->ms / 1e6, share_of(b, r));
    if (r->step_us > 0)
        cpl_str_printf(to, "  reads %.1f GB/s, %.0f %%", r->step_bytes / r->step_us / 1e3,
                       100 * r->step_bytes / r->step_us * 1e6 / r->read_rate);
    cpl_str_add(to, "\n");
}

static void add_growth(const cpl_bench_row *r, int first, cpl_str *to)
{
    if (first)
        cpl_str_printf(to, "\n%-17s %6s %9s %9s %9s %9s %9s\n", "translator's step", "", "ms", "us/token", "tokens/s",
                       "plan MiB", "peak MiB");
    cpl_str_printf(to, "%-17s %6lld %9.2f %9.3f %9.0f %9.1f %9.1f\n", r->name, (long long)r->size, r->ms,
                   1e6 / r->tokens_per_s, r->tokens_per_s, (double)(r->planned_bytes + r->state_bytes) / MIB,
                   (double)r->peak_bytes / MIB);
}

void cpl_bench_show(const cpl_bench *b, cpl_str *to)
{
    int seen[4] = {0};
    add_peak(b, to);
    for (size_t i = 0; i < b->count; i++) {
        const cpl_bench_row *r = &b->rows[i];
        if (is(r, "decode"))
            add_decoding(b, r, !seen[0]++, to);
        else if (is(r, "kernel"))
            add_kernel(b, r, !seen[1]++, to);
        else if (is(r, "growth"))
            add_growth(r, !seen[2]++, to);
        else if (trains(r))
            add_training(b, r, !seen[3]++, to);
    }
}
