/* unknown.c: [UNK] in outputs, replaced by what it looked at: the source word with the most attention at that step, or
 * what a dictionary makes of it (Luong et al. 2015, "Addressing the rare word problem").
 *
 * A replaced word stands behind the vocabulary, like a copied one: its id is the vocabulary's size + its place among
 * the answer's words, so whatever writes an answer needs to know nothing of it. Ids and words live in an arena until
 * the next batch. */
#include <string.h>
#include "api/alignment.h"
#include "api/dictionary.h"
#include "api/model.h"
#include "base/error.h"
#include "base/memory.h"

struct cpl_replacer {
    cpl_dictionary *dictionary; /* NULL: words stay as they are */
    cpl_arena *arena;           /* of the last batch */
};

void cpl_replacer_free(cpl_replacer *r)
{
    if (!r)
        return;
    cpl_dictionary_free(r->dictionary);
    cpl_arena_free(r->arena);
    cpl_release(r);
}

static cpl_status check_tokens(const cpl_model *m, cpl_error *err)
{
    static const char *const pieces[] = {[CPL_TOKENS_CHAR] = "characters", [CPL_TOKENS_BYTE] = "bytes",
                                         [CPL_TOKENS_BPE] = "subwords", [CPL_TOKENS_UNIGRAM] = "subwords"};
    const cpl_config_text *text = &m->file->config->text;
    const char *source = pieces[text->source.tokens], *target = pieces[text->target.tokens];
    if (source || target)
        CPL_FAIL(err, CPL_USAGE, "--replace-unknown puts words of the source in the place of [UNK], but the %s's "
                 "tokens are %s", target ? "target" : "source", target ? target : source);
    return CPL_OK;
}

cpl_status cpl_replacer_open(cpl_model *m, const cpl_generate_options *o, cpl_error *err)
{
    if (!o->replace_unknown)
        return CPL_OK;
    cpl_status status = check_tokens(m, err);
    if (status != CPL_OK)
        return status;
    if (!m->replacer && !(m->replacer = cpl_alloc(1, sizeof *m->replacer)))
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    status = cpl_dictionary_use(&m->replacer->dictionary, o->dictionary, &m->file->config->text, err);
    return status == CPL_OK ? status : cpl_error_context(err, status, "cannot use the dictionary");
}

/* ---- one answer ---- */

static int64_t unknowns(const cpl_decoded *d)
{
    int64_t n = 0;
    for (int64_t i = 0; i < d->length; i++)
        n += d->ids[i] == CPL_ID_UNKNOWN;
    return n;
}

typedef struct replacing {
    cpl_model *m;
    const cpl_token *source; /* the line's tokens */
    size_t source_count;
    cpl_token *words; /* of the answer */
    size_t word_count;
} replacing;

/* What stands for source token s. A token that is no word carries joiners, which only such a target understands. */
static int add_word(replacing *r, int64_t s)
{
    const cpl_config *c = r->m->file->config;
    const cpl_replacer *by = r->m->replacer;
    const cpl_token *from = &r->source[s];
    const cpl_translation *t = by->dictionary ? cpl_dictionary_find(by->dictionary, from->text, from->length) : NULL;
    cpl_str text = {0};
    if (t)
        cpl_str_add_bytes(&text, t->text, t->length);
    else if (c->text.source.tokens == CPL_TOKENS_WORD && c->text.target.tokens != CPL_TOKENS_WORD)
        cpl_join(CPL_TOKENS_WORD, from, 1, &text);
    else
        cpl_str_add_bytes(&text, from->text, from->length);
    char *copy = text.failed ? NULL : cpl_arena_strndup(by->arena, text.data ? text.data : "", text.length);
    r->words[r->word_count++] = (cpl_token){copy, text.length};
    cpl_str_free(&text);
    return copy ? 0 : -1;
}

static int replace_output(replacing *r, cpl_decoded *d)
{
    int64_t size = cpl_vocabulary_size(r->m->file->target);
    int32_t *ids = cpl_arena_alloc(r->m->replacer->arena, ((size_t)d->length + 1) * sizeof *ids);
    if (!ids)
        return -1;
    for (int64_t i = 0; i < d->length; i++) {
        int64_t s = d->ids[i] == CPL_ID_UNKNOWN ? cpl_alignment_of(d, i) : -1;
        ids[i] = d->ids[i];
        if (s < 0 || (size_t)s >= r->source_count)
            continue;
        ids[i] = (int32_t)(size + (int64_t)r->word_count);
        if (add_word(r, s))
            return -1;
    }
    d->ids = ids;
    return 0;
}

/* Room for all words of the answer first: those that a model copied keep their places. */
static int replace_answer(replacing *r, cpl_answer *a, int64_t count)
{
    cpl_arena *arena = r->m->replacer->arena;
    cpl_decoded *nbest = NULL;
    r->words = cpl_arena_alloc(arena, (a->words.count + (size_t)count) * sizeof *r->words);
    if (!r->words)
        return -1;
    if (a->words.count > 0)
        memcpy(r->words, a->words.items, a->words.count * sizeof *r->words);
    r->word_count = a->words.count;
    if (a->output.nbest_count > 0) {
        nbest = cpl_arena_alloc(arena, (size_t)a->output.nbest_count * sizeof *nbest);
        if (!nbest)
            return -1;
        memcpy(nbest, a->output.nbest, (size_t)a->output.nbest_count * sizeof *nbest);
        for (int64_t k = 0; k < a->output.nbest_count; k++)
            if (replace_output(r, &nbest[k]))
                return -1;
        a->output.ids = nbest[0].ids;
        a->output.nbest = nbest;
    } else if (replace_output(r, &a->output)) {
        return -1;
    }
    a->words = (cpl_more_words){r->words, r->word_count};
    return 0;
}

cpl_status cpl_replacer_apply(cpl_model *m, const cpl_line *lines, size_t count, cpl_error *err)
{
    replacing r = {.m = m};
    cpl_arena_free(m->replacer->arena);
    m->replacer->arena = NULL;
    for (size_t i = 0; i < count; i++) {
        cpl_answer *a = &m->answers[i];
        int64_t n = a->blank || a->output.failed ? 0 : unknowns(&a->output);
        for (int64_t k = 0; k < (a->blank || a->output.failed ? 0 : a->output.nbest_count); k++)
            n += unknowns(&a->output.nbest[k]);
        if (n == 0)
            continue;
        size_t words;
        CPL_TRY(cpl_codec_encode(m->source, lines[i].text, lines[i].length, &m->line_ids, &m->line_ids_capacity, &words,
                                 NULL, err), err, "line %lld", (long long)lines[i].number);
        r.source = cpl_codec_tokens(m->source, &r.source_count);
        if (!m->replacer->arena)
            m->replacer->arena = cpl_arena_new(1 << 14);
        if (!m->replacer->arena || replace_answer(&r, a, n))
            CPL_FAIL(err, CPL_FAILED, "out of memory for the words of line %lld", (long long)lines[i].number);
    }
    return CPL_OK;
}
