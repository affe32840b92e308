/* share_rows.c: a recurrent layer over embedded ids is told the ids: rows of one id are equal, so their projection is
 * made once, forward and backward. A text repeats its words: of 10,000 tokens a quarter may be different ones.
 *
 * The gradient of such an input is right only as a sum over the rows of an id, which is all that the embedding takes of
 * it; where somebody else could look at it, nothing is done. */
#include <string.h>
#include "graph/graph.h"

static int is_output(const cpl_graph *g, int value)
{
    for (size_t i = 0; i < g->output_count; i++)
        if (g->outputs[i].value == value)
            return 1;
    return 0;
}

void cpl_pass_share_rows(cpl_graph *g)
{
    for (size_t i = 0; i < g->call_count; i++) {
        cpl_call *c = &g->calls[i];
        int at = c->op->ids, producer = c->in[0] >= 0 ? g->values[c->in[0]].producer : -1;
        const cpl_call *p = producer >= 0 ? &g->calls[producer] : NULL;
        if (at == 0 || c->dead || c->loop || !p || p->dead || strcmp(p->op->name, "embedding") != 0 ||
            g->values[p->in[0]].type.entries == 0 || is_output(g, c->in[0]))
            continue;
        c->in[at] = p->in[0];
    }
}
