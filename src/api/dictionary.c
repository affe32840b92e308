/* dictionary.c: a map from words to places in an array, each the head of a list. All text lives in one arena. */
#include "api/dictionary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/files.h"
#include "base/map.h"
#include "base/memory.h"
#include "data/scan.h"

struct cpl_dictionary {
    char *path;
    cpl_map *map; /* source → 1 + its place in heads */
    cpl_translation **heads;
    size_t count, capacity;
    cpl_arena *arena;
    cpl_str source, target; /* scratch: one line, standardised */
};

void cpl_dictionary_free(cpl_dictionary *d)
{
    if (!d)
        return;
    cpl_release(d->path);
    cpl_map_free(d->map);
    cpl_release(d->heads);
    cpl_arena_free(d->arena);
    cpl_str_free(&d->source);
    cpl_str_free(&d->target);
    cpl_release(d);
}

const cpl_translation *cpl_dictionary_find(const cpl_dictionary *d, const char *word, size_t length)
{
    const int64_t *place = cpl_map_find(d->map, word, length);
    return place ? d->heads[*place - 1] : NULL;
}

/* In front of the first that is less probable. Returns −1 without memory. */
static int insert(cpl_dictionary *d, double probability)
{
    int64_t *place = cpl_map_insert(d->map, d->source.data, d->source.length, NULL);
    cpl_translation *t = cpl_arena_alloc(d->arena, sizeof *t);
    char *text = cpl_arena_strndup(d->arena, d->target.data, d->target.length);
    if (!place || !t || !text || cpl_grow(&d->heads, &d->capacity, d->count + 1, sizeof(cpl_translation *)))
        return -1;
    if (*place == 0) {
        d->heads[d->count++] = NULL;
        *place = (int64_t)d->count;
    }
    cpl_translation **at = &d->heads[*place - 1];
    while (*at && (*at)->probability >= probability)
        at = &(*at)->next;
    *t = (cpl_translation){.text = text, .length = d->target.length, .probability = probability, .next = *at};
    *at = t;
    return 0;
}

/* White space around it is none of a word's. */
static cpl_status standardize(cpl_standardize rule, const char *text, size_t length, cpl_str *out, cpl_error *err)
{
    cpl_str_clear(out);
    cpl_status status = cpl_standardize_text(rule, text, length, out, NULL, NULL, err);
    size_t from = 0;
    while (out->length > 0 && (out->data[out->length - 1] == ' ' || out->data[out->length - 1] == '\t'))
        out->length--;
    while (from < out->length && out->data[from] == ' ')
        from++;
    if (from > 0)
        memmove(out->data, out->data + from, out->length -= from);
    return status;
}

static cpl_status add_line(cpl_dictionary *d, const char *line, size_t length, cpl_standardize source,
                           cpl_standardize target, cpl_error *err)
{
    const char *tab = memchr(line, '\t', length), *end = line + length, *more = NULL;
    double probability = 1;
    if (!tab)
        CPL_FAIL(err, CPL_USAGE, "no tab between source and target");
    more = memchr(tab + 1, '\t', (size_t)(end - tab - 1));
    if (more) {
        char number[40], *stop;
        snprintf(number, sizeof number, "%.*s", (int)(end - more - 1), more + 1);
        probability = strtod(number, &stop);
        if (stop == number || *stop != '\0' || !(probability >= 0 && isfinite(probability)))
            CPL_FAIL(err, CPL_USAGE, "the probability is '%.39s', expected a number of at least 0", number);
    }
    CPL_TRY(standardize(source, line, (size_t)(tab - line), &d->source, err), err, "the source");
    CPL_TRY(standardize(target, tab + 1, (size_t)((more ? more : end) - tab - 1), &d->target, err), err, "the target");
    if (d->source.length == 0 || d->target.length == 0)
        CPL_FAIL(err, CPL_USAGE, "the %s is empty%s", d->source.length == 0 ? "source" : "target",
                 source != CPL_STANDARDIZE_NONE ? " after standardisation" : "");
    if (insert(d, probability))
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    return CPL_OK;
}

static cpl_status read_lines(cpl_dictionary *d, const char *path, cpl_standardize source, cpl_standardize target,
                             cpl_error *err)
{
    char *data, *at, *line;
    size_t length, size;
    int64_t number = 0;
    CPL_TRY(cpl_file_read(path, &data, &size, err), err, "cannot read '%s'", path);
    cpl_status status = cpl_scan_utf8(path, data, size, err);
    at = data;
    while (status == CPL_OK && cpl_scan_line(&at, data + size, &line, &length)) {
        number++;
        cpl_scan_unmark(line, &length);
        if (cpl_scan_blank(line, length))
            continue;
        status = add_line(d, line, length, source, target, err);
        if (status != CPL_OK)
            cpl_error_context(err, status, "'%s', line %lld", path, (long long)number);
    }
    cpl_release(data);
    return status;
}

static cpl_status read_new(cpl_dictionary **out, const char *path, const cpl_config_text *rules, cpl_error *err)
{
    cpl_dictionary *d = *out = cpl_alloc(1, sizeof *d);
    if (d) {
        d->path = cpl_strdup(path);
        d->map = cpl_map_new();
        d->arena = cpl_arena_new(1 << 16);
    }
    if (!d || !d->path || !d->map || !d->arena)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    return read_lines(d, path, (cpl_standardize)rules->source.standardize,
                      (cpl_standardize)rules->target.standardize, err);
}

cpl_status cpl_dictionary_use(cpl_dictionary **d, const char *path, const cpl_config_text *rules, cpl_error *err)
{
    if (*d && path && strcmp((*d)->path, path) == 0)
        return CPL_OK;
    cpl_dictionary_free(*d);
    *d = NULL;
    cpl_status status = path ? read_new(d, path, rules, err) : CPL_OK;
    if (status != CPL_OK) {
        cpl_dictionary_free(*d);
        *d = NULL;
    }
    return status;
}
