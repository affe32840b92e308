/* check_autoencoder.c: what only an autoencoder has, and what it cannot have. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "config/table.h"

/* Keys under prefix that differ from the default of the type: the first one, or −1. A model file holds every key, so
 * that a key was given says nothing. */
static int first_set(const cpl_config *c, const char *prefix)
{
    char name[CPL_CONFIG_KEY_SIZE];
    int found = -1;
    for (int key = 0; key < CPL_CONFIG_KEYS && found < 0; key++) {
        cpl_str text = {0};
        cpl_config_text_of(c, key, &text);
        if (strncmp(cpl_config_key(key, name), prefix, strlen(prefix)) == 0 && text.data &&
            strcmp(text.data, cpl_option_default(c->model.type, key)) != 0)
            found = key;
        cpl_str_free(&text);
    }
    return found;
}

static cpl_status refuse_others(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    const cpl_config_noise *n = &c->data.noise;
    if (c->model.bottleneck != 0)
        CPL_FAIL(err, CPL_USAGE, "%s'model.bottleneck' is %" PRId64 ", but only an autoencoder has one" CPL_HINT
                 "set model.type to autoencoder", cpl_option_where(c, "model.bottleneck", at), c->model.bottleneck);
    if (n->drop != 0 || n->mask != 0 || n->swap != 0)
        CPL_FAIL(err, CPL_USAGE, "%s'data.noise' is set, but only an autoencoder mends its source" CPL_HINT
                 "set model.type to autoencoder", cpl_option_where(c, n->drop != 0 ? "data.noise.drop" :
                 n->mask != 0 ? "data.noise.mask" : "data.noise.swap", at));
    return CPL_OK;
}

static cpl_status check_projection(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH], name[CPL_CONFIG_KEY_SIZE];
    int key = first_set(c, "model.decoder.");
    if (key >= 0)
        CPL_FAIL(err, CPL_USAGE, "%s'%s' is set, but an autoencoder without a bottleneck has no decoder" CPL_HINT
                 "set model.bottleneck to the size of the vector that a decoder begins with",
                 cpl_option_where(c, cpl_config_key(key, name), at), name);
    if (c->data.noise.drop != 0)
        CPL_FAIL(err, CPL_USAGE, "%s'data.noise.drop' is %g, but without a bottleneck every position of the source is "
                 "labelled, and what is left out has none" CPL_HINT "use data.noise.mask, or set model.bottleneck",
                 cpl_option_where(c, "data.noise.drop", at), c->data.noise.drop);
    return CPL_OK;
}

/* Attention, or states handed over as they are, would go around the bottleneck. */
static cpl_status check_bottleneck(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    const cpl_config_decoder *d = &c->model.decoder;
    if (d->attention.score != CPL_ATTEND_NONE)
        CPL_FAIL(err, CPL_USAGE, "%sattention over the source would go around the bottleneck" CPL_HINT
                 "set model.decoder.attention.score to none",
                 cpl_option_where(c, "model.decoder.attention.score", at));
    if (d->initial_state != CPL_STATE_BRIDGE)
        CPL_FAIL(err, CPL_USAGE, "%sthe decoder begins with a dense layer over the bottleneck: initial_state is bridge",
                 cpl_option_where(c, "model.decoder.initial_state", at));
    return CPL_OK;
}

cpl_status cpl_config_check_autoencoder(const cpl_config *c, cpl_error *err)
{
    char at[CPL_ERROR_WIDTH];
    const cpl_config_noise *n = &c->data.noise;
    if (c->model.type != CPL_MODEL_AUTOENCODER)
        return refuse_others(c, err);
    if (n->drop + n->mask > 0.95)
        CPL_FAIL(err, CPL_USAGE, "%s'data.noise' drops and masks %g of the source, at most 0.95 leaves something",
                 cpl_option_where(c, "data.noise.mask", at), n->drop + n->mask);
    if (c->model.copy || c->model.coverage != 0)
        CPL_FAIL(err, CPL_USAGE, "%san autoencoder neither copies nor has a coverage: it has no attention",
                 cpl_option_where(c, c->model.copy ? "model.copy" : "model.coverage", at));
    return c->model.bottleneck > 0 ? check_bottleneck(c, err) : check_projection(c, err);
}
