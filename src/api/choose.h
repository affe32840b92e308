/* choose.h: a configuration chosen from data: what was measured (data/survey.h) → what is chosen → its text (new.c). */
#ifndef CPL_API_CHOOSE_H
#define CPL_API_CHOOSE_H

#include "data/survey.h"

enum { CPL_REASON_SIZE = 160 };

/* Text rules of one side, each with its reason. */
typedef struct cpl_side_choice {
    cpl_tokens tokens;
    char why_tokens[CPL_REASON_SIZE];
    int64_t vocabulary, min_count; /* vocabulary 0: all types, which are few */
    double known;                  /* share of the tokens that this vocabulary knows */
    int64_t max_length;            /* 0: no limit */
} cpl_side_choice;

typedef struct cpl_choice {
    cpl_side_choice source, target;
    int summarizer, copy;
    int symbols; /* 1: few different tokens on both sides: letters, sounds, tags, actions */
    int64_t units;
    double dropout, learning_rate;
    int64_t train_pairs, batch, steps, epochs, patience, warmup; /* steps of an epoch */
} cpl_choice;

/* apart: 1 when the validation pairs stand in a file of their own. */
cpl_status cpl_choose(cpl_choice *c, const cpl_survey *s, int apart, cpl_error *err);

#endif
