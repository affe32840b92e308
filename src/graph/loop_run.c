/* loop_run.c: runs the calls of a loop step by step.
 *
 * A step of packed rows is a piece of the whole tensor, so a body's calls run on views: at step k the time has length
 * 1 for the sentences that are still there and 0 for the others. A loop in the steps of another (nest.c) runs as a
 * whole in each of them, on views of the views. Carried states go through the ops `previous` and `nest_previous`. */
#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"
#include "graph/program.h"

/* The calls of a loop, or of a loop in its steps. */
typedef struct piece {
    cpl_program *p;
    const cpl_graph *g;
    const cpl_memory_plan *plan;
    size_t first, last;
    int loop; /* 1 + its number */
} piece;

/* Makes step k of the loop's time what all calls see. */
static void enter_step(cpl_program *p, int64_t k, int64_t others[CPL_MAX_SYMBOLS])
{
    cpl_loop_step *l = &p->loop;
    const cpl_symbol *symbols = p->traced->symbols;
    const cpl_geometry *w = &l->whole;
    int64_t active = cpl_geometry_active(w, k);
    for (int64_t i = 0; i < w->batch; i++)
        l->length[i] = i < active;
    l->step = k;
    l->row = w->offset[k];
    l->offset[0] = 0, l->offset[1] = (int32_t)active;
    cpl_geometry *g = &p->geometry[l->symbol];
    *g = *w;
    g->longest = active > 0, g->rows = active;
    g->length = l->length, g->offset = l->offset, g->place = w->place + w->offset[k];
    p->binding.rows[l->symbol] = active;
    p->binding.longest[l->symbol] = 1;
    for (int s = 0; s < p->traced->symbol_count; s++)
        if (symbols[s].kind == CPL_DIM_TIME && !symbols[s].nested && s != l->symbol)
            others[s] = p->binding.pairs[l->symbol][s] = p->binding.pairs[s][l->symbol] =
                cpl_geometry_pairs(g, &p->geometry[s]);
    for (int s = 0; s < p->traced->symbol_count; s++)
        if (symbols[s].nested && symbols[s].outer == l->symbol)
            p->binding.rows[s] = others[symbols[s].inner];
}

/* Carried states see whole tensors: of all steps, or in a nest of the outer loop's step. */
static void run_carriers(const piece *x, int64_t step, const cpl_geometry *whole, int *active)
{
    cpl_program *p = x->p;
    *active = 0;
    p->context.loop_step = step;
    p->context.loop_whole = whole;
    for (size_t i = x->first; i <= x->last; i++)
        if (!x->g->calls[i].dead && x->g->calls[i].loop == x->loop && (x->g->calls[i].op->flags & CPL_OP_CARRY))
            cpl_program_run_call(p, x->g, x->plan, i);
    p->context.loop_whole = NULL;
    *active = 1;
}

static void run_nest(const piece *x);

static void run_step(const piece *x)
{
    for (size_t i = x->first; i <= x->last; i++) {
        const cpl_call *c = &x->g->calls[i];
        if (c->loop != x->loop) {
            piece inner = *x;
            inner.first = i, inner.last = cpl_graph_nest_end(x->g, i), inner.loop = c->loop;
            run_nest(&inner);
            i = inner.last;
        } else if (!c->dead && !(c->op->flags & CPL_OP_CARRY))
            cpl_program_run_call(x->p, x->g, x->plan, i);
    }
}

/* The inner time of the outer loop's step: the sentences that have the step, in the inner time's order. */
static const cpl_geometry *enter_nest(cpl_program *p, const cpl_symbol *symbol)
{
    cpl_loop_step *l = &p->loop;
    const cpl_geometry *inner = &p->geometry[symbol->inner];
    cpl_geometry *n = &l->nest;
    int64_t active = cpl_geometry_active(&l->whole, l->step);
    n->batch = n->longest = n->rows = 0;
    for (int64_t i = 0; i < inner->batch; i++) {
        if (l->whole.position[inner->sentence[i]] >= active)
            continue;
        n->sentence[n->batch] = inner->sentence[i];
        n->length[n->batch++] = inner->length[i];
    }
    int64_t alive = n->batch;
    n->longest = alive ? n->length[0] : 0;
    n->offset[0] = 0;
    for (int64_t k = 0; k < n->longest; k++) {
        while (alive > 0 && n->length[alive - 1] <= k)
            alive--;
        n->offset[k + 1] = (int32_t)(n->rows += alive);
    }
    return n;
}

static void run_nest(const piece *x)
{
    cpl_program *p = x->p;
    int symbol = x->g->loops[x->loop - 1].symbol, reverse = x->g->calls[x->first].reverse;
    const cpl_geometry *n = enter_nest(p, &p->traced->symbols[symbol]);
    int64_t rows = p->binding.rows[symbol];
    p->loop.nest_symbol = symbol;
    if (reverse)
        run_carriers(x, n->longest, n, &p->loop.nest_active);
    p->loop.nest_active = 1;
    for (int64_t i = 0; i < n->longest; i++) {
        int64_t k = reverse ? n->longest - 1 - i : i;
        p->loop.nest_row = n->offset[k];
        p->binding.rows[symbol] = cpl_geometry_active(n, k);
        if (!reverse)
            run_carriers(x, k, n, &p->loop.nest_active);
        run_step(x);
        if (reverse)
            run_carriers(x, k, n, &p->loop.nest_active);
    }
    p->loop.nest_active = 0;
    p->binding.rows[symbol] = rows;
}

void cpl_program_run_loop(cpl_program *p, const cpl_graph *g, const cpl_memory_plan *plan, size_t first, size_t last)
{
    cpl_loop_step *l = &p->loop;
    cpl_binding binding = p->binding;
    piece x = {p, g, plan, first, last, cpl_graph_outermost(g, &g->calls[first])};
    l->symbol = g->loops[x.loop - 1].symbol;
    l->whole = p->geometry[l->symbol];
    int64_t longest = l->whole.longest, others[CPL_MAX_SYMBOLS] = {0};
    int reverse = g->calls[first].reverse;
    for (int s = 0; s < CPL_MAX_SYMBOLS; s++)
        l->pairs[s] = reverse ? binding.pairs[l->symbol][s] : 0;
    if (reverse)
        run_carriers(&x, longest, &l->whole, &l->active);
    l->active = 1;
    for (int64_t i = 0; i < longest; i++) {
        int64_t k = reverse ? longest - 1 - i : i;
        enter_step(p, k, others);
        for (int s = 0; s < CPL_MAX_SYMBOLS && reverse; s++)
            l->pairs[s] -= others[s];
        if (!reverse)
            run_carriers(&x, k, &l->whole, &l->active);
        run_step(&x);
        if (reverse)
            run_carriers(&x, k, &l->whole, &l->active);
        for (int s = 0; s < CPL_MAX_SYMBOLS && !reverse; s++)
            l->pairs[s] += others[s];
    }
    l->active = 0;
    p->geometry[l->symbol] = l->whole;
    p->binding = binding;
}
