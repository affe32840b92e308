/* loop.c: loops over a time word: the builder (cpl_scan) and the run.
 *
 * A step of packed rows is a piece of the whole tensor, so a body's calls run on views: at step k the time has length
 * 1 for the sentences that are still there and 0 for the others. Carried states go through the op `previous`. */
#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"
#include "graph/program.h"

/* ---- running ---- */

/* Makes step k of the loop's time what all calls see. */
static void enter_step(cpl_program *p, int64_t k, int64_t others[CPL_MAX_SYMBOLS])
{
    cpl_loop_step *l = &p->loop;
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
        if (p->traced->symbols[s].kind == CPL_DIM_TIME && s != l->symbol)
            others[s] = p->binding.pairs[l->symbol][s] = p->binding.pairs[s][l->symbol] =
                cpl_geometry_pairs(g, &p->geometry[s]);
}

static void run_step(cpl_program *p, const cpl_graph *g, const cpl_memory_plan *plan, size_t first, size_t last)
{
    for (size_t i = first; i <= last; i++)
        if (!g->calls[i].dead && !(g->calls[i].op->flags & CPL_OP_CARRY))
            cpl_program_run_call(p, g, plan, i);
}

/* Carried states see whole tensors. */
static void run_carriers(cpl_program *p, const cpl_graph *g, const cpl_memory_plan *plan, size_t first, size_t last,
                         int64_t step)
{
    p->loop.active = 0;
    p->context.loop_step = step;
    p->context.loop_whole = &p->loop.whole;
    for (size_t i = first; i <= last; i++)
        if (!g->calls[i].dead && (g->calls[i].op->flags & CPL_OP_CARRY))
            cpl_program_run_call(p, g, plan, i);
    p->context.loop_whole = NULL;
    p->loop.active = 1;
}

void cpl_program_run_loop(cpl_program *p, const cpl_graph *g, const cpl_memory_plan *plan, size_t first, size_t last)
{
    cpl_loop_step *l = &p->loop;
    cpl_binding binding = p->binding;
    l->symbol = g->loops[g->calls[first].loop - 1].symbol;
    l->whole = p->geometry[l->symbol];
    int64_t longest = l->whole.longest, others[CPL_MAX_SYMBOLS] = {0};
    int reverse = g->calls[first].reverse;
    for (int s = 0; s < CPL_MAX_SYMBOLS; s++)
        l->pairs[s] = reverse ? binding.pairs[l->symbol][s] : 0;
    if (reverse)
        run_carriers(p, g, plan, first, last, longest);
    l->active = 1;
    for (int64_t i = 0; i < longest; i++) {
        int64_t k = reverse ? longest - 1 - i : i;
        enter_step(p, k, others);
        for (int s = 0; s < CPL_MAX_SYMBOLS && reverse; s++)
            l->pairs[s] -= others[s];
        if (!reverse)
            run_carriers(p, g, plan, first, last, k);
        run_step(p, g, plan, first, last);
        if (reverse)
            run_carriers(p, g, plan, first, last, k);
        for (int s = 0; s < CPL_MAX_SYMBOLS && !reverse; s++)
            l->pairs[s] += others[s];
    }
    l->active = 0;
    p->geometry[l->symbol] = l->whole;
    p->binding = binding;
}

/* ---- building ---- */

struct cpl_loop {
    cpl_graph *graph;
    const cpl_scan_options *options;
    int number, states;
    cpl_node *state[CPL_LOOP_VALUES], *initial[CPL_LOOP_VALUES], *next[CPL_LOOP_VALUES];
    size_t carrier[CPL_LOOP_VALUES]; /* calls */
    int emitted;
    const char *emitted_name[CPL_LOOP_VALUES];
    cpl_node *emitted_value[CPL_LOOP_VALUES];
};

static int find(const cpl_loop_value *values, const char *name)
{
    for (int i = 0; i < CPL_LOOP_VALUES && values[i].name; i++)
        if (strcmp(values[i].name, name) == 0)
            return i;
    return -1;
}

cpl_node *cpl_loop_slice(cpl_loop *l, const char *name)
{
    int i = find(l->options->inputs, name);
    if (i < 0)
        cpl_graph_fail(l->graph, l->options->name, "the loop has no input '%s'", name);
    return i < 0 ? &l->graph->poison : l->options->inputs[i].x;
}

cpl_node *cpl_loop_state(cpl_loop *l, const char *name)
{
    int i = find(l->options->states, name);
    if (i < 0)
        cpl_graph_fail(l->graph, l->options->name, "the loop has no state '%s'", name);
    return i < 0 ? &l->graph->poison : l->state[i];
}

static int same_shape(const cpl_type *a, const cpl_type *b)
{
    int same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i].kind == b->dim[i].kind && a->dim[i].size == b->dim[i].size &&
               a->dim[i].symbol == b->dim[i].symbol;
    return same;
}

void cpl_loop_next(cpl_loop *l, const char *name, cpl_node *x)
{
    cpl_graph *g = l->graph;
    int i = find(l->options->states, name);
    if (cpl_graph_failed(g) || x->value < 0)
        return;
    if (i < 0) {
        cpl_graph_fail(g, l->options->name, "the loop has no state '%s'", name);
        return;
    }
    const cpl_type *have = cpl_node_type(l->state[i]), *new = cpl_node_type(x);
    if (!same_shape(have, new)) {
        char a[160], b[160];
        cpl_graph_fail(g, l->options->name, "state '%s' enters a step as %s and leaves it as %s", name,
                       cpl_type_text(have, a, sizeof a), cpl_type_text(new, b, sizeof b));
        return;
    }
    if (l->next[i]) {
        cpl_graph_fail(g, l->options->name, "state '%s' gets its next value twice in one step", name);
        return;
    }
    l->next[i] = x;
    g->calls[l->carrier[i]].in[0] = x->value;
}

void cpl_loop_emit(cpl_loop *l, const char *name, cpl_node *x)
{
    if (cpl_graph_failed(l->graph))
        return;
    if (l->emitted == CPL_LOOP_VALUES) {
        cpl_graph_fail(l->graph, l->options->name, "a loop emits at most %d values", CPL_LOOP_VALUES);
        return;
    }
    l->emitted_name[l->emitted] = name;
    l->emitted_value[l->emitted++] = x;
}

/* The call that carries a state; its input comes with cpl_loop_next. */
static void add_state(cpl_loop *l, int i)
{
    cpl_graph *g = l->graph;
    const cpl_loop_value *s = &l->options->states[i];
    const cpl_loop_info *info = &g->loops[l->number];
    cpl_type type;
    char shape[64];
    snprintf(shape, sizeof shape, "batch %s units", l->options->time);
    const cpl_type *initial = s->x ? cpl_node_type(s->x) : NULL;
    int64_t units = initial && initial->rank == 2 ? initial->dim[1].size : s->units;
    if ((s->x && !initial) || cpl_graph_parse_shape(g, shape, units, info->name, &type))
        return;
    cpl_node *x = s->x;
    if (x && (initial->rank != 2 || cpl_type_find(initial, CPL_DIM_BATCH) != 0)) {
        char text[160];
        cpl_graph_fail(g, info->name, "state '%s' begins as %s, expected [batch units]", s->name,
                       cpl_type_text(initial, text, sizeof text));
        return;
    }
    if (x && initial->order != info->symbol) {
        cpl_reorder_attributes order = {.from = initial->order, .to = info->symbol};
        x = cpl_apply(g, "reorder", &order, (cpl_node *[]){x}, 1);
        if (x->value >= 0)
            g->values[x->value].type.order = info->symbol;
    }
    l->initial[i] = x;
    cpl_previous_attributes *a = cpl_arena_alloc(g->arena, sizeof *a);
    int v = a ? cpl_graph_add_value(g, &type, cpl_graph_path(g, s->name)) : -1;
    cpl_call *c = v < 0 ? NULL : cpl_graph_add_call(g);
    if (!c)
        return;
    a->loop = l->number;
    c->op = cpl_op_named("previous"), c->attributes = a, c->path = info->name;
    c->inputs = 2, c->outputs = c->visible = 1;
    c->in[1] = x ? x->value : -1, c->out[0] = v;
    g->values[v].producer = (int)g->call_count - 1;
    l->carrier[i] = g->call_count - 1;
    l->state[i] = cpl_graph_node(g, v);
}

static void check_inputs(cpl_loop *l, int symbol)
{
    cpl_graph *g = l->graph;
    for (int i = 0; i < CPL_LOOP_VALUES && l->options->inputs[i].name; i++) {
        const cpl_type *t = cpl_node_type(l->options->inputs[i].x);
        int at = t ? cpl_type_find(t, CPL_DIM_TIME) : -1;
        char text[160];
        if (t && (at != 1 || t->dim[at].symbol != symbol))
            cpl_graph_fail(g, l->options->name, "input '%s' of the loop is %s, expected [batch %s …]",
                           l->options->inputs[i].name, cpl_type_text(t, text, sizeof text), l->options->time);
    }
}

cpl_loop *cpl_scan(cpl_graph *g, const cpl_scan_options *o, cpl_loop_body body, const void *user)
{
    cpl_loop *l = cpl_arena_alloc(g->arena, sizeof *l);
    if (!l) {
        cpl_graph_fail(g, o->name, "out of memory");
        return NULL;
    }
    l->graph = g;
    l->options = o;
    for (int i = 0; i < CPL_LOOP_VALUES; i++)
        l->state[i] = &g->poison;
    int symbol = cpl_graph_symbol(g, o->time, strlen(o->time), cpl_dim_word(o->time, strlen(o->time)), o->name);
    if (cpl_dim_word(o->time, strlen(o->time)) != CPL_DIM_TIME)
        cpl_graph_fail(g, o->name, "'%s' is no time word, expected 's' or 't'", o->time);
    if (g->loop_count == CPL_MAX_LOOPS)
        cpl_graph_fail(g, o->name, "more than %d loops in one model", CPL_MAX_LOOPS);
    if (cpl_graph_failed(g))
        return l;
    l->number = g->loop_count++;
    cpl_loop_info *info = &g->loops[l->number];
    *info = (cpl_loop_info){.name = cpl_graph_path(g, o->name), .symbol = symbol};
    check_inputs(l, symbol);
    for (int i = 0; i < CPL_LOOP_VALUES && o->states[i].name; i++, l->states++)
        add_state(l, i);
    info->first_uid = g->next_uid;
    if (!cpl_graph_failed(g))
        body(g, l, user);
    g->loops[l->number].last_uid = g->next_uid;
    for (int i = 0; i < l->states && !cpl_graph_failed(g); i++)
        if (!l->next[i])
            cpl_str_printf(&g->warnings, "new state of '%s' is not used: every step starts from the same '%s'\n",
                           info->name, o->states[i].name);
    return l;
}

cpl_node *cpl_loop_output(cpl_loop *l, const char *name)
{
    cpl_graph *g = l->graph;
    for (int i = 0; i < l->emitted; i++)
        if (strcmp(l->emitted_name[i], name) == 0)
            return l->emitted_value[i];
    cpl_graph_fail(g, l->options->name, "the loop emits no '%s'", name);
    return &g->poison;
}

cpl_node *cpl_loop_final(cpl_loop *l, const char *name)
{
    cpl_graph *g = l->graph;
    int i = find(l->options->states, name);
    if (cpl_graph_failed(g))
        return &g->poison;
    if (i < 0 || !l->next[i]) {
        cpl_graph_fail(g, l->options->name, "the loop has no final '%s'", name);
        return &g->poison;
    }
    return cpl_apply(g, "last_step", NULL, (cpl_node *[]){l->next[i], l->initial[i]}, 2);
}
