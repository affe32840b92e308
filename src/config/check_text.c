/* check_text.c: what the kind of tokens asks of a side's other keys, and what two sides with one set of rules must
 * agree in. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "config/table.h"

enum { SPECIALS = 4, BYTES = 256 };

/* The kinds of text/text.h, which this room may not include. */
#define KIND(id, name) KIND_##id,
enum { CPL_CHOICES_TOKENS(KIND) };

/* One side with what an error needs: the name of a key, and where it was set. */
typedef struct side_check {
    const cpl_config *config;
    const cpl_config_side *side;
    const char *name;
    char key[CPL_CONFIG_KEY_SIZE], at[CPL_ERROR_WIDTH];
} side_check;

/* "m.yaml:3: " of the side's key; s->key is its name from then on. */
static const char *where(side_check *s, const char *key)
{
    snprintf(s->key, sizeof s->key, "text.%s.%s", s->name, key);
    return cpl_option_where(s->config, s->key, s->at);
}

/* All bytes are there, so nothing can be left out, by size or by count. */
static cpl_status check_bytes(side_check *s, cpl_error *err)
{
    const char *at = where(s, "vocabulary_size");
    if (s->side->vocabulary_size > 0 && s->side->vocabulary_size < BYTES + SPECIALS)
        CPL_FAIL(err, CPL_USAGE, "%s'%s' is %" PRId64 ", but tokens: byte always has %d entries" CPL_HINT
                 "leave it out", at, s->key, s->side->vocabulary_size, BYTES + SPECIALS);
    at = where(s, "min_count");
    if (s->side->min_count > 1)
        CPL_FAIL(err, CPL_USAGE, "%s'%s' is %" PRId64 ", but tokens: byte always has all bytes" CPL_HINT
                 "leave it out", at, s->key, s->side->min_count);
    at = where(s, "vocabulary");
    if (s->side->vocabulary.path)
        CPL_FAIL(err, CPL_USAGE, "%s'%s' is '%s', but tokens: byte always has the same entries" CPL_HINT "leave it out",
                 at, s->key, s->side->vocabulary.written);
    return CPL_OK;
}

static cpl_status check_side(const cpl_config *c, const cpl_config_side *side, const char *name, cpl_error *err)
{
    side_check s = {.config = c, .side = side, .name = name};
    const char *at = where(&s, "vocabulary_size");
    if (side->tokens == KIND_TOKENS_BYTE)
        return check_bytes(&s, err);
    if (side->vocabulary_size > 0 && side->vocabulary_size <= SPECIALS)
        CPL_FAIL(err, CPL_USAGE,
                 "%s'%s' got %" PRId64 ", expected 5 or more (4 entries are special), or 0 for no limit", at, s.key,
                 side->vocabulary_size);
    if (side->vocabulary_size == 0 && (side->tokens == KIND_TOKENS_BPE || side->tokens == KIND_TOKENS_UNIGRAM))
        CPL_FAIL(err, CPL_USAGE, "%s'%s' is 0 (no limit), but subwords are learned up to a size" CPL_HINT
                 "8000 suits small data, 32000 large", at, s.key);
    return CPL_OK;
}

int cpl_config_one_text(const cpl_config *c)
{
    return c->model.type == CPL_MODEL_AUTOENCODER || c->text.shared;
}

/* How long a line may be is no rule of what it is: only an autoencoder's two sides, one line, must agree in that. */
static int may_differ(const cpl_config *c, const char *name)
{
    return c->model.type != CPL_MODEL_AUTOENCODER && (strcmp(name, "max_length") == 0 || strcmp(name, "too_long") == 0);
}

/* The two sides' keys, one by one. */
static cpl_status check_one_set(const cpl_config *c, cpl_error *err)
{
    char from[CPL_CONFIG_KEY_SIZE], to[CPL_CONFIG_KEY_SIZE], at[CPL_ERROR_WIDTH];
    cpl_status status = CPL_OK;
    for (int key = 0; key < CPL_CONFIG_KEYS && status == CPL_OK; key++) {
        cpl_str a = {0}, b = {0};
        cpl_config_key(key, from);
        if (strncmp(from, "text.source.", 12) != 0 || may_differ(c, from + 12))
            continue;
        snprintf(to, sizeof to, "text.target.%s", from + 12);
        int target = cpl_config_find(to);
        cpl_config_text_of(c, key, &a);
        if (target >= 0)
            cpl_config_text_of(c, target, &b);
        if (target >= 0 && strcmp(a.data ? a.data : "", b.data ? b.data : "") != 0)
            status = cpl_error_set(err, CPL_USAGE, "%s'%s' is %s but '%s' is %s: %s has one set of text rules" CPL_HINT
                                   "leave text.target out", cpl_option_where(c, to, at), from,
                                   a.data ? a.data : "not set", to, b.data ? b.data : "not set",
                                   c->text.shared ? "text.shared" : "an autoencoder");
        cpl_str_free(&a);
        cpl_str_free(&b);
    }
    return status;
}

cpl_status cpl_config_check_text(const cpl_config *c, cpl_error *err)
{
    cpl_status status = cpl_config_one_text(c) ? check_one_set(c, err) : CPL_OK;
    if (status == CPL_OK)
        status = check_side(c, &c->text.source, "source", err);
    return status == CPL_OK ? check_side(c, &c->text.target, "target", err) : status;
}
