/* profile_report.c: a profile as JSON, and as a file with the trace; the end of a profiled run. */
#include "base/error.h"
#include "base/memory.h"
#include "graph/peak.h"
#include "train/trainer.h"

enum { DIGITS = 6 };

static double seconds(int64_t ns)
{
    return 1e-9 * (double)ns;
}

static double all_seconds(const cpl_train_profile *f)
{
    return seconds(f->ended - f->begun);
}

/* ---- as JSON ---- */

static void set_meter(const cpl_train_profile *f, cpl_json *to, const cpl_meter *m, int computes)
{
    cpl_json_set_real(to, "seconds", seconds(m->ns), DIGITS);
    if (computes && m->ns > 0)
        cpl_json_set_real(to, "busy", cpl_meter_busy(m, f->threads), DIGITS);
}

static cpl_json *phases_json(const cpl_train_profile *f)
{
    cpl_json *all = cpl_json_object();
    for (int i = 0; i <= CPL_PHASES; i++) {
        cpl_meter m = cpl_train_profile_phase(f, (cpl_phase)i);
        cpl_json *one = cpl_json_object();
        set_meter(f, one, &m, cpl_phase_computes((cpl_phase)i));
        cpl_json_set_real(one, "share", seconds(m.ns) / all_seconds(f), DIGITS);
        cpl_json_set(all, cpl_phase_name((cpl_phase)i), one);
    }
    return all;
}

static cpl_json *node_json(const cpl_train_profile *f, const cpl_profile_node *n)
{
    cpl_json *one = cpl_json_object();
    double s = seconds(n->row.meter.ns);
    cpl_json_set_text(one, "node", n->path);
    cpl_json_set_text(one, "op", n->op);
    cpl_json_set_text(one, "pass", n->mode == CPL_TRAIN ? n->pass : "validation");
    cpl_json_set_int(one, "calls", n->row.meter.count);
    set_meter(f, one, &n->row.meter, 1);
    if (n->mode == CPL_TRAIN)
        cpl_json_set_real(one, "share", s / seconds(f->steps.ns), DIGITS);
    if (n->row.flops > 0 && s > 0) {
        cpl_json_set_real(one, "flops", n->row.flops, 0);
        cpl_json_set_real(one, "gflops_per_second", 1e-9 * n->row.flops / s, DIGITS);
        cpl_json_set_real(one, "peak_share", n->row.flops / s / f->peak, DIGITS);
    }
    return one;
}

void cpl_train_profile_facts(const cpl_trainer *t, cpl_json *to)
{
    const cpl_train_profile *f = t->profile;
    size_t count, left_out, spans = cpl_trace_count(f->trace, &left_out);
    cpl_profile_node *nodes = cpl_train_profile_nodes(t, &count);
    cpl_json *list = nodes ? cpl_json_array() : NULL, *trace = cpl_json_object();
    double steps = seconds(f->steps.ns), flops = cpl_train_profile_flops(t);
    cpl_json_set_int(to, "steps", f->steps.count);
    cpl_json_set_real(to, "seconds", all_seconds(f), DIGITS);
    cpl_json_set_real(to, "step_seconds", steps, DIGITS);
    cpl_json_set_int(to, "threads", f->threads);
    cpl_json_set_text(to, "kernels", t->program->engine->kernels->name);
    cpl_json_set_text(to, "precision", cpl_trainer_precision(t));
    cpl_json_set_real(to, "processor_share", f->processors, DIGITS);
    cpl_json_set_real(to, "peak_gflops_per_second", 1e-9 * f->peak, DIGITS);
    cpl_json_set_real(to, "flops", flops, 0);
    cpl_json_set_real(to, "peak_share", flops / steps / f->peak, DIGITS);
    cpl_json_set(to, "phases", phases_json(f));
    for (size_t i = 0; nodes && i < count; i++)
        cpl_json_add(list, node_json(f, &nodes[i]));
    cpl_json_set(to, "nodes", list);
    cpl_json_set_int(trace, "steps", f->steps.count < CPL_TRACED_STEPS ? f->steps.count : CPL_TRACED_STEPS);
    cpl_json_set_int(trace, "validation_batches", f->batches < CPL_TRACED_BATCHES ? f->batches : CPL_TRACED_BATCHES);
    cpl_json_set_int(trace, "spans", (int64_t)spans);
    cpl_json_set_int(trace, "left_out", (int64_t)left_out);
    cpl_json_set(to, "trace", trace);
    cpl_release(nodes);
}

/* ---- the file ---- */

/* Names of the rows, as Chrome's format has them. */
static void add_names(const cpl_train_profile *f, cpl_str *to)
{
    cpl_str_add(to, "{\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [\n"
                "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"couplet train\"}}");
    for (int i = 0; i <= f->threads; i++) {
        cpl_str_printf(to, ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"args\": "
                       "{\"name\": \"", i);
        if (i == 0 || i == f->threads)
            cpl_str_add(to, i ? "batches" : "training");
        else
            cpl_str_printf(to, "thread %d", i);
        cpl_str_printf(to, "\"}},\n{\"name\": \"thread_sort_index\", \"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"args\": "
                       "{\"sort_index\": %d}}", i, i);
    }
}

static cpl_status write_text(cpl_writer *w, cpl_str *text, cpl_error *err)
{
    if (text->failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    cpl_status status = cpl_writer_write(w, text->data, text->length, err);
    cpl_str_clear(text);
    return status;
}

static cpl_status write_parts(const cpl_trainer *t, cpl_writer *w, cpl_str *text, cpl_error *err)
{
    add_names(t->profile, text);
    cpl_status status = write_text(w, text, err);
    if (status == CPL_OK)
        status = cpl_trace_write(t->profile->trace, w, err);
    if (status != CPL_OK)
        return status;
    cpl_json *facts = cpl_json_object();
    cpl_str_add(text, "\n],\n\"profile\": ");
    if (facts)
        cpl_train_profile_facts(t, facts);
    status = facts ? cpl_json_write(facts, text, err) : cpl_error_set(err, CPL_FAILED, "out of memory");
    cpl_json_free(facts);
    cpl_str_add(text, "}\n");
    return status == CPL_OK ? write_text(w, text, err) : status;
}

static cpl_status write_file(const cpl_trainer *t, const char *path, cpl_error *err)
{
    cpl_writer *w;
    cpl_str text = {0};
    cpl_status status = cpl_writer_open(&w, path, err);
    if (status != CPL_OK)
        return status;
    status = write_parts(t, w, &text, err);
    cpl_str_free(&text);
    if (status == CPL_OK)
        return cpl_writer_commit(w, err);
    cpl_writer_abandon(w);
    return status;
}

cpl_status cpl_train_profile_tell(cpl_trainer *t, cpl_error *err)
{
    cpl_train_profile *f = t->profile;
    const cpl_engine *e = t->program->engine;
    cpl_str tables = {0};
    cpl_train_profile_end(f);
    f->peak = cpl_peak(e->kernels, e->pool, t->training->precision == CPL_PRECISION_BFLOAT16);
    cpl_status status = write_file(t, t->options->folder->profile, err);
    if (status == CPL_OK)
        cpl_train_profile_table(t, &tables);
    if (status == CPL_OK && tables.failed)
        status = cpl_error_set(err, CPL_FAILED, "no memory for the tables of the profile");
    if (status == CPL_OK)
        cpl_trainer_tell_profile(t, tables.data);
    cpl_str_free(&tables);
    return status;
}
