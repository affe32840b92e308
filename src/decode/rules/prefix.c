/* prefix.c: how each output begins. Nothing overrules it. */
#include <math.h>
#include "decode/rules.h"

int cpl_rule_prefix(const cpl_decode_rules *o, const cpl_decode_path *path, real *logits, int64_t n)
{
    if (path->length >= o->prefix_count)
        return 0;
    for (int64_t i = 0; i < n; i++)
        if (i != o->prefix[path->length])
            logits[i] = -INFINITY;
    return 1;
}
