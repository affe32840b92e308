/* model.c: opening a model. */
#include "api/shortlist.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static cpl_text_rules rules_of(const cpl_config_side *side)
{
    return (cpl_text_rules){.tokens = (cpl_tokens)side->tokens, .standardize = (cpl_standardize)side->standardize};
}

/* A file that holds the encoder alone, or one of which no more is wanted. */
static cpl_status load_encoder(cpl_model *m, cpl_error *err)
{
    cpl_str table = {0};
    cpl_status status = cpl_model_encoder(m, err);
    if (status != CPL_OK)
        return status;
    status = cpl_model_file_load_part(m->file, "encoder", m->engine->parameters, &table, err);
    cpl_str_free(&table);
    return status;
}

/* Compiling names the parameters, so that the file's weights can be matched with them. */
static cpl_status load_whole(cpl_model *m, cpl_error *err)
{
    const cpl_model_file *f = m->file;
    cpl_status status = cpl_codec_new(&m->target, rules_of(&f->config->text.target), f->target, err);
    if (status == CPL_OK)
        status = cpl_decoder_new(&m->decoder, f->kind, &f->sizes, m->engine, err);
    return status == CPL_OK ? cpl_model_file_load_parameters(f, m->engine->parameters, err) : status;
}

static cpl_status load(cpl_model *m, int threads, int encoder_alone, cpl_error *err)
{
    cpl_status status = cpl_model_file_open(&m->file, m->path, err);
    if (status != CPL_OK)
        return status;
    const cpl_model_file *f = m->file;
    if (f->part && strcmp(f->part, "encoder") == 0)
        encoder_alone = 1;
    if (f->part && !encoder_alone)
        return cpl_model_whole(m, err);
    CPL_TRY(cpl_codec_new(&m->source, rules_of(&f->config->text.source), f->source, err), err, "cannot use '%s'",
            m->path);
    CPL_TRY(cpl_engine_new(&m->engine, threads, 0, err), err, "cannot use '%s'", m->path);
    cpl_parameters_defer(m->engine->parameters);
    if (encoder_alone)
        CPL_TRY(load_encoder(m, err), err, "cannot use '%s' as an encoder", m->path);
    else
        CPL_TRY(load_whole(m, err), err, "cannot use '%s'", m->path);
    return CPL_OK;
}

static cpl_status open_model(cpl_model **model, const char *path, int threads, int encoder_alone, cpl_error *err)
{
    *model = NULL;
    if (threads < 0)
        CPL_FAIL(err, CPL_USAGE, "threads is %d, expected 0 (all processors) or more", threads);
    cpl_model *m = cpl_alloc(1, sizeof *m);
    if (m)
        m->path = cpl_model_path(path);
    cpl_status status = m && m->path ? load(m, threads, encoder_alone, err)
                                     : cpl_error_set(err, CPL_FAILED, "out of memory");
    if (status != CPL_OK) {
        cpl_model_close(m);
        return status;
    }
    *model = m;
    return CPL_OK;
}

cpl_status cpl_model_open(cpl_model **model, const char *path, int threads, cpl_error *err)
{
    return open_model(model, path, threads, 0, err);
}

cpl_status cpl_model_open_encoder(cpl_model **model, const char *path, int threads, cpl_error *err)
{
    return open_model(model, path, threads, 1, err);
}

cpl_status cpl_model_encoder(cpl_model *m, cpl_error *err)
{
    return m->encoder ? CPL_OK : cpl_line_encoder_new(&m->encoder, m->file, m->engine, m->source, err);
}

cpl_status cpl_model_whole(const cpl_model *m, cpl_error *err)
{
    const char *part = m->file->part;
    if (part)
        CPL_FAIL(err, CPL_USAGE, "'%s' holds only '%s' of a model, and generates nothing alone" CPL_HINT
                 "couplet train --init %s:%s begins another model with it", m->path, part, m->path, part);
    return CPL_OK;
}

/* ---- ensembles ---- */

/* Every model may choose each entry, so all must mean the same by it: equal by content, and in the same order. */
static cpl_status same_target(const cpl_model *first, const cpl_model *m, const char *first_path, const char *path,
                              cpl_error *err)
{
    const cpl_vocabulary *a = first->file->target, *b = m->file->target;
    int64_t na = cpl_vocabulary_size(a), nb = cpl_vocabulary_size(b), i = cpl_vocabulary_first_difference(a, b);
    if (i < na && i < nb) {
        size_t x, y;
        const char *one = cpl_vocabulary_token(a, i, &x), *other = cpl_vocabulary_token(b, i, &y);
        char shown[2][80];
        CPL_FAIL(err, CPL_USAGE, "target entry %lld is '%s' in '%s' but '%s' in '%s': the models of an ensemble "
                 "need the same target vocabulary", (long long)i, cpl_escape(shown[0], sizeof shown[0], one, x),
                 first_path, cpl_escape(shown[1], sizeof shown[1], other, y), path);
    }
    if (na != nb)
        CPL_FAIL(err, CPL_USAGE, "'%s' has %lld target entries, '%s' %lld: the models of an ensemble need the same "
                 "target vocabulary", first_path, (long long)na, path, (long long)nb);
    if (first->file->config->text.target.tokens != m->file->config->text.target.tokens)
        CPL_FAIL(err, CPL_USAGE, "the target's tokens are of the kind '%s' in '%s' but '%s' in '%s'",
                 cpl_tokens_name((cpl_tokens)first->file->config->text.target.tokens), first_path,
                 cpl_tokens_name((cpl_tokens)m->file->config->text.target.tokens), path);
    return CPL_OK;
}

static cpl_status join(cpl_model *m, const char *const *paths, int count, int threads, cpl_error *err)
{
    cpl_decoder *decoders[CPL_DECODE_MODELS] = {NULL};
    m->more = cpl_alloc((size_t)count, sizeof(cpl_model *));
    m->more_sources = cpl_alloc((size_t)count, sizeof *m->more_sources);
    if (!m->more || !m->more_sources)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    for (int k = 1; k < count; k++) {
        CPL_TRY(cpl_model_open(&m->more[k - 1], paths[k], threads, err), err, "model %d", k + 1);
        m->more_count = k;
        CPL_TRY(cpl_model_whole(m->more[k - 1], err), err, "cannot join model %d", k + 1);
        CPL_TRY(same_target(m, m->more[k - 1], paths[0], paths[k], err), err, "cannot join '%s'", paths[k]);
        decoders[k - 1] = m->more[k - 1]->decoder;
    }
    return cpl_decoder_join(m->decoder, decoders, count - 1, err);
}

cpl_status cpl_model_open_ensemble(cpl_model **model, const char *const *paths, int count, int threads, cpl_error *err)
{
    *model = NULL;
    if (count < 1 || count > CPL_DECODE_MODELS)
        CPL_FAIL(err, CPL_USAGE, "an ensemble of %d models, expected 1 to %d", count, CPL_DECODE_MODELS);
    cpl_status status = cpl_model_open(model, paths[0], threads, err);
    if (status == CPL_OK && count > 1)
        status = cpl_model_whole(*model, err);
    if (status == CPL_OK && count > 1)
        status = join(*model, paths, count, threads, err);
    if (status == CPL_OK)
        return CPL_OK;
    cpl_model_close(*model);
    *model = NULL;
    return status;
}

cpl_status cpl_model_alone(const cpl_model *m, const char *what, cpl_error *err)
{
    if (m->more_count == 0)
        return CPL_OK;
    CPL_FAIL(err, CPL_USAGE, "%s come from one model, but %d were given" CPL_HINT "an ensemble generates; the scores "
             "of its outputs (bleu, chrf, exact, …) need no probabilities", what, m->more_count + 1);
}

void cpl_model_close(cpl_model *m)
{
    if (!m)
        return;
    for (int k = 0; k < m->more_count; k++)
        cpl_model_close(m->more[k]);
    cpl_release(m->more);
    cpl_release(m->more_sources);
    cpl_line_encoder_free(m->encoder);
    cpl_replacer_free(m->replacer);
    cpl_shortlist_close(m->shortlist);
    cpl_decoder_free(m->decoder);
    cpl_engine_release(m->engine);
    cpl_codec_free(m->source);
    cpl_codec_free(m->target);
    cpl_model_file_close(m->file);
    cpl_release(m->line_ids);
    cpl_release(m->ids);
    cpl_release(m->rule_ids);
    cpl_copy_free(&m->copy);
    cpl_release(m->row);
    cpl_release(m->copy_row);
    cpl_release(m->length);
    cpl_release(m->most);
    cpl_release(m->number);
    cpl_release(m->answers);
    cpl_release(m->path);
    cpl_release(m);
}
