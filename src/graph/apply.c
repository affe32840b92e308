/* apply.c: one op applied while tracing: check and infer by signature, put batches in one order, append the call. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/attributes.h"
#include "graph/graph.h"
#include "graph/signature.h"

typedef struct application {
    cpl_graph *g;
    const cpl_op *op;
    const void *attributes;
    const char *path;
    int values[CPL_MAX_INPUTS];
    int n;
} application;

static void context_of(const application *a, cpl_shape_context *s)
{
    memset(s, 0, sizeof *s);
    s->attributes = a->attributes;
    s->path = a->path;
    for (int i = 0; i < a->n; i++)
        if (a->values[i] >= 0) {
            s->in[i] = &a->g->values[a->values[i]].type;
            s->in_path[i] = a->g->values[a->values[i]].path;
        }
}

/* The order that the call's batches must stand in: the first time axis among its inputs, else the first batch. */
static int call_order(const application *a)
{
    int order = CPL_ORDER_CALLER, found = 0;
    for (int i = 0; i < a->n; i++) {
        const cpl_type *t = a->values[i] >= 0 ? &a->g->values[a->values[i]].type : NULL;
        if (!t || cpl_type_find(t, CPL_DIM_BATCH) < 0)
            continue;
        if (cpl_type_times(t))
            return t->order;
        if (!found)
            order = t->order, found = 1;
    }
    return order;
}

/* Inputs [batch …] without time are moved into the call's order where they stand in another. */
static void align_orders(application *a)
{
    if (strcmp(a->op->name, "reorder") == 0 || strcmp(a->op->name, "pack") == 0 || strcmp(a->op->name, "unpack") == 0)
        return;
    int order = call_order(a);
    for (int i = 0; i < a->n; i++) {
        if (a->values[i] < 0)
            continue;
        const cpl_type *t = &a->g->values[a->values[i]].type;
        if (cpl_type_find(t, CPL_DIM_BATCH) < 0 || cpl_type_times(t) || cpl_type_find(t, CPL_DIM_PADDED) >= 0 ||
            t->order == order)
            continue;
        cpl_reorder_attributes attributes = {.from = t->order, .to = order};
        cpl_node x = {.graph = a->g, .value = a->values[i]}, *inputs[] = {&x};
        cpl_node *moved = cpl_apply(a->g, "reorder", &attributes, inputs, 1);
        if (moved->value >= 0) {
            a->g->values[moved->value].type.order = order;
            a->g->values[moved->value].path = a->g->values[a->values[i]].path;
        }
        a->values[i] = moved->value;
    }
}

/* Shapes of the outputs: by the signature, then amended by the op. */
static cpl_status infer(const application *a, const cpl_signature *s, const cpl_bindings *b, cpl_shape_context *c,
                        cpl_error *err)
{
    int order = call_order(a);
    for (int i = 0; i < s->outputs; i++) {
        memset(&c->out[i], 0, sizeof c->out[i]);
        cpl_status status = cpl_signature_type(&s->out[i], b, a->g->arena, &c->out[i], err);
        if (status != CPL_OK && !a->op->shape)
            return status;
    }
    *err = (cpl_error)CPL_ERROR_INIT;
    if (a->op->shape)
        CPL_TRY(a->op->shape(c, err), err, "cannot build '%s'", a->path);
    for (int i = 0; i < s->outputs; i++) {
        cpl_type *t = &c->out[i];
        int time = cpl_type_find(t, CPL_DIM_TIME);
        t->order = time >= 0 ? t->dim[time].symbol : order;
        if (cpl_type_find(t, CPL_DIM_PADDED) >= 0 || cpl_type_find(t, CPL_DIM_BATCH) < 0)
            t->order = CPL_ORDER_CALLER;
    }
    return CPL_OK;
}

static cpl_node *append_call(const application *a, const cpl_signature *s, const cpl_shape_context *c)
{
    cpl_graph *g = a->g;
    void *attributes = NULL;
    if (a->op->attributes) {
        attributes = cpl_arena_alloc(g->arena, a->op->attributes);
        if (attributes)
            memcpy(attributes, a->attributes, a->op->attributes);
    }
    cpl_call *call = cpl_graph_add_call(g);
    if (call && a->op->attributes && !attributes)
        cpl_error_set(&g->error, CPL_FAILED, "out of memory while tracing the model");
    if (!call || (a->op->attributes && !attributes))
        return &g->poison;
    size_t index = g->call_count - 1;
    call->op = a->op, call->attributes = attributes, call->path = a->path;
    call->inputs = s->inputs, call->outputs = s->outputs, call->visible = s->visible;
    for (int i = 0; i < a->n; i++)
        call->in[i] = a->values[i];
    for (int i = 0; i < s->outputs; i++) {
        int v = cpl_graph_add_value(g, &c->out[i], a->path);
        if (v < 0)
            return &g->poison;
        g->values[v].producer = (int)index;
        g->values[v].output = i;
        g->values[v].hidden = i >= s->visible;
        g->calls[index].out[i] = v;
    }
    return cpl_graph_node(g, g->calls[index].out[0]);
}

cpl_node *cpl_apply(cpl_graph *g, const char *name, const void *attributes, cpl_node *const *inputs, int n)
{
    if (cpl_graph_failed(g))
        return &g->poison;
    application a = {.g = g, .op = cpl_op_named(name), .attributes = attributes, .n = n};
    a.path = g->path.length ? cpl_graph_path(g, "") : name;
    if (!a.op) {
        cpl_graph_fail(g, a.path, "no op is called '%s'", name);
        return &g->poison;
    }
    for (int i = 0; i < n; i++) {
        if (inputs[i] && inputs[i]->value < 0)
            return &g->poison;
        if (inputs[i] && inputs[i]->graph != g) {
            cpl_graph_fail(g, a.path, "input %d of '%s' belongs to another graph", i, name);
            return &g->poison;
        }
        a.values[i] = inputs[i] ? inputs[i]->value : -1;
    }
    cpl_signature s;
    cpl_bindings b;
    cpl_shape_context c;
    context_of(&a, &c);
    if (!cpl_nest_allows(g, a.op, a.path, c.in))
        return &g->poison;
    if ((a.op->check && a.op->check(&c, &g->error) != CPL_OK) ||
        cpl_signature_parse(&s, a.op->signature, &g->error) != CPL_OK ||
        cpl_signature_match(a.op, &s, c.in, c.in_path, &b, &g->error) != CPL_OK) {
        cpl_error_context(&g->error, g->error.status, "cannot build '%s'", a.path);
        return &g->poison;
    }
    align_orders(&a);
    context_of(&a, &c); /* values may have moved */
    cpl_error err = CPL_ERROR_INIT;
    if (cpl_graph_failed(g) || infer(&a, &s, &b, &c, &err) != CPL_OK) {
        if (!cpl_graph_failed(g))
            g->error = err;
        return &g->poison;
    }
    return append_call(&a, &s, &c);
}

void cpl_call_sizes(const cpl_graph *g, const cpl_call *c, const cpl_binding *b, int threads, cpl_size_context *s)
{
    memset(s, 0, sizeof *s);
    s->binding = b, s->attributes = c->attributes, s->threads = threads, s->block_rows = g->block_rows;
    s->backward = c->backward, s->differentiated = c->differentiated || c->backward;
    for (int i = 0; i < c->inputs; i++)
        s->in[i] = c->in[i] >= 0 ? &g->values[c->in[i]].type : NULL;
    for (int i = 0; i < c->outputs; i++)
        s->out[i] = c->out[i] >= 0 ? &g->values[c->out[i]].type : NULL;
}
