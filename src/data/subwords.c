/* subwords.c: models of subwords are learned from the training pairs alone, once validation is kept apart, and then all
 * rows are encoded again from their texts, which are still there. */
#include "base/error.h"
#include "base/memory.h"
#include "data/encode.h"

/* The training pairs' texts of some sides, one after the other. */
typedef struct reading {
    const cpl_maker *m;
    int first, last, side; /* 0: source, 1: target; side: where it is now */
    size_t next;
    cpl_str text;
    cpl_error *err;
    cpl_status status;
} reading;

static int next_text(void *user, const char **line, size_t *length)
{
    reading *r = user;
    if (r->status != CPL_OK)
        return 0;
    if (r->next == r->m->train.count && r->side < r->last) {
        r->side++;
        r->next = 0;
    }
    if (r->next == r->m->train.count) {
        r->side = r->first;
        r->next = 0;
        return 0;
    }
    const cpl_pair *pair = &r->m->train_text->items[r->m->train.keys[r->next++].item];
    const cpl_slice *text = r->side ? &pair->target : &pair->source;
    const cpl_encode_side *side = r->side ? &r->m->encoder.target : &r->m->encoder.source;
    cpl_str_clear(&r->text);
    r->status = cpl_standardize_text(side->rules.standardize, text->text, text->length, &r->text, NULL, NULL, r->err);
    *line = r->text.data ? r->text.data : "";
    *length = r->text.length;
    return r->status == CPL_OK;
}

/* v: the side's own vocabulary, which the caller keeps. both: learned from both sides. */
static cpl_status learn(cpl_maker *m, int side, int both, cpl_vocabulary **v, cpl_error *err)
{
    const char *name = both ? "shared" : side ? "target" : "source";
    const cpl_config_text *text = &m->options->config->text;
    const cpl_config_side *rules = side ? &text->target : &text->source;
    reading r = {.m = m, .first = both ? 0 : side, .last = both ? 1 : side, .side = both ? 0 : side, .err = err};
    const cpl_subword_lines lines = {next_text, &r};
    cpl_status status = cpl_vocabulary_learn(v, (cpl_tokens)rules->tokens, &lines, rules->vocabulary_size,
                                             rules->min_count, err);
    cpl_str_free(&r.text);
    if (r.status != CPL_OK)
        status = r.status;
    CPL_TRY(status, err, "cannot build the %s vocabulary", name);
    if (m->options->log && cpl_vocabulary_size(*v) < rules->vocabulary_size)
        cpl_log_info(m->options->log, "the %s text gives %lld subwords, vocabulary_size is %lld", name,
                     (long long)cpl_vocabulary_size(*v), (long long)rules->vocabulary_size);
    return CPL_OK;
}

static cpl_status learn_missing(cpl_maker *m, cpl_error *err)
{
    cpl_encode_side *source = &m->encoder.source, *target = &m->encoder.target;
    cpl_status status = CPL_OK;
    int one = cpl_config_one_text(m->options->config), same = m->options->config->model.type == CPL_MODEL_AUTOENCODER;
    const cpl_vocabulary *given[2] = {m->options->source, m->options->target};
    if (cpl_tokens_are_subwords(source->rules.tokens) && !given[0] && !(one && given[1]))
        status = learn(m, 0, one && !same, &m->d->own_source, err);
    if (status == CPL_OK && !one && cpl_tokens_are_subwords(target->rules.tokens) && !given[1])
        status = learn(m, 1, 0, &m->d->own_target, err);
    source->vocabulary = given[0] ? given[0] : m->d->own_source;
    target->vocabulary = given[1] ? given[1] : m->d->own_target;
    if (one) {
        source->vocabulary = source->vocabulary ? source->vocabulary : target->vocabulary;
        target->vocabulary = source->vocabulary;
    }
    return status;
}

/* The rows of one split, in their order; those that are too long now are dropped. */
static cpl_status encode_list(cpl_maker *m, const cpl_pairs *texts, cpl_row_list *list, cpl_error *err)
{
    cpl_row_list again = {0};
    cpl_status status = CPL_OK;
    for (size_t i = 0; i < list->count && status == CPL_OK; i++) {
        size_t item = list->keys[i].item;
        cpl_pair pair = texts->items[item];
        pair.file = list->items[i].file;
        status = cpl_encode_pair(&m->encoder, &pair, item, &again, err);
        if (status != CPL_OK)
            cpl_error_context(err, status, "cannot encode line %u of '%s'", pair.line, m->d->files[pair.file]);
    }
    cpl_row_list_free(list);
    *list = again;
    return status;
}

cpl_status cpl_maker_subwords(cpl_maker *m, cpl_error *err)
{
    cpl_encoder *e = &m->encoder;
    cpl_encode_side *sides[2] = {&e->source, &e->target};
    cpl_side_report *reports[2] = {&m->d->report.source, &m->d->report.target};
    if (!e->no_limits)
        return CPL_OK;
    cpl_status status = learn_missing(m, err);
    if (status != CPL_OK)
        return status;
    e->no_limits = 0;
    e->count = 0;
    uint64_t characters[2], deleted[2]; /* counted when the files were read, for all pairs */
    for (int i = 0; i < 2; i++) {
        characters[i] = reports[i]->characters, deleted[i] = reports[i]->deleted;
        sides[i]->kind = sides[i]->rules.tokens;
        cpl_map_free(sides[i]->types);
        sides[i]->types = cpl_map_new();
        if (!sides[i]->types)
            CPL_FAIL(err, CPL_FAILED, "no memory to encode %zu pairs", m->train.count + m->valid.count);
    }
    status = encode_list(m, m->train_text, &m->train, err);
    if (status == CPL_OK)
        status = encode_list(m, m->valid_text, &m->valid, err);
    for (int i = 0; i < 2; i++)
        reports[i]->characters = characters[i], reports[i]->deleted = deleted[i];
    return status;
}
