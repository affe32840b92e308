/* survey.c: counts over all pairs, one split of one side at a time. */
#include "data/survey.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "text/unicode.h"

/* ---- one split ---- */

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void find_lengths(cpl_survey_split *s, int64_t *lengths, size_t n)
{
    double sum = 0;
    qsort(lengths, n, sizeof *lengths, by_size);
    for (size_t i = 0; i < n; i++)
        sum += (double)lengths[i];
    s->mean = sum / (double)n;
    s->p95 = lengths[(n - 1) * 95 / 100];
    s->p99 = lengths[(n - 1) * 99 / 100];
    s->longest = lengths[n - 1];
}

static const cpl_slice *side_of(const cpl_pair *pair, int target)
{
    return target ? &pair->target : &pair->source;
}

static cpl_status split_side(cpl_survey_split *s, cpl_tokens kind, const cpl_pairs *pairs, int target, int64_t *lengths,
                             cpl_error *err)
{
    cpl_token_list list = {0};
    cpl_status status = CPL_OK;
    s->counter = cpl_counter_new();
    if (!s->counter)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    for (size_t i = 0; i < pairs->count && status == CPL_OK; i++) {
        const cpl_slice *text = side_of(&pairs->items[i], target);
        list.count = 0;
        status = cpl_split(kind, text->text, text->length, &list, err);
        if (status == CPL_OK)
            status = cpl_counter_add(s->counter, list.items, list.count, err);
        lengths[i] = (int64_t)list.count;
    }
    cpl_token_list_free(&list);
    if (status != CPL_OK)
        return status;
    find_lengths(s, lengths, pairs->count);
    s->tokens = cpl_counter_statistics(s->counter);
    return CPL_OK;
}

/* ---- one side ---- */

static int is_mark(char c)
{
    return c == '.' || c == ',' || c == '!' || c == '?';
}

/* What stands between spaces: single characters, and marks that a tokenizer has, or has not, set apart. */
static cpl_status look_at_spaces(cpl_survey_side *side, const cpl_pairs *pairs, int target, cpl_error *err)
{
    cpl_token_list list = {0};
    cpl_status status = CPL_OK;
    uint64_t single = 0, all = 0;
    for (size_t i = 0; i < pairs->count && status == CPL_OK; i++) {
        const cpl_slice *text = side_of(&pairs->items[i], target);
        list.count = 0;
        status = cpl_split(CPL_TOKENS_SPACE, text->text, text->length, &list, err);
        for (size_t k = 0; k < list.count; k++) {
            const cpl_token *t = &list.items[k];
            int mark = t->length > 0 && is_mark(t->text[t->length - 1]);
            single += cpl_utf8_count(t->text, t->length) == 1;
            side->marks_apart += mark && t->length == 1;
            side->marks_attached += mark && t->length > 1;
        }
        all += list.count;
    }
    cpl_token_list_free(&list);
    side->single = all > 0 ? (double)single / (double)all : 0;
    return status;
}

static cpl_status survey_side(cpl_survey_side *side, const cpl_pairs *pairs, int target, int64_t *lengths,
                              cpl_error *err)
{
    cpl_status status = look_at_spaces(side, pairs, target, err);
    for (int kind = 0; kind < CPL_SURVEY_KINDS && status == CPL_OK; kind++)
        status = split_side(&side->by[kind], (cpl_tokens)kind, pairs, target, lengths, err);
    return status;
}

/* ---- both sides ---- */

static int has(const cpl_token_list *list, const cpl_token *token)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].length == token->length && memcmp(list->items[i].text, token->text, token->length) == 0)
            return 1;
    return 0;
}

static cpl_status find_copied(cpl_survey *s, const cpl_pairs *pairs, cpl_error *err)
{
    cpl_token_list source = {0}, target = {0};
    cpl_status status = CPL_OK;
    uint64_t copied = 0, all = 0;
    for (size_t i = 0; i < pairs->count && status == CPL_OK; i++) {
        const cpl_pair *p = &pairs->items[i];
        source.count = target.count = 0;
        status = cpl_split(CPL_TOKENS_WORD, p->source.text, p->source.length, &source, err);
        if (status == CPL_OK)
            status = cpl_split(CPL_TOKENS_WORD, p->target.text, p->target.length, &target, err);
        for (size_t k = 0; k < target.count && status == CPL_OK; k++)
            copied += (uint64_t)has(&source, &target.items[k]);
        all += target.count;
    }
    cpl_token_list_free(&source);
    cpl_token_list_free(&target);
    s->copied = all > 0 ? (double)copied / (double)all : 0;
    return status;
}

/* A source's value is its first pair's number from 1; negative once another target was met. */
static cpl_status find_several(cpl_survey *s, const cpl_pairs *pairs, cpl_error *err)
{
    cpl_map *map = cpl_map_new();
    int failed = !map;
    for (size_t i = 0; i < pairs->count && !failed; i++) {
        const cpl_pair *p = &pairs->items[i];
        int64_t *first = cpl_map_insert(map, p->source.text, p->source.length, NULL);
        failed = !first;
        if (failed || *first < 0)
            continue;
        const cpl_slice *other = *first > 0 ? &pairs->items[*first - 1].target : &p->target;
        if (*first == 0)
            *first = (int64_t)i + 1;
        if (other->length != p->target.length || memcmp(other->text, p->target.text, other->length) != 0)
            *first = -1, s->several++;
    }
    s->sources = failed ? 0 : (int64_t)cpl_map_size(map);
    cpl_map_free(map);
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory for %zu sources", pairs->count);
    return CPL_OK;
}

cpl_status cpl_survey_new(cpl_survey **out, const cpl_pairs *pairs, cpl_error *err)
{
    cpl_survey *s = cpl_alloc(1, sizeof *s);
    int64_t *lengths = cpl_alloc(pairs->count + 1, sizeof *lengths);
    cpl_status status = CPL_OK;
    *out = NULL;
    if (!s || !lengths)
        status = cpl_error_set(err, CPL_FAILED, "out of memory for %zu pairs", pairs->count);
    else if (pairs->count == 0)
        status = cpl_error_set(err, CPL_USAGE, "there is no pair to look at");
    if (status == CPL_OK)
        status = survey_side(&s->source, pairs, 0, lengths, err);
    if (status == CPL_OK)
        status = survey_side(&s->target, pairs, 1, lengths, err);
    if (status == CPL_OK)
        status = find_copied(s, pairs, err);
    if (status == CPL_OK)
        status = find_several(s, pairs, err);
    cpl_release(lengths);
    if (status != CPL_OK) {
        cpl_survey_free(s);
        return status;
    }
    s->pairs = (int64_t)pairs->count;
    *out = s;
    return CPL_OK;
}

void cpl_survey_free(cpl_survey *s)
{
    for (int kind = 0; s && kind < CPL_SURVEY_KINDS; kind++) {
        cpl_counter_free(s->source.by[kind].counter);
        cpl_counter_free(s->target.by[kind].counter);
    }
    cpl_release(s);
}

cpl_status cpl_survey_known(const cpl_survey_split *s, int64_t size, int64_t min_count, double *share, cpl_error *err)
{
    cpl_vocabulary *v;
    CPL_TRY(cpl_vocabulary_build(&v, s->counter, size, min_count, err), err, "cannot try a vocabulary");
    *share = s->tokens.tokens > 0 ? (double)cpl_counter_known(s->counter, v, NULL) / (double)s->tokens.tokens : 1;
    cpl_vocabulary_free(v);
    return CPL_OK;
}
