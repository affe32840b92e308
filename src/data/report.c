/* report.c: what the data set is, for a person, for log.jsonl, and as warnings. */
#include "base/error.h"
#include "data/data.h"
#include "text/unicode.h"

enum { PAIRS_SHOWN = 3, TOKENS_SHOWN = 40, DELETED_WARNING = 1, UNKNOWN_WARNING = 10 };

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* ---- text ---- */

static void add_count(cpl_str *to, int64_t n, const char *what)
{
    if (n)
        cpl_str_printf(to, ", %lld %s", (long long)n, what);
}

static void add_lines(cpl_str *to, const cpl_line_counts *c)
{
    cpl_str_printf(to, "%lld lines", (long long)c->lines);
    add_count(to, c->blank, "blank");
    add_count(to, c->empty_source, "with an empty source");
    add_count(to, c->empty_target, "with an empty target");
    add_count(to, c->empty_both, "with both sides empty");
}

static int64_t words_of(const cpl_side_report *r)
{
    return r->vocabulary - CPL_ID_WORDS;
}

/* "source vectors: 8123 of 9400 words (86.4 %), 23 in lower case, 95.1 % of the tokens, from 'cc.de.300.vec'" */
static void add_vectors(cpl_str *to, const char *name, const cpl_side_report *r)
{
    const cpl_vector_report *v = &r->vectors;
    uint64_t found = (uint64_t)(v->exact + v->lower);
    if (!v->from)
        return;
    cpl_str_printf(to, "%s vectors: %llu of %lld words (%.1f %%)", name, (unsigned long long)found,
                   (long long)words_of(r), percent(found, (uint64_t)words_of(r)));
    add_count(to, v->lower, "of them in lower case");
    cpl_str_printf(to, ", %.1f %% of the tokens, from '%s'\n", percent(v->tokens, r->tokens), v->from);
}

static void add_side(cpl_str *to, const char *name, const cpl_side_report *r, cpl_text_rules rules)
{
    cpl_str_printf(to, "%s: tokens %s, standardize %s, %lld entries", name, cpl_tokens_name(rules.tokens),
                   cpl_standardize_name(rules.standardize), (long long)r->vocabulary);
    if (r->vocabulary_from)
        cpl_str_printf(to, " of '%s'", r->vocabulary_from);
    if (r->tokens)
        cpl_str_printf(to, ", %.2f %% of %llu tokens unknown", percent(r->unknown, r->tokens),
                       (unsigned long long)r->tokens);
    if (r->valid_tokens)
        cpl_str_printf(to, ", %.2f %% of %llu in validation", percent(r->valid_unknown, r->valid_tokens),
                       (unsigned long long)r->valid_tokens);
    cpl_str_printf(to, ", longest %lld", (long long)(r->longest > r->valid_longest ? r->longest : r->valid_longest));
    add_count(to, r->cut, "cut");
    if (r->pad_to)
        cpl_str_printf(to, ", padded to %lld with START and END", (long long)r->pad_to);
    add_count(to, r->over_pad_to, "longer than that");
    if (r->deleted)
        cpl_str_printf(to, ", %.2f %% of the characters deleted by the rule", percent(r->deleted, r->characters));
    cpl_str_add_char(to, '\n');
    add_vectors(to, name, r);
}

/* Tokens by their ids, so that [UNK] shows. White space as a token shows as U+2423. */
static void add_tokens(cpl_str *to, const int32_t *ids, int32_t n, const cpl_vocabulary *v)
{
    char shown[128];
    int32_t padding = n - (int32_t)cpl_source_real(ids, n);
    n -= padding;
    for (int32_t i = 0; i < n && i < TOKENS_SHOWN; i++) {
        size_t length;
        const char *token = cpl_vocabulary_token(v, ids[i], &length);
        int space = token && length && cpl_space_at(token, token + length) == length;
        cpl_str_printf(to, "%s%s", i ? " " : "", !token ? "?" : space ? "\u2423"
                                                                      : cpl_escape(shown, sizeof shown, token, length));
    }
    if (n > TOKENS_SHOWN)
        cpl_str_printf(to, " … (%d tokens)", n);
    if (padding)
        cpl_str_printf(to, " + %d padding", padding);
}

static void add_pairs(cpl_str *to, const cpl_dataset *d)
{
    const cpl_rows *rows = d->train.count ? &d->train : &d->valid;
    cpl_str_add(to, "as the model sees them:\n");
    for (int64_t i = 0; i < rows->count && i < PAIRS_SHOWN; i++) {
        cpl_str_add(to, "  ");
        add_tokens(to, cpl_row_source(rows, i), rows->items[i].source, d->source);
        cpl_str_add(to, "\n    -> ");
        add_tokens(to, cpl_row_target(rows, i), rows->items[i].target, d->target);
        cpl_str_add_char(to, '\n');
    }
}

/* Pairs of a file, and how many of them a pass has. */
static void count_file(const cpl_dataset *d, uint32_t file, int64_t *pairs, int64_t *in_pass)
{
    int64_t first = 0, n = 0;
    while (first < d->train.count && d->train.items[first].file != file)
        first++;
    while (first + n < d->train.count && d->train.items[first + n].file == file)
        n++;
    cpl_rows rows = d->train;
    rows.items += first;
    rows.count = n;
    *pairs = n;
    *in_pass = cpl_rows_in_pass(&rows);
}

static int is_weighted(const cpl_dataset *d, uint32_t file)
{
    return d->train.weights && d->train.weights[file] != 1;
}

static void add_weights(cpl_str *to, const cpl_dataset *d)
{
    int64_t pairs, in_pass;
    for (uint32_t i = 0; i < d->file_count; i++) {
        if (!is_weighted(d, i))
            continue;
        count_file(d, i, &pairs, &in_pass);
        cpl_str_printf(to, "  weight %g: %s, %lld pairs, %lld in a pass\n", d->train.weights[i], d->files[i],
                       (long long)pairs, (long long)in_pass);
    }
    if (d->train.weights)
        cpl_str_printf(to, "  in a pass: %lld pairs\n", (long long)d->report.in_pass);
}

void cpl_dataset_describe(const cpl_dataset *d, cpl_str *to)
{
    const cpl_data_report *r = &d->report;
    char bytes[32];
    if (r->train) {
        cpl_str_printf(to, "training: %lld pairs of ", (long long)r->train);
        add_lines(to, &r->lines);
        cpl_str_add_char(to, '\n');
    }
    add_weights(to, d);
    cpl_str_printf(to, "%s: %lld pairs", r->train ? "validation" : "data", (long long)r->valid);
    if (r->valid_lines.lines) {
        cpl_str_add(to, " of ");
        add_lines(to, &r->valid_lines);
        add_count(to, r->duplicates, "are training pairs too");
        add_count(to, r->shared_sources, "have a source of the training pairs");
    } else {
        cpl_str_add(to, " kept apart from the training files, none with a source of the training pairs");
    }
    cpl_str_printf(to, "\ndropped: %lld too long, %lld emptied by the text rule\n", (long long)r->too_long,
                   (long long)r->emptied);
    add_side(to, "source", &r->source, d->source_rules);
    add_side(to, "target", &r->target, d->target_rules);
    cpl_str_printf(to, "memory: %s\n", cpl_bytes_text(bytes, sizeof bytes, r->bytes));
    add_pairs(to, d);
}

/* ---- JSON ---- */

static cpl_json *lines_json(const cpl_line_counts *c)
{
    cpl_json *o = cpl_json_object();
    cpl_json_set_int(o, "lines", c->lines);
    cpl_json_set_int(o, "pairs", c->pairs);
    cpl_json_set_int(o, "blank", c->blank);
    cpl_json_set_int(o, "empty_source", c->empty_source);
    cpl_json_set_int(o, "empty_target", c->empty_target);
    cpl_json_set_int(o, "empty_both", c->empty_both);
    cpl_json_set_int(o, "byte_order_marks", c->marks);
    return o;
}

static void set_share(cpl_json *o, const char *key, uint64_t part, uint64_t whole)
{
    cpl_json_set_real(o, key, percent(part, whole) / 100, 6);
}

static cpl_json *vectors_json(const cpl_side_report *r)
{
    const cpl_vector_report *v = &r->vectors;
    cpl_json *o = cpl_json_object();
    cpl_json_set_text(o, "file", v->from);
    cpl_json_set_int(o, "vectors", v->vectors);
    cpl_json_set_int(o, "exact", v->exact);
    cpl_json_set_int(o, "lower_case", v->lower);
    cpl_json_set_int(o, "repeated", v->repeated);
    set_share(o, "word_share", (uint64_t)(v->exact + v->lower), (uint64_t)words_of(r));
    set_share(o, "token_share", v->tokens, r->tokens);
    return o;
}

static cpl_json *side_json(const cpl_side_report *r, cpl_text_rules rules)
{
    cpl_json *o = cpl_json_object();
    cpl_json_set_text(o, "tokens", cpl_tokens_name(rules.tokens));
    cpl_json_set_text(o, "standardize", cpl_standardize_name(rules.standardize));
    cpl_json_set_int(o, "vocabulary_size", r->vocabulary);
    if (r->vocabulary_from)
        cpl_json_set_text(o, "vocabulary_from", r->vocabulary_from);
    if (r->vectors.from)
        cpl_json_set(o, "vectors", vectors_json(r));
    cpl_json_set_int(o, "types", r->types);
    cpl_json_set_int(o, "token_count", (int64_t)r->tokens);
    set_share(o, "unknown_share", r->unknown, r->tokens);
    set_share(o, "coverage", r->tokens - r->unknown, r->tokens);
    cpl_json_set_int(o, "validation_token_count", (int64_t)r->valid_tokens);
    set_share(o, "validation_unknown_share", r->valid_unknown, r->valid_tokens);
    set_share(o, "deleted_share", r->deleted, r->characters);
    cpl_json_set_int(o, "special_strings", (int64_t)r->specials);
    cpl_json_set_int(o, "too_long", r->too_long);
    cpl_json_set_int(o, "cut", r->cut);
    cpl_json_set_int(o, "longest", r->longest);
    cpl_json_set_int(o, "validation_longest", r->valid_longest);
    if (r->pad_to) {
        cpl_json_set_int(o, "pad_to", r->pad_to);
        cpl_json_set_int(o, "longer_than_pad_to", r->over_pad_to);
    }
    return o;
}

static cpl_json *weights_json(const cpl_dataset *d)
{
    cpl_json *array = cpl_json_array();
    for (uint32_t i = 0; i < d->file_count; i++) {
        int64_t pairs, in_pass;
        count_file(d, i, &pairs, &in_pass);
        if (pairs == 0)
            continue;
        cpl_json *o = cpl_json_object();
        cpl_json_set_text(o, "file", d->files[i]);
        cpl_json_set_real(o, "weight", d->train.weights[i], 0);
        cpl_json_set_int(o, "pairs", pairs);
        cpl_json_set_int(o, "pairs_in_pass", in_pass);
        cpl_json_add(array, o);
    }
    return array;
}

cpl_json *cpl_dataset_report_json(const cpl_dataset *d)
{
    const cpl_data_report *r = &d->report;
    char checksum[17];
    cpl_json *o = cpl_json_object();
    if (!o)
        return NULL;
    cpl_json_set_int(o, "train_pairs", r->train);
    cpl_json_set_int(o, "train_pairs_in_pass", r->in_pass);
    if (d->train.weights)
        cpl_json_set(o, "weights", weights_json(d));
    cpl_json_set_int(o, "validation_pairs", r->valid);
    cpl_json_set(o, "train_lines", lines_json(&r->lines));
    if (r->valid_lines.lines)
        cpl_json_set(o, "validation_lines", lines_json(&r->valid_lines));
    cpl_json_set_int(o, "dropped_too_long", r->too_long);
    cpl_json_set_int(o, "dropped_emptied", r->emptied);
    cpl_json_set_int(o, "cut", r->source.cut + r->target.cut);
    cpl_json_set_int(o, "duplicates", r->duplicates);
    cpl_json_set_int(o, "shared_sources", r->shared_sources);
    cpl_json_set(o, "source", side_json(&r->source, d->source_rules));
    cpl_json_set(o, "target", side_json(&r->target, d->target_rules));
    cpl_json_set_int(o, "bytes", (int64_t)r->bytes);
    snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)d->checksum);
    cpl_json_set_text(o, "checksum", checksum);
    return o;
}

/* ---- warnings ---- */

/* About one token a line and most of them seen once: the text is not written with spaces (E14). */
static void warn_spaces(const cpl_log *log, const char *side, const cpl_side_report *r, cpl_text_rules rules,
                        int64_t pairs)
{
    int by_spaces = rules.tokens == CPL_TOKENS_SPACE || rules.tokens == CPL_TOKENS_WORD;
    if (!by_spaces || r->tokens == 0 || r->tokens * 10 > (uint64_t)pairs * 11 || r->singletons * 2 < r->types ||
        r->letters < r->tokens * 2)
        return;
    cpl_log_warning(log, "no spaces found in the %s: %llu tokens in %lld lines, %lld types, %lld seen once, %.1f "
                    "characters on average; use character mode (text.%s.tokens: char)", side,
                    (unsigned long long)r->tokens, (long long)pairs, (long long)r->types, (long long)r->singletons,
                    (double)r->letters / (double)r->tokens, side);
}

static void warn_side(const cpl_log *log, const char *side, const cpl_side_report *r, cpl_text_rules rules,
                      int64_t pairs)
{
    double deleted = percent(r->deleted, r->characters), unknown = percent(r->unknown, r->tokens);
    if (deleted >= DELETED_WARNING)
        cpl_log_warning(log, "text rule '%s' deletes %.1f %% of the characters of the %s",
                        cpl_standardize_name(rules.standardize), deleted, side);
    if (unknown >= UNKNOWN_WARNING && r->vocabulary_from)
        cpl_log_warning(log, "%.1f %% of the tokens of the %s are unknown: they are not in the vocabulary of '%s'",
                        unknown, side, r->vocabulary_from);
    else if (unknown >= UNKNOWN_WARNING)
        cpl_log_warning(log, "%.1f %% of the tokens of the %s are unknown: vocabulary_size or min_count is too strict",
                        unknown, side);
    if (r->specials)
        cpl_log_warning(log, "%llu tokens of the %s spell a special entry ([START], [END], [UNK]): they are text, so "
                        "unknown", (unsigned long long)r->specials, side);
    if (r->over_pad_to)
        cpl_log_warning(log, "%lld texts of the %s are longer than text.%s.pad_to (%lld, START and END included): they "
                        "are read as they are, without padding", (long long)r->over_pad_to, side, side,
                        (long long)r->pad_to);
    warn_spaces(log, side, r, rules, pairs);
}

void cpl_dataset_warn(const cpl_dataset *d, const cpl_log *log)
{
    const cpl_data_report *r = &d->report;
    warn_side(log, "source", &r->source, d->source_rules, r->train);
    warn_side(log, "target", &r->target, d->target_rules, r->train);
    if (r->duplicates)
        cpl_log_warning(log, "%lld of %lld validation pairs are training pairs too: validation looks better than it is",
                        (long long)r->duplicates, (long long)r->valid);
    if (r->emptied)
        cpl_log_warning(log, "%lld pairs were dropped because the text rule left nothing of a side",
                        (long long)r->emptied);
    if (r->too_long)
        cpl_log_warning(log, "%lld pairs were dropped as longer than max_length (source %lld, target %lld)",
                        (long long)r->too_long, (long long)r->source.too_long, (long long)r->target.too_long);
}
