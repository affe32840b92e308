/* chrf.c: n-grams of characters and words are slices of a text that has its units' starts beside it, and a map's key is
 * the slice as it stands. Only the output's n-grams need a map: the reference's are taken out of it one by one. */
#include "metric/chrf.h"

#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "text/unicode.h"

/* Unit i is text[starts[i]] up to `gap` bytes before starts[i + 1]; there is one start past the last. */
typedef struct units {
    cpl_str text;
    size_t *starts;
    size_t capacity, count;
    size_t gap; /* bytes between units: 0 for characters, 1 for words */
} units;

enum { CHARACTERS, WORDS, KINDS };

struct cpl_chrf {
    int words;
    units output[KINDS], reference[KINDS];
};

cpl_status cpl_chrf_new(cpl_chrf **c, int words, cpl_error *err)
{
    *c = cpl_alloc(1, sizeof **c);
    if (!*c)
        CPL_FAIL(err, CPL_FAILED, "no memory for scoring");
    (*c)->words = words;
    (*c)->output[WORDS].gap = (*c)->reference[WORDS].gap = 1;
    return CPL_OK;
}

void cpl_chrf_free(cpl_chrf *c)
{
    for (int k = 0; c && k < KINDS; k++) {
        cpl_str_free(&c->output[k].text);
        cpl_str_free(&c->reference[k].text);
        cpl_release(c->output[k].starts);
        cpl_release(c->reference[k].starts);
    }
    cpl_release(c);
}

/* ---- units ---- */

static int push(units *u, const char *text, size_t length)
{
    if (cpl_grow(&u->starts, &u->capacity, u->count + 2, sizeof *u->starts))
        return -1;
    cpl_str_add_bytes(&u->text, text, length);
    if (u->gap)
        cpl_str_add_char(&u->text, ' ');
    u->starts[++u->count] = u->text.length;
    return u->text.failed ? -1 : 0;
}

static int clear(units *u)
{
    cpl_str_clear(&u->text);
    u->count = 0;
    if (cpl_grow(&u->starts, &u->capacity, 1, sizeof *u->starts))
        return -1;
    u->starts[0] = 0;
    return 0;
}

static int punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/* A word of several characters gives away one mark: the last, or else the first. */
static int push_word(units *u, const char *word, size_t length)
{
    uint32_t code;
    if (cpl_utf8_next(word, word + length, &code) == length)
        return push(u, word, length);
    size_t cut = punctuation(word[length - 1]) ? length - 1 : punctuation(word[0]) ? 1 : 0;
    if (cut && push(u, word, cut))
        return -1;
    return push(u, word + cut, length - cut);
}

static int read_text(const cpl_chrf *c, units u[KINDS], cpl_metric_text t)
{
    size_t word = 0; /* where the one at hand begins */
    int failed = clear(&u[CHARACTERS]) || clear(&u[WORDS]);
    for (size_t i = 0, n; i < t.length && !failed; i += n) {
        uint32_t code;
        n = cpl_bleu_space(t.text + i, t.length - i);
        if (n) {
            failed = c->words && i > word && push_word(&u[WORDS], t.text + word, i - word);
            word = i + n;
        } else {
            n = cpl_utf8_next(t.text + i, t.text + t.length, &code);
            failed = push(&u[CHARACTERS], t.text + i, n);
        }
    }
    if (!failed && c->words && t.length > word)
        failed = push_word(&u[WORDS], t.text + word, t.length - word);
    return failed;
}

/* ---- counts ---- */

static const char *ngram(const units *u, size_t i, size_t n, size_t *length)
{
    *length = u->starts[i + n] - u->gap - u->starts[i];
    return u->text.data + u->starts[i];
}

/* N-grams of the output (none where the reference has none of that order), of the reference, common. */
static int count_order(const units *output, const units *reference, size_t n, double counts[3])
{
    size_t outputs = output->count >= n ? output->count - n + 1 : 0, length;
    size_t references = reference->count >= n ? reference->count - n + 1 : 0;
    counts[0] = references ? (double)outputs : 0;
    counts[1] = (double)references;
    counts[2] = 0;
    if (!outputs || !references)
        return 0;
    cpl_map *map = cpl_map_new();
    for (size_t i = 0; map && i < outputs; i++) {
        const char *key = ngram(output, i, n, &length);
        int64_t *count = cpl_map_insert(map, key, length, NULL);
        if (!count) {
            cpl_map_free(map);
            return -1;
        }
        ++*count;
    }
    for (size_t i = 0; map && i < references; i++) {
        const char *key = ngram(reference, i, n, &length);
        int64_t *left = cpl_map_find(map, key, length);
        if (left && *left > 0) {
            --*left;
            counts[2]++;
        }
    }
    int failed = map ? 0 : -1;
    cpl_map_free(map);
    return failed;
}

static int count_reference(cpl_chrf *c, cpl_metric_text text, double row[CPL_CHRF_WIDTH])
{
    int failed = read_text(c, c->reference, text);
    memset(row, 0, CPL_CHRF_WIDTH * sizeof *row);
    for (int i = 0; i < CPL_CHRF_CHARACTERS + c->words && !failed; i++) {
        int kind = i < CPL_CHRF_CHARACTERS ? CHARACTERS : WORDS;
        size_t n = (size_t)(kind == CHARACTERS ? i + 1 : i + 1 - CPL_CHRF_CHARACTERS);
        failed = count_order(&c->output[kind], &c->reference[kind], n, row + 3 * i);
    }
    return failed;
}

cpl_status cpl_chrf_count(cpl_chrf *c, cpl_metric_text output, const cpl_metric_text *references, size_t n,
                          double row[CPL_CHRF_WIDTH], cpl_error *err)
{
    double best = -1, one[CPL_CHRF_WIDTH];
    if (n == 0)
        CPL_FAIL(err, CPL_USAGE, "an output has 0 references, expected at least 1");
    int failed = read_text(c, c->output, output);
    for (size_t r = 0; r < n && !failed; r++) {
        failed = count_reference(c, references[r], one);
        double score = failed ? 0 : cpl_chrf_score(one, c->words);
        if (failed || score <= best)
            continue;
        best = score;
        memcpy(row, one, sizeof one);
    }
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "no memory for scoring a line of %zu bytes", output.length);
    return CPL_OK;
}

/* F of the mean precision and the mean recall over the orders that both sides have. The steps are sacreBLEU's one by
 * one, since the best of several references is found by comparing results. */
double cpl_chrf_score(const double sums[CPL_CHRF_WIDTH], int words)
{
    double precision = 0, recall = 0, weight = 2 * 2;
    int orders = 0;
    for (int i = 0; i < CPL_CHRF_CHARACTERS + words; i++) {
        const double *counts = sums + 3 * i;
        if (counts[0] <= 0 || counts[1] <= 0)
            continue;
        precision += counts[2] / counts[0];
        recall += counts[2] / counts[1];
        orders++;
    }
    if (precision + recall <= 0)
        return 0;
    precision /= orders;
    recall /= orders;
    return 100 * ((1 + weight) * precision * recall / (weight * precision + recall));
}
