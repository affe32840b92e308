/* fuse_loss.c: projection to the vocabulary + cross-entropy become one call that works in blocks of rows, so that
 * the logits [batch t vocab] are never whole in memory. */
#include "graph/attributes.h"
#include "graph/graph.h"

static int hidden_value(cpl_graph *g, int like, int call, int output, const char *path)
{
    if (like < 0)
        return -1;
    cpl_type type = g->values[like].type;
    int v = cpl_graph_add_value(g, &type, path);
    if (v >= 0) {
        g->values[v].producer = call;
        g->values[v].output = output;
        g->values[v].hidden = 1;
    }
    return v;
}

/* The projection's place is taken by the loss: x, w and b were made before it, so before the loss too. */
static void fuse(cpl_graph *g, cpl_call *projection, size_t loss, const cpl_op *op)
{
    cpl_call *c = &g->calls[loss];
    int target = c->in[1];
    projection->dead = 1;
    c->op = op; /* with the attributes of the loss */
    c->inputs = 4, c->outputs = c->visible + 3;
    for (int k = 0; k < 3; k++)
        c->in[k] = projection->in[k];
    c->in[3] = target;
    const char *path = c->path;
    for (int k = 0; k < 3; k++) {
        int v = hidden_value(g, g->calls[loss].in[k], (int)loss, g->calls[loss].visible + k, path);
        g->calls[loss].out[g->calls[loss].visible + k] = v;
    }
}

/* The loss that makes the logits itself, where this call only projects; else NULL. */
static const cpl_op *fused_with(const cpl_call *projection)
{
    if (projection->op == cpl_op_named("linear_tied"))
        return cpl_op_named("linear_tied_cross_entropy");
    if (projection->op != cpl_op_named("linear") ||
        ((const cpl_activation_attributes *)projection->attributes)->activation)
        return NULL;
    return cpl_op_named("linear_cross_entropy");
}

void cpl_pass_fuse_loss(cpl_graph *g)
{
    const cpl_op *loss = cpl_op_named("cross_entropy");
    for (size_t i = 0; i < g->call_count; i++) {
        cpl_call *c = &g->calls[i];
        if (c->dead || c->backward || c->op != loss)
            continue;
        int producer = g->values[c->in[0]].producer;
        cpl_call *p = producer >= 0 ? &g->calls[producer] : NULL;
        const cpl_op *fused = p && !p->dead ? fused_with(p) : NULL;
        if (fused && cpl_graph_uses(g, c->in[0]) == 1)
            fuse(g, p, i, fused);
    }
}
