/* signature.c: the notation of op.h read, matched and turned into types. */
#include "graph/signature.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"

/* ---- reading ---- */

static const char *skip_spaces(const char *p)
{
    while (*p == ' ')
        p++;
    return p;
}

static const char *read_name(const char *p, char *name)
{
    size_t n = 0;
    while (isalnum((unsigned char)*p) || *p == '_') {
        if (n + 1 < CPL_SIGNATURE_NAME)
            name[n++] = *p;
        p++;
    }
    name[n] = 0;
    return p;
}

static const char *read_term(const char *p, int64_t *factor, char *name)
{
    *factor = 1;
    if (isdigit((unsigned char)*p)) {
        *factor = 0;
        while (isdigit((unsigned char)*p))
            *factor = *factor * 10 + (*p++ - '0');
    }
    return read_name(p, name);
}

static const char *read_dim(const char *p, cpl_signature_dim *d)
{
    memset(d, 0, sizeof *d);
    if (strncmp(p, "...", 3) == 0) {
        d->ellipsis = 1;
        return p + 3;
    }
    if (*p == '=')
        d->vocabulary = 1, p++;
    p = read_term(p, &d->factor, d->name);
    if (*p == '+')
        p = read_term(p + 1, &d->factor2, d->name2);
    return p;
}

static const char *read_argument(const char *p, cpl_signature_argument *a)
{
    memset(a, 0, sizeof *a);
    p = read_name(p, a->name);
    if (strcmp(a->name, "id") == 0 && *p == ' ') {
        a->id = 1;
        p = read_name(skip_spaces(p), a->name);
    }
    if (*p != '[')
        return NULL;
    p = skip_spaces(p + 1);
    while (*p && *p != ']') {
        const char *before = p;
        if (a->rank == CPL_MAX_RANK)
            return NULL;
        p = skip_spaces(read_dim(p, &a->dim[a->rank++]));
        if (p == before)
            return NULL;
    }
    if (*p != ']')
        return NULL;
    p++;
    if (*p == '?')
        a->optional = 1, p++;
    return skip_spaces(p);
}

cpl_status cpl_signature_parse(cpl_signature *s, const char *text, cpl_error *err)
{
    memset(s, 0, sizeof *s);
    const char *p = skip_spaces(text);
    int side = 0; /* 0 inputs, 1 outputs, 2 hidden outputs */
    while (p && *p) {
        if (strncmp(p, "->", 2) == 0) {
            side = 1, p = skip_spaces(p + 2);
            continue;
        }
        if (*p == ';') {
            side = 2, p = skip_spaces(p + 1);
            continue;
        }
        cpl_signature_argument *a = NULL;
        if (side == 0 && s->inputs < CPL_MAX_INPUTS)
            a = &s->in[s->inputs++];
        else if (side > 0 && s->outputs < CPL_MAX_OUTPUTS)
            a = &s->out[s->outputs++];
        p = a ? read_argument(p, a) : NULL;
        if (p && side == 2)
            a->hidden = 1;
        else if (p && side == 1)
            s->visible++;
    }
    if (!p || side == 0)
        CPL_FAIL(err, CPL_FAILED, "malformed op signature '%s'", text);
    return CPL_OK;
}

/* ---- matching ---- */

static int find_variable(const cpl_bindings *b, const char *name)
{
    for (int i = 0; i < b->count; i++)
        if (strcmp(b->variable[i].name, name) == 0)
            return i;
    return -1;
}

static void bind(cpl_bindings *b, const char *name, cpl_dim dim, int from)
{
    int i = find_variable(b, name);
    if (i < 0) {
        if (b->count == CPL_SIGNATURE_VARIABLES)
            return;
        i = b->count++;
    }
    snprintf(b->variable[i].name, sizeof b->variable[i].name, "%s", name);
    b->variable[i].dim = dim;
    b->variable[i].from = from;
}

void cpl_bindings_set(cpl_bindings *b, const char *name, cpl_dim dim)
{
    bind(b, name, dim, -1);
}

static int same_dim(const cpl_dim *a, const cpl_dim *b)
{
    if (a->kind != b->kind)
        return 0;
    return a->kind == CPL_DIM_FEATURE ? a->size == b->size : a->symbol == b->symbol;
}

/* Everything an error about input i of op needs to say. */
typedef struct match {
    const cpl_op *op;
    const cpl_signature *s;
    const cpl_type *const *types;
    const char *const *paths;
    cpl_bindings *b;
    cpl_error *err;
} match;

static char *describe(const match *m, int i, char *buffer, size_t size)
{
    char type[160];
    snprintf(buffer, size, "%s '%s' %s", m->s->in[i].name, m->paths[i], cpl_type_text(m->types[i], type, sizeof type));
    return buffer;
}

static void dim_text(const cpl_dim *d, char *buffer, size_t size)
{
    if (d->kind == CPL_DIM_FEATURE)
        snprintf(buffer, size, "%lld", (long long)d->size);
    else
        snprintf(buffer, size, "'%s'", d->name);
}

static cpl_status fail_shape(const match *m, int i)
{
    char got[240], want[120] = "";
    const cpl_signature_argument *a = &m->s->in[i];
    for (int k = 0; k < a->rank; k++) {
        size_t n = strlen(want);
        const cpl_signature_dim *d = &a->dim[k];
        char factor[24] = "";
        if (d->factor > 1)
            snprintf(factor, sizeof factor, "%lld", (long long)d->factor);
        snprintf(want + n, sizeof want - n, "%s%s%s", k ? " " : "", d->ellipsis ? "..." : factor, d->name);
    }
    CPL_FAIL(m->err, CPL_USAGE, "%s: expected %s [%s], got %s", m->op->name, a->name, want,
             describe(m, i, got, sizeof got));
}

static cpl_status fail_dim(const match *m, int i, const char *name, const cpl_dim *got, int from, const cpl_dim *want)
{
    char here[240], there[240], a[32], b[32];
    dim_text(got, a, sizeof a);
    dim_text(want, b, sizeof b);
    if (from < 0)
        CPL_FAIL(m->err, CPL_USAGE, "%s: dimension '%s' is %s in %s but %s is expected", m->op->name, name, a,
                 describe(m, i, here, sizeof here), b);
    CPL_FAIL(m->err, CPL_USAGE, "%s: dimension '%s' is %s in %s but %s in %s", m->op->name, name, b,
             describe(m, from, there, sizeof there), a, describe(m, i, here, sizeof here));
}

/* One dimension of the notation against one of the type. */
static cpl_status match_dim(const match *m, int i, const cpl_signature_dim *d, const cpl_dim *got)
{
    if (!d->name[0]) { /* a plain number */
        cpl_dim want = {.name = "", .size = d->factor, .symbol = CPL_NO_SYMBOL, .kind = CPL_DIM_FEATURE};
        return same_dim(got, &want) ? CPL_OK : fail_dim(m, i, "size", got, -1, &want);
    }
    cpl_dim_kind kind = cpl_dim_word(d->name, strlen(d->name));
    if (got->kind != kind)
        return fail_shape(m, i);
    int v = find_variable(m->b, d->name);
    if (d->name2[0]) { /* a sum: both parts must be bound already */
        int w = find_variable(m->b, d->name2);
        if (v < 0 || w < 0)
            CPL_FAIL(m->err, CPL_FAILED, "%s: the sum in its signature comes before its parts", m->op->name);
        cpl_dim want = m->b->variable[v].dim;
        want.size = d->factor * want.size + d->factor2 * m->b->variable[w].dim.size;
        return same_dim(got, &want) ? CPL_OK : fail_dim(m, i, d->name, got, m->b->variable[v].from, &want);
    }
    cpl_dim unit = *got;
    if (kind == CPL_DIM_FEATURE && d->factor > 1) {
        if (got->size % d->factor)
            return fail_shape(m, i);
        unit.size = got->size / d->factor;
    }
    if (v < 0) {
        bind(m->b, d->name, unit, i);
        m->b->variable[m->b->count - 1].composed = d->factor > 1;
        return CPL_OK;
    }
    if (same_dim(&m->b->variable[v].dim, &unit)) {
        if (m->b->variable[v].composed && d->factor == 1) { /* 'units' tells more than a third of 'gates' */
            m->b->variable[v].dim.name = got->name;
            m->b->variable[v].composed = 0;
        }
        return CPL_OK;
    }
    cpl_dim want = m->b->variable[v].dim;
    if (kind == CPL_DIM_FEATURE)
        want.size *= d->factor;
    return fail_dim(m, i, d->name, got, m->b->variable[v].from, &want);
}

static cpl_status match_ellipsis(const match *m, int i, const cpl_dim *dims, int n)
{
    cpl_bindings *b = m->b;
    if (b->ellipsis_from < 0) {
        b->ellipsis_from = i;
        b->ellipsis_rank = n;
        memcpy(b->ellipsis, dims, sizeof *dims * (size_t)n);
        return CPL_OK;
    }
    int same = n == b->ellipsis_rank;
    for (int k = 0; same && k < n; k++)
        same = same_dim(&dims[k], &b->ellipsis[k]);
    if (same)
        return CPL_OK;
    char here[240], there[240];
    CPL_FAIL(m->err, CPL_USAGE, "%s: shapes differ: %s and %s", m->op->name,
             describe(m, b->ellipsis_from, there, sizeof there), describe(m, i, here, sizeof here));
}

static cpl_status match_input(const match *m, int i)
{
    const cpl_signature_argument *a = &m->s->in[i];
    const cpl_type *type = m->types[i];
    char text[240];
    if (!type) {
        if (a->optional)
            return CPL_OK;
        CPL_FAIL(m->err, CPL_USAGE, "%s: input '%s' is missing", m->op->name, a->name);
    }
    if (a->id != (type->element == CPL_ELEMENT_ID))
        CPL_FAIL(m->err, CPL_USAGE, "%s: %s must be %s, got %s", m->op->name, a->name,
                 a->id ? "integer ids" : "real numbers", describe(m, i, text, sizeof text));
    int ellipsis = a->rank > 0 && a->dim[0].ellipsis;
    int fixed = a->rank - ellipsis;
    if (ellipsis ? type->rank < fixed : type->rank != fixed)
        return fail_shape(m, i);
    int lead = type->rank - fixed;
    cpl_status status = ellipsis ? match_ellipsis(m, i, type->dim, lead) : CPL_OK;
    for (int k = 0; status == CPL_OK && k < fixed; k++)
        status = match_dim(m, i, &a->dim[ellipsis + k], &type->dim[lead + k]);
    return status;
}

cpl_status cpl_signature_match(const cpl_op *op, const cpl_signature *s, const cpl_type *const *types,
                               const char *const *paths, cpl_bindings *b, cpl_error *err)
{
    memset(b, 0, sizeof *b);
    b->ellipsis_from = -1;
    match m = {op, s, types, paths, b, err};
    for (int i = 0; i < s->inputs; i++) {
        cpl_status status = match_input(&m, i);
        if (status != CPL_OK)
            return status;
    }
    return CPL_OK;
}

/* ---- making types ---- */

static cpl_status composed(const cpl_signature_dim *d, const cpl_bindings *b, cpl_arena *names, cpl_dim *dim,
                           cpl_error *err)
{
    if (!d->name[0]) {
        *dim = (cpl_dim){.size = d->factor, .symbol = CPL_NO_SYMBOL, .kind = CPL_DIM_FEATURE};
        dim->name = cpl_arena_printf(names, "%lld", (long long)d->factor);
    } else {
        int v = find_variable(b, d->name), w = d->name2[0] ? find_variable(b, d->name2) : -1;
        if (v < 0 || (d->name2[0] && w < 0))
            CPL_FAIL(err, CPL_FAILED, "dimension '%s' of an output is not bound by any input", d->name);
        *dim = b->variable[v].dim;
        if (w >= 0) {
            dim->size = d->factor * dim->size + d->factor2 * b->variable[w].dim.size;
            dim->name = cpl_arena_printf(names, "%s+%s", b->variable[v].dim.name, b->variable[w].dim.name);
        } else if (d->factor > 1) {
            dim->size *= d->factor;
            dim->name = cpl_arena_printf(names, "%lld%s", (long long)d->factor, b->variable[v].dim.name);
        }
    }
    if (!dim->name)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    return CPL_OK;
}

cpl_status cpl_signature_type(const cpl_signature_argument *a, const cpl_bindings *b, cpl_arena *names, cpl_type *type,
                              cpl_error *err)
{
    memset(type, 0, sizeof *type);
    type->element = a->id ? CPL_ELEMENT_ID : CPL_ELEMENT_REAL;
    type->order = CPL_ORDER_CALLER;
    for (int k = 0; k < a->rank; k++) {
        if (a->dim[k].ellipsis) {
            for (int e = 0; e < b->ellipsis_rank && type->rank < CPL_MAX_RANK; e++)
                type->dim[type->rank++] = b->ellipsis[e];
            continue;
        }
        if (type->rank == CPL_MAX_RANK)
            CPL_FAIL(err, CPL_USAGE, "more than %d dimensions in '%s'", CPL_MAX_RANK, a->name);
        cpl_status status = composed(&a->dim[k], b, names, &type->dim[type->rank], err);
        if (status != CPL_OK)
            return status;
        type->rank++;
    }
    return CPL_OK;
}
