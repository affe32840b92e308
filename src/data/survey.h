/* survey.h: what a file of pairs looks like before anything is decided about it: each side split in every way.
 *
 *   cpl_survey *s;
 *   CPL_TRY(cpl_survey_new(&s, pairs, err), err, "cannot look at the data");
 *   … s->source.by[CPL_TOKENS_WORD].longest, s->copied …
 *   cpl_survey_free(s); */
#ifndef CPL_DATA_SURVEY_H
#define CPL_DATA_SURVEY_H

#include "data/data.h"

enum { CPL_SURVEY_KINDS = CPL_TOKENS_CHAR + 1 };

/* One side, split in one way. Lengths are tokens of a line; tokens.singletons are types seen once. */
typedef struct cpl_survey_split {
    cpl_token_statistics tokens;
    cpl_vocabulary_counter *counter;
    double mean;
    int64_t p95, p99, longest; /* 95 and 99 % of the lines have at most so many */
} cpl_survey_split;

typedef struct cpl_survey_side {
    cpl_survey_split by[CPL_SURVEY_KINDS]; /* by cpl_tokens, of the text as it is */
    double single;                         /* share of the tokens between spaces that are one character */
    int64_t marks_apart, marks_attached;   /* marks .,!? between spaces, and at a word's end */
} cpl_survey_side;

typedef struct cpl_survey {
    int64_t pairs;
    int64_t sources, several; /* different sources, and those of them that have several targets */
    double copied;            /* share of the target's words that stand in their own source */
    cpl_survey_side source, target;
} cpl_survey;

/* pairs must hold at least one. */
cpl_status cpl_survey_new(cpl_survey **s, const cpl_pairs *pairs, cpl_error *err);
void cpl_survey_free(cpl_survey *s); /* NULL is fine */
/* The share of a split's tokens that a vocabulary of this size and min_count knows. */
cpl_status cpl_survey_known(const cpl_survey_split *s, int64_t size, int64_t min_count, double *share, cpl_error *err);

#endif
