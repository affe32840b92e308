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
} differentiation;

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
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        int need = 0;
        for (int k = 0; k < c->inputs; k++)
            need |= c->in[k] >= 0 && d->needs[c->in[k]];
        if (c->dead || !need || (c->op->flags & CPL_OP_NO_GRADIENT))
            continue;
        for (int k = 0; k < c->visible; k++)
            if (c->out[k] >= 0 && g->values[c->out[k]].type.element == CPL_ELEMENT_REAL)
                d->needs[c->out[k]] = 1;
    }
}

/* A value of the same type as v for a gradient. */
static int gradient_value(cpl_graph *g, int v)
{
    cpl_type type = g->values[v].type;
    return cpl_graph_add_value(g, &type, g->values[v].path);
}

static int add_elementwise(cpl_graph *g, const char *op, const void *attributes, int a, int b)
{
    int out = gradient_value(g, a);
    cpl_call *c = out < 0 ? NULL : cpl_graph_add_call(g);
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
    d->gradient[v] = have >= 0 ? add_elementwise(d->g, "add", NULL, have, gradient) : gradient;
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

static void differentiate_call(differentiation *d, size_t index)
{
    cpl_graph *g = d->g;
    cpl_call forward = g->calls[index];
    if (take_ready(d, &g->calls[index]))
        return;
    int dout[CPL_MAX_OUTPUTS];
    for (int k = 0; k < CPL_MAX_OUTPUTS; k++) {
        dout[k] = k < forward.visible && forward.out[k] >= 0 ? d->gradient[forward.out[k]] : NONE;
        if (dout[k] == SEED)
            dout[k] = seed_value(g);
    }
    if (forward.op->flags & CPL_OP_PASS) {
        for (int k = 0; k < forward.inputs; k++)
            contribute(d, forward.in[k], dout[0]);
        return;
    }
    int din[CPL_MAX_INPUTS];
    for (int k = 0; k < CPL_MAX_INPUTS; k++)
        din[k] = k < forward.inputs && forward.in[k] >= 0 && d->needs[forward.in[k]] ? gradient_value(g, forward.in[k])
                                                                                      : NONE;
    cpl_call *c = cpl_graph_add_call(g);
    if (!c)
        return;
    *c = forward;
    c->backward = 1;
    c->uid = forward.uid; /* the same random numbers as the forward pass */
    memcpy(c->dout, dout, sizeof dout);
    memcpy(c->din, din, sizeof din);
    int at = (int)g->call_count - 1;
    g->calls[index].differentiated = 1;
    c->differentiated = 1;
    for (int k = 0; k < forward.inputs; k++)
        if (din[k] >= 0) {
            g->values[din[k]].producer = at;
            contribute(d, forward.in[k], din[k]);
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
                sum = sum < 0 ? d->gradient[v] : add_elementwise(g, "add", NULL, sum, d->gradient[v]);
        info->reached = sum >= 0;
        if (sum < 0 || !info->trainable)
            continue;
        if (g->values[sum].storage != CPL_STORE_BLOCK || g->values[sum].producer < 0)
            sum = add_elementwise(g, "scale", &one, sum, NONE);
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
    for (size_t i = g->call_count; i-- > 0;)
        if (has_gradient(&d, &g->calls[i]))
            differentiate_call(&d, i);
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
