/* figures_of_file.c: outputs that stand in a file, scored against pairs; those of a baseline the same way. */
#include <string.h>
#include "api/evaluate.h"
#include "base/error.h"
#include "base/memory.h"

/* All lines, one after the other. */
typedef struct outputs {
    const char *path;
    cpl_str text;
    size_t *ends;
    size_t capacity, count;
} outputs;

static cpl_metric_text output_at(const outputs *out, size_t i)
{
    size_t begin = i ? out->ends[i - 1] : 0;
    return (cpl_metric_text){out->text.data + begin, out->ends[i] - begin};
}

static cpl_status read_lines(outputs *out, cpl_lines *input, cpl_error *err)
{
    const char *path = out->path;
    const cpl_line *lines;
    size_t count;
    int64_t first;
    cpl_str_add(&out->text, "");
    do {
        CPL_TRY(cpl_lines_read(input, 1024, &lines, &count, err), err, "cannot read '%s'", path);
        if (cpl_grow(&out->ends, &out->capacity, out->count + count, sizeof *out->ends))
            CPL_FAIL(err, CPL_FAILED, "out of memory for the lines of '%s'", path);
        for (size_t i = 0; i < count; i++) {
            cpl_str_add_bytes(&out->text, lines[i].text, lines[i].length);
            out->ends[out->count++] = out->text.length;
        }
    } while (count > 0);
    if (out->text.failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the lines of '%s'", path);
    if (cpl_lines_replaced(input, &first) > 0)
        CPL_FAIL(err, CPL_USAGE, "line %lld of '%s' is not UTF-8", (long long)first, path);
    return CPL_OK;
}

/* Grouped outputs may come one for each pair, as `generate` writes them, or one for each source. */
static cpl_status check_count(const outputs *out, const cpl_pairs *pairs, const cpl_items *items,
                              const cpl_evaluate_options *o, cpl_error *err)
{
    if (out->count == pairs->count || (o->group && out->count == (size_t)items->count))
        return CPL_OK;
    if (o->group)
        CPL_FAIL(err, CPL_USAGE, "'%s' has %zu lines but '%s' has %zu pairs and %lld sources" CPL_HINT
                 "give a line for each pair, or one for each source in the order in which they first come",
                 out->path, out->count, o->pairs, pairs->count, (long long)items->count);
    CPL_FAIL(err, CPL_USAGE, "'%s' has %zu lines but '%s' has %zu pairs" CPL_HINT
             "line i of the outputs is compared with line i of the pairs, blank lines included", out->path,
             out->count, o->pairs, pairs->count);
}

/* One item has one output: lines for the same source must agree. */
static cpl_status check_same(const outputs *out, const int64_t *pairs, int64_t n, cpl_error *err)
{
    cpl_metric_text first = output_at(out, (size_t)pairs[0]);
    for (int64_t i = 1; i < n; i++) {
        cpl_metric_text other = output_at(out, (size_t)pairs[i]);
        if (other.length != first.length || memcmp(other.text, first.text, first.length) != 0)
            CPL_FAIL(err, CPL_USAGE, "lines %lld and %lld of '%s' differ but have the same source" CPL_HINT
                     "a group of pairs has one output; without --group each line is scored by itself",
                     (long long)pairs[0] + 1, (long long)pairs[i] + 1, out->path);
    }
    return CPL_OK;
}

static cpl_status score_items(cpl_scorer *to, const outputs *out, const cpl_pairs *pairs, const cpl_items *items,
                              cpl_error *err)
{
    cpl_metric_text *references = cpl_alloc((size_t)items->most, sizeof *references);
    cpl_status status = references ? CPL_OK : cpl_error_set(err, CPL_FAILED, "out of memory for references");
    for (int64_t i = 0; i < items->count && status == CPL_OK; i++) {
        const int64_t *order = items->order + items->starts[i];
        int64_t n = items->starts[i + 1] - items->starts[i];
        const cpl_slice *source = &pairs->items[order[0]].source;
        for (int64_t k = 0; k < n; k++) {
            const cpl_slice *target = &pairs->items[order[k]].target;
            references[k] = (cpl_metric_text){target->text, target->length};
        }
        size_t line = (size_t)i;
        if (out->count == pairs->count) {
            line = (size_t)order[0];
            status = check_same(out, order, n, err);
        }
        cpl_scored item = {output_at(out, line), {source->text, source->length}, references, (size_t)n};
        if (status == CPL_OK)
            status = cpl_scorer_add(to, &item, err);
        if (status != CPL_OK)
            cpl_error_context(err, status, "line %zu of '%s'", line + 1, out->path);
    }
    cpl_release(references);
    return status;
}

static cpl_status score_file(cpl_scorer *to, const char *path, const cpl_pairs *pairs, const cpl_items *items,
                             const cpl_evaluate_options *o, cpl_error *err)
{
    cpl_lines *lines;
    outputs out = {.path = path};
    cpl_status status = cpl_lines_open(&lines, path, err);
    if (status != CPL_OK)
        return status;
    status = read_lines(&out, lines, err);
    cpl_lines_close(lines);
    if (status == CPL_OK)
        status = check_count(&out, pairs, items, o, err);
    if (status == CPL_OK)
        status = score_items(to, &out, pairs, items, err);
    cpl_str_free(&out.text);
    cpl_release(out.ends);
    return status;
}

static cpl_status score_files(cpl_figures *f, const cpl_pairs *pairs, const cpl_evaluate_options *o, cpl_error *err)
{
    cpl_items items = {.count = 0};
    if (pairs->count == 0)
        CPL_FAIL(err, CPL_USAGE, "'%s' holds no pairs", o->pairs);
    cpl_status status = cpl_items_make(&items, pairs->items, (int64_t)pairs->count, o->group != NULL, err);
    if (status == CPL_OK)
        status = score_file(f->scorer, o->outputs, pairs, &items, o, err);
    if (status == CPL_OK && f->baseline)
        status = score_file(f->baseline, o->baseline, pairs, &items, o, err);
    f->items = items.count;
    cpl_items_free(&items);
    return status;
}

cpl_status cpl_figures_of_outputs(cpl_figures *f, const cpl_evaluate_options *o, cpl_error *err)
{
    cpl_config_source source = {.pairs = o->pairs, .written_pairs = o->pairs};
    cpl_config_files files = {.items = &source, .count = 1};
    cpl_pairs_options options = {.keep_empty = 1};
    cpl_pairs *pairs;
    CPL_TRY(cpl_pairs_read(&pairs, &files, &options, err), err, "cannot read '%s'", o->pairs);
    f->pairs = (int64_t)pairs->count;
    cpl_status status = score_files(f, pairs, o, err);
    cpl_pairs_free(pairs);
    return status;
}
