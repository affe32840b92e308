/* recompute.c: what forward calls keep for the backward run is dropped, and made again just before it is read.
 *
 * What counts is what waits between the forward and the backward run. A call that is run again lets its outputs go, but
 * then its own inputs wait, unless they are made again too: so chains of cheap calls (dropout, concat, layer_norm, …)
 * fall back to what lies below them. Of a costly call with hidden outputs (a recurrence) only these are made again: its
 * visible ones stay, and cut the network into pieces. Otherwise all of the forward run would come back at once and
 * wait again. For the same reason no costly call is run again for another one.
 *
 * Nothing is chosen that does not lower the bytes that wait. The calls and their random numbers are the same, so every
 * bit of the result is. What runs inside a loop stays as it is. */
#include <stdlib.h>
#include <string.h>
#include "graph/graph.h"

typedef struct recomputation {
    cpl_graph *g;
    const cpl_binding *capacity;
    size_t border;  /* the first call of the backward run */
    char *chosen;   /* by call before the border: it is run again */
    char *pinned;   /* by value: stays to the end anyway */
    char *needed;   /* by value, of `waiting` */
    char *depth;    /* by value, of `too_deep` */
    int *again;     /* by call before the border: its copy, or −1 */
    size_t *place;  /* by call: a copy stands before this one */
    size_t values, calls; /* of the graph as it came; copies come behind */
} recomputation;

static int is_cheap(const cpl_call *c)
{
    return (c->op->flags & CPL_OP_CHEAP) != 0;
}

static int is_costly(const cpl_call *c)
{
    uint32_t never = CPL_OP_CHEAP | CPL_OP_READY | CPL_OP_EFFECT | CPL_OP_CARRY | CPL_OP_NO_GRADIENT;
    return !(c->op->flags & never) && c->op->flops;
}

/* Is the value dropped after the forward run, and made again? */
static int dropped(const recomputation *r, int value)
{
    int at = value >= 0 ? r->g->values[value].producer : -1;
    if (at < 0 || (size_t)at >= r->border || !r->chosen[at] || r->pinned[value])
        return 0;
    const cpl_call *c = &r->g->calls[at];
    return is_cheap(c) || c->outputs == c->visible || r->g->values[value].output >= c->visible;
}

/* ---- what waits ---- */

static void need(recomputation *r, int value)
{
    if (value >= 0)
        r->needed[value] = 1;
}

static void need_reads(recomputation *r, const cpl_call *c)
{
    for (int k = 0; k < c->inputs; k++)
        if (cpl_call_reads_input(c, k))
            need(r, c->in[k]);
    for (int k = 0; k < c->outputs; k++)
        if (cpl_call_reads_output(c, k))
            need(r, c->out[k]);
}

static int makes_needed(const recomputation *r, const cpl_call *c)
{
    for (int k = 0; k < c->outputs; k++)
        if (c->out[k] >= 0 && r->needed[c->out[k]] && dropped(r, c->out[k]))
            return 1;
    return 0;
}

/* Bytes that the forward run leaves to the backward run, with what is chosen now. */
static double waiting(recomputation *r)
{
    const cpl_graph *g = r->g;
    double bytes = 0;
    memset(r->needed, 0, r->values);
    for (size_t i = r->border; i < g->call_count; i++)
        if (!g->calls[i].dead)
            need_reads(r, &g->calls[i]);
    for (size_t i = r->border; i-- > 0;)
        if (r->chosen[i] && makes_needed(r, &g->calls[i]))
            need_reads(r, &g->calls[i]);
    for (size_t v = 0; v < r->values; v++) {
        const cpl_value *x = &g->values[v];
        if (r->needed[v] && x->producer >= 0 && (size_t)x->producer < r->border && x->storage == CPL_STORE_BLOCK &&
            !r->pinned[v] && !dropped(r, (int)v))
            bytes += (double)cpl_type_bytes(&x->type, r->capacity);
    }
    return bytes;
}

/* ---- choosing ---- */

/* Would a costly call be run again for another costly one? */
static int too_deep(recomputation *r)
{
    memset(r->depth, 0, r->values);
    for (size_t i = 0; i < r->border; i++) {
        const cpl_call *c = &r->g->calls[i];
        int deep = 0;
        for (int k = 0; r->chosen[i] && k < c->inputs; k++)
            deep |= c->in[k] >= 0 && r->depth[c->in[k]];
        if (r->chosen[i] && deep && !is_cheap(c))
            return 1;
        for (int k = 0; r->chosen[i] && k < c->outputs; k++)
            if (c->out[k] >= 0 && dropped(r, c->out[k]))
                r->depth[c->out[k]] = (char)(deep || !is_cheap(c));
    }
    return 0;
}

typedef struct candidate {
    size_t call;
    double worth; /* bytes that it drops for each operation */
} candidate;

static candidate candidate_of(const recomputation *r, size_t i)
{
    const cpl_call *c = &r->g->calls[i];
    cpl_size_context s;
    double bytes = 0;
    cpl_call_sizes(r->g, c, r->capacity, 1, &s);
    for (int k = c->outputs > c->visible ? c->visible : 0; k < c->outputs; k++)
        if (c->out[k] >= 0)
            bytes += (double)cpl_type_bytes(&r->g->values[c->out[k]].type, r->capacity);
    return (candidate){i, bytes / (c->op->flops(&s) + 1)};
}

static int by_worth(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->worth != y->worth)
        return x->worth < y->worth ? 1 : -1;
    return x->call < y->call ? -1 : x->call > y->call;
}

/* Costly calls, those that drop most for their work first. */
static void choose_costly(recomputation *r)
{
    candidate *list = cpl_alloc(r->border + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; list && i < r->border; i++)
        if (!r->g->calls[i].dead && !r->g->calls[i].loop && is_costly(&r->g->calls[i]))
            list[n++] = candidate_of(r, i);
    if (n > 0)
        qsort(list, n, sizeof *list, by_worth);
    double bytes = waiting(r);
    for (size_t i = 0; i < n; i++) {
        r->chosen[list[i].call] = 1;
        double now = too_deep(r) ? bytes : waiting(r);
        r->chosen[list[i].call] = now < bytes;
        bytes = now < bytes ? now : bytes;
    }
    cpl_release(list);
}

static void choose(recomputation *r, cpl_recompute level)
{
    for (size_t i = 0; i < r->border; i++)
        r->chosen[i] = !r->g->calls[i].dead && !r->g->calls[i].loop && is_cheap(&r->g->calls[i]);
    if (level == CPL_RECOMPUTE_ALL)
        choose_costly(r);
    double bytes = waiting(r);
    for (size_t i = 0; i < r->border; i++) { /* what saves nothing is left out */
        if (!r->chosen[i])
            continue;
        r->chosen[i] = 0;
        double without = waiting(r);
        r->chosen[i] = without > bytes;
        bytes = without > bytes ? bytes : without;
    }
}

/* ---- copying ---- */

static int copy_of(recomputation *r, int value, size_t before);

/* Runs call `at` again before the call `before`; what it reads is there already, or is made again first. */
static void copy_call(recomputation *r, size_t at, size_t before)
{
    cpl_graph *g = r->g;
    cpl_call copy = g->calls[at]; /* with its uid: the same random numbers */
    for (int k = 0; k < copy.inputs; k++)
        if (dropped(r, copy.in[k]))
            copy.in[k] = copy_of(r, copy.in[k], before);
    for (int k = 0; k < copy.outputs; k++) {
        if (copy.out[k] < 0)
            continue;
        cpl_value like = g->values[copy.out[k]];
        int v = cpl_graph_add_value(g, &like.type, like.path);
        if (v < 0)
            return;
        g->values[v].output = k, g->values[v].hidden = like.hidden;
        g->values[v].producer = (int)g->call_count;
        copy.out[k] = v;
    }
    cpl_call *c = cpl_graph_add_call(g);
    if (!c)
        return;
    *c = copy;
    c->merged = 0, c->again = 1;
    r->again[at] = (int)g->call_count - 1;
    r->place[g->call_count - 1 - r->calls] = before;
    g->calls[at].differentiated = 0; /* hidden outputs are those of the copy */
}

static int copy_of(recomputation *r, int value, size_t before)
{
    int at = r->g->values[value].producer, output = r->g->values[value].output;
    if (r->again[at] < 0)
        copy_call(r, (size_t)at, before);
    return r->again[at] < 0 ? value : r->g->calls[r->again[at]].out[output];
}

/* A copy for a call in a loop stands before the whole loop. */
static size_t place_before(const recomputation *r, size_t at)
{
    while (at > r->border && r->g->calls[at].loop && r->g->calls[at - 1].loop)
        at--;
    return at;
}

static void read_copies(recomputation *r, size_t at)
{
    cpl_call c = r->g->calls[at]; /* copying may move the calls */
    size_t before = place_before(r, at);
    for (int k = 0; k < c.inputs; k++)
        if (cpl_call_reads_input(&c, k) && dropped(r, c.in[k]))
            c.in[k] = copy_of(r, c.in[k], before);
    for (int k = 0; k < c.outputs; k++)
        if (cpl_call_reads_output(&c, k) && dropped(r, c.out[k]))
            c.out[k] = copy_of(r, c.out[k], before);
    r->g->calls[at] = c;
}

/* The copies, which stand last now, go to their places. */
static cpl_status put_in_place(recomputation *r, cpl_error *err)
{
    size_t count = r->g->call_count, n = 0, next = r->calls, *order = cpl_alloc(count + 1, sizeof *order);
    if (!order)
        return cpl_error_set(err, CPL_FAILED, "out of memory while compiling");
    for (size_t i = 0; i < r->calls; i++) {
        while (next < count && r->place[next - r->calls] == i)
            order[n++] = next++;
        order[n++] = i;
    }
    cpl_status status = cpl_graph_reorder(r->g, order, err);
    cpl_release(order);
    return status;
}

static cpl_status rewrite(recomputation *r, int *copies, cpl_error *err)
{
    cpl_graph *g = r->g;
    for (size_t i = r->border; i < r->calls; i++)
        if (!g->calls[i].dead)
            read_copies(r, i);
    if (cpl_graph_failed(g)) {
        if (err)
            *err = g->error;
        return g->error.status;
    }
    *copies = (int)(g->call_count - r->calls);
    return *copies > 0 ? put_in_place(r, err) : CPL_OK;
}

/* ---- the pass ---- */

static void pin(recomputation *r)
{
    for (size_t i = 0; i < r->g->output_count; i++)
        if (r->g->outputs[i].value >= 0)
            r->pinned[r->g->outputs[i].value] = 1;
    if (r->g->loss >= 0)
        r->pinned[r->g->loss] = 1;
}

cpl_status cpl_pass_recompute(cpl_graph *g, cpl_recompute level, const cpl_binding *capacity, int *copies,
                              cpl_error *err)
{
    size_t border = 0, values = g->value_count + 1;
    while (border < g->call_count && !g->calls[border].backward && !g->calls[border].reverse)
        border++;
    recomputation r = {.g = g, .capacity = capacity, .border = border, .values = g->value_count,
                       .calls = g->call_count, .chosen = cpl_alloc(border + 1, 1), .pinned = cpl_alloc(values, 1),
                       .needed = cpl_alloc(values, 1), .depth = cpl_alloc(values, 1),
                       .again = cpl_alloc(border + 1, sizeof *r.again),
                       .place = cpl_alloc(border + 1, sizeof *r.place)};
    cpl_status status = CPL_OK;
    *copies = 0;
    if (!r.chosen || !r.pinned || !r.needed || !r.depth || !r.again || !r.place)
        status = cpl_error_set(err, CPL_FAILED, "out of memory while compiling");
    for (size_t i = 0; status == CPL_OK && i < border; i++)
        r.again[i] = -1;
    if (status == CPL_OK && level != CPL_RECOMPUTE_NONE) {
        pin(&r);
        choose(&r, level);
        status = rewrite(&r, copies, err);
    }
    cpl_release(r.chosen);
    cpl_release(r.pinned);
    cpl_release(r.needed);
    cpl_release(r.depth);
    cpl_release(r.again);
    cpl_release(r.place);
    return status;
}
