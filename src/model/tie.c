/* tie.c: model.tie: which embedding is which, and that a shared one has a shared vocabulary. The table of `all` is the
 * encoder's: what extracts, freezes or begins with an encoder has its embedding. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "model/parts.h"

static cpl_embedding_options options_of(const cpl_model_sizes *n, int target)
{
    return (cpl_embedding_options){.size = target ? n->target_vocabulary : n->source_vocabulary,
                                   .units = cpl_config_embedding(n->config)};
}

static const char *side_of(const cpl_model_sizes *n, int target)
{
    return target && n->config->model.tie != CPL_TIE_ALL ? "decoder" : "encoder";
}

const char *cpl_model_table(const cpl_model_sizes *n)
{
    static const char *const of[] = {[CPL_TIE_TARGET] = "decoder.embedding", [CPL_TIE_ALL] = "encoder.embedding"};
    return n->config->model.tie == CPL_TIE_NONE ? NULL : of[n->config->model.tie];
}

cpl_node *cpl_model_embed(cpl_graph *g, const cpl_model_sizes *n, cpl_node *ids, int target)
{
    cpl_embedding_options o = options_of(n, target);
    cpl_enter(g, side_of(n, target));
    cpl_node *x = cpl_embedding(g, "embedding", ids, &o);
    cpl_leave(g);
    return x;
}

cpl_node *cpl_model_tied(cpl_graph *g, const cpl_model_sizes *n)
{
    cpl_embedding_options o = options_of(n, 1);
    if (n->config->model.tie == CPL_TIE_NONE)
        return NULL;
    cpl_enter(g, side_of(n, 1));
    cpl_node *table = cpl_embedding_table(g, "embedding", &o);
    cpl_leave(g);
    return table;
}

/* "'de.txt'", or where else it is from. */
static const char *shown(const char *from)
{
    return from ? from : "built from the training pairs";
}

cpl_status cpl_model_check_tie(const cpl_config *c, cpl_model_vocabulary source, cpl_model_vocabulary target,
                               cpl_error *err)
{
    int64_t n = cpl_vocabulary_size(source.items), m = cpl_vocabulary_size(target.items), at;
    size_t a, b;
    if (c->model.tie != CPL_TIE_ALL)
        return CPL_OK;
    if (n != m)
        CPL_FAIL(err, CPL_USAGE, "'model.tie' is all, which needs one joint vocabulary, but the source's (%s) has %"
                 PRId64 " entries and the target's (%s) %" PRId64 CPL_HINT
                 "sharing needs one joint vocabulary: set text.shared: true, or model.tie to target",
                 shown(source.from), n, shown(target.from), m);
    at = cpl_vocabulary_first_difference(source.items, target.items);
    if (at == n)
        return CPL_OK;
    const char *x = cpl_vocabulary_token(source.items, at, &a), *y = cpl_vocabulary_token(target.items, at, &b);
    CPL_FAIL(err, CPL_USAGE, "'model.tie' is all, which needs one joint vocabulary, but of the %" PRId64 " entries of "
             "the source's (%s) and the target's (%s) number %" PRId64 " is '%.*s' and '%.*s'" CPL_HINT
             "sharing needs one joint vocabulary: set text.shared: true, or model.tie to target", n,
             shown(source.from), shown(target.from), at, (int)a, x, (int)b, y);
}
