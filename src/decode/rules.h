/* rules.h: what an output may look like. Rules mask logits before a token is chosen; each is one file of rules/ and one
 * line of the chain in rules.c. Probabilities stay those of the model: what a rule forbids is left out, the rest is not
 * raised. */
#ifndef CPL_DECODE_RULES_H
#define CPL_DECODE_RULES_H

#include <stdint.h>
#include "kernel/kernel.h"

/* All zero: no rule. Ids are the target's. */
typedef struct cpl_decode_rules {
    int64_t min_length; /* tokens before END at least */
    int64_t no_repeat;  /* no sequence of so many tokens comes twice; 0: any may */
    const int32_t *forbidden, *forced, *prefix; /* never chosen; each is in the output; how each output begins */
    int64_t forbidden_count, forced_count, prefix_count;
    int64_t top_k; /* samples only: from the k most probable; 0: all */
    double top_p;  /* samples only: from the fewest that have this probability together; 0: all */
} cpl_decode_rules;

/* The output so far, which a rule judges by. */
typedef struct cpl_decode_path {
    const int32_t *ids;
    int64_t length, most; /* tokens so far, and at most */
    uint64_t forbidden;   /* bit i: id i < 64 is not chosen */
    double temperature;
    real *scratch; /* [n] */
} cpl_decode_path;

/* Sets logits [n] of what may not come next to −∞. Returns 1 when the rules behind it have nothing more to say. */
typedef int cpl_decode_rule(const cpl_decode_rules *o, const cpl_decode_path *path, real *logits, int64_t n);

cpl_decode_rule cpl_rule_prefix, cpl_rule_forbidden, cpl_rule_min_length, cpl_rule_repeats, cpl_rule_forced;
cpl_decode_rule cpl_rule_top_k, cpl_rule_top_p;

/* The whole chain. When it leaves nothing, END is allowed. */
void cpl_decode_rules_apply(const cpl_decode_rules *o, const cpl_decode_path *path, real *logits, int64_t n);
int cpl_decode_rules_any(const cpl_decode_rules *o); /* 1: there is a rule */

#endif
