/* token_error.h: token error rate: word error rate of words, phoneme error rate of phonemes.
 *
 *   cpl_token_error *t;
 *   CPL_TRY(cpl_token_error_new(&t, &(cpl_token_rule){.tokens = CPL_TOKENS_SPACE}, err), err, "cannot score");
 *   for each line: cpl_edits e; CPL_TRY(cpl_token_error_count(t, output, references, n, &e, err), err, "…");
 *   sums … double rate = cpl_token_error_rate(edits, tokens);
 *   cpl_token_error_free(t);
 *
 * The rate is the fewest insertions, deletions and substitutions of tokens that make the outputs the references, over
 * the references' tokens: 0 is perfect, and long outputs can exceed 1. Of several references an output is compared
 * with the nearest, the one with the fewest edits; of equally near ones with the longest (the lower rate). */
#ifndef CPL_METRIC_TOKEN_ERROR_H
#define CPL_METRIC_TOKEN_ERROR_H

#include "metric/metric.h"
#include "text/text.h"

/* What a token is: as a model's text rule splits, or a piece of BLEU's. */
typedef struct cpl_token_rule {
    cpl_tokens tokens;
    int by_pieces; /* 1: by `split` instead */
    cpl_bleu_split split;
} cpl_token_rule;

const char *cpl_token_rule_name(const cpl_token_rule *rule); /* "space", "word", "char", "13a" … */

typedef struct cpl_edits {
    double edits, tokens; /* whole numbers; tokens of the nearest reference */
} cpl_edits;

typedef struct cpl_token_error cpl_token_error; /* scratch; one for one thread */
cpl_status cpl_token_error_new(cpl_token_error **t, const cpl_token_rule *rule, cpl_error *err);
void cpl_token_error_free(cpl_token_error *t); /* NULL is fine */
/* One output against its n references (n ≥ 1). Work: tokens of the output × tokens of the references. */
cpl_status cpl_token_error_count(cpl_token_error *t, cpl_metric_text output, const cpl_metric_text *references,
                                 size_t n, cpl_edits *edits, cpl_error *err);
/* Without any reference token: 0 when nothing was written either, else infinite. */
double cpl_token_error_rate(double edits, double tokens);

#endif
