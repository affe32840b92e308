/* loop.c: loops over a time word, while a model is traced: cpl_scan and what a body asks for. Carried states go through
 * the op `previous`, in a loop in the steps of another through `nest_previous`. */
#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"
#include "graph/graph.h"

struct cpl_loop {
    cpl_graph *graph;
    const cpl_scan_options *options;
    int number, states;
    cpl_node *input[CPL_LOOP_VALUES]; /* as a step sees it */
    cpl_node *state[CPL_LOOP_VALUES], *initial[CPL_LOOP_VALUES], *next[CPL_LOOP_VALUES];
    int carrier[CPL_LOOP_VALUES]; /* calls */
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
    return i < 0 ? &l->graph->poison : l->input[i];
}

cpl_node *cpl_loop_state(cpl_loop *l, const char *name)
{
    int i = find(l->options->states, name);
    if (i < 0)
        cpl_graph_fail(l->graph, l->options->name, "the loop has no state '%s'", name);
    return i < 0 ? &l->graph->poison : l->state[i];
}

enum { NO_CARRIER = -1 };

/* A call whose first input is set later: the value that the step before hands on. */
static int add_carrier(cpl_graph *g, const char *op, const void *attributes, const cpl_type *type,
                       const cpl_node *first)
{
    int v = attributes ? cpl_graph_add_value(g, type, op) : -1;
    cpl_call *c = v < 0 ? NULL : cpl_graph_add_call(g);
    if (!attributes)
        cpl_graph_fail(g, op, "out of memory");
    if (!c)
        return NO_CARRIER;
    c->op = cpl_op_named(op), c->attributes = attributes;
    c->inputs = 2, c->outputs = c->visible = 1;
    c->in[0] = -1, c->in[1] = first ? first->value : -1, c->out[0] = v;
    g->values[v].producer = (int)g->call_count - 1;
    return (int)g->call_count - 1;
}

/* x [batch units] again in each step of the loop: a state that never changes. */
static cpl_node *repeat_in(cpl_graph *g, int loop, cpl_node *x)
{
    cpl_type type = *cpl_node_type(x);
    int symbol = g->loops[loop].symbol;
    if (type.order != symbol) {
        cpl_reorder_attributes order = {.from = type.order, .to = symbol};
        x = cpl_apply(g, "reorder", &order, (cpl_node *[]){x}, 1);
        if (x->value < 0)
            return x;
        g->values[x->value].type.order = symbol;
    }
    cpl_previous_attributes *a = cpl_arena_alloc(g->arena, sizeof *a);
    if (a)
        a->loop = loop;
    type.rank = 3, type.dim[2] = type.dim[1], type.order = symbol;
    type.dim[1] = (cpl_dim){.name = g->symbols[symbol].name, .symbol = symbol, .kind = CPL_DIM_TIME};
    int at = add_carrier(g, "previous", a, &type, x);
    if (at == NO_CARRIER)
        return &g->poison;
    g->calls[at].path = g->loops[loop].name;
    return cpl_graph_node(g, g->calls[at].out[0]);
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

/* The attributes of the op that carries a state of the loop. */
static const void *carrier_attributes(cpl_loop *l)
{
    const cpl_loop_info *info = &l->graph->loops[l->number];
    const cpl_symbol *s = &l->graph->symbols[info->symbol];
    if (info->outer) {
        cpl_nest_attributes *a = cpl_arena_alloc(l->graph->arena, sizeof *a);
        if (a)
            *a = (cpl_nest_attributes){.symbol = info->symbol, .outer = s->outer, .inner = s->inner, .loop = l->number};
        return a;
    }
    cpl_previous_attributes *a = cpl_arena_alloc(l->graph->arena, sizeof *a);
    if (a)
        a->loop = l->number;
    return a;
}

/* Where a state begins: NULL for zeros, else [batch units] in the loop's order; in a nest [batch outer units]. */
static cpl_node *first_value(cpl_loop *l, const cpl_loop_value *s)
{
    cpl_graph *g = l->graph;
    const cpl_loop_info *info = &g->loops[l->number];
    const cpl_type *type = s->x ? cpl_node_type(s->x) : NULL;
    if (!type)
        return s->x;
    int time = cpl_type_find(type, CPL_DIM_TIME), steps = info->outer && time == 1 && type->rank == 3 &&
               type->dim[1].symbol == g->symbols[info->symbol].outer;
    if (!steps && (type->rank != 2 || cpl_type_find(type, CPL_DIM_BATCH) != 0)) {
        char text[160];
        cpl_type_text(type, text, sizeof text);
        if (time == 1 && g->tracing && info->symbol == g->loops[g->tracing - 1].symbol)
            cpl_graph_fail(g, info->name, "state '%s' begins as %s, expected [batch units], in the loop '%s' over '%s'"
                           CPL_HINT "a loop in each step of another runs over another time word", s->name, text,
                           g->loops[g->tracing - 1].name, g->symbols[info->symbol].name);
        cpl_graph_fail(g, info->name, "state '%s' begins as %s, expected [batch units]", s->name, text);
        return s->x;
    }
    if (info->outer && !steps)
        return repeat_in(g, info->outer - 1, s->x);
    if (steps || type->order == info->symbol)
        return s->x;
    cpl_reorder_attributes order = {.from = type->order, .to = info->symbol};
    cpl_node *x = cpl_apply(g, "reorder", &order, (cpl_node *[]){s->x}, 1);
    if (x->value >= 0)
        g->values[x->value].type.order = info->symbol;
    return x;
}

/* The call that carries a state; its input comes with cpl_loop_next. */
static void add_state(cpl_loop *l, int i)
{
    cpl_graph *g = l->graph;
    const cpl_loop_value *s = &l->options->states[i];
    const cpl_loop_info *info = &g->loops[l->number];
    const cpl_type *begin = s->x ? cpl_node_type(s->x) : NULL;
    if (s->x && !begin)
        return;
    int64_t units = begin && begin->rank >= 2 ? begin->dim[begin->rank - 1].size : s->units;
    cpl_node *x = first_value(l, s);
    cpl_type type;
    char shape[64];
    snprintf(shape, sizeof shape, "batch %s units", l->options->time);
    if (cpl_graph_failed(g) || cpl_graph_parse_shape(g, shape, units, info->name, &type))
        return;
    type.dim[1].name = g->symbols[info->symbol].name;
    type.dim[1].symbol = type.order = info->symbol;
    l->initial[i] = x;
    l->carrier[i] = add_carrier(g, info->outer ? "nest_previous" : "previous", carrier_attributes(l), &type, x);
    if (l->carrier[i] == NO_CARRIER)
        return;
    cpl_call *c = &g->calls[l->carrier[i]];
    c->path = info->name;
    g->values[c->out[0]].path = cpl_graph_path(g, s->name);
    l->state[i] = cpl_graph_node(g, c->out[0]);
}

/* Inputs as a step sees them: those of a loop in the steps of another are its own steps or that loop's. */
static void take_inputs(cpl_loop *l)
{
    cpl_graph *g = l->graph;
    const cpl_loop_info *info = &g->loops[l->number];
    const cpl_symbol *symbol = &g->symbols[info->symbol];
    for (int i = 0; i < CPL_LOOP_VALUES && l->options->inputs[i].name && !cpl_graph_failed(g); i++) {
        cpl_node *x = l->options->inputs[i].x;
        const cpl_type *t = cpl_node_type(x);
        int at = t ? cpl_type_find(t, CPL_DIM_TIME) : -1, over = at == 1 ? t->dim[1].symbol : -1;
        int fits = over == info->symbol || (info->outer && (over == symbol->outer || over == symbol->inner));
        char text[160];
        l->input[i] = x;
        if (t && !fits)
            cpl_graph_fail(g, l->options->name, "input '%s' of the loop is %s, expected [batch %s …]",
                           l->options->inputs[i].name, cpl_type_text(t, text, sizeof text), l->options->time);
        else if (t && info->outer && (t->rank != 3 || t->element != CPL_ELEMENT_REAL))
            cpl_graph_fail(g, l->options->name, "input '%s' is %s; a loop in each step of another takes numbers "
                           "[batch %s units]" CPL_HINT "look ids up before the loop", l->options->inputs[i].name,
                           cpl_type_text(t, text, sizeof text), l->options->time);
        else if (t && info->outer)
            l->input[i] = cpl_nest_input(g, x, info->symbol);
    }
}

/* Does any first value or input belong to a step of the loop that is traced now? */
static int stands_in_steps(const cpl_graph *g, const cpl_scan_options *o, int time)
{
    const cpl_loop_info *outer = g->tracing ? &g->loops[g->tracing - 1] : NULL;
    const cpl_loop_value *lists[2] = {o->inputs, o->states};
    for (int list = 0; outer && list < 2 && outer->symbol != time; list++)
        for (int i = 0; i < CPL_LOOP_VALUES && lists[list][i].name; i++) {
            const cpl_type *t = lists[list][i].x ? cpl_node_type(lists[list][i].x) : NULL;
            int at = t ? cpl_type_find(t, CPL_DIM_TIME) : -1;
            int symbol = at < 0 ? -1 : t->dim[at].symbol;
            if (symbol >= 0 && (symbol == outer->symbol ||
                                (g->symbols[symbol].nested && g->symbols[symbol].outer == outer->symbol)))
                return 1;
        }
    return 0;
}

/* Numbers the loop; 0 when it cannot be. */
static int begin_loop(cpl_loop *l)
{
    cpl_graph *g = l->graph;
    const cpl_scan_options *o = l->options;
    int symbol = cpl_graph_symbol(g, o->time, strlen(o->time), cpl_dim_word(o->time, strlen(o->time)), o->name);
    if (cpl_dim_word(o->time, strlen(o->time)) != CPL_DIM_TIME)
        cpl_graph_fail(g, o->name, "'%s' is no time word, expected 's' or 't'", o->time);
    if (g->loop_count == CPL_MAX_LOOPS)
        cpl_graph_fail(g, o->name, "more than %d loops in one model", CPL_MAX_LOOPS);
    if (cpl_graph_failed(g))
        return 0;
    int outer = stands_in_steps(g, o, symbol) ? g->tracing : 0;
    if (outer && g->loops[outer - 1].outer)
        cpl_graph_fail(g, o->name, "'%s' would run in each step of '%s', which runs in each step of '%s': loops stand "
                       "in each other two deep", o->name, g->loops[outer - 1].name,
                       g->loops[g->loops[outer - 1].outer - 1].name);
    if (outer && !cpl_graph_failed(g))
        symbol = cpl_graph_nest_symbol(g, g->loops[outer - 1].symbol, symbol, o->name);
    if (cpl_graph_failed(g))
        return 0;
    l->number = g->loop_count++;
    g->loops[l->number] = (cpl_loop_info){.name = cpl_graph_path(g, o->name), .symbol = symbol, .outer = outer};
    return 1;
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
        l->state[i] = l->input[i] = &g->poison;
    if (cpl_graph_failed(g) || !begin_loop(l))
        return l;
    take_inputs(l);
    for (int i = 0; i < CPL_LOOP_VALUES && o->states[i].name; i++, l->states++)
        add_state(l, i);
    int around = g->tracing;
    g->tracing = l->number + 1;
    g->loops[l->number].first_uid = g->next_uid;
    if (!cpl_graph_failed(g))
        body(g, l, user);
    g->tracing = around;
    g->loops[l->number].last_uid = g->next_uid;
    for (int i = 0; i < l->states && !cpl_graph_failed(g); i++)
        if (!l->next[i])
            cpl_str_printf(&g->warnings, "new state of '%s' is not used: every step starts from the same '%s'\n",
                           g->loops[l->number].name, o->states[i].name);
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
    const cpl_loop_info *info = &g->loops[l->number];
    cpl_node *values[2] = {l->next[i], l->initial[i]};
    if (!info->outer)
        return cpl_apply(g, "last_step", NULL, values, 2);
    const cpl_symbol *s = &g->symbols[info->symbol];
    cpl_nest_attributes a = {.symbol = info->symbol, .outer = s->outer, .inner = s->inner};
    cpl_node *last = cpl_apply(g, "nest_last", &a, values, 2);
    if (last->value >= 0) {
        g->values[last->value].type.order = s->outer;
        g->values[last->value].type.dim[1].name = g->symbols[s->outer].name;
    }
    return last;
}
