/* repeats.c: no sequence of `no_repeat` tokens comes twice. END is no part of a sequence, so it is never blocked. */
#include <math.h>
#include <string.h>
#include "decode/rules.h"
#include "text/text.h"

/* The last size − 1 tokens, wherever they stood before, say what may not follow them now. */
int cpl_rule_repeats(const cpl_decode_rules *o, const cpl_decode_path *path, real *logits, int64_t n)
{
    int64_t before = o->no_repeat - 1;
    if (before < 0 || path->length <= before)
        return 0;
    const int32_t *last = path->ids + path->length - before;
    for (int64_t at = 0; at + before < path->length; at++) {
        int32_t next = path->ids[at + before];
        if (next < n && next != CPL_ID_END && memcmp(path->ids + at, last, (size_t)before * sizeof *last) == 0)
            logits[next] = -INFINITY;
    }
    return 0;
}
