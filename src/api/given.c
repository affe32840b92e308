/* given.c: what the configuration gives by file in place of what training would make: vocabularies and word vectors. */
#include "api/run_data.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/vectors.h"

/* ---- vocabularies ---- */

/* A part that the run begins with has brought its own vocabulary already: then the file must say the same (H02). */
static cpl_status read_vocabulary(cpl_run_data *r, int target, cpl_error *err)
{
    const char *name = target ? "target" : "source";
    const cpl_config_side *side = target ? &r->config->text.target : &r->config->text.source;
    const cpl_vocabulary **to = target ? &r->target : &r->source;
    cpl_vocabulary **own = target ? &r->own_target : &r->own_source;
    CPL_TRY(cpl_vocabulary_read(own, side->vocabulary.path, (cpl_tokens)side->tokens, err), err,
            "cannot use the %s vocabulary (text.%s.vocabulary)", name, name);
    if (*to && cpl_vocabulary_checksum(*to) != cpl_vocabulary_checksum(*own))
        CPL_TRY(cpl_refuse_vocabulary(*to, *own, name, err), err,
                "cannot begin with '%s' (training.init) and the vocabulary '%s'",
                target ? r->target_from : r->source_from, side->vocabulary.written);
    *to = *own;
    *(target ? &r->target_from : &r->source_from) = side->vocabulary.written;
    return CPL_OK;
}

cpl_status cpl_run_data_read_vocabularies(cpl_run_data *r, cpl_error *err)
{
    const cpl_config_text *text = &r->config->text;
    int one = cpl_config_one_text(r->config);
    cpl_status status = text->source.vocabulary.path ? read_vocabulary(r, 0, err) : CPL_OK;
    if (status == CPL_OK && one && text->source.vocabulary.path)
        r->target = r->source, r->target_from = r->source_from;
    else if (status == CPL_OK && text->target.vocabulary.path)
        status = read_vocabulary(r, 1, err);
    return status;
}

cpl_status cpl_run_data_check_vocabularies(const cpl_run_data *r, const cpl_model_file *f, cpl_error *err)
{
    if (r->source && cpl_vocabulary_checksum(r->source) != cpl_vocabulary_checksum(f->source))
        return cpl_refuse_vocabulary(f->source, r->source, "source", err);
    if (r->target && cpl_vocabulary_checksum(r->target) != cpl_vocabulary_checksum(f->target))
        return cpl_refuse_vocabulary(f->target, r->target, "target", err);
    return CPL_OK;
}

/* Of a checkpoint: the run goes on with the very subwords that it began with, and learns no model again. */
static cpl_status keep(const cpl_vocabulary *v, cpl_vocabulary **own, const cpl_vocabulary **to, cpl_error *err)
{
    size_t length;
    const char *model = cpl_vocabulary_model(v, &length);
    if (!model || *to)
        return CPL_OK;
    cpl_status status = cpl_vocabulary_from_model(own, model, length, "the checkpoint", err);
    *to = *own;
    return status;
}

cpl_status cpl_run_data_keep_subwords(cpl_run_data *r, const cpl_model_file *f, cpl_error *err)
{
    cpl_status status = keep(f->source, &r->own_source, &r->source, err);
    if (status == CPL_OK && f->target == f->source && !r->target)
        r->target = r->source;
    return status == CPL_OK ? keep(f->target, &r->own_target, &r->target, err) : status;
}

/* ---- vectors ---- */

/* An autoencoder without a bottleneck has no embedding of its target. */
static cpl_status load_vectors(cpl_run_data *r, int target, cpl_error *err)
{
    const cpl_config_side *side = target ? &r->config->text.target : &r->config->text.source;
    const cpl_parameters *p = cpl_trainer_program(r->trainer)->engine->parameters;
    int at = cpl_parameters_find(p, target ? "decoder.embedding.kernel" : "encoder.embedding.kernel");
    if (!side->vectors.path || at < 0)
        return CPL_OK;
    cpl_vectors_options o = {.path = side->vectors.path, .name = side->vectors.written, .target = target,
                             .rows = cpl_parameters_value(p, (size_t)at),
                             .width = cpl_parameters_at(p, (size_t)at)->size[1],
                             .layer = target ? "decoder.embedding" : "encoder.embedding",
                             .width_key = r->config->model.embedding > 0 ? "model.embedding" : "model.units",
                             .log = &r->log};
    CPL_TRY(cpl_dataset_read_vectors(r->data, &o, err), err, "cannot use the word vectors (text.%s.vectors)",
            target ? "target" : "source");
    return CPL_OK;
}

cpl_status cpl_run_data_load_vectors(cpl_run_data *r, cpl_error *err)
{
    cpl_status status = r->resumed ? CPL_OK : load_vectors(r, 0, err);
    return status == CPL_OK && !r->resumed ? load_vectors(r, 1, err) : status;
}
