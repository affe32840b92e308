/* leak.c: a decoder that is fed its own labels (case C13): the loss falls at once, since the model only copies, and
 * decoding from START gives nonsense. Told once, before the first training step. */
#include <string.h>
#include "graph/program.h"

/* 1 when the value is an input that is read as labels by a loss. */
static int is_label(const cpl_graph *g, int value)
{
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        for (int k = 0; k < c->inputs && (c->op->flags & CPL_OP_READY); k++)
            if (c->in[k] == value && g->values[value].type.element == CPL_ELEMENT_ID)
                return 1;
    }
    return 0;
}

/* The same ids over the same time of the same vocabulary: position by position, in every row. */
static int same_ids(const cpl_program *p, size_t a, size_t b)
{
    const cpl_graph *g = p->traced;
    const cpl_type *x = &g->values[g->inputs[a].value].type, *y = &g->values[g->inputs[b].value].type;
    int at = cpl_type_find(x, CPL_DIM_TIME), other = cpl_type_find(y, CPL_DIM_TIME);
    if (x->element != CPL_ELEMENT_ID || y->element != CPL_ELEMENT_ID || x->rank != 2 || y->rank != 2)
        return 0;
    if (at < 0 || other < 0 || x->dim[at].symbol != y->dim[other].symbol || !x->vocabulary || !y->vocabulary ||
        strcmp(x->vocabulary, y->vocabulary) != 0)
        return 0;
    int64_t n = cpl_type_elements(x, &p->binding);
    return n > 0 && memcmp(p->inputs[a].data, p->inputs[b].data, (size_t)n * sizeof(int32_t)) == 0;
}

void cpl_program_warn_leak(const cpl_program *p)
{
    const cpl_graph *g = p->traced;
    for (size_t label = 0; label < g->input_count; label++)
        for (size_t i = 0; i < g->input_count && is_label(g, g->inputs[label].value); i++)
            if (i != label && !is_label(g, g->inputs[i].value) && same_ids(p, i, label))
                cpl_log_warning(&p->log, "input '%s' equals the labels '%s' at every position: the model can copy its "
                                "answer instead of learning it; a decoder reads START and then the labels without the "
                                "last", g->inputs[i].name, g->inputs[label].name);
}
