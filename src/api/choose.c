/* choose.c: which configuration suits which data. The thresholds are those of the configurations that did well on sets
 * of 2,000 to 110,000 pairs (examples/, docs/decisions.md). */
#include "api/choose.h"

#include <stdio.h>

#include "base/error.h"

/* Types that are few and each seen often: a closed set, such as letters, sounds, tags or actions. */
enum { FEW_TYPES = 500, SEEN_OFTEN = 20 };
/* A source of so many words is a text, not a sentence; a shorter one too where the target has much of it. */
enum { LONG_SOURCE = 60, LONG_WHEN_COPIED = 30 };
/* An epoch of any set is a part of so many steps. */
enum { STEPS = 6000, EPOCHS_MOST = 40, EPOCHS_LEAST = 6, EPOCHS_LEAST_OF_MANY = 3, MANY_PAIRS = 200000 };

/* ---- text ---- */

static void choose_tokens(cpl_side_choice *c, const cpl_survey_side *side)
{
    const cpl_survey_split *space = &side->by[CPL_TOKENS_SPACE], *characters = &side->by[CPL_TOKENS_CHAR];
    unsigned long long types = (unsigned long long)space->tokens.types;
    char *why = c->why_tokens;
    if (side->single >= 0.8 && space->mean >= 2) {
        c->tokens = CPL_TOKENS_SPACE;
        snprintf(why, CPL_REASON_SIZE, "%.0f %% of what stands between spaces is one character", 100 * side->single);
    } else if (types <= FEW_TYPES && types * SEEN_OFTEN <= space->tokens.tokens) {
        c->tokens = CPL_TOKENS_SPACE;
        snprintf(why, CPL_REASON_SIZE, "a closed set: only %llu different tokens between spaces", types);
    } else if (space->mean <= 1.5 && characters->mean <= 40) {
        c->tokens = CPL_TOKENS_CHAR;
        snprintf(why, CPL_REASON_SIZE, "a line is a word: %.1f of %.1f characters", space->mean, characters->mean);
    } else if (characters->mean >= 15 * space->mean) {
        c->tokens = CPL_TOKENS_CHAR;
        snprintf(why, CPL_REASON_SIZE, "no spaces between words: one in %.0f characters",
                 characters->mean / space->mean);
    } else if (side->marks_apart > 0 && side->marks_apart >= 20 * side->marks_attached) {
        c->tokens = CPL_TOKENS_SPACE;
        snprintf(why, CPL_REASON_SIZE, "split already: %lld marks .,!? stand apart, %lld at a word's end",
                 (long long)side->marks_apart, (long long)side->marks_attached);
    } else {
        c->tokens = CPL_TOKENS_WORD;
        snprintf(why, CPL_REASON_SIZE, "sentences: %.1f words a line", side->by[CPL_TOKENS_WORD].mean);
    }
}

/* Few types: all of them. Otherwise the smallest usual size that knows a share of the tokens, or as many as any. */
static cpl_status choose_vocabulary(cpl_side_choice *c, const cpl_survey_side *side, int64_t pairs, double share,
                                    cpl_error *err)
{
    static const int64_t sizes[] = {4000, 8000, 16000, 32000};
    const cpl_survey_split *s = &side->by[c->tokens];
    c->min_count = 1;
    c->vocabulary = 0;
    c->known = 1;
    if (s->tokens.types <= FEW_TYPES)
        return CPL_OK;
    c->min_count = pairs >= 1000 && s->tokens.singletons > 0 ? 2 : 1;
    c->known = 0;
    for (int i = 0; i < 4 && c->known < share; i++) {
        double known;
        cpl_status status = cpl_survey_known(s, sizes[i], c->min_count, &known, err);
        if (status != CPL_OK)
            return status;
        if (known > c->known)
            c->vocabulary = sizes[i];
        c->known = known;
    }
    return CPL_OK;
}

/* A batch takes the memory and the time of its longest pair: a few that are much longer than others are left out. */
static void choose_limit(cpl_side_choice *c, const cpl_survey_split *s)
{
    c->max_length = s->longest > 100 && s->longest > 3 * s->p99 ? 2 * s->p99 : 0;
}

/* Which words are unknown matters less where they can be copied. */
static cpl_status choose_text(cpl_choice *c, const cpl_survey *s, cpl_error *err)
{
    double share = c->copy ? 0.9 : 0.97;
    cpl_status status = choose_vocabulary(&c->source, &s->source, s->pairs, share, err);
    if (status == CPL_OK)
        status = choose_vocabulary(&c->target, &s->target, s->pairs, share, err);
    choose_limit(&c->source, &s->source.by[c->source.tokens]);
    choose_limit(&c->target, &s->target.by[c->target.tokens]);
    return status;
}

/* ---- model ---- */

static int of_few(const cpl_side_choice *c, const cpl_survey_side *side)
{
    return c->tokens == CPL_TOKENS_CHAR || side->by[c->tokens].tokens.types <= FEW_TYPES;
}

static void choose_type(cpl_choice *c, const cpl_survey *s)
{
    double source = s->source.by[c->source.tokens].mean, target = s->target.by[c->target.tokens].mean;
    int copied = s->copied >= 0.3;
    c->symbols = of_few(&c->source, &s->source) && of_few(&c->target, &s->target);
    c->summarizer = !c->symbols && 3 * target < source &&
                    source > (copied ? LONG_WHEN_COPIED : LONG_SOURCE);
    c->copy = c->summarizer && copied && c->source.tokens == c->target.tokens;
}

static void choose_sizes(cpl_choice *c, const cpl_survey *s)
{
    const cpl_survey_split *source = &s->source.by[c->source.tokens];
    int64_t n = s->pairs;
    if (c->summarizer) {
        c->units = n < 100000 ? 128 : 256;
        c->dropout = 0.3;
        c->source.max_length = source->longest > 400 || c->source.max_length > 0
                                   ? (source->p95 < 400 ? source->p95 : 400) : 0;
    } else if (c->symbols) {
        c->units = n < 50000 ? 192 : 256;
        c->dropout = n < 50000 ? 0.3 : n < 500000 ? 0.2 : 0.1;
    } else {
        c->units = n < 5000 ? 128 : n < MANY_PAIRS ? 256 : 512;
        c->dropout = n < 5000 ? 0.4 : n < 50000 ? 0.3 : n < 500000 ? 0.2 : 0.1;
    }
}

/* ---- training ---- */

static void choose_training(cpl_choice *c, const cpl_survey *s, int apart)
{
    int64_t n = s->pairs, least = n < MANY_PAIRS ? EPOCHS_LEAST : EPOCHS_LEAST_OF_MANY;
    c->train_pairs = apart ? n : n - n / 20;
    c->batch = c->summarizer ? (n < 5000 ? 16 : 32) : n < 20000 ? 32 : 64;
    c->steps = (c->train_pairs + c->batch - 1) / c->batch;
    c->epochs = (STEPS + c->steps / 2) / c->steps;
    c->epochs = c->epochs < least ? least : c->epochs > EPOCHS_MOST ? EPOCHS_MOST : c->epochs;
    c->patience = c->epochs / 4 > 3 ? c->epochs / 4 : 3;
    c->warmup = c->epochs * c->steps / 20 < 300 ? c->epochs * c->steps / 20 : 300;
    c->learning_rate = c->units <= 192 && !c->summarizer ? 2e-3 : 1e-3;
}

cpl_status cpl_choose(cpl_choice *c, const cpl_survey *s, int apart, cpl_error *err)
{
    choose_tokens(&c->source, &s->source);
    choose_tokens(&c->target, &s->target);
    choose_type(c, s);
    CPL_TRY(choose_text(c, s, err), err, "cannot choose the text rules");
    choose_sizes(c, s);
    choose_training(c, s, apart);
    return CPL_OK;
}
