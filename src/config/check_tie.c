/* check_tie.c: where embeddings and projection are one table, what the projection reads is as wide as a word vector. */
#include <inttypes.h>

#include "base/error.h"
#include "config/table.h"

/* What the projection reads: the encoder's outputs, or what the decoder ends with. */
static int64_t projected(const cpl_config *c)
{
    const cpl_config_attention *a = &c->model.decoder.attention;
    int two = c->model.encoder.direction == CPL_DIRECTION_BOTH && c->model.encoder.merge == CPL_MERGE_CONCAT;
    int64_t units = c->model.units, encoder = units * (two ? 2 : 1);
    if (c->model.type == CPL_MODEL_AUTOENCODER && c->model.bottleneck == 0)
        return encoder;
    if (a->score == CPL_ATTEND_NONE || a->position == CPL_POSITION_BEFORE || a->combine != CPL_COMBINE_CONCAT)
        return units;
    return units + (a->score == CPL_ATTEND_MULTIHEAD ? units : encoder);
}

/* Case A08. That the vocabularies of `all` are one is known when there are vocabularies: model/tie.c. */
cpl_status cpl_config_check_tie(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    int64_t units = c->model.units, embedding = cpl_config_embedding(c), width = projected(c);
    if (c->model.tie == CPL_TIE_NONE)
        return CPL_OK;
    cpl_option_where(c, "model.tie", at);
    if (c->model.tie == CPL_TIE_TARGET && c->model.type == CPL_MODEL_AUTOENCODER && c->model.bottleneck == 0)
        CPL_FAIL(err, CPL_USAGE, "%s'model.tie' is target, but an autoencoder without a bottleneck embeds its source "
                 "alone" CPL_HINT "set model.tie to all", at);
    if (c->model.tie == CPL_TIE_ALL && c->text.target.vectors.path)
        CPL_FAIL(err, CPL_USAGE, "%s'model.tie' is all: source and target have one embedding, which "
                 "text.source.vectors fills" CPL_HINT "leave text.target.vectors out", at);
    if (embedding == width)
        return CPL_OK;
    if (width == units)
        CPL_FAIL(err, CPL_USAGE, "%s'model.tie' makes the embedding the projection, but embedding=%" PRId64 " and "
                 "units=%" PRId64 CPL_HINT "make both widths equal: leave model.embedding out, or set it to %" PRId64,
                 at, embedding, units, units);
    CPL_FAIL(err, CPL_USAGE, "%s'model.tie' makes the embedding the projection, but embedding=%" PRId64 " and what "
             "is projected, two concatenated parts, has %" PRId64 " (units=%" PRId64 ")" CPL_HINT
             "set model.decoder.attention.combine to tanh, a projection to units, or model.embedding to %" PRId64, at,
             embedding, width, units, width);
}
