/* forbidden.c: tokens that are never chosen: those of the caller, and marks such as padding and START. */
#include <math.h>
#include "decode/rules.h"

int cpl_rule_forbidden(const cpl_decode_rules *o, const cpl_decode_path *path, real *logits, int64_t n)
{
    for (int64_t i = 0; i < n && i < 64; i++)
        if (path->forbidden >> i & 1)
            logits[i] = -INFINITY;
    for (int64_t i = 0; i < o->forbidden_count; i++)
        if (o->forbidden[i] < n)
            logits[o->forbidden[i]] = -INFINITY;
    return 0;
}
