/* new.c: cpl_new_config: reads pairs, looks at them, chooses, and writes the choice down with its reasons. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "api/choose.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"

enum { REASON_COLUMN = 60 };

/* ---- where the validation pairs are ---- */

static int ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static int same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* "a/tok.train.tsv.gz": "a/tok.valid.tsv" and its like; "a/train.tsv" and "a/pairs.tsv": "a/valid.tsv". A name with
 * more than "train" in it has files of its own kind beside it, and no other will do. NULL: there is none. */
static char *find_valid(const char *pairs)
{
    static const char *const names[] = {"valid", "dev"}, *const ends[] = {".tsv", ".tsv.gz"};
    const char *slash = strrchr(pairs, '/'), *name = slash ? slash + 1 : pairs, *train = strstr(name, "train");
    int folder = (int)(name - pairs), kept = train ? (int)(train - name) : 0;
    const char *rest = train ? train + 5 : name + strlen(name);
    size_t inside = strlen(rest) - (ends_in(rest, ".tsv.gz") ? 7 : ends_in(rest, ".tsv") ? 4 : strlen(rest));
    for (int i = 0; i < 4; i++) {
        cpl_str path = {0};
        cpl_str_printf(&path, "%.*s%.*s%s", folder, pairs, kept, name, names[i / 2]);
        cpl_str_add_bytes(&path, rest, inside);
        cpl_str_add(&path, ends[i % 2]);
        if (!path.failed && cpl_file_exists(path.data) && !same_file(path.data, pairs))
            return cpl_str_take(&path);
        cpl_str_free(&path);
    }
    return NULL;
}

/* ---- writing ---- */

/* A path as YAML reads it back. */
static void add_path(cpl_str *to, const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
    if (path[0] != '-' && strchr(path, '.') && strspn(path, plain) == strlen(path)) {
        cpl_str_add(to, path);
        return;
    }
    cpl_str_add_char(to, '"');
    for (const char *p = path; *p; p++) {
        if (*p == '"' || *p == '\\')
            cpl_str_printf(to, "\\%c", *p);
        else if ((unsigned char)*p < 0x20 || *p == 0x7F)
            cpl_str_printf(to, "\\x%02X", (unsigned)*p);
        else
            cpl_str_add_char(to, *p);
    }
    cpl_str_add_char(to, '"');
}

/* Ends a line that began at `from` with its reason, in one column where there is room. */
static void because(cpl_str *to, size_t from, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void because(cpl_str *to, size_t from, const char *format, ...)
{
    char reason[2 * CPL_REASON_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    int width = (int)(to->length - from), fill = width < REASON_COLUMN ? REASON_COLUMN - width : 0;
    cpl_str_printf(to, "%*s  # %s\n", fill, "", reason);
}

static void add_facts_of(cpl_str *to, const char *name, const cpl_survey_side *side, cpl_tokens tokens)
{
    const cpl_survey_split *s = &side->by[tokens];
    cpl_str_printf(to, "# %s: %.1f tokens a line, %" PRId64 " at most, %.1f characters; %" PRIu64 " different tokens, "
                   "%.0f %% of them seen once\n", name, s->mean, s->longest, side->by[CPL_TOKENS_CHAR].mean,
                   s->tokens.types, s->tokens.types == 0 ? 0.0 :
                   100 * (double)s->tokens.singletons / (double)s->tokens.types);
}

static void add_facts(cpl_str *to, const char *path, const cpl_pairs *pairs, const cpl_choice *c, const cpl_survey *s)
{
    char name[200];
    cpl_str_printf(to, "# Chosen by 'couplet new' from %s: %" PRId64 " pairs of %" PRId64 " lines.\n",
                   cpl_escape(name, sizeof name, path, strlen(path)), s->pairs, pairs->counts.lines);
    add_facts_of(to, "source", &s->source, c->source.tokens);
    add_facts_of(to, "target", &s->target, c->target.tokens);
    cpl_str_printf(to, "# %.0f %% of the target's words stand in their source.\n", 100 * s->copied);
    if (s->several > 0)
        cpl_str_printf(to, "# %" PRId64 " of %" PRId64 " different sources have several targets: 'couplet evaluate "
                       "--group source' scores against all of them.\n", s->several, s->sources);
    cpl_str_add(to, "# What is left out has its default: 'couplet help config'. 'couplet plan' shows what it leads "
                "to.\n");
}

static void add_model(cpl_str *to, const cpl_choice *c, const cpl_survey *s)
{
    size_t from = to->length;
    const cpl_survey_split *source = &s->source.by[c->source.tokens], *target = &s->target.by[c->target.tokens];
    cpl_str_add(to, "model:\n");
    from = to->length;
    cpl_str_printf(to, "  type: %s", c->summarizer ? "summarizer" : "translator");
    because(to, from, c->summarizer ? "long sources, short targets: %.1f tokens to %.1f" : "%.1f tokens to %.1f",
            source->mean, target->mean);
    from = to->length;
    cpl_str_printf(to, "  units: %" PRId64, c->units);
    because(to, from, "for %" PRId64 " pairs of %s", s->pairs, c->symbols ? "few different tokens" : "words");
    from = to->length;
    cpl_str_printf(to, "  dropout: %g", c->dropout);
    because(to, from, "the fewer pairs, the more is needed against learning by heart");
    if (c->copy) {
        from = to->length;
        cpl_str_add(to, "  copy: true");
        because(to, from, "%.0f %% of the target's words stand in their source: names can be taken from there",
                100 * s->copied);
    }
    if (!c->summarizer)
        return;
    from = to->length;
    cpl_str_add(to, "  encoder: {cell: gru, direction: both}");
    because(to, from, "a word is read with what stands before and after it");
    from = to->length;
    cpl_str_add(to, "  decoder: {cell: gru, initial_state: bridge, attention: {score: multihead, position: after, "
                "combine: add_norm}}");
    because(to, from, "the first state and each output see all of the source");
}

/* What is read may be lower case, unless words of it are copied into the output. */
static void add_form(cpl_str *to, const cpl_choice *all, const cpl_side_choice *c)
{
    size_t from = to->length;
    int lower = c == &all->source && c->tokens == CPL_TOKENS_WORD && !all->copy;
    cpl_str_printf(to, "    standardize: %s", all->copy ? "nfkc" : lower ? "nfkc_lower" : "none");
    because(to, from, "%s", all->copy ? "the same on both sides: words are copied as they are read" :
            lower ? "'The' and 'the' are one word when read" :
            c == &all->source ? "read as it stands" : "written as it stands");
}

static void add_side(cpl_str *to, const char *name, const cpl_choice *all, const cpl_side_choice *c,
                     const cpl_survey_split *s)
{
    cpl_str_printf(to, "  %s:\n", name);
    size_t from = to->length;
    cpl_str_printf(to, "    tokens: %s", cpl_tokens_name(c->tokens));
    because(to, from, "%s", c->why_tokens);
    add_form(to, all, c);
    if (c->vocabulary > 0) {
        from = to->length;
        cpl_str_printf(to, "    vocabulary_size: %" PRId64, c->vocabulary);
        because(to, from, "knows %.1f %% of the tokens; %s", 100 * c->known, all->copy ?
                "the rest can be copied" : "'tokens: unigram' would spell the rest in pieces");
    }
    if (c->min_count > 1) {
        from = to->length;
        cpl_str_printf(to, "    min_count: %" PRId64, c->min_count);
        because(to, from, "%" PRIu64 " of %" PRIu64 " types are seen once: as [UNK] they teach about new words",
                s->tokens.singletons, s->tokens.types);
    }
    if (c->max_length > 0) {
        from = to->length;
        cpl_str_printf(to, "    max_length: %" PRId64, c->max_length);
        because(to, from, "the longest has %" PRId64 ", 95 %% have at most %" PRId64 ", 99 %% at most %" PRId64,
                s->longest, s->p95, s->p99);
    }
    if (c->max_length > 0 && all->summarizer) {
        from = to->length;
        cpl_str_add(to, "    too_long: cut");
        because(to, from, "a summary mostly tells the beginning");
    }
}

static void add_data(cpl_str *to, const char *pairs, const char *valid, int64_t valid_pairs)
{
    cpl_str_add(to, "data:\n");
    size_t from = to->length;
    cpl_str_add(to, "  train: ");
    add_path(to, pairs);
    because(to, from, pairs[0] == '/' ? "source<TAB>target" : "source<TAB>target; relative to this file's folder");
    from = to->length;
    cpl_str_add(to, "  valid: ");
    if (valid)
        add_path(to, valid);
    else
        cpl_str_add(to, "5%");
    if (valid)
        because(to, from, "stands beside it: %" PRId64 " pairs", valid_pairs);
    else
        because(to, from, "of the pairs are kept apart: no file of validation pairs stands beside");
}

static void add_training(cpl_str *to, const cpl_choice *c)
{
    cpl_str_add(to, "training:\n");
    size_t from = to->length;
    cpl_str_printf(to, "  batch_size: %" PRId64, c->batch);
    because(to, from, "%" PRId64 " training pairs are %" PRId64 " steps", c->train_pairs, c->steps);
    from = to->length;
    cpl_str_printf(to, "  epochs: %" PRId64, c->epochs);
    because(to, from, "%" PRId64 " steps in all; early stopping may end it before", c->epochs * c->steps);
    from = to->length;
    cpl_str_add(to, "  clip_norm: 1");
    because(to, from, "one odd batch cannot throw the weights away");
    if (!c->copy) {
        from = to->length;
        cpl_str_add(to, "  label_smoothing: 0.1");
        because(to, from, "less certain, and nearly always better");
    }
    from = to->length;
    cpl_str_printf(to, "  optimizer: {learning_rate: %g}", c->learning_rate);
    because(to, from, "%s", c->learning_rate > 1e-3 ? "a small model learns fast" : "the usual one of adam");
    from = to->length;
    cpl_str_printf(to, "  schedule: {name: cosine, warmup_steps: %" PRId64 ", total_steps: %" PRId64 "}", c->warmup,
                   c->epochs * c->steps);
    because(to, from, "total_steps is all epochs: change both together");
    from = to->length;
    cpl_str_printf(to, "  early_stopping: {monitor: val_accuracy, patience: %" PRId64 "}", c->patience);
    because(to, from, "val_loss turns long before the outputs stop improving");
}

static void write(cpl_str *to, const cpl_choice *c, const cpl_survey *s)
{
    add_model(to, c, s);
    cpl_str_add(to, "text:\n");
    add_side(to, "source", c, &c->source, &s->source.by[c->source.tokens]);
    add_side(to, "target", c, &c->target, &s->target.by[c->target.tokens]);
}

/* ---- reading ---- */

/* The files are read by the rules of a training, which refuses what it would refuse. */
static cpl_status read_pairs(cpl_pairs **pairs, const char *path, int swap, cpl_error *err)
{
    cpl_config_source source = {.pairs = path, .written_pairs = path};
    cpl_config_files files = {.items = &source, .count = 1};
    cpl_status status = cpl_pairs_read(pairs, &files, &(cpl_pairs_options){.swap = swap}, err);
    CPL_TRY(status, err, "cannot choose a configuration for '%s'", path);
    if ((*pairs)->count > 0)
        return CPL_OK;
    cpl_pairs_free(*pairs);
    *pairs = NULL;
    CPL_FAIL(err, CPL_USAGE, "'%s' holds no pairs", path);
}

static cpl_status check_path(const char *path, cpl_error *err)
{
    if (!path || !*path)
        CPL_FAIL(err, CPL_USAGE, "no file of pairs was given");
    if (strcmp(path, "-") == 0)
        CPL_FAIL(err, CPL_USAGE, "pairs cannot come from standard input here: training reads them again" CPL_HINT
                 "write them to a file first");
    if (cpl_utf8_valid(path, strlen(path)) != strlen(path))
        CPL_FAIL(err, CPL_USAGE, "the file's name is not UTF-8: a configuration cannot name it" CPL_HINT
                 "rename the file");
    return CPL_OK;
}

static cpl_status compose(const char *path, int swap, const cpl_pairs *pairs, cpl_str *to, cpl_error *err)
{
    char *valid = find_valid(path);
    cpl_pairs *apart = NULL;
    cpl_survey *s = NULL;
    cpl_choice c = {.units = 0};
    cpl_status status = valid ? read_pairs(&apart, valid, swap, err) : CPL_OK;
    if (status == CPL_OK)
        status = cpl_survey_new(&s, pairs, err);
    if (status == CPL_OK)
        status = cpl_choose(&c, s, apart != NULL, err);
    if (status == CPL_OK) {
        add_facts(to, path, pairs, &c, s);
        write(to, &c, s);
        add_data(to, path, valid, apart ? (int64_t)apart->count : 0);
        if (swap)
            cpl_str_add(to, "  swap: true\n");
        add_training(to, &c);
        if (to->failed)
            status = cpl_error_set(err, CPL_FAILED, "out of memory");
    }
    cpl_survey_free(s);
    cpl_pairs_free(apart);
    cpl_release(valid);
    return status;
}

cpl_status cpl_new_config(const char *path, int swap, char **text, cpl_error *err)
{
    cpl_pairs *pairs;
    cpl_str to = {0};
    *text = NULL;
    cpl_status status = check_path(path, err);
    if (status == CPL_OK)
        status = read_pairs(&pairs, path, swap, err);
    if (status != CPL_OK)
        return status;
    status = compose(path, swap, pairs, &to, err);
    cpl_pairs_free(pairs);
    if (status == CPL_OK)
        *text = cpl_str_take(&to);
    cpl_str_free(&to);
    return status;
}
