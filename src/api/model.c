/* model.c: opening a model. */
#include "api/model.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"

static cpl_text_rules rules_of(const cpl_config_side *side)
{
    return (cpl_text_rules){.tokens = (cpl_tokens)side->tokens, .standardize = (cpl_standardize)side->standardize};
}

/* Compiling names the parameters, so that the file's weights can be matched with them. */
static cpl_status load(cpl_model *m, const char *path, int threads, cpl_error *err)
{
    cpl_status status = cpl_model_file_open(&m->file, path, err);
    if (status != CPL_OK)
        return status;
    const cpl_model_file *f = m->file;
    if (f->part)
        CPL_FAIL(err, CPL_USAGE, "'%s' holds only '%s' of a model, and generates nothing alone" CPL_HINT
                 "couplet train --init %s:%s begins another model with it", path, f->part, path, f->part);
    cpl_text_rules source = rules_of(&f->config->text.source), target = rules_of(&f->config->text.target);
    CPL_TRY(cpl_codec_new(&m->source, source, f->source, err), err, "cannot use '%s'", path);
    CPL_TRY(cpl_codec_new(&m->target, target, f->target, err), err, "cannot use '%s'", path);
    CPL_TRY(cpl_engine_new(&m->engine, threads, 0, err), err, "cannot use '%s'", path);
    CPL_TRY(cpl_decoder_new(&m->decoder, f->kind, &f->sizes, m->engine, err), err, "cannot use '%s'", path);
    CPL_TRY(cpl_model_file_load_parameters(f, m->engine->parameters, err), err, "cannot use '%s'", path);
    return CPL_OK;
}

/* The folder of a run stands for the model in it. */
static cpl_status load_path(cpl_model *m, const char *path, int threads, cpl_error *err)
{
    struct stat what;
    if (stat(path, &what) != 0 || !S_ISDIR(what.st_mode))
        return load(m, path, threads, err);
    char *inside = cpl_path_join(path, "model.safetensors");
    if (!inside)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    cpl_status status = load(m, inside, threads, err);
    cpl_release(inside);
    return status;
}

cpl_status cpl_model_open(cpl_model **model, const char *path, int threads, cpl_error *err)
{
    *model = NULL;
    if (threads < 0)
        CPL_FAIL(err, CPL_USAGE, "threads is %d, expected 0 (all processors) or more", threads);
    cpl_model *m = cpl_alloc(1, sizeof *m);
    if (!m)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    cpl_status status = load_path(m, path, threads, err);
    if (status != CPL_OK) {
        cpl_model_close(m);
        return status;
    }
    *model = m;
    return CPL_OK;
}

void cpl_model_close(cpl_model *m)
{
    if (!m)
        return;
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
    cpl_release(m);
}
