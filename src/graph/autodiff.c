/* autodiff.c: reverse-mode differentiation of the graph.
 *
 * Need is marked from the trainable parameters upward: what does not lead to one gets no backward call, hence
 * keeps nothing. The calls are then walked from the loss backward; each one whose outputs have gradients gets one
 * backward call that reads what the op keeps. Several gradients of one value are summed in a fixed order. The last
 * gradient of a parameter is written straight into the gradient block. */
#include <string.h>
#include "base/error.h"
#include "graph/graph.h"

enum { NONE = -1, SEED = -2 };

typedef struct differentiation {
    cpl_graph *g;
    size_t values;  /* of the forward graph */
    char *needs;    /* by forward value */
    int *gradient;  /* by forward value: value, NONE or SEED (the loss itself) */
    int loop;       /* calls made now belong to this loop's backward run; 0: to none */
} differentiation;

/* A new call, in the loop that is being differentiated. NULL without memory. */
static cpl_call *new_call(differentiation *d)
{
    cpl_call *c = cpl_graph_add_call(d->g);
    if (c) {
        c->loop = d->loop;
        c->reverse = d->loop != 0;
    }
    return c;
}

/* Outputs of calls that read something that needs a gradient need one too. 1 when any was new. */
static int spread_needs(differentiation *d)
{
    cpl_graph *g = d->g;
    int found = 0;
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        int need = 0;
        for (int k = 0; k < c->inputs; k++)
            need |= c->in[k] >= 0 && d->needs[c->in[k]];
        if (c->dead || !need || (c->op->flags & CPL_OP_NO_GRADIENT))
            continue;
        for (int k = 0; k < c->visible; k++)
            if (c->out[k] >= 0 && g->values[c->out[k]].type.element == CPL_ELEMENT_REAL && !d->needs[c->out[k]])
                found = d->needs[c->out[k]] = 1;
    }
    return found;
}

static void mark_needs(differentiation *d)
{
    cpl_graph *g = d->g;
    for (size_t v = 0; v < d->values; v++) {
        int p = g->values[v].parameter;
        d->needs[v] = p >= 0 && cpl_parameters_at(g->parameters, (size_t)p)->trainable;
    }
    for (size_t i = 0; i < g->output_count; i++)
        if (g->outputs[i].gradient)
            d->needs[g->outputs[i].value] = 1;
    while (spread_needs(d)) {
        /* a loop's state is read before it is made: again until nothing new is found */
    }
}

/* A value of the same type as v for a gradient. */
static int gradient_value(cpl_graph *g, int v)
{
    cpl_type type = g->values[v].type;
    return cpl_graph_add_value(g, &type, g->values[v].path);
}

static int add_elementwise(differentiation *d, const char *op, const void *attributes, int a, int b)
{
    cpl_graph *g = d->g;
    int out = gradient_value(g, a);
    cpl_call *c = out < 0 ? NULL : new_call(d);
    if (!c)
        return NONE;
    c->op = cpl_op_named(op);
    c->attributes = attributes;
    c->path = g->values[a].path;
    c->inputs = b >= 0 ? 2 : 1, c->outputs = c->visible = 1;
    c->in[0] = a, c->in[1] = b, c->out[0] = out;
    g->values[out].producer = (int)g->call_count - 1;
    return out;
}

static void contribute(differentiation *d, int v, int gradient)
{
    if (v < 0 || !d->needs[v] || gradient < 0)
        return;
    int have = d->gradient[v];
    d->gradient[v] = have >= 0 ? add_elementwise(d, "add", NULL, have, gradient) : gradient;
}

/* The seed as a real value: 1, written by the program before each backward run. */
static int seed_value(cpl_graph *g)
{
    if (g->seed < 0) {
        cpl_type scalar = {.element = CPL_ELEMENT_REAL, .order = CPL_ORDER_CALLER};
        g->seed = cpl_graph_add_value(g, &scalar, "seed");
    }
    return g->seed;
}

/* Ops that compute their gradients on the way (losses): hidden outputs 0 … are the gradients for a seed of 1. */
static int take_ready(differentiation *d, cpl_call *c)
{
    if (!(c->op->flags & CPL_OP_READY) || d->gradient[c->out[0]] != SEED)
        return 0;
    for (int k = 1; k < c->visible; k++)
        if (c->out[k] >= 0 && d->gradient[c->out[k]] != NONE)
            return 0;
    c->differentiated = 1;
    cpl_call forward = *c; /* contribute may move the calls */
    for (int k = forward.visible; k < forward.outputs; k++)
        contribute(d, forward.in[k - forward.visible], forward.out[k]);
    return 1;
}

/* The gradients that arrive at the call's outputs. */
static void arriving(differentiation *d, const cpl_call *forward, int *dout)
{
    for (int k = 0; k < CPL_MAX_OUTPUTS; k++) {
        dout[k] = k < forward->visible && forward->out[k] >= 0 ? d->gradient[forward->out[k]] : NONE;
        if (dout[k] == SEED)
            dout[k] = seed_value(d->g);
    }
}

/* A backward call of `index` for the inputs in the mask; what it gives is contributed to them. */
static void backward_call(differentiation *d, size_t index, const int *dout, uint32_t inputs)
{
    cpl_graph *g = d->g;
    cpl_call forward = g->calls[index];
    int din[CPL_MAX_INPUTS];
    for (int k = 0; k < CPL_MAX_INPUTS; k++)
        din[k] = inputs >> k & 1 ? gradient_value(g, forward.in[k]) : NONE;
    cpl_call *c = new_call(d);
    if (!c)
        return;
    int loop = c->loop, reverse = c->reverse, at = (int)g->call_count - 1;
    *c = forward; /* with its uid: the same random numbers as the forward pass */
    c->loop = loop, c->reverse = reverse;
    c->backward = c->differentiated = 1;
    memcpy(c->dout, dout, sizeof c->dout);
    memcpy(c->din, din, sizeof din);
    g->calls[index].differentiated = 1;
    for (int k = 0; k < forward.inputs; k++)
        if (din[k] >= 0) {
            g->values[din[k]].producer = at;
            contribute(d, forward.in[k], din[k]);
        }
}

/* Inputs that need a gradient, as a mask. */
static uint32_t needed_inputs(const differentiation *d, const cpl_call *c)
{
    uint32_t mask = 0;
    for (int k = 0; k < c->inputs; k++)
        if (c->in[k] >= 0 && d->needs[c->in[k]])
            mask |= 1u << k;
    return mask;
}

static void pass_on(differentiation *d, const cpl_call *c, int dout, uint32_t inputs)
{
    for (int k = 0; k < c->inputs; k++)
        if (inputs >> k & 1)
            contribute(d, c->in[k], dout);
}

/* Of ready gradients those that nobody needs are not computed. */
static void drop_unneeded(const differentiation *d, cpl_call *c)
{
    for (int k = c->visible; k < c->outputs && (c->op->flags & CPL_OP_READY); k++)
        if (c->in[k - c->visible] < 0 || !d->needs[c->in[k - c->visible]])
            c->out[k] = NONE;
}

/* A figure that is only read must not be minimised as if it had a gradient. */
static void refuse_reports(differentiation *d, const cpl_call *c)
{
    for (int k = 0; k < c->visible; k++)
        if (c->op->reports >> k & 1 && c->out[k] >= 0 && d->gradient[c->out[k]] != NONE)
            cpl_graph_fail(d->g, c->path, "output %d of '%s' is a figure to read, it has no gradient" CPL_HINT
                           "minimize the loss itself", k, c->op->name);
}

static void differentiate_call(differentiation *d, size_t index)
{
    refuse_reports(d, &d->g->calls[index]);
    drop_unneeded(d, &d->g->calls[index]);
    cpl_call forward = d->g->calls[index];
    int dout[CPL_MAX_OUTPUTS];
    if (take_ready(d, &d->g->calls[index]))
        return;
    arriving(d, &forward, dout);
    if (forward.op->flags & CPL_OP_PASS) {
        pass_on(d, &forward, dout[0], needed_inputs(d, &forward));
    } else {
        uint32_t needed = needed_inputs(d, &forward);
        if (forward.op->flags & CPL_OP_PASS_FIRST) {
            pass_on(d, &forward, dout[0], needed & 1);
            needed &= ~1u;
        }
        if (needed)
            backward_call(d, index, dout, needed);
    }
}

static int has_gradient(const differentiation *d, const cpl_call *c)
{
    int needed = 0, arrives = 0;
    for (int k = 0; k < c->inputs; k++)
        needed |= c->in[k] >= 0 && d->needs[c->in[k]];
    for (int k = 0; k < c->visible; k++)
        arrives |= c->out[k] >= 0 && d->gradient[c->out[k]] != NONE;
    return !c->dead && needed && arrives && !(c->op->flags & CPL_OP_NO_GRADIENT);
}

/* ---- loops ----
 *
 * The backward run of a loop goes from its last step to its first. Inside stand only the gradients that travel from
 * step to step: those of values made inside. What is wanted for values from outside (parameters, the memory of an
 * attention) is left until after the loop and done for all steps together: packed rows make it one call. A loop in the
 * steps of another has its backward run in the steps of that one's; what it leaves is done after it in the same step
 * for values of the step, and after both for the rest. */

typedef struct loop_work {
    size_t first, last;             /* forward calls of the loop */
    int loop;                       /* 1 + its number */
    const struct loop_work *outer;  /* the loop in whose steps it runs; NULL: none */
    int (*dout)[CPL_MAX_OUTPUTS];   /* by call: what arrived at its outputs */
    uint32_t *later;                /* by call: inputs whose gradients are left until after the loop */
    int *handed;                    /* by call, of carriers: the value that hands dy to the step before */
} loop_work;

static int made_inside(const differentiation *d, const loop_work *w, int value)
{
    int producer = d->g->values[value].producer;
    return producer >= (int)w->first && producer <= (int)w->last;
}

/* The gradient that the next step will hand over is a contribution like any other; its maker comes at the end. */
static void expect_from_next_step(differentiation *d, loop_work *w, size_t i)
{
    const cpl_call *c = &d->g->calls[i];
    int y = c->in[0];
    if (c->loop != w->loop || !(c->op->flags & CPL_OP_CARRY) || y < 0 || !d->needs[y])
        return;
    int v = gradient_value(d->g, y);
    w->handed[i - w->first] = v;
    contribute(d, y, v);
}

static void carry_back(differentiation *d, const loop_work *w, size_t index)
{
    cpl_graph *g = d->g;
    cpl_call forward = g->calls[index];
    int handed = w->handed[index - w->first], h0 = forward.in[1];
    int first = h0 >= 0 && d->needs[h0] ? gradient_value(g, h0) : NONE;
    if (handed < 0 && first < 0)
        return;
    cpl_call *c = new_call(d);
    if (!c)
        return;
    int loop = c->loop;
    *c = forward;
    c->loop = loop, c->reverse = 1, c->backward = 1;
    c->dout[0] = d->gradient[forward.out[0]];
    c->din[0] = handed, c->din[1] = first;
    for (int k = 0; k < 2; k++)
        if (c->din[k] >= 0)
            g->values[c->din[k]].producer = (int)g->call_count - 1;
}

static void differentiate_step(differentiation *d, loop_work *w, size_t i)
{
    cpl_call forward = d->g->calls[i];
    int *dout = w->dout[i - w->first];
    if (forward.op->flags & CPL_OP_CARRY) {
        carry_back(d, w, i);
        return;
    }
    if (!has_gradient(d, &forward))
        return;
    arriving(d, &forward, dout);
    uint32_t now = 0, needed = needed_inputs(d, &forward);
    for (int k = 0; k < forward.inputs; k++)
        if ((needed >> k & 1) && made_inside(d, w, forward.in[k]))
            now |= 1u << k;
    w->later[i - w->first] = needed & ~now;
    if (forward.op->flags & CPL_OP_PASS)
        pass_on(d, &forward, dout[0], now);
    else if (now)
        backward_call(d, i, dout, now);
}

/* What a first state is owed is what its carrier's backward call gives; due at once where it belongs to a step of the
 * loop around, else after both loops. */
static void after_carrier(differentiation *d, const loop_work *w, size_t i)
{
    const cpl_call forward = d->g->calls[i];
    int first = forward.in[1], own = forward.loop == w->loop;
    int here = own ? !w->outer || (first >= 0 && made_inside(d, w->outer, first))
                   : first >= 0 && !made_inside(d, w, first);
    for (size_t k = w->last + 1; here && k < d->g->call_count; k++) {
        const cpl_call *c = &d->g->calls[k];
        if (c->backward && c->uid == forward.uid && c->din[1] >= 0)
            contribute(d, first, c->din[1]);
    }
}

/* The inputs that were left, now; in a nest those alone that belong to the outer loop's step. */
static void after_loop(differentiation *d, const loop_work *w, size_t i)
{
    cpl_call forward = d->g->calls[i];
    uint32_t later = w->later[i - w->first], now = later;
    if (forward.op->flags & CPL_OP_CARRY) {
        after_carrier(d, w, i);
        return;
    }
    for (int k = 0; w->outer && k < forward.inputs; k++)
        if ((later >> k & 1) && !made_inside(d, w->outer, forward.in[k]))
            now &= ~(1u << k);
    if (w->outer) {
        w->outer->later[i - w->outer->first] = later & ~now;
        memcpy(w->outer->dout[i - w->outer->first], w->dout[i - w->first], sizeof *w->dout);
    }
    if (!now)
        return;
    if (forward.op->flags & CPL_OP_PASS)
        pass_on(d, &forward, w->dout[i - w->first][0], now);
    else
        backward_call(d, i, w->dout[i - w->first], now);
}

static void differentiate_loop(differentiation *d, size_t first, size_t last, const loop_work *outer);

/* The calls of the loop's step, from the last: those of a loop in it as one. */
static void differentiate_steps(differentiation *d, loop_work *w)
{
    for (size_t i = w->last + 1; !cpl_graph_failed(d->g) && i-- > w->first;) {
        size_t last = i;
        if (d->g->calls[i].loop == w->loop) {
            differentiate_step(d, w, i);
            continue;
        }
        while (i > w->first && d->g->calls[i - 1].loop == d->g->calls[last].loop)
            i--;
        differentiate_loop(d, i, last, w);
    }
}

static int work_memory(differentiation *d, loop_work *w)
{
    size_t n = w->last - w->first + 1;
    w->dout = cpl_alloc(n, sizeof *w->dout);
    w->later = cpl_alloc(n, sizeof *w->later);
    w->handed = cpl_alloc(n, sizeof *w->handed);
    if (!w->dout || !w->later || !w->handed)
        cpl_error_set(&d->g->error, CPL_FAILED, "out of memory while differentiating");
    for (size_t i = 0; w->handed && i < n; i++)
        w->handed[i] = NONE;
    return cpl_graph_failed(d->g);
}

static void differentiate_loop(differentiation *d, size_t first, size_t last, const loop_work *outer)
{
    int wanted = 0;
    for (size_t i = first; i <= last; i++)
        wanted |= has_gradient(d, &d->g->calls[i]);
    if (!wanted)
        return;
    loop_work w = {.first = first, .last = last, .outer = outer};
    w.loop = outer ? d->g->calls[first].loop : cpl_graph_outermost(d->g, &d->g->calls[first]);
    if (!work_memory(d, &w)) {
        d->loop = w.loop;
        for (size_t i = first; !cpl_graph_failed(d->g) && i <= last; i++)
            expect_from_next_step(d, &w, i);
        differentiate_steps(d, &w);
        d->loop = outer ? outer->loop : 0;
        for (size_t i = last + 1; !cpl_graph_failed(d->g) && i-- > first;)
            after_loop(d, &w, i);
    }
    cpl_release(w.dout);
    cpl_release(w.later);
    cpl_release(w.handed);
}

/* A parameter may stand in the graph as several values (asked for twice): their gradients are summed first. */
static void place_parameter_gradients(differentiation *d)
{
    cpl_graph *g = d->g;
    static const float one = 1.0f;
    for (size_t p = 0; p < cpl_parameters_count(g->parameters); p++) {
        cpl_parameter_info *info = cpl_parameters_at(g->parameters, p);
        int sum = NONE;
        for (size_t v = 0; v < d->values; v++)
            if (g->values[v].parameter == (int)p && d->gradient[v] >= 0)
                sum = sum < 0 ? d->gradient[v] : add_elementwise(d, "add", NULL, sum, d->gradient[v]);
        info->reached = sum >= 0;
        if (sum < 0 || !info->trainable)
            continue;
        /* what others read as well gets a copy: a parameter's gradient may be staged (stage.c) */
        if (g->values[sum].storage != CPL_STORE_BLOCK || g->values[sum].producer < 0 || cpl_graph_uses(g, sum) > 0)
            sum = add_elementwise(d, "scale", &one, sum, NONE);
        if (sum < 0)
            return;
        g->values[sum].storage = CPL_STORE_GRADIENT;
        g->values[sum].parameter = (int)p;
    }
}

static void resolve_watches(differentiation *d)
{
    for (size_t i = 0; i < d->g->output_count; i++) {
        cpl_graph_output *o = &d->g->outputs[i];
        if (o->gradient)
            o->value = d->gradient[o->value] >= 0 ? d->gradient[o->value] : -1;
        o->gradient = 0;
    }
}

cpl_status cpl_graph_differentiate(cpl_graph *g, cpl_error *err)
{
    if (g->loss < 0)
        CPL_FAIL(err, CPL_USAGE, "the model has nothing to minimize" CPL_HINT
                 "end the model with cpl_minimize(g, loss)");
    differentiation d = {.g = g, .values = g->value_count};
    d.needs = cpl_alloc(g->value_count, 1);
    d.gradient = cpl_alloc(g->value_count, sizeof *d.gradient);
    if (!d.needs || !d.gradient) {
        cpl_release(d.needs);
        cpl_release(d.gradient);
        CPL_FAIL(err, CPL_FAILED, "out of memory while differentiating");
    }
    for (size_t v = 0; v < d.values; v++)
        d.gradient[v] = NONE;
    mark_needs(&d);
    d.gradient[g->loss] = SEED;
    for (size_t i = g->call_count; i-- > 0;) {
        size_t last = i;
        int loop = cpl_graph_outermost(g, &g->calls[last]);
        while (loop && i > 0 && cpl_graph_outermost(g, &g->calls[i - 1]) == loop)
            i--;
        if (loop)
            differentiate_loop(&d, i, last, NULL);
        else if (has_gradient(&d, &g->calls[i]))
            differentiate_call(&d, i);
    }
    place_parameter_gradients(&d);
    resolve_watches(&d);
    cpl_release(d.needs);
    cpl_release(d.gradient);
    if (cpl_graph_failed(g)) {
        if (err)
            *err = g->error;
        return g->error.status;
    }
    return CPL_OK;
}
