/* forced.c: tokens that each output has. An output that lacks some cannot end: where it would end without them, and
 * where there is only room for them, the likeliest missing one comes next. Until then the model may come to them by
 * itself. */
#include <math.h>
#include "decode/rules.h"
#include "text/text.h"

static int is_missing(const cpl_decode_rules *o, const cpl_decode_path *path, int64_t which)
{
    int64_t wanted = 0, have = 0; /* one that is asked for twice comes twice */
    for (int64_t i = 0; i <= which; i++)
        wanted += o->forced[i] == o->forced[which];
    for (int64_t i = 0; i < path->length; i++)
        have += path->ids[i] == o->forced[which];
    return have < wanted;
}

int cpl_rule_forced(const cpl_decode_rules *o, const cpl_decode_path *path, real *logits, int64_t n)
{
    int64_t missing = 0, best = 0;
    for (int64_t i = 0; i < o->forced_count; i++)
        missing += is_missing(o, path, i);
    if (missing == 0)
        return 0;
    for (int64_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    logits[CPL_ID_END] = -INFINITY;
    if (best != CPL_ID_END && path->most - path->length > missing)
        return 0;
    for (int64_t i = 0; i < n; i++)
        path->scratch[i] = -INFINITY;
    for (int64_t i = 0; i < o->forced_count; i++)
        if (is_missing(o, path, i))
            path->scratch[o->forced[i]] = logits[o->forced[i]];
    for (int64_t i = 0; i < n; i++)
        logits[i] = path->scratch[i];
    return 0;
}
