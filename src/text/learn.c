/* learn.c: a SentencePiece model learned from lines of text.
 *
 * Every character of the text gets a piece of its own, so that nothing of it is unknown. Characters that are too rare
 * are taken out first, as if they were spaces: SentencePiece's own way to leave them out, a share of all occurrences,
 * says nothing about a count. */
#include <string.h>
#include "base/error.h"
#include "base/map.h"
#include "text/entries.h"
#include "text/sentencepiece.h"
#include "text/squeeze.h"
#include "text/unicode.h"

#ifdef CPL_HAVE_SENTENCEPIECE

#define RESERVED "\xE2\x96\x85" /* U+2585: SentencePiece marks unknown characters with it and skips its lines */

typedef struct learning {
    const cpl_subword_lines *lines;
    int64_t min_count;
    cpl_map *characters; /* their numbers */
    cpl_str line, kept;
} learning;

/* The next line as a model sees it, in l->line; 0 at the end. */
static int next_line(learning *l)
{
    const char *text;
    size_t length;
    if (!l->lines->next(l->lines->user, &text, &length))
        return 0;
    cpl_str_clear(&l->line);
    cpl_str_add(&l->line, ""); /* data is there, also for an empty line */
    cpl_subwords_squeeze(text, length, &l->line);
    return !l->line.failed;
}

/* Counts characters; returns how many different ones get a piece, −1 without memory. */
static int64_t count_characters(learning *l)
{
    int64_t kept = 0;
    while (next_line(l)) {
        for (const char *p = l->line.data, *end = p + l->line.length; p < end;) {
            uint32_t code;
            size_t n = cpl_utf8_next(p, end, &code);
            int64_t *count = *p == ' ' ? NULL : cpl_map_insert(l->characters, p, n, NULL);
            if (!count && *p != ' ')
                return -1;
            if (count)
                kept += ++*count == l->min_count;
            p += n;
        }
    }
    int64_t *reserved = cpl_map_find(l->characters, RESERVED, strlen(RESERVED));
    if (reserved) {
        kept -= *reserved >= l->min_count;
        *reserved = 0;
    }
    return l->line.failed ? -1 : kept;
}

/* cpl_spm_next: the line without the characters that are too rare. */
static int give(void *user, const char **line, size_t *length)
{
    learning *l = user;
    if (!next_line(l))
        return 0;
    cpl_str_clear(&l->kept);
    for (const char *p = l->line.data, *end = p + l->line.length; p < end;) {
        uint32_t code;
        size_t n = cpl_utf8_next(p, end, &code);
        const int64_t *count = *p == ' ' ? NULL : cpl_map_find(l->characters, p, n);
        if (count && *count >= l->min_count)
            cpl_str_add_bytes(&l->kept, p, n);
        else
            cpl_str_add_char(&l->kept, ' ');
        p += n;
    }
    *line = l->kept.data ? l->kept.data : "";
    *length = l->kept.length;
    return !l->kept.failed;
}

static int take_model(void *user, const char *bytes, size_t length)
{
    cpl_str *model = user;
    cpl_str_add_bytes(model, bytes, length);
    return model->failed ? -1 : 0;
}

static cpl_status learn(learning *l, cpl_tokens kind, int64_t size, cpl_str *model, cpl_error *err)
{
    char why[CPL_SPM_WHY] = "";
    int64_t characters = l->characters ? count_characters(l) : -1, least = CPL_ID_WORDS + 1 + characters;
    if (characters < 0)
        CPL_FAIL(err, CPL_FAILED, "no memory to count characters");
    if (characters == 0)
        CPL_FAIL(err, CPL_USAGE, "there is no text to learn subwords from");
    if (size < least || size > INT32_MAX)
        CPL_FAIL(err, CPL_USAGE, "vocabulary size is %lld, expected at least %lld: 4 special entries, the space and "
                 "%lld different characters" CPL_HINT "a larger size, or a larger min_count, to leave out rare ones",
                 (long long)size, (long long)least, (long long)characters);
    if (cpl_spm_train(cpl_tokens_name(kind), (int)size, give, l, take_model, model, why) != 0)
        CPL_FAIL(err, CPL_FAILED, "SentencePiece cannot learn subwords: %s", cpl_spm_reason(why));
    if (l->line.failed || l->kept.failed)
        CPL_FAIL(err, CPL_FAILED, "no memory for the lines to learn subwords from");
    return CPL_OK;
}

cpl_status cpl_vocabulary_learn(cpl_vocabulary **v, cpl_tokens kind, const cpl_subword_lines *lines, int64_t size,
                                int64_t min_count, cpl_error *err)
{
    learning l = {.lines = lines, .min_count = min_count > 1 ? min_count : 1, .characters = cpl_map_new()};
    cpl_str model = {0};
    *v = NULL;
    cpl_status status = learn(&l, kind, size, &model, err);
    if (status == CPL_OK)
        status = cpl_vocabulary_from_model(v, model.data, model.length, "the model", err);
    cpl_map_free(l.characters);
    cpl_str_free(&l.line);
    cpl_str_free(&l.kept);
    cpl_str_free(&model);
    return status;
}

#else

cpl_status cpl_vocabulary_learn(cpl_vocabulary **v, cpl_tokens kind, const cpl_subword_lines *lines, int64_t size,
                                int64_t min_count, cpl_error *err)
{
    (void)lines, (void)size, (void)min_count;
    *v = NULL;
    CPL_FAIL(err, CPL_USAGE, "cannot learn '%s' tokens: " CPL_NO_SUBWORDS, cpl_tokens_name(kind));
}

#endif
