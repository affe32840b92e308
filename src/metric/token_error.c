/* token_error.c: tokens as numbers, then the edit distance row by row (Levenshtein 1966). */
#include "metric/token_error.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"

typedef struct side {
    int32_t *ids;
    size_t capacity, count;
} side;

struct cpl_token_error {
    cpl_token_rule rule;
    cpl_token_list tokens;
    cpl_str pieces;
    cpl_map *numbers; /* of the item at hand: token → its number */
    side output, reference;
    size_t *row; /* distances of the output's first i tokens to the reference's first j */
    size_t row_capacity;
};

const char *cpl_token_rule_name(const cpl_token_rule *rule)
{
    return rule->by_pieces ? cpl_bleu_split_name(rule->split) : cpl_tokens_name(rule->tokens);
}

cpl_status cpl_token_error_new(cpl_token_error **t, const cpl_token_rule *rule, cpl_error *err)
{
    *t = cpl_alloc(1, sizeof **t);
    if (!*t)
        CPL_FAIL(err, CPL_FAILED, "no memory for scoring");
    (*t)->rule = *rule;
    return CPL_OK;
}

void cpl_token_error_free(cpl_token_error *t)
{
    if (!t)
        return;
    cpl_token_list_free(&t->tokens);
    cpl_str_free(&t->pieces);
    cpl_release(t->output.ids);
    cpl_release(t->reference.ids);
    cpl_release(t->row);
    cpl_release(t);
}

static int push(cpl_token_error *t, side *s, const char *token, size_t length)
{
    int is_new;
    int64_t *number = cpl_map_insert(t->numbers, token, length, &is_new);
    if (!number || cpl_grow(&s->ids, &s->capacity, s->count + 1, sizeof *s->ids))
        return -1;
    if (is_new)
        *number = (int64_t)cpl_map_size(t->numbers);
    s->ids[s->count++] = (int32_t)*number;
    return 0;
}

static int read_pieces(cpl_token_error *t, side *s, cpl_metric_text text)
{
    cpl_str_clear(&t->pieces);
    cpl_bleu_split_line(t->rule.split, text.text, text.length, &t->pieces);
    int failed = t->pieces.failed;
    for (size_t at = 0, n; at < t->pieces.length && !failed; at += n + 1) {
        const char *piece = t->pieces.data + at, *end = memchr(piece, ' ', t->pieces.length - at);
        n = end ? (size_t)(end - piece) : t->pieces.length - at;
        failed = push(t, s, piece, n);
    }
    return failed;
}

static cpl_status read_tokens(cpl_token_error *t, side *s, cpl_metric_text text, cpl_error *err)
{
    int failed = 0;
    s->count = 0;
    if (t->rule.by_pieces) {
        failed = read_pieces(t, s, text);
    } else {
        CPL_TRY(cpl_split(t->rule.tokens, text.text, text.length, &t->tokens, err), err, "cannot count tokens");
        for (size_t i = 0; i < t->tokens.count && !failed; i++)
            failed = push(t, s, t->tokens.items[i].text, t->tokens.items[i].length);
    }
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "no memory for the tokens of %zu bytes of text", text.length);
    return CPL_OK;
}

/* One row is enough: `corner` is the value that stood left of the one above. Returns 0, or -1 without memory. */
static int distance(cpl_token_error *t, size_t *edits)
{
    const side *a = &t->output, *b = &t->reference;
    if (cpl_grow(&t->row, &t->row_capacity, b->count + 1, sizeof *t->row))
        return -1;
    for (size_t j = 0; j <= b->count; j++)
        t->row[j] = j;
    for (size_t i = 0; i < a->count; i++) {
        size_t corner = t->row[0];
        t->row[0] = i + 1;
        for (size_t j = 0; j < b->count; j++) {
            size_t above = t->row[j + 1], left = t->row[j];
            size_t least = (above < left ? above : left) + 1, kept = corner + (a->ids[i] != b->ids[j]);
            t->row[j + 1] = least < kept ? least : kept;
            corner = above;
        }
    }
    *edits = t->row[b->count];
    return 0;
}

static cpl_status count_nearest(cpl_token_error *t, cpl_metric_text output, const cpl_metric_text *references,
                                size_t n, cpl_edits *best, cpl_error *err)
{
    cpl_status status = read_tokens(t, &t->output, output, err);
    for (size_t r = 0; r < n && status == CPL_OK; r++) {
        size_t edits;
        status = read_tokens(t, &t->reference, references[r], err);
        if (status != CPL_OK)
            break;
        if (distance(t, &edits))
            CPL_FAIL(err, CPL_FAILED, "no memory for scoring a line of %zu bytes", output.length);
        double more = (double)edits, tokens = (double)t->reference.count;
        if (r == 0 || more < best->edits || (more <= best->edits && tokens > best->tokens))
            *best = (cpl_edits){more, tokens};
    }
    return status;
}

cpl_status cpl_token_error_count(cpl_token_error *t, cpl_metric_text output, const cpl_metric_text *references,
                                 size_t n, cpl_edits *edits, cpl_error *err)
{
    if (n == 0)
        CPL_FAIL(err, CPL_USAGE, "an output has 0 references, expected at least 1");
    t->numbers = cpl_map_new();
    cpl_status status = t->numbers ? count_nearest(t, output, references, n, edits, err)
                                   : cpl_error_set(err, CPL_FAILED, "no memory for scoring");
    cpl_map_free(t->numbers);
    t->numbers = NULL;
    return status;
}

double cpl_token_error_rate(double edits, double tokens)
{
    if (tokens > 0)
        return edits / tokens;
    return edits > 0 ? (double)INFINITY : 0;
}
