/* profile_table.c: a profile for a person: phases and nodes, as two tables. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "train/trainer.h"

enum { ROWS_SHOWN = 25 };

#define PROCESSOR_LEAST 0.9 /* below it the machine was too busy for speeds to mean much */

static double seconds(int64_t ns)
{
    return 1e-9 * (double)ns;
}

static double all_seconds(const cpl_train_profile *f)
{
    return seconds(f->ended - f->begun);
}

static void add_percent(cpl_str *to, int width, double share)
{
    if (isfinite(share))
        cpl_str_printf(to, "%*.1f %%", width - 2, 100 * share);
    else
        cpl_str_printf(to, "%*s", width, "");
}

static void add_head(const cpl_trainer *t, cpl_str *to)
{
    const cpl_train_profile *f = t->profile;
    double steps = seconds(f->steps.ns), count = (double)f->steps.count, flops = cpl_train_profile_flops(t);
    cpl_str_printf(to, "profile of %" PRId64 " steps on %d threads, %s kernels%s, peak %.1f GFLOP/s", f->steps.count,
                   f->threads, t->program->engine->kernels->name,
                   t->training->precision == CPL_PRECISION_BFLOAT16 ? " in bfloat16" : "", 1e-9 * f->peak);
    if (f->steps.count > 0)
        cpl_str_printf(to, "; a step: %.4g ms, %.4g GFLOP, %.1f %% of the peak", 1e3 * steps / count,
                       1e-9 * flops / count, 100 * flops / steps / f->peak);
    cpl_str_add(to, "\n");
    if (f->processors < PROCESSOR_LEAST)
        cpl_str_printf(to, "the machine was busy: threads that worked had a processor for %.0f %% of the time, so "
                       "speeds are too low\n", 100 * f->processors);
}

static const char *const spoken[CPL_PHASES + 1] = {
    "waiting for data", "sampling targets", "feeding", "forward", "backward", "optimizer", "validation",
    "translating examples", "saving", "everything else"};

static int in_step(cpl_phase phase)
{
    return phase <= CPL_PHASE_OPTIMIZER;
}

static void add_phases(const cpl_trainer *t, cpl_str *to)
{
    const cpl_train_profile *f = t->profile;
    cpl_str_printf(to, "%-22s %10s %8s %9s %7s\n", "phase", "seconds", "share", "ms/step", "busy");
    for (int i = 0; i <= CPL_PHASES; i++) {
        cpl_meter m = cpl_train_profile_phase(f, (cpl_phase)i);
        if (m.count == 0 && i < CPL_PHASES)
            continue;
        cpl_str_printf(to, "%-22s %10.3f ", spoken[i], seconds(m.ns));
        add_percent(to, 8, seconds(m.ns) / all_seconds(f));
        if (in_step((cpl_phase)i) && f->steps.count > 0)
            cpl_str_printf(to, " %9.3f ", 1e3 * seconds(m.ns) / (double)f->steps.count);
        else
            cpl_str_printf(to, " %9s ", "");
        add_percent(to, 7, cpl_phase_computes((cpl_phase)i) ? cpl_meter_busy(&m, f->threads) : (double)NAN);
        cpl_str_add(to, "\n");
    }
    cpl_str_printf(to, "%-22s %10.3f\n", "all", all_seconds(f));
}

static void add_node(const cpl_trainer *t, const cpl_profile_node *n, int width, int op_width, cpl_str *to)
{
    const cpl_train_profile *f = t->profile;
    double s = seconds(n->row.meter.ns), steps = (double)f->steps.count, speed = s > 0 ? n->row.flops / s : 0;
    cpl_str_printf(to, "%-*s  %-*s  %-8s %6.1f %8.3f ", width, n->path, op_width, n->op, n->pass,
                   (double)n->row.meter.count / steps, 1e3 * s / steps);
    add_percent(to, 7, s / seconds(f->steps.ns));
    if (n->row.flops > 0)
        cpl_str_printf(to, " %7.1f ", 1e-9 * speed);
    else
        cpl_str_printf(to, " %7s ", "");
    add_percent(to, 7, n->row.flops > 0 ? speed / f->peak : (double)NAN);
    cpl_str_add(to, " ");
    add_percent(to, 7, cpl_meter_busy(&n->row.meter, f->threads));
    cpl_str_add(to, "\n");
}

/* Nodes of training alone: what validation takes is a phase. */
static void add_nodes(const cpl_trainer *t, const cpl_profile_node *nodes, size_t count, cpl_str *to)
{
    const cpl_train_profile *f = t->profile;
    int width = 4, op_width = 2;
    size_t all = 0, shown;
    cpl_profile_node rest = {.path = "", .op = "", .pass = ""};
    while (all < count && nodes[all].mode == CPL_TRAIN)
        all++;
    if (all == 0)
        return;
    shown = all > ROWS_SHOWN + 1 ? ROWS_SHOWN : all;
    for (size_t i = 0; i < shown; i++) {
        width = (int)strlen(nodes[i].path) > width ? (int)strlen(nodes[i].path) : width;
        op_width = (int)strlen(nodes[i].op) > op_width ? (int)strlen(nodes[i].op) : op_width;
    }
    cpl_str_printf(to, "%-*s  %-*s  %-8s %6s %8s %7s %7s %7s %7s\n", width, "node", op_width, "op", "pass", "calls",
                   "ms/step", "share", "GFLOP/s", "of peak", "busy");
    for (size_t i = 0; i < shown; i++)
        add_node(t, &nodes[i], width, op_width, to);
    for (size_t i = shown; i < all; i++)
        cpl_profile_row_add(&rest.row, &nodes[i].row);
    char name[40];
    snprintf(name, sizeof name, "%zu more", all - shown);
    rest.path = name;
    if (all > shown)
        add_node(t, &rest, width, op_width, to);
    cpl_str_add(to, "share: of the steps' time; busy: of the threads' time, how much they computed\n");
    for (size_t i = 0; i < all; i++)
        if (nodes[i].row.flops > f->peak * seconds(nodes[i].row.meter.ns)) {
            cpl_str_add(to, "more than the peak: repeated words are computed once and counted as often as they "
                        "occur\n");
            return;
        }
}

static void add_trace(const cpl_trainer *t, cpl_str *to)
{
    size_t left_out;
    cpl_trace_count(t->profile->trace, &left_out);
    cpl_str_printf(to, "'%s' has the first %d steps and batches of validation: open it in chrome://tracing or "
                   "ui.perfetto.dev", t->options->folder->profile, CPL_TRACED_STEPS);
    if (left_out > 0)
        cpl_str_printf(to, "; it had no room for %zu spans", left_out);
    cpl_str_add(to, "\n");
}

void cpl_train_profile_table(const cpl_trainer *t, cpl_str *to)
{
    size_t count;
    cpl_profile_node *nodes = cpl_train_profile_nodes(t, &count);
    add_head(t, to);
    add_phases(t, to);
    if (nodes)
        add_nodes(t, nodes, count, to);
    to->failed |= nodes == NULL;
    add_trace(t, to);
    cpl_release(nodes);
}
