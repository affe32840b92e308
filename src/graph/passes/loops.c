/* loops.c: what runs inside a loop, and what does not.
 *
 * A body is traced once. Of its calls only those on a cycle through a carried state (`previous`) must run step by step.
 * What does not depend on a state is taken out before the loop (an encoder called inside runs once), and what no
 * state depends on is left until after it (one product for all logits): packed rows make both plain whole-sequence
 * calls. The rest is put together: before, inside, after. A loop in the steps of another (nest.c) is found among the
 * calls inside that one, if they are on a cycle of it too; else it stands alone and runs step by step all the same. */
#include <string.h>
#include "graph/attributes.h"
#include "graph/graph.h"

/* The loop whose state the call carries, or −1. */
static int carried(const cpl_call *c)
{
    if (c->dead || !(c->op->flags & CPL_OP_CARRY))
        return -1;
    return c->op->attributes == sizeof(cpl_nest_attributes) ? ((const cpl_nest_attributes *)c->attributes)->loop
                                                            : ((const cpl_previous_attributes *)c->attributes)->loop;
}

static int carries(const cpl_call *c, int loop)
{
    return carried(c) == loop;
}

static int any_input(const cpl_call *c, const char *marked_values, int from)
{
    for (int k = from; k < c->inputs; k++)
        if (c->in[k] >= 0 && marked_values[c->in[k]])
            return 1;
    return 0;
}

static void mark_outputs(const cpl_call *c, char *marked_values)
{
    for (int k = 0; k < c->outputs; k++)
        if (c->out[k] >= 0)
            marked_values[c->out[k]] = 1;
}

enum { AFTER_STATE = 1, BEFORE_STATE = 2, INSIDE = 3 };

/* One loop's search among the calls first … last. `around` is the loop around it, whose states come from its step
 * before and do not count here; −1: none. */
typedef struct search {
    const cpl_graph *g;
    int loop, around;
    size_t first, last;
    char *place;  /* by call: AFTER_STATE: depends on a state of the loop; BEFORE_STATE: a state depends on it */
    char *values;
} search;

/* The first input that counts: what hands a state on to the next step does not. */
static int first_input(const search *s, const cpl_call *c)
{
    int loop = carried(c);
    return loop >= 0 && (loop == s->loop || loop == s->around);
}

/* A state of another loop is read before it is made: both walks are repeated until they find nothing new. */
static int mark_after(const search *s)
{
    int found = 0;
    for (size_t i = s->first; i <= s->last; i++) {
        const cpl_call *c = &s->g->calls[i];
        if (c->dead || (s->place[i] & AFTER_STATE) ||
            !(carries(c, s->loop) || any_input(c, s->values, first_input(s, c))))
            continue;
        s->place[i] |= AFTER_STATE;
        mark_outputs(c, s->values);
        found = 1;
    }
    return found;
}

static int mark_before(const search *s)
{
    int found = 0;
    for (size_t i = s->last + 1; i-- > s->first;) {
        const cpl_call *c = &s->g->calls[i];
        int needed = carries(c, s->loop);
        for (int k = 0; k < c->outputs; k++)
            needed |= c->out[k] >= 0 && s->values[c->out[k]];
        if (c->dead || !needed || (s->place[i] & BEFORE_STATE))
            continue;
        s->place[i] |= BEFORE_STATE;
        for (int k = first_input(s, c); k < c->inputs; k++)
            if (c->in[k] >= 0)
                s->values[c->in[k]] = 1;
        found = 1;
    }
    return found;
}

static void mark(const search *s)
{
    const cpl_graph *g = s->g;
    memset(s->values, 0, g->value_count);
    while (mark_after(s)) {
    }
    memset(s->values, 0, g->value_count);
    for (size_t i = s->first; i <= s->last; i++)
        if (carries(&g->calls[i], s->loop) && g->calls[i].in[0] >= 0)
            s->values[g->calls[i].in[0]] = 1;
    while (mark_before(s)) {
    }
}

/* Everything inside must work on single steps: no op that looks across the loop's time, no tensor without it. */
static cpl_status check_inside(const cpl_graph *g, const cpl_loop_info *loop, const cpl_call *c, cpl_error *err)
{
    int other = carried(c), outer = other >= 0 ? g->loops[other].outer : 0;
    if (other >= 0 && &g->loops[other] != loop && (!outer || &g->loops[outer - 1] != loop))
        CPL_FAIL(err, CPL_USAGE, "the loop '%s' over '%s' and the loop '%s' over '%s' depend on each other's states"
                 CPL_HINT "a loop in each step of another begins with a state, or has an input, of that step",
                 g->loops[other].name, g->symbols[g->loops[other].symbol].name, loop->name,
                 g->symbols[loop->symbol].name);
    if (!(c->op->flags & (CPL_OP_LOCAL | CPL_OP_CARRY)))
        CPL_FAIL(err, CPL_USAGE, "'%s' (%s) looks across the steps of '%s', but depends on a state of the loop '%s' "
                 "over it" CPL_HINT "inside a loop a step sees itself and the states alone", c->path, c->op->name,
                 g->symbols[loop->symbol].name, loop->name);
    for (int k = 0; k < c->visible; k++) {
        const cpl_type *t = &g->values[c->out[k]].type;
        int at = cpl_type_find(t, CPL_DIM_TIME), lead = cpl_type_find(t, CPL_DIM_BATCH);
        int wide = lead > 0 && t->dim[0].size != 1 && cpl_type_times(t) > 1;
        const cpl_symbol *symbol = at < 0 ? NULL : &g->symbols[t->dim[at].symbol];
        int step = symbol && (t->dim[at].symbol == loop->symbol || (symbol->nested && symbol->outer == loop->symbol));
        if (!step || wide) {
            char text[160];
            CPL_FAIL(err, CPL_USAGE, "'%s' (%s) gives %s inside the loop '%s', expected [batch %s …]", c->path,
                     c->op->name, cpl_type_text(t, text, sizeof text), loop->name, g->symbols[loop->symbol].name);
        }
    }
    return CPL_OK;
}

static cpl_status put_together(cpl_graph *g, const search *s, size_t *order, cpl_error *err)
{
    static const int parts[3][2] = {{0, BEFORE_STATE}, {INSIDE, INSIDE}, {AFTER_STATE, AFTER_STATE}};
    cpl_loop_info *info = &g->loops[s->loop];
    size_t n = 0;
    for (; n < s->first; n++)
        order[n] = n;
    for (int part = 0; part < 3; part++)
        for (size_t i = s->first; i <= s->last; i++) {
            cpl_call *c = &g->calls[i];
            if (s->place[i] != parts[part][0] && s->place[i] != parts[part][1])
                continue;
            order[n++] = i;
            if (part == 1) {
                CPL_TRY(check_inside(g, info, c, err), err, "cannot build '%s'", info->name);
                c->loop = s->loop + 1;
            }
            if (!c->dead && c->uid >= info->first_uid && c->uid < info->last_uid)
                part == 1 ? info->inside++ : info->outside++;
        }
    for (; n < g->call_count; n++)
        order[n] = n;
    return cpl_graph_reorder(g, order, err);
}

/* Where the loop's calls are: among those of the loop around it when its own are there, else anywhere. */
static void find_range(search *s)
{
    const cpl_graph *g = s->g;
    int outer = g->loops[s->loop].outer;
    s->around = -1, s->first = 0, s->last = g->call_count - 1;
    for (size_t i = 0; outer && i < g->call_count; i++)
        if (carries(&g->calls[i], s->loop) && g->calls[i].loop == outer) {
            s->around = outer - 1;
            s->last = cpl_graph_loop_end(g, i);
            for (s->first = i; s->first > 0 && cpl_graph_loop_end(g, s->first - 1) == s->last &&
                               g->calls[s->first - 1].loop;)
                s->first--;
            return;
        }
}

cpl_status cpl_pass_loops(cpl_graph *g, cpl_error *err)
{
    search s = {.g = g};
    s.place = cpl_alloc(g->call_count + 1, 1);
    s.values = cpl_alloc(g->value_count + 1, 1);
    size_t *order = cpl_alloc(g->call_count + 1, sizeof *order);
    cpl_status status = s.place && s.values && order ? CPL_OK : cpl_error_set(err, CPL_FAILED, "out of memory");
    for (s.loop = 0; status == CPL_OK && g->call_count > 0 && s.loop < g->loop_count; s.loop++) {
        memset(s.place, 0, g->call_count);
        g->loops[s.loop].inside = g->loops[s.loop].outside = 0;
        find_range(&s);
        mark(&s);
        status = put_together(g, &s, order, err);
    }
    cpl_release(s.place);
    cpl_release(s.values);
    cpl_release(order);
    return status;
}

cpl_status cpl_graph_reorder(cpl_graph *g, const size_t *order, cpl_error *err)
{
    cpl_call *calls = cpl_alloc(g->call_count + 1, sizeof *calls);
    int *moved = cpl_alloc(g->call_count + 1, sizeof *moved);
    if (!calls || !moved) {
        cpl_release(calls);
        cpl_release(moved);
        CPL_FAIL(err, CPL_FAILED, "out of memory while compiling");
    }
    for (size_t i = 0; i < g->call_count; i++) {
        calls[i] = g->calls[order[i]];
        moved[order[i]] = (int)i;
    }
    for (size_t v = 0; v < g->value_count; v++)
        if (g->values[v].producer >= 0)
            g->values[v].producer = moved[g->values[v].producer];
    memcpy(g->calls, calls, g->call_count * sizeof *calls);
    cpl_release(calls);
    cpl_release(moved);
    return CPL_OK;
}

int cpl_graph_outermost(const cpl_graph *g, const cpl_call *c)
{
    int loop = c->loop;
    while (loop && g->loops[loop - 1].outer)
        loop = g->loops[loop - 1].outer;
    return loop;
}

size_t cpl_graph_loop_end(const cpl_graph *g, size_t at)
{
    const cpl_call *c = &g->calls[at];
    int loop = cpl_graph_outermost(g, c);
    while (at + 1 < g->call_count && cpl_graph_outermost(g, &g->calls[at + 1]) == loop &&
           g->calls[at + 1].reverse == c->reverse)
        at++;
    return at;
}

size_t cpl_graph_nest_end(const cpl_graph *g, size_t at)
{
    const cpl_call *c = &g->calls[at];
    while (at + 1 < g->call_count && g->calls[at + 1].loop == c->loop && g->calls[at + 1].reverse == c->reverse)
        at++;
    return at;
}
