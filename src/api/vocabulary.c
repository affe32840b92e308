/* vocabulary.c: cpl_vocabulary_make: a vocabulary from a file of text, and how much of that text it covers. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/data.h"

typedef struct making {
    const cpl_vocabulary_options *options;
    cpl_text_rules rules;
    cpl_pairs *pairs;
    int sides;           /* 1: each pair's source, which is the column asked for; 2: both */
    size_t next;         /* of the texts, both sides of a pair one after the other */
    cpl_str text;        /* the text, standardised */
    cpl_token_list tokens;
    cpl_vocabulary *vocabulary;
    cpl_vocabulary_counter *counter;
    cpl_error *err;
    cpl_status status; /* of a text that could not be standardised */
} making;

static const char *const columns[] = {"source", "target", "both"};

/* cpl_subword_lines: the next text; 0 at the end, and then from the start. */
static int next_text(void *user, const char **line, size_t *length)
{
    making *m = user;
    if (m->status != CPL_OK || m->next == m->pairs->count * (size_t)m->sides) {
        m->next = 0;
        return 0;
    }
    const cpl_pair *pair = &m->pairs->items[m->next / (size_t)m->sides];
    const cpl_slice *from = m->next % (size_t)m->sides ? &pair->target : &pair->source;
    cpl_str_clear(&m->text);
    m->status = cpl_standardize_text(m->rules.standardize, from->text, from->length, &m->text, NULL, NULL, m->err);
    if (m->status != CPL_OK)
        cpl_error_context(m->err, m->status, "cannot read line %u of '%s'", pair->line, m->pairs->files[pair->file]);
    m->next++;
    *line = m->text.data ? m->text.data : "";
    *length = m->text.length;
    return m->status == CPL_OK;
}

static void hand_on(void *user, cpl_log_level level, const char *text)
{
    const making *m = user;
    m->options->message(m->options->user, level == CPL_LOG_WARNING, text);
}

/* Of one column a second one need not be there: the reader then takes it for both sides (mirror). */
static cpl_status read_texts(making *m, int column, cpl_error *err)
{
    cpl_config_source file = {.pairs = m->options->input, .written_pairs = m->options->input};
    const cpl_config_files files = {.items = &file, .count = 1};
    const cpl_log log = {.sink = hand_on, .user = m};
    const cpl_pairs_options o = {.swap = column == 1, .mirror = column != 2,
                                 .log = m->options->message ? &log : NULL};
    m->sides = column == 2 ? 2 : 1;
    cpl_status status = cpl_pairs_read(&m->pairs, &files, &o, err);
    if (status == CPL_OK && m->pairs->count == 0)
        status = cpl_error_set(err, CPL_USAGE, "'%s' has no text", m->options->input);
    return status;
}

/* Counts the tokens of all texts, cut with the vocabulary where that has a model. */
static cpl_status count(making *m, cpl_error *err)
{
    const char *line;
    size_t length;
    cpl_status status = CPL_OK;
    while (status == CPL_OK && next_text(m, &line, &length)) {
        status = cpl_vocabulary_split(m->vocabulary, m->rules.tokens, line, length, &m->tokens, err);
        if (status == CPL_OK)
            status = cpl_counter_add(m->counter, m->tokens.items, m->tokens.count, err);
    }
    return status == CPL_OK ? m->status : status;
}

static cpl_status build(making *m, cpl_error *err)
{
    const cpl_vocabulary_options *o = m->options;
    const cpl_subword_lines lines = {next_text, m};
    int64_t min_count = o->min_count > 0 ? o->min_count : 1;
    m->counter = cpl_counter_new();
    if (!m->counter)
        CPL_FAIL(err, CPL_FAILED, "no memory to count tokens");
    if (!cpl_tokens_are_subwords(m->rules.tokens)) {
        cpl_status status = count(m, err);
        if (status != CPL_OK)
            return status;
        return m->rules.tokens == CPL_TOKENS_BYTE
                   ? cpl_vocabulary_of_bytes(&m->vocabulary, err)
                   : cpl_vocabulary_build(&m->vocabulary, m->counter, o->size, min_count, err);
    }
    cpl_status status = cpl_vocabulary_learn(&m->vocabulary, m->rules.tokens, &lines, o->size, min_count, err);
    if (m->status != CPL_OK)
        return m->status;
    return status == CPL_OK ? count(m, err) : status;
}

/* A word list has a token a line, and some characters cannot stand there: what was written is read again. */
static cpl_status write_file(making *m, cpl_error *err)
{
    cpl_vocabulary *again;
    cpl_status status = cpl_vocabulary_write(m->vocabulary, m->options->output, err);
    if (status != CPL_OK)
        return status;
    CPL_TRY(cpl_vocabulary_read(&again, m->options->output, m->rules.tokens, err), err,
            "'%s' is written, but cannot be read as a vocabulary", m->options->output);
    cpl_vocabulary_free(again);
    return CPL_OK;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static cpl_status report(const making *m, int column, char **text, cpl_error *err)
{
    const char *kind = cpl_tokens_name(m->rules.tokens), *rule = cpl_standardize_name(m->rules.standardize);
    cpl_token_statistics s = cpl_counter_statistics(m->counter);
    uint64_t types, known = cpl_counter_known(m->counter, m->vocabulary, &types);
    int64_t entries = cpl_vocabulary_size(m->vocabulary);
    cpl_str out = {0};
    cpl_status status = CPL_OK;
    if (m->options->json) {
        cpl_json *o = cpl_json_object();
        cpl_json_set_text(o, "file", m->options->output);
        cpl_json_set_text(o, "column", columns[column]);
        cpl_json_set_text(o, "tokens", kind);
        cpl_json_set_text(o, "standardize", rule);
        cpl_json_set_int(o, "lines", (int64_t)m->pairs->count);
        cpl_json_set_int(o, "entries", entries);
        cpl_json_set_int(o, "token_count", (int64_t)s.tokens);
        cpl_json_set_int(o, "unknown", (int64_t)(s.tokens - known));
        cpl_json_set_real(o, "unknown_share", share(s.tokens - known, s.tokens), 6);
        cpl_json_set_int(o, "types", (int64_t)s.types);
        cpl_json_set_real(o, "type_share", share(types, s.types), 6);
        status = o ? cpl_json_write(o, &out, err) : cpl_error_set(err, CPL_FAILED, "no memory for the result");
        cpl_json_free(o);
        cpl_str_add_char(&out, '\n');
    } else {
        cpl_str_printf(&out, "%s: tokens %s, standardize %s, %lld entries from %zu lines\n", m->options->output, kind,
                       rule, (long long)entries, m->pairs->count);
        cpl_str_printf(&out, "coverage: %.2f %% of %llu tokens are unknown; it has %llu of %llu different ones "
                       "(%.1f %%)\n", 100 * share(s.tokens - known, s.tokens), (unsigned long long)s.tokens,
                       (unsigned long long)types, (unsigned long long)s.types, 100 * share(types, s.types));
    }
    if (status == CPL_OK && out.failed)
        status = cpl_error_set(err, CPL_FAILED, "no memory for the result");
    if (status == CPL_OK)
        *text = cpl_str_take(&out);
    cpl_str_free(&out);
    return status;
}

/* The text rules, and which column: 0 source, 1 target, 2 both. Defaults are those of a configuration. */
static cpl_status read_options(making *m, int *column, cpl_error *err)
{
    const cpl_vocabulary_options *o = m->options;
    *column = 0;
    while (*column < 3 && strcmp(columns[*column], o->column ? o->column : "source") != 0)
        ++*column;
    if (*column == 3)
        CPL_FAIL(err, CPL_USAGE, "column is '%s', expected source, target or both", o->column);
    if (!o->input || !o->output)
        CPL_FAIL(err, CPL_USAGE, "a vocabulary needs a file to read and one to write");
    if (o->size < 0 || o->min_count < 0)
        CPL_FAIL(err, CPL_USAGE, "size is %lld and min_count %lld, expected at least 0", (long long)o->size,
                 (long long)o->min_count);
    return cpl_text_rules_parse(&m->rules, o->tokens ? o->tokens : "word",
                                o->standardize ? o->standardize : *column == 1 ? "none" : "nfkc", err);
}

cpl_status cpl_vocabulary_make(const cpl_vocabulary_options *options, char **text, cpl_error *err)
{
    making m = {.options = options, .err = err};
    int column;
    *text = NULL;
    cpl_status status = read_options(&m, &column, err);
    if (status == CPL_OK)
        status = read_texts(&m, column, err);
    if (status == CPL_OK)
        status = build(&m, err);
    if (status == CPL_OK)
        status = write_file(&m, err);
    if (status == CPL_OK)
        status = report(&m, column, text, err);
    cpl_pairs_free(m.pairs);
    cpl_str_free(&m.text);
    cpl_token_list_free(&m.tokens);
    cpl_vocabulary_free(m.vocabulary);
    cpl_counter_free(m.counter);
    return status;
}
