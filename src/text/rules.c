/* rules.c: the names of the text rules. The order of each list is that of its enum. */
#include <string.h>
#include "base/error.h"
#include "base/str.h"
#include "text/text.h"

static const char *const token_names[] = {"space", "word", "char", "byte", "bpe", "unigram"};
static const char *const standardize_names[] = {"none", "nfc", "nfkc", "nfkc_lower", "tutorial"};

enum {
    TOKEN_NAMES = sizeof token_names / sizeof *token_names,
    STANDARDIZE_NAMES = sizeof standardize_names / sizeof *standardize_names
};

const char *cpl_tokens_name(cpl_tokens kind)
{
    return token_names[kind];
}

const char *cpl_standardize_name(cpl_standardize rule)
{
    return standardize_names[rule];
}

/* The place of name in the list, or -1 with an error that lists the choices or gives the nearest. */
static int place(const char *what, const char *name, const char *const *names, size_t n, cpl_error *err)
{
    cpl_str known = {0};
    for (size_t i = 0; i < n; i++) {
        if (strcmp(name, names[i]) == 0) {
            cpl_str_free(&known);
            return (int)i;
        }
        cpl_str_printf(&known, "%s'%s'", i ? ", " : "", names[i]);
    }
    const char *nearest = cpl_nearest(name, names, n);
    const char *choices = known.failed ? "" : known.data;
    if (nearest)
        cpl_error_set(err, CPL_USAGE, "unknown %s '%s', expected one of %s" CPL_HINT "did you mean '%s'?", what, name,
                      choices, nearest);
    else
        cpl_error_set(err, CPL_USAGE, "unknown %s '%s', expected one of %s", what, name, choices);
    cpl_str_free(&known);
    return -1;
}

cpl_status cpl_text_rules_parse(cpl_text_rules *rules, const char *tokens, const char *standardize, cpl_error *err)
{
    int kind = place("tokens", tokens, token_names, TOKEN_NAMES, err);
    if (kind < 0)
        return CPL_USAGE;
    int rule = place("standardize", standardize, standardize_names, STANDARDIZE_NAMES, err);
    if (rule < 0)
        return CPL_USAGE;
    rules->tokens = (cpl_tokens)kind;
    rules->standardize = (cpl_standardize)rule;
    return CPL_OK;
}
