/* min_length.c: END only after so many tokens. */
#include <math.h>
#include "decode/rules.h"
#include "text/text.h"

int cpl_rule_min_length(const cpl_decode_rules *o, const cpl_decode_path *path, real *logits, int64_t n)
{
    (void)n;
    if (path->length < o->min_length)
        logits[CPL_ID_END] = -INFINITY;
    return 0;
}
