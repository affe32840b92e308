/* rules.c: what the options say of outputs, in ids of a model's target vocabulary. */
#include <string.h>
#include "api/model.h"
#include "base/error.h"
#include "base/memory.h"

/* Appends one id for each token. A rule about a token that the model cannot write would be silently without effect. */
static cpl_status add_tokens(cpl_model *m, const char *option, const char *const *tokens, int count, size_t *at,
                             cpl_error *err)
{
    if (cpl_grow(&m->rule_ids, &m->rule_ids_capacity, *at + (size_t)count + 1, sizeof *m->rule_ids))
        CPL_FAIL(err, CPL_FAILED, "out of memory for %d tokens", count);
    for (int i = 0; i < count; i++) {
        char shown[80];
        size_t length = strlen(tokens[i]);
        int32_t id = cpl_vocabulary_id(m->file->target, tokens[i], length);
        if (id == CPL_ID_UNKNOWN && strcmp(tokens[i], "[UNK]") != 0)
            CPL_FAIL(err, CPL_USAGE, "option '%s' got '%s', which is no token of the target vocabulary" CPL_HINT
                     "'couplet generate --tokens' shows outputs as tokens", option,
                     cpl_escape(shown, sizeof shown, tokens[i], length));
        m->rule_ids[(*at)++] = id;
    }
    return CPL_OK;
}

/* The prefix is text: it goes the way of a target line. */
static cpl_status add_prefix(cpl_model *m, const char *prefix, size_t *at, cpl_error *err)
{
    size_t count = 0, unknown = 0;
    if (!prefix)
        return CPL_OK;
    CPL_TRY(cpl_codec_encode(m->target, prefix, strlen(prefix), &m->line_ids, &m->line_ids_capacity, &count, &unknown,
                             err), err, "cannot read the prefix");
    if (unknown > 0)
        CPL_FAIL(err, CPL_USAGE, "%zu of %zu tokens of the prefix are not in the target vocabulary", unknown, count);
    if (cpl_grow(&m->rule_ids, &m->rule_ids_capacity, *at + count + 1, sizeof *m->rule_ids))
        CPL_FAIL(err, CPL_FAILED, "out of memory for a prefix of %zu tokens", count);
    if (count > 0)
        memcpy(m->rule_ids + *at, m->line_ids, count * sizeof *m->rule_ids);
    *at += count;
    return CPL_OK;
}

cpl_status cpl_model_rules(cpl_model *m, const cpl_generate_options *o, cpl_decode_rules *rules, cpl_error *err)
{
    size_t forced, prefix, end = 0;
    cpl_status status = add_tokens(m, "--forbid", o->forbid, o->forbid_count, &end, err);
    forced = end;
    if (status == CPL_OK)
        status = add_tokens(m, "--force", o->force, o->force_count, &end, err);
    prefix = end;
    if (status == CPL_OK)
        status = add_prefix(m, o->prefix, &end, err);
    if (status != CPL_OK)
        return status;
    for (size_t i = 0; i < forced; i++)
        for (size_t k = forced; k < end; k++)
            if (m->rule_ids[i] == m->rule_ids[k])
                CPL_FAIL(err, CPL_USAGE, "'%s' is forbidden, and it is forced or in the prefix", o->forbid[i]);
    *rules = (cpl_decode_rules){
        .min_length = o->min_length, .no_repeat = o->no_repeat,
        .forbidden = m->rule_ids, .forbidden_count = (int64_t)forced,
        .forced = m->rule_ids + forced, .forced_count = (int64_t)(prefix - forced),
        .prefix = m->rule_ids + prefix, .prefix_count = (int64_t)(end - prefix),
        .top_k = o->top_k, .top_p = o->top_p,
    };
    return CPL_OK;
}
