/* copy.c: source words and labels as extended ids of the target vocabulary: its own id of a word, or for the k-th
 * distinct word of a source line that it lacks its size + k. Words are compared as the text rules of their sides leave
 * them. Of a data set each type is looked up once, not each occurrence; of single lines each word. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/encode.h"

/* ---- the rows of a data set: beside their provisional ids, before these are translated ---- */

typedef struct copy_tables {
    int32_t size;    /* of the target vocabulary */
    int32_t *source; /* by source type: its id in the target vocabulary; −1: it lacks the word */
    int32_t *target; /* by target type, the same */
    int32_t *same;   /* by target type: the source type of the same bytes; −1: there is none */
    int32_t *word;   /* by source type: its number among the words that the vocabulary lacks, in the row … */
    int64_t *row;    /* … counted from 1 over both splits */
} copy_tables;

static void free_tables(copy_tables *t)
{
    cpl_release(t->source);
    cpl_release(t->target);
    cpl_release(t->same);
    cpl_release(t->word);
    cpl_release(t->row);
}

/* Text that spells a special entry is a word like any other that the vocabulary lacks. */
static int32_t known(const cpl_vocabulary *v, const char *token, size_t length)
{
    int32_t id = cpl_vocabulary_id(v, token, length);
    return id == CPL_ID_UNKNOWN ? -1 : id;
}

static int make_tables(copy_tables *t, const cpl_map *source, const cpl_map *target, const cpl_vocabulary *v)
{
    size_t n = cpl_map_size(source), m = cpl_map_size(target), length;
    t->size = (int32_t)cpl_vocabulary_size(v);
    t->source = cpl_alloc(n, sizeof *t->source);
    t->target = cpl_alloc(m, sizeof *t->target);
    t->same = cpl_alloc(m, sizeof *t->same);
    t->word = cpl_alloc(n, sizeof *t->word);
    t->row = cpl_alloc(n, sizeof *t->row);
    if (!t->source || !t->target || !t->same || !t->word || !t->row)
        return -1;
    cpl_map *numbers = cpl_map_new(); /* the maps of types hold no numbers of their own */
    int failed = !numbers;
    for (size_t i = 0; i < n && !failed; i++) {
        const char *token = cpl_map_key(source, i, &length);
        int64_t *number = cpl_map_insert(numbers, token, length, NULL);
        failed = !number;
        if (number)
            *number = (int64_t)i;
        t->source[i] = known(v, token, length);
    }
    for (size_t i = 0; i < m && !failed; i++) {
        const char *token = cpl_map_key(target, i, &length);
        int64_t *number = cpl_map_find(numbers, token, length);
        t->same[i] = number ? (int32_t)*number : -1;
        t->target[i] = known(v, token, length);
    }
    cpl_map_free(numbers);
    return failed ? -1 : 0;
}

/* The source's ids first: they number the words that the labels may then name. */
static void extend_row(copy_tables *t, const cpl_row *row, int64_t number, int32_t *ids)
{
    const int32_t *source = ids, *target = ids + row->source;
    int32_t *copy = ids + row->source + row->target, *labels = copy + row->source, words = 0;
    for (int32_t k = 0; k < row->source; k++) {
        int32_t type = source[k] - CPL_ID_WORDS;
        copy[k] = type < 0 ? source[k] : t->source[type];
        if (copy[k] >= 0)
            continue;
        if (t->row[type] != number) {
            t->row[type] = number;
            t->word[type] = words++;
        }
        copy[k] = t->size + t->word[type];
    }
    for (int32_t k = 0; k < row->target; k++) {
        int32_t type = target[k] - CPL_ID_WORDS;
        labels[k] = type < 0 ? target[k] : t->target[type];
        if (labels[k] >= 0)
            continue;
        int32_t same = t->same[type];
        labels[k] = same >= 0 && t->row[same] == number ? t->size + t->word[same] : CPL_ID_UNKNOWN;
    }
}

cpl_status cpl_maker_copy(cpl_maker *m, cpl_error *err)
{
    copy_tables t = {0};
    if (!m->encoder.copy)
        return CPL_OK;
    int failed = make_tables(&t, m->encoder.source.types, m->encoder.target.types, m->d->target);
    int64_t number = 0;
    for (int split = 0; split < 2 && !failed; split++) {
        const cpl_row_list *list = split ? &m->valid : &m->train;
        for (size_t i = 0; i < list->count; i++)
            extend_row(&t, &list->items[i], ++number, m->encoder.ids + list->items[i].offset);
    }
    free_tables(&t);
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "no memory to find the words that can be copied");
    return CPL_OK;
}

/* ---- single lines ---- */

void cpl_copy_clear(cpl_copy_lines *c)
{
    c->count = c->word_count = 0;
    cpl_arena_free(c->arena);
    c->arena = NULL;
}

void cpl_copy_free(cpl_copy_lines *c)
{
    cpl_copy_clear(c);
    cpl_release(c->ids);
    cpl_release(c->words);
    *c = (cpl_copy_lines){0};
}

/* The number of the token among the words since `first`; appended when it is new. −1: no memory. */
static int64_t word_number(cpl_copy_lines *c, size_t first, const cpl_token *token)
{
    for (size_t i = first; i < c->word_count; i++)
        if (c->words[i].length == token->length && memcmp(c->words[i].text, token->text, token->length) == 0)
            return (int64_t)(i - first);
    if (!c->arena && !(c->arena = cpl_arena_new(4096)))
        return -1;
    char *text = cpl_arena_strndup(c->arena, token->text, token->length);
    if (!text || cpl_grow(&c->words, &c->word_capacity, c->word_count + 1, sizeof *c->words))
        return -1;
    c->words[c->word_count] = (cpl_token){text, token->length};
    return (int64_t)(c->word_count++ - first);
}

cpl_status cpl_copy_add(cpl_copy_lines *c, const cpl_vocabulary *target, const cpl_token *tokens, size_t n,
                        cpl_error *err)
{
    size_t first = c->word_count;
    if (cpl_grow(&c->ids, &c->capacity, c->count + n + 2, sizeof *c->ids))
        CPL_FAIL(err, CPL_FAILED, "no memory for %zu words that can be copied", n);
    int32_t *ids = c->ids + c->count;
    *ids++ = CPL_ID_START;
    for (size_t i = 0; i < n; i++) {
        int32_t id = known(target, tokens[i].text, tokens[i].length);
        int64_t word = id < 0 ? word_number(c, first, &tokens[i]) : 0;
        if (word < 0)
            CPL_FAIL(err, CPL_FAILED, "no memory for %zu words that can be copied", n);
        *ids++ = id < 0 ? (int32_t)(cpl_vocabulary_size(target) + word) : id;
    }
    *ids = CPL_ID_END;
    c->count += n + 2;
    return CPL_OK;
}
