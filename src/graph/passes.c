/* passes.c: the order of the passes, what they share, and the check after each. */
#include "base/error.h"
#include "graph/graph.h"

uint32_t cpl_op_keeps(const cpl_op *op, const void *attributes)
{
    return op->keeps_of ? op->keeps_of(attributes) : op->keeps;
}

int cpl_call_reads_input(const cpl_call *c, int i)
{
    if (i >= c->inputs || c->in[i] < 0)
        return 0;
    uint32_t unread = c->inputs > 1 && c->din[1] < 0 ? c->op->for_weights : 0;
    return !c->backward || (cpl_op_keeps(c->op, c->attributes) & ~unread & (1u << i));
}

int cpl_call_reads_output(const cpl_call *c, int i)
{
    if (!c->backward || i >= c->outputs || c->out[i] < 0)
        return 0;
    return i >= c->visible || (cpl_op_keeps(c->op, c->attributes) & (1u << (8 + i)));
}

int cpl_call_writes_output(const cpl_call *c, int i)
{
    return !c->backward && i < c->outputs && c->out[i] >= 0 && (i < c->visible || c->differentiated);
}

static int call_uses(const cpl_call *c, int value)
{
    int n = 0;
    for (int i = 0; i < c->inputs; i++)
        n += cpl_call_reads_input(c, i) && c->in[i] == value;
    for (int i = 0; i < c->outputs; i++) {
        n += cpl_call_reads_output(c, i) && c->out[i] == value;
        n += c->backward && c->dout[i] == value;
    }
    return n;
}

int cpl_graph_uses(const cpl_graph *g, int value)
{
    int n = g->loss == value;
    for (size_t i = 0; i < g->output_count; i++)
        n += g->outputs[i].value == value;
    for (size_t i = 0; i < g->call_count; i++)
        if (!g->calls[i].dead)
            n += call_uses(&g->calls[i], value);
    return n;
}

cpl_call *cpl_graph_only_reader(cpl_graph *g, int value)
{
    if (cpl_graph_uses(g, value) != 1)
        return NULL;
    for (size_t i = 0; i < g->call_count; i++)
        if (!g->calls[i].dead && call_uses(&g->calls[i], value))
            return &g->calls[i];
    return NULL;
}

void cpl_graph_replace(cpl_graph *g, int value, int by)
{
    for (size_t i = 0; i < g->call_count; i++) {
        cpl_call *c = &g->calls[i];
        for (int k = 0; k < c->inputs; k++)
            if (c->in[k] == value)
                c->in[k] = by;
        for (int k = 0; k < c->outputs && c->backward; k++) {
            c->out[k] = c->out[k] == value ? by : c->out[k];
            c->dout[k] = c->dout[k] == value ? by : c->dout[k];
        }
    }
    for (size_t i = 0; i < g->output_count; i++)
        if (g->outputs[i].value == value)
            g->outputs[i].value = by;
    if (g->loss == value)
        g->loss = by;
}

/* A value read at call `at` was made before it; in a loop, what a carried state hands from step to step may be made
 * later in the body. */
static int made_before(const cpl_graph *g, int value, size_t at)
{
    if (value < 0)
        return 1;
    if ((size_t)value >= g->value_count)
        return 0;
    int producer = g->values[value].producer;
    if (producer < 0 || ((size_t)producer < at && !g->calls[producer].dead))
        return 1;
    const cpl_call *maker = &g->calls[producer], *reader = at < g->call_count ? &g->calls[at] : NULL;
    return reader && !maker->dead && reader->loop && reader->loop == maker->loop && reader->reverse == maker->reverse &&
           ((reader->op->flags | maker->op->flags) & CPL_OP_CARRY);
}

cpl_status cpl_graph_verify(const cpl_graph *g, const char *after, cpl_error *err)
{
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        if (c->dead)
            continue;
        int sound = 1;
        for (int k = 0; k < c->inputs; k++)
            sound = sound && (!cpl_call_reads_input(c, k) || made_before(g, c->in[k], i));
        for (int k = 0; k < c->outputs; k++) {
            sound = sound && (!cpl_call_reads_output(c, k) || made_before(g, c->out[k], i));
            sound = sound && (!c->backward || made_before(g, c->dout[k], i));
            sound = sound && (c->backward || c->out[k] < 0 || g->values[c->out[k]].producer == (int)i);
        }
        if (!sound)
            CPL_FAIL(err, CPL_FAILED, "pass '%s' broke the graph at '%s' (%s)", after, c->path, c->op->name);
    }
    for (size_t i = 0; i < g->output_count; i++)
        if (!made_before(g, g->outputs[i].value, g->call_count))
            CPL_FAIL(err, CPL_FAILED, "pass '%s' lost the output '%s'", after, g->outputs[i].name);
    return CPL_OK;
}

cpl_status cpl_graph_optimize(cpl_graph *g, int passes, cpl_error *err)
{
    cpl_status status = cpl_pass_loops(g, err);
    if (status == CPL_OK)
        status = cpl_graph_verify(g, "loops", err);
    if (status != CPL_OK)
        return status;
    static const struct {
        int bit;
        const char *name;
        void (*run)(cpl_graph *g);
    } order[] = {
        {CPL_PASS_EQUAL, "equal", cpl_pass_equal},
        {CPL_PASS_DEAD, "dead", cpl_pass_dead},
        {CPL_PASS_FUSE_ACTIVATION, "fuse_activation", cpl_pass_fuse_activation},
        {CPL_PASS_FUSE_LOSS, "fuse_loss", cpl_pass_fuse_loss},
        {CPL_PASS_SHARE_ROWS, "share_rows", cpl_pass_share_rows},
        {CPL_PASS_DEAD, "dead", cpl_pass_dead},
    };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (!(passes & order[i].bit))
            continue;
        order[i].run(g);
        if (cpl_graph_failed(g)) {
            if (err)
                *err = g->error;
            return g->error.status;
        }
        status = cpl_graph_verify(g, order[i].name, err);
        if (status != CPL_OK)
            return status;
    }
    return CPL_OK;
}
