/* loops.c: what runs inside a loop, and what does not.
 *
 * A body is traced once. Of its calls only those on a cycle through a carried state (`previous`) must run step by step.
 * What does not depend on a state is taken out before the loop (an encoder called inside runs once), and what no
 * state depends on is left until after it (one product for all logits): packed rows make both plain whole-sequence
 * calls. The rest is put together: before, inside, after. */
#include <string.h>
#include "graph/attributes.h"
#include "graph/graph.h"

static int carries(const cpl_call *c, int loop)
{
    return !c->dead && (c->op->flags & CPL_OP_CARRY) && ((const cpl_previous_attributes *)c->attributes)->loop == loop;
}

static int any_input(const cpl_call *c, const char *marked_values)
{
    for (int k = 0; k < c->inputs; k++)
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

/* place[call] |= AFTER_STATE: depends on a state of the loop; BEFORE_STATE: a state depends on it. */
static void mark(const cpl_graph *g, int loop, char *place, char *values)
{
    memset(values, 0, g->value_count);
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        if (c->dead || !(carries(c, loop) || any_input(c, values)))
            continue;
        place[i] |= AFTER_STATE;
        mark_outputs(c, values);
    }
    memset(values, 0, g->value_count);
    for (size_t i = 0; i < g->call_count; i++)
        if (carries(&g->calls[i], loop) && g->calls[i].in[0] >= 0)
            values[g->calls[i].in[0]] = 1;
    for (size_t i = g->call_count; i-- > 0;) {
        const cpl_call *c = &g->calls[i];
        int needed = carries(c, loop);
        for (int k = 0; k < c->outputs; k++)
            needed |= c->out[k] >= 0 && values[c->out[k]];
        if (c->dead || !needed)
            continue;
        place[i] |= BEFORE_STATE;
        for (int k = carries(c, loop); k < c->inputs; k++)
            if (c->in[k] >= 0)
                values[c->in[k]] = 1;
    }
}

/* Everything inside must work on single steps: no op that looks across the loop's time, no tensor without it. */
static cpl_status check_inside(const cpl_graph *g, const cpl_loop_info *loop, const cpl_call *c, cpl_error *err)
{
    if (!(c->op->flags & (CPL_OP_LOCAL | CPL_OP_CARRY)))
        CPL_FAIL(err, CPL_USAGE, "'%s' (%s) looks across the steps of '%s', but depends on a state of the loop '%s' "
                 "over it" CPL_HINT "inside a loop a step sees itself and the states alone", c->path, c->op->name,
                 g->symbols[loop->symbol].name, loop->name);
    for (int k = 0; k < c->visible; k++) {
        const cpl_type *t = &g->values[c->out[k]].type;
        int at = cpl_type_find(t, CPL_DIM_TIME), lead = cpl_type_find(t, CPL_DIM_BATCH);
        int wide = lead > 0 && t->dim[0].size != 1 && cpl_type_times(t) > 1;
        if (at < 0 || t->dim[at].symbol != loop->symbol || wide) {
            char text[160];
            CPL_FAIL(err, CPL_USAGE, "'%s' (%s) gives %s inside the loop '%s', expected [batch %s …]", c->path,
                     c->op->name, cpl_type_text(t, text, sizeof text), loop->name, g->symbols[loop->symbol].name);
        }
    }
    return CPL_OK;
}

static cpl_status put_together(cpl_graph *g, int loop, const char *place, size_t *order, cpl_error *err)
{
    static const int parts[3][2] = {{0, BEFORE_STATE}, {INSIDE, INSIDE}, {AFTER_STATE, AFTER_STATE}};
    cpl_loop_info *info = &g->loops[loop];
    size_t n = 0;
    for (int part = 0; part < 3; part++)
        for (size_t i = 0; i < g->call_count; i++) {
            cpl_call *c = &g->calls[i];
            if (place[i] != parts[part][0] && place[i] != parts[part][1])
                continue;
            order[n++] = i;
            if (part == 1) {
                CPL_TRY(check_inside(g, info, c, err), err, "cannot build '%s'", info->name);
                c->loop = loop + 1;
            }
            if (!c->dead && c->uid >= info->first_uid && c->uid < info->last_uid)
                part == 1 ? info->inside++ : info->outside++;
        }
    return cpl_graph_reorder(g, order, err);
}

cpl_status cpl_pass_loops(cpl_graph *g, cpl_error *err)
{
    char *place = cpl_alloc(g->call_count + 1, 1), *values = cpl_alloc(g->value_count + 1, 1);
    size_t *order = cpl_alloc(g->call_count + 1, sizeof *order);
    cpl_status status = place && values && order ? CPL_OK : cpl_error_set(err, CPL_FAILED, "out of memory");
    for (int loop = 0; status == CPL_OK && loop < g->loop_count; loop++) {
        memset(place, 0, g->call_count);
        g->loops[loop].inside = g->loops[loop].outside = 0;
        mark(g, loop, place, values);
        status = put_together(g, loop, place, order, err);
    }
    cpl_release(place);
    cpl_release(values);
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

size_t cpl_graph_loop_end(const cpl_graph *g, size_t at)
{
    const cpl_call *c = &g->calls[at];
    while (at + 1 < g->call_count && g->calls[at + 1].loop == c->loop && g->calls[at + 1].reverse == c->reverse)
        at++;
    return at;
}
