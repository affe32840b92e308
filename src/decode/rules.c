/* rules.c: the chain of rules. */
#include "decode/rules.h"

#include <math.h>
#include "text/text.h"

/* In this order: how it begins, what may never come, when it may end, what came already, what has to come; and then,
 * among what is left, which of it is drawn from. */
static cpl_decode_rule *const chain[] = {cpl_rule_prefix, cpl_rule_forbidden, cpl_rule_min_length, cpl_rule_repeats,
                                         cpl_rule_forced, cpl_rule_top_k,     cpl_rule_top_p};

int cpl_decode_rules_any(const cpl_decode_rules *o)
{
    return o->min_length > 0 || o->no_repeat > 0 || o->forbidden_count > 0 || o->forced_count > 0 ||
           o->prefix_count > 0 || o->top_k > 0 || (o->top_p > 0 && o->top_p < 1);
}

void cpl_decode_rules_apply(const cpl_decode_rules *o, const cpl_decode_path *path, real *logits, int64_t n)
{
    real end = logits[CPL_ID_END];
    for (size_t i = 0; i < sizeof chain / sizeof *chain; i++)
        if (chain[i](o, path, logits, n))
            break;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(logits[i]))
            return;
    logits[CPL_ID_END] = end;
}
