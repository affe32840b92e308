/* check_model.c: which parts of a model fit together: widths that must agree, states that are handed over. Whatever a
 * graph would refuse because of the configuration is refused here, in the user's words and with what to change. */
#include "config/table.h"

#include <inttypes.h>

#include "base/error.h"

#define ATTENTION "model.decoder.attention."

/* Numbers that several checks need. */
typedef struct widths {
    int64_t encoder; /* of the encoder's outputs and last states */
    int64_t joined;  /* what the attention's result joins: the decoder's outputs, or its inputs */
    int64_t context; /* the attention's result */
} widths;

static int concatenated(const cpl_config *c)
{
    return c->model.encoder.direction == CPL_DIRECTION_BOTH && c->model.encoder.merge == CPL_MERGE_CONCAT;
}

static widths widths_of(const cpl_config *c)
{
    const cpl_config_attention *a = &c->model.decoder.attention;
    widths w = {.encoder = c->model.units * (concatenated(c) ? 2 : 1)};
    w.joined = a->position == CPL_POSITION_BEFORE ? cpl_config_embedding(c) : c->model.units;
    w.context = a->score == CPL_ATTEND_MULTIHEAD ? c->model.units : w.encoder;
    return w;
}

static cpl_status check_heads_and_dropout(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    const cpl_config_attention *a = &c->model.decoder.attention;
    int64_t units = c->model.units;
    if (a->heads > 1 && a->score != CPL_ATTEND_MULTIHEAD)
        CPL_FAIL(err, CPL_USAGE, "%s'" ATTENTION "heads' is %" PRId64 ", but only score multihead has heads",
                 cpl_option_where(c, ATTENTION "heads", at), a->heads);
    if (c->model.dropout.attention > 0 && a->score == CPL_ATTEND_NONE)
        CPL_FAIL(err, CPL_USAGE, "%s'model.dropout.attention' is %g, but without attention there are no weights to drop"
                 CPL_HINT "set " ATTENTION "score, or leave it out", cpl_option_where(c, "model.dropout.attention", at),
                 c->model.dropout.attention);
    if (units % a->heads != 0)
        CPL_FAIL(err, CPL_USAGE, "%s'model.units' is %" PRId64 ", which %" PRId64
                 " heads ('model.decoder.attention.heads') do not divide",
                 cpl_option_where(c, ATTENTION "heads", at), units, a->heads);
    return CPL_OK;
}

/* Luong's input feeding: the vector behind the attention goes back into the cell. */
static cpl_status check_feed(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    const cpl_config_attention *a = &c->model.decoder.attention;
    if (!c->model.decoder.input_feed)
        return CPL_OK;
    cpl_option_where(c, "model.decoder.input_feed", at);
    if (a->score == CPL_ATTEND_NONE)
        CPL_FAIL(err, CPL_USAGE, "%s'model.decoder.input_feed' is true, but without attention there is nothing to feed"
                 CPL_HINT "set " ATTENTION "score", at);
    if (a->position == CPL_POSITION_BEFORE)
        CPL_FAIL(err, CPL_USAGE, "%s'model.decoder.input_feed' is true, but attention before the cell is part of its "
                 "input already" CPL_HINT "set " ATTENTION "position to after, or leave input_feed out", at);
    if (c->model.decoder.cell == CPL_CELL_GRU_RESET_BEFORE)
        CPL_FAIL(err, CPL_USAGE, "%sa gru_reset_before has no single steps, which input_feed needs" CPL_HINT
                 "set model.decoder.cell to gru or lstm, or leave input_feed out", at);
    return CPL_OK;
}

static cpl_status check_attention(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    const cpl_config_attention *a = &c->model.decoder.attention;
    widths w = widths_of(c);
    if (a->score == CPL_ATTEND_NONE)
        return CPL_OK;
    if (a->score == CPL_ATTEND_DOT && w.encoder != c->model.units)
        CPL_FAIL(err, CPL_USAGE, "%sscore dot compares the decoder's state [%" PRId64 "] with the encoder's outputs [%"
                 PRId64 "], which concatenate two directions" CPL_HINT
                 "set " ATTENTION "score to general, or model.encoder.merge to sum or average",
                 cpl_option_where(c, ATTENTION "score", at), c->model.units, w.encoder);
    if (a->combine == CPL_COMBINE_ADD_NORM && w.context != w.joined)
        CPL_FAIL(err, CPL_USAGE, "%scombine add_norm adds the attention's result [%" PRId64 "] to the %s [%" PRId64
                 "]" CPL_HINT "set " ATTENTION "combine to concat or tanh, or make both of one size",
                 cpl_option_where(c, ATTENTION "combine", at), w.context,
                 a->position == CPL_POSITION_BEFORE ? "embedded token" : "decoder's output", w.joined);
    if (a->position == CPL_POSITION_BEFORE && c->model.decoder.cell == CPL_CELL_GRU_RESET_BEFORE)
        CPL_FAIL(err, CPL_USAGE, "%sa gru_reset_before has no single steps, which attention before the cell needs"
                 CPL_HINT "set model.decoder.cell to gru or lstm, or " ATTENTION "position to after",
                 cpl_option_where(c, "model.decoder.cell", at));
    return CPL_OK;
}

/* Case D08: a state of twice the width; and states that are not there. */
static cpl_status check_state(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    const cpl_config_encoder *e = &c->model.encoder;
    const cpl_config_decoder *d = &c->model.decoder;
    int64_t units = c->model.units;
    if (d->initial_state == CPL_STATE_ZERO && d->attention.score == CPL_ATTEND_NONE)
        CPL_FAIL(err, CPL_USAGE, "%swithout attention and with initial_state zero, nothing of the source reaches the "
                 "decoder" CPL_HINT "set model.decoder.initial_state to encoder or bridge",
                 cpl_option_where(c, ATTENTION "score", at));
    if (d->initial_state != CPL_STATE_ENCODER)
        return CPL_OK;
    cpl_option_where(c, "model.decoder.initial_state", at);
    if (concatenated(c))
        CPL_FAIL(err, CPL_USAGE, "%sthe decoder's state is [batch units=%" PRId64 "], but the encoder hands over "
                 "[batch units=%" PRId64 "]: its two directions concatenated" CPL_HINT
                 "set model.encoder.merge to sum or average, or model.decoder.initial_state to bridge, a dense layer "
                 "from %" PRId64 " to %" PRId64, at, units, 2 * units, 2 * units, units);
    if (e->layers != d->layers)
        CPL_FAIL(err, CPL_USAGE, "%seach layer of the decoder begins with the state of the encoder's layer, but the "
                 "encoder has %" PRId64 " and the decoder %" PRId64 CPL_HINT
                 "make the layers equal, or set model.decoder.initial_state to bridge", at, e->layers, d->layers);
    if (d->cell == CPL_CELL_LSTM && e->cell != CPL_CELL_LSTM)
        CPL_FAIL(err, CPL_USAGE, "%san lstm begins with h and c, but the encoder's cell has h alone" CPL_HINT
                 "set model.encoder.cell to lstm, or model.decoder.initial_state to bridge", at);
    return CPL_OK;
}

static cpl_status check_residual(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    int reader = c->model.encoder.residual && c->model.encoder.layers == 1;
    const char *key = reader ? "model.encoder.residual" : "model.decoder.residual";
    if (reader || (c->model.decoder.residual && c->model.decoder.layers == 1))
        CPL_FAIL(err, CPL_USAGE, "%s'%s' is true, but the only layer has nothing to add to" CPL_HINT
                 "residuals begin with the second layer: set layers to 2 or more",
                 cpl_option_where(c, key, at), key);
    return CPL_OK;
}

/* Copying and coverage need one set of weights that points at the source; copied source tokens become target tokens. */
static cpl_status check_pointing(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    const cpl_config_attention *a = &c->model.decoder.attention;
    const char *key = c->model.copy ? "model.copy" : "model.coverage";
    if (!c->model.copy && c->model.coverage == 0)
        return CPL_OK;
    cpl_option_where(c, key, at);
    if (a->score == CPL_ATTEND_NONE)
        CPL_FAIL(err, CPL_USAGE, "%s'%s' is set, but without attention nothing points at the source" CPL_HINT
                 "set " ATTENTION "score", at, key);
    if (a->heads != 1)
        CPL_FAIL(err, CPL_USAGE, "%s'%s' is set, but of %" PRId64 " heads it is not known which one points"
                 CPL_HINT "set " ATTENTION "heads to 1", at, key, a->heads);
    if (c->model.copy && c->text.source.tokens != c->text.target.tokens)
        CPL_FAIL(err, CPL_USAGE, "%s'model.copy' is set, but source and target are split in different ways: a source "
                 "token is no target token" CPL_HINT "set text.source.tokens and text.target.tokens alike", at);
    return CPL_OK;
}

/* A model with masking has no padding: pad_to would do nothing. Copying and coverage are about words, which padding is
 * not. */
static cpl_status check_padding(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    const char *key = c->model.copy ? "model.copy" : "model.coverage";
    if (c->model.encoder.mask && c->text.source.pad_to > 0)
        CPL_FAIL(err, CPL_USAGE, "%s'text.source.pad_to' is %" PRId64 ", but 'model.encoder.mask' is true: a model "
                 "with masking reads no padding" CPL_HINT
                 "set model.encoder.mask to false if it was trained without, or leave pad_to out",
                 cpl_option_where(c, "text.source.pad_to", at), c->text.source.pad_to);
    if (!c->model.encoder.mask && (c->model.copy || c->model.coverage != 0))
        CPL_FAIL(err, CPL_USAGE, "%s'%s' is set, but 'model.encoder.mask' is false: padding would count among the "
                 "source's words" CPL_HINT "set model.encoder.mask to true, or leave %s out",
                 cpl_option_where(c, key, at), key, key);
    return CPL_OK;
}

void cpl_config_warn(const cpl_config *c, const cpl_log *log)
{
    if (!c->model.encoder.mask && c->text.source.pad_to == 0)
        cpl_log_warning(log, "the model was trained without masking ('model.encoder.mask' is false) and read padding, "
                        "but 'text.source.pad_to' is 0: sources go in without it, and outputs differ from what "
                        "was trained; set text.source.pad_to to the length that sources were padded to (import: "
                        "--pad-to N)");
}

cpl_status cpl_config_check_model(const cpl_config *c, cpl_error *err)
{
    cpl_status status = check_heads_and_dropout(c, err);
    if (status == CPL_OK)
        status = check_attention(c, err);
    if (status == CPL_OK)
        status = check_feed(c, err);
    if (status == CPL_OK)
        status = check_state(c, err);
    if (status == CPL_OK)
        status = check_pointing(c, err);
    if (status == CPL_OK)
        status = check_padding(c, err);
    if (status == CPL_OK)
        status = check_residual(c, err);
    return status == CPL_OK ? cpl_config_check_tie(c, err) : status;
}
