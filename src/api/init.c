/* init.c: training.init: parts of other models to begin with. What a part was trained on travels with it: its
 * vocabulary and text rules become those of the side that it reads or writes (case H06); what contradicts them is
 * refused. */
#include <inttypes.h>
#include <string.h>

#include "api/model.h"
#include "api/run_data.h"
#include "base/error.h"
#include "base/memory.h"

/* Which side's ids the part's tensors count in: bit 0 source, bit 1 target. */
static int sides_of(const cpl_model_file *f, const char *part)
{
    int sides = 0;
    for (size_t i = 0; i < cpl_tensor_file_count(f->tensors); i++) {
        const char *name = cpl_tensor_file_at(f->tensors, i)->name;
        if (part && !cpl_path_matches(part, name))
            continue;
        sides |= strncmp(name, "encoder.embedding.", 18) != 0 ? 0 : f->config->model.tie == CPL_TIE_ALL ? 3 : 1;
        sides |= strncmp(name, "decoder.embedding.", 18) == 0 || strncmp(name, "decoder.output.", 15) == 0 ||
                 strncmp(name, "output.", 7) == 0 ? 2 : 0;
    }
    return sides;
}

/* The first entry in which two vocabularies differ (case H02). */
cpl_status cpl_refuse_vocabulary(const cpl_vocabulary *a, const cpl_vocabulary *b, const char *side, cpl_error *err)
{
    int64_t n = cpl_vocabulary_size(a), m = cpl_vocabulary_size(b), at = cpl_vocabulary_first_difference(a, b);
    size_t la, lb;
    if (at == n && at == m) /* not lists: subwords with other scores */
        CPL_FAIL(err, CPL_USAGE, "its %s vocabulary is another SentencePiece model than the run's, of the same %" PRId64
                 " entries", side, n);
    if (at == n || at == m)
        CPL_FAIL(err, CPL_USAGE, "its %s vocabulary has %" PRId64 " entries, the one of the run has %" PRId64, side, n,
                 m);
    const char *x = cpl_vocabulary_token(a, at, &la), *y = cpl_vocabulary_token(b, at, &lb);
    CPL_FAIL(err, CPL_USAGE, "its %s vocabulary (%" PRId64 " entries) is another than the run's (%" PRId64 "): entry %"
             PRId64 " is '%.*s' and '%.*s'", side, n, m, at, (int)la, x, (int)lb, y);
}

/* from: whose it is, for the report. */
static cpl_status take_vocabulary(cpl_run_data *r, const cpl_vocabulary *v, const char *from, int target,
                                  cpl_error *err)
{
    const cpl_vocabulary **to = target ? &r->target : &r->source;
    const char *side = target ? "target" : "source", **name = target ? &r->target_from : &r->source_from;
    if (*to && cpl_vocabulary_checksum(v) != cpl_vocabulary_checksum(*to))
        return cpl_refuse_vocabulary(v, *to, side, err);
    *name = *to ? *name : from;
    *to = *to ? *to : v;
    return CPL_OK;
}

/* own: the side of the part's model, to: the run's; 0 source, 1 target. Whether padding is read belongs to the source:
 * it was trained with it or without. */
static cpl_status take_rules(cpl_config *c, const cpl_config *from, int own, int to, cpl_error *err)
{
    static const char *const keys[2][4] = {
        {"text.source.tokens", "text.source.standardize", "text.source.pad_to", "model.encoder.mask"},
        {"text.target.tokens", "text.target.standardize"}};
    cpl_status status = CPL_OK;
    for (int i = 0; i < 4 && keys[own][i] && keys[to][i] && status == CPL_OK; i++) {
        const char *key = keys[to][i];
        cpl_str have = {0}, want = {0};
        int number = cpl_config_find(key);
        cpl_config_text_of(c, number, &have);
        cpl_config_text_of(from, cpl_config_find(keys[own][i]), &want);
        if (have.failed || want.failed)
            status = cpl_error_set(err, CPL_FAILED, "out of memory");
        else if (strcmp(have.data, want.data) != 0 && cpl_config_is_set(c, number))
            status = cpl_error_set(err, CPL_USAGE, "it was trained with %s %s, but the configuration says %s" CPL_HINT
                                   "leave '%s' out: text rules travel with the part", keys[own][i], want.data,
                                   have.data, key);
        else if (strcmp(have.data, want.data) != 0)
            status = cpl_config_set(c, key, want.data, err);
        cpl_str_free(&have);
        cpl_str_free(&want);
    }
    return status;
}

/* Two sources of the same rows: neither is what the user surely meant to win. */
static cpl_status refuse_vectors(const cpl_run_data *r, const cpl_model_file *f, const char *part, cpl_error *err)
{
    static const char *const embeddings[] = {"encoder.embedding.", "decoder.embedding."};
    const cpl_config_text *text = &r->config->text;
    for (size_t i = 0; i < 2 * cpl_tensor_file_count(f->tensors); i++) {
        const char *name = cpl_tensor_file_at(f->tensors, i / 2)->name, *side = i % 2 ? "target" : "source";
        const char *vectors = (i % 2 ? &text->target : &text->source)->vectors.written;
        if (!vectors || strncmp(name, embeddings[i % 2], 18) != 0 || (part && !cpl_path_matches(part, name)))
            continue;
        CPL_FAIL(err, CPL_USAGE, "it gives '%s' its weights, and so does text.%s.vectors ('%s')" CPL_HINT
                 "leave text.%s.vectors out, or begin with other parts", name, side, vectors, side);
    }
    return CPL_OK;
}

/* Rules and vocabulary of one side of the part's model; where the run has one set for both, both take them. */
static cpl_status take_side(cpl_run_data *r, const cpl_model_file *f, const char *from, int target, cpl_error *err)
{
    const cpl_vocabulary *v = target ? f->target : f->source;
    int one = cpl_config_one_text(r->config);
    cpl_status status = take_rules(r->config, f->config, target, target && !one, err);
    for (int side = 0; side < 2 && status == CPL_OK; side++)
        if (one || side == target)
            status = take_vocabulary(r, v, from, side, err);
    return status;
}

static cpl_status open_part(cpl_run_data *r, size_t i, cpl_error *err)
{
    const cpl_config_part *part = &r->config->training.init.items[i];
    char *path = cpl_model_path(part->path);
    cpl_status status = path ? cpl_model_file_open(&r->init[i], path, err)
                             : cpl_error_set(err, CPL_FAILED, "out of memory");
    cpl_release(path);
    if (status != CPL_OK)
        return status;
    const cpl_model_file *f = r->init[i];
    status = cpl_model_file_need_float32(f, part->path, "training", err);
    if (status != CPL_OK)
        return status;
    status = refuse_vectors(r, f, part->part, err);
    if (status != CPL_OK)
        return status;
    int sides = sides_of(f, part->part);
    if (sides & 1)
        status = take_side(r, f, part->written, 0, err);
    if (status == CPL_OK && (sides & 2))
        status = take_side(r, f, part->written, 1, err);
    return status;
}

cpl_status cpl_run_data_open_init(cpl_run_data *r, cpl_error *err)
{
    size_t count = r->config->training.init.count;
    r->init = count ? cpl_alloc(count, sizeof *r->init) : NULL;
    if (count && !r->init)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    r->init_count = count; /* cpl_alloc gives zeros: those that were not opened are NULL */
    for (size_t i = 0; i < count; i++)
        CPL_TRY(open_part(r, i, err), err, "cannot begin with '%s' (training.init)",
                r->config->training.init.items[i].written);
    return CPL_OK;
}

cpl_status cpl_run_data_load_init(cpl_run_data *r, cpl_error *err)
{
    cpl_parameters *p = cpl_trainer_program(r->trainer)->engine->parameters;
    for (size_t i = 0; i < r->init_count; i++) {
        const cpl_config_part *part = &r->config->training.init.items[i];
        cpl_str table = {0};
        cpl_status status = cpl_model_file_load_part(r->init[i], part->part, p, &table, err);
        for (char *line = table.data, *end; line && (end = strchr(line, '\n')); line = end + 1)
            cpl_log_info(&r->log, "%s: %.*s", part->written, (int)(end - line), line);
        cpl_str_free(&table);
        CPL_TRY(status, err, "cannot begin with '%s' (training.init)", part->written);
    }
    return CPL_OK;
}
