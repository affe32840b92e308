/* tell.c: what a program says about itself, at the level of information: what left a loop, what ran once although it
 * was asked for many times, why memory was planned again. */
#include <string.h>
#include "graph/program.h"

enum { NAMES = 12 }; /* in one line */

typedef struct names {
    cpl_str text;
    const char *last;
    int count;
} names;

/* Calls of one layer stand together: each layer is named once. */
static void add_name(names *n, const char *path)
{
    if (n->last && strcmp(n->last, path) == 0)
        return;
    n->last = path;
    if (n->count++ < NAMES)
        cpl_str_printf(&n->text, "%s%s", n->count > 1 ? ", " : "", path);
}

static void end_names(names *n)
{
    if (n->count > NAMES)
        cpl_str_printf(&n->text, " and %d more", n->count - NAMES);
}

static void tell_loop(const cpl_program *p, const cpl_graph *g, int loop)
{
    const cpl_loop_info *info = &g->loops[loop];
    names once = {.last = NULL};
    int inside = 0, outside = 0;
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        if (c->dead || c->uid < info->first_uid || c->uid >= info->last_uid)
            continue;
        int within = c->loop && (c->loop == loop + 1 || g->loops[c->loop - 1].outer == loop + 1);
        inside += within;
        outside += !within;
        if (!within)
            add_name(&once, c->path);
    }
    end_names(&once);
    cpl_log_info(&p->log, "loop '%s': %d calls run step by step, %d run once%s%s", info->name, inside, outside,
                 outside ? ": " : "", once.text.data ? once.text.data : "");
    cpl_str_free(&once.text);
}

/* Layers that a loop in C called again with the same inputs. */
static void tell_merged(const cpl_program *p, const cpl_graph *g)
{
    names list = {.last = NULL};
    int calls = 0;
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        if (c->dead || c->merged == 0 || strcmp(c->op->name, "reorder") == 0)
            continue;
        calls += c->merged;
        add_name(&list, c->path);
    }
    end_names(&list);
    if (calls)
        cpl_log_info(&p->log, "%d calls have the inputs of an earlier one and run once with it: %s", calls,
                     list.text.data ? list.text.data : "");
    cpl_str_free(&list.text);
}

void cpl_program_tell_graph(const cpl_program *p)
{
    const cpl_graph *g = p->schedule[CPL_EVALUATE].graph;
    for (int loop = 0; g && loop < g->loop_count; loop++)
        tell_loop(p, g, loop);
    if (g)
        tell_merged(p, g);
}

void cpl_program_tell_plan(const cpl_program *p, cpl_mode mode, const char *reason, size_t bytes)
{
    const cpl_binding *b = &p->binding;
    const cpl_graph *g = p->traced;
    char size[32];
    cpl_str text = {0};
    for (int i = 0; i < g->symbol_count; i++)
        if (g->symbols[i].kind == CPL_DIM_TIME && !g->symbols[i].nested)
            cpl_str_printf(&text, " %s=%lld (%lld in all)", g->symbols[i].name, (long long)b->longest[i],
                           (long long)b->rows[i]);
        else if (g->symbols[i].kind == CPL_DIM_PADDED)
            cpl_str_printf(&text, " %s=%lld", g->symbols[i].name, (long long)b->rows[i]);
    cpl_log_info(&p->log, "memory plan %lld of '%s', %s: batch=%lld%s is %s; %s, traces: %lld",
                 (long long)p->plans, p->name, mode == CPL_TRAIN ? "training" : "evaluation", (long long)b->batch,
                 text.data ? text.data : "", reason, cpl_bytes_text(size, sizeof size, bytes), (long long)p->traces);
    cpl_str_free(&text);
}
