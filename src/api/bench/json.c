/* json.c: what was measured as one JSON object. The names are part of the interface: docs/bench.md lists them. */
#include "api/bench/bench.h"
#include "base/error.h"

/* A figure that a row does not have is left out. */
static void real_of(cpl_json *o, const char *key, double value, int digits)
{
    if (value != 0)
        cpl_json_set_real(o, key, value, digits);
}

static void int_of(cpl_json *o, const char *key, int64_t value)
{
    if (value != 0)
        cpl_json_set_int(o, key, value);
}

static cpl_json *peak_of(const cpl_bench *b)
{
    const cpl_bench_peak *p = &b->peak;
    cpl_json *o = cpl_json_object(), *list = cpl_json_array();
    cpl_json_set_real(o, "float32_gflops_1", p->float32_one / 1e9, 5);
    cpl_json_set_real(o, "float32_gflops", p->float32_all / 1e9, 5);
    real_of(o, "bfloat16_gflops_1", p->bfloat16_one / 1e9, 5);
    real_of(o, "bfloat16_gflops", p->bfloat16_all / 1e9, 5);
    for (int i = 0; i < p->readings; i++) {
        const cpl_bench_reading *r = &p->reading[i];
        cpl_json *level = cpl_json_object();
        cpl_json_set_text(level, "level", r->level);
        cpl_json_set_int(level, "bytes_1", r->bytes_one);
        cpl_json_set_int(level, "bytes", r->bytes_all);
        cpl_json_set_real(level, "gbytes_per_s_1", r->one / 1e9, 5);
        cpl_json_set_real(level, "gbytes_per_s", r->all / 1e9, 5);
        cpl_json_add(list, level);
    }
    cpl_json_set(o, "read", list);
    return o;
}

static void set_sizes(cpl_json *o, const cpl_bench_row *r)
{
    int_of(o, "batch", r->batch);
    int_of(o, "units", r->units);
    int_of(o, "vocabulary", r->vocabulary);
    int_of(o, "parameters", r->parameters);
    int_of(o, "tokens", r->tokens);
    int_of(o, "size", r->size);
    int_of(o, "m", r->m);
    int_of(o, "k", r->k);
    int_of(o, "n", r->n);
}

static void set_times(cpl_json *o, const cpl_bench *b, const cpl_bench_row *r)
{
    cpl_json_set_int(o, "steps", r->steps);
    cpl_json_set_real(o, "ms", r->ms, 6);
    cpl_json_set_real(o, "ms_least", r->ms_least, 6);
    cpl_json_set_real(o, "ms_most", r->ms_most, 6);
    cpl_json_set_real(o, "cpu_ms", r->cpu_ms, 6);
    real_of(o, "tokens_per_s", r->tokens_per_s, 6);
    cpl_json_set_real(o, "gflop", r->operations / 1e9, 6);
    cpl_json_set_real(o, "gflops", r->operations / r->ms / 1e6, 6);
    cpl_json_set_real(o, "share", r->operations / (r->ms / 1e3) / cpl_bench_limit(b, r), 5);
}

/* Of products with one row, whose limit is how fast their weights come. */
static void set_reading(cpl_json *o, const cpl_bench_row *r)
{
    if (r->step_bytes <= 0 || r->step_us <= 0 || r->read_rate <= 0)
        return;
    double rate = r->step_bytes / r->step_us * 1e6;
    cpl_json_set_real(o, "step_us", r->step_us, 6);
    cpl_json_set_int(o, "read_bytes", (int64_t)r->step_bytes);
    cpl_json_set_real(o, "gbytes_per_s", rate / 1e9, 5);
    cpl_json_set_real(o, "read_share", rate / r->read_rate, 5);
}

static cpl_json *row_of(const cpl_bench *b, const cpl_bench_row *r)
{
    cpl_json *o = cpl_json_object();
    cpl_json_set_text(o, "work", r->work);
    if (r->name[0])
        cpl_json_set_text(o, "name", r->name);
    cpl_json_set_text(o, "precision", r->precision);
    set_sizes(o, r);
    set_times(o, b, r);
    set_reading(o, r);
    int_of(o, "planned_bytes", (int64_t)r->planned_bytes);
    int_of(o, "state_bytes", (int64_t)r->state_bytes);
    int_of(o, "base_bytes", (int64_t)r->base_bytes);
    int_of(o, "peak_bytes", (int64_t)r->peak_bytes);
    real_of(o, "setup_s", r->setup_s, 5);
    real_of(o, "first_step_s", r->first_step_s, 5);
    real_of(o, "first_loss", r->first_loss, 7);
    real_of(o, "last_loss", r->last_loss, 7);
    return o;
}

cpl_status cpl_bench_write_json(const cpl_bench *b, cpl_str *to, cpl_error *err)
{
    cpl_json *root = cpl_json_object(), *list = cpl_json_array();
    if (!root || !list) {
        cpl_json_free(root);
        cpl_json_free(list);
        CPL_FAIL(err, CPL_FAILED, "out of memory for the results");
    }
    cpl_json_set_text(root, "version", CPL_VERSION_STRING);
    cpl_json_set_text(root, "kernels", b->engine->kernels->name);
    cpl_json_set_int(root, "threads", b->engine->threads);
    cpl_json_set(root, "peak", peak_of(b));
    for (size_t i = 0; i < b->count; i++)
        cpl_json_add(list, row_of(b, &b->rows[i]));
    cpl_json_set(root, "results", list);
    cpl_status status = cpl_json_write(root, to, err);
    cpl_json_free(root);
    cpl_str_add(to, "\n");
    return status;
}
